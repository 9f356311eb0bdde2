use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_tensor::Contract;

use super::PostOrder;
use super::local::{LocalSolve, Tensors, inner};
use crate::axis::PatchLine;
use crate::grid::BoxGrid;
use crate::windows::{Batch, Known, Rows, Windows, gather, scatter};

/// Exact solves on the nodes inside patches of cells, one colour after another:
/// $$ x \leftarrow x + R_j^\mathsf{T} A_j^{-1} (R_j b - \bar A_j \bar R_j x). $$
///
/// Patches of a colour stand side by side in lanes and are shared out among threads; they change nothing that another one
/// reads, so that results have the same bits for any number of threads.
///
/// Sides of patches lie between cells, so that no patch reads what is inside a cell: only the last one that has it writes it,
/// all others the planes between their cells alone.
///
/// # Cost
/// Products with 1-D matrices of 2k − 1 rows, three with the nodes inside and a few with planes, a patch; six for the last
/// patches of cells. Each node inside is read in $2^d$ right sides.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14); what is left out here follows from local solves being exact.
#[derive(Debug, Clone)]
pub struct Patches<T> {
    cpu: Cpu,
    windows: Windows<PatchLine<T>>,
    /// Nodes of a patch along each axis.
    nodes: [usize; 3],
    /// Those inside.
    inside: Rows,
    /// Nodes around them, as [`Tensors`] has them: at the first and at the last place along the axis.
    around: [Rows; 3],
    /// The planes between two cells across each axis; no nodes where the grid has one cell along it.
    planes: [Rows; 3],
}

impl<T: Contract> Patches<T> {
    /// The cells around every vertex inside, or around every edge or face across an axis with one cell.
    pub fn around_vertices(cpu: &Cpu, grid: &BoxGrid) -> Self {
        Self::of_cells(cpu, grid, [0, 1, 2].map(|axis| grid.widths(axis).len().min(2)))
    }

    /// One patch of all cells, which solves exactly.
    pub fn whole(cpu: &Cpu, grid: &BoxGrid) -> Self {
        Self::of_cells(cpu, grid, [0, 1, 2].map(|axis| grid.widths(axis).len()))
    }

    fn of_cells(cpu: &Cpu, grid: &BoxGrid, cells: [usize; 3]) -> Self {
        let windows = Windows::new(grid, cells, |widths| PatchLine::new(grid.degree(), widths));
        let nodes = [0, 1, 2].map(|axis| match grid.widths(axis) {
            [] => 1,
            _ => grid.degree() * cells[axis] + 1,
        });
        let first = nodes.map(|n| usize::from(n > 1));
        let across = |axis: usize, place: usize, mut first: [usize; 3], mut n: [usize; 3]| {
            (first[axis], n[axis]) = (place, 1);
            Rows::new(grid.strides(), first, n)
        };
        let n = nodes.map(inner);
        let ends = |axis: usize, first: [usize; 3], of_axes: [usize; 3]| {
            let [one, other] = [0, nodes[axis] - 1].map(|place| across(axis, place, first, of_axes));
            one.in_turn(&other, if axis == 2 { n[1] } else { 1 })
        };
        Self {
            cpu: cpu.clone(),
            inside: Rows::new(grid.strides(), first, n),
            around: [
                ends(0, [0; 3], nodes),
                ends(1, [1, 0, 0], [n[0], nodes[1], nodes[2]]),
                ends(2, [1, 1, 0], [n[0], n[1], nodes[2]]),
            ],
            planes: [0, 1, 2].map(|axis| match cells[axis] {
                2 => across(axis, n[axis] / 2 + 1, first, n),
                _ => Rows::new(grid.strides(), [0; 3], [0; 3]),
            }),
            nodes,
            windows,
        }
    }

    /// All patches once.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let x = SharedMut::new(x);
        let room = || (Tensors::new(&self.cpu, self.nodes), Known::nothing());
        self.windows.sweep::<T, _>(&self.cpu, order, room, |(tensors, known), batch| {
            self.solve(&x, b, tensors, self.local(known, batch), batch);
        });
    }

    /// $z \leftarrow z + \sum_j R_j^\mathsf{T} W_j A_j^{-1} W_j R_j r$, with the weights W of a patch in lanes.
    pub fn add_corrections(&self, z: &mut [T], r: &[T], weights: &[T]) {
        let room = || (vec![T::ZERO; weights.len()], Known::nothing());
        let patch = (&self.inside, weights);
        self.windows.add_corrections(&self.cpu, patch, z, r, room, |(next, known), values, batch| {
            self.local(known, batch).correct(&self.cpu, values, next);
        });
    }

    /// What patches of the kinds of a batch are solved with.
    fn local<'k, 's>(
        &'s self,
        known: &'k mut Known<LocalSolve<'s, T>>,
        batch: &Batch<'_>,
    ) -> &'k LocalSolve<'s, T> {
        known.of(batch.kinds, || {
            LocalSolve::new(&self.cpu, [0, 1, 2].map(|axis| &self.windows.kinds[axis][batch.kinds[axis]]))
        })
    }

    /// Some patches of a colour.
    fn solve(
        &self,
        x: &SharedMut<'_, T>,
        b: &[T],
        tensors: &mut Tensors<T>,
        local: &LocalSolve<'_, T>,
        batch: &Batch<'_>,
    ) {
        self.read(tensors, Source::of_shared(x), b, batch.firsts);
        local.solve(&self.cpu, tensors);
        let (rows, values) = if batch.is_last {
            local.back(&self.cpu, tensors);
            (std::slice::from_ref(&self.inside), std::slice::from_ref(&tensors.inside))
        } else {
            local.back_to_planes(&self.cpu, tensors);
            (&self.planes[..], &tensors.planes[..])
        };
        for (rows, values) in rows.iter().zip(values).filter(|(rows, _)| rows.n_nodes() > 0) {
            #[allow(unsafe_code)]
            // SAFETY: patches that are gone through at once have no node inside in common, and read none of another.
            unsafe {
                scatter(&self.cpu, rows, batch.firsts, values, x, |to, value| *to = value);
            }
        }
    }

    /// Right sides inside patches and values around them.
    fn read(&self, tensors: &mut Tensors<T>, x: Source<'_, T>, b: &[T], firsts: &[u32]) {
        #[allow(unsafe_code)]
        // SAFETY: nobody writes b.
        unsafe {
            gather(&self.cpu, &self.inside, firsts, &mut tensors.inside, Source::new(b));
        }
        let around = self.around.iter().zip(&mut tensors.around);
        for (rows, values) in around.filter(|(_, values)| !values.is_empty()) {
            #[allow(unsafe_code)]
            // SAFETY: nodes around patches are inside none of their colour, so that nobody writes them.
            unsafe {
                gather(&self.cpu, rows, firsts, values, x);
            }
        }
    }
}
