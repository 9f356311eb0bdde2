use std::mem::swap;

use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_tensor::{Contract, contract, lanes};

use super::PostOrder;
use super::exact::ExactPatches;
use super::local::inner;
use crate::axis::PatchLine;
use crate::grid::{BoxGrid, all};
use crate::mapped::{Geometry, MappedCells, ProductRoom};
use crate::windows::{Batch, MOST_LANES, Rows, Windows, gather, scatter};

/// What a weight is at least over the largest that a cell asks for: above one half.
const LEAST_SHARE: f64 = 0.55;

/// Approximate solves on the nodes inside the cells around every vertex, one colour after another, where cells have any shape
/// and coefficient:
/// $$ x \leftarrow x + R_j^\mathsf{T} \tilde A_j^{-1} R_j (b - A x), \qquad
/// \tilde A_j = \sum_a g_a\, K_a \otimes M_b \otimes M_c. $$
///
/// Matrices K and M are those of two cells of width one, the same for all patches, so that their eigenvectors are, too; $g_a$
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
    windows: Windows<()>,
    cells: MappedCells<T>,
    /// Cells of a patch: by how much their first corners and their first nodes, among those of the patch, lie after its own.
    parts: Vec<(usize, [usize; 3])>,
    /// Nodes of a patch along each axis, and of one of its cells.
    nodes: [usize; 3],
    all: Rows,
    inside: Rows,
    line: PatchLine<T>,
    /// $\Lambda$ of the line.
    values: Vec<T>,
    /// $g_a$ of each patch, by the number of its first corner.
    weights: Vec<[T; 3]>,
    exact: ExactPatches<T>,
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
    room: ProductRoom<T>,
    /// Residuals and corrections of patches with exact solves.
    exact: Vec<T>,
}

impl<T: Contract> MappedPatches<T> {
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &Geometry) -> Self {
        let has = [0, 1, 2].map(|axis| !grid.widths(axis).is_empty());
        let k = grid.degree();
        let line = PatchLine::new(k, &[1.0; 2]);
        let nodes = has.map(|has| if has { 2 * k + 1 } else { 1 });
        let strides = geometry.corner_strides();
        let parts = all(has.map(|has| if has { 2 } else { 1 }))
            .map(|part| ((0..3).map(|axis| strides[axis] * part[axis]).sum(), part.map(|part| k * part)))
            .collect();
        Self {
            cpu: cpu.clone(),
            windows: Windows::new(grid, [2; 3], |_| ()).also_on(strides),
            cells: MappedCells::new(grid, geometry),
            parts,
            all: Rows::new(grid.strides(), [0; 3], nodes),
            inside: Rows::new(grid.strides(), has.map(usize::from), nodes.map(inner)),
            values: line.values.iter().map(|&value| T::from_f64(value)).collect(),
            line,
            weights: weights(geometry),
            exact: ExactPatches::new(cpu, grid, geometry),
            nodes,
        }
    }

    /// All patches once.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let x = SharedMut::new(x);
        self.windows.sweep::<T, _>(
            &self.cpu,
            order,
            || self.room(),
            |tensors, batch| {
                #[allow(unsafe_code)]
                // SAFETY: nobody writes b; nodes on the boundary of patches are inside none of their colour.
                unsafe {
                    gather(&self.cpu, &self.inside, batch.firsts, &mut tensors.r, Source::new(b));
                    gather(&self.cpu, &self.all, batch.firsts, &mut tensors.x, Source::of_shared(&x));
                }
                self.subtract_products(tensors, batch);
                self.solve(tensors, batch);
                #[allow(unsafe_code)]
                // SAFETY: patches that are gone through at once have no node inside in common.
                unsafe {
                    scatter(&self.cpu, &self.inside, batch.firsts, &tensors.r, &x, |to, value| *to += value);
                }
            },
        );
    }

    /// $z \leftarrow z + \sum_j R_j^\mathsf{T} W_j \tilde A_j^{-1} W_j R_j r$, with the weights W of a patch in lanes.
    pub fn add_corrections(&self, z: &mut [T], r: &[T], weights: &[T]) {
        let (room, patch) = (|| self.room(), (&self.inside, weights));
        self.windows.add_corrections(&self.cpu, patch, z, r, room, |tensors, values, batch| {
            swap(values, &mut tensors.r);
            self.solve(tensors, batch);
            swap(values, &mut tensors.r);
        });
    }

    /// Room for as many patches as there are lanes.
    fn room(&self) -> Tensors<T> {
        let n_lanes = lanes::<T>(&self.cpu);
        let zeros = |n: usize| vec![T::ZERO; n * n_lanes];
        let n_inside = self.inside.n_nodes();
        Tensors {
            x: zeros(self.all.n_nodes()),
            r: zeros(n_inside),
            next: zeros(n_inside),
            of_cell: zeros(self.n_of_cell().iter().product()),
            shape: Vec::new(),
            room: ProductRoom::default(),
            exact: Vec::new(),
        }
    }

    /// Nodes of a cell along each axis.
    fn n_of_cell(&self) -> [usize; 3] {
        self.nodes.map(|n| n / 2 + 1)
    }

    /// $r \leftarrow r - A x$ inside, cell by cell.
    fn subtract_products(&self, tensors: &mut Tensors<T>, batch: &Batch<'_>) {
        let Tensors { x, r, of_cell, shape, room, .. } = tensors;
        let n_lanes = lanes::<T>(&self.cpu);
        let (n, [m_x, m_y, _]) = (self.n_of_cell(), self.nodes);
        let [i_x, i_y, _] = self.nodes.map(inner);
        let len = n[0] * n_lanes;
        for (offset, first) in &self.parts {
            let rows = || all([1, n[1], n[2]]).map(|at| [0, 1, 2].map(|axis| first[axis] + at[axis]));
            for ([_, y, z], to) in rows().zip(of_cell.chunks_exact_mut(len)) {
                to.copy_from_slice(&x[((z * m_y + y) * m_x + first[0]) * n_lanes..][..len]);
            }
            self.cells.shapes.load(batch.others, *offset, n_lanes, shape);
            self.cells.product.apply(&self.cpu, shape, of_cell, room);
            let is_inside =
                |axis: usize, at: usize| self.nodes[axis] == 1 || (at > 0 && at + 1 < self.nodes[axis]);
            for ([_, y, z], from) in rows().zip(of_cell.chunks_exact(len)) {
                if !is_inside(1, y) || !is_inside(2, z) {
                    continue;
                }
                let z = if self.nodes[2] == 1 { 0 } else { z - 1 };
                // The first cell lacks its first node, the second its last one.
                let (skipped, begin) = if first[0] == 0 { (n_lanes, 0) } else { (0, first[0] - 1) };
                let to = &mut r[((z * i_y + y - 1) * i_x + begin) * n_lanes..][..len - n_lanes];
                to.iter_mut().zip(&from[skipped..]).for_each(|(to, from)| *to -= *from);
            }
        }
    }

    /// From residuals to corrections.
    fn solve(&self, tensors: &mut Tensors<T>, batch: &Batch<'_>) {
        let Tensors { r, next, exact, .. } = tensors;
        let n_lanes = lanes::<T>(&self.cpu);
        let chosen = || {
            let of_lanes = batch.others.iter().enumerate();
            of_lanes.filter_map(|(lane, &corner)| Some((lane, self.exact.of(corner)?)))
        };
        exact.clear();
        for (lane, factor) in chosen() {
            let begin = exact.len();
            exact.extend(r.iter().skip(lane).step_by(n_lanes));
            factor.solve(&mut exact[begin..]);
        }
        self.solve_separably(r, next, batch.others);
        let len = self.inside.n_nodes();
        for ((lane, _), values) in chosen().zip(exact.chunks_exact(len)) {
            r.iter_mut().skip(lane).step_by(n_lanes).zip(values).for_each(|(to, value)| *to = *value);
        }
    }

    /// $\tilde A_j^{-1}$ of all lanes.
    fn solve_separably(&self, r: &mut Vec<T>, next: &mut Vec<T>, corners: &[u32]) {
        let n_axes = if self.nodes[2] == 1 { 2 } else { 3 };
        let n = self.values.len();
        let mut along_all = |factor, r: &mut Vec<T>| {
            for axis in 0..n_axes {
                contract(&self.cpu, factor, n.pow(axis), r, next);
                swap(r, next);
            }
        };
        along_all(&self.line.forward, r);
        let n_lanes = lanes::<T>(&self.cpu);
        let mut weights = [[T::ZERO; MOST_LANES]; 3];
        for lane in 0..n_lanes {
            let of_lane = self.weights[corners[lane.min(corners.len() - 1)] as usize];
            (0..3).for_each(|axis| weights[axis][lane] = of_lane[axis]);
        }
        let value =
            |axis: u32, at: usize| if axis < n_axes { self.values[at / n.pow(axis) % n] } else { T::ZERO };
        self.cpu.vectorize(
            #[inline(always)]
            || {
                for (at, r) in r.chunks_exact_mut(n_lanes).enumerate() {
                    let [x, y, z] = [0, 1, 2].map(|axis| value(axis, at));
                    for (lane, r) in r.iter_mut().enumerate() {
                        *r /= x * weights[0][lane] + y * weights[1][lane] + z * weights[2][lane];
                    }
                }
            },
        );
        along_all(&self.line.back, r);
    }
}

