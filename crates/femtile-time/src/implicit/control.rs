//! The length of steps by an estimate of their local error.

/// The tolerance of an adaptive run: the error at its end, in the norm of $L_2$, is to stay below
/// $\max(\text{absolute}, \text{relative}\,\|u\|)$.
///
/// The local errors of all steps add up in a dissipative equation. So a step of length $h$ in a run of length
/// $T$ may add the share $h/T$ of the tolerance (error per unit step); more in the first fortieth of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Relative to the largest norm of u so far.
    pub relative: f64,
    /// In units of the norm of u.
    pub absolute: f64,
}

/// A controller with proportional and integral part, `[soderlind2003]`, for errors per unit step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Controller {
    order: f64,
    /// The error of the last accepted step, as a share of the allowed error.
    last: f64,
}

/// Share of the whole tolerance at which a step is accepted that was rejected before; the extrapolation restarts after it.
/// At a kink of the data the local error is proportional to the step, so no shorter step meets its own share.
pub(super) const KINK_SHARE: f64 = 1e-3;
/// Steps after a start or a restart before which no kink is assumed: the solution itself may be rough there.
pub(super) const SETTLED: usize = 20;
/// A step of length h at a time t after the start may add the share $h / 40 t$ of the tolerance if that is
/// more than h/T: all such steps together a quarter of it.
///
/// A solution that begins at zero, or with data that do not fit each other, changes fast beside its own size at first.
const EARLY_SHARE: f64 = 1.0 / 40.0;
/// Rejections in a row after which the data are assumed to jump, and the step is accepted.
pub(super) const JUMP: usize = 8;
/// Restarts of a run, at most: with more the tolerance is out of reach.
pub(super) const MOST_RESTARTS: usize = 1000;

/// The share of the tolerance that is aimed at.
const SAFETY: f64 = 0.8;
/// A step is kept at its length unless it may grow by this factor, as another length needs another matrix.
const WORTH_A_CHANGE: f64 = 1.3;
const MOST: f64 = 2.5;
const LEAST: f64 = 0.2;

/// Returns the share of the tolerance that a step of a length may add, whose end lies at a time after the start.
pub(super) fn share_of_step(length: f64, after_start: f64, of_run: f64) -> f64 {
    (length / of_run).max(EARLY_SHARE * length / after_start)
}

impl Controller {
    pub fn new(order: usize, last: f64) -> Self {
        Self { order: order as f64, last }
    }

    pub fn last(&self) -> f64 {
        self.last
    }

    /// Returns the factor for the length of the next step after an accepted step with this error.
    pub fn accepted(&mut self, error: f64) -> f64 {
        let error = error.max(1e-10);
        let factor = (SAFETY / error).powf(0.7 / self.order) * (self.last / SAFETY).powf(0.4 / self.order);
        self.last = error;
        match factor.clamp(LEAST, MOST) {
            kept if (0.95..WORTH_A_CHANGE).contains(&kept) => 1.0,
            factor => factor,
        }
    }

    /// Returns the factor for the length of a repeated step after a rejection.
    pub fn rejected(&self, error: f64) -> f64 {
        if !error.is_finite() {
            return LEAST;
        }
        (SAFETY / error).powf(1.0 / self.order).clamp(LEAST, 0.8)
    }
}
