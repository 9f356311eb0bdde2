//! Matrices of convection–diffusion on the unit cube with Dirichlet values on its surface.

use std::f64::consts::PI;

use femtile_device::Cpu;
use femtile_sparse::{Csr, Triplets};

/// A velocity without divergence, or nearly so.
#[derive(Debug, Clone, Copy)]
pub enum Flow {
    /// In by one side, out by others.
    Through,
    /// Around the axis of the cube.
    Recirculating,
}

impl Flow {
    fn at(self, [x, y, _]: [f64; 3]) -> [f64; 3] {
        match self {
            Self::Through => [1.0, 0.5 * (PI * x).cos(), 0.25],
            Self::Recirculating => [y - 0.5, 0.5 - x, 0.1 * (PI * x).sin()],
        }
    }

    /// The diffusion for which the largest |b| h / 2D is the given number.
    fn diffusion(self, h: f64, peclet: f64) -> f64 {
        let largest = match self {
            Self::Through => norm([1.0, 0.5, 0.25]),
            Self::Recirculating => norm([0.5, 0.5, 0.0]),
        };
        largest * h / (2.0 * peclet)
    }
}

fn norm(b: [f64; 3]) -> f64 {
    dot(b, b).sqrt()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Entries on `n`³ nodes; rows and columns of the surface are those of the identity.
struct Cube {
    n: usize,
    triplets: Triplets<f64>,
}

impl Cube {
    fn new(n: usize) -> Self {
        Self { n, triplets: Triplets::new(n * n * n, n * n * n) }
    }

    fn add(&mut self, row: [usize; 3], column: [usize; 3], value: f64) {
        let n = self.n;
        let is_inner = |node: [usize; 3]| node.iter().all(|&i| i > 0 && i + 1 < n);
        if is_inner(row) && is_inner(column) {
            let [row, column] = [row, column].map(|[x, y, z]| x + n * (y + n * z));
            self.triplets.push(row, column, value).unwrap();
        }
    }

    fn into_matrix(mut self, cpu: &Cpu) -> Csr<f64, Cpu> {
        for [x, y, z] in nodes(self.n) {
            if [x, y, z].iter().any(|&i| i == 0 || i + 1 == self.n) {
                let row = x + self.n * (y + self.n * z);
                self.triplets.push(row, row, 1.0).unwrap();
            }
        }
        self.triplets.into_csr(cpu).unwrap().matrix
    }
}

fn nodes(n: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..n * n * n).map(move |i| [i % n, i / n % n, i / n / n])
}

/// Trilinear elements with streamline diffusion, $\tau = h/2|b| \, (\coth Pe - 1/Pe)$.
pub fn galerkin_supg(cpu: &Cpu, n: usize, flow: Flow, peclet: f64) -> Csr<f64, Cpu> {
    let h = 1.0 / (n - 1) as f64;
    let (d, mut cube) = (flow.diffusion(h, peclet), Cube::new(n));
    let corner = |i: usize| [i & 1, i >> 1 & 1, i >> 2];
    let points: Vec<_> = (0..8)
        .map(|q| {
            let at = corner(q).map(|side| 0.5 + (side as f64 - 0.5) / 3.0_f64.sqrt());
            let shape = |i: usize, slope: usize| -> f64 {
                let factor = |axis: usize| match (axis == slope, corner(i)[axis]) {
                    (true, side) => (2.0 * side as f64 - 1.0) / h,
                    (false, 0) => 1.0 - at[axis],
                    (false, _) => at[axis],
                };
                factor(0) * factor(1) * factor(2)
            };
            let shapes: Vec<(f64, [f64; 3])> =
                (0..8).map(|i| (shape(i, 3), [0, 1, 2].map(|axis| shape(i, axis)))).collect();
            (at, shapes)
        })
        .collect();
    for cell in nodes(n - 1) {
        let mut element = [[0.0; 8]; 8];
        for (at, shapes) in &points {
            let b = flow.at([0, 1, 2].map(|axis| (cell[axis] as f64 + at[axis]) * h));
            let local = norm(b) * h / (2.0 * d);
            let tau =
                if local < 1e-3 { 0.0 } else { h / (2.0 * norm(b)) * (1.0 / local.tanh() - 1.0 / local) };
            for (row, (v, slope_v)) in element.iter_mut().zip(shapes) {
                for (entry, (_, slope_u)) in row.iter_mut().zip(shapes) {
                    let along = dot(b, *slope_u);
                    let term = d * dot(*slope_v, *slope_u) + (v + tau * dot(b, *slope_v)) * along;
                    *entry += h * h * h / 8.0 * term;
                }
            }
        }
        let node = |i: usize| [0, 1, 2].map(|axis| cell[axis] + corner(i)[axis]);
        for (i, row) in element.iter().enumerate() {
            row.iter().enumerate().for_each(|(j, &value)| cube.add(node(i), node(j), value / (h * h)));
        }
    }
    cube.into_matrix(cpu)
}

