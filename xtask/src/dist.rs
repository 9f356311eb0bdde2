//! All files of a release in `target/dist`: the wheel and the sources of the Python package, the program with what belongs to
//! it, and the sums of all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;
use crate::step::{Checks, cargo};

/// The tools of a release, from PyPI: zig links against an old glibc.
const TOOLS: [&str; 4] = ["cargo-zigbuild==0.23.*", "maturin>=1.9.4,<2", "twine>=6,<8", "ziglang==0.15.*"];
/// The target of what is built.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The glibc that files need at most, 2.x, as of Debian 10, RHEL 8 and Ubuntu 20.04.
const GLIBC: u32 = 28;
/// Files of the archive beside the program, with the arguments that print them.
const PRINTED: [(&str, &[&str]); 5] = [
    ("completions/femtile.bash", &["completions", "bash"]),
    ("completions/_femtile", &["completions", "zsh"]),
    ("completions/femtile.fish", &["completions", "fish"]),
    ("man/femtile.1", &["man"]),
    ("case-file.schema.json", &["schema"]),
];
/// Files of the project that the archive contains.
const COPIED: [&str; 4] = ["LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "CITATION.cff"];

/// Makes the files; returns true where all went well.
pub fn dist(root: &Path) -> bool {
    let mut checks = Checks::default();
    let dist = root.join("target/dist");
    let _ = fs::remove_dir_all(&dist);
    let environment = root.join("target/venv-dist");
    if tools(&mut checks, &environment) {
        packages::check(&mut checks);
        wheel(&mut checks, &environment, &dist);
        program(&mut checks, root, &environment, &dist);
        checks.step("sums", |_| told(sums(&dist)));
    }
    checks.finish()
}

/// Makes the Python environment of the tools, where it is not there yet.
fn tools(checks: &mut Checks, environment: &Path) -> bool {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(environment);
    let mut install = Command::new(environment.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet"]).args(TOOLS);
    checks.program("environment of the tools", venv) && checks.program("tools from PyPI", install)
}

/// A program of the environment, with its folder on the path, where cargo looks for zig.
fn tool(environment: &Path, name: &str) -> Command {
    let bin = environment.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = [bin.clone()].into_iter().chain(std::env::split_paths(&path));
    let mut command = Command::new(bin.join(name));
    command.env("PATH", std::env::join_paths(all).unwrap_or(path));
    command
}

/// The wheel and the sources of the Python package.
fn wheel(checks: &mut Checks, environment: &Path, dist: &Path) {
    let manifest = ["--manifest-path", "crates/femtile-python/Cargo.toml", "--out"];
    let mut build = tool(environment, "maturin");
    build.args(["build", "--release", "--strip", "--zig", "--target", TARGET]);
    build.arg("--compatibility").arg(format!("manylinux_2_{GLIBC}")).args(manifest).arg(dist);
    checks.program("wheel", build);
    let mut sources = tool(environment, "maturin");
    sources.arg("sdist").args(manifest).arg(dist);
    checks.program("sources of the Python package", sources);
    let mut check = tool(environment, "twine");
    check.args(["check", "--strict"]).args(files(dist).unwrap_or_default());
    checks.program("twine check", check);
}

/// The archive of the program.
fn program(checks: &mut Checks, root: &Path, environment: &Path, dist: &Path) {
    let mut build = tool(environment, "cargo-zigbuild");
    build.args(["zigbuild", "--release", "--locked", "--package", "femtile-cli", "--bin", "femtile"]);
    build.arg("--target").arg(format!("{TARGET}.2.{GLIBC}"));
    if !checks.program("program", build) {
        return;
    }
    let built = root.join("target").join(TARGET).join("release/femtile");
    // Afterwards, so that the profile is that of everybody's release.
    let mut strip = Command::new("strip");
    strip.arg(&built);
    checks.program("program, without symbols", strip);
    checks.step("glibc of the program", |_| told(needs_at_most(&built, GLIBC)));
    let name = format!("femtile-{}-{TARGET}", env!("CARGO_PKG_VERSION"));
    checks.step("archive of the program", |_| told(archive(root, &built, &dist.join(&name))));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"]);
    tar.arg(dist.join(format!("{name}.tar.gz"))).arg("-C").arg(dist).arg(&name);
    if checks.program("tar", tar) {
        let _ = fs::remove_dir_all(dist.join(&name));
    }
}

/// Puts the program and what belongs to it into a folder.
fn archive(root: &Path, program: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("completions"))?;
    fs::create_dir_all(folder.join("man"))?;
    fs::copy(program, folder.join("femtile"))?;
    for (file, arguments) in PRINTED {
        fs::write(folder.join(file), said(Command::new(program).args(arguments))?)?;
    }
    for file in COPIED {
        fs::copy(root.join(file), folder.join(file))?;
    }
    fs::write(folder.join("THIRD-PARTY-LICENSES.txt"), licences()?)
}

/// Returns the licences of all crates that the program contains, with their texts.
fn licences() -> io::Result<String> {
    let arguments = ["tree", "--locked", "--package", "femtile-cli", "--edges", "normal", "--prefix", "none"];
    let format = ["--target", TARGET, "--no-dedupe", "--format", "{p}|{l}"];
    let listed = said(cargo().args(arguments).args(format))?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let mut crates: Vec<&str> = listed.lines().filter(|line| !line.contains("(/")).collect();
    crates.sort_unstable();
    crates.dedup();
    let mut text =
        String::from("The program femtile contains these crates of others, under their licences.\n");
    for line in crates {
        let (package, licence) = line.split_once('|').unwrap_or((line, ""));
        let mut words = package.split_whitespace();
        let (name, version) =
            (words.next().unwrap_or(""), words.next().unwrap_or("").trim_start_matches('v'));
        text += &format!("\n==== {name} {version}: {licence}\n");
        for file in licence_files(&format!("{name}-{version}"))? {
            text += &format!("\n{}\n", String::from_utf8_lossy(&fs::read(file)?).trim_end());
        }
    }
    Ok(text)
}

/// Returns the files with licences and notices of a crate of the registry.
fn licence_files(package: &str) -> io::Result<Vec<PathBuf>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let registries = fs::read_dir(home.unwrap_or_default().join("registry/src"))?;
    let folders = registries.flatten().map(|registry| registry.path().join(package));
    let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else { return Ok(Vec::new()) };
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file()
            && ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
    };
    let mut found: Vec<_> = files(&folder)?.into_iter().filter(is_licence).collect();
    found.sort();
    Ok(found)
}

