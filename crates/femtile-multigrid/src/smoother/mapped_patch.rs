use std::mem::swap;
use std::ops::Range;

use femtile_device::cpu::{SharedMut, Source};
use femtile_device::{Cpu, parallel};
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes};

use super::PostOrder;
use super::exact::ExactPatches;
use crate::axis::{PatchLine, unknowns};
use crate::cell_patches::{
    Batch, ByOpen, CellPatches, MOST_LANES, Rows, Span, Spans, gather, scatter, vertex_patches,
};
use crate::grid::{BoxGrid, all, place};
use crate::mapped::{CellGeometry, MappedCells, ProductWorkspace};

/// Least weight relative to the largest that a cell requires; above 1/2 the iteration is stable.
const LEAST_SHARE: f64 = 0.55;

/// The multiplicative Schwarz smoother on vertex patches of mapped cells with coefficients, with a separable surrogate
/// of the local matrix:
///
/// $$ x \leftarrow x + R_j^\mathsf{T} \tilde A_j^{-1} R_j (b - A x), \qquad \tilde A_j = \sum_a g_a\, K_a \otimes M_b \otimes M_c. $$
///
/// K and M are those of two cells of width one (one cell at free sides, all cells along a thin axis). They
/// and their eigenvectors are the same for all patches. $g_a$ is the mean over the cells of the patch of the
/// diagonal entries of $G = c \det J\, J^{-1} J^{-\mathsf{T}}$ at their centres. It is raised if cells differ
/// much or are strongly skewed, so that no local solve increases the energy. If coefficients jump, $A_j$
/// itself is factored.
///
/// # Cost
/// The matrices of all cells of each patch, so $2^d$ operator applications per step, and six products with 1-D matrices
/// of 2k − 1 rows per patch.
/// # Source
/// `[cui2024]`, Alg. 2.3. Differs: separable surrogates instead of exact inverses.
#[derive(Debug, Clone)]
pub struct MappedPatches<T> {
    cpu: Cpu,
    cell_patches: CellPatches<MappedLine<T>>,
    cells: MappedCells<T>,
    layouts: ByOpen<Layout>,
    /// $g_a$ of each patch, by the number of its vertex.
    weights: Vec<[T; 3]>,
    exact: ExactPatches<T>,
}

/// Fast diagonalization along an axis.
#[derive(Debug, Clone)]
struct MappedLine<T> {
    line: PatchLine<T>,
    /// $\Lambda$.
    values: Vec<T>,
}

/// Positions of the cells and nodes of patches.
#[derive(Debug, Clone)]
struct Layout {
    /// Cells of a patch: offset of the first corner, and index of the first node in the patch.
    parts: Vec<(usize, [usize; 3])>,
    /// Nodes along each axis of a cell and of the patch; which of the latter are inner.
    of_cell: [usize; 3],
    nodes: [usize; 3],
    own: [Range<usize>; 3],
    all: Rows,
    inside: Rows,
    /// Offset of the vertex number from the first corner of the patch.
    vertex: u32,
}

impl Layout {
    fn new(grid: &BoxGrid, strides: [usize; 3], spans: [&Span; 3]) -> Self {
        let k = grid.degree();
        let nodes = spans.map(|span| k * span.cells.len() + 1);
        let own = [0, 1, 2].map(|axis| unknowns(nodes[axis], spans[axis].open));
        let parts = all(spans.map(|span| span.cells.len().max(1)))
            .map(|part| ((0..3).map(|axis| strides[axis] * part[axis]).sum(), part.map(|part| k * part)))
            .collect();
        let inside = Rows::new(
            grid.strides(),
            own.each_ref().map(|own| own.start),
            own.each_ref().map(|own| own.len()),
        );
        let vertex = (0..3).map(|axis| strides[axis] * usize::from(!spans[axis].open[0])).sum::<usize>();
        Self {
            parts,
            of_cell: nodes.map(|n| if n == 1 { 1 } else { k + 1 }),
            all: Rows::new(grid.strides(), [0; 3], nodes),
            inside,
            own,
            nodes,
            vertex: vertex as u32,
        }
    }
}

/// Values of patches in SIMD lanes, and workspace.
struct Tensors<T> {
    /// Values at all nodes.
    x: Vec<T>,
    /// Residuals, then corrections, at inner nodes.
    r: Vec<T>,
    next: Vec<T>,
    of_cell: Vec<T>,
    shape: Vec<T>,
    workspace: ProductWorkspace<T>,
    /// Residuals and corrections of patches with exact solves.
    exact: Vec<T>,
}

