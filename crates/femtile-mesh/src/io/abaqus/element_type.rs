//! Element types by Abaqus's names.

use super::lines::Lines;
use crate::io::scanner::show;
use crate::io::vtk_cell::VtkCell;
use crate::{CellKind, CellShape, MeshError};

/// A supported element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ElementType {
    pub cell: VtkCell,
    pub n_nodes: usize,
}

/// Families of solids; their names end with the number of nodes.
const SOLIDS: [&str; 4] = ["C3D", "DC3D", "AC3D", "DCC3D"];
/// Families of plane elements, shells, membranes and surface elements.
const PLANES: [&str; 17] = [
    "CPS", "CPE", "CPEG", "CAX", "CGAX", "DC2D", "AC2D", "DCAX", "ACAX", "S", "DS", "M3D", "SFM3D", "R3D",
    "STRI", "F3D", "FAX",
];
/// Lines of two nodes.
const LINES: [&str; 7] = ["T2D2", "T3D2", "R2D2", "DC1D2", "B21", "B31", "B33"];
/// First letters of elements beside a mesh that are not cells: masses, springs, dampers, gaps, connectors,
/// couplings, beams, pipes and lines of other numbers of nodes. `D` alone is an element of a fluid network,
/// `U` a user element.
const BESIDE: [&str; 36] = [
    "MASS", "ROTARYI", "HEATCAP", "SPRING", "DASHPOT", "GAP", "CONN", "JOINT", "DCOUP", "ITS", "ITT", "ISL",
    "IRS", "DRAG", "PSI", "B21", "B22", "B23", "B31", "B32", "B33", "B34", "PIPE", "ELBOW", "FRAME", "T2D",
    "T3D", "RB2D", "RB3D", "R2D", "DC1D", "DCC1D", "AC1D", "SAX", "DSAX", "RAX",
];

impl ElementType {
    /// Returns the type of a name; further letters concern the quadrature, not the nodes. None for elements that stand beside a mesh.
    ///
    /// # Errors
    /// [`MeshError::Unsupported`] with the name.
    pub(super) fn parse(name: &[u8], lines: &Lines<'_>) -> Result<Option<Self>, MeshError> {
        let upper = String::from_utf8_lossy(name).to_ascii_uppercase();
        let found = of_family(&upper, &SOLIDS, &solid)
            .or_else(|| of_family(&upper, &PLANES, &plane))
            .or_else(|| line(&upper));
        if found.is_some() || is_beside(&upper) {
            return Ok(found);
        }
        let advice = "triangles and tetrahedra of order 1 and 2, quadrilaterals (4, 8 nodes), pyramids (5, 13 nodes), prisms \
                      (6, 15 nodes), hexahedra (8, 20 nodes) and lines of two nodes can be read";
        Err(lines.unsupported(format!("the Abaqus element type `{}`", show(name)), advice))
    }

    /// The shape of its corners.
    pub(super) fn shape(self) -> CellShape {
        self.cell.shape()
    }
}

fn of_family(
    name: &str,
    families: &[&str],
    of_count: &dyn Fn(usize) -> Option<ElementType>,
) -> Option<ElementType> {
    families.iter().find_map(|family| {
        let rest = name.strip_prefix(family)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let is_variant = rest[end..].chars().all(|c| c.is_ascii_alphanumeric());
        // `STRI65` has six nodes of five degrees of freedom.
        let digits = if *family == "STRI" { rest.get(..1)? } else { &rest[..end] };
        digits.parse().ok().filter(|_| is_variant).and_then(of_count)
    })
}

