use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_sum_factorization::{Factor, SumFactorization, contract, lanes};

use crate::axis::TransferLine;
use crate::cell_patches::{Batch, ByOpen, CellPatches, Rows, cells_apart, gather, scatter};
use crate::grid::BoxGrid;
use crate::operator::BoxOperator;
use crate::smoother::PostOrder;
use crate::tensor::{Laplace, Workspace};

/// Prolongation I between a grid and its refinement along some axes (the embedding of coarse functions), and restriction,
/// its transpose, coarse cell by coarse cell.
///
/// A coarse cell owns the fine nodes that no cell before it along an axis has, so each fine node is read and written
/// once. Nodes on the far boundary belong to the last cell where that side is free, and to no cell otherwise.
///
/// # Cost
/// Each vector once, and a product with a 1-D matrix per axis.
/// # Source
/// `[cui2024]`, section 2.1.
#[derive(Debug, Clone)]
pub struct BoxTransfer<T> {
    cpu: Cpu,
    coarse: BoxGrid,
    cells: CellPatches<TransferLine<T>>,
    /// The fine operator, for mapped cells.
    operator: Option<BoxOperator<T>>,
    /// Nodes of a coarse cell, the fine nodes that it owns, and all its fine nodes.
    nodes: [usize; 3],
    of_coarse: Rows,
    own: ByOpen<Rows>,
    all: Rows,
}

