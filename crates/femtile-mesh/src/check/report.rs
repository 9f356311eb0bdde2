use std::sync::Arc;

use super::boundary::BoundaryFacets;
use super::error::CheckError;
use super::finding::Finding;
use super::geometry::Shapes;
use super::voids::Void;
use crate::{CellKind, Division, Mesh};

/// Settings of the check: accepted findings and optional repairs.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckConfig {
    /// True if coincident nodes are merged; off by default, as a crack may be intended.
    pub merge_duplicates: bool,
    /// Distance within which nodes coincide, in units of the diagonal of the mesh's bounding box.
    pub tolerance: f64,
    /// Cells of a quality below this cause a warning as slivers.
    pub sliver_quality: f64,
    /// Findings that become warnings instead of refusals.
    pub accept: Vec<Finding>,
}

impl Default for CheckConfig {
    fn default() -> Self {
        Self { merge_duplicates: false, tolerance: 1e-10, sliver_quality: 0.02, accept: Vec::new() }
    }
}

impl CheckConfig {
    /// Refuses settings that are not lengths or qualities.
    pub(super) fn check(&self) -> Result<(), CheckError> {
        for (field, value) in [("tolerance", self.tolerance), ("sliver_quality", self.sliver_quality)] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(CheckError::Setting { field, value });
            }
        }
        Ok(())
    }
}

/// Properties of a mesh that passed the check, after the repairs.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckReport {
    /// Kind of the cells.
    pub kind: CellKind,
    /// Number of nodes.
    pub n_nodes: usize,
    /// Number of cells.
    pub n_cells: usize,
    /// Nodes that no cell used; they were dropped.
    pub n_orphans: usize,
    /// Cells that were negatively oriented and have been reoriented.
    pub n_flipped: usize,
    /// Nodes that coincided with another node and were merged with it.
    pub n_merged: usize,
    /// Nodes that coincide with another node and were not merged.
    pub n_duplicate_nodes: usize,
    /// Boundary facets that coincide with another boundary facet: the faces of cracks.
    pub n_crack_facets: usize,
    /// Smallest quality of a cell, from 0 (flat) to 1 (equilateral): the mean ratio of simplices,
    /// the scaled Jacobian of other cells.
    pub worst_quality: f64,
    /// The first cell of that quality.
    pub worst_cell: usize,
    /// Centroid of that cell.
    pub worst_at: [f64; 3],
    /// Length, area or volume of the whole mesh.
    pub volume: f64,
    /// Connected parts of the mesh.
    pub n_components: usize,
    /// The facets on the boundary, as [`super::boundary_facets`] finds them.
    pub boundary: Arc<BoundaryFacets>,
    /// Connected parts of the boundary: for a connected mesh, one more than its holes.
    pub n_boundary_components: usize,
    /// Thin tetrahedra that are missing inside the mesh.
    pub n_gaps: usize,
    /// Edges (of triangles: nodes) in which more than two boundary facets meet.
    pub n_pinched: usize,
    /// Tagged facets that do not lie on the boundary: interfaces, or facets that no cell has.
    pub n_tagged_inside: usize,
    /// The cells of the file, if the reader divided them into these simplices, in words.
    pub division: Option<String>,
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
}

impl CheckReport {
    /// Returns the report of a mesh with all counts of findings zero.
    pub(super) fn new(mesh: &Mesh, shapes: &Shapes) -> Self {
        Self {
            kind: mesh.kind,
            n_nodes: mesh.n_nodes(),
            n_cells: mesh.n_cells(),
            n_orphans: 0,
            n_flipped: shapes.n_flipped,
            n_merged: 0,
            n_duplicate_nodes: 0,
            n_crack_facets: 0,
            worst_quality: shapes.worst_quality,
            worst_cell: shapes.worst_cell,
            worst_at: super::geometry::centroid(&mesh.points, mesh.cell(shapes.worst_cell)),
            volume: shapes.measure,
            n_components: 0,
            boundary: Arc::default(),
            n_boundary_components: 0,
            n_gaps: 0,
            n_pinched: 0,
            n_tagged_inside: 0,
            division: mesh.division.as_ref().map(Division::note),
            warnings: Vec::new(),
        }
    }

    /// Converts the counts to sentences; `worst` is the cell of the file that the worst cell is a part of, `first_duplicate` a pair of
    /// coincident nodes, `first_gap` one of the gaps.
    pub(super) fn write_warnings(
        &mut self,
        sliver_quality: f64,
        worst: Option<String>,
        first_duplicate: Option<(u32, u32)>,
        first_gap: Option<&Void>,
    ) {
        let mut warn = |warning: String| self.warnings.push(warning);
        if self.n_flipped > 0 {
            warn(format!(
                "{} were negatively oriented and have been turned over",
                count(self.n_flipped, "cell")
            ));
        }
        if self.n_orphans > 0 {
            warn(format!("{} belonged to no cell and have been dropped", count(self.n_orphans, "node")));
        }
        if self.n_merged > 0 {
            warn(format!("{} coincided with others and have been merged", count(self.n_merged, "node")));
        }
        if let Some((node, other)) = first_duplicate {
            let many = count(self.n_duplicate_nodes, "node");
            warn(format!(
                "{many} coincide with others (node {node} with node {other}, …); {MERGING} joins them"
            ));
        }
        if self.n_crack_facets > 0 {
            let many = count(self.n_crack_facets, "boundary facet");
            warn(format!("{many} lie on others with nodes of their own: a crack; {MERGING} closes it"));
        }
        if self.worst_quality < sliver_quality {
            let (quality, cell, at) = (self.worst_quality, self.worst_cell, self.worst_at);
            let part = worst.map(|of| format!(", a part of {of},")).unwrap_or_default();
            warn(format!(
                "cell {cell}{part} near {at:?} is a sliver: quality {quality:.2e}; the solve may need many iterations"
            ));
        }
        if let Some(Void { at, volume, longest_edge, .. }) = first_gap {
            let (many, first) = match self.n_gaps {
                1 => ("a gap".into(), ""),
                n => (count(n, "gap"), "the first "),
            };
            warn(format!(
                "{many} in the mesh, {first}near {at:?}, of volume {volume:.2e} and longest edge {longest_edge:.2e}: a thin \
                 tetrahedron is missing there; nothing flows through it"
            ));
        }
        if self.n_pinched > 0 {
            let (what, many) = match self.kind.dimension() {
                3 => ("edge", self.n_pinched),
                _ => ("node", self.n_pinched),
            };
            warn(format!(
                "in {} more than two boundary facets meet: parts of the mesh touch there only",
                count(many, what)
            ));
        }
        if self.n_components > 1 {
            warn(format!("the mesh has {} unconnected parts", self.n_components));
        }
        if self.n_tagged_inside > 0 {
            let many = count(self.n_tagged_inside, "tagged facet");
            warn(format!(
                "{many} do not lie on the boundary: conditions with their tag hold inside the body"
            ));
        }
    }
}

/// How coincident nodes are merged.
const MERGING: &str = "`merge = true` in [mesh] (`--merge` on the command line)";

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
