//! The mesh of a case: read from a file or generated.

use femtile_mesh::check::{CheckConfig, CheckError, Finding};
use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, Counts, CylinderConfig, DeformConfig, HexahedralBallConfig, LShape,
    LShapeConfig, ShellConfig, SphereConfig, SquareConfig, SquareSplit, VentricleConfig, ball_interruptible,
    box_mesh_interruptible, cylinder_interruptible, deform, hexahedral_ball, l_shape, shell, sphere, square,
    ventricle_interruptible,
};
use femtile_mesh::{IsInterrupted, Mesh, MeshError, io, refine};
use femtile_solve::Key;

use crate::file::{CellName, CheckName, FindingName, Generator, LShapeName, MeshSection, PlaneCellName};
use crate::memory::{self, Hosted};
use crate::{Case, CaseError};

/// Reads or makes the mesh of a case, not yet refined, unless the case needs more memory than there may be: what `hosted` says,
/// and whether a GPU is open, which has memory of its own. A generator asks `is_interrupted` now and then whether to end.
///
/// # Errors
/// Errors of the reader or the generator; [`MeshError::Interrupted`].
pub(crate) fn mesh_of(
    case: &Case,
    hosted: (Hosted, bool),
    is_interrupted: IsInterrupted<'_>,
) -> Result<Mesh, CaseError> {
    let section = &case.file.mesh;
    let refuse = |counts, place: &[Key]| match section.refine {
        0 => memory::check(case, counts, hosted, place),
        _ => memory::check(case, counts, hosted, &["mesh".into(), "refine".into()]),
    };
    let mesh = match (&section.file, &section.generate) {
        (Some(file), _) => {
            let path = case.folder().join(file);
            let read = match &section.tags {
                Some(array) => io::read_tagged(&path, array),
                None => io::read(&path),
            };
            let mesh = read.map_err(|error| of_section(case, error))?;
            refuse(Counts::from(&mesh), &["mesh".into(), "file".into()])?;
            mesh
        }
        (None, Some(generator)) => {
            let placed = |error| of_generator(case, error);
            let Plan { field, counts, make } = Plan::of(generator).map_err(placed)?;
            refuse(counts, &place_in_generator(field))?;
            make(is_interrupted).map_err(placed)?
        }
        (None, None) => {
            if let Some(mesh) = &case.embedding.mesh {
                refuse(Counts::from(mesh.as_ref()), &["mesh".into()])?;
                return scaled(case, Mesh::clone(mesh));
            }
            return Err(case.wrong(&["mesh".into()], "give exactly one of `file` and `generate`"));
        }
    };
    scaled(case, mesh)
}

/// The place of a setting of the generator.
pub(crate) fn place_in_generator(field: &str) -> [Key; 3] {
    ["mesh".into(), "generate".into(), field.into()]
}

/// The error of a generator at its setting.
pub(crate) fn of_generator(case: &Case, error: MeshError) -> CaseError {
    match error {
        MeshError::Invalid { field, message } => case.wrong(&place_in_generator(field), message),
        other => other.into(),
    }
}

/// Multiplies the coordinates of a mesh by the factor of the case.
fn scaled(case: &Case, mut mesh: Mesh) -> Result<Mesh, CaseError> {
    scaled_by(case, |factor| mesh.scale(factor))?;
    Ok(mesh)
}

/// Multiplies coordinates with `scale` by the factor of the case, if it has one.
pub(crate) fn scaled_by(
    case: &Case,
    scale: impl FnOnce(f64) -> Result<(), MeshError>,
) -> Result<(), CaseError> {
    let factor = case.file.mesh.scale;
    if factor == 1.0 { Ok(()) } else { scale(factor).map_err(|error| of_section(case, error)) }
}

/// The error about a key of `[mesh]` at that key.
fn of_section(case: &Case, error: MeshError) -> CaseError {
    match error {
        MeshError::Invalid { field, message } => case.wrong(&["mesh".into(), field.into()], message),
        other => other.into(),
    }
}

/// Returns the settings of the mesh check; `is_divided` if the reader has divided the cells of the mesh.
pub(crate) fn check_config(case: &Case, is_divided: bool) -> CheckConfig {
    let MeshSection { merge, ref accept, .. } = case.file.mesh;
    // Sides that are tied cover each other. Parts of divided cells could do so where a merge fails to join them, which no tie mends.
    let are_tied = !(case.file.tie.is_empty() || merge && is_divided);
    let of_ties = are_tied.then_some(FindingName::OverlappingFacets);
    CheckConfig {
        merge_duplicates: merge,
        accept: accept.iter().copied().chain(of_ties).map(Into::into).collect(),
        ..CheckConfig::default()
    }
}

