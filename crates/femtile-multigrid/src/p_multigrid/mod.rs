//! p-multigrid: levels are spaces of decreasing polynomial degree on one mesh, with any preconditioner on the lowest.
//!
//! The cycle is independent of meshes and degrees. A level is an operator, its diagonal and a `Transfer`; the
//! lowest one is any preconditioner. Transfers work cell by cell, and restriction is the exact transpose of
//! prolongation. Chebyshev polynomials smooth, with eigenvalue bounds from the Lanczos method. On flat cells a CPU
//! replaces the inverse diagonal by exact solves on lines of nodes (`lines`). More:
//! `docs/developers/p-multigrid.md`.

mod config;
#[allow(unsafe_code)]
mod cpu;
mod identity;
mod level;
mod lines;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::precondition::polynomial::{GlobalSums, Iterate, PolynomialKernels};
use femtile_linalg::vector::{Convert, VectorKernels};
use femtile_linalg::{LinalgError, Preconditioner, need};

use crate::MultigridError;
pub use config::PMultigridConfig;
pub use identity::IdentityTransfer;
pub use level::PLevel;
use level::Smoothed;
pub use lines::{LineCell, LineCells, LineSolves};

/// One p-multigrid V-cycle with a zero initial guess as a preconditioner, in the precision `T`, for f64 Krylov solvers:
/// symmetric positive definite if the preconditioner of the lowest degree is.
///
/// Every level above the lowest has an operator, its diagonal and a [`Transfer`](femtile_linalg::Transfer) to the next
/// one. Chebyshev polynomials smooth, so operators need only products and can be matrix-free. On flat cells
/// [`LineSolves`] replace the diagonal.
///
/// # Cost
/// Twice the polynomial degree in products, on every level above the lowest.
/// # Source
/// `[fehn2020]`, `[sundar2015]`; smoother: `[adams2003]`.
pub struct PMultigrid<T: Scalar, D: PolynomialKernels<T>> {
    device: D,
    /// Levels, the highest degree first.
    levels: Vec<Smoothed<T, D>>,
    lowest: Box<dyn Preconditioner<T, D>>,
    workspace: Mutex<Workspace<T, D>>,
    size: ResidualSize,
}

/// The vectors of a cycle.
struct Workspace<T: Scalar, D: PolynomialKernels<T>> {
    iterates: Vec<Iterate<T, D>>,
    /// Right-hand side and solution of the lowest degree.
    lowest: [Buffer<T, D>; 2],
}

impl<T: Scalar, D: PolynomialKernels<T>> PMultigrid<T, D> {
    /// Sets up levels in order of decreasing degree, with a preconditioner of the `n_lowest` unknowns below them; without
    /// levels, that preconditioner alone.
    ///
    /// # Cost
    /// [`PMultigridConfig::eigenvalue_steps`] products on every level.
    /// # Errors
    /// [`MultigridError::Setting`] for settings out of range, [`MultigridError::Levels`] for levels of inconsistent
    /// sizes, [`MultigridError::Level`] for an operator that is not positive definite or has a diagonal that is not
    /// positive.
    pub fn new(
        device: &D,
        levels: Vec<PLevel<T, D>>,
        lowest: (Box<dyn Preconditioner<T, D>>, usize),
        config: PMultigridConfig,
    ) -> Result<Self, MultigridError> {
        Self::distributed((device, &|_| Ok(()), 0), levels, lowest, config)
    }

    /// As [`PMultigrid::new`] for distributed levels. `sums` replaces numbers by their sums over all ranks.
    /// `first` is a number for the first row of this rank that differs from those of other ranks. Collective.
    ///
    /// # Errors
    /// As [`PMultigrid::new`], and errors of `sums`.
    pub fn distributed(
        (device, sums, first): (&D, &GlobalSums<'_>, u64),
        levels: Vec<PLevel<T, D>>,
        (lowest, n_lowest): (Box<dyn Preconditioner<T, D>>, usize),
        config: PMultigridConfig,
    ) -> Result<Self, MultigridError> {
        config.check()?;
        level::check(&levels, n_lowest)?;
        let smoothed = |(number, level)| Smoothed::new((device, sums, first), number, level, config);
        let levels: Vec<Smoothed<T, D>> =
            levels.into_iter().enumerate().map(smoothed).collect::<Result<_, _>>()?;
        let iterates = levels.iter().map(|level| Iterate::zeros(device, level.n_rows()));
        let workspace = Mutex::new(Workspace {
            iterates: iterates.collect::<Result<_, _>>()?,
            lowest: [Buffer::zeros(device, n_lowest)?, Buffer::zeros(device, n_lowest)?],
        });
        Ok(Self { device: device.clone(), levels, lowest, workspace, size: ResidualSize::default() })
    }

    /// Returns the largest eigenvalue of $D^{-1} A$ estimated on each level, the highest degree first.
    pub fn largest_eigenvalues(&self) -> impl Iterator<Item = f64> + '_ {
        self.levels.iter().map(|level| level.largest)
    }

    /// Runs a cycle for the right-hand side of the first of these levels.
    ///
    /// # Source
    /// `[fehn2020]`.
    fn cycle(
        &self,
        levels: &[Smoothed<T, D>],
        iterates: &mut [Iterate<T, D>],
        lowest: &mut [Buffer<T, D>; 2],
    ) -> Result<(), LinalgError> {
        let (Some((level, coarser)), Some((own, rest))) = (levels.split_first(), iterates.split_first_mut())
        else {
            let [b, x] = lowest;
            return self.lowest.apply(x, b);
        };
        level.relax_from_zero(own)?;
        own.residual(level.operator.as_ref())?;
        let next_b = rest.first_mut().map_or(&mut lowest[0], |next| &mut next.b);
        level.transfer.restrict(next_b, &own.next)?;
        self.cycle(coarser, rest, lowest)?;
        let next_x = rest.first().map_or(&lowest[1], |next| &next.x);
        level.transfer.prolongate(&mut own.x, next_x)?;
        level.relax(own)
    }
}

impl<T: Scalar, D> Preconditioner<f64, D> for PMultigrid<T, D>
where
    D: PolynomialKernels<T> + VectorKernels<f64> + Convert<f64, T> + Convert<T, f64>,
{
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let Workspace { iterates, lowest } = &mut *workspace;
        let finest_b = iterates.first_mut().map_or(&mut lowest[0], |finest| &mut finest.b);
        need("z", finest_b.len(), z.len())?;
        need("r", finest_b.len(), r.len())?;
        let size = self.size.get();
        Convert::<f64, T>::convert(&self.device, finest_b, 1.0 / size, r)?;
        self.cycle(&self.levels, iterates, lowest)?;
        let finest_x = iterates.first().map_or(&lowest[1], |finest| &finest.x);
        Convert::<T, f64>::convert(&self.device, z, size, finest_x)
    }

    fn is_fixed(&self) -> bool {
        self.lowest.is_fixed()
    }

    /// The last call applies to all concurrent solves, whose residual norms should be similar.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}