/// Refuses a file that needs a newer glibc than 2.`most`.
fn needs_at_most(file: &Path, most: u32) -> io::Result<()> {
    match newest_glibc(&fs::read(file)?) {
        Some(newest) if newest <= most => {
            println!("{} needs glibc 2.{newest}", file.display());
            Ok(())
        }
        Some(newest) => Err(io::Error::other(format!("it needs glibc 2.{newest}, above 2.{most}"))),
        None => Err(io::Error::other("it names no version of glibc")),
    }
}

/// Returns the newest minor version of glibc 2 among the symbol versions of a file.
fn newest_glibc(bytes: &[u8]) -> Option<u32> {
    let marker = b"GLIBC_2.";
    let starts = bytes.windows(marker.len()).enumerate().filter(|(_, window)| window == marker);
    let minor = |(at, _): (usize, &[u8])| {
        let digits = bytes[at + marker.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.map(|&byte| char::from(byte)).collect::<String>().parse().ok()
    };
    starts.filter_map(minor).max()
}

/// Writes the SHA-256 sums of all files.
fn sums(dist: &Path) -> io::Result<()> {
    let mut names: Vec<_> =
        files(dist)?.iter().filter_map(|path| path.file_name().map(ToOwned::to_owned)).collect();
    names.sort();
    let sums = said(Command::new("sha256sum").args(&names).current_dir(dist))?;
    print!("{}", String::from_utf8_lossy(&sums));
    fs::write(dist.join("SHA256SUMS"), sums)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(fs::read_dir(folder)?.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

/// Returns what a command prints.
fn said(command: &mut Command) -> io::Result<Vec<u8>> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let message = format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            Err(io::Error::other(message))
        }
    }
}

/// Prints an error; returns whether there was none.
fn told(done: io::Result<()>) -> bool {
    done.inspect_err(|error| println!("{error}")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_glibc_counts() {
        assert_eq!(newest_glibc(b"..GLIBC_2.2.5\0GLIBC_2.28\0GLIBC_2.17\0"), Some(28));
        assert_eq!(newest_glibc(b"GLIBC_PRIVATE\0GLIBC_2."), None);
    }
}
