//! Solution files begun before the solve ends: the mesh is known by then.
//!
//! While a GPU solves on simplices, the CPU writes the mesh into the file (`vtu/begun.rs` of `femtile-mesh`);
//! the values of u are its last bytes. With few threads, writing would slow the solve down.

use std::sync::atomic::{AtomicBool, Ordering};

use femtile_device::part;
use femtile_mesh::io::Staging;
use femtile_mesh::io::vtu::BegunFile;
use femtile_solve::{FieldConfig, SolutionFile};

use crate::file_names::MESH_SOLUTION;
use crate::output::vtu_options;
use crate::{Case, CaseError};

/// Results of which the mesh is written. If dropped, they leave no file behind.
pub(crate) struct BegunOutput {
    pub staging: Staging,
    pub file: BegunFile,
}

/// Calls `work`, which ends before results are written. If `is_beside`, other threads begin the results
/// meanwhile.
///
/// # Errors
/// The error of `work`, after which nothing is written; else that of writing.
pub(crate) fn beside<R>(
    case: &Case,
    file: &SolutionFile<'_>,
    is_beside: bool,
    work: impl FnOnce() -> Result<R, CaseError>,
) -> Result<(R, Option<BegunOutput>), CaseError> {
    let (is_vain, mut early) = (AtomicBool::new(false), Ok(None));
    let done = rayon::in_place_scope(|scope| {
        if is_beside {
            scope.spawn(|_| early = BegunOutput::begin(case, file, &|| is_vain.load(Ordering::Relaxed)));
        }
        work().inspect_err(|_| is_vain.store(true, Ordering::Relaxed))
    });
    Ok((done?, early?))
}

impl BegunOutput {
    /// Begins the results of a case; none if its solution has further fields, or a file that cannot be begun
    /// before the solve.
    ///
    /// # Errors
    /// Errors of writing; [`femtile_mesh::MeshError::Interrupted`] once `is_vain` is true.
    fn begin(
        case: &Case,
        file: &SolutionFile<'_>,
        is_vain: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>, CaseError> {
        let output = &case.file.output;
        if !output.vtu.is_written() || case.field_config() != FieldConfig::default() {
            return Ok(None);
        }
        let staging = Staging::new(&output.directory)?;
        let begin = || file.begin(staging.path(MESH_SOLUTION), vtu_options(case, true), Some(is_vain));
        let file = part("beginning the file", begin)?;
        Ok(file.map(|file| Self { staging, file }))
    }
}