impl<T: SumFactorization> BoxTransfer<T> {
    /// Creates the transfer; each axis of `fine` has as many cells as `coarse`, or twice as many.
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, fine: &BoxGrid) -> Self {
        let (strides, k) = (fine.strides(), coarse.degree());
        let along = |axis: usize| match coarse.widths(axis).len() {
            0 => 0,
            cells => k * (fine.widths(axis).len() / cells),
        };
        let steps = [0, 1, 2].map(along);
        let spans = cells_apart(coarse);
        let cells = CellPatches::new(coarse, &spans, |axis, widths, [_, has_last]| {
            TransferLine::new(k, widths, steps[axis] / k, has_last)
        });
        let or_one = |n: [usize; 3]| [0, 1, 2].map(|axis| if steps[axis] == 0 { 1 } else { n[axis] });
        let nodes = or_one([k + 1; 3]);
        Self {
            cpu: cpu.clone(),
            coarse: coarse.clone(),
            operator: fine.mapping().map(|_| BoxOperator::new(cpu, fine)),
            cells: cells.with_other_grid([0, 1, 2].map(|axis| steps[axis] * strides[axis])),
            nodes,
            of_coarse: Rows::new(coarse.strides(), [0; 3], nodes),
            own: ByOpen::new(&spans, |spans| {
                let n_own = |axis: usize| steps[axis] + usize::from(spans[axis].open[1]);
                Rows::new(strides, [0; 3], or_one([0, 1, 2].map(n_own)))
            }),
            all: Rows::new(strides, [0; 3], or_one(steps.map(|n| n + 1))),
        }
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$.
    pub fn prolongate(&self, fine: &mut [T], coarse: &[T]) {
        let (fine, coarse) = (SharedMut::new(fine), Source::new(coarse));
        self.each_cell(|tensors, batch| {
            tensors.x.resize(tensors.n_lanes * self.of_coarse.n_nodes(), T::ZERO);
            #[allow(unsafe_code)]
            // SAFETY: the coarse vector is not written.
            unsafe {
                gather(&self.cpu, &self.of_coarse, batch.firsts, &mut tensors.x, coarse);
            }
            self.along_all(batch, |line| &line.up, tensors);
            #[allow(unsafe_code)]
            // SAFETY: coarse cells own disjoint fine nodes.
            unsafe {
                scatter(&self.cpu, self.own.of(batch.open), batch.others, &tensors.x, &fine, |to, value| {
                    *to += value
                });
            }
        });
    }

    /// $b_{\ell-1} = I^\mathsf{T} b_\ell$ on unknowns.
    pub fn restrict(&self, coarse: &mut [T], b: &[T]) {
        self.restrict_of(coarse, b, |_, _| {});
    }

    /// $b_{\ell-1} = I^\mathsf{T} (b_\ell - A x_\ell)$ on unknowns, without storing the residual for rectangles with
    /// coefficient one: there $I^\mathsf{T} A$ is applied per coarse cell.
    pub fn restrict_residual(&self, coarse: &mut [T], b: &[T], x: &[T]) {
        if let Some(operator) = &self.operator {
            let mut r = vec![T::ZERO; b.len()];
            operator.residual(&mut r, b, x);
            return self.restrict(coarse, &r);
        }
        let x = Source::new(x);
        self.restrict_of(coarse, b, |tensors, batch| {
            let Tensors { x: sum, energy, workspace, n_lanes, .. } = tensors;
            energy.resize(*n_lanes * self.all.n_nodes(), T::ZERO);
            #[allow(unsafe_code)]
            // SAFETY: x is not written.
            unsafe {
                gather(&self.cpu, &self.all, batch.others, energy, x);
            }
            let lines = self.lines(batch);
            let product =
                Laplace::of(lines.map(|line| &line.down_energy)).apply(&self.cpu, energy, workspace);
            sum.iter_mut().zip(product).for_each(|(sum, product)| *sum -= *product);
        });
    }

    /// Restricts b, modified per cell by `change`.
    fn restrict_of(&self, coarse: &mut [T], b: &[T], change: impl Fn(&mut Tensors<T>, &Batch<'_>) + Sync) {
        coarse.fill(T::ZERO);
        let (shared, b) = (SharedMut::new(coarse), Source::new(b));
        self.each_cell(|tensors, batch| {
            let own = self.own.of(batch.open);
            tensors.x.resize(tensors.n_lanes * own.n_nodes(), T::ZERO);
            #[allow(unsafe_code)]
            // SAFETY: b is not written.
            unsafe {
                gather(&self.cpu, own, batch.others, &mut tensors.x, b);
            }
            self.along_all(batch, |line| &line.down, tensors);
            change(tensors, batch);
            #[allow(unsafe_code)]
            // SAFETY: neighbouring cells are not processed at the same time.
            unsafe {
                let to = |to: &mut T, value| *to += value;
                scatter(&self.cpu, &self.of_coarse, batch.firsts, &tensors.x, &shared, to);
            }
        });
        self.coarse.clear_given(coarse);
    }

    fn each_cell(&self, work: impl Fn(&mut Tensors<T>, &Batch<'_>) + Sync) {
        let workspace = || Tensors::new(lanes::<T>(&self.cpu));
        self.cells.sweep::<T, _>(&self.cpu, PostOrder::Same, workspace, work);
    }

    fn lines(&self, batch: &Batch<'_>) -> [&TransferLine<T>; 3] {
        [0, 1, 2].map(|axis| &self.cells.kinds[axis][batch.kinds[axis]])
    }

    /// Applies the matrix of each axis along it.
    fn along_all(
        &self,
        batch: &Batch<'_>,
        factor: impl Fn(&TransferLine<T>) -> &Factor<T>,
        Tensors { x, next, .. }: &mut Tensors<T>,
    ) {
        let mut inner = 1;
        for (line, _) in self.lines(batch).iter().zip(self.nodes).filter(|(_, n)| *n > 1) {
            let factor = factor(line);
            next.resize(x.len() / factor.n_cols() * factor.n_rows(), T::ZERO);
            contract(&self.cpu, factor, inner, x, next);
            std::mem::swap(x, next);
            inner *= factor.n_rows();
        }
    }
}

/// Values of coarse cells in SIMD lanes.
struct Tensors<T> {
    n_lanes: usize,
    x: Vec<T>,
    next: Vec<T>,
    /// Values on all fine nodes.
    energy: Vec<T>,
    workspace: Workspace<T>,
}

impl<T: SumFactorization> Tensors<T> {
    fn new(n_lanes: usize) -> Self {
        Self { n_lanes, x: Vec::new(), next: Vec::new(), energy: Vec::new(), workspace: Workspace::default() }
    }
}
