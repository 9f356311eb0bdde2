//! The part of the file of a solution that is known before the solve.

use std::sync::atomic::{AtomicBool, Ordering};

use femtile_mesh::Mesh;
use femtile_mesh::io::Staging;
use femtile_mesh::io::vtu::BegunFile;
use femtile_solve::{FieldConfig, begin_vtu};

use crate::file_names::MESH_SOLUTION;
use crate::output::vtu_options;
use crate::{Case, CaseError};

/// New results of which the mesh is written; dropped, they leave nothing behind.
pub(crate) struct Early {
    pub staging: Staging,
    pub file: BegunFile,
}

/// Does `work`, which ends before results are written; where `is_beside`, other threads begin the results meanwhile.
///
/// # Errors
/// That of `work`, after which nothing is written any more; else that of writing.
pub(crate) fn beside<R>(
    case: &Case,
    mesh: &Mesh,
    is_beside: bool,
    work: impl FnOnce() -> Result<R, CaseError>,
) -> Result<(R, Option<Early>), CaseError> {
    let (is_vain, mut early) = (AtomicBool::new(false), Ok(None));
    let done = rayon::in_place_scope(|scope| {
        if is_beside {
            scope.spawn(|_| early = Early::begin(case, mesh, &|| is_vain.load(Ordering::Relaxed)));
        }
        work().inspect_err(|_| is_vain.store(true, Ordering::Relaxed))
    });
    Ok((done?, early?))
}

impl Early {
    /// Begins the results of a case; none where its solution has further fields, or a file that cannot be begun.
    ///
    /// # Errors
    /// Those of writing; [`femtile_mesh::MeshError::Interrupted`] once `is_vain` is true.
    fn begin(
        case: &Case,
        mesh: &Mesh,
        is_vain: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>, CaseError> {
        let output = &case.file.output;
        if !output.vtu.is_written() || case.field_config() != FieldConfig::default() {
            return Ok(None);
        }
        let staging = Staging::new(&output.directory)?;
        let file = begin_vtu(staging.path(MESH_SOLUTION), mesh, vtu_options(case, true), Some(is_vain))?;
        Ok(file.map(|file| Self { staging, file }))
    }
}
