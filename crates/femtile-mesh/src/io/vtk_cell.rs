//! Cell types by VTK's numbers, as legacy and XML files use them.

use std::collections::BTreeMap;
use std::path::Path;

use super::collect::Collector;
use super::lagrange::{Numbering, n_points};
use crate::{CellKind, CellShape, Curved, MeshError, Place};

/// A cell type of VTK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VtkCell {
    /// Straight edges, corners only.
    Linear(CellShape),
    /// A pyramid or prism of order 2 with this number of nodes, corners first.
    QuadraticSolid(CellShape, usize),
    /// A prism whose triangles are clockwise seen from the top, with this number of nodes, corners first.
    Wedge(usize),
    /// A pyramid or prism of order 1 or 2 by its number of points.
    LagrangeSolid(CellShape),
    /// Order 2 with points on corners and edges.
    Serendipity(CellKind),
    /// Order 2, complete.
    Quadratic(CellKind),
    /// A triangle or tetrahedron of order 2.
    QuadraticSimplex(CellKind),
    /// The number of points determines the order.
    Lagrange(CellKind),
}

impl VtkCell {
    /// The shape of its corners.
    pub(super) fn shape(self) -> CellShape {
        match self {
            Self::Linear(shape) | Self::QuadraticSolid(shape, _) | Self::LagrangeSolid(shape) => shape,
            Self::Wedge(_) => CellShape::Prism,
            Self::Serendipity(kind)
            | Self::Quadratic(kind)
            | Self::QuadraticSimplex(kind)
            | Self::Lagrange(kind) => kind.into(),
        }
    }
}

/// The cell of a VTK type number; none for points and lines of points, which meshes leave out.
///
/// # Errors
/// [`MeshError::Unsupported`] with the name of the type.
pub(super) fn vtk_cell(path: &Path, place: Place, vtk_type: i64) -> Result<Option<VtkCell>, MeshError> {
    let name = match vtk_type {
        1 | 2 | 4 => return Ok(None),
        3 => return Ok(Some(VtkCell::Linear(CellShape::Segment))),
        5 => return Ok(Some(VtkCell::Linear(CellShape::Triangle))),
        9 => return Ok(Some(VtkCell::Linear(CellShape::Quadrilateral))),
        10 => return Ok(Some(VtkCell::Linear(CellShape::Tetrahedron))),
        12 => return Ok(Some(VtkCell::Linear(CellShape::Hexahedron))),
        13 => return Ok(Some(VtkCell::Wedge(6))),
        14 => return Ok(Some(VtkCell::Linear(CellShape::Pyramid))),
        26 => return Ok(Some(VtkCell::Wedge(15))),
        27 => return Ok(Some(VtkCell::QuadraticSolid(CellShape::Pyramid, 13))),
        32 => return Ok(Some(VtkCell::Wedge(18))),
        73 => return Ok(Some(VtkCell::LagrangeSolid(CellShape::Prism))),
        74 => return Ok(Some(VtkCell::LagrangeSolid(CellShape::Pyramid))),
        21 => return Ok(Some(VtkCell::Quadratic(CellKind::Segment))),
        22 => return Ok(Some(VtkCell::QuadraticSimplex(CellKind::Triangle))),
        24 => return Ok(Some(VtkCell::QuadraticSimplex(CellKind::Tetrahedron))),
        23 => return Ok(Some(VtkCell::Serendipity(CellKind::Quadrilateral))),
        25 => return Ok(Some(VtkCell::Serendipity(CellKind::Hexahedron))),
        28 => return Ok(Some(VtkCell::Quadratic(CellKind::Quadrilateral))),
        29 => return Ok(Some(VtkCell::Quadratic(CellKind::Hexahedron))),
        68 => return Ok(Some(VtkCell::Lagrange(CellKind::Segment))),
        69 => return Ok(Some(VtkCell::Lagrange(CellKind::Triangle))),
        71 => return Ok(Some(VtkCell::Lagrange(CellKind::Tetrahedron))),
        70 => return Ok(Some(VtkCell::Lagrange(CellKind::Quadrilateral))),
        72 => return Ok(Some(VtkCell::Lagrange(CellKind::Hexahedron))),
        6 => "triangle strip",
        7 => "polygon",
        8 => "pixel",
        11 => "voxel",
        30 => "quadratic linear quadrilateral",
        31 => "quadratic linear wedge",
        33 => "biquadratic quadratic hexahedron",
        34 => "biquadratic triangle",
        35 => "cubic line",
        36 => "quadratic polygon",
        37 => "triquadratic pyramid",
        41 => "convex point set",
        42 => "polyhedron",
        75..=81 => "Bézier cell",
        _ => "unknown cell",
    };
    Err(MeshError::Unsupported {
        path: path.into(),
        place,
        what: format!("VTK cell type {vtk_type} ({name})"),
        advice: "triangles, tetrahedra, quadrilaterals and hexahedra of any order to 9, pyramids and wedges of order 1 and 2 can be \
                 read"
            .into(),
    })
}

