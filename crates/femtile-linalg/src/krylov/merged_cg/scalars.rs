//! The scalars of an iteration, and the step between its passes.

use femtile_device::{Buffer, Device, DeviceError, HostDevice, Reference, Scalar};

use crate::krylov::cg::{CgKernels, CgScalars, CgStep, is_positive, keep};

/// The numbers of a solve by merged conjugate gradients.
pub struct MergedScalars<D: Device> {
    /// $\gamma, a, b, c, d, e, f$ in an order of the device's, as addends, summed over ranks together.
    pub sums: Buffer<f64, D>,
    /// α, β, the end and residuals, in the places of plain conjugate gradients.
    pub base: CgScalars<D>,
    /// The coefficients of the update of x, in the order of the constants of this type.
    pub steps: Buffer<f64, D>,
}

/// The seven sums of a pass.
pub(super) type Sums = [f64; MergedScalars::<Reference>::SUMS];

impl<D: Device> MergedScalars<D> {
    /// Index in `steps` of the coefficient of p in the update of x.
    pub const OF_P: usize = 0;
    /// Index in `steps` of the coefficient of $p - D^{-1} r$ in the update of x, for a deferred step.
    pub const OF_LATE: usize = 1;
    /// Index in `steps` of a flag: 1 if x takes its steps in the next pass, 0 if it waits.
    pub const IS_DUE: usize = 2;

    /// Numbers in `steps`.
    pub const STEPS: usize = 3;

    /// Number of sums of a pass.
    pub const SUMS: usize = 7;

    /// The least β that x may wait for: the direction before is a difference, known to about $\epsilon / \sqrt\beta$.
    pub const LEAST_BETA: f64 = 0.01;

    /// The numbers before the first iteration on vectors of `n` entries.
    pub(super) fn new<T: Scalar>(
        device: &D,
        threshold: f64,
        limit: usize,
        n: usize,
    ) -> Result<Self, DeviceError>
    where
        D: CgKernels<T>,
    {
        let (n_addends, n_partials) = (device.cg_addends(), device.cg_partials(n));
        Ok(Self {
            sums: Buffer::zeros(device, Self::SUMS * n_addends)?,
            base: CgScalars::new(device, threshold, limit, n_addends, n_partials)?,
            steps: Buffer::zeros(device, Self::STEPS)?,
        })
    }
}

/// The updates of x, r and p in a pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Update {
    pub alpha: f64,
    pub beta: f64,
    pub of_p: f64,
    pub of_late: f64,
}

impl<D: HostDevice> MergedScalars<D> {
    pub(super) fn has_ended(&self) -> bool {
        self.base.state.as_slice()[CgScalars::<D>::END] != CgScalars::<D>::RUNNING
    }

    /// Returns the updates of the next pass.
    pub(super) fn update(&self) -> Update {
        let (state, steps) = (self.base.state.as_slice(), self.steps.as_slice());
        let due = steps[Self::IS_DUE];
        Update {
            alpha: state[CgScalars::<D>::ALPHA],
            beta: state[CgScalars::<D>::BETA],
            of_p: due * steps[Self::OF_P],
            of_late: due * steps[Self::OF_LATE],
        }
    }

    /// Returns the coefficients of p and of $p - D^{-1} r$ that x still needs once the method has ended.
    pub(super) fn not_taken(&self) -> [f64; 2] {
        let steps = self.steps.as_slice();
        [steps[Self::OF_P], steps[Self::OF_LATE]]
    }

    /// [`super::MergedCgKernels::merged_cg_step`] if the host can address the device's memory.
    pub(super) fn step<T: Scalar>(&mut self) {
        if self.has_ended() {
            return;
        }
        let mut sums = Sums::default();
        sums.copy_from_slice(self.sums.as_slice());
        let (state, steps) = (self.base.state.as_mut_slice(), self.steps.as_mut_slice());
        let [gamma, a, b, c, d, e, f] = sums;
        self.base.p_dot_q.as_mut_slice()[0] = a;
        self.base.r_sums.as_mut_slice()[..2].copy_from_slice(&[gamma, d]);
        // The step of the iteration before, unless x has taken it already.
        let late = match steps[Self::IS_DUE] == 0.0 && state[CgScalars::<D>::ITERATION] > 0.0 {
            true => state[CgScalars::<D>::ALPHA] / state[CgScalars::<D>::BETA],
            false => 0.0,
        };
        (steps[Self::OF_P], steps[Self::OF_LATE], steps[Self::IS_DUE]) = (0.0, late, 1.0);
        let end = match () {
            () if !gamma.is_finite() => CgScalars::<D>::BAD_R_DOT_R,
            () if gamma <= state[CgScalars::<D>::THRESHOLD] => CgScalars::<D>::CONVERGED,
            () if !is_positive(d) => CgScalars::<D>::BAD_R_DOT_Z,
            () if !is_positive(a) => CgScalars::<D>::BAD_P_DOT_Q,
            () => CgScalars::<D>::RUNNING,
        };
        if end != CgScalars::<D>::RUNNING {
            state[CgScalars::<D>::END] = end;
            return;
        }
        let alpha = d / a;
        let next = predicted::<T>(gamma, b, c, alpha);
        let beta = predicted::<T>(d, e, f, alpha).map_or(0.0, |next| next / d);
        state[CgScalars::<D>::ITERATION] += 1.0;
        let iteration = state[CgScalars::<D>::ITERATION];
        keep::<D>(state, next.unwrap_or(rounding::<T>() * gamma), CgStep { rho: d, alpha });
        if next.is_some_and(|next| next <= state[CgScalars::<D>::THRESHOLD]) {
            state[CgScalars::<D>::END] = CgScalars::<D>::CONVERGED;
        } else if iteration >= state[CgScalars::<D>::LIMIT] {
            state[CgScalars::<D>::END] = CgScalars::<D>::LIMIT_REACHED;
        }
        (state[CgScalars::<D>::ALPHA], state[CgScalars::<D>::BETA]) = (alpha, beta);
        steps[Self::OF_P] = alpha;
        let may_wait = late == 0.0 && beta >= Self::LEAST_BETA;
        steps[Self::IS_DUE] = if may_wait { 0.0 } else { 1.0 };
    }
}

/// Below this, relative to its parts, a predicted sum may be all rounding.
fn rounding<T: Scalar>() -> f64 {
    64.0 * T::EPSILON.to_f64()
}

/// $s - 2 \alpha t + \alpha^2 u$, the square of a difference, unless it is lost to rounding.
fn predicted<T: Scalar>(s: f64, t: f64, u: f64, alpha: f64) -> Option<f64> {
    let (difference, size) = (s - 2.0 * alpha * t + alpha * alpha * u, s + alpha * alpha * u);
    (difference > rounding::<T>() * size).then_some(difference)
}
