use femtile_tensor::Contract;

use crate::level::Vectors;
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
    /// Right sides of coarser levels are restrictions of b. Cycles on the finest level are counted from its first.
    ///
    /// # Errors
    /// [`MultigridError::Length`] when a vector does not fit; not converging is an outcome.
    /// # Source
    /// `[cui2024]`, Alg. 2.2.
    pub fn solve_full(
        &self,
        x: &mut [T],
        b: &[T],
        tolerance: f64,
        max_cycles: usize,
    ) -> Result<FullOutcome, MultigridError> {
        self.fits(x, b)?;
        let mut vectors = self.vectors();
        x.fill(T::ZERO);
        if let Some(finest) = self.levels.last() {
            let below = self.start(b, &mut vectors);
            finest.transfer.prolongate(x, &below);
        }
        let length = norm(b);
        let mut r = vec![T::ZERO; b.len()];
        let mut residuals = Vec::new();
        loop {
            self.operator().residual(&mut r, b, x);
            let relative = if length > 0.0 { norm(&r) / length } else { 0.0 };
            residuals.push(relative);
            let is_converged = relative <= tolerance;
            if is_converged || residuals.len() > max_cycles || !relative.is_finite() {
                return Ok(FullOutcome { residuals, is_converged });
            }
            self.cycle(x, b, &mut vectors);
        }
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

/// ‖x‖₂ in double precision.
fn norm<T: Contract>(x: &[T]) -> f64 {
    x.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>().sqrt()
}
