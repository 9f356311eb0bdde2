//! Facets of the cells of a space.

use femtile_device::parallel;
use femtile_mesh::check::BoundaryFacets;

use super::Space;
use crate::element::{FacetAxes, corners_of_facets};
use crate::shared_entities::SharedEntities;

/// A facet of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellFacet {
    /// The position of the cell in the order of visits.
    pub position: usize,
    /// The number of the facet among [`crate::Element::facets`].
    pub facet: usize,
}

/// The map from the reference facet to a facet of the reference cell, along axes that depend on the numbers of the facet's
/// nodes alone: both cells of an interior facet take a point of the reference facet to the same point of space.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetMap {
    corners: Vec<usize>,
    axes: FacetAxes,
}

impl FacetMap {
    /// Returns the corners of the facet among those of the cell; the second and third are the ends of its axes.
    pub fn corners(&self) -> &[usize] {
        &self.corners
    }

    /// Returns the point of the reference cell for a point of the reference facet.
    pub fn point(&self, point: [f64; 3]) -> [f64; 3] {
        self.axes.point(point)
    }
}

impl Space<'_> {
    /// Returns the map to a facet of the cell at a position.
    pub fn facet(&self, CellFacet { position, facet }: CellFacet) -> FacetMap {
        let nodes = self.corners(position);
        let mut corners = self.element.facets()[facet].corners.clone();
        match corners[..] {
            // A square begins at its lowest node; its first axis ends at the lower of the two neighbours.
            [_, _, _, _] => {
                let lowest = (0..4).min_by_key(|&i| nodes[corners[i]]).unwrap_or(0);
                let mut ends = [lowest ^ 1, lowest ^ 2];
                ends.sort_unstable_by_key(|&end| nodes[corners[end]]);
                corners = [lowest, ends[0], ends[1], lowest ^ 3].map(|i| corners[i]).to_vec();
            }
            _ => corners.sort_unstable_by_key(|&corner| nodes[corner]),
        }
        FacetMap { axes: FacetAxes::new(self.mesh.kind, &corners), corners }
    }

    /// Returns the map to a facet that coincides with another one, whose map is given: both take a point of the reference facet to the
    /// same point of space. The corners of both must be at the same points; of facets that do not coincide the result is none of their
    /// maps.
    pub fn coinciding_facet(&self, own: CellFacet, other: CellFacet, map_of_other: &FacetMap) -> FacetMap {
        let point =
            |at: CellFacet, corner: usize| self.mesh.points[self.corners(at.position)[corner] as usize];
        let square = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        let all = &self.element.facets()[own.facet].corners;
        let nearest = |&corner: &usize| {
            let wanted = point(other, corner);
            let distance = |own_corner: usize| square(point(own, own_corner), wanted);
            all.iter().copied().min_by(|&a, &b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
        };
        let corners: Vec<usize> = map_of_other.corners.iter().map(nearest).collect();
        FacetMap { axes: FacetAxes::new(self.mesh.kind, &corners), corners }
    }

    /// Returns the cell and the facet of each facet of the boundary of the mesh.
    ///
    /// # Panics
    /// If a facet is none of its cell: the boundary belongs to another mesh.
    pub fn boundary_facets(&self, boundary: &BoundaryFacets) -> Vec<CellFacet> {
        // Simplices are visited in the order of the mesh.
        let mut positions = vec![0; self.tensor().map_or(0, |_| self.n_cells())];
        (0..positions.len()).for_each(|position| positions[self.cell(position)] = position);
        let of_cell = self.element.facets();
        let found = |facet: usize| {
            let (nodes, cell) = (boundary.facet(facet), boundary.cells[facet] as usize);
            let position = positions.get(cell).copied().unwrap_or(cell);
            let corners = self.corners(position);
            let has_nodes = |own: &[usize]| own.iter().all(|&corner| nodes.contains(&corners[corner]));
            let local = of_cell.iter().position(|own| has_nodes(&own.corners));
            let Some(facet) = local else { panic!("facet {facet} is no side of cell {cell}") };
            CellFacet { position, facet }
        };
        parallel::map(boundary.len(), parallel::CHEAP, found)
    }

    /// Returns both sides of each facet that two cells share, the one with the lower position first; ascending by the second.
    ///
    /// # Cost
    /// Sorts the facets of all cells, 16 bytes each.
    pub fn interior_facets(&self) -> Vec<[CellFacet; 2]> {
        let corners = corners_of_facets(self.mesh.kind);
        let n_facets = corners.len();
        let shared = SharedEntities::number(self.all_corners(), self.mesh.kind.n_nodes(), corners);
        let side = |place: usize| CellFacet { position: place / n_facets, facet: place % n_facets };
        let places = (0..shared.numbers.len()).filter(|&place| shared.leader(place) != place);
        places.map(|place| [side(shared.leader(place)), side(place)]).collect()
    }
}
