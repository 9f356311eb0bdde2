use std::iter::repeat_n;

use femtile_device::{Buffer, Cpu};
use femtile_element::tensor::Lagrange;
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{largest_preconditioned, start_of_lanczos};
use femtile_sum_factorization::{SumFactorization, lanes};

use super::mapped_patch::MappedPatches;
use super::vertex_patch::Patches;
use crate::axis::unknowns;
use crate::cell_patches::{ByOpen, Span, vertex_patches};
use crate::cpu::each;
use crate::grid::{BoxGrid, all};
use crate::operator::BoxOperator;

/// The largest eigenvalue of what a step takes off: the upper half of all is damped to a third at least.
const LARGEST: f64 = 4.0 / 3.0;
/// Steps of Lanczos' method, which find the largest eigenvalue within five per cent.
const STEPS: usize = 12;

/// Solves on the nodes inside the cells around every vertex, all with the same residual:
/// $$ x \leftarrow x + \omega \sum_j R_j^\mathsf{T} W_j A_j^{-1} W_j R_j (b - A x), \qquad
/// \sum_j R_j^\mathsf{T} W_j^2 R_j = I. $$
///
/// $W_j^2$ is diagonal: at each node the hat of vertex j, which falls linearly along each axis to zero where the patch ends,
/// over the sum of the hats of all vertices with an unknown, which is one but in cells where values are given. Without weights a function on a
/// single cell, which each of $2^d$ patches finds, has an eigenvalue of $2^d$, and one across cells of about one; with
/// hats none exceeds 1.5 on squares and cubes, whatever the degree.
///
/// $\omega$ is 4/3 over the largest eigenvalue. A step is symmetric in itself, and no error grows in energy.
///
/// # Cost
/// A product and, for each patch, six products with 1-D matrices of 2k − 1 rows; two vectors of room, one of weights. To set up,
/// twelve steps: on a few cells of the same widths where cells are rectangles, on all others.
/// # Source
/// `[cui2024]`, eqs. (2.5) and (2.6), for what a patch finds. Differs: all of them at once, with weights.
#[derive(Debug, Clone)]
pub struct AdditivePatches<T> {
    cpu: Cpu,
    operator: BoxOperator<T>,
    solves: Solves<T>,
    /// Square roots of the hat of a vertex, on the nodes inside its patch, in lanes.
    hats: ByOpen<Vec<T>>,
    /// Square roots of $\omega$ over the sum of hats, on each node.
    shares: Vec<T>,
}

/// What solves on patches.
#[derive(Debug, Clone)]
enum Solves<T> {
    Exact(Box<Patches<T>>),
    Mapped(Box<MappedPatches<T>>),
}

