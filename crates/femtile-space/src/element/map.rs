//! Maps of the reference cell, given by their nodes, and their inverses.

use super::Element;
use crate::geometry::{determinant, inverse};

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
            let (place, jacobian) = self.image(nodes, at);
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

    /// Returns the image of a point under the map with these nodes and the Jacobian there; in two dimensions the third axis is the
    /// identity.
    pub(crate) fn image(&self, nodes: &[[f64; 3]], at: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        let (d, table) = (self.dimension(), self.tabulate(&[at]));
        let (mut place, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
        for axis in d..3 {
            (place[axis], jacobian[axis][axis]) = (at[axis], 1.0);
        }
        for (node, (value, slopes)) in nodes.iter().zip(table.values.iter().zip(&table.gradients)) {
            for i in 0..d {
                place[i] += value * node[i];
                (0..d).for_each(|axis| jacobian[i][axis] += slopes[axis] * node[i]);
            }
        }
        (place, jacobian)
    }
}
