//! Maps of the reference cell, given by their nodes, and their inverses.

use super::Element;
use crate::geometry::{determinant, inverse, set_normal};

/// Tolerance of points outside a cell, on the reference cell.
pub(crate) const TOLERANCE: f64 = 1e-9;
/// Most steps of Newton's method.
const MAX_STEPS: usize = 40;

impl Element {
    /// Returns the point that the map with these nodes takes to a point of space; none if it lies outside the cell.
    ///
    /// # Cost
    /// Newton's method, which tabulates the shape functions once a step.
    pub fn preimage(&self, nodes: &[[f64; 3]], point: [f64; 3]) -> Option<[f64; 3]> {
        let is_simplex = self.kind.is_simplex();
        // From the first corner of an affine map the coordinates of corners have no rounding errors.
        let first = if is_simplex { 0.0 } else { 0.5 };
        let near = [0.25, 0.75].map(|z| [0.25, 0.75].map(|y| [0.25, 0.75].map(|x| [x, y, z])));
        // The centre is a sufficient initial guess in nearly all quadrilaterals and hexahedra; very curved ones need others.
        let starts = std::iter::once([first; 3]).chain(near.into_iter().flatten().flatten());
        let n_starts = if is_simplex { 1 } else { 1 + (1 << self.dimension()) };
        let size = nodes.iter().flatten().fold(0.0, |most: f64, x| most.max(x.abs()));
        let rounding = 8.0 * f64::EPSILON * size;
        starts.take(n_starts).find_map(|start| self.newton(nodes, (point, rounding), start))
    }

    /// Iterates until the step is small, or the point is met up to rounding errors of coordinates.
    fn newton(
        &self,
        nodes: &[[f64; 3]],
        (point, rounding): ([f64; 3], f64),
        mut at: [f64; 3],
    ) -> Option<[f64; 3]> {
        at[self.dimension()..].fill(0.0);
        for _ in 0..MAX_STEPS {
            let (place, jacobian) = self.image(nodes, at, false);
            let gap: [f64; 3] = std::array::from_fn(|i| point[i] - place[i]);
            let inverse = Some(&jacobian).filter(|j| determinant(j) != 0.0).map(inverse)?;
            let step: [f64; 3] = std::array::from_fn(|a| (0..3).map(|i| inverse[a][i] * gap[i]).sum());
            at = std::array::from_fn(|a| (at[a] + step[a]).clamp(-1.0, 2.0));
            let is_met = gap[..self.dimension()].iter().all(|gap| gap.abs() <= rounding);
            if is_met || step.iter().all(|s| s.abs() < 0.01 * TOLERANCE) {
                return self.contains(at, TOLERANCE).then_some(at);
            }
        }
        None
    }

    /// Returns the point of the reference cell whose image is nearest to a point of space, and their distance; `is_surface` tells
    /// whether the nodes are those of a surface.
    ///
    /// # Cost
    /// Newton's method along the normal of a surface. Where it leaves the cell, and in other cells, repeated grid refinement around
    /// the nearest grid point.
    pub(crate) fn nearest(&self, nodes: &[[f64; 3]], point: [f64; 3], is_surface: bool) -> ([f64; 3], f64) {
        let d = self.dimension();
        let square = |at: [f64; 3]| -> f64 {
            let (place, _) = self.image(nodes, at, is_surface);
            (0..3).map(|i| (place[i] - point[i]).powi(2)).sum()
        };
        if let Some(at) = self.foot(nodes, point).filter(|_| is_surface) {
            return (at, square(at).sqrt());
        }
        let mut width = if self.kind.is_simplex() { 0.25 } else { 0.5 };
        let mut best = std::array::from_fn(|a| if a < d { width } else { 0.0 });
        let mut found = square(best);
        while width > TOLERANCE {
            let centre = best;
            for k in 0..3usize.pow(d as u32) {
                let offset = |a: usize| if a < d { (k / 3usize.pow(a as u32) % 3) as f64 - 1.0 } else { 0.0 };
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
        (best, found.sqrt())
    }

    /// Returns the point of the reference cell on whose normal a point of space lies; none if it is none of the cell.
    fn foot(&self, nodes: &[[f64; 3]], point: [f64; 3]) -> Option<[f64; 3]> {
        let mut at = if self.kind.is_simplex() { [0.25, 0.25, 0.0] } else { [0.5, 0.5, 0.0] };
        for _ in 0..MAX_STEPS {
            let (place, jacobian) = self.image(nodes, at, true);
            let inverse = Some(&jacobian).filter(|j| determinant(j) != 0.0).map(inverse)?;
            let step = [0, 1].map(|a| (0..3).map(|i| inverse[a][i] * (point[i] - place[i])).sum::<f64>());
            at = [(at[0] + step[0]).clamp(-1.0, 2.0), (at[1] + step[1]).clamp(-1.0, 2.0), 0.0];
            if step.iter().all(|s| s.abs() < 0.01 * TOLERANCE) {
                return self.contains(at, TOLERANCE).then_some(at);
            }
        }
        None
    }

    /// Returns whether the reference cell, widened by a tolerance, has a point.
    pub(crate) fn contains(&self, at: [f64; 3], tolerance: f64) -> bool {
        let (own, beyond) = at.split_at(self.dimension());
        let largest = match self.kind.is_simplex() {
            true => own.iter().sum(),
            false => own.iter().copied().fold(0.0, f64::max),
        };
        own.iter().all(|x| *x >= -tolerance)
            && largest <= 1.0 + tolerance
            && beyond.iter().all(|x| x.abs() <= tolerance)
    }

    /// Returns the image of a point under the map with these nodes and the Jacobian there; in the plane the third axis is the
    /// identity, of a surface the third column is the normal.
    pub(crate) fn image(
        &self,
        nodes: &[[f64; 3]],
        at: [f64; 3],
        is_surface: bool,
    ) -> ([f64; 3], [[f64; 3]; 3]) {
        let (d, table) = (self.dimension(), self.tabulate(&[at]));
        let n_axes = if is_surface { 3 } else { d };
        let (mut place, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
        for axis in n_axes..3 {
            (place[axis], jacobian[axis][axis]) = (at[axis], 1.0);
        }
        for (node, (value, slopes)) in nodes.iter().zip(table.values.iter().zip(&table.gradients)) {
            for i in 0..n_axes {
                place[i] += value * node[i];
                (0..d).for_each(|axis| jacobian[i][axis] += slopes[axis] * node[i]);
            }
        }
        if is_surface {
            set_normal(&mut jacobian);
        }
        (place, jacobian)
    }
}
