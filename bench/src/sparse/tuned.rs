//! The cache of tuning results: the fastest format of each matrix and device, in one JSON file of the user's cache
//! folder.
//!
//! The file is written atomically. A file that cannot be parsed counts as empty, with a note.

use std::path::{Path, PathBuf};

use femtile::device::{Device, HostDevice};
use femtile::linalg::sparse::choice::{Described, candidates, fingerprint};
use femtile::linalg::sparse::{Csr, Format};
use femtile::mesh::io::write_atomically;
use femtile_terminal::{cache_folder, processor};
use serde::{Deserialize, Serialize};

use crate::BenchError;

const FILE: &str = "tuned.json";
/// Version of the file layout.
const VERSION: u32 = 1;

/// The results of earlier tuning searches.
#[derive(Debug, Clone, Default)]
pub struct Tuned {
    path: Option<PathBuf>,
    kept: Vec<Kept>,
    note: Option<String>,
}

/// The result of one search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// [`fingerprint`] of the matrix.
    matrix: String,
    /// The device and the processor.
    device: String,
    /// Name of the fastest format.
    format: String,
    /// Seconds of one product.
    seconds: f64,
}

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    tuned: Vec<Kept>,
}

impl Tuned {
    /// Reads the results from the folder in `FEMTILE_CACHE`, else from `femtile` in the user's cache folder.
    pub fn read() -> Self {
        Self::read_from(cache_folder().map(|folder| folder.join(FILE)))
    }

    fn read_from(path: Option<PathBuf>) -> Self {
        let bytes = match path.as_deref().map(read) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => {
                let note = path.as_ref().map(|path| format!("{}: cannot be read: {error}", path.display()));
                return Self { path, kept: Vec::new(), note };
            }
            _ => return Self { path, ..Self::default() },
        };
        match serde_json::from_slice::<Content>(&bytes) {
            Ok(Content { version: VERSION, tuned }) => Self { path, kept: tuned, note: None },
            other => {
                let reason = match other {
                    Ok(content) => format!("it has version {}, not {VERSION}", content.version),
                    Err(error) => error.to_string(),
                };
                let note = path.as_ref().map(|path| {
                    format!("{}: ignored, the next search replaces it: {reason}", path.display())
                });
                Self { path, kept: Vec::new(), note }
            }
        }
    }

    /// Returns a note for the user when the file could not be read or parsed.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the path of the file; none without a cache folder.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns `true` when there are no results.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the fastest format of a matrix on a device, where a search has found one that is still a candidate.
    pub fn format<D: Described, H: HostDevice>(&self, device: &D, a: &Csr<f64, H>) -> Option<Format> {
        let (matrix, place) = (fingerprint(a), place(device));
        let kept = self.kept.iter().find(|kept| kept.matrix == matrix && kept.device == place)?;
        candidates(&device.machine()).into_iter().find(|format| format.name() == kept.format)
    }

    /// Stores the result of a search; does nothing without a cache folder.
    ///
    /// # Errors
    /// [`BenchError::File`] or [`BenchError::Mesh`] if the file cannot be written.
    pub fn keep<D: Device, H: HostDevice>(
        &mut self,
        device: &D,
        a: &Csr<f64, H>,
        format: &str,
        seconds: f64,
    ) -> Result<(), BenchError> {
        let Some(path) = &self.path else { return Ok(()) };
        // Another process may have stored a result since this one read the file.
        let mut kept = Self::read_from(Some(path.clone())).kept;
        let new = Kept { matrix: fingerprint(a), device: place(device), format: format.into(), seconds };
        kept.retain(|old| old.matrix != new.matrix || old.device != new.device);
        kept.push(new);
        if let Some(folder) = path.parent() {
            let failed = |source| BenchError::File { what: "creating the cache folder", source };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let content = Content { version: VERSION, tuned: kept };
        write_atomically(path, |out| {
            serde_json::to_writer_pretty(&mut *out, &content)?;
            writeln!(out)
        })?;
        self.kept = content.tuned;
        Ok(())
    }

    /// Removes all results and the file, even one that cannot be parsed.
    ///
    /// # Errors
    /// [`BenchError::File`] when the file exists and cannot be removed.
    pub fn forget(&mut self) -> Result<(), BenchError> {
        self.kept.clear();
        match self.path.as_ref().map(std::fs::remove_file) {
            Some(Err(source)) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(BenchError::File { what: "removing the results of searches", source })
            }
            _ => Ok(()),
        }
    }
}