/// Linear elements with streamline diffusion on the six tetrahedra of each cell, whose edges along the axes are a path from its
/// first corner to its last.
///
/// $\tau = (4\, b \cdot G b + (12 D / h^2)^2)^{-1/2}$ with $G = \sum_i \nabla\varphi_i \nabla\varphi_i^\mathsf{T} / 2$.
pub fn tetrahedra_supg(cpu: &Cpu, n: usize, flow: Flow, peclet: f64) -> Csr<f64, Cpu> {
    let h = 1.0 / (n - 1) as f64;
    let (d, mut cube) = (flow.diffusion(h, peclet), Cube::new(n));
    for path in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (mut corners, mut slopes) = ([[0; 3]; 4], [[0.0; 3]; 4]);
        for (k, axis) in path.into_iter().enumerate() {
            corners[k + 1] = corners[k];
            corners[k + 1][axis] += 1;
            slopes[k][axis] -= 1.0 / h;
            slopes[k + 1][axis] += 1.0 / h;
        }
        let centre =
            [0, 1, 2].map(|axis| corners.iter().map(|corner| corner[axis] as f64 / 4.0).sum::<f64>());
        for cell in nodes(n - 1) {
            let b = flow.at([0, 1, 2].map(|axis| (cell[axis] as f64 + centre[axis]) * h));
            let along = slopes.map(|slope| dot(b, slope));
            let of_flow = 2.0 * along.iter().map(|along| along * along).sum::<f64>();
            let tau = (of_flow + (12.0 * d / (h * h)).powi(2)).powf(-0.5);
            let node = |i: usize| [0, 1, 2].map(|axis| cell[axis] + corners[i][axis]);
            for (i, j) in (0..16).map(|entry| (entry / 4, entry % 4)) {
                let term = d * dot(slopes[i], slopes[j]) + (0.25 + tau * along[i]) * along[j];
                cube.add(node(i), node(j), h / 6.0 * term);
            }
        }
    }
    cube.into_matrix(cpu)
}

/// Finite volumes with upwind differences of first order.
pub fn upwind(cpu: &Cpu, n: usize, flow: Flow, peclet: f64) -> Csr<f64, Cpu> {
    let h = 1.0 / (n - 1) as f64;
    let (d, mut cube) = (flow.diffusion(h, peclet), Cube::new(n));
    for node in nodes(n).filter(|node| node.iter().all(|&i| i > 0 && i + 1 < n)) {
        for (axis, side) in (0..3).flat_map(|axis| [(axis, -1.0), (axis, 1.0)]) {
            let mut face = node.map(|i| i as f64 * h);
            face[axis] += 0.5 * side * h;
            let out = side * flow.at(face)[axis];
            let mut other = node;
            other[axis] = (other[axis] as f64 + side) as usize;
            cube.add(node, node, out.max(0.0) + d / h);
            cube.add(node, other, out.min(0.0) - d / h);
        }
    }
    cube.into_matrix(cpu)
}
