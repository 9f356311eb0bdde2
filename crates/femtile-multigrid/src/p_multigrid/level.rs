use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::inverse_diagonal;
use femtile_linalg::precondition::polynomial::{
    GlobalSums, Iterate, PolynomialKernels, Step, chebyshev, largest_of_ranks, start_of_rows,
};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner, Transfer};

use super::PMultigridConfig;
use crate::MultigridError;

/// A level above the lowest, as supplied by the caller.
pub struct PLevel<T: Scalar, D: PolynomialKernels<T>> {
    /// The operator, with unit rows and columns for Dirichlet nodes.
    pub operator: Box<dyn LinearOperator<T, D>>,
    /// The diagonal of the operator.
    pub diagonal: Vec<T>,
    /// A symmetric positive definite preconditioner of the polynomials instead of the inverse diagonal: line
    /// solves.
    pub lines: Option<Box<dyn Preconditioner<T, D>>>,
    /// The transfer to the next lower level.
    pub transfer: Box<dyn Transfer<T, D>>,
}

/// A level with its smoother.
pub(super) struct Smoothed<T: Scalar, D: PolynomialKernels<T>> {
    pub operator: Box<dyn LinearOperator<T, D>>,
    pub transfer: Box<dyn Transfer<T, D>>,
    inverse_diagonal: Buffer<T, D>,
    lines: Option<Box<dyn Preconditioner<T, D>>>,
    steps: Vec<Step<T>>,
    /// Largest eigenvalue of $D^{-1} A$, D the diagonal or the line blocks.
    pub largest: f64,
}

impl<T: Scalar, D: PolynomialKernels<T>> Smoothed<T, D> {
    pub fn new(
        (device, sums, first): (&D, &GlobalSums<'_>, u64),
        number: usize,
        level: PLevel<T, D>,
        config: PMultigridConfig,
    ) -> Result<Self, MultigridError> {
        let PLevel { operator, diagonal, lines, transfer } = level;
        let n_rows = operator.n_rows();
        let on_level = |source: LinalgError| MultigridError::Level { level: number, n_rows, source };
        let inverse_diagonal = inverse_diagonal(device, diagonal).map_err(on_level)?;
        let start = start_of_rows(&inverse_diagonal.host_view()?, first);
        let solve = |v: &mut Buffer<T, D>, r: &Buffer<T, D>| match &lines {
            Some(lines) => lines.apply(v, r),
            None => device.scale_by(v, &inverse_diagonal, r),
        };
        let start = Buffer::from_vec(device, start)?;
        let largest = largest_of_ranks(sums, operator.as_ref(), start, solve, config.eigenvalue_steps)
            .map_err(on_level)?;
        let steps = chebyshev(config.sweeps, [largest / config.range, largest]);
        Ok(Self { operator, transfer, inverse_diagonal, lines, steps, largest })
    }

    /// Smooths with a zero initial guess.
    pub fn relax_from_zero(&self, own: &mut Iterate<T, D>) -> Result<(), LinalgError> {
        match &self.lines {
            Some(lines) => own.relax_from_zero_by(self.operator.as_ref(), &self.steps, lines.as_ref()),
            None => own.relax_from_zero(self.operator.as_ref(), &self.steps, &self.inverse_diagonal),
        }
    }

    /// Smooths.
    pub fn relax(&self, own: &mut Iterate<T, D>) -> Result<(), LinalgError> {
        match &self.lines {
            Some(lines) => own.relax_by(self.operator.as_ref(), &self.steps, lines.as_ref()),
            None => own.relax(self.operator.as_ref(), &self.steps, &self.inverse_diagonal),
        }
    }

    pub fn n_rows(&self) -> usize {
        self.operator.n_rows()
    }
}

/// Checks that the sizes of levels match.
pub(super) fn check<T: Scalar, D: PolynomialKernels<T>>(
    levels: &[PLevel<T, D>],
    n_lowest: usize,
) -> Result<(), MultigridError> {
    let below = levels.iter().skip(1).map(|level| level.operator.n_rows()).chain([n_lowest]);
    for (number, (level, n_coarse)) in levels.iter().zip(below).enumerate() {
        let (n, transfer) = (level.operator.n_rows(), &level.transfer);
        let is_fit = n == level.operator.n_cols()
            && n == level.diagonal.len()
            && (n, n_coarse) == (transfer.n_fine(), transfer.n_coarse());
        if !is_fit {
            let message = format!(
                "level {number} has {n} rows, {} entries on its diagonal, and a transfer from {} to {} unknowns, where the \
                 next one has {n_coarse}",
                level.diagonal.len(),
                transfer.n_fine(),
                transfer.n_coarse()
            );
            return Err(MultigridError::Levels { levels: levels.len() + 1, message });
        }
    }
    Ok(())
}
