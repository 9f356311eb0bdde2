use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu};
use femtile_linalg::vector::sum::{BLOCK, n_blocks};
use femtile_linalg::{LinalgError, LinearOperator, need};
use femtile_sum_factorization::SumFactorization;

use crate::cell_patches::vertex_patches;
use crate::kernels::{BoxKernels, Refresh};
use crate::smoother::BoxSmoother;
use crate::transfer::BoxTransfer;
use crate::{BoxGrid, BoxOperator, MultigridError, PostOrder, Smoother};

/// Fewest blocks per thread.
const MIN_BLOCKS: usize = 4;

/// Calls `work` with each entry and its index, on all threads.
pub(crate) fn each<T: Send>(cpu: &Cpu, x: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let n = x.len();
    let shared = SharedMut::new(x);
    cpu.for_ranges(n_blocks(n), MIN_BLOCKS, |blocks| {
        let range = blocks.start * BLOCK..(blocks.end * BLOCK).min(n);
        // SAFETY: ranges of different threads are disjoint.
        let part = unsafe { shared.range(range.clone()) };
        cpu.vectorize(
            #[inline(always)]
            || range.zip(part).for_each(|(at, x)| work(at, x)),
        );
    });
}

impl<T: SumFactorization> BoxKernels<T> for Cpu {
    type Operator = BoxOperator<T>;
    type BoxSmoother = BoxSmoother<T>;
    type BoxTransfer = BoxTransfer<T>;

    fn box_operator(&self, grid: &BoxGrid) -> Result<BoxOperator<T>, MultigridError> {
        Ok(BoxOperator::new(self, grid))
    }

    fn box_smoother(&self, grid: &BoxGrid, smoother: Smoother) -> Result<BoxSmoother<T>, MultigridError> {
        BoxSmoother::new(self, grid, smoother)
    }

    fn box_patches(&self, grid: &BoxGrid, smoother: Smoother) -> Option<usize> {
        let is_on_patches = smoother.resolved(grid) == Smoother::VertexPatch;
        is_on_patches.then(|| vertex_patches(grid, grid.thin_axes()).iter().map(Vec::len).product())
    }

    fn box_coarsest(&self, grid: &BoxGrid) -> Result<BoxSmoother<T>, MultigridError> {
        BoxSmoother::coarsest(self, grid)
    }

    fn box_transfer(&self, coarse: &BoxGrid, fine: &BoxGrid) -> Result<BoxTransfer<T>, MultigridError> {
        Ok(BoxTransfer::new(self, coarse, fine))
    }

    fn box_residual(
        &self,
        a: &BoxOperator<T>,
        r: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let n = a.n_rows();
        need("r", n, r.len())?;
        need("b", n, b.len())?;
        need("x", n, x.len())?;
        a.residual(r.as_mut_slice(), b.as_slice(), x.as_slice());
        Ok(())
    }

    fn box_smooth(
        &self,
        smoother: &BoxSmoother<T>,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        need("b", x.len(), b.len())?;
        smoother.step(x, b.as_slice(), (order, false), &mut |_| Ok(()))
    }

    fn box_smooth_zero(
        &self,
        smoother: &BoxSmoother<T>,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        need("b", x.len(), b.len())?;
        smoother.step(x, b.as_slice(), (order, true), &mut |_| Ok(()))
    }

    fn box_layers(&self, grid: &BoxGrid, smoother: Smoother) -> [usize; 2] {
        match smoother.resolved(grid) {
            Smoother::Chebyshev => [0, 2],
            _ => [2, 2],
        }
    }

    fn box_largest(&self, smoother: &BoxSmoother<T>) -> Option<f64> {
        smoother.largest()
    }

    fn box_set_largest(&self, smoother: &mut BoxSmoother<T>, largest: f64) -> Result<(), MultigridError> {
        smoother.set_largest(largest);
        Ok(())
    }

    fn box_smooth_part(
        &self,
        smoother: &BoxSmoother<T>,
        (x, b): (&mut Buffer<T, Self>, &Buffer<T, Self>),
        of: (PostOrder, bool),
        refresh: &mut Refresh<'_, T, Self>,
    ) -> Result<(), LinalgError> {
        need("b", x.len(), b.len())?;
        smoother.step(x, b.as_slice(), of, refresh)
    }

    fn box_restrict(
        &self,
        transfer: &BoxTransfer<T>,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        transfer.restrict(coarse.as_mut_slice(), b.as_slice());
        Ok(())
    }

    fn box_restrict_residual(
        &self,
        transfer: &BoxTransfer<T>,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("x", b.len(), x.len())?;
        transfer.restrict_residual(coarse.as_mut_slice(), b.as_slice(), x.as_slice());
        Ok(())
    }

    fn box_prolongate(
        &self,
        transfer: &BoxTransfer<T>,
        x: &mut Buffer<T, Self>,
        coarse: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        transfer.prolongate(x.as_mut_slice(), coarse.as_slice());
        Ok(())
    }

    fn box_add(&self, y: &mut Buffer<f64, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError> {
        need("y", x.len(), y.len())?;
        let x = x.as_slice();
        each(self, y.as_mut_slice(), |at, y| *y += alpha * x[at].to_f64());
        Ok(())
    }
}