/// Reads a file; a pipe, which would be waited for, is refused.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.metadata()?.is_file() {
        return std::fs::read(path);
    }
    Err(std::io::Error::other("it is no file: move it away, or name another folder in FEMTILE_CACHE"))
}

/// Returns the key of a device: its description and the processor, as machines may share a home folder.
fn place<D: Device>(device: &D) -> String {
    format!("{} on {}", device.description(), processor())
}

#[cfg(test)]
mod tests {
    use femtile::device::Reference;
    use femtile::linalg::sparse::csr::HostOffsets;

    use super::*;

    fn matrix(lengths: &[usize]) -> Csr<f64, Reference> {
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        let columns: Vec<u32> = lengths.iter().flat_map(|&length| 0..length as u32).collect();
        let values = vec![1.0; columns.len()];
        Csr::from_parts(&Reference, 9, offsets, columns, values).unwrap()
    }

    #[test]
    fn a_result_is_found_again_for_its_row_lengths_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join("below").join(FILE));
        let (a, b) = (matrix(&[1, 2, 3]), matrix(&[1, 3, 2]));
        let sliced = candidates(&Reference.machine())[1];
        let mut tuned = Tuned::read_from(path.clone());
        assert!(tuned.is_empty() && tuned.note().is_none());
        tuned.keep(&Reference, &a, "CSR", 1.0).unwrap();
        tuned.keep(&Reference, &a, &sliced.name(), 0.5).unwrap();
        let again = Tuned::read_from(path.clone());
        assert_eq!((again.len(), again.format(&Reference, &a)), (1, Some(sliced)));
        assert_eq!(again.format(&Reference, &b), None);
        tuned.forget().unwrap();
        tuned.forget().unwrap();
        assert!(Tuned::read_from(path).is_empty());
    }

    #[test]
    fn two_searches_at_once_keep_both_results() {
        let folder = tempfile::tempdir().unwrap();
        let path = Some(folder.path().join(FILE));
        let (mut one, mut other) = (Tuned::read_from(path.clone()), Tuned::read_from(path.clone()));
        one.keep(&Reference, &matrix(&[1]), "CSR", 1.0).unwrap();
        other.keep(&Reference, &matrix(&[2]), "CSR", 1.0).unwrap();
        assert_eq!(Tuned::read_from(path).len(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        for content in ["", "[", "{\"version\": 2, \"tuned\": []}", "{\"version\": 1, \"tuned\": [3]}"] {
            std::fs::write(&path, content).unwrap();
            let mut tuned = Tuned::read_from(Some(path.clone()));
            assert!(tuned.is_empty() && tuned.note().is_some_and(|note| note.contains(FILE)), "{content}");
            tuned.keep(&Reference, &matrix(&[1]), "CSR", 1.0).unwrap();
            assert_eq!(Tuned::read_from(Some(path.clone())).len(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_the_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut tuned = Tuned::read_from(Some(path));
        assert!(tuned.is_empty() && tuned.note().is_some_and(|note| note.contains("is no file")));
        assert!(tuned.keep(&Reference, &matrix(&[1]), "CSR", 1.0).is_err());
    }

    #[test]
    fn a_format_that_is_no_candidate_any_more_is_not_given() {
        let folder = tempfile::tempdir().unwrap();
        let mut tuned = Tuned::read_from(Some(folder.path().join(FILE)));
        tuned.keep(&Reference, &matrix(&[1]), "BCSR", 1.0).unwrap();
        assert_eq!(tuned.format(&Reference, &matrix(&[1])), None);
    }
}
