//! Files of one run, which are renamed together.

use std::fs::{self, File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::atomic::refusal;
use super::unfinished::{PREFIX, hold, remove_stale};
use crate::MeshError;

/// Number of attempts, and the pause between them, to enter a folder into which another run moves its files.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// A folder for the files of one run inside the folder that they are for.
///
/// Files are written here and [moved](Self::commit) when all of them are complete. If several runs write into
/// one folder at the same time, the last one replaces all files of the others. A value dropped before the
/// commit leaves nothing behind.
#[derive(Debug)]
pub struct Staging {
    folder: PathBuf,
    staged: TempDir,
    /// Keeps others from taking the folder for abandoned.
    _held: Option<File>,
}

impl Staging {
    /// Creates a staging folder in `folder`, after removing files of killed programs.
    ///
    /// # Errors
    /// [`MeshError::Io`] if nothing can be written into the folder.
    pub fn new(folder: &Path) -> std::result::Result<Self, MeshError> {
        remove_stale(folder);
        let made = || loop {
            let staged = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
            // If a folder cannot be opened, it cannot be taken for abandoned.
            let held = File::open(staged.path()).ok();
            if held.as_ref().map_or(staged.path().exists(), |file| hold(file, staged.path())) {
                return Ok(Self { folder: folder.into(), staged, _held: held });
            }
        };
        made().map_err(|source| MeshError::Io { path: folder.into(), action: "write results to", source })
    }

    /// Returns the folder in which to write files.
    pub fn folder(&self) -> &Path {
        self.staged.path()
    }

    /// Returns the path at which to write the file of this name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.staged.path().join(name)
    }

    /// Checks that files of these names can be moved into the folder.
    ///
    /// # Errors
    /// [`MeshError::Io`] for the first name that belongs to a folder, a pipe or a device.
    pub fn check(&self, names: &[&str]) -> std::result::Result<(), MeshError> {
        for path in names.iter().map(|name| self.folder.join(name)) {
            if let Some(found) = path.metadata().ok().filter(|found| !found.is_file()) {
                return Err(MeshError::Io { path, action: "write", source: refusal(found.file_type()) });
            }
        }
        Ok(())
    }

    /// Moves the files into the folder in this order; they replace those of an earlier run.
    ///
    /// The last file is the seal: the old one is removed before anything else is replaced, and the new one appears when
    /// all others are there. So a reader that finds it has the other files of the same run, even if this program is
    /// killed meanwhile.
    ///
    /// Files of an earlier run that `gone` names in the folder are removed.
    ///
    /// # Errors
    /// [`MeshError::Io`] with the name that could not be taken, or with the folder when another program keeps a lock on it.
    pub fn commit(
        self,
        names: &[&str],
        gone: impl FnOnce(&Path) -> Vec<String>,
    ) -> std::result::Result<(), MeshError> {
        self.check(names)?;
        let io = |path: &Path| {
            let path = path.to_path_buf();
            |source| MeshError::Io { path, action: "write", source }
        };
        let _locked = lock(&self.folder).map_err(io(&self.folder))?;
        let gone = gone(&self.folder);
        let aside: Vec<&str> = names.iter().rev().copied().chain(gone.iter().map(String::as_str)).collect();
        let set_aside = |name: &&str| match fs::rename(self.folder.join(name), self.earlier(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io(&self.folder.join(name))(error)),
            _ => Ok(()),
        };
        let put = |name: &&str| {
            let path = self.folder.join(name);
            fs::rename(self.path(name), &path).map_err(io(&path))
        };
        // Into free names: replacing a file would wait for the disk, between two files of one run.
        let moved = aside.iter().try_for_each(set_aside).and_then(|()| names.iter().try_for_each(put));
        if moved.is_err() {
            for name in aside {
                // Fails if there was no earlier file.
                let _ = fs::rename(self.earlier(name), self.folder.join(name));
            }
        }
        moved
    }

    /// Returns the path that keeps the earlier file of this name until the new ones are renamed.
    fn earlier(&self, name: &str) -> PathBuf {
        self.path(&format!("earlier-{name}"))
    }
}

/// Locks a folder against others who move files into it; none if the file system has no locks.
fn lock(folder: &Path) -> Result<Option<File>> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
    Err(Error::new(ErrorKind::TimedOut, "another program keeps a lock on this folder; choose another folder"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::io::write_atomically;

    #[test]
    fn files_replace_earlier_ones_together_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let stage = |text: &str| {
            let staging = Staging::new(folder.path()).unwrap();
            for name in ["solution", "report"] {
                write_atomically(&staging.path(name), |out| out.write_all(text.as_bytes())).unwrap();
            }
            staging
        };
        let (first, second, third) = (stage("first"), stage("second"), stage("third"));
        second.commit(&["solution", "report"], |_| Vec::new()).unwrap();
        first.commit(&["solution", "report"], |_| Vec::new()).unwrap();
        drop(third);
        assert_eq!((read("solution"), read("report")), ("first".into(), "first".into()));
        // A name that cannot be taken is found before anything is replaced.
        let fourth = stage("fourth");
        fs::create_dir(folder.path().join("plot")).unwrap();
        let error = fourth.commit(&["solution", "plot", "report"], |_| Vec::new()).unwrap_err().to_string();
        assert!(error.contains("plot: cannot write: a folder has this name"), "{error}");
        assert_eq!((read("solution"), read("report")), ("first".into(), "first".into()));
        // Earlier files come back when a later one cannot be moved.
        assert!(stage("fifth").commit(&["solution", "missing", "report"], |_| Vec::new()).is_err());
        assert_eq!((read("solution"), read("report")), ("first".into(), "first".into()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        // Others go with the earlier run, unless the new one fails.
        let gone = |_: &Path| vec!["solution".into()];
        assert!(stage("sixth").commit(&["missing", "report"], gone).is_err());
        assert_eq!((read("solution"), read("report")), ("first".into(), "first".into()));
        stage("seventh").commit(&["report"], gone).unwrap();
        assert!(read("report") == "seventh" && !folder.path().join("solution").exists());
    }
}
