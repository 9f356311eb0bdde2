//! Cells at points of space, and the inverse maps of cells.

use std::cell::Cell;

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
pub(crate) struct Maps<'s> {
    space: &'s Space<'s>,
    /// The element of the coordinates.
    pub element: Element,
    /// Those of quadrilaterals and hexahedra.
    tensor: Option<CellMaps<'s>>,
}

/// Largest distance from the cell of a surface to a point that stands for the nearest one of the cell, in sizes of the cell: flat cells
/// lie off the curved surface that they stand for.
const BESIDE: f64 = 0.1;

/// Most points for which all cells are visited instead of a tree.
const FEW: usize = 2;

impl Space<'_> {
    /// Returns for each point the first cell in the order of visits that contains it; none outside the mesh. A point beside a surface,
    /// by a tenth of the size of the cell at most, stands for the nearest point of the surface.
    ///
    /// # Cost
    /// For one or two points a visit of the bounding boxes of all cells, for more a tree of these. Newton's method for the maps
    /// of the cells whose boxes contain a point.
    pub fn locate(&self, points: &[[f64; 3]]) -> Vec<Option<CellPoint>> {
        let maps = Maps::new(self);
        if self.mesh.is_surface {
            return self.locate_beside(&maps, points);
        }
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

    /// Returns the nearest point of a surface for each point, of several the one in the first cell; none far from all cells.
    fn locate_beside(&self, maps: &Maps<'_>, points: &[[f64; 3]]) -> Vec<Option<CellPoint>> {
        let tree = BoxTree::new(&parallel::map(self.n_cells(), 1, |position| maps.around(position)));
        let found = |point: [f64; 3]| {
            let best = Cell::new(None);
            let keep_nearer = |position: u32| {
                let position = position as usize;
                let (reference, distance) = maps.beside(position, point)?;
                let is_nearer = |(at, other): (CellPoint, f64)| {
                    distance < other || distance == other && position < at.position
                };
                if best.get().is_none_or(is_nearer) {
                    best.set(Some((CellPoint { position, reference }, distance)));
                }
                None::<()>
            };
            tree.first(point, keep_nearer);
            best.get().map(|(at, _)| at)
        };
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
    pub fn new(space: &'s Space<'s>) -> Self {
        let Some(tensor) = space.tensor() else {
            return Self { space, element: Element::linear_simplex(space.mesh().kind), tensor: None };
        };
        let maps = CellMaps::new(tensor, &[]);
        Self { space, element: element_of_map(tensor, &maps), tensor: Some(maps) }
    }

    pub fn space(&self) -> &'s Space<'s> {
        self.space
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

    /// Returns the nodes of the map of the cell at a position.
    pub fn nodes(&self, position: usize) -> Vec<[f64; 3]> {
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
        let mesh = self.space.mesh();
        let share = match mesh.curved {
            None if mesh.is_surface => BESIDE,
            None => TOLERANCE,
            Some(_) => 0.5,
        };
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

    /// Returns the distance from a point to the cell at a position.
    fn distance(&self, position: usize, point: [f64; 3]) -> f64 {
        self.element.nearest(&self.nodes(position), point, self.space.mesh().is_surface).1
    }

    /// Returns the reference coordinates of the point of the cell at a position that is nearest to a point beside a surface, and
    /// their distance, if it is small beside the cell.
    fn beside(&self, position: usize, point: [f64; 3]) -> Option<([f64; 3], f64)> {
        if !self.around(position).contains(point) {
            return None;
        }
        let nodes = self.nodes(position);
        let size = nodes.iter().fold(Bounds::EMPTY, |all, node| all.with(*node)).size();
        let found = self.element.nearest(&nodes, point, true);
        (found.1 <= BESIDE * size.into_iter().fold(0.0, f64::max)).then_some(found)
    }
}
