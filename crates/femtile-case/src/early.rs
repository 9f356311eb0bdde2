//! The part of the file of a solution that is known before the solve.

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

impl Early {
    /// Begins the results of a case; none where its solution has further fields, or a file that cannot be begun.
    pub fn begin(case: &Case, mesh: &Mesh) -> Result<Option<Self>, CaseError> {
        let output = &case.file.output;
        if !output.vtu.is_written() || case.field_config() != FieldConfig::default() {
            return Ok(None);
        }
        let staging = Staging::new(&output.directory)?;
        let file = begin_vtu(staging.path(MESH_SOLUTION), mesh, vtu_options(case, true))?;
        Ok(file.map(|file| Self { staging, file }))
    }
}