/// The weights of each patch: means over its cells, unless these leave out too much of one of them.
///
/// From $2 |G_{ab} \xi_a \xi_b| \le \rho_{ab} (G_{aa} \xi_a^2 + G_{bb} \xi_b^2)$ with $\rho_{ab} = |G_{ab}| / \sqrt{G_{aa}
/// G_{bb}}$ follows what no cell exceeds; a surrogate above half of that takes energy off with every patch.
fn weights<T: Contract>(geometry: &Geometry) -> Vec<[T; 3]> {
    let (n, strides, cells) = (geometry.n_corners(), geometry.corner_strides(), geometry.cells());
    let mut weights = vec![[T::ZERO; 3]; n.iter().product()];
    let along = [0, 1, 2].map(|axis| if strides[axis] == 0 { 1 } else { 2 });
    let share = 1.0 / along.iter().product::<usize>() as f64;
    for first in all([0, 1, 2].map(|axis| cells[axis] + 1 - along[axis])) {
        let (mut sum, mut largest) = ([0.0; 3], [0.0_f64; 3]);
        for part in all(along) {
            let cell = [0, 1, 2].map(|axis| first[axis] + part[axis]);
            let (g, c) = (geometry.map(cell).metric(), geometry.coefficient(cell));
            for a in 0..3 {
                let skew: f64 =
                    (0..3).filter(|b| *b != a).map(|b| g[a][b].abs() / (g[a][a] * g[b][b]).sqrt()).sum();
                sum[a] += share * c * g[a][a];
                largest[a] = largest[a].max(c * g[a][a] * (1.0 + skew));
            }
        }
        weights[(0..3).map(|axis| strides[axis] * first[axis]).sum::<usize>()] =
            [0, 1, 2].map(|a| T::from_f64(sum[a].max(LEAST_SHARE * largest[a])));
    }
    weights
}
