//! Inverse maps: reference coordinates of a point in space.

use femtile_element::tensor::Lagrange;
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellMaps, determinant, inverse};

use crate::functionals::box_tree::Bounds;

/// Maps of cells at single points.
pub(super) struct InverseMaps<'a> {
    maps: CellMaps<'a>,
    shapes: Lagrange,
    d: usize,
}

/// Tolerance of points outside a cell, on the reference cell.
const TOLERANCE: f64 = 1e-9;
/// Most steps of Newton's method.
const MAX_STEPS: usize = 40;

impl<'a> InverseMaps<'a> {
    pub fn new(space: &'a TensorSpace<'a>) -> Self {
        let maps = CellMaps::new(space, &[]);
        let order = maps.order();
        let shapes = Lagrange::new((0..=order).map(|i| i as f64 / order as f64).collect());
        Self { maps, shapes, d: space.dimension() }
    }

    /// Returns a bounding box of the cell at a position.
    ///
    /// Straight cells lie in the box of their corners; curved ones may leave the box of their points by less than half
    /// of its size, if they are sound.
    pub fn around(&self, position: usize) -> Bounds {
        let bounds = Bounds::around(self.maps.nodes(position));
        let share = if self.maps.order() == 1 { TOLERANCE } else { 0.5 };
        let size = bounds.size().into_iter().fold(0.0, f64::max);
        bounds.widened([share * size; 3])
    }

    /// Returns the reference coordinates of a point if it lies in the cell at a position.
    pub fn inside(&self, position: usize, point: [f64; 3]) -> Option<[f64; 3]> {
        if !self.around(position).contains(point) {
            return None;
        }
        let nodes = self.maps.nodes(position);
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
            let (place, jacobian) = self.map(nodes, at);
            let gap: [f64; 3] = std::array::from_fn(|i| point[i] - place[i]);
            let inverse = Some(&jacobian).filter(|j| determinant(j) != 0.0).map(inverse)?;
            let step: [f64; 3] = std::array::from_fn(|a| (0..3).map(|i| inverse[a][i] * gap[i]).sum());
            at = std::array::from_fn(|a| (at[a] + step[a]).clamp(-1.0, 2.0));
            if step.iter().all(|s| s.abs() < 0.01 * TOLERANCE) {
                let reference = if self.d == 2 { 0.0 } else { 1.0 };
                let highest = [1.0, 1.0, reference];
                let is_inside = (0..3).all(|a| (-TOLERANCE..=highest[a] + TOLERANCE).contains(&at[a]));
                return is_inside.then_some(at);
            }
        }
        None
    }

    /// Returns the distance from a point to the cell at a position, by repeated grid refinement around the nearest grid
    /// point.
    pub fn distance(&self, position: usize, point: [f64; 3]) -> f64 {
        let nodes = self.maps.nodes(position);
        let square = |at: [f64; 3]| -> f64 {
            let (place, _) = self.map(&nodes, at);
            (0..3).map(|i| (place[i] - point[i]).powi(2)).sum()
        };
        let (mut best, mut width) = ([0.5, 0.5, if self.d == 2 { 0.0 } else { 0.5 }], 0.5);
        let mut found = square(best);
        while width > TOLERANCE {
            let centre = best;
            for k in 0..3usize.pow(self.d as u32) {
                let offset =
                    |a: usize| if a < self.d { (k / 3usize.pow(a as u32) % 3) as f64 - 1.0 } else { 0.0 };
                let at = std::array::from_fn(|a| (centre[a] + width * offset(a)).clamp(0.0, 1.0));
                let here = square(at);
                if here < found {
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
        let (values, slopes) = (self.shapes.values(&at[..self.d]), self.shapes.slopes(&at[..self.d]));
        let (mut place, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
        if self.d == 2 {
            (place[2], jacobian[2][2]) = (at[2], 1.0);
        }
        let n = values.n_shapes;
        for (k, node) in nodes.iter().enumerate() {
            let factor = |a: usize, sloped: bool| {
                let table = if sloped { &slopes } else { &values };
                table.row(a)[k / n.pow(a as u32) % n]
            };
            let product = |axis: usize| -> f64 { (0..self.d).map(|a| factor(a, a == axis)).product() };
            let shape = product(usize::MAX);
            (0..self.d).for_each(|i| place[i] += shape * node[i]);
            for axis in 0..self.d {
                let slope = product(axis);
                (0..self.d).for_each(|i| jacobian[i][axis] += slope * node[i]);
            }
        }
        (place, jacobian)
    }
}
