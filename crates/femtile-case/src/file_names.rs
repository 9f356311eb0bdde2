//! Names of the files of results.

use crate::file::VtuOutput;

/// The report, written last.
pub(crate) const REPORT: &str = "report.json";
/// The plot of residual norms.
pub(crate) const PLOT: &str = "residuals.svg";
/// The picture of the solution.
pub(crate) const PICTURE: &str = "picture.png";
/// The page of the run.
pub(crate) const PAGE: &str = "report.html";
/// The matrix of fluxes through sides.
pub(crate) const MATRIX: &str = "matrix.csv";
/// The solution on a mesh.
pub(crate) const MESH_SOLUTION: &str = "solution.vtu";
/// The solution or the frames of a run in one HDF5 file.
pub(crate) const VTKHDF: &str = "solution.vtkhdf";
/// The solution on a grid.
pub(crate) const GRID_SOLUTION: &str = "solution.vti";

/// The files of a solution on a mesh in pieces.
pub(crate) const MESH_PIECES: &str = "solution.pvtu";

/// Returns the name of a solution on a mesh.
pub(crate) fn of_solution(vtu: VtuOutput) -> &'static str {
    if vtu.has_pieces() { MESH_PIECES } else { MESH_SOLUTION }
}

/// Returns the names of the table and the plot of a line.
pub(crate) fn of_line(name: &str) -> [String; 2] {
    [format!("{name}.csv"), format!("{name}.svg")]
}

/// The table of a study.
pub(crate) const STUDY_TABLE: &str = "study.csv";
/// The plot of a study.
pub(crate) const STUDY_PLOT: &str = "study.svg";
/// The record of a run of a study, in its folder.
pub(crate) const STUDY_RECORD: &str = "study.json";

/// The folder of frames.
pub(crate) const FRAMES: &str = "frames";
/// The frames by time.
pub(crate) const COLLECTION: &str = "solution.pvd";
/// Traces by time, as a table and as a picture.
pub(crate) const TRACES: &str = "traces.csv";
pub(crate) const TRACES_PLOT: &str = "traces.svg";

/// Returns the name of a frame, with its folder.
pub(crate) fn of_frame(number: usize) -> String {
    format!("{FRAMES}/u_{number:04}.vtu")
}