impl<T: SumFactorization> MappedPatches<T> {
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry, thin: [bool; 3]) -> Self {
        let (spans, strides) = (vertex_patches(grid, thin), geometry.corner_strides());
        let line = |_, widths: &[f64], open| {
            let line = PatchLine::new(grid.degree(), &vec![1.0; widths.len()], open);
            MappedLine { values: line.values.iter().map(|&value| T::from_f64(value)).collect(), line }
        };
        Self {
            cpu: cpu.clone(),
            cell_patches: CellPatches::new(grid, &spans, line).with_other_grid(strides),
            cells: MappedCells::new(grid, geometry),
            layouts: ByOpen::new(&spans, |spans| Layout::new(grid, strides, spans)),
            weights: patch_weights(geometry, &spans)
                .into_iter()
                .map(|weights| weights.map(T::from_f64))
                .collect(),
            exact: ExactPatches::new(cpu, grid, geometry, &spans),
        }
    }

    /// Applies one multiplicative Schwarz step.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let x = SharedMut::new(x);
        self.cell_patches.sweep::<T, _>(&self.cpu, order, Tensors::new, |tensors, batch| {
            let layout = self.layouts.of(batch.open);
            tensors.fit(&self.cpu, layout);
            #[allow(unsafe_code)]
            // SAFETY: b is not written; nodes around a patch are inner nodes of no patch of the same colour.
            unsafe {
                gather(&self.cpu, &layout.inside, batch.firsts, &mut tensors.r, Source::new(b));
                gather(&self.cpu, &layout.all, batch.firsts, &mut tensors.x, Source::of_shared(&x));
            }
            self.subtract_products(tensors, layout, batch);
            self.solve(tensors, batch);
            #[allow(unsafe_code)]
            // SAFETY: patches processed at the same time share no inner node.
            unsafe {
                scatter(&self.cpu, &layout.inside, batch.firsts, &tensors.r, &x, |to, value| *to += value);
            }
        });
    }

    /// $z \leftarrow z + \sum_j R_j^\mathsf{T} W_j \tilde A_j^{-1} W_j R_j r$ (additive Schwarz), with the weights W of
    /// patches in lanes.
    pub(crate) fn add_corrections(&self, z: &mut [T], r: &[T], weights: &ByOpen<Vec<T>>) {
        let patch = |batch: &Batch<'_>| (&self.layouts.of(batch.open).inside, &weights.of(batch.open)[..]);
        self.cell_patches.add_corrections(&self.cpu, patch, z, r, Tensors::new, |tensors, values, batch| {
            tensors.fit(&self.cpu, self.layouts.of(batch.open));
            swap(values, &mut tensors.r);
            self.solve(tensors, batch);
            swap(values, &mut tensors.r);
        });
    }

    /// $r \leftarrow r - A x$ at inner nodes, cell by cell.
    fn subtract_products(&self, tensors: &mut Tensors<T>, layout: &Layout, batch: &Batch<'_>) {
        let Tensors { x, r, of_cell, shape, workspace, .. } = tensors;
        let n_lanes = lanes::<T>(&self.cpu);
        let (n, own) = (layout.of_cell, &layout.own);
        let ([m_x, m_y, _], [i_x, i_y, _]) = (layout.nodes, own.each_ref().map(|own| own.len()));
        let len = n[0] * n_lanes;
        for (offset, first) in &layout.parts {
            let rows = || all([1, n[1], n[2]]).map(|at| [0, 1, 2].map(|axis| first[axis] + at[axis]));
            for ([_, y, z], to) in rows().zip(of_cell.chunks_exact_mut(len)) {
                to.copy_from_slice(&x[((z * m_y + y) * m_x + first[0]) * n_lanes..][..len]);
            }
            self.cells.shapes.load(batch.others, *offset, n_lanes, shape);
            self.cells.product.apply(&self.cpu, shape, of_cell, workspace);
            // Inner nodes of the cell along x.
            let inside = first[0].max(own[0].start)..(first[0] + n[0]).min(own[0].end);
            for ([_, y, z], from) in rows().zip(of_cell.chunks_exact(len)) {
                if !own[1].contains(&y) || !own[2].contains(&z) {
                    continue;
                }
                let row = (z - own[2].start) * i_y + y - own[1].start;
                let to =
                    &mut r[(row * i_x + inside.start - own[0].start) * n_lanes..][..inside.len() * n_lanes];
                let from = &from[(inside.start - first[0]) * n_lanes..];
                to.iter_mut().zip(from).for_each(|(to, from)| *to -= *from);
            }
        }
    }

    /// Turns residuals into corrections.
    fn solve(&self, tensors: &mut Tensors<T>, batch: &Batch<'_>) {
        let Tensors { r, next, exact, .. } = tensors;
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
        self.solve_separably(r, next, batch);
        let len = r.len() / n_lanes;
        for ((lane, _), values) in chosen().zip(exact.chunks_exact(len)) {
            r.iter_mut().skip(lane).step_by(n_lanes).zip(values).for_each(|(to, value)| *to = *value);
        }
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

impl<T: SumFactorization> Tensors<T> {
    fn new() -> Self {
        let none = Vec::new;
        Self {
            x: none(),
            r: none(),
            next: none(),
            of_cell: none(),
            shape: none(),
            workspace: ProductWorkspace::default(),
            exact: none(),
        }
    }

    /// Resizes for a full batch of patches.
    fn fit(&mut self, cpu: &Cpu, layout: &Layout) {
        let (n, n_inside, n_of_cell) =
            (layout.all.n_nodes(), layout.inside.n_nodes(), layout.of_cell.iter().product());
        let lens = [n, n_inside, n_inside, n_of_cell];
        let values = [&mut self.x, &mut self.r, &mut self.next, &mut self.of_cell];
        values.into_iter().zip(lens).for_each(|(values, len)| values.resize(len * lanes::<T>(cpu), T::ZERO));
    }
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
        let (g, c) = (geometry.map(cell).metric(), geometry.coefficient(cell));
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