/// Returns the kind of the mesh check: that of the case, else `generated` for generated meshes.
pub(crate) fn check_name(case: &Case) -> CheckName {
    let MeshSection { check, ref generate, .. } = case.file.mesh;
    check.unwrap_or(if generate.is_some() { CheckName::Generated } else { CheckName::Full })
}

/// The error of a check, which names the key that accepts what was found.
pub(crate) fn placed(case: &Case, error: CheckError) -> CaseError {
    match error.finding() {
        Some(finding) => {
            let name = finding.name();
            let of_ties = match !case.file.tie.is_empty() && matches!(finding, Finding::OverlappingFacets) {
                true => ", which is right if the only facets that overlap are those of tied sides",
                false => "",
            };
            let message =
                format!("the mesh cannot be used: {error}; accept = [\"{name}\"] takes it as it is{of_ties}");
            case.wrong(&["mesh".into(), "accept".into()], message)
        }
        None => error.into(),
    }
}

/// A mesh refined uniformly, unless it becomes larger than the memory of the machine.
///
/// # Errors
/// [`MeshError::Invalid`] with the memory that would be needed; those of [`refine::uniform`].
pub fn refined(mut mesh: Mesh, times: u32) -> Result<Mesh, MeshError> {
    if let Some(message) = memory::excess_of_mesh(Counts::from(&mesh), times) {
        return Err(MeshError::Invalid { field: "times", message });
    }
    for _ in 0..times {
        mesh = refine::uniform(&mesh)?;
    }
    Ok(mesh)
}

/// Makes a mesh by formula.
///
/// # Errors
/// [`MeshError::Invalid`] naming the setting that is out of range, or the memory that would be needed.
pub fn generate(generator: &Generator) -> Result<Mesh, MeshError> {
    let Plan { field, counts, make } = Plan::of(generator)?;
    match memory::excess_of_mesh(counts, 0) {
        Some(message) => Err(MeshError::Invalid { field, message }),
        None => make(None),
    }
}

/// A mesh that is still to be made.
struct Plan {
    /// The setting that says how fine it becomes.
    field: &'static str,
    counts: Counts,
    make: Make,
}

