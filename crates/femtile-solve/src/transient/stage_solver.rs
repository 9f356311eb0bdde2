//! Solver of stages by the method of the settings, with vectors that are kept.

use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::krylov::cg::{CgOutcome, CgSolver, Target};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use super::operators::{Operator, Shifted};
use crate::method::{by_method, cg_config};
use crate::tensor::OperatorDevice;
use crate::{Method, SolveError, SolverConfig};

/// Relative accuracy of the correction of an initial guess, if it is an error estimate.
const OF_ESTIMATE: f64 = 0.01;
/// A residual that is rounding error, relative to the right side.
const ROUNDING: f64 = 1e-15;
/// The largest relative tolerance of a solve, and of one whose right side is rounding error.
const LOOSEST: [f64; 2] = [0.5, 0.1];

/// A solver for the stages of one shift at a time, with the vectors x and b.
pub(super) enum StageSolver<D: OperatorDevice> {
    Cg(Box<CgSolver<f64, D>>),
    Other { a: Operator<D>, m: Arc<dyn Preconditioner<f64, D>>, x: Buffer<f64, D>, b: Buffer<f64, D> },
}

impl<D: OperatorDevice> StageSolver<D> {
    /// Makes a solver; each rank of `comm` makes one.
    pub fn new(method: Method, of: &Shifted<D>, comm: &Comm) -> Result<Self, LinalgError> {
        let (a, m) = (Arc::clone(&of.operator), Arc::clone(&of.preconditioner));
        if method == Method::Cg {
            return Ok(Self::Cg(Box::new(D::cg_solver(a, m, comm)?)));
        }
        let zeros = || Buffer::zeros(a.device(), a.n_rows());
        let (x, b) = (zeros()?, zeros()?);
        Ok(Self::Other { a, m, x, b })
    }

    /// Takes the operator and the preconditioner of another shift.
    pub fn take(&mut self, of: &Shifted<D>, comm: &Comm) -> Result<(), LinalgError> {
        let (operator, preconditioner) = (Arc::clone(&of.operator), Arc::clone(&of.preconditioner));
        match self {
            Self::Cg(solver) => D::set_cg_operator(solver, operator, preconditioner, comm),
            Self::Other { a, m, .. } => {
                (*a, *m) = (operator, preconditioner);
                Ok(())
            }
        }
    }

    /// Returns x and b.
    pub fn vectors_mut(&mut self) -> (&mut Buffer<f64, D>, &mut Buffer<f64, D>) {
        match self {
            Self::Cg(solver) => solver.vectors_mut(),
            Self::Other { x, b, .. } => (x, b),
        }
    }

    /// Returns x.
    pub fn x(&self) -> &Buffer<f64, D> {
        match self {
            Self::Cg(solver) => solver.x(),
            Self::Other { x, .. } => x,
        }
    }

    /// Returns the smallest known Ritz value of the operator.
    pub fn ritz_value(&self) -> Option<f64> {
        match self {
            Self::Cg(solver) => solver.smallest_ritz_value(),
            Self::Other { .. } => None,
        }
    }

    /// Sets the smallest Ritz value.
    pub fn set_ritz_value(&mut self, value: Option<f64>) {
        if let Self::Cg(solver) = self {
            solver.set_smallest_ritz_value(value);
        }
    }

    /// Solves from the initial guess x to the tolerance of the settings, relative to b. If the correction of
    /// x is an error estimate, the tolerance is also relative to that correction. It is not below the
    /// rounding errors of b, which have norm `rounding`.
    pub fn solve(
        &mut self,
        config: &SolverConfig,
        (is_estimated, rounding): (bool, f64),
        comm: &Comm,
    ) -> Result<CgOutcome, SolveError> {
        match self {
            Self::Cg(solver) => {
                // A power of two, so that it is the same in most steps.
                solver.set_rounding(rounding.log2().ceil().exp2());
                let target = if is_estimated { Target::Reduction(OF_ESTIMATE) } else { Target::RightSide };
                Ok(D::cg_solve(solver, &cg_config(config), target, comm, &mut ())?)
            }
            Self::Other { a, m, x, b } => {
                let [of_r, of_b] = norms(a.as_ref(), x, b, comm)?;
                let mut tolerance = config.tolerance;
                if is_estimated {
                    tolerance = tolerance.min((OF_ESTIMATE * of_r / of_b).max(ROUNDING)).min(LOOSEST[0]);
                }
                if of_b > 0.0 {
                    tolerance = tolerance.max((rounding / of_b).min(LOOSEST[1]));
                }
                let config = SolverConfig { tolerance, ..config.clone() };
                Ok(by_method(&config, comm, x, (a.as_ref(), m.as_ref()), b, &mut ())?)
            }
        }
    }
}

/// Returns the norms of the residual of x and of b.
fn norms<D: OperatorDevice>(
    a: &dyn LinearOperator<f64, D>,
    x: &Buffer<f64, D>,
    b: &Buffer<f64, D>,
    comm: &Comm,
) -> Result<[f64; 2], LinalgError> {
    let device = b.device();
    let mut r = Buffer::zeros(device, b.len())?;
    a.apply(&mut r, x)?;
    device.axpby(&mut r, 1.0, b, -1.0)?;
    let mut squares = [device.dot(&r, &r)?, device.dot(b, b)?];
    comm.sum_values(&mut squares)?;
    Ok(squares.map(f64::sqrt))
}
