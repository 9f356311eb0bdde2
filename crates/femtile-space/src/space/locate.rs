//! Cells at points of space, and the inverse maps of cells.

use femtile_device::parallel;
use femtile_element::P1;
use rayon::prelude::*;

use super::Space;
use super::map::element_of_map;
use crate::box_tree::{Bounds, BoxTree};
use crate::element::Element;
use crate::geometry::{CellMaps, determinant, inverse};

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
    /// Those of quadrilaterals and hexahedra, with the element of the coordinates.
    tensor: Option<(CellMaps<'s>, Element)>,
    d: usize,
}

/// Tolerance of points outside a cell, on the reference cell.
const TOLERANCE: f64 = 1e-9;
/// Most steps of Newton's method.
const MAX_STEPS: usize = 40;
/// Most points for which all cells are visited instead of a tree.
const FEW: usize = 2;

impl Space<'_> {
    /// Returns for each point the first cell in the order of visits that contains it; none outside the mesh.
    ///
    /// # Cost
    /// For one or two points a visit of the bounding boxes of all cells, for more a tree of these. Newton's method for the maps
    /// of quadrilaterals and hexahedra whose boxes contain a point.
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
        let tensor = space.tensor().map(|tensor| {
            let maps = CellMaps::new(tensor, &[]);
            let element = element_of_map(tensor, &maps);
            (maps, element)
        });
        Self { space, tensor, d: space.mesh().dimension() }
    }

    /// Calls `found` with each node of the map of the cell at a position.
    fn for_nodes(&self, position: usize, mut found: impl FnMut([f64; 3])) {
        match &self.tensor {
            Some((maps, _)) => maps.for_nodes(position, found),
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
        let nodes = self.nodes(position);
        if self.tensor.is_none() {
            // The map is affine.
            return self.step(&nodes, point, [0.0; 3]).filter(|at| self.contains(*at, TOLERANCE));
        }
        let near = [0.25, 0.75].map(|z| [0.25, 0.75].map(|y| [0.25, 0.75].map(|x| [x, y, z])));
        // The centre is a sufficient initial guess in nearly all cells; very curved ones need others.
        let starts = std::iter::once([0.5; 3]).chain(near.into_iter().flatten().flatten());
        starts.take(1 + (1 << self.d)).find_map(|start| self.newton(&nodes, point, start))
    }

    fn newton(&self, nodes: &[[f64; 3]], point: [f64; 3], mut at: [f64; 3]) -> Option<[f64; 3]> {
        if self.d == 2 {
            at[2] = 0.0;
        }
        for _ in 0..MAX_STEPS {
            let step = self.step(nodes, point, at)?;
            at = std::array::from_fn(|a| (at[a] + step[a]).clamp(-1.0, 2.0));
            if step.iter().all(|s| s.abs() < 0.01 * TOLERANCE) {
                return self.contains(at, TOLERANCE).then_some(at);
            }
        }
        None
    }

    /// Returns a step of Newton's method at reference coordinates.
    fn step(&self, nodes: &[[f64; 3]], point: [f64; 3], at: [f64; 3]) -> Option<[f64; 3]> {
        let (place, jacobian) = self.map(nodes, at);
        let gap: [f64; 3] = std::array::from_fn(|i| point[i] - place[i]);
        let inverse = Some(&jacobian).filter(|j| determinant(j) != 0.0).map(inverse)?;
        Some(std::array::from_fn(|a| (0..3).map(|i| inverse[a][i] * gap[i]).sum()))
    }

    /// Returns whether the reference cell, widened by a tolerance, has a point.
    fn contains(&self, at: [f64; 3], tolerance: f64) -> bool {
        let (own, beyond) = at.split_at(self.d);
        let largest = match self.tensor {
            None => own.iter().sum(),
            Some(_) => own.iter().copied().fold(0.0, f64::max),
        };
        own.iter().all(|x| *x >= -tolerance)
            && largest <= 1.0 + tolerance
            && beyond.iter().all(|x| x.abs() <= tolerance)
    }

    /// Returns the distance from a point to the cell at a position, by repeated grid refinement around the nearest grid
    /// point.
    fn distance(&self, position: usize, point: [f64; 3]) -> f64 {
        let nodes = self.nodes(position);
        let square = |at: [f64; 3]| -> f64 {
            let (place, _) = self.map(&nodes, at);
            (0..3).map(|i| (place[i] - point[i]).powi(2)).sum()
        };
        let mut width = if self.tensor.is_none() { 0.25 } else { 0.5 };
        let mut best = std::array::from_fn(|a| if a < self.d { width } else { 0.0 });
        let mut found = square(best);
        while width > TOLERANCE {
            let centre = best;
            for k in 0..3usize.pow(self.d as u32) {
                let offset =
                    |a: usize| if a < self.d { (k / 3usize.pow(a as u32) % 3) as f64 - 1.0 } else { 0.0 };
                let at = std::array::from_fn(|a| centre[a] + width * offset(a));
                let here = square(at);
                if self.contains(at, 0.0) && here < found {
                    (best, found) = (at, here);
                }
            }
            if best == centre {
                width *= 0.5;
            }
        }
        found.sqrt()
    }

    /// Returns the point at reference coordinates and the Jacobian there; in two dimensions the third axis is the
    /// identity.
    fn map(&self, nodes: &[[f64; 3]], at: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        let (mut place, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
        if self.d == 2 {
            (place[2], jacobian[2][2]) = (at[2], 1.0);
        }
        let mut add = |node: &[f64; 3], value: f64, slopes: &[f64; 3]| {
            for i in 0..self.d {
                place[i] += value * node[i];
                (0..self.d).for_each(|axis| jacobian[i][axis] += slopes[axis] * node[i]);
            }
        };
        match &self.tensor {
            None => {
                let shapes = P1 { dimension: self.d };
                let (values, slopes) = (shapes.values(at), shapes.reference_gradients());
                (0..nodes.len()).for_each(|k| add(&nodes[k], values[k], &slopes[k]));
            }
            Some((_, element)) => {
                let table = element.tabulate(&[at]);
                (0..nodes.len()).for_each(|k| add(&nodes[k], table.values(0)[k], &table.gradients(0)[k]));
            }
        }
        (place, jacobian)
    }
}
