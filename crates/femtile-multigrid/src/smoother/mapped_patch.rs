use std::mem::swap;
use std::ops::Range;

use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes};

use super::PostOrder;
use super::exact::ExactPatches;
use crate::axis::{PatchLine, unknowns};
use crate::cell_patches::{
    Batch, ByOpen, CellPatches, MOST_LANES, Rows, Span, Spans, gather, scatter, vertex_patches,
};
use crate::grid::{BoxGrid, all};
use crate::mapped::{CellGeometry, MappedCells, ProductRoom};

/// What a weight is at least over the largest that a cell asks for: above one half.
const LEAST_SHARE: f64 = 0.55;

/// Approximate solves on the nodes inside the cells around every vertex, one colour after another, where cells have any shape
/// and coefficient:
/// $$ x \leftarrow x + R_j^\mathsf{T} \tilde A_j^{-1} R_j (b - A x), \qquad
/// \tilde A_j = \sum_a g_a\, K_a \otimes M_b \otimes M_c. $$
///
/// Matrices K and M are those of two cells of width one, of one at free sides, of all along a thin axis, the same for all patches, so that their eigenvectors
/// are, too; $g_a$
/// is the mean over the cells of the patch of the entries of $G = c \det J\, J^{-1} J^{-\mathsf{T}}$ on the diagonal, in their
/// middles; more where one cell has much more than the others or is much skewed, so that no patch adds energy. Where coefficients jump, $A_j$ itself is factored.
///
/// # Cost
/// The matrices of all cells of each patch applied, so $2^d$ operators a step, and six products with 1-D matrices of 2k − 1
/// rows a patch.
/// # Source
/// `[cui2024]`, Alg. 2.3, with separable surrogates instead of exact inverses.
#[derive(Debug, Clone)]
pub struct MappedPatches<T> {
    cpu: Cpu,
    cell_patches: CellPatches<MappedLine<T>>,
    cells: MappedCells<T>,
    layouts: ByOpen<Layout>,
    /// $g_a$ of each patch, by the number of the corner that it is around.
    weights: Vec<[T; 3]>,
    exact: ExactPatches<T>,
}

/// What patches are solved with along an axis.
#[derive(Debug, Clone)]
struct MappedLine<T> {
    line: PatchLine<T>,
    /// $\Lambda$.
    values: Vec<T>,
}

