use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_sum_factorization::SumFactorization;

use super::PostOrder;
use super::local::{LocalSolve, Tensors};
use crate::axis::{PatchLine, unknowns};
use crate::cell_patches::{
    Batch, ByOpen, CellPatches, KindCache, Rows, Span, Spans, gather, scatter, vertex_patches, whole,
};
use crate::grid::BoxGrid;

/// The multiplicative Schwarz smoother on vertex patches, coloured, with exact local solves:
///
/// $$ x \leftarrow x + R_j^\mathsf{T} A_j^{-1} (R_j b - \bar A_j \bar R_j x). $$
///
/// Patches of a colour are processed in SIMD lanes and shared among threads. No patch writes values that
/// another of its colour reads, so results have the same bits for any number of threads.
///
/// On a free side patches include the nodes of that side. Patch boundaries lie between cells, so no patch reads nodes
/// inside a cell: only the last patch with a cell writes them, all others write the planes between their cells.
///
/// # Cost
/// Per patch three products with 1-D matrices of 2k − 1 rows on the inner nodes and a few on planes; six products for the
/// last patch of a cell. Each inner node is read in $2^d$ right-hand sides.
/// # Source
/// `[cui2024]`, Alg. 2.3, eqs. (2.8), (2.13) and (2.14). Differs: exact local solves make old inner values unnecessary.
#[derive(Debug, Clone)]
pub struct Patches<T> {
    cpu: Cpu,
    cell_patches: CellPatches<PatchLine<T>>,
    layouts: ByOpen<Layout>,
}

/// Node positions of a patch.
#[derive(Debug, Clone)]
struct Layout {
    /// Nodes of a patch along each axis, and its inner nodes.
    nodes: [usize; 3],
    n_inside: [usize; 3],
    /// Inner nodes.
    inside: Rows,
    /// Surrounding nodes in the order of [`Tensors`]: at closed ends along each axis.
    around: [Rows; 3],
    /// Planes that other patches read: between two cells or at an open end across each axis; none if patches
    /// have all cells along the axis.
    planes: [Rows; 3],
}

impl Layout {
    fn new(grid: &BoxGrid, spans: [&Span; 3]) -> Self {
        let nodes = spans.map(|span| grid.degree() * span.cells.len() + 1);
        let own = [0, 1, 2].map(|axis| unknowns(nodes[axis], spans[axis].open));
        let (first, n) = (own.each_ref().map(|own| own.start), own.each_ref().map(|own| own.len()));
        let across = |axis: usize, place: usize, mut first: [usize; 3], mut n: [usize; 3]| {
            (first[axis], n[axis]) = (place, 1);
            Rows::new(grid.strides(), first, n)
        };
        let ends = |axis: usize, first: [usize; 3], of_axes: [usize; 3]| {
            let places = (0..own[axis].start).chain(own[axis].end..nodes[axis]);
            let rows: Vec<Rows> = places.map(|place| across(axis, place, first, of_axes)).collect();
            match &rows[..] {
                [one, other] => one.interleaved(other, if axis == 2 { n[1] } else { 1 }),
                [one] => one.clone(),
                _ => Rows::none(),
            }
        };
        let plane = |axis: usize| match (spans[axis].cells.len(), spans[axis].open) {
            (1, [true, false]) => across(axis, 0, first, n),
            (1, [false, true]) => across(axis, grid.degree(), first, n),
            (2, [false, false]) => across(axis, grid.degree(), first, n),
            _ => Rows::none(),
        };
        Self {
            inside: Rows::new(grid.strides(), first, n),
            around: [
                ends(0, [0; 3], nodes),
                ends(1, [first[0], 0, 0], [n[0], nodes[1], nodes[2]]),
                ends(2, [first[0], first[1], 0], [n[0], n[1], nodes[2]]),
            ],
            planes: [0, 1, 2].map(plane),
            n_inside: n,
            nodes,
        }
    }
}

