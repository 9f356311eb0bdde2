use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::{Convert, VectorKernels};

use crate::error::need;
use crate::kernels::BoxKernels;
use crate::level::{Level, Workspace};
use crate::{Multigrid, MultigridError};

/// The outcome of full multigrid.
#[derive(Debug, Clone, PartialEq)]
pub struct FullOutcome {
    /// $\|b - A x\| / \|b\|$ of the initial guess from the next coarser level, then after each cycle.
    pub residuals: Vec<f64>,
    /// Whether the last residual meets the tolerance.
    pub is_converged: bool,
}

impl FullOutcome {
    /// Returns the number of V-cycles on the finest level.
    pub fn cycles(&self) -> usize {
        self.residuals.len().saturating_sub(1)
    }
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64>> Multigrid<T, D> {
    /// Solves A x = b by full multigrid (nested iteration with one V-cycle per level), then by V-cycles on
    /// the finest level. Ends when $\|b - A x\| \le \varepsilon \|b\|$, after `max_cycles`, or when two
    /// cycles reduce the residual by less than 5 %. In the last case rounding errors of about
    /// $10^{-16} \|A\| \|x\|$ remain. `x` is overwritten.
    ///
    /// Cycles run in the precision `T` and correct an f64 solution by its residual: f32 cycles need half the
    /// time and reach the accuracy of f64. Right-hand sides of coarser levels are restrictions of b. Full
    /// multigrid counts as the first cycle on the finest level.
    ///
    /// # Cost
    /// Memory besides x and b: an f64 residual and about 2.3 vectors in `T`.
    /// # Errors
    /// [`MultigridError::Length`] for a vector of another length. Not converging is an outcome.
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
        Convert::<f64, T>::convert(device, &mut self.finest(&mut workspace).b, 1.0 / length, b)?;
        self.prolonged(&mut workspace)?;
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

    /// Returns ‖x‖₂.
    pub(crate) fn norm(&self, x: &Buffer<f64, D>) -> Result<f64, LinalgError> {
        Ok(self.device().dot(x, x)?.sqrt())
    }

    /// Applies one V-cycle to r divided by `size`, on the finest level. Cycles are linear, so scaling keeps small
    /// residuals within the range of f32.
    fn correction(
        &self,
        workspace: &mut Workspace<T, D>,
        r: &Buffer<f64, D>,
        size: f64,
    ) -> Result<(), LinalgError> {
        Convert::<f64, T>::convert(self.device(), &mut self.finest(workspace).b, 1.0 / size, r)?;
        self.recorded_cycle(workspace)
    }

    /// Returns the initial guess on the finest level: full multigrid on the coarser levels for the right-hand side of the finest
    /// one, prolonged.
    pub(crate) fn prolonged(&self, workspace: &mut Workspace<T, D>) -> Result<(), LinalgError> {
        let device = self.device();
        let vectors = &mut workspace.vectors;
        for level in (0..self.levels.len()).rev() {
            let (coarse, fine) = vectors.split_at_mut(level + 1);
            device.box_restrict(&self.levels[level].transfer, &mut coarse[level].b, &fine[0].b)?;
        }
        // A cycle overwrites the right-hand sides of coarser levels, so those of full multigrid are kept apart.
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

/// Returns whether the last two cycles reduced the residual by less than 5 %.
fn is_stalled(residuals: &[f64]) -> bool {
    matches!(residuals, [.., before, _, now] if *now > 0.95 * before)
}

fn copy<T: Scalar, D: VectorKernels<T>>(device: &D, x: &Buffer<T, D>) -> Result<Buffer<T, D>, LinalgError> {
    let mut y = Buffer::zeros(device, x.len())?;
    device.copy(&mut y, x)?;
    Ok(y)
}
