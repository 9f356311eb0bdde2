//! Cells at points of space, and the inverse maps of cells.

use femtile_device::parallel;
use rayon::prelude::*;

use super::Space;
use super::map::element_of_map;
use crate::box_tree::{Bounds, BoxTree};
use crate::element::{Element, TOLERANCE};
use crate::geometry::CellMaps;

/// A point of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellPoint {
    /// The position of the cell in the order of visits.
    pub position: usize,
    /// The point of the reference cell.
    pub reference: [f64; 3],
}

/// The maps of all cells, for their inversion at single points.
struct Maps<'s> {
    space: &'s Space<'s>,
    /// The element of the coordinates.
    element: Element,
    /// Those of quadrilaterals and hexahedra.
    tensor: Option<CellMaps<'s>>,
}

/// Most points for which all cells are visited instead of a tree.
const FEW: usize = 2;

impl Space<'_> {
    /// Returns for each point the first cell in the order of visits that contains it; none outside the mesh.
    ///
    /// # Cost
    /// For one or two points a visit of the bounding boxes of all cells, for more a tree of these. Newton's method for the maps
    /// of the cells whose boxes contain a point.
    pub fn locate(&self, points: &[[f64; 3]]) -> Vec<Option<CellPoint>> {
        let maps = Maps::new(self);
        let at = |position: usize, point| {
            maps.inside(position, point).map(|reference| CellPoint { position, reference })
        };
        if points.len() <= FEW {
            let cells = || (0..self.n_cells()).into_par_iter();
            return points
                .iter()
                .map(|&point| cells().find_map_first(|position| at(position, point)))
                .collect();
        }
        let tree = BoxTree::new(&parallel::map(self.n_cells(), 1, |position| maps.around(position)));
        let found = |point| Some(tree.first(point, |position| at(position as usize, point))?.1);
        parallel::map(points.len(), 1, |i| found(points[i]))
    }

    /// Returns the cell of the mesh that is nearest to a point, and its distance; `None` without cells.
    ///
    /// # Cost
    /// A search of the reference cell for each cell whose bounding box is nearer.
    pub fn nearest_cell(&self, point: [f64; 3]) -> Option<(usize, f64)> {
        let maps = Maps::new(self);
        let mut boxes =
            parallel::map(self.n_cells(), 1, |position| (maps.around(position).distance(point), position));
        boxes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut nearest: Option<(usize, f64)> = None;
        for (lower_bound, position) in boxes {
            if nearest.is_some_and(|(_, distance)| lower_bound >= distance) {
                break;
            }
            let found = maps.distance(position, point);
            if nearest.is_none_or(|(_, distance)| found < distance) {
                nearest = Some((self.cell(position), found));
            }
        }
        nearest
    }
}

impl<'s> Maps<'s> {
    fn new(space: &'s Space<'s>) -> Self {
        let Some(tensor) = space.tensor() else {
            return Self { space, element: Element::linear_simplex(space.mesh().kind), tensor: None };
        };
        let maps = CellMaps::new(tensor, &[]);
        Self { space, element: element_of_map(tensor, &maps), tensor: Some(maps) }
    }

    /// Calls `found` with each node of the map of the cell at a position.
    fn for_nodes(&self, position: usize, mut found: impl FnMut([f64; 3])) {
        match &self.tensor {
            Some(maps) => maps.for_nodes(position, found),
            None => {
                let mesh = self.space.mesh();
                mesh.cell(position).iter().for_each(|&node| found(mesh.points[node as usize]));
            }
        }
    }

    fn nodes(&self, position: usize) -> Vec<[f64; 3]> {
        let mut nodes = Vec::with_capacity(8);
        self.for_nodes(position, |node| nodes.push(node));
        nodes
    }

    /// Returns a bounding box of the cell at a position.
    ///
    /// Straight cells lie in the box of their corners; curved ones may leave the box of their points by less than half
    /// of its size, if they are sound.
    fn around(&self, position: usize) -> Bounds {
        let mut bounds = Bounds::EMPTY;
        self.for_nodes(position, |node| bounds = bounds.with(node));
        let share = if self.space.mesh().curved.is_none() { TOLERANCE } else { 0.5 };
        let size = bounds.size().into_iter().fold(0.0, f64::max);
        bounds.widened([share * size; 3])
    }

    /// Returns the reference coordinates of a point if it lies in the cell at a position.
    fn inside(&self, position: usize, point: [f64; 3]) -> Option<[f64; 3]> {
        if !self.around(position).contains(point) {
            return None;
        }
        self.element.preimage(&self.nodes(position), point)
    }

    /// Returns the distance from a point to the cell at a position, by repeated grid refinement around the nearest grid
    /// point.
    fn distance(&self, position: usize, point: [f64; 3]) -> f64 {
        let (nodes, d) = (self.nodes(position), self.element.dimension());
        let square = |at: [f64; 3]| -> f64 {
            let (place, _) = self.element.image(&nodes, at);
            (0..3).map(|i| (place[i] - point[i]).powi(2)).sum()
        };
        let mut width = if self.tensor.is_none() { 0.25 } else { 0.5 };
        let mut best = std::array::from_fn(|a| if a < d { width } else { 0.0 });
        let mut found = square(best);
        while width > TOLERANCE {
            let centre = best;
            for k in 0..3usize.pow(d as u32) {
                let offset = |a: usize| if a < d { (k / 3usize.pow(a as u32) % 3) as f64 - 1.0 } else { 0.0 };
                let at = std::array::from_fn(|a| centre[a] + width * offset(a));
                let here = square(at);
                if self.element.contains(at, 0.0) && here < found {
                    (best, found) = (at, here);
                }
            }
            if best == centre {
                width *= 0.5;
            }
        }
        found.sqrt()
    }
}
