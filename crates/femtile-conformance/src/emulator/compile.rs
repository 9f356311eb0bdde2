//! Builds kernels for the host with its C++ compiler, once for each text.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use femtile::device::DeviceError;

const RUNTIME: &str = include_str!("runtime.cpp");
const PRELUDE: &str = include_str!("emulated_cuda.h");

const RUNTIME_OPTIONS: [&str; 6] = ["-std=c++17", "-O2", "-g0", "-fPIC", "-shared", "-o"];
/// With the sanitizer the compiler calls a function before each access.
const PROGRAM_OPTIONS: [&str; 10] = [
    "-std=c++17",
    "-O1",
    "-g0",
    "-w",
    "-fPIC",
    "-fno-exceptions",
    "-fno-threadsafe-statics",
    "-fsanitize=thread",
    "-c",
    "-o",
];

/// The C++ compiler of this machine with its version.
#[derive(Debug, Clone)]
pub(super) struct HostCompiler {
    command: String,
    version: String,
    folder: PathBuf,
}

fn failed(program: &str, message: impl ToString) -> DeviceError {
    DeviceError::Compile { program: program.into(), message: message.to_string() }
}

/// Whether this function of a program is a kernel: the word before the parenthesis of its head.
pub(super) fn entries(source: &str) -> Vec<String> {
    let heads = source.split("extern \"C\" __global__").skip(1);
    let names = heads.filter_map(|head| {
        // The parentheses of launch bounds come before those of the parameters.
        let head = match head.split_once("__launch_bounds__(") {
            Some((before, after)) if before.trim() == "void" => after.split_once(')')?.1,
            _ => head,
        };
        let name = head.split('(').next()?.split_whitespace().next_back()?;
        Some(name.to_string())
    });
    names.collect()
}

impl HostCompiler {
    /// `$CXX`, else `c++`.
    pub(super) fn find() -> Result<Self, DeviceError> {
        let command = env::var("CXX").unwrap_or_else(|_| "c++".into());
        let output = Command::new(&command).arg("--version").output();
        let version = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
        let Some(version) = version else {
            return Err(DeviceError::Absent {
                requested: "emulated CUDA".into(),
                reason: format!("there is no C++ compiler `{command}`; install g++ or name one in CXX"),
            });
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/emulator");
        let version = String::from_utf8_lossy(&version).into_owned();
        Ok(Self { command, version, folder })
    }

    /// The library of the runtime, which sees every access of every kernel.
    pub(super) fn runtime(&self) -> Result<PathBuf, DeviceError> {
        self.build("runtime", &[("runtime.cpp", RUNTIME)], |folder, output| {
            self.run(&RUNTIME_OPTIONS, &[output, &folder.join("runtime.cpp")])
        })
    }

    /// The library of a program: source and headers as (name, text), macros as (name, value).
    pub(super) fn program(
        &self,
        name: &str,
        source: &str,
        headers: &[(String, String)],
        defines: &[(&'static str, String)],
    ) -> Result<PathBuf, DeviceError> {
        let defines: String =
            defines.iter().map(|(name, value)| format!("#define {name} {value}\n")).collect();
        let thunks: String =
            entries(source).iter().map(|kernel| format!("EMULATOR_ENTRY({kernel})\n")).collect();
        let unit = format!(
            "#include \"emulated_cuda.h\"\n{defines}namespace {{\n#include \"program.cu\"\n}}\n{thunks}"
        );
        let mut files =
            vec![("unit.cpp", unit.as_str()), ("program.cu", source), ("emulated_cuda.h", PRELUDE)];
        files.extend(headers.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        self.build(name, &files, |folder, output| {
            let (unit, object) = (folder.join("unit.cpp"), folder.join("unit.o"));
            self.run(&PROGRAM_OPTIONS, &[&object, &unit])?;
            // Linked without the sanitizer, so that its own library stays out.
            self.run(&["-shared", "-o"], &[output, &object])
        })
    }

    fn run(&self, options: &[&str], paths: &[&Path]) -> Result<(), String> {
        let output =
            Command::new(&self.command).args(options).args(paths).output().map_err(|e| e.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        Err(words.lines().take(20).collect::<Vec<_>>().join("\n"))
    }

    /// A library that is built unless one of the same texts and compiler is there; several processes may build
    /// the same one, as it is renamed into place.
    fn build(
        &self,
        name: &str,
        files: &[(&str, &str)],
        make: impl FnOnce(&Path, &Path) -> Result<(), String>,
    ) -> Result<PathBuf, DeviceError> {
        let mut hash = DefaultHasher::new();
        (&self.version, RUNTIME_OPTIONS, PROGRAM_OPTIONS, files).hash(&mut hash);
        let library = self.folder.join(format!("{name}-{:016x}.so", hash.finish()));
        if library.exists() {
            return Ok(library);
        }
        let io = |error: std::io::Error| failed(name, error);
        fs::create_dir_all(&self.folder).map_err(io)?;
        let scratch = tempfile::tempdir_in(&self.folder).map_err(io)?;
        for (file, text) in files {
            fs::write(scratch.path().join(file), text).map_err(io)?;
        }
        let built = scratch.path().join("built.so");
        make(scratch.path(), &built).map_err(|message| failed(name, message))?;
        fs::rename(&built, &library).map_err(io)?;
        Ok(library)
    }
}
