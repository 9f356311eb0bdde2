//! Evaluation on triangles and tetrahedra by tables of the shape functions.

use femtile_device::parallel;
use femtile_mesh::Mesh;
use femtile_space::geometry::{determinant, inverse, set_normal};
use femtile_space::{ReferenceRule, Space, Tabulation};

use super::{CELLS, CellPoints, Found, Samples, Wanted, dot};
use crate::FemError;
use crate::forms::Compiled;

const IDENTITY: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// Tables for evaluation at points of the reference simplex.
pub(crate) struct SimplexBasis<'a> {
    pub space: &'a Space<'a>,
    pub rule: ReferenceRule,
    table: Tabulation,
}

impl<'a> SimplexBasis<'a> {
    pub fn new(space: &'a Space<'a>, rule: ReferenceRule) -> Self {
        Self { space, table: space.element().tabulate(&rule.points), rule }
    }

    /// Computes the map of a cell, whose volume may be zero, and its points if they are needed.
    pub fn write_points(&self, points: &mut CellPoints, cell: usize, are_needed: bool) {
        let mesh = self.space.mesh();
        let (d, nodes) = (mesh.dimension(), mesh.cell(cell));
        let origin = mesh.points[nodes[0] as usize];
        let mut jacobian = IDENTITY;
        for axis in 0..d {
            let end = mesh.points[nodes[axis + 1] as usize];
            (0..mesh.space_dimension()).for_each(|i| jacobian[i][axis] = end[i] - origin[i]);
        }
        if mesh.is_surface {
            set_normal(&mut jacobian);
        }
        let volume = determinant(&jacobian).abs();
        points.cell = cell as u32;
        points.map.jacobians.clear();
        points.map.jacobians.push(jacobian);
        points.weights.clear();
        points.weights.extend(self.rule.weights.iter().map(|weight| weight * volume));
        points.map.points.clear();
        if !are_needed {
            return;
        }
        points.map.points.extend(self.rule.points.iter().map(|at| {
            let step = jacobian.map(|row| row[0] * at[0] + row[1] * at[1] + row[2] * at[2]);
            [origin[0] + step[0], origin[1] + step[1], origin[2] + step[2]]
        }));
    }

    /// Computes the points of the cells of samples, which have N corners, and a linear function there, by loops of a fixed length.
    pub fn sample_linear<const N: usize>(&self, samples: &mut Samples, wanted: Wanted<'_>) {
        let (mesh, n_q, shapes) = (self.space.mesh(), self.rule.n_q(), self.shapes::<N>());
        let n = n_q * samples.positions.len();
        let Samples { points, weights, values, gradients, .. } = samples;
        weights.resize(n, 0.0);
        values.resize(if wanted.u.is_empty() { 0 } else { n }, 0.0);
        gradients.resize(if wanted.gradients { n } else { 0 }, [0.0; 3]);
        for (i, &cell) in samples.positions.iter().enumerate() {
            let own = i * n_q..(i + 1) * n_q;
            let nodes = nodes::<N>(mesh, cell);
            let corners = nodes.map(|node| mesh.points[node as usize]);
            let jacobian = jacobian(mesh, &corners);
            let volume = determinant(&jacobian).abs();
            let own_weights = weights[own.clone()].iter_mut().zip(&self.rule.weights);
            own_weights.for_each(|(to, weight)| *to = weight * volume);
            if wanted.points {
                let along =
                    |axis: usize| shapes.iter().map(move |shapes| at(shapes, corners.map(|x| x[axis])));
                points.extend_with(cell as u32, along);
            }
            if wanted.u.is_empty() {
                continue;
            }
            let u = nodes.map(|node| wanted.u[node as usize]);
            values[own.clone()].iter_mut().zip(shapes).for_each(|(value, shapes)| *value = at(shapes, u));
            if wanted.gradients {
                let mut slopes = [0.0; 3];
                (1..N).for_each(|axis| slopes[axis - 1] = u[axis] - u[0]);
                let back = inverse(&jacobian);
                let gradient = [0, 1, 2].map(|i| (0..3).map(|axis| back[axis][i] * slopes[axis]).sum());
                gradients[own].fill(gradient);
            }
        }
        if wanted.unknown {
            points.unknown.extend_from_slice(values);
        }
    }

    /// Returns the values of the shape functions of N corners at each point.
    fn shapes<const N: usize>(&self) -> &[[f64; N]] {
        self.table.values.as_chunks().0
    }

    /// Calls `visit` with the moments of linear functions in cells with N corners, as
    /// [`Evaluation::moments`](super::Evaluation::moments) does, by loops of a fixed length.
    pub fn linear_moments<const N: usize>(&self, samples: &Samples, mut visit: impl FnMut(u32, f64)) {
        let (mesh, n_q) = (self.space.mesh(), self.rule.n_q());
        for (i, &cell) in samples.positions.iter().enumerate() {
            let nodes = nodes::<N>(mesh, cell);
            let own = i * n_q..(i + 1) * n_q;
            let (mut sums, weights) = ([0.0; N], &samples.weights[own.clone()]);
            let values = samples.given[own.clone()].iter().zip(weights);
            for ((value, weight), shapes) in values.zip(self.shapes::<N>()) {
                (0..N).for_each(|a| sums[a] += weight * value * shapes[a]);
            }
            if !samples.gradients.is_empty() {
                let mut flux = [0.0; 3];
                for (own, weight) in samples.gradients[own].iter().zip(weights) {
                    (0..3).for_each(|a| flux[a] += weight * own[a]);
                }
                let back = inverse(&jacobian(mesh, &nodes.map(|node| mesh.points[node as usize])));
                for (axis, row) in back[..N - 1].iter().enumerate() {
                    let along = dot(*row, flux);
                    sums[axis + 1] += along;
                    sums[0] -= along;
                }
            }
            nodes.into_iter().zip(sums).for_each(|(node, sum)| visit(node, sum));
        }
    }

