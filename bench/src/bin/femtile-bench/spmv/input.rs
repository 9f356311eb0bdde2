//! The matrix: from a file, or synthetic.

use std::path::Path;

use femtile::device::Reference;
use femtile::linalg::sparse::Csr;
use femtile::linalg::sparse::matrix_market;
use femtile_bench::sparse::profiles;

use super::arguments::ProductOptions;
use femtile_bench::{BenchError, Failure};

/// A matrix and its origin.
pub struct Input {
    pub name: String,
    pub matrix: Csr<f64, Reference>,
    /// Field and symmetry in the banner of the file.
    pub kind: Option<String>,
    pub n_duplicates: usize,
    pub notes: Vec<String>,
}

impl Input {
    /// Reads the file or generates the profile.
    pub fn read(file: Option<&Path>, options: &ProductOptions) -> Result<Self, Failure> {
        match (file, &options.profile) {
            (Some(file), _) => Self::from_file(file),
            (None, Some(profile)) => Self::from_profile(profile, options.scale),
            (None, None) => {
                Err(Failure::Argument("name a Matrix Market file, or a profile with --profile".into()))
            }
        }
    }

    fn from_file(path: &Path) -> Result<Self, Failure> {
        let read = matrix_market::read(path).map_err(BenchError::from)?;
        Ok(Self {
            name: path.display().to_string(),
            kind: Some(format!("{} {}", read.field, read.symmetry)),
            matrix: read.matrix,
            n_duplicates: read.n_duplicates,
            notes: read.notes,
        })
    }

    fn from_profile(name: &str, scale: usize) -> Result<Self, Failure> {
        let Some(profile) = profiles::all().iter().find(|profile| profile.name == name) else {
            let names: Vec<_> = profiles::all().iter().map(|profile| profile.name).collect();
            let names = names.join(", ");
            return Err(Failure::Argument(format!("there is no profile `{name}`; choose one of: {names}")));
        };
        let smaller = if scale == 1 { String::new() } else { format!(", {scale} times smaller") };
        Ok(Self {
            name: format!("profile of {name}{smaller}"),
            matrix: profile.matrix(scale)?,
            kind: None,
            n_duplicates: 0,
            notes: vec![
                "the row lengths are those of the well-known matrix; columns and values are synthetic".into(),
            ],
        })
    }
}
