use femtile_tensor::Contract;

use crate::level::{Room, Vectors};
use crate::vector::{add_wide, norm, widen};
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

impl<T: Contract> Multigrid<T> {
    /// Full multigrid: from the coarsest level on each solution begins the next finer one, with a V-cycle on each; then
    /// V-cycles on the finest until $\|b - A x\| \le \varepsilon \|b\|$ or there were `max_cycles`. x is overwritten.
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
        x: &mut [f64],
        b: &[f64],
        tolerance: f64,
        max_cycles: usize,
    ) -> Result<FullOutcome, MultigridError> {
        self.fits(x.len(), b.len())?;
        let (cpu, mut room) = (self.cpu(), self.room());
        x.fill(0.0);
        if let Some(finest) = self.levels.last() {
            let scale = self.take(&mut room, b);
            let below = self.start(&room.b, &mut room.vectors);
            finest.transfer.prolongate(&mut room.x, &below);
            widen(cpu, x, scale, &room.x);
        }
        let length = norm(cpu, b);
        let mut r = vec![0.0; b.len()];
        let mut residuals = Vec::new();
        loop {
            self.wide_operator().residual(&mut r, b, x);
            let relative = if length > 0.0 { norm(cpu, &r) / length } else { 0.0 };
            residuals.push(relative);
            let is_converged = relative <= tolerance;
            if is_converged || residuals.len() > max_cycles || !relative.is_finite() {
                return Ok(FullOutcome { residuals, is_converged });
            }
            let scale = self.correction(&mut room, &r);
            add_wide(cpu, x, scale, &room.x);
        }
    }

    /// What one cycle from zero makes of a residual, but for the factor that is returned.
    pub(crate) fn correction(&self, room: &mut Room<T>, r: &[f64]) -> f64 {
        let scale = self.take(room, r);
        self.cycle(&mut room.x, &room.b, &mut room.vectors);
        scale
    }

    /// The solution of the level below the finest, after a cycle on each.
    fn start(&self, b: &[T], vectors: &mut [Vectors<T>]) -> Vec<T> {
        let n_levels = self.levels.len();
        let mut sides: Vec<Vec<T>> = Vec::new();
        for level in (0..n_levels).rev() {
            let mut side = vec![T::ZERO; self.grid_of(level).n_nodes()];
            self.levels[level].transfer.restrict(&mut side, sides.last().map_or(b, Vec::as_slice));
            sides.push(side);
        }
        let mut x = Vec::new();
        for level in 0..n_levels {
            let mut next = vec![T::ZERO; self.grid_of(level).n_nodes()];
            if let Some(above) = level.checked_sub(1) {
                self.levels[above].transfer.prolongate(&mut next, &x);
            }
            self.cycle(&mut next, &sides[n_levels - 1 - level], &mut vectors[..level]);
            x = next;
        }
        x
    }
}
