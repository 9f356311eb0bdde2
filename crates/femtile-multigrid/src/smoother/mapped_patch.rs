use std::iter::repeat_n;
use std::mem::swap;

use femtile_device::{Buffer, Cpu, parallel};
use femtile_element::tensor::Lagrange;
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{largest_preconditioned, start_of_lanczos};
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes};

use super::exact::ExactPatches;
use crate::axis::{PatchLine, unknowns};
use crate::cell_patches::{Batch, ByOpen, CellPatches, MOST_LANES, Rows, Span, Spans, vertex_patches};
use crate::cpu::each;
use crate::grid::{BoxGrid, all, place};
use crate::mapped::CellGeometry;
use crate::operator::BoxOperator;

/// Largest eigenvalue of the preconditioned operator after damping: the upper half of the spectrum is damped to a third
/// at least.
pub(crate) const LARGEST: f64 = 4.0 / 3.0;
/// Lanczos steps, which find the largest eigenvalue within 5 %.
pub(crate) const STEPS: usize = 12;
/// Least weight relative to the largest that a cell requires; above 1/2 the iteration is stable.
const LEAST_SHARE: f64 = 0.55;

/// The additive Schwarz smoother on vertex patches of mapped cells with coefficients:
///
/// $$ x \leftarrow x + \omega \sum_j R_j^\mathsf{T} W_j \tilde A_j^{-1} W_j R_j (b - A x), \qquad \sum_j R_j^\mathsf{T} W_j^2 R_j = I, \qquad \tilde A_j = \sum_a g_a\, K_a \otimes M_b \otimes M_c. $$
///
/// K and M are those of two cells of width one (one cell at free sides, all cells along a thin axis). They
/// and their eigenvectors are the same for all patches. $g_a$ is the mean over the cells of the patch of the
/// diagonal entries of $G = c \det J\, J^{-1} J^{-\mathsf{T}}$ at their centres. It is raised if cells differ
/// much or are strongly skewed, so that no local solve increases the energy. If coefficients jump, $A_j$
/// itself is factored.
///
/// $W_j^2$ is diagonal: at each node the multilinear hat function of vertex j, divided by the sum of the hats
/// of all vertices with an unknown. The sum is one except in cells at Dirichlet sides. Without weights, a
/// function supported in one cell, which is in $2^d$ patches, has the eigenvalue $2^d$.
///
/// $\omega$ is 4/3 divided by the largest eigenvalue. The step is symmetric and increases no error in energy.
///
/// # Cost
/// One residual and, per patch, six products with 1-D matrices of 2k − 1 rows; workspace of two vectors, weights of one.
/// Set-up takes twelve Lanczos steps.
/// # Source
/// `[cui2024]`, eqs. (2.5), (2.6) and (2.15). Differs: additive with weights, separable surrogates.
#[derive(Debug, Clone)]
pub struct MappedPatches<T> {
    cpu: Cpu,
    operator: BoxOperator<T>,
    cell_patches: CellPatches<MappedLine<T>>,
    layouts: ByOpen<Layout<T>>,
    /// $g_a$ of each patch, by the number of its vertex.
    weights: Vec<[T; 3]>,
    exact: ExactPatches<T>,
    /// Square roots of $\omega$ over the sum of hats, at each node.
    shares: Vec<T>,
    /// The largest eigenvalue that $\omega$ is for.
    largest: f64,
}

/// Fast diagonalization along an axis.
#[derive(Debug, Clone)]
struct MappedLine<T> {
    line: PatchLine<T>,
    /// $\Lambda$.
    values: Vec<T>,
}

/// Properties common to patches with the same open ends.
#[derive(Debug, Clone)]
struct Layout<T> {
    inside: Rows,
    /// Square roots of the hat of the vertex on the inner nodes, in lanes.
    hats: Vec<T>,
    /// Offset of the vertex number from the first corner of the patch.
    vertex: u32,
}

/// Workspace of local solves.
#[derive(Default)]
struct Tensors<T> {
    next: Vec<T>,
    /// Residuals and corrections of patches with exact solves.
    exact: Vec<T>,
}

