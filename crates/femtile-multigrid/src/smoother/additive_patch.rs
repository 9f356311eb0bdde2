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

/// Largest eigenvalue of the preconditioned operator after damping: the upper half of the spectrum is damped to a third
/// at least.
pub(crate) const LARGEST: f64 = 4.0 / 3.0;
/// Lanczos steps, which find the largest eigenvalue within 5 %.
pub(crate) const STEPS: usize = 12;

/// The additive Schwarz smoother on vertex patches: all local solves take the same residual,
///
/// $$ x \leftarrow x + \omega \sum_j R_j^\mathsf{T} W_j A_j^{-1} W_j R_j (b - A x), \qquad \sum_j R_j^\mathsf{T} W_j^2 R_j = I. $$
///
/// $W_j^2$ is diagonal: at each node the multilinear hat function of vertex j, divided by the sum of the hats
/// of all vertices with an unknown. The sum is one except in cells at Dirichlet sides. Without weights, a
/// function supported in one cell, which is in $2^d$ patches, has the eigenvalue $2^d$. With hats no
/// eigenvalue exceeds 1.5 on squares and cubes of any degree.
///
/// $\omega$ is 4/3 divided by the largest eigenvalue. The step is symmetric and increases no error in energy.
///
/// # Cost
/// One residual and, per patch, six products with 1-D matrices of 2k − 1 rows; workspace of two vectors, weights of one.
/// Set-up takes twelve Lanczos steps: on a small grid with cells of the same widths for rectangles, on the whole grid
/// otherwise.
/// # Source
/// `[cui2024]`, eqs. (2.5) and (2.6), for the local solves. Differs: additive with weights.
#[derive(Debug, Clone)]
pub struct AdditivePatches<T> {
    cpu: Cpu,
    operator: BoxOperator<T>,
    solves: Solves<T>,
    /// Square roots of the hat of a vertex on the inner nodes of its patch, in lanes.
    hats: ByOpen<Vec<T>>,
    /// Square roots of $\omega$ over the sum of hats, at each node.
    shares: Vec<T>,
}

/// The local solver.
#[derive(Debug, Clone)]
enum Solves<T> {
    Exact(Box<Patches<T>>),
    Mapped(Box<MappedPatches<T>>),
}

impl<T: SumFactorization> AdditivePatches<T> {
    /// # Errors
    /// Errors of the operator.
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

    /// Returns $\omega$ for a grid of rectangles whose patches have all cells along the thin axes.
    ///
    /// # Errors
    /// Errors of the operator.
    pub fn damping(cpu: &Cpu, grid: &BoxGrid, thin: [bool; 3]) -> Result<f64, LinalgError> {
        Ok(LARGEST / Self::undamped(cpu, &grid.sample(), thin).largest()?)
    }

    /// The smoother with $\omega = 1$.
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

    /// Applies one additive Schwarz step.
    pub fn step(&self, x: &mut [T], b: &[T]) {
        let (mut r, mut z) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
        self.operator.residual(&mut r, b, x);
        self.add_corrections(&mut z, &mut r);
        each(&self.cpu, x, |at, x| *x += self.shares[at] * z[at]);
    }

    /// Adds the weighted local solutions for a residual, which is scaled in place; the caller scales the sum.
    fn add_corrections(&self, z: &mut [T], r: &mut [T]) {
        each(&self.cpu, r, |at, r| *r *= self.shares[at]);
        match &self.solves {
            Solves::Exact(patches) => patches.add_corrections(z, r, &self.hats),
            Solves::Mapped(patches) => patches.add_corrections(z, r, &self.hats),
        }
    }

    /// Returns the largest eigenvalue of the preconditioned operator.
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

/// Returns the hat of a vertex on the inner nodes of its patch; one along thin axes.
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

/// Returns the 1-D hat on the inner nodes of two cells.
pub(crate) fn hat(degree: usize) -> Vec<f64> {
    let nodes = Lagrange::gauss_lobatto(degree).nodes().to_vec();
    (1..2 * degree).map(|i| if i <= degree { nodes[i] } else { 1.0 - nodes[i - degree] }).collect()
}

/// Returns the sum of the hats of all vertices with an unknown, at each node of each axis; one without such a vertex and
/// along thin axes.
fn sums_of_hats(grid: &BoxGrid, thin: [bool; 3]) -> [Vec<f64>; 3] {
    let k = grid.degree();
    let nodes = Lagrange::gauss_lobatto(k).nodes().to_vec();
    [0, 1, 2].map(|axis| {
        let (n_cells, [low, high]) = (grid.widths(axis).len(), grid.free_sides()[axis]);
        let sum = |node: usize| {
            let (cell, t) = (node / k, nodes[node % k]);
            // The two hats of a cell.
            let falling = if cell > 0 || low { 1.0 - t } else { 0.0 };
            let rising = if cell + 1 < n_cells || high { t } else { 0.0 };
            if falling + rising > 0.0 && !thin[axis] { falling + rising } else { 1.0 }
        };
        (0..grid.nodes()[axis]).map(sum).collect()
    })
}

/// Returns the tensor product of values along each axis.
fn products(lines: [Vec<f64>; 3]) -> Vec<f64> {
    let product = |at: [usize; 3]| (0..3).map(|axis| lines[axis][at[axis]]).product();
    all(lines.each_ref().map(Vec::len)).map(product).collect()
}
