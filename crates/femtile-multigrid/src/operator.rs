use femtile_device::{Buffer, Cpu};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_tensor::{Contract, lanes};

use crate::axis::Line;
use crate::grid::BoxGrid;
use crate::tensor::{Laplace, Room};
use crate::windows::{Shared, Windows, gather, scatter};

/// The Laplacian on a box, $a_{ij} = \int \nabla\varphi_i \cdot \nabla\varphi_j$ for nodes inside, without a matrix; vectors are
/// zero on the boundary.
///
/// # Cost
/// Seven products with 1-D matrices a cell, four in two dimensions; cells side by side in lanes, those of a colour on all
/// threads, so that results have the same bits for any number of threads.
/// # Source
/// `[cui2024]`, section 2.3.
#[derive(Debug, Clone)]
pub struct BoxOperator<T> {
    cpu: Cpu,
    grid: BoxGrid,
    cells: Windows<Line<T>>,
}

impl<T: Contract> BoxOperator<T> {
    /// On a grid.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Self {
        let cells = Windows::new(grid, [1; 3], |widths| Line::new(grid.degree(), widths));
        Self { cpu: cpu.clone(), grid: grid.clone(), cells }
    }

    /// $r = b - A x$.
    ///
    /// # Panics
    /// When a vector has not a value for each node.
    pub fn residual(&self, r: &mut [T], b: &[T], x: &[T]) {
        r.copy_from_slice(b);
        self.add(r, x, -T::ONE);
    }

    /// $y \leftarrow y + \alpha A x$, with zeros on the boundary.
    fn add(&self, y: &mut [T], x: &[T], alpha: T) {
        let n = self.grid.n_nodes();
        assert!(x.len() == n && y.len() == n, "values of the nodes");
        let offsets = &self.cells.offsets;
        let n_lanes = lanes::<T>(&self.cpu);
        let len = offsets.len() * n_lanes;
        let shared = Shared::new(y);
        for colour in 0..self.cells.colours.len() {
            self.cells.for_batches::<T>(&self.cpu, colour, |group, batches| {
                let lines = [0, 1, 2].map(|axis| &self.cells.kinds[axis][group.kinds[axis]]);
                let laplace = Laplace::new(lines, n_lanes);
                let (mut room, mut values) = (Room::new(len), vec![T::ZERO; len]);
                for firsts in batches {
                    gather(&self.cpu, offsets, firsts, &mut values, |node| x[node]);
                    laplace.apply(&self.cpu, &mut values, &mut room);
                    #[allow(unsafe_code)]
                    // SAFETY: cells of a colour share no node, and each is in one batch; their nodes exist.
                    scatter(&self.cpu, offsets, firsts, &values, |node, value| unsafe {
                        shared.add(node, alpha * value)
                    });
                }
            });
        }
        self.grid.clear_boundary(y);
    }
}

impl<T: Contract> LinearOperator<T, Cpu> for BoxOperator<T> {
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