impl<T: SumFactorization> Patches<T> {
    /// Vertex patches: the cells around every interior or free vertex; all cells along thin axes and along an axis with
    /// one cell.
    pub fn around_vertices(cpu: &Cpu, grid: &BoxGrid, thin: [bool; 3]) -> Self {
        Self::of_spans(cpu, grid, &vertex_patches(grid, thin))
    }

    /// One patch of all cells: the exact solver.
    pub fn whole(cpu: &Cpu, grid: &BoxGrid) -> Self {
        Self::of_spans(cpu, grid, &whole(grid))
    }

    fn of_spans(cpu: &Cpu, grid: &BoxGrid, spans: &Spans) -> Self {
        let line = |_, widths: &[f64], open| PatchLine::new(grid.degree(), widths, open);
        Self {
            cpu: cpu.clone(),
            cell_patches: CellPatches::new(grid, spans, line),
            layouts: ByOpen::new(spans, |spans| Layout::new(grid, spans)),
        }
    }

    /// Applies one multiplicative Schwarz step.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let x = SharedMut::new(x);
        let workspace = || (Tensors::new(), KindCache::new());
        self.cell_patches.sweep::<T, _>(&self.cpu, order, workspace, |(tensors, known), batch| {
            self.solve(&x, b, tensors, self.local(known, batch), batch);
        });
    }

    /// Returns the local solve for the kinds of a batch.
    fn local<'k, 's>(
        &'s self,
        known: &'k mut KindCache<LocalSolve<'s, T>>,
        batch: &Batch<'_>,
    ) -> &'k LocalSolve<'s, T> {
        known.of(batch.kinds, || {
            LocalSolve::new(
                &self.cpu,
                [0, 1, 2].map(|axis| &self.cell_patches.kinds[axis][batch.kinds[axis]]),
            )
        })
    }

    /// Solves on a batch of patches of one colour.
    fn solve(
        &self,
        x: &SharedMut<'_, T>,
        b: &[T],
        tensors: &mut Tensors<T>,
        local: &LocalSolve<'_, T>,
        batch: &Batch<'_>,
    ) {
        let layout = self.layouts.of(batch.open);
        tensors.fit(&self.cpu, layout.nodes, layout.n_inside);
        self.read(tensors, layout, (Source::of_shared(x), b), batch.firsts);
        local.solve(&self.cpu, tensors);
        let (rows, values) = if batch.is_last {
            local.back(&self.cpu, tensors);
            (std::slice::from_ref(&layout.inside), std::slice::from_ref(&tensors.inside))
        } else {
            local.back_to_planes(&self.cpu, tensors);
            (&layout.planes[..], &tensors.planes[..])
        };
        for (rows, values) in rows.iter().zip(values).filter(|(rows, _)| rows.n_nodes() > 0) {
            #[allow(unsafe_code)]
            // SAFETY: patches processed at the same time share no inner node and read none of each other.
            unsafe {
                scatter(&self.cpu, rows, batch.firsts, values, x, |to, value| *to = value);
            }
        }
    }

    /// Gathers right-hand sides at inner nodes and the values around them.
    fn read(&self, tensors: &mut Tensors<T>, layout: &Layout, (x, b): (Source<'_, T>, &[T]), firsts: &[u32]) {
        #[allow(unsafe_code)]
        // SAFETY: b is not written.
        unsafe {
            gather(&self.cpu, &layout.inside, firsts, &mut tensors.inside, Source::new(b));
        }
        let around = layout.around.iter().zip(&mut tensors.around);
        for (rows, values) in around.filter(|(_, values)| !values.is_empty()) {
            #[allow(unsafe_code)]
            // SAFETY: surrounding nodes are inner nodes of no patch of the same colour, so they are not written.
            unsafe {
                gather(&self.cpu, rows, firsts, values, x);
            }
        }
    }
}
