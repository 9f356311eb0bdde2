use std::collections::BTreeMap;

use crate::first_where::first_where;
use crate::plane::flatten;
use crate::{CellKind, Division, MeshError};

/// Values attached to nodes or cells, `n_components` numbers each, one after another.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Numbers for one node or cell: 1 for a scalar, 3 for a vector, 9 for a tensor by rows.
    pub n_components: usize,
    /// All numbers: `[n_entities × n_components]`.
    pub values: Vec<f64>,
}

/// Facets of cells that carry a tag: the named parts of a boundary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facets {
    /// Nodes of each facet, one facet after another.
    pub nodes: Vec<u32>,
    /// One tag for each facet.
    pub tags: Vec<i32>,
}

/// Curved shapes of quadrilaterals or hexahedra: each is the image of the unit square or cube under polynomials of some
/// degree in each coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Curved {
    /// Degree of the polynomials, at least 1.
    pub order: usize,
    /// Points that the images pass through; neighbours share those on their common side.
    pub points: Vec<[f64; 3]>,
    /// Points of each cell, evenly spaced on the square or cube, the first coordinate running fastest:
    /// `[n_cells × (order + 1)^dimension]`.
    pub cells: Vec<u32>,
}

impl Curved {
    /// The highest supported order.
    pub const MAX_ORDER: usize = 9;

    /// Number of points of one cell.
    pub fn n_points(&self, dimension: usize) -> usize {
        (self.order + 1).pow(dimension as u32)
    }
}

/// A mesh of one kind of cell in two or three dimensions.
///
/// In the plane the third coordinate of every point is zero; triangles and quadrilaterals of a surface have three. Tags and
/// fields may be absent: `cell_tags` is empty when no cell is tagged, else it has one entry per cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Mesh {
    /// Coordinates of the nodes.
    pub points: Vec<[f64; 3]>,
    /// Kind of all cells.
    pub kind: CellKind,
    /// Whether the cells are triangles or quadrilaterals of a surface in space. A part of such a mesh is a surface also where it
    /// lies in the plane z = 0.
    pub is_surface: bool,
    /// Nodes of each cell, one cell after another: `[n_cells × kind.n_nodes()]`.
    pub cells: Vec<u32>,
    /// Shapes of curved cells. Their corners coincide with `points`.
    pub curved: Option<Curved>,
    /// Region of each cell, or empty.
    pub cell_tags: Vec<i32>,
    /// Tagged facets; a facet with several tags is repeated.
    pub facets: Facets,
    /// Names of tags by (dimension, tag).
    pub tag_names: BTreeMap<(usize, i32), String>,
    /// Fields with one entry per cell.
    pub cell_fields: BTreeMap<String, Field>,
    /// Fields with one entry per node.
    pub node_fields: BTreeMap<String, Field>,
    /// The cells of the file, if the reader divided them into these simplices.
    pub division: Option<Division>,
    /// Notes of the reader on data left out, in sentences; the check repeats them among its warnings.
    pub notes: Vec<String>,
}

