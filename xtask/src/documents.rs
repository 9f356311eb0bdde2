//! Checks the documents: the commands they show exist, the files they link to are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{built, cargo};

/// Builds the programs in the profile of the tests, so that little is rebuilt.
const BUILD: [&str; 10] = [
    "build",
    "--quiet",
    "--profile",
    "test",
    "--package",
    "femtile-cli",
    "--package",
    "femtile-bench",
    "--package",
    "femtile-research",
];

/// Prints broken links and commands of the documents; returns true when there are none.
pub fn report(root: &Path) -> bool {
    cargo().args(BUILD).status().is_ok_and(|status| status.success()) && report_built(root)
}

/// The same, asking the program that the tests have built.
pub fn report_built(root: &Path) -> bool {
    let program = &|| built(root, "femtile");
    let mut files = Vec::new();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        files.push(root.join(name));
    }
    for folder in ["docs", "papers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    let (mut ok, mut commands) = (true, BTreeSet::new());
    for file in &files {
        let Ok(text) = fs::read_to_string(file) else {
            println!("{} cannot be read", file.display());
            ok = false;
            continue;
        };
        let folder = file.parent().unwrap_or(root);
        for link in links(&text).filter(|link| !folder.join(link).exists()) {
            println!("{}: the link to {link} leads nowhere", file.display());
            ok = false;
        }
        commands.extend(shown(&text));
    }
    for command in &commands {
        if let Err(reason) = exists(root, command, program) {
            println!("`{command}`: {reason}");
            ok = false;
        }
    }
    println!(
        "{} documents, {} commands: {}",
        files.len(),
        commands.len(),
        if ok { "sound" } else { "broken" }
    );
    ok
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Targets of relative links, without their anchors.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let targets = targets.filter_map(|target| target.split('#').next());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
}

/// Commands of this project that stand alone on a line of code.
fn shown(text: &str) -> impl Iterator<Item = String> {
    let mut fenced = false;
    let lines = text.lines().filter(move |line| {
        fenced ^= line.starts_with("```");
        fenced || line.starts_with("    ")
    });
    let commands = lines.map(|line| line.split(" #").next().unwrap_or_default().trim().to_string());
    commands.filter(|line| {
        ["femtile ", "cargo run ", "cargo xtask ", "./"].iter().any(|start| line.starts_with(start))
            && !line.contains('…')
    })
}

/// Checks that a command is valid: examples are solved, of other commands subcommand and options are looked up.
fn exists(root: &Path, command: &str, program: &dyn Fn() -> Command) -> Result<(), String> {
    if let Some(arguments) = command.strip_prefix("cargo run --release -- ") {
        let output = ["--quiet", "--output", "target/documents"];
        return said(program().args(arguments.split(' ').chain(output))).map(drop);
    }
    if let Some(arguments) = command.strip_prefix("cargo xtask ") {
        return crate::knows(arguments).then_some(()).ok_or_else(|| "xtask has no such command".into());
    }
    if let Some(path) = command.strip_prefix("./") {
        return root.join(path).exists().then_some(()).ok_or_else(|| "there is no such file".into());
    }
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let is_name =
        |word: &&&str| word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['.', '/']);
    let names = words.iter().take_while(is_name).take(2).copied();
    let help = said(program().args(names).arg("--help"))?;
    match words.iter().find(|word| word.starts_with("--") && !help.contains(**word)) {
        Some(option) => Err(format!("there is no option {option}")),
        None => Ok(()),
    }
}

fn said(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_blocks_of_code_alone() {
        let text = "run femtile solve\n    femtile solve a.toml   # comment\n\n```toml\n./test\n```\n./no\n    [mesh]\n";
        assert_eq!(shown(text).collect::<Vec<_>>(), ["femtile solve a.toml", "./test"]);
    }

    #[test]
    fn only_relative_links_are_followed() {
        let text = "[a](docs/a.md#part) [b](https://example.org) [c](#here) f](x y)";
        assert_eq!(links(text).collect::<Vec<_>>(), ["docs/a.md"]);
    }
}
