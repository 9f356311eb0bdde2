//! The C++ compiler of this machine, and what it made before.
//!
//! A program becomes a shared library that holds the runtime as well. Libraries are kept in the build folder under
//! the hash of all they are made from; they are written under another name and renamed, so that processes may
//! build the same at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::text::entries;

/// Headers that come before the text of a kernel.
const PRELUDE: [(&str, &str); 2] = [
    ("emulated_cuda.h", include_str!("runtime/emulated_cuda.h")),
    ("entries.h", include_str!("runtime/entries.h")),
];
/// The runtime, its source first.
const RUNTIME: [(&str, &str); 7] = [
    ("runtime.cpp", include_str!("runtime/runtime.cpp")),
    ("interface.h", include_str!("runtime/interface.h")),
    ("fiber.h", include_str!("runtime/fiber.h")),
    ("machine.h", include_str!("runtime/machine.h")),
    ("shadow.h", include_str!("runtime/shadow.h")),
    ("meeting.h", include_str!("runtime/meeting.h")),
    ("atomics.h", include_str!("runtime/atomics.h")),
];

const COMMON_OPTIONS: [&str; 6] =
    ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-w"];
/// Every access is announced to the runtime; numbers are rounded as written. Findings need lines and inlined functions, but not
/// the places of variables, which take a fifth of the time of the compiler.
const KERNEL_OPTIONS: [&str; 7] = [
    "-O1",
    "-gdwarf-4",
    "-fno-var-tracking",
    "-fsanitize=thread,alignment",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fno-math-errno",
];
const RUNTIME_OPTIONS: [&str; 1] = ["-O2"];
/// The sanitizer's own library stays out: the runtime has its functions.
const LINK_OPTIONS: [&str; 3] = ["-shared", "-Wl,-z,defs", "-Wl,--hash-style=gnu"];

/// A file that cargo leaves in every build folder; its `CACHEDIR.TAG` is only in those that cargo created.
const MARK_OF_BUILD_FOLDER: &str = ".rustc_info.json";

/// The texts of a program with its macros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub name: String,
    pub text: String,
    pub headers: Vec<(String, String)>,
    pub defines: Vec<(String, String)>,
}

impl Source {
    /// The names of its kernels.
    pub fn entries(&self) -> Vec<String> {
        entries(&self.text)
    }

    /// Returns the source to compile: the kernels, in a namespace that separates headers of equal names.
    fn unit(&self) -> String {
        let entries: String = self.entries().iter().map(|name| format!("FEMTILE_ENTRY({name})\n")).collect();
        format!("namespace {{\n#include \"{}\"\nFEMTILE_GAP(end)\n}}\n{entries}", self.file())
    }

    fn file(&self) -> String {
        format!("{}.cu", self.name)
    }

    fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let headers = self.headers.iter().map(|(name, text)| (name.clone(), text.as_str()));
        headers.chain(std::iter::once((self.file(), self.text.as_str())))
    }
}

/// A library that was built; a folder that is its alone goes with it.
#[derive(Debug)]
pub(super) struct Built {
    pub path: PathBuf,
    pub folder: Option<TempDir>,
}

#[derive(Debug)]
pub(super) struct Compiler {
    command: Vec<String>,
    version: String,
    /// Cache folder of libraries; none without a build folder, in which case nothing is cached.
    folder: Option<PathBuf>,
    runtime: std::sync::OnceLock<(PathBuf, Option<TempDir>)>,
}

/// `emulator` in the folder that cargo builds this program in.
fn build_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let folder = program.ancestors().find(|folder| folder.join(MARK_OF_BUILD_FOLDER).exists())?;
    let folder = folder.join("emulator");
    fs::create_dir_all(&folder).ok()?;
    Some(folder)
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn words(error: io::Error) -> String {
    error.to_string()
}

impl Compiler {
    /// The compiler that `CXX` names, else the one that the system has.
    pub fn find() -> Result<Self, String> {
        let named = std::env::var("CXX").ok().filter(|named| !named.trim().is_empty());
        let candidates = named.map_or(vec!["c++".into(), "g++".into()], |named| vec![named]);
        let mut refusal = String::new();
        for candidate in &candidates {
            let command: Vec<String> = candidate.split_whitespace().map(Into::into).collect();
            let asked = Command::new(&command[0]).args(&command[1..]).arg("--version").output();
            match asked {
                Ok(output) if output.status.success() => {
                    let version = String::from_utf8_lossy(&output.stdout).into_owned();
                    return Ok(Self {
                        command,
                        version,
                        folder: build_folder(),
                        runtime: Default::default(),
                    });
                }
                Ok(output) => refusal = String::from_utf8_lossy(&output.stderr).into_owned(),
                Err(error) => refusal = error.to_string(),
            }
        }
        Err(format!(
            "there is no C++ compiler ({}: {}); install one, such as the package build-essential, or name it in CXX",
            candidates.join(", "),
            refusal.trim()
        ))
    }