/// Where the cells and nodes of patches are.
#[derive(Debug, Clone)]
struct Layout {
    /// Cells of a patch: by how much their first corners and their first nodes, among those of the patch, lie after its own.
    parts: Vec<(usize, [usize; 3])>,
    /// Nodes of a cell along each axis, and of the patch; which of these are inside.
    of_cell: [usize; 3],
    nodes: [usize; 3],
    own: [Range<usize>; 3],
    all: Rows,
    inside: Rows,
    /// By how much the number of the corner that a patch is around is larger than that of its first one.
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

/// Values of patches side by side, and room to work in.
struct Tensors<T> {
    /// On all nodes.
    x: Vec<T>,
    /// On the nodes inside: residuals, then corrections.
    r: Vec<T>,
    next: Vec<T>,
    of_cell: Vec<T>,
    shape: Vec<T>,
    workspace: ProductRoom<T>,
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
            cell_patches: CellPatches::new(grid, &spans, line).also_on(strides),
            cells: MappedCells::new(grid, geometry),
            layouts: ByOpen::new(&spans, |spans| Layout::new(grid, strides, spans)),
            weights: weights(geometry, &spans),
            exact: ExactPatches::new(cpu, grid, geometry, &spans),
        }
    }

    /// All patches once.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let x = SharedMut::new(x);
        self.cell_patches.sweep::<T, _>(&self.cpu, order, Tensors::new, |tensors, batch| {
            let layout = self.layouts.of(batch.open);
            tensors.fit(&self.cpu, layout);
            #[allow(unsafe_code)]
            // SAFETY: nobody writes b; nodes on the boundary of patches are inside none of their colour.
            unsafe {
                gather(&self.cpu, &layout.inside, batch.firsts, &mut tensors.r, Source::new(b));
                gather(&self.cpu, &layout.all, batch.firsts, &mut tensors.x, Source::of_shared(&x));
            }
            self.subtract_products(tensors, layout, batch);
            self.solve(tensors, batch);
            #[allow(unsafe_code)]
            // SAFETY: patches that are gone through at once have no node inside in common.
            unsafe {
                scatter(&self.cpu, &layout.inside, batch.firsts, &tensors.r, &x, |to, value| *to += value);
            }
        });
    }

    /// $z \leftarrow z + \sum_j R_j^\mathsf{T} W_j \tilde A_j^{-1} W_j R_j r$, with the weights W of patches in lanes.
    pub(crate) fn add_corrections(&self, z: &mut [T], r: &[T], weights: &ByOpen<Vec<T>>) {
        let patch = |batch: &Batch<'_>| (&self.layouts.of(batch.open).inside, &weights.of(batch.open)[..]);
        self.cell_patches.add_corrections(&self.cpu, patch, z, r, Tensors::new, |tensors, values, batch| {
            tensors.fit(&self.cpu, self.layouts.of(batch.open));
            swap(values, &mut tensors.r);
            self.solve(tensors, batch);
            swap(values, &mut tensors.r);
        });
    }

    /// $r \leftarrow r - A x$ inside, cell by cell.
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
            // The nodes of the cell that are inside, along x.
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

    /// From residuals to corrections.
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

    /// $\tilde A_j^{-1}$ of all lanes.
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
            workspace: ProductRoom::default(),
            exact: none(),
        }
    }

    /// Makes room for as many patches as there are lanes.
    fn fit(&mut self, cpu: &Cpu, layout: &Layout) {
        let (n, n_inside, n_of_cell) =
            (layout.all.n_nodes(), layout.inside.n_nodes(), layout.of_cell.iter().product());
        let lens = [n, n_inside, n_inside, n_of_cell];
        let values = [&mut self.x, &mut self.r, &mut self.next, &mut self.of_cell];
        values.into_iter().zip(lens).for_each(|(values, len)| values.resize(len * lanes::<T>(cpu), T::ZERO));
    }
}

/// The weights of each patch: means over its cells, unless these leave out too much of one of them.
///
/// From $2 |G_{ab} \xi_a \xi_b| \le \rho_{ab} (G_{aa} \xi_a^2 + G_{bb} \xi_b^2)$ with $\rho_{ab} = |G_{ab}| / \sqrt{G_{aa}
/// G_{bb}}$ follows what no cell exceeds; a surrogate above half of that takes energy off with every patch.
fn weights<T: SumFactorization>(geometry: &CellGeometry, spans: &Spans) -> Vec<[T; 3]> {
    let (n, strides) = (geometry.n_corners(), geometry.corner_strides());
    let mut weights = vec![[T::ZERO; 3]; n.iter().product()];
    for at in all(spans.each_ref().map(Vec::len)) {
        let spans = [0, 1, 2].map(|axis| &spans[axis][at[axis]]);
        let cells = cells_of(spans);
        let share = 1.0 / cells.len() as f64;
        let (mut sum, mut largest) = ([0.0; 3], [0.0_f64; 3]);
        for cell in cells {
            let (g, c) = (geometry.map(cell).metric(), geometry.coefficient(cell));
            for a in 0..3 {
                let skew: f64 =
                    (0..3).filter(|b| *b != a).map(|b| g[a][b].abs() / (g[a][a] * g[b][b]).sqrt()).sum();
                sum[a] += share * c * g[a][a];
                largest[a] = largest[a].max(c * g[a][a] * (1.0 + skew));
            }
        }
        let vertex = (0..3).map(|axis| strides[axis] * spans[axis].vertex()).sum::<usize>();
        weights[vertex] = [0, 1, 2].map(|a| T::from_f64(sum[a].max(LEAST_SHARE * largest[a])));
    }
    weights
}

/// The cells of a patch; an axis that there is not has one.
pub(super) fn cells_of(spans: [&Span; 3]) -> Vec<[usize; 3]> {
    let along = spans.map(|span| span.cells.len().max(1));
    all(along).map(|part| [0, 1, 2].map(|axis| spans[axis].cells.start + part[axis])).collect()
}
