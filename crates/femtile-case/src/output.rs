//! The folder of results and the files in it.

use std::path::{Path, PathBuf};

use femtile_mesh::io::write_atomically;
use femtile_mesh::{Field, Mesh, MeshError};

use crate::{Case, CaseError, Report};

/// Makes the folder of results and proves that files can be written there.
pub(crate) fn prepare(case: &Case) -> Result<(), CaseError> {
    let folder = &case.file.output.directory;
    let made = std::fs::create_dir_all(folder);
    let tried = made.and_then(|()| tempfile::Builder::new().prefix(".femtile-").tempfile_in(folder));
    tried.map(|_| ()).map_err(|source| CaseError::Io {
        path: folder.clone(),
        action: "write results to",
        source,
    })
}

/// Where the solution goes.
pub(crate) fn solution_path(case: &Case) -> PathBuf {
    case.file.output.directory.join("solution.vtu")
}

/// Writes `solution.vtu`: the mesh, its tags and fields, and u.
pub(crate) fn write_solution(case: &Case, mesh: &Mesh, u: Vec<f64>) -> Result<(), MeshError> {
    let u = Field { n_components: 1, values: u };
    femtile_mesh::io::vtu::write(&solution_path(case), mesh, &[("u", &u)], &[])
}

/// Writes a report as JSON; the file appears only when it is complete.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub fn write_report(path: &Path, report: &Report) -> Result<(), MeshError> {
    write_atomically(path, |out| writeln!(out, "{}", report.to_json()))
}
