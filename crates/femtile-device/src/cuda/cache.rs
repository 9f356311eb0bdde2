//! Binaries kept on disk, so that a second start compiles nothing.
//!
//! An entry is one file: a line that identifies it, the SHA-256 of the rest, then the log and the code. It is
//! written under a temporary name and renamed, so that processes may share the folder. An entry that does not
//! match its sum is compiled again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy, choose_base_strategy};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use sha2::{Digest, Sha256};

use super::compiler::{Binary, Compiler, Target, options};
use super::{Specialisation, Workers};
use crate::DeviceError;

/// The variable that names the folder of the cache; empty for none at all.
const VARIABLE: &str = "FEMTILE_CACHE";
const MAGIC: &[u8] = b"femtile kernel 1\n";
const EXTENSION: &str = "kernel";

/// Contents of the cache of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheReport {
    /// The folder; none if the system has no cache folder.
    pub folder: Option<PathBuf>,
    /// Number of programs kept.
    pub n_entries: usize,
    /// Bytes they take.
    pub bytes: u64,
}

/// The folder that the environment names, else `femtile/kernels` in the user's cache folder.
fn folder() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(named) if named.is_empty() => None,
        Some(named) => Some(named.into()),
        None => choose_base_strategy().ok().map(|base| base.cache_dir().join("femtile").join("kernels")),
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter(|entry| entry.path().extension().is_some_and(|extension| extension == EXTENSION))
}

/// Returns the contents of the cache.
pub fn report_cache() -> CacheReport {
    let folder = folder();
    let (mut n_entries, mut bytes) = (0, 0);
    for entry in folder.iter().flat_map(|folder| entries(folder)) {
        n_entries += 1;
        bytes += entry.metadata().map_or(0, |metadata| metadata.len());
    }
    CacheReport { folder, n_entries, bytes }
}

/// Empties the cache and returns what it contained.
///
/// # Errors
/// The message of the operating system on the first file that cannot be removed.
pub fn clear_cache() -> io::Result<CacheReport> {
    let report = report_cache();
    for entry in report.folder.iter().flat_map(|folder| entries(folder)) {
        fs::remove_file(entry.path())?;
    }
    Ok(report)
}

/// The result of [`warm_cache`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warmed {
    /// The folder of the cache.
    pub folder: PathBuf,
    /// Number of different programs.
    pub n_programs: usize,
    /// Number of kernels in the programs.
    pub n_kernels: usize,
    /// Number of programs that were compiled, as the cache had not had them.
    pub n_compiled: usize,
}

/// Compiles programs for an architecture such as (9, 0), on all cores, unless the cache has them; needs no GPU.
///
/// # Errors
/// [`DeviceError::Compile`] with the messages of the compiler, or if there is no compiler;
/// [`DeviceError::Driver`] if the cache is switched off or cannot be written.
pub fn warm_cache(programs: &[Specialisation], architecture: (u32, u32)) -> Result<Warmed, DeviceError> {
    let failed = |message: String| DeviceError::Driver { action: "filling the cache of kernels", message };
    let folder = folder().ok_or_else(|| failed(format!("there is none; set {VARIABLE} to a folder")))?;
    warm_in(folder, &Workers::new(super::nvrtc()?), programs, architecture)
}

fn warm_in(
    folder: PathBuf,
    compiler: &dyn Compiler,
    programs: &[Specialisation],
    architecture: (u32, u32),
) -> Result<Warmed, DeviceError> {
    let different: BTreeMap<String, &Specialisation> =
        programs.iter().map(|program| (program.key(), program)).collect();
    let different: Vec<&Specialisation> = different.into_values().collect();
    let one = |program: &&Specialisation| -> Result<(usize, usize), DeviceError> {
        let path = path(&folder, compiler, program, architecture);
        if let Some(binary) = read(&path) {
            return Ok((binary.resources().len(), 0));
        }
        let binary = compiler.compile(program, architecture)?;
        write(&folder, &path, &binary).map_err(|error| DeviceError::Driver {
            action: "writing the cache of kernels",
            message: format!("{}: {error}", folder.display()),
        })?;
        Ok((binary.resources().len(), 1))
    };
    let done: Vec<(usize, usize)> = different.par_iter().map(one).collect::<Result<_, _>>()?;
    Ok(Warmed {
        n_programs: done.len(),
        n_kernels: done.iter().map(|(n_kernels, _)| n_kernels).sum(),
        n_compiled: done.iter().map(|(_, n_compiled)| n_compiled).sum(),
        folder,
    })
}

/// Returns the binary of a program: from the cache if it is there and intact, else compiled and stored.
///
/// If the folder cannot be written, the next start compiles again.
pub(super) fn binary(
    compiler: &dyn Compiler,
    program: &Specialisation,
    architecture: (u32, u32),
) -> Result<Binary, DeviceError> {
    binary_in(folder().as_deref(), compiler, program, architecture)
}

fn binary_in(
    folder: Option<&Path>,
    compiler: &dyn Compiler,
    program: &Specialisation,
    architecture: (u32, u32),
) -> Result<Binary, DeviceError> {
    let Some(folder) = folder else { return compiler.compile(program, architecture) };
    let path = path(folder, compiler, program, architecture);
    if let Some(binary) = read(&path) {
        return Ok(binary);
    }
    let binary = compiler.compile(program, architecture)?;
    let _ = write(folder, &path, &binary);
    Ok(binary)
}

