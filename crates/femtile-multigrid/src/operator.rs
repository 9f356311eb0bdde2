use femtile_device::cpu::{SharedMut, Source};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sum_factorization::{SumFactorization, lanes};

use crate::axis::Line;
use crate::cell_patches::{CellPatches, KindCache, Rows, cells, gather, scatter};
use crate::grid::BoxGrid;
use crate::mapped::MappedCells;
use crate::smoother::PostOrder;
use crate::tensor::{Laplace, Workspace};

/// The matrix-free operator on a box, $a_{ij} = \int c\, \nabla\varphi_i \cdot \nabla\varphi_j$ for interior nodes and
/// those on free sides; vectors are zero on all other sides.
///
/// # Cost
/// Sum factorization: seven products with 1-D matrices per cell, four in two dimensions; for mapped cells twelve or
/// eight, plus the metric from the corners at each of $(k+1)^d$ Gauss points. SIMD lanes hold neighbouring cells; cells
/// of a colour are shared among threads, so results have the same bits for any number of threads.
/// # Source
/// `[cui2024]`, section 2.3.
#[derive(Debug, Clone)]
pub struct BoxOperator<T> {
    cpu: Cpu,
    grid: BoxGrid,
    cells: Cells<T>,
    rows: Rows,
}

/// The kernel by the kind of cells.
#[derive(Debug, Clone)]
enum Cells<T> {
    /// Rectangles with coefficient one.
    Plain(CellPatches<Line<T>>),
    Mapped(Box<MappedCells<T>>),
}

impl<T: SumFactorization> BoxOperator<T> {
    /// Creates the operator on a grid.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Self {
        let cells = match grid.mapping() {
            Some(geometry) => Cells::Mapped(Box::new(MappedCells::new(grid, geometry))),
            None => Cells::Plain(CellPatches::new(grid, &cells(grid), |_, widths, _| {
                Line::new(grid.degree(), widths)
            })),
        };
        let nodes = [0, 1, 2].map(|axis| if grid.widths(axis).is_empty() { 1 } else { grid.degree() + 1 });
        let rows = Rows::new(grid.strides(), [0; 3], nodes);
        Self { cpu: cpu.clone(), grid: grid.clone(), cells, rows }
    }

    /// $r = b - A x$.
    ///
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn residual(&self, r: &mut [T], b: &[T], x: &[T]) {
        r.copy_from_slice(b);
        self.add(r, x, -T::ONE);
    }

    /// $y \leftarrow y + \alpha A x$ at unknowns.
    fn add(&self, y: &mut [T], x: &[T], alpha: T) {
        let n = self.grid.n_nodes();
        assert!(x.len() == n && y.len() == n, "values of the nodes");
        let (x, shared) = (Source::new(x), SharedMut::new(y));
        match &self.cells {
            Cells::Plain(cells) => self.add_plain(cells, &shared, x, alpha),
            Cells::Mapped(cells) => cells.add(&self.cpu, &self.rows, &shared, x, alpha),
        }
        self.grid.clear_given(y);
    }

    fn add_plain(&self, cells: &CellPatches<Line<T>>, y: &SharedMut<'_, T>, x: Source<'_, T>, alpha: T) {
        let n_lanes = lanes::<T>(&self.cpu);
        let workspace = || {
            (
                vec![T::ZERO; self.rows.n_nodes() * n_lanes],
                Workspace::default(),
                KindCache::<Laplace<'_, T>>::new(),
            )
        };
        cells.sweep::<T, _>(&self.cpu, PostOrder::Same, workspace, |(values, workspace, known), batch| {
            #[allow(unsafe_code)]
            // SAFETY: x is not written.
            unsafe {
                gather(&self.cpu, &self.rows, batch.firsts, values, x);
            }
            let laplace = known.of(batch.kinds, || {
                Laplace::of_cells([0, 1, 2].map(|axis| &cells.kinds[axis][batch.kinds[axis]]), n_lanes)
            });
            let product = laplace.apply(&self.cpu, values, workspace);
            #[allow(unsafe_code)]
            // SAFETY: cells processed at the same time share no node.
            unsafe {
                let to = |to: &mut T, value| *to += alpha * value;
                scatter(&self.cpu, &self.rows, batch.firsts, product, y, to);
            }
        });
    }
}

impl<T: SumFactorization> LinearOperator<T, Cpu> for BoxOperator<T> {
    fn n_rows(&self) -> usize {
        self.grid.n_nodes()
    }

    fn n_cols(&self) -> usize {
        self.grid.n_nodes()
    }

    fn device(&self) -> &Cpu {
        &self.cpu
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &Buffer<T, Cpu>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let n = self.grid.n_nodes();
        need("y", n, y.len())?;
        need("x", n, x.len())?;
        hook.pre(0..n);
        y.as_mut_slice().fill(T::ZERO);
        self.add(y.as_mut_slice(), x.as_slice(), T::ONE);
        hook.post(0..n, x.as_slice(), y.as_slice());
        Ok(())
    }
}
