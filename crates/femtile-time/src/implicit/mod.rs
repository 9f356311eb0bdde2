//! Implicit time integration of semidiscrete equations $M \dot u = F(t) - K u$, for any space and any device.
//!
//! A [`SemiDiscrete`] system solves for one stage; [`Integrator`] advances it by a [`Scheme`], with steps of a fixed
//! length or of a length chosen by an error estimate ([`Steps`]). Every scheme here reduces to stages of one form,
//!
//! $$ (a M + K)\, u = F(t) + M b + d, \qquad u = g(t) \text{ where values are given}, $$
//!
//! so a space, a preconditioner and a device are written once.
//!
//! Local errors are estimated by Milne's device and may add up to the tolerance over the run. A checkpoint holds
//! the last three values, the state of the controller and the memory of the system (`SemiDiscrete::memory`), so a
//! restart has the same bits.

mod checkpoint;
mod control;
mod history;
mod integrator;
mod scheme;
mod sealed;
mod step;
mod steps;

use femtile_device::{Buffer, Device};
use femtile_linalg::LinalgError;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use control::Tolerance;
pub use integrator::{Integrator, Monitor, Outcome, Reached, Silent, Stop};
pub use scheme::Scheme;
pub use sealed::{read_sealed, write_sealed};
pub use steps::Steps;

/// The implicit equation of a stage, $(a M + K)\, u = F(t) + M b + d$.
#[derive(Debug)]
pub struct StageEquation<'a, D: Device> {
    /// The shift $a$, in 1/time.
    pub shift: f64,
    /// The time $t$ of the load and of the Dirichlet values.
    pub time: f64,
    /// The vector $b$, already multiplied by shifts.
    pub history: &'a Buffer<f64, D>,
    /// The values of u and their factors whose sum $b$ is: for equations $\partial E(u)/\partial t$, which need the sum of E there.
    pub summands: &'a [(f64, &'a Buffer<f64, D>)],
    /// The vector $d$, a defect of an earlier time.
    pub defect: Option<&'a Buffer<f64, D>>,
    /// Whether the distance of the solution from its first guess is an error estimate: then the solve has to be accurate
    /// relative to that distance as well.
    pub is_estimated: bool,
}

/// The result of the solve of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageOutcome {
    /// Iterations of the linear solver.
    pub iterations: usize,
    /// Whether the solve converged.
    pub has_converged: bool,
}

/// A semidiscrete equation $M \dot u = F(t) - K u$, with $u = g(t)$ at unknowns whose values are given.
///
/// # Shapes
/// Vectors have one entry for each degree of freedom, including those with Dirichlet values.
pub trait SemiDiscrete<D: Device> {
    /// The error of a failed solve; not converging is an outcome.
    type Error: From<LinalgError>;

    /// Solves the equation of a stage; `u` holds a first guess on entry.
    ///
    /// # Errors
    /// Errors of assembly, the solver and the device.
    fn solve(
        &mut self,
        equation: &StageEquation<'_, D>,
        u: &mut Buffer<f64, D>,
    ) -> Result<StageOutcome, Self::Error>;

    /// Writes the defect $F(t) - K u$ into `d`; `shift` is that of the stage that follows, whose operators may serve.
    ///
    /// # Errors
    /// As [`SemiDiscrete::solve`].
    fn defect(
        &mut self,
        time_and_shift: (f64, f64),
        u: &Buffer<f64, D>,
        d: &mut Buffer<f64, D>,
    ) -> Result<(), Self::Error>;

    /// Sets entries at unknowns whose values are given to zero.
    ///
    /// # Errors
    /// Errors of the device.
    fn clear_given(&mut self, v: &mut Buffer<f64, D>) -> Result<(), Self::Error>;

    /// Returns the norm $\|v\| = (v^\mathsf{T} M v)^{1/2}$, the one of $L_2$.
    ///
    /// # Errors
    /// Errors of the device.
    fn norm(&mut self, v: &Buffer<f64, D>) -> Result<f64, Self::Error>;

    /// Returns whether the solution may have kinks or jumps in time. It has none if no datum depends on the
    /// time or on u. Adaptive steps look for them if it may.
    fn may_have_kinks(&self) -> bool {
        true
    }

    /// Returns data learned by the system on which later solves depend, for [`Checkpoint::memory`]. The
    /// creator of the system of a resumed run gives it back.
    fn memory(&self) -> Vec<f64> {
        Vec::new()
    }
}
