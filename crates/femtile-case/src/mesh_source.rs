//! The mesh that a case names: read from a file or made by formula.

use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, CylinderConfig, SquareConfig, VentricleConfig, ball, box_mesh, cylinder,
    square, ventricle,
};
use femtile_mesh::{Mesh, MeshError, io};

use crate::file::{CellName, Generator};
use crate::{Case, CaseError};

/// Reads or makes the mesh of a case, refined as it asks.
pub(crate) fn mesh_of(case: &Case) -> Result<Mesh, CaseError> {
    let section = &case.file.mesh;
    match (&section.file, &section.generate) {
        (Some(file), _) => Ok(io::read(&case.folder().join(file))?),
        (None, Some(generator)) => generate(generator).map_err(|error| match error {
            MeshError::Invalid { field, message } => {
                case.wrong(&["mesh".into(), "generate".into(), field.into()], message)
            }
            other => other.into(),
        }),
        (None, None) => Err(case.wrong(&["mesh".into()], "give exactly one of `file` and `generate`")),
    }
}

/// Makes a mesh by formula.
///
/// # Errors
/// [`MeshError::Invalid`] naming the setting that is out of range.
pub fn generate(generator: &Generator) -> Result<Mesh, MeshError> {
    match *generator {
        Generator::Box { cells, cell, lower, upper } => {
            let split = match cell {
                CellName::Tetrahedron => BoxSplit::Kuhn,
                CellName::Tetrahedron5 => BoxSplit::Five,
                CellName::Hexahedron => BoxSplit::Hexahedron,
            };
            box_mesh(&BoxConfig { lower, upper, cells, split })
        }
        Generator::Square { cells, lower, upper } => {
            square(&SquareConfig { lower, upper, cells, ..SquareConfig::default() })
        }
        Generator::Grid { .. } => Err(MeshError::Invalid {
            field: "kind",
            message: "a grid is for equations in time (equation.kind = \"diffusion\"); a mesh of the same box is a \"box\" \
                      or a \"square\""
                .into(),
        }),
        Generator::Ball { radius, h } => ball(&BallConfig { radius, h }),
        Generator::Cylinder { radius, height, h } => cylinder(&CylinderConfig { radius, height, h }),
        Generator::Ventricle { h_mm } => ventricle(&VentricleConfig { h_mm }),
    }
}