/// Cells of VTK on their way into a [`Collector`].
#[derive(Debug, Default)]
pub(super) struct VtkCells {
    pub collector: Collector,
    /// True if the file has the order of Lagrange hexahedra from before VTK 9.
    is_old: bool,
    numberings: BTreeMap<(CellKind, bool, usize), Numbering>,
    arranged: Vec<u32>,
}

impl VtkCells {
    pub(super) fn new(is_old: bool) -> Self {
        Self { is_old, ..Self::default() }
    }

    /// Adds cell number `number` of a file; `coordinates` are those of all points of the file.
    ///
    /// # Errors
    /// A message naming the cell when its type has another number of points.
    pub(super) fn push(
        &mut self,
        number: usize,
        cell: VtkCell,
        points: &[u32],
        coordinates: &[[f64; 3]],
        tag: i32,
    ) -> Result<(), String> {
        let n = points.len();
        let (kind, order, has_faces) = match cell {
            VtkCell::Linear(shape) if n == shape.n_nodes() => {
                self.collector.push(shape, points.iter().copied(), tag);
                return Ok(());
            }
            VtkCell::Linear(shape) => return Err(format!("cell {number} is a {shape} with {n} nodes")),
            VtkCell::QuadraticSolid(shape, n_nodes) => {
                return self.push_solid(number, shape, &[n_nodes], points, coordinates, tag);
            }
            VtkCell::LagrangeSolid(CellShape::Pyramid) => {
                return self.push_solid(number, CellShape::Pyramid, &[5, 14], points, coordinates, tag);
            }
            VtkCell::LagrangeSolid(shape) => {
                return self.push_solid(number, shape, &[6, 18], points, coordinates, tag);
            }
            VtkCell::Wedge(n_nodes) => {
                let mut turned = [0; 18];
                let turned = &mut turned[..n.min(18)];
                turned.copy_from_slice(&points[..n.min(18)]);
                if n >= 6 {
                    turned.swap(1, 2);
                    turned.swap(4, 5);
                }
                return self.push_solid(number, CellShape::Prism, &[n_nodes], turned, coordinates, tag);
            }
            VtkCell::Quadratic(kind) => (kind, (n == 3usize.pow(kind.dimension() as u32)).then_some(2), true),
            VtkCell::Serendipity(kind) => {
                (kind, (n == if kind == CellKind::Hexahedron { 20 } else { 8 }).then_some(2), false)
            }
            VtkCell::QuadraticSimplex(kind) => (kind, (n == n_points(kind, 2)).then_some(2), false),
            VtkCell::Lagrange(kind) => (kind, Numbering::order_of(kind, n), true),
        };
        let Some(order) = order else {
            return Err(match cell {
                VtkCell::Lagrange(CellKind::Triangle | CellKind::Tetrahedron) => format!(
                    "cell {number} is a Lagrange {kind} with {n} points; order 1 to {} can be read",
                    Curved::MAX_ORDER
                ),
                VtkCell::Lagrange(_) => format!(
                    "cell {number} is a Lagrange {kind} with {n} points; the same order of 1 to {} in each \
                     coordinate is needed",
                    Curved::MAX_ORDER
                ),
                _ => format!("cell {number} is a {kind} with {n} nodes"),
            });
        };
        if order == 1 || kind == CellKind::Segment {
            self.collector.push(kind, points[..kind.n_nodes()].iter().copied(), tag);
            return Ok(());
        }
        if kind.is_simplex() && order == 2 {
            self.collector.push_straightened(kind, points, coordinates, tag);
            return Ok(());
        }
        if kind.is_simplex() {
            let numbering = self.numberings.entry((kind, false, n));
            let numbering = numbering.or_insert_with(|| Numbering::vtk(kind, order, false));
            self.collector.push_straightened_of((kind, numbering), points, coordinates, tag);
            return Ok(());
        }
        let is_old = self.is_old && matches!(cell, VtkCell::Lagrange(_));
        let numbering = self.numberings.entry((kind, is_old && has_faces, n));
        let numbering = numbering.or_insert_with(|| Numbering::vtk(kind, order, is_old).first(n));
        numbering.arrange(points, &mut self.arranged);
        self.collector.push_curved(kind, order, &self.arranged, tag);
        Ok(())
    }

    /// Adds a pyramid or prism, which has one of some numbers of nodes, corners first.
    fn push_solid(
        &mut self,
        number: usize,
        shape: CellShape,
        n_nodes: &[usize],
        points: &[u32],
        coordinates: &[[f64; 3]],
        tag: i32,
    ) -> Result<(), String> {
        let n = points.len();
        if !n_nodes.contains(&n) {
            let each: Vec<String> = n_nodes.iter().map(usize::to_string).collect();
            return Err(format!(
                "cell {number} is a {shape} with {n} nodes; {} can be read",
                each.join(" and ")
            ));
        }
        match n == shape.n_nodes() {
            true => self.collector.push(shape, points.iter().copied(), tag),
            false => self.collector.push_straightened(shape, points, coordinates, tag),
        }
        Ok(())
    }
}
