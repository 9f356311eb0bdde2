//! The folder of a run, and the record by which a study knows that the results in it are those of the run.

use std::path::Path;

use femtile_mesh::io::{FileSum, write_atomically};
use femtile_solve::path_text;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::file_names::{REPORT, STUDY_RECORD};
use crate::{Case, CaseError, Override, verify};

/// The longest name of a folder without the digits that tell it from others.
const LONGEST: usize = 100;

/// Returns the name of the folder of a run, such as `mesh.refine=1,solver.preconditioner=amg`. Letters that names of files should
/// not have become `_`, with digits of a checksum at the end.
pub(super) fn folder_of(varied: &[(String, Value)]) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let whole: Vec<String> = varied.iter().map(|(key, value)| format!("{key}={}", text(value))).collect();
    let whole = if whole.is_empty() { "case".to_owned() } else { whole.join(",") };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._=,+-".contains(c);
    let plain: String = whole.chars().take(LONGEST).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain == whole { plain } else { format!("{plain}-{}", &digits(&Sha256::digest(&whole))[..8]) }
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The inputs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// SHA-256 of the version of the program, the text of the case, the values that replace others, and of mesh and models.
    run: String,
    /// SHA-256 of its report.
    #[serde(default)]
    report: String,
}

impl Record {
    /// Creates the record of a case that is not yet run; reads the files that it names.
    pub(super) fn of(case: &Case, overrides: &[Override]) -> Result<Self, CaseError> {
        let mut sum = Sha256::new();
        let mut add = |bytes: &[u8]| {
            sum.update((bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        };
        add(env!("CARGO_PKG_VERSION").as_bytes());
        add(case.text.as_bytes());
        for given in overrides {
            add(format!("{}={}", path_text(given.path()), given.value()).as_bytes());
        }
        let file = &case.file;
        let mesh = file.mesh.file.iter().map(|file| case.folder().join(file));
        let regions = file.membrane.iter().flat_map(|membrane| &membrane.region);
        let models = file.membrane.iter().map(|membrane| &membrane.model);
        let models = models.chain(regions.map(|region| &region.model)).map(|model| case.folder().join(model));
        // A name without a file is that of a model of the program, or an error of the run.
        for path in mesh.chain(models).filter(|path| path.is_file()) {
            add(&FileSum::of(&path)?.sha256);
        }
        Ok(Self { run: digits(&sum.finalize()), report: String::new() })
    }

    /// Returns the report in a folder if it has the complete results of this run.
    pub(super) fn kept(&self, folder: &Path) -> Option<String> {
        let text = std::fs::read(folder.join(STUDY_RECORD)).ok()?;
        let found: Self = serde_json::from_slice(&text).ok()?;
        let report = std::fs::read_to_string(folder.join(REPORT)).ok()?;
        let is_own = found.run == self.run && found.report == digits(&Sha256::digest(&report));
        (is_own && verify(folder).is_ok_and(|misfits| misfits.is_empty())).then_some(report)
    }

    /// Writes the record beside the results of the run.
    pub(super) fn write(self, folder: &Path) -> Result<(), CaseError> {
        let path = folder.join(REPORT);
        let report = std::fs::read(&path);
        let report = report.map_err(|source| CaseError::Io { path, action: "read", source })?;
        let record = Self { report: digits(&Sha256::digest(&report)), ..self };
        let text = serde_json::to_string_pretty(&record).unwrap_or_default();
        Ok(write_atomically(&folder.join(STUDY_RECORD), |out| writeln!(out, "{text}"))?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_are_named_by_their_values() {
        let name = |value: Value| folder_of(&[("mesh.refine".into(), json!(1)), ("a".into(), value)]);
        assert_eq!(name(json!("amg")), "mesh.refine=1,a=amg");
        assert_eq!(name(json!(1e-6)), "mesh.refine=1,a=1e-6");
        // Names that are not plain, or too long, differ where the values do.
        let long = "x".repeat(200);
        let texts = ["../x", "__/x", "a b", "a/b", &long, &format!("{long}y")];
        let names = texts.map(|text| name(json!(text)));
        for (i, one) in names.iter().enumerate() {
            assert!(one.len() <= LONGEST + 9 && !one.contains(['/', ' ']) && !one.starts_with('.'), "{one}");
            assert!(!names[..i].contains(one), "{one}");
        }
        assert_eq!(folder_of(&[]), "case");
    }
}