impl<T: SumFactorization> AdditivePatches<T> {
    /// # Errors
    /// What the operator reports.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Result<Self, LinalgError> {
        let thin = grid.thin_axes();
        let mut patches = Self::undamped(cpu, grid, thin);
        let damping = match patches.solves {
            Solves::Exact(_) => AdditivePatches::<f64>::damping(cpu, grid, thin)?,
            Solves::Mapped(_) => LARGEST / patches.largest()?,
        };
        let root = T::from_f64(damping.sqrt());
        patches.shares.iter_mut().for_each(|share| *share *= root);
        Ok(patches)
    }

    /// $\omega$ on a grid of rectangles, where patches have all cells along the thin axes.
    ///
    /// # Errors
    /// What the operator reports.
    pub fn damping(cpu: &Cpu, grid: &BoxGrid, thin: [bool; 3]) -> Result<f64, LinalgError> {
        Ok(LARGEST / Self::undamped(cpu, &grid.sample(), thin).largest()?)
    }

    /// With $\omega = 1$.
    fn undamped(cpu: &Cpu, grid: &BoxGrid, thin: [bool; 3]) -> Self {
        let solves = match grid.mapping() {
            None => Solves::Exact(Box::new(Patches::around_vertices(cpu, grid, thin))),
            Some(geometry) => Solves::Mapped(Box::new(MappedPatches::new(cpu, grid, geometry, thin))),
        };
        let in_lanes = |hat: f64| repeat_n(T::from_f64(hat.sqrt()), lanes::<T>(cpu));
        Self {
            cpu: cpu.clone(),
            operator: BoxOperator::new(cpu, grid),
            solves,
            hats: ByOpen::new(&vertex_patches(grid, thin), |spans| {
                hats(grid, spans, thin).into_iter().flat_map(in_lanes).collect()
            }),
            shares: products(sums_of_hats(grid, thin))
                .into_iter()
                .map(|sum| T::from_f64(1.0 / sum.sqrt()))
                .collect(),
        }
    }

    /// All patches at once.
    pub fn step(&self, x: &mut [T], b: &[T]) {
        let (mut r, mut z) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
        self.operator.residual(&mut r, b, x);
        self.add_corrections(&mut z, &mut r);
        each(&self.cpu, x, |at, x| *x += self.shares[at] * z[at]);
    }

    /// Adds what patches make of a residual, which is scaled before; shares are to be taken of the sum as well.
    fn add_corrections(&self, z: &mut [T], r: &mut [T]) {
        each(&self.cpu, r, |at, r| *r *= self.shares[at]);
        match &self.solves {
            Solves::Exact(patches) => patches.add_corrections(z, r, &self.hats),
            Solves::Mapped(patches) => patches.add_corrections(z, r, &self.hats),
        }
    }

    /// The largest eigenvalue of a step.
    fn largest(&self) -> Result<f64, LinalgError> {
        let correct = |z: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>| {
            let z = z.as_mut_slice();
            z.fill(T::ZERO);
            self.add_corrections(z, &mut r.as_slice().to_vec());
            each(&self.cpu, z, |at, z| *z *= self.shares[at]);
            Ok(())
        };
        let start = (0..self.shares.len() as u64).map(start_of_lanczos).collect();
        largest_preconditioned(&self.operator, start, correct, STEPS)
    }
}

/// The hat of a vertex on the nodes inside its patch; ones along thin axes.
fn hats(grid: &BoxGrid, spans: [&Span; 3], thin: [bool; 3]) -> Vec<f64> {
    let k = grid.degree();
    let line = |axis: usize| match (spans[axis].cells.len(), spans[axis].open) {
        (n, open) if n < 2 && open == [false; 2] || thin[axis] => vec![1.0; unknowns(n * k + 1, open).len()],
        (_, [true, _]) => hat(k).split_off(k - 1),
        (_, [_, true]) => hat(k)[..k].to_vec(),
        _ => hat(k),
    };
    products([0, 1, 2].map(line))
}

/// The same along an axis.
pub(crate) fn hat(degree: usize) -> Vec<f64> {
    let nodes = Lagrange::gauss_lobatto(degree).nodes().to_vec();
    (1..2 * degree).map(|i| if i <= degree { nodes[i] } else { 1.0 - nodes[i - degree] }).collect()
}

/// The sum of the hats of all vertices with an unknown, on each node; one where there is none, and along thin axes.
fn sums_of_hats(grid: &BoxGrid, thin: [bool; 3]) -> [Vec<f64>; 3] {
    let k = grid.degree();
    let nodes = Lagrange::gauss_lobatto(k).nodes().to_vec();
    [0, 1, 2].map(|axis| {
        let (n_cells, [low, high]) = (grid.widths(axis).len(), grid.free_sides()[axis]);
        let sum = |node: usize| {
            let (cell, t) = (node / k, nodes[node % k]);
            // Of the two hats of a cell.
            let falling = if cell > 0 || low { 1.0 - t } else { 0.0 };
            let rising = if cell + 1 < n_cells || high { t } else { 0.0 };
            if falling + rising > 0.0 && !thin[axis] { falling + rising } else { 1.0 }
        };
        (0..grid.nodes()[axis]).map(sum).collect()
    })
}

/// What comes of values along each axis on all nodes.
fn products(lines: [Vec<f64>; 3]) -> Vec<f64> {
    let product = |at: [usize; 3]| (0..3).map(|axis| lines[axis][at[axis]]).product();
    all(lines.each_ref().map(Vec::len)).map(product).collect()
}