fn solid(n_nodes: usize) -> Option<ElementType> {
    let cell = match n_nodes {
        4 => VtkCell::Linear(CellShape::Tetrahedron),
        5 => VtkCell::Linear(CellShape::Pyramid),
        6 => VtkCell::Linear(CellShape::Prism),
        8 => VtkCell::Linear(CellShape::Hexahedron),
        10 => VtkCell::QuadraticSimplex(CellKind::Tetrahedron),
        13 => VtkCell::QuadraticSolid(CellShape::Pyramid, 13),
        15 => VtkCell::QuadraticSolid(CellShape::Prism, 15),
        20 => VtkCell::Serendipity(CellKind::Hexahedron),
        _ => return None,
    };
    Some(ElementType { cell, n_nodes })
}

fn plane(n_nodes: usize) -> Option<ElementType> {
    let cell = match n_nodes {
        3 => VtkCell::Linear(CellShape::Triangle),
        4 => VtkCell::Linear(CellShape::Quadrilateral),
        6 => VtkCell::QuadraticSimplex(CellKind::Triangle),
        8 => VtkCell::Serendipity(CellKind::Quadrilateral),
        _ => return None,
    };
    Some(ElementType { cell, n_nodes })
}

fn line(name: &str) -> Option<ElementType> {
    let is_variant = |rest: &str| rest.chars().all(|c| c.is_ascii_alphabetic());
    let is_line = LINES.iter().any(|line| name.strip_prefix(line).is_some_and(is_variant));
    is_line.then_some(ElementType { cell: VtkCell::Linear(CellShape::Segment), n_nodes: 2 })
}

fn is_beside(name: &str) -> bool {
    let is_of_user = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
    name == "D"
        || name.strip_prefix('U').is_some_and(is_of_user)
        || BESIDE.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::line_origins::LineOrigins;
    use super::*;

    #[test]
    fn names_say_kind_and_number_of_nodes() {
        let places = LineOrigins::of_file(Path::new("a.inp"));
        let lines = Lines::new(&places, b"");
        let of = |name: &str| {
            let found = ElementType::parse(name.as_bytes(), &lines);
            found.ok().map(|found| found.map(|found| (found.shape(), found.n_nodes)))
        };
        for (names, expected) in [
            (&["C3D4", "c3d4h", "DC3D4", "AC3D4"][..], (CellShape::Tetrahedron, 4)),
            (&["C3D5", "AC3D5"], (CellShape::Pyramid, 5)),
            (&["C3D6", "DC3D6"], (CellShape::Prism, 6)),
            (&["C3D10", "C3D10M", "C3D10MH"], (CellShape::Tetrahedron, 10)),
            (&["C3D15"], (CellShape::Prism, 15)),
            (&["C3D8", "C3D8R", "C3D8I", "C3D8RT", "DC3D8"], (CellShape::Hexahedron, 8)),
            (&["C3D20", "C3D20RH"], (CellShape::Hexahedron, 20)),
            (&["CPS3", "CPE3T", "S3", "S3R", "DC2D3", "STRI3", "M3D3", "R3D3"], (CellShape::Triangle, 3)),
            (&["CPS6", "CPE6M", "S6", "STRI65"], (CellShape::Triangle, 6)),
            (&["CPS4R", "CPE4I", "S4R5", "CPEG4", "CAX4"], (CellShape::Quadrilateral, 4)),
            (&["CPS8R", "S8R5"], (CellShape::Quadrilateral, 8)),
            (&["T3D2", "B31", "B31OS", "T2D2"], (CellShape::Segment, 2)),
        ] {
            for name in names {
                assert_eq!(of(name), Some(Some(expected)), "{name}");
            }
        }
        for name in
            ["C3D7", "C3D27", "SC6R", "SC8R", "S9R5", "COH3D6", "COH3D8", "C3D", "", "C3D4-", "U", "DC3D9"]
        {
            assert_eq!(of(name), None, "{name}");
        }
        for name in [
            "MASS", "springa", "SPRING1", "DASHPOTA", "B32", "B32R", "T3D3", "GAPUNI", "CONN3D2", "U1", "D",
            "SAX1",
        ] {
            assert_eq!(of(name), Some(None), "{name}");
        }
    }
}
