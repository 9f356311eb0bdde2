//! Verifies that the files in a folder of results belong to one run.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use femtile_mesh::io::FileSum;
use serde::Deserialize;

use crate::CaseError;
use crate::file_names::{
    COLLECTION, FRAMES, GRID_SOLUTION, MATRIX, MESH_PIECES, MESH_SOLUTION, PAGE, PICTURE, PLOT, REPORT,
    TRACES, TRACES_PLOT, VTKHDF, of_frame,
};
use crate::functional::is_header_of_line;
use crate::pieces;
use crate::plot::DISTANCE;
use crate::report::FileReport;

/// Files of results whose names are those of all runs.
const NAMES: [&str; 11] = [
    MESH_SOLUTION,
    VTKHDF,
    MESH_PIECES,
    GRID_SOLUTION,
    MATRIX,
    COLLECTION,
    TRACES,
    TRACES_PLOT,
    PLOT,
    PICTURE,
    PAGE,
];

/// A file of a folder of results that does not belong to the run of its report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The report is missing or unreadable.
    #[error("report.json: {0}; the folder does not hold the complete results of a run: run the case again")]
    Report(String),
    /// A file of the report is missing.
    #[error("{0}: the file is missing, report.json names it")]
    Missing(String),
    /// A file was changed or replaced.
    #[error(
        "{0}: the file was changed or is of another run, its size or SHA-256 is not the one in report.json"
    )]
    Changed(String),
    /// A file of results is not in the report.
    #[error("{0}: the file is of another run, report.json does not name it")]
    Foreign(String),
}

/// The part of a report that is verified.
#[derive(Deserialize)]
struct Sums {
    files: BTreeMap<String, FileReport>,
}

/// Compares the files in a folder of results with the checksums in its report; returns all mismatches.
///
/// # Errors
/// [`CaseError::Io`] if the folder or a file in it cannot be read.
pub fn verify(folder: &Path) -> Result<Vec<Misfit>, CaseError> {
    let io = |source| CaseError::Io { path: folder.into(), action: "read", source };
    std::fs::read_dir(folder).map_err(io)?;
    let sums = match read(&folder.join(REPORT)) {
        Ok(sums) => sums,
        Err(reason) => return Ok(vec![Misfit::Report(reason)]),
    };
    let mut misfits = Vec::new();
    for (name, expected) in &sums.files {
        let path = folder.join(name);
        if !path.is_file() {
            misfits.push(Misfit::Missing(name.clone()));
        } else if FileReport::from(FileSum::of(&path)?) != *expected {
            misfits.push(Misfit::Changed(name.clone()));
        }
    }
    let mut foreign = results_in(folder).map_err(io)?;
    foreign.retain(|name| !sums.files.contains_key(name));
    misfits.extend(foreign.into_iter().map(Misfit::Foreign));
    Ok(misfits)
}

/// Returns the names of the files in a folder that are results of a run, of the last one or of an earlier one.
pub(crate) fn results_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let found = NAMES.into_iter().filter(|name| folder.join(name).exists()).map(String::from);
    let mut found: Vec<String> = found.chain(lines(folder)?).collect();
    found.extend(pieces::in_folder(folder)?);
    found.extend(frames(&folder.join(FRAMES)).unwrap_or_default());
    Ok(found)
}

/// The names of frames in their folder, sorted.
fn frames(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = format!("{FRAMES}/{}", entry?.file_name().to_string_lossy());
        let number = name.rsplit_once('_').and_then(|(_, end)| end.strip_suffix(".vtu")?.parse().ok());
        found.extend(number.filter(|&number| name == of_frame(number)).map(|_| name));
    }
    found.sort();
    Ok(found)
}

/// The names of files with values along lines, sorted; other tables and pictures are not Femtile's.
fn lines(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_line = match ending {
            Some("csv") => begins(&path)?.lines().next().is_some_and(is_header_of_line),
            Some("svg") => begins(&path)?.contains(DISTANCE),
            _ => false,
        };
        found.extend(path.file_name().and_then(|name| name.to_str()).filter(|_| is_line).map(String::from));
    }
    found.sort();
    Ok(found)
}

/// The text that a file begins with; pictures have their labels there.
fn begins(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if path.is_file() {
        std::fs::File::open(path)?.take(BEGINNING).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Bytes of a file that are looked at.
const BEGINNING: u64 = 64 << 10;

/// The sums in a report, or why there are none.
fn read(report: &Path) -> Result<Sums, String> {
    if !report.is_file() {
        return Err("there is no such file".into());
    }
    let text = std::fs::read(report).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|_| "it has no sums of files".into())
}