/// Returns the file of a program.
fn path(
    folder: &Path,
    compiler: &dyn Compiler,
    program: &Specialisation,
    architecture: (u32, u32),
) -> PathBuf {
    folder.join(format!("{}.{EXTENSION}", key(compiler, program, architecture)))
}

/// Returns the binary of a file, if it is there and intact; a pipe would be waited for.
fn read(path: &Path) -> Option<Binary> {
    let bytes = if path.is_file() { fs::read(path).ok()? } else { return None };
    decode(&bytes)
}

/// Source, headers, options and compiler, each with its length so that no two lists run together.
fn key(compiler: &dyn Compiler, program: &Specialisation, architecture: (u32, u32)) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    add(&compiler.version());
    add(program.program().source);
    program.headers().for_each(|(name, text)| {
        add(name);
        add(text);
    });
    // The version of the compiler, part of the key, determines its output for an architecture.
    let (major, minor) = architecture;
    options(program, Target::Code(10 * major + minor)).iter().for_each(|option| add(option));
    let sum: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{sum}", program.program().name)
}

fn encode(binary: &Binary) -> Vec<u8> {
    let mut body = (binary.log.len() as u64).to_le_bytes().to_vec();
    body.extend(binary.log.as_bytes());
    body.extend(&binary.code);
    [MAGIC, Sha256::digest(&body).as_slice(), &body].concat()
}

fn decode(bytes: &[u8]) -> Option<Binary> {
    let (sum, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
    if Sha256::digest(body).as_slice() != sum {
        return None;
    }
    let (length, rest) = body.split_first_chunk::<8>()?;
    let (log, code) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    Some(Binary { log: String::from_utf8(log.into()).ok()?, code: code.into() })
}

fn write(folder: &Path, path: &Path, binary: &Binary) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, &encode(binary))?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::Program;
    use super::*;

    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl Compiler for Counting {
        fn version(&self) -> String {
            "counting 1".into()
        }

        fn compile(&self, program: &Specialisation, _: (u32, u32)) -> Result<Binary, DeviceError> {
            let n = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Binary { code: vec![n as u8, 255, 0], log: program.to_string() })
        }
    }

    static PROGRAM: Program = Program { name: "sample", source: "// nothing", headers: &[] };

    #[test]
    fn a_program_is_compiled_once_for_each_macro_header_and_architecture() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = Counting::default();
        let get = |program: &Specialisation, architecture| {
            binary_in(Some(folder.path()), &compiler, program, architecture).unwrap().code[0]
        };
        let plain = PROGRAM.of::<f64>();
        assert_eq!([get(&plain, (9, 0)), get(&plain, (9, 0)), get(&plain, (8, 0))], [0, 0, 1]);
        assert_eq!(get(&PROGRAM.of::<f32>(), (9, 0)), 2);
        assert_eq!(get(&plain.clone().define("N", 3), (9, 0)), 3);
        assert_eq!(get(&plain.clone().header("form.cuh", "a"), (9, 0)), 4);
        assert_eq!(get(&plain.clone().header("form.cuh", "b"), (9, 0)), 5);
        assert_eq!(get(&plain, (9, 0)), 0);
    }

    #[test]
    fn a_warm_cache_has_each_program_once_and_compiles_nothing_again() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = Counting::default();
        let programs: Vec<_> = (0..7).map(|i| PROGRAM.of::<f64>().define("N", i % 5)).collect();
        let warm = |n| warm_in(folder.path().into(), &compiler, &programs[..n], (9, 0)).unwrap();
        let counts = |warmed: Warmed| (warmed.n_programs, warmed.n_compiled);
        assert_eq!(
            [counts(warm(0)), counts(warm(2)), counts(warm(7)), counts(warm(7))],
            [(0, 0), (2, 2), (5, 3), (5, 0)]
        );
        let get = |program| binary_in(Some(folder.path()), &compiler, program, (9, 0)).unwrap();
        programs.iter().for_each(|program| drop(get(program)));
        assert_eq!(compiler.0.load(Ordering::Relaxed), 5);
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = warm_in(file.path().join("below-a-file"), &compiler, &programs, (9, 0));
        assert!(matches!(below, Err(DeviceError::Driver { .. })), "{below:?}");
    }

    #[test]
    fn damaged_entries_are_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let compiler = Counting::default();
        let get = || binary_in(Some(folder.path()), &compiler, &PROGRAM.of::<f64>(), (9, 0)).unwrap();
        let first = get();
        let path = entries(folder.path()).next().unwrap().path();
        let sound = fs::read(&path).unwrap();
        assert_eq!(decode(&sound), Some(first));
        for place in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[place] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {place}");
            assert_eq!(decode(&sound[..place]), None, "{place} bytes");
        }
        fs::write(&path, &sound[..40]).unwrap();
        assert_eq!(get().code[0], 1);
        assert_eq!(get().code[0], 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_an_entry_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read(&pipe), None);
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_no_more_than_the_gain() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let folder = file.path().join("below-a-file");
        let compiler = Counting::default();
        for n in 0..2 {
            let binary = binary_in(Some(&folder), &compiler, &PROGRAM.of::<f64>(), (9, 0)).unwrap();
            assert_eq!(binary.code[0], n);
        }
    }
}
