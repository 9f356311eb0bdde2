//! Unfinished files and folders; a lock distinguishes them from those of killed programs.
//!
//! The owner holds a lock (`flock`), which the system releases when the program ends in any way. A file that another
//! program can lock has no owner any more. On file systems without locks nothing is removed.

use std::fs::{File, TryLockError};
use std::path::Path;

/// Prefix of the names of unfinished files and folders.
pub(super) const PREFIX: &str = ".femtile-";

/// Locks a new file or folder; false when another program has removed it as abandoned in the meantime.
pub(super) fn hold(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => path.exists(),
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => true,
    }
}

/// Removes the unfinished files of killed programs in a folder.
pub(super) fn remove_stale(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Only files and folders: a pipe would be waited for.
        let Some(kind) = entry.file_type().ok().filter(|kind| is_ours && !kind.is_symlink()) else {
            continue;
        };
        if kind.is_file() || kind.is_dir() {
            remove_if_abandoned(&entry.path(), kind.is_dir());
        }
    }
}

fn remove_if_abandoned(path: &Path, is_folder: bool) {
    let Ok(file) = File::open(path) else { return };
    if file.try_lock().is_ok() {
        // Another program may be faster, and what is left is the next one's to remove.
        let _ = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
}

#[cfg(all(test, unix))]
mod tests {
    use crate::io::{Staging, write_atomically};

    #[test]
    fn what_is_abandoned_is_removed_by_the_next_who_writes_and_what_is_held_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at(".femtile-left"), "half").unwrap();
        std::fs::create_dir(at(".femtile-folder")).unwrap();
        std::fs::write(at(".femtile-folder/solution.vtu"), "half").unwrap();
        std::fs::write(at(".other"), "not ours").unwrap();
        let staging = Staging::new(folder.path()).unwrap();
        write_atomically(&staging.path("a"), |out| out.write_all(b"a")).unwrap();
        let names = || {
            let entries = std::fs::read_dir(folder.path()).unwrap().flatten();
            let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names().len(), 2, "{:?}", names());
        write_atomically(&at("b"), |out| {
            // While both are written, a third finds nothing to remove.
            write_atomically(&at("c"), |_| Ok(())).unwrap();
            assert_eq!(names().len(), 4, "{:?}", names());
            out.write_all(b"b")
        })
        .unwrap();
        staging.commit(&["a"], |_| Vec::new()).unwrap();
        assert_eq!(names(), [".other", "a", "b", "c"]);
    }
}
