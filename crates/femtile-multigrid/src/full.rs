use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::{Convert, VectorKernels};

use crate::error::need;
use crate::kernels::BoxKernels;
use crate::level::{Level, Workspace};
use crate::{Multigrid, MultigridError};

/// How full multigrid went.
#[derive(Debug, Clone, PartialEq)]
pub struct FullOutcome {
    /// $\|b - A x\| / \|b\|$ of what comes from the next coarser level, then after each cycle.
    pub residuals: Vec<f64>,
    /// Whether the last one is as small as it was to be.
    pub is_converged: bool,
}

impl FullOutcome {
    /// Cycles on the finest level.
    pub fn cycles(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64>> Multigrid<T, D> {
    /// Full multigrid: from the coarsest level on each solution begins the next finer one, with a V-cycle on each; then
    /// V-cycles on the finest until $\|b - A x\| \le \varepsilon \|b\|$, there were `max_cycles`, or two of them took off less
    /// than a twentieth: what is left then is rounding, of about $10^{-16} \|A\| \|x\|$. x is overwritten.
    ///
    /// Cycles are in the precision `T` and correct a solution in double precision by its residual: in single precision they
    /// take half the time, and the error is that of double precision all the same. Right sides of coarser levels are
    /// restrictions of b. Cycles on the finest level are counted from its first.
    ///
    /// # Cost
    /// Beside x and b a residual in double precision, and about 2.3 vectors in `T`.
    /// # Errors
    /// [`MultigridError::Length`] when a vector does not fit; not converging is an outcome.
    /// # Source
    /// `[cui2024]`, Alg. 2.2 and section 4.2.
    pub fn solve_full(
        &self,
        x: &mut Buffer<f64, D>,
        b: &Buffer<f64, D>,
        tolerance: f64,
        max_cycles: usize,
    ) -> Result<FullOutcome, MultigridError> {
        let (device, n) = (self.device(), self.grid().n_nodes());
        need("x", n, x.len())?;
        need("b", n, b.len())?;
        let length = self.norm(b)?;
        if length == 0.0 {
            VectorKernels::<f64>::fill(device, x, 0.0)?;
            return Ok(FullOutcome { residuals: vec![0.0], is_converged: true });
        }
        let wide = BoxKernels::<f64>::box_operator(device, self.grid())?;
        let mut workspace = self.workspace()?;
        self.start(&mut workspace, b, length)?;
        Convert::<T, f64>::convert(device, x, length, &self.finest(&mut workspace).x)?;
        let mut r = Buffer::zeros(device, n)?;
        let mut residuals = Vec::new();
        loop {
            device.box_residual(&wide, &mut r, b, x)?;
            let norm = self.norm(&r)?;
            residuals.push(norm / length);
            let is_converged = norm <= tolerance * length;
            if is_converged || residuals.len() > max_cycles || !norm.is_finite() || is_stalled(&residuals) {
                return Ok(FullOutcome { residuals, is_converged });
            }
            self.correction(&mut workspace, &r, norm)?;
            device.box_add(x, norm, &self.finest(&mut workspace).x)?;
        }
    }

    /// ‖x‖₂.
    pub(crate) fn norm(&self, x: &Buffer<f64, D>) -> Result<f64, LinalgError> {
        Ok(self.device().dot(x, x)?.sqrt())
    }

    /// What one cycle from zero makes of r over a number of its size, on the finest level: in single precision only ratios of
    /// what is small have to be kept, as cycles are linear.
    fn correction(
        &self,
        workspace: &mut Workspace<T, D>,
        r: &Buffer<f64, D>,
        size: f64,
    ) -> Result<(), LinalgError> {
        Convert::<f64, T>::convert(self.device(), &mut self.finest(workspace).b, 1.0 / size, r)?;
        self.recorded_cycle(workspace)
    }

    /// What the solution of the level below, after a cycle on each from the coarsest on, is on the finest, for b over its size.
    fn start(
        &self,
        workspace: &mut Workspace<T, D>,
        b: &Buffer<f64, D>,
        size: f64,
    ) -> Result<(), LinalgError> {
        let device = self.device();
        Convert::<f64, T>::convert(device, &mut self.finest(workspace).b, 1.0 / size, b)?;
        let vectors = &mut workspace.vectors;
        for level in (0..self.levels.len()).rev() {
            let (coarse, fine) = vectors.split_at_mut(level + 1);
            device.box_restrict(&self.levels[level].transfer, &mut coarse[level].b, &fine[0].b)?;
        }
        // A cycle on a level leaves nothing of the right sides below, which those of the start come from anew.
        let sides = self.levels.iter().zip(vectors.iter()).map(|(_, below)| copy(device, &below.b));
        let sides = sides.collect::<Result<Vec<_>, _>>()?;
        self.cycle_from_zero(&mut vectors[..1])?;
        for (level, Level { transfer, .. }) in self.levels.iter().enumerate() {
            let (coarse, fine) = vectors.split_at_mut(level + 1);
            VectorKernels::<T>::fill(device, &mut fine[0].x, T::ZERO)?;
            device.box_prolongate(transfer, &mut fine[0].x, &coarse[level].x)?;
            if let Some(side) = sides.get(level + 1) {
                VectorKernels::<T>::copy(device, &mut fine[0].b, side)?;
                self.cycle(&mut vectors[..level + 2])?;
            }
        }
        Ok(())
    }
}

/// Whether the last two cycles took off less than a twentieth.
fn is_stalled(residuals: &[f64]) -> bool {
    matches!(residuals, [.., before, _, now] if *now > 0.95 * before)
}

fn copy<T: Scalar, D: VectorKernels<T>>(device: &D, x: &Buffer<T, D>) -> Result<Buffer<T, D>, LinalgError> {
    let mut y = Buffer::zeros(device, x.len())?;
    device.copy(&mut y, x)?;
    Ok(y)
}