impl Mesh {
    /// A mesh without tags or fields, after checking that every index and coordinate can be used. Triangles and quadrilaterals whose
    /// nodes leave every plane z = constant by more than 1e-10 of their extent are a surface; else they are put at z = 0.
    ///
    /// # Errors
    /// [`MeshError::Invalid`], see [`Mesh::validate`].
    pub fn new(mut points: Vec<[f64; 3]>, kind: CellKind, cells: Vec<u32>) -> Result<Self, MeshError> {
        let mesh = Self {
            is_surface: kind.dimension() == 2 && !flatten(&mut points, &[&cells]),
            points,
            kind,
            cells,
            curved: None,
            cell_tags: Vec::new(),
            facets: Facets::default(),
            tag_names: BTreeMap::new(),
            cell_fields: BTreeMap::new(),
            node_fields: BTreeMap::new(),
            division: None,
            notes: Vec::new(),
        };
        mesh.validate()?;
        Ok(mesh)
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.points.len()
    }

    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.cells.len() / self.kind.n_nodes()
    }

    /// Dimension of the cells: 2 or 3.
    pub fn dimension(&self) -> usize {
        self.kind.dimension()
    }

    /// Dimension of the space around them: 3 of a surface, else that of the cells.
    pub fn space_dimension(&self) -> usize {
        if self.is_surface { 3 } else { self.dimension() }
    }

    /// Nodes of cell `cell`.
    pub fn cell(&self, cell: usize) -> &[u32] {
        let n = self.kind.n_nodes();
        &self.cells[cell * n..(cell + 1) * n]
    }

    /// Nodes of tagged facet `facet`.
    pub fn facet(&self, facet: usize) -> &[u32] {
        let n = self.kind.facet_kind().map_or(1, CellKind::n_nodes);
        &self.facets.nodes[facet * n..(facet + 1) * n]
    }

    /// Signed measure (length, area, volume) of a simplex cell; positive when well oriented.
    ///
    /// # Panics
    /// When the cells are not simplices.
    pub fn signed_measure(&self, cell: usize) -> f64 {
        let nodes = self.cell(cell);
        let p = |i: usize| self.points[nodes[i] as usize];
        match self.kind {
            CellKind::Segment => p(1)[0] - p(0)[0],
            CellKind::Triangle => {
                let (a, b) = (difference(p(1), p(0)), difference(p(2), p(0)));
                0.5 * (a[0] * b[1] - a[1] * b[0])
            }
            CellKind::Tetrahedron => {
                let (a, b, c) = (difference(p(1), p(0)), difference(p(2), p(0)), difference(p(3), p(0)));
                let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
                (a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]) / 6.0
            }
            kind => panic!("signed_measure is for simplices, this mesh has {kind} cells"),
        }
    }

    /// Multiplies all coordinates by a positive number: micrometres become millimetres by 0.001.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] about `scale` if the number is not positive, or coordinates become infinite.
    pub fn scale(&mut self, factor: f64) -> Result<(), MeshError> {
        let invalid = |message| Err(MeshError::Invalid { field: "scale", message });
        if !(factor > 0.0 && factor.is_finite()) {
            return invalid(format!("{factor}; a positive number is needed"));
        }
        let points = || self.points.iter().chain(self.curved.iter().flat_map(|curved| &curved.points));
        if points().flatten().any(|x| !(x * factor).is_finite()) {
            return invalid(format!("{factor} makes coordinates infinite"));
        }
        let curved = self.curved.iter_mut().flat_map(|curved| &mut curved.points);
        self.points.iter_mut().chain(curved).flatten().for_each(|x| *x *= factor);
        Ok(())
    }

    /// Checks the arrays of the mesh, without geometry or topology.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] naming the first cell, node, facet or field that breaks a rule: no
    /// cells, an index out of range, a coordinate that is not finite, a wrong number of tags or values.
    pub fn validate(&self) -> Result<(), MeshError> {
        let invalid = |field, message| Err(MeshError::Invalid { field, message });
        let (n_nodes, per_cell) = (self.n_nodes(), self.kind.n_nodes());
        if self.cells.is_empty() {
            return invalid("cells", "the mesh has no cells".into());
        }
        if n_nodes > u32::MAX as usize {
            return invalid("points", format!("{n_nodes} nodes; at most {} can be numbered", u32::MAX));
        }
        if !self.cells.len().is_multiple_of(per_cell) {
            return invalid(
                "cells",
                format!("{} indices do not divide into {per_cell} a cell", self.cells.len()),
            );
        }
        if let Some(i) = first_where(&self.cells, |&node| node as usize >= n_nodes) {
            let (cell, node) = (i / per_cell, self.cells[i]);
            return invalid("cells", format!("cell {cell} uses node {node}, but there are {n_nodes} nodes"));
        }
        if let Some(i) = first_where(&self.points, |p| p.iter().fold(false, |any, x| any | !x.is_finite())) {
            return invalid(
                "points",
                format!("node {i} has a coordinate that is not finite: {:?}", self.points[i]),
            );
        }
        if !self.cell_tags.is_empty() && self.cell_tags.len() != self.n_cells() {
            return invalid(
                "cell_tags",
                format!("{} tags for {} cells", self.cell_tags.len(), self.n_cells()),
            );
        }
        if self.is_surface && self.dimension() != 2 {
            return invalid("is_surface", format!("{} cells are no surface", self.kind));
        }
        self.validate_curved()?;
        self.validate_facets()?;
        validate_fields("cell_fields", &self.cell_fields, self.n_cells())?;
        validate_fields("node_fields", &self.node_fields, n_nodes)
    }

    fn validate_curved(&self) -> Result<(), MeshError> {
        let invalid = |message| Err(MeshError::Invalid { field: "curved", message });
        let Some(curved) = &self.curved else { return Ok(()) };
        let (per_cell, n_points) = (curved.n_points(self.dimension()), curved.points.len());
        if !matches!(self.kind, CellKind::Quadrilateral | CellKind::Hexahedron) {
            return invalid(format!(
                "{} cells with curved shapes; quadrilaterals and hexahedra may have them",
                self.kind
            ));
        }
        if !(1..=Curved::MAX_ORDER).contains(&curved.order) {
            return invalid(format!("order {}; 1 to {} can be used", curved.order, Curved::MAX_ORDER));
        }
        if curved.cells.len() != self.n_cells() * per_cell {
            let expected = self.n_cells() * per_cell;
            return invalid(format!(
                "{} indices; {} cells of order {} have {expected}",
                curved.cells.len(),
                self.n_cells(),
                curved.order
            ));
        }
        if let Some(i) = first_where(&curved.cells, |&point| point as usize >= n_points) {
            return invalid(format!(
                "cell {} uses point {}, but there are {n_points}",
                i / per_cell,
                curved.cells[i]
            ));
        }
        match first_where(&curved.points, |p| p.iter().any(|x| !x.is_finite())) {
            Some(i) => {
                invalid(format!("point {i} has a coordinate that is not finite: {:?}", curved.points[i]))
            }
            None => Ok(()),
        }
    }

    fn validate_facets(&self) -> Result<(), MeshError> {
        let invalid = |message| Err(MeshError::Invalid { field: "facets", message });
        let n = self.kind.facet_kind().map_or(1, CellKind::n_nodes);
        if self.facets.nodes.len() != n * self.facets.tags.len() {
            return invalid(format!(
                "{} indices for {} facets",
                self.facets.nodes.len(),
                self.facets.tags.len()
            ));
        }
        match first_where(&self.facets.nodes, |&node| node as usize >= self.n_nodes()) {
            Some(i) => invalid(format!(
                "facet {} uses node {}, but there are {} nodes",
                i / n,
                self.facets.nodes[i],
                self.n_nodes()
            )),
            None => Ok(()),
        }
    }
}

fn validate_fields(
    field: &'static str,
    fields: &BTreeMap<String, Field>,
    n_entities: usize,
) -> Result<(), MeshError> {
    for (name, Field { n_components, values }) in fields {
        if values.len() != n_components * n_entities {
            let message = format!("`{name}` has {} values for {n_entities} × {n_components}", values.len());
            return Err(MeshError::Invalid { field, message });
        }
    }
    Ok(())
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
