//! The generalized minimal residual method.

mod config;
mod least_squares;

use std::ops::ControlFlow;

use femtile_device::{Buffer, Scalar};

use super::acceptance::{self, PreconditionedSystem, Run, RunEnd};
use super::cg::CgOutcome;
use super::residual::{dot, norm, residual};
use super::watch::Watch;
use super::{Monitor, Stop};
use crate::comm::Communicator;
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub use config::GmresConfig;
use least_squares::LeastSquares;

/// The restarted generalized minimal residual method, GMRES(m), with right preconditioning: for operators and preconditioners
/// that need not be symmetric, such as multigrid cycles whose pre- and postsmoothing have the same order.
///
/// $$ A M^{-1} V = V_+ H, \quad V_+^\mathsf{T} V_+ = I, \quad x = x_0 + M^{-1} V \operatorname*{argmin}_y \|\beta e_1 - H y\| $$
///
/// With M on the right the residual is that of x itself, and never grows. Unless M is diagonal, $M^{-1}$ times each direction
/// is kept, which is the flexible method FGMRES: M may change between iterations, and the rounding of levels in f32 does no
/// harm.
///
/// At each restart and at the end $b - A x$ is computed and compared with the residual of the least-squares
/// problem. If it is more than twice as large, the method continues from it, and has
/// [stagnated](Stop::Stagnated) if the cycle did not halve it.
///
/// # Cost
/// One product and one application of $M^{-1}$ per iteration; one more product at each restart, and one more
/// application if M is diagonal. The j-th iteration after a restart needs j + 1 sums, reads 4j + 2 vectors
/// and writes j + 1. Memory for `restart` + 2 vectors if M is diagonal, nearly twice as many if it is not,
/// allocated as needed.
/// # Source
/// `[saad1986]`, Alg. 4; flexible: `[saad1993]`, Alg. 2.2.
#[derive(Debug, Clone, Default)]
pub struct Gmres {
    config: GmresConfig,
}

/// The computed residual may exceed the tolerance by this factor if the least-squares problem has converged.
const SLACK: f64 = 2.0;

/// Factor by which a restart cycle must reduce the residual for another one to follow.
const GAIN: f64 = 0.5;

impl Gmres {
    /// Creates the method with the given settings; [`KrylovConfig::look_every`](super::cg::KrylovConfig::look_every) has no meaning for it.
    pub fn new(config: GmresConfig) -> Self {
        Self { config }
    }

    /// Solves $A x = b$, starting from the values in `x` and leaving the last iterate there.
    ///
    /// A right side of zeros gives `x = 0` at once.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when the vectors do not fit, [`LinalgError::Setting`] when a setting is out of its range. Not
    /// converging is no error: see [`CgOutcome::stop`].
    pub fn solve<T: Scalar, D: VectorKernels<T>, C: Communicator>(
        &self,
        x: &mut Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        m: &dyn Preconditioner<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError> {
        self.config.check()?;
        let restart = self.config.restart;
        let system = PreconditionedSystem { a, m, b, comm };
        acceptance::solve(x, system, &self.config.cg, monitor, &mut |x, system, asked| {
            run(x, system, asked, restart)
        })
    }
}

/// Runs from `x` until the residual meets the tolerance.
fn run<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    PreconditionedSystem { a, m, b, comm }: PreconditionedSystem<'_, T, D, C>,
    Run { config, b_norm, monitor }: Run<'_>,
    restart: usize,
) -> Result<RunEnd, LinalgError> {
    let mut cycle = Cycle::new(a, m, b, comm)?;
    let mut length = cycle.residual(x)?;
    let (mut watch, mut stop) = Watch::begin(&config, b_norm, length * length, monitor);
    while stop.is_continue() {
        let ended = cycle.directions(length, restart, &mut watch, monitor)?;
        cycle.advance(x)?;
        let before = std::mem::replace(&mut length, cycle.residual(x)?);
        let is_believed = match ended {
            Some(Stop::Converged) => length <= SLACK * config.tolerance * b_norm,
            _ => length <= SLACK * cycle.small.residual(),
        };
        stop = match ended {
            Some(stop) if is_believed || stop != Stop::Converged => ControlFlow::Break(stop),
            None if is_believed => ControlFlow::Continue(()),
            _ => {
                watch.correct(length * length);
                let stalled = (length > GAIN * before).then_some(Stop::Stagnated);
                watch.end_if(stalled.or(watch.verdict()), monitor)
            }
        };
    }
    Ok(watch.end(stop, None))
}