impl<T: SumFactorization> MappedPatches<T> {
    /// # Errors
    /// Errors of the operator.
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry) -> Result<Self, LinalgError> {
        let (thin, strides) = (grid.thin_axes(), geometry.corner_strides());
        let spans = vertex_patches(grid, thin);
        let line = |_, widths: &[f64], open| {
            let line = PatchLine::new(grid.degree(), &vec![1.0; widths.len()], open);
            MappedLine { values: line.values.iter().map(|&value| T::from_f64(value)).collect(), line }
        };
        let layout = |spans: [&Span; 3]| {
            let own = spans.map(|span| unknowns(grid.degree() * span.cells.len() + 1, span.open));
            let (first, n) = (own.each_ref().map(|own| own.start), own.each_ref().map(|own| own.len()));
            let in_lanes = |hat: f64| repeat_n(T::from_f64(hat.sqrt()), lanes::<T>(cpu));
            Layout {
                inside: Rows::new(grid.strides(), first, n),
                hats: hats(grid, spans, thin).into_iter().flat_map(in_lanes).collect(),
                vertex: (0..3).map(|axis| strides[axis] * usize::from(!spans[axis].open[0])).sum::<usize>()
                    as u32,
            }
        };
        let share = |sum: f64| T::from_f64((LARGEST / sum).sqrt());
        let mut patches = Self {
            cpu: cpu.clone(),
            operator: BoxOperator::new(cpu, grid),
            cell_patches: CellPatches::new(grid, &spans, line).with_other_grid(strides),
            layouts: ByOpen::new(&spans, layout),
            weights: patch_weights(geometry, &spans)
                .into_iter()
                .map(|weights| weights.map(T::from_f64))
                .collect(),
            exact: ExactPatches::new(cpu, grid, geometry, &spans),
            shares: products(sums_of_hats(grid, thin)).into_iter().map(share).collect(),
            largest: 1.0,
        };
        patches.set_largest(patches.estimate()? / LARGEST);
        Ok(patches)
    }

    /// Returns the largest eigenvalue of the preconditioned operator without damping.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// Sets $\omega$ for this largest eigenvalue.
    pub fn set_largest(&mut self, largest: f64) {
        let root = T::from_f64((self.largest / largest).sqrt());
        self.shares.iter_mut().for_each(|share| *share *= root);
        self.largest = largest;
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
        let patch = |batch: &Batch<'_>| {
            let layout = self.layouts.of(batch.open);
            (&layout.inside, &layout.hats[..])
        };
        let solve =
            |tensors: &mut Tensors<T>, r: &mut Vec<T>, batch: &Batch<'_>| self.solve(tensors, r, batch);
        self.cell_patches.add_corrections(&self.cpu, patch, z, r, Tensors::default, solve);
    }

    /// Turns residuals into corrections.
    fn solve(&self, Tensors { next, exact }: &mut Tensors<T>, r: &mut Vec<T>, batch: &Batch<'_>) {
        let n_lanes = lanes::<T>(&self.cpu);
        let vertex = self.layouts.of(batch.open).vertex;
        let chosen = || {
            let of_lanes = batch.others.iter().enumerate();
            of_lanes.filter_map(|(lane, &corner)| Some((lane, self.exact.of(corner + vertex)?)))
        };
        exact.clear();
        for (lane, factor) in chosen() {
            let begin = exact.len();
            exact.extend(r.iter().skip(lane).step_by(n_lanes));
            factor.solve(&mut exact[begin..]);
        }
        next.resize(r.len(), T::ZERO);
        self.solve_separably(r, next, batch);
        let len = r.len() / n_lanes;
        for ((lane, _), values) in chosen().zip(exact.chunks_exact(len)) {
            r.iter_mut().skip(lane).step_by(n_lanes).zip(values).for_each(|(to, value)| *to = *value);
        }
    }

    /// Estimates the largest eigenvalue of the preconditioned operator.
    fn estimate(&self) -> Result<f64, LinalgError> {
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

    /// Applies $\tilde A_j^{-1}$ in all lanes.
    fn solve_separably(&self, r: &mut Vec<T>, next: &mut Vec<T>, batch: &Batch<'_>) {
        let lines = [0, 1, 2].map(|axis| &self.cell_patches.kinds[axis][batch.kinds[axis]]);
        let n = lines.map(|line| line.values.len());
        let mut along_all = |factor: fn(&PatchLine<T>) -> &Factor<T>, r: &mut Vec<T>| {
            let mut inner = 1;
            for line in lines.iter().filter(|line| line.line.both.n_cols() > 1) {
                contract(&self.cpu, factor(&line.line), inner, r, next);
                swap(r, next);
                inner *= line.values.len();
            }
        };
        along_all(|line| &line.forward, r);
        let n_lanes = lanes::<T>(&self.cpu);
        let vertex = self.layouts.of(batch.open).vertex;
        let corners = batch.others;
        let mut weights = [[T::ZERO; MOST_LANES]; 3];
        for lane in 0..n_lanes {
            let of_lane = self.weights[(corners[lane.min(corners.len() - 1)] + vertex) as usize];
            (0..3).for_each(|axis| weights[axis][lane] = of_lane[axis]);
        }
        self.cpu.vectorize(
            #[inline(always)]
            || {
                for (at, r) in r.chunks_exact_mut(n_lanes).enumerate() {
                    let at = [at % n[0], at / n[0] % n[1], at / (n[0] * n[1])];
                    let [x, y, z] = [0, 1, 2].map(|axis| lines[axis].values[at[axis]]);
                    for (lane, r) in r.iter_mut().enumerate() {
                        *r /= x * weights[0][lane] + y * weights[1][lane] + z * weights[2][lane];
                    }
                }
            },
        );
        along_all(|line| &line.back, r);
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

/// Cells or patches that a thread takes at least.
const CELLS: usize = 1 << 8;

/// The metric of a cell with its coefficient c.
struct CellMetric {
    c: f64,
    /// $G_{aa}$.
    diagonal: [f64; 3],
    /// $c\, G_{aa}$ times 1 and the sum of $\rho_{ab}$.
    bound: [f64; 3],
}

impl CellMetric {
    fn of(geometry: &CellGeometry, cell: [usize; 3]) -> Self {
        let (g, c) = (geometry.map(cell).metric([0.5; 3]), geometry.coefficient(cell));
        let skew = |a: usize| -> f64 {
            (0..3).filter(|b| *b != a).map(|b| g[a][b].abs() / (g[a][a] * g[b][b]).sqrt()).sum()
        };
        Self {
            c,
            diagonal: [0, 1, 2].map(|a| g[a][a]),
            bound: [0, 1, 2].map(|a| c * g[a][a] * (1.0 + skew(a))),
        }
    }
}

/// Returns the weights of each patch, by the number of its vertex: means over its cells, raised if a mean is
/// too small for one of them.
///
/// With $\rho_{ab} = |G_{ab}| / \sqrt{G_{aa} G_{bb}}$,
/// $2 |G_{ab} \xi_a \xi_b| \le \rho_{ab} (G_{aa} \xi_a^2 + G_{bb} \xi_b^2)$ bounds every cell; a surrogate above half of
/// the bound reduces the energy with every local solve.
pub(crate) fn patch_weights(geometry: &CellGeometry, spans: &Spans) -> Vec<[f64; 3]> {
    let (n, strides, cells) = (geometry.n_corners(), geometry.corner_strides(), geometry.cells());
    let metrics =
        parallel::map(cells.iter().product(), CELLS, |number| CellMetric::of(geometry, place(cells, number)));
    let counts = spans.each_ref().map(Vec::len);
    let of_patch = |number: usize| {
        let at = place(counts, number);
        let spans = [0, 1, 2].map(|axis| &spans[axis][at[axis]]);
        let parts = cells_of(spans);
        let share = 1.0 / parts.len() as f64;
        let (mut sum, mut largest) = ([0.0; 3], [0.0_f64; 3]);
        for [x, y, z] in parts {
            let CellMetric { c, diagonal, bound } = &metrics[(z * cells[1] + y) * cells[0] + x];
            for a in 0..3 {
                sum[a] += share * c * diagonal[a];
                largest[a] = largest[a].max(bound[a]);
            }
        }
        let vertex = (0..3).map(|axis| strides[axis] * spans[axis].vertex()).sum::<usize>();
        (vertex, [0, 1, 2].map(|a| sum[a].max(LEAST_SHARE * largest[a])))
    };
    let mut weights = vec![[0.0; 3]; n.iter().product()];
    for (vertex, of_patch) in parallel::map(counts.iter().product(), CELLS, of_patch) {
        weights[vertex] = of_patch;
    }
    weights
}

/// Returns the cells of a patch; an absent axis has one.
pub(super) fn cells_of(spans: [&Span; 3]) -> Vec<[usize; 3]> {
    let along = spans.map(|span| span.cells.len().max(1));
    all(along).map(|part| [0, 1, 2].map(|axis| spans[axis].cells.start + part[axis])).collect()
}
