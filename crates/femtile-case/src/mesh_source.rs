//! The mesh that a case names: read from a file or made by formula.

use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, CylinderConfig, DeformConfig, HexahedralBallConfig, LShape,
    LShapeConfig, ShellConfig, SquareConfig, SquareSplit, VentricleConfig, ball, box_mesh, cylinder, deform,
    hexahedral_ball, l_shape, shell, square, ventricle,
};
use femtile_mesh::{Mesh, MeshError, io};

use crate::file::{CellName, Generator, LShapeName, PlaneCellName};
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
        Generator::Box { cells, cell, lower, upper, deform, order } => {
            let split = match cell {
                CellName::Tetrahedron => BoxSplit::Kuhn,
                CellName::Tetrahedron5 => BoxSplit::Five,
                CellName::Hexahedron => BoxSplit::Hexahedron,
            };
            deformed(box_mesh(&BoxConfig { lower, upper, cells, split })?, deform, order)
        }
        Generator::Square { cells, cell, lower, upper, deform, order } => {
            let split = match cell {
                PlaneCellName::Triangle => SquareSplit::Triangles,
                PlaneCellName::Quadrilateral => SquareSplit::Quadrilateral,
            };
            deformed(square(&SquareConfig { lower, upper, cells, split })?, deform, order)
        }
        Generator::Grid { .. } => Err(MeshError::Invalid {
            field: "kind",
            message: "a grid is for equations in time (equation.kind = \"diffusion\"); a mesh of the same box is a \"box\" \
                      or a \"square\""
                .into(),
        }),
        Generator::Ball { radius, h, cell, order } => ball_of(radius, h, cell, order),
        Generator::Shell { inner, outer, cells, layers, order } => {
            shell(&ShellConfig { inner, outer, cells, layers, order })
        }
        Generator::LShape { shape, cells } => {
            let shape = match shape {
                LShapeName::Plane => LShape::Plane,
                LShapeName::Extruded => LShape::Extruded,
                LShapeName::Corner => LShape::Corner,
            };
            l_shape(&LShapeConfig { shape, cells })
        }
        Generator::Cylinder { radius, height, h } => cylinder(&CylinderConfig { radius, height, h }),
        Generator::Ventricle { h_mm } => ventricle(&VentricleConfig { h_mm }),
    }
}

/// Moves the inside of a box and curves its cells, where a case asks for either.
fn deformed(mut mesh: Mesh, amplitude: f64, order: usize) -> Result<Mesh, MeshError> {
    if amplitude != 0.0 || order != 1 {
        deform(&mut mesh, &DeformConfig { amplitude, order }).map_err(|error| match error {
            MeshError::Invalid { field: "amplitude", message } => {
                MeshError::Invalid { field: "deform", message }
            }
            other => other,
        })?;
    }
    Ok(mesh)
}

fn ball_of(radius: f64, h: f64, cell: CellName, order: usize) -> Result<Mesh, MeshError> {
    let wrong = |field, message: &str| Err(MeshError::Invalid { field, message: message.into() });
    match cell {
        CellName::Tetrahedron if order == 1 => ball(&BallConfig { radius, h }),
        CellName::Tetrahedron => {
            wrong("order", "tetrahedra are straight; cell = \"hexahedron\" may be curved")
        }
        CellName::Tetrahedron5 => wrong("cell", "a ball has cells \"tetrahedron\" or \"hexahedron\""),
        CellName::Hexahedron if h > 0.0 && h.is_finite() => {
            // An edge of a block is a quarter of a circle, the way from the cube inside to the sphere about half a radius.
            let count = |length: f64| (length / h * (1.0 - 1e-12)).ceil().max(1.0) as usize;
            let (cells, layers) = (count(std::f64::consts::FRAC_PI_2 * radius), count(0.5 * radius));
            let made = hexahedral_ball(&HexahedralBallConfig { radius, cells, layers, order });
            made.map_err(|error| match error {
                MeshError::Invalid { field: "cells", message } => MeshError::Invalid { field: "h", message },
                other => other,
            })
        }
        CellName::Hexahedron => wrong("h", &format!("{h} is not a positive, finite length")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Result<Mesh, MeshError> {
        #[derive(serde::Deserialize)]
        struct Wrapper {
            generate: Generator,
        }
        let wrapper: Wrapper = toml::from_str(&format!("generate = {{ {text} }}")).unwrap();
        generate(&wrapper.generate)
    }

    #[test]
    fn meshes_of_quadrilaterals_and_hexahedra_are_made_by_their_settings() {
        for (text, n_cells, order) in [
            ("kind = \"box\", cells = [2, 3, 1], cell = \"hexahedron\"", 6, 1),
            ("kind = \"box\", cells = [2, 3, 1], cell = \"hexahedron\", deform = 0.1, order = 3", 6, 3),
            ("kind = \"square\", cells = [2, 3], cell = \"quadrilateral\", order = 2", 6, 2),
            ("kind = \"square\", cells = [2, 3], deform = -0.1", 12, 1),
            ("kind = \"shell\", cells = 2, layers = 1, order = 2", 24, 2),
            ("kind = \"ball\", h = 0.8, cell = \"hexahedron\", order = 4", 32, 4),
            ("kind = \"l_shape\", cells = 2", 12, 1),
            ("kind = \"l_shape\", shape = \"corner\", cells = 1", 7, 1),
        ] {
            let mesh = made(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(mesh.n_cells(), n_cells, "{text}");
            assert_eq!(mesh.curved.map_or(1, |curved| curved.order), order, "{text}");
        }
    }

    #[test]
    fn settings_that_do_not_fit_are_named() {
        for (text, expected) in [
            ("kind = \"box\", cells = [2, 2, 2], order = 2", "order: 2; tetrahedron"),
            ("kind = \"box\", cells = [2, 2, 2], deform = 0.5", "deform: 0.5"),
            ("kind = \"square\", cells = [2, 2], cell = \"quadrilateral\", order = 0", "order: 0"),
            ("kind = \"ball\", h = 0.5, order = 2", "order: tetrahedra are straight"),
            ("kind = \"ball\", h = 0.5, cell = \"tetrahedron-5\"", "cell: a ball"),
            ("kind = \"ball\", h = 0.0, cell = \"hexahedron\"", "h: 0"),
            ("kind = \"ball\", h = 1e-9, cell = \"hexahedron\"", "h: this mesh would have"),
            ("kind = \"shell\", cells = 1, layers = 0", "cells: "),
            ("kind = \"l_shape\", cells = 0", "cells: "),
        ] {
            let found = made(text).unwrap_err().to_string();
            assert!(found.starts_with(expected) || found.contains(expected), "{text}: {found}");
        }
    }
}