    /// The first line that the compiler says of itself.
    pub fn description(&self) -> String {
        self.version.lines().next().unwrap_or_default().into()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    fn key(&self, name: &str, texts: impl Iterator<Item = String>) -> String {
        let mut hash = Sha256::new();
        let fixed = PRELUDE.iter().chain(&RUNTIME).map(|(_, text)| (*text).to_string());
        let options =
            COMMON_OPTIONS.iter().chain(&KERNEL_OPTIONS).chain(&RUNTIME_OPTIONS).chain(&LINK_OPTIONS);
        let options = options.map(|option| (*option).to_string());
        let compiler = self.command.iter().chain([&self.version]).cloned();
        for text in fixed.chain(options).chain(compiler).chain(texts) {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let sum: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{name}-{sum}")
    }

    /// A folder for one build, in the build folder where there is one, so that its results can be renamed.
    fn workplace(&self) -> Result<TempDir, String> {
        match &self.folder {
            Some(folder) => TempDir::with_prefix_in("building-", folder),
            None => TempDir::with_prefix("femtile-emulator-"),
        }
        .map_err(words)
    }

    /// The library of a program.
    pub fn build(&self, source: &Source) -> Result<Built, String> {
        let texts = source.files().flat_map(|(name, text)| [name, text.to_string()]);
        let defines = source.defines.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
        let key = self.key(&source.name, texts.chain(defines));
        let kept = self.folder.as_ref().map(|folder| folder.join(format!("{key}.so")));
        if let Some(path) = kept.as_ref().filter(|path| path.exists()) {
            return Ok(Built { path: path.clone(), folder: None });
        }
        let workplace = self.workplace()?;
        let library = self.build_in(workplace.path(), source)?;
        let Some(kept) = kept else { return Ok(Built { path: library, folder: Some(workplace) }) };
        fs::rename(&library, &kept).map_err(words)?;
        Ok(Built { path: kept, folder: None })
    }

    fn build_in(&self, folder: &Path, source: &Source) -> Result<PathBuf, String> {
        write(folder, PRELUDE.iter().map(|(name, text)| (*name, *text)))?;
        for (name, text) in source.files() {
            write(folder, [(name.as_str(), text)].into_iter())?;
        }
        write(folder, [("unit.cpp", source.unit().as_str())].into_iter())?;
        let defines = source.defines.iter().map(|(name, value)| format!("-D{name}={value}"));
        let includes = PRELUDE.iter().flat_map(|(name, _)| ["-include", name]);
        let mut compile = self.command();
        compile.current_dir(folder).args(COMMON_OPTIONS).args(KERNEL_OPTIONS).arg("-I.").args(includes);
        run(compile.args(defines).args(["-c", "unit.cpp", "-o", "unit.o"]))?;
        let library = folder.join("unit.so");
        let mut link = self.command();
        link.current_dir(folder).args(LINK_OPTIONS).arg("-o").arg(&library).arg("unit.o");
        run(link.arg(self.runtime()?).args(["-lm", "-lpthread"]))?;
        Ok(library)
    }

    /// The compiled runtime, which all programs share.
    fn runtime(&self) -> Result<&Path, String> {
        if let Some((path, _)) = self.runtime.get() {
            return Ok(path);
        }
        let key = self.key("runtime", std::iter::empty());
        let kept = self.folder.as_ref().map(|folder| folder.join(format!("{key}.o")));
        let built = match kept {
            Some(path) if path.exists() => (path, None),
            kept => {
                let workplace = self.workplace()?;
                write(workplace.path(), RUNTIME.iter().map(|(name, text)| (*name, *text)))?;
                let mut compile = self.command();
                compile.current_dir(workplace.path()).args(COMMON_OPTIONS).args(RUNTIME_OPTIONS);
                run(compile.args(["-c", RUNTIME[0].0, "-o", "runtime.o"]))?;
                let object = workplace.path().join("runtime.o");
                match kept {
                    Some(path) => fs::rename(&object, &path).map(|()| (path, None)).map_err(words)?,
                    None => (object, Some(workplace)),
                }
            }
        };
        Ok(&self.runtime.get_or_init(|| built).0)
    }
}

fn write<'a>(folder: &Path, files: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), String> {
    for (name, text) in files {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(words)?;
        fs::write(path, text).map_err(words)?;
    }
    Ok(())
}