    pub fn values(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        let Found { nodal, function, .. } = found;
        nodal.clear();
        nodal.extend(points.dofs.iter().map(|&dof| u[dof as usize]));
        function.values.clear();
        for shapes in self.table.values.chunks_exact(nodal.len()) {
            function.values.push(nodal.iter().zip(shapes).map(|(u, shape)| u * shape).sum());
        }
    }

    pub fn gradients(&self, found: &mut Found, points: &CellPoints, u: &[f64]) {
        self.values(found, points, u);
        let back = inverse(&points.map.jacobians[0]);
        found.gradients.clear();
        for q in 0..self.rule.n_q() {
            let mut slopes = [0.0; 3];
            for (u, shape) in found.nodal.iter().zip(self.table.gradients(q)) {
                (0..3).for_each(|axis| slopes[axis] += u * shape[axis]);
            }
            found
                .gradients
                .push([0, 1, 2].map(|i| (0..3).map(|axis| back[axis][i] * slopes[axis]).sum::<f64>()));
        }
    }

    pub fn interpolate(&self, vectors: &mut Vec<[f64; 3]>, nodal: &[[f64; 3]]) {
        let combined = |shapes: &[f64]| {
            let mut sum = [0.0; 3];
            for (vector, shape) in nodal.iter().zip(shapes) {
                (0..3).for_each(|a| sum[a] += vector[a] * shape);
            }
            sum
        };
        vectors.extend(self.table.values.chunks_exact(nodal.len()).map(combined));
    }

    pub fn moments<'f>(&self, found: &'f mut Found, points: &CellPoints) -> &'f [f64] {
        let sums = &mut found.function.values;
        sums.clear();
        sums.resize(points.dofs.len(), 0.0);
        for (q, (value, weight)) in found.given.iter().zip(&points.weights).enumerate() {
            let shapes = self.table.values(q).iter();
            sums.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += weight * value * shape);
        }
        sums
    }

    pub fn add_moments(&self, out: &mut [f64], f: &Compiled<'_>) -> Result<(), FemError> {
        let (n_cells, n_q, n) = (self.space.n_cells(), self.rule.n_q(), self.table.n_dofs);
        let of_block = |(points, samples): &mut (CellPoints, Samples), block: usize| {
            let cells = block * CELLS..n_cells.min((block + 1) * CELLS);
            samples.clear();
            for cell in cells.clone() {
                self.write_points(points, cell, true);
                samples.points.extend(cell as u32, &points.map.points);
                samples.weights.extend_from_slice(&points.weights);
            }
            samples.eval(f)?;
            let mut moments = vec![0.0; cells.len() * n];
            for (i, sums) in moments.chunks_exact_mut(n).enumerate() {
                for (q, at) in (i * n_q..(i + 1) * n_q).enumerate() {
                    let weighted = samples.weights[at] * samples.given[at];
                    let shapes = self.table.values(q).iter();
                    sums.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += weighted * shape);
                }
            }
            Ok(moments)
        };
        let found: Vec<Result<Vec<f64>, FemError>> =
            parallel::map_with(n_cells.div_ceil(CELLS), 1, Default::default, of_block);
        let mut dofs = vec![0; n];
        for (block, moments) in found.into_iter().enumerate() {
            for (cell, moments) in (block * CELLS..).zip(moments?.chunks_exact(n)) {
                self.space.cell_dofs(cell, &mut dofs);
                dofs.iter().zip(moments).for_each(|(&dof, moment)| out[dof as usize] += moment);
            }
        }
        Ok(())
    }

    pub fn weak_moments(&self, found: &mut Found, points: &CellPoints) -> Vec<f64> {
        let mut sums = self.moments(found, points).to_vec();
        if found.gradients.is_empty() {
            return sums;
        }
        let back = inverse(&points.map.jacobians[0]);
        for (q, (flux, weight)) in found.gradients.iter().zip(&points.weights).enumerate() {
            let own = back.map(|row| weight * (row[0] * flux[0] + row[1] * flux[1] + row[2] * flux[2]));
            for (sum, shape) in sums.iter_mut().zip(self.table.gradients(q)) {
                *sum += own[0] * shape[0] + own[1] * shape[1] + own[2] * shape[2];
            }
        }
        sums
    }
}

/// Returns the nodes of a simplex with N corners.
pub(super) fn nodes<const N: usize>(mesh: &Mesh, cell: usize) -> [u32; N] {
    mesh.cells.as_chunks().0[cell]
}

/// Returns the value of a linear function at a point from those at the corners.
fn at<const N: usize>(shapes: &[f64; N], values: [f64; N]) -> f64 {
    (0..N).map(|i| shapes[i] * values[i]).sum()
}

/// Returns the Jacobian of a simplex of a mesh with N corners; in the plane the third axis is the identity, on a surface the normal.
pub(super) fn jacobian<const N: usize>(mesh: &Mesh, corners: &[[f64; 3]; N]) -> [[f64; 3]; 3] {
    let mut jacobian = IDENTITY;
    for axis in 1..N {
        let n_axes = if mesh.is_surface { 3 } else { N - 1 };
        (0..n_axes).for_each(|i| jacobian[i][axis - 1] = corners[axis][i] - corners[0][i]);
    }
    if mesh.is_surface {
        set_normal(&mut jacobian);
    }
    jacobian
}