/// The directions of a restart cycle.
struct Cycle<'a, T: Scalar, D: VectorKernels<T>, C> {
    a: &'a dyn LinearOperator<T, D>,
    m: &'a dyn Preconditioner<T, D>,
    b: &'a Buffer<T, D>,
    comm: &'a C,
    /// The directions, of length one.
    v: Vec<Buffer<T, D>>,
    /// $M^{-1}$ times the directions; only times the last one if M is diagonal.
    z: Vec<Buffer<T, D>>,
    /// The residual, or the next direction before normalization.
    w: Buffer<T, D>,
    small: LeastSquares,
    /// Columns of the small problem that the solution comes from.
    n_columns: usize,
}

impl<'a, T: Scalar, D: VectorKernels<T>, C: Communicator> Cycle<'a, T, D, C> {
    fn new(
        a: &'a dyn LinearOperator<T, D>,
        m: &'a dyn Preconditioner<T, D>,
        b: &'a Buffer<T, D>,
        comm: &'a C,
    ) -> Result<Self, LinalgError> {
        let w = Buffer::zeros(b.device(), b.len())?;
        Ok(Self {
            a,
            m,
            b,
            comm,
            v: Vec::new(),
            z: Vec::new(),
            w,
            small: LeastSquares::new(0.0),
            n_columns: 0,
        })
    }

    /// Computes b − A x in the place of the next direction; returns its norm.
    fn residual(&mut self, x: &Buffer<T, D>) -> Result<f64, LinalgError> {
        residual(&mut self.w, self.a, x, self.b)?;
        norm(&self.w, self.comm)
    }

    /// Runs one restart cycle of at most `restart` directions, from a residual of norm `length`.
    fn directions(
        &mut self,
        length: f64,
        restart: usize,
        watch: &mut Watch<'_>,
        monitor: &mut dyn Monitor,
    ) -> Result<Option<Stop>, LinalgError> {
        self.m.set_residual_norm(length);
        (self.small, self.n_columns) = (LeastSquares::new(length), 0);
        let mut length = length;
        for place in 0..restart {
            let column = self.direction(place, length)?;
            length = column[place + 1];
            let pivot = self.small.push(column);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return Ok(Some(Stop::Breakdown { quantity: Stop::PIVOT, value: pivot }));
            }
            self.n_columns += 1;
            let residual = self.small.residual();
            watch.history.r_dot_r.push(residual * residual);
            if let Some(stop) = watch.end_if(watch.verdict(), monitor).break_value() {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// Normalizes direction `place`, whose norm is `length`, and orthogonalizes the next; returns the column of H.
    fn direction(&mut self, place: usize, length: f64) -> Result<Vec<f64>, LinalgError> {
        let (device, n) = (self.b.device(), self.b.len());
        let kept = if self.m.diagonal().is_some() { 0 } else { place };
        for (vectors, last) in [(&mut self.v, place), (&mut self.z, kept)] {
            if vectors.len() == last {
                vectors.push(Buffer::zeros(device, n)?);
            }
        }
        device.axpby(&mut self.v[place], T::from_f64(1.0 / length), &self.w, T::ZERO)?;
        self.m.apply(&mut self.z[kept], &self.v[place])?;
        self.a.apply(&mut self.w, &self.z[kept])?;
        let mut column = Vec::with_capacity(place + 2);
        for v in &self.v[..=place] {
            let entry = dot(v, &self.w, self.comm)?;
            device.axpby(&mut self.w, T::from_f64(-entry), v, T::ONE)?;
            column.push(entry);
        }
        column.push(norm(&self.w, self.comm)?);
        Ok(column)
    }

    /// $x \leftarrow x + M^{-1} V y$ with the best y.
    fn advance(&mut self, x: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        let device = self.b.device();
        let y = self.small.solve(self.n_columns).into_iter().map(T::from_f64);
        if self.m.diagonal().is_none() {
            return self.z.iter().zip(y).try_for_each(|(z, y)| device.axpby(x, y, z, T::ONE));
        }
        device.fill(&mut self.w, T::ZERO)?;
        self.v.iter().zip(y).try_for_each(|(v, y)| device.axpby(&mut self.w, y, v, T::ONE))?;
        if self.n_columns > 0 {
            self.m.apply(&mut self.z[0], &self.w)?;
            device.axpby(x, T::ONE, &self.z[0], T::ONE)?;
        }
        Ok(())
    }
}