/// Makes a mesh, and asks now and then whether to end.
type Make = Box<dyn FnOnce(IsInterrupted<'_>) -> Result<Mesh, MeshError>>;

impl Plan {
    fn new(
        field: &'static str,
        counts: Result<Counts, MeshError>,
        make: impl FnOnce(IsInterrupted<'_>) -> Result<Mesh, MeshError> + 'static,
    ) -> Result<Self, MeshError> {
        Ok(Self { field, counts: counts?, make: Box::new(make) })
    }

    /// # Errors
    /// [`MeshError::Invalid`] naming the setting that is out of range.
    fn of(generator: &Generator) -> Result<Self, MeshError> {
        match *generator {
            Generator::Box { cells, cell, lower, upper, deform, order } => {
                let config = BoxConfig { lower, upper, cells, split: split_of(cell) };
                let counts = config.counts().map(|counts| counts.with_order(order));
                Self::new("cells", counts, move |stop| {
                    deformed(box_mesh_interruptible(&config, stop)?, bend_of(deform, order))
                })
            }
            Generator::Square { cells, cell, lower, upper, deform, order } => {
                let config = SquareConfig { lower, upper, cells, split: split_of_square(cell) };
                let counts = config.counts().map(|counts| counts.with_order(order));
                Self::new("cells", counts, move |_| deformed(square(&config)?, bend_of(deform, order)))
            }
            Generator::Grid { .. } => Err(MeshError::Invalid {
                field: "kind",
                message: "a grid is for equations in time (equation.kind = \"diffusion\"); a mesh of the same box is a \
                          \"box\" or a \"square\""
                    .into(),
            }),
            Generator::Ball { radius, h, cell, order } => Self::of_ball(radius, h, cell, order),
            Generator::Sphere { radius, h, cell, order } => Self::of_sphere(radius, h, cell, order),
            Generator::Shell { inner, outer, cells, layers, order } => {
                let config = ShellConfig { inner, outer, cells, layers, order };
                Self::new("cells", config.counts(), move |_| shell(&config))
            }
            Generator::LShape { shape, cells } => {
                let shape = match shape {
                    LShapeName::Plane => LShape::Plane,
                    LShapeName::Extruded => LShape::Extruded,
                    LShapeName::Corner => LShape::Corner,
                };
                let config = LShapeConfig { shape, cells };
                Self::new("cells", config.counts(), move |_| l_shape(&config))
            }
            Generator::Cylinder { radius, height, h } => {
                let config = CylinderConfig { radius, height, h };
                Self::new("h", config.counts(), move |stop| cylinder_interruptible(&config, stop))
            }
            Generator::Ventricle { h_mm } => {
                let config = VentricleConfig { h_mm };
                Self::new("h_mm", config.counts(), move |stop| ventricle_interruptible(&config, stop))
            }
        }
    }

    fn of_ball(radius: f64, h: f64, cell: CellName, order: usize) -> Result<Self, MeshError> {
        let wrong = |field, message: &str| Err(MeshError::Invalid { field, message: message.into() });
        match cell {
            CellName::Tetrahedron if order == 1 => {
                let config = BallConfig { radius, h };
                Self::new("h", config.counts(), move |stop| ball_interruptible(&config, stop))
            }
            CellName::Tetrahedron => {
                wrong("order", "tetrahedra are straight; cell = \"hexahedron\" may be curved")
            }
            CellName::Tetrahedron5 => wrong("cell", "a ball has cells \"tetrahedron\" or \"hexahedron\""),
            CellName::Hexahedron if h > 0.0 && h.is_finite() => {
                // An edge of a block is a quarter of a circle, the way from the cube inside to the sphere about half a
                // radius.
                let (cells, layers) =
                    (count(std::f64::consts::FRAC_PI_2 * radius, h), count(0.5 * radius, h));
                let config = HexahedralBallConfig { radius, cells, layers, order };
                Self::new("h", config.counts().map_err(of_h), move |_| hexahedral_ball(&config))
            }
            CellName::Hexahedron => wrong("h", &no_length(h)),
        }
    }

    fn of_sphere(radius: f64, h: f64, cell: PlaneCellName, order: usize) -> Result<Self, MeshError> {
        let wrong = |field, message: String| Err(MeshError::Invalid { field, message });
        if !(h > 0.0 && h.is_finite()) {
            return wrong("h", no_length(h));
        }
        if cell == PlaneCellName::Triangle && order > 1 {
            return wrong("order", "triangles are flat; cell = \"quadrilateral\" may be curved".into());
        }
        let cells = count(std::f64::consts::FRAC_PI_2 * radius, h);
        let config = SphereConfig { radius, cells, split: split_of_square(cell), order };
        Self::new("h", config.counts().map_err(of_h), move |_| sphere(&config))
    }
}

/// Returns the number of cells of a size along a length.
fn count(length: f64, h: f64) -> usize {
    (length / h * (1.0 - 1e-12)).ceil().max(1.0) as usize
}

fn no_length(h: f64) -> String {
    format!("{h} is not a positive, finite length")
}

/// Returns the error of a number of cells at the size that it comes from.
fn of_h(error: MeshError) -> MeshError {
    match error {
        MeshError::Invalid { field: "cells", message } => MeshError::Invalid { field: "h", message },
        other => other,
    }
}

fn split_of_square(cell: PlaneCellName) -> SquareSplit {
    match cell {
        PlaneCellName::Triangle => SquareSplit::Triangles,
        PlaneCellName::Quadrilateral => SquareSplit::Quadrilateral,
    }
}

/// Returns the box of a generator and its deformation; none of other meshes.
pub(crate) fn box_of(generator: &Generator) -> Option<(BoxConfig, Option<DeformConfig>)> {
    let Generator::Box { cells, cell, lower, upper, deform, order } = *generator else { return None };
    Some((BoxConfig { lower, upper, cells, split: split_of(cell) }, bend_of(deform, order)))
}

fn split_of(cell: CellName) -> BoxSplit {
    match cell {
        CellName::Tetrahedron => BoxSplit::Kuhn,
        CellName::Tetrahedron5 => BoxSplit::Five,
        CellName::Hexahedron => BoxSplit::Hexahedron,
    }
}

/// The deformation of a box or rectangle, if a case asks for it.
fn bend_of(amplitude: f64, order: usize) -> Option<DeformConfig> {
    (amplitude != 0.0 || order != 1).then_some(DeformConfig { amplitude, order })
}

/// Moves the inside of a box and curves its cells.
fn deformed(mut mesh: Mesh, bend: Option<DeformConfig>) -> Result<Mesh, MeshError> {
    if let Some(bend) = bend {
        deform(&mut mesh, &bend).map_err(of_deform)?;
    }
    Ok(mesh)
}

/// The error of a deformation at the setting of a case.
pub(crate) fn of_deform(error: MeshError) -> MeshError {
    match error {
        MeshError::Invalid { field: "amplitude", message } => MeshError::Invalid { field: "deform", message },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> Result<Mesh, MeshError> {
        generate(&Generator::parse(text).unwrap())
    }

    #[test]
    fn meshes_of_quadrilaterals_and_hexahedra_are_made_by_their_settings() {
        for (text, n_cells, order) in [
            ("kind = \"box\", cells = [2, 3, 1], cell = \"hexahedron\"", 6, 1),
            ("kind = \"box\", cells = [2, 3, 1], cell = \"hexahedron\", deform = 0.1, order = 3", 6, 3),
            ("kind = \"square\", cells = [2, 3], cell = \"quadrilateral\", order = 2", 6, 2),
            ("kind = \"square\", cells = [2, 3], deform = -0.1", 12, 1),
            ("kind = \"shell\", cells = 2, layers = 1, order = 2", 24, 2),
            ("kind = \"sphere\", h = 0.8", 48, 1),
            ("kind = \"sphere\", h = 0.8, cell = \"quadrilateral\", order = 3", 24, 3),
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
    fn a_case_chooses_the_array_that_gives_the_tags_of_cells() {
        let folder = tempfile::tempdir().unwrap();
        let cells = "5 5\nCELL_DATA 2\nSCALARS region int\nLOOKUP_TABLE default\n1 1\nSCALARS MaterialIDs double\n\
                     LOOKUP_TABLE default\n4.0 6.0\nSCALARS share double\nLOOKUP_TABLE default\n0.5 1\n";
        let vtk = format!(
            "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n0 0 0 1 0 0 1 1 0 0 1 0\n\
             CELLS 2 8\n3 0 1 2\n3 0 2 3\nCELL_TYPES 2\n{cells}"
        );
        std::fs::write(folder.path().join("a.vtk"), vtk).unwrap();
        let read = |keys: &str| {
            let text = format!("[mesh]\n{keys}\n[equation]\nlambda = 1\n");
            let case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
            let hosted = (Hosted::whole(&case).unwrap(), false);
            mesh_of(&case, hosted, None).map_err(|error| error.to_string())
        };
        assert_eq!(read("file = \"a.vtk\"").unwrap().cell_tags, [1, 1]);
        let mesh = read("file = \"a.vtk\"\ntags = \"MaterialIDs\"").unwrap();
        assert_eq!((mesh.cell_tags, &mesh.cell_fields["region"].values[..]), (vec![4, 6], &[1.0, 1.0][..]));
        let said = read("file = \"a.vtk\"\ntags = \"materialids\"").unwrap_err();
        for words in ["no array `materialids`", "`MaterialIDs`, `region`, `share`", "mesh.tags"] {
            assert!(said.contains(words), "{said}");
        }
        let said = read("file = \"a.vtk\"\ntags = \"share\"").unwrap_err();
        assert!(said.contains("line 21: array `share` has the value 0.5 in cell 0"), "{said}");
        let said = read("file = \"a.msh\"\ntags = \"share\"").unwrap_err();
        assert!(said.contains(".vtu and .vtk files alone"), "{said}");
    }

    #[test]
    fn an_interrupt_ends_a_generator() {
        for text in [
            "kind = \"box\", cells = [2, 2, 2]",
            "kind = \"ball\", h = 0.5",
            "kind = \"cylinder\", h = 0.5",
            "kind = \"ventricle\", h_mm = 5",
        ] {
            let text = format!("[mesh]\ngenerate = {{ {text} }}\n[equation]\nlambda = 1\n");
            let case = Case::parse("case.toml".as_ref(), text).unwrap();
            let hosted = (Hosted::whole(&case).unwrap(), false);
            let said = mesh_of(&case, hosted, Some(&|| true)).unwrap_err();
            assert!(said.to_string().contains("interrupted"), "{said}");
            assert!(mesh_of(&case, hosted, Some(&|| false)).is_ok());
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
