//! Formats of sparse matrices that `femtile tune` has found on this machine.

use std::fs;

use femtile::solve::Remembered;
use femtile_terminal::{cache_folder, processor};
use serde::Deserialize;

/// Version of the layout of the file.
const VERSION: u32 = 1;

/// The file, which `femtile-bench` writes.
#[derive(Deserialize)]
struct Content {
    version: u32,
    tuned: Vec<Kept>,
}

#[derive(Deserialize)]
struct Kept {
    matrix: String,
    /// The device and the processor.
    device: String,
    format: String,
}

/// Returns the fastest formats that searches on this processor have found; none if the file cannot be read.
pub fn remembered() -> Vec<Remembered> {
    // A pipe is not waited for.
    let file = cache_folder().map(|folder| folder.join("tuned.json")).filter(|path| path.is_file());
    let content = file.and_then(|path| serde_json::from_slice::<Content>(&fs::read(path).ok()?).ok());
    let beside = format!(" on {}", processor());
    let here = |kept: Kept| {
        let device = kept.device.strip_suffix(&beside)?.to_owned();
        Some(Remembered { matrix: kept.matrix, device, format: kept.format })
    };
    let kept =
        content.filter(|content| content.version == VERSION).map_or_else(Vec::new, |content| content.tuned);
    kept.into_iter().filter_map(here).collect()
}
