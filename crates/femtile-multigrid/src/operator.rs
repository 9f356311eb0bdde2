use femtile_device::cpu::{SharedMut, Source};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sum_factorization::SumFactorization;

use crate::cell_patches::Rows;
use crate::grid::BoxGrid;
use crate::mapped::MappedCells;
use crate::rows::RowOperator;

/// The matrix-free operator on a box, $a_{ij} = \int c\, \nabla\varphi_i \cdot \nabla\varphi_j$ for interior nodes and
/// those on free sides; vectors are zero on all other sides.
///
/// # Cost
/// Rectangles with coefficient one: rows of nodes, each a sum of neighbouring rows (`rows/operator.rs`). Mapped cells: sum
/// factorization, twelve products with 1-D matrices per cell, eight in two dimensions, plus the metric from the corners at
/// each of $(k+1)^d$ Gauss points; SIMD lanes hold neighbouring cells, and cells of a colour are shared among threads. Results have the same bits for any number of threads.
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
    Plain(Box<RowOperator<T>>),
    Mapped(Box<MappedCells<T>>),
}

impl<T: SumFactorization> BoxOperator<T> {
    /// Creates the operator on a grid.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Self {
        let cells = match grid.mapping() {
            Some(geometry) => Cells::Mapped(Box::new(MappedCells::new(grid, geometry))),
            None => Cells::Plain(Box::new(RowOperator::new(cpu, grid))),
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
        match &self.cells {
            Cells::Plain(rows) => rows.residual(r, b, x),
            Cells::Mapped(_) => {
                r.copy_from_slice(b);
                self.add(r, x, -T::ONE);
            }
        }
    }

    /// $y \leftarrow y + \alpha A x$ at unknowns, y zero at Dirichlet nodes.
    fn add(&self, y: &mut [T], x: &[T], alpha: T) {
        let n = self.grid.n_nodes();
        assert!(x.len() == n && y.len() == n, "values of the nodes");
        match &self.cells {
            Cells::Plain(rows) => rows.add(y, x, alpha),
            Cells::Mapped(cells) => {
                cells.add(&self.cpu, &self.rows, &SharedMut::new(y), Source::new(x), alpha);
                self.grid.clear_given(y);
            }
        }
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
