//! The decision of the device at the start of a solve.

use femtile_device::{Device, HostDevice};

use super::{CgScalars, CgSums, Target};

/// A residual that is rounding, relative to the right side: no reduction of the first residual asks for less.
pub(super) const ROUNDING: f64 = 1e-15;

/// The largest tolerance relative to the right side.
pub(super) const LOOSEST: f64 = 0.5;

/// The largest tolerance relative to a right side that is rounding.
pub(super) const ROUGHEST: f64 = 0.1;

/// Settings of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub tolerance: f64,
    pub target: Target,
    pub max_iterations: usize,
    /// Where $\|b\|$ has to lie for the method to begin.
    pub b_range: [f64; 2],
    /// Where the norm of the first residual has to lie, unless it meets the tolerance.
    pub r_range: [f64; 2],
    /// The norm of rounding errors in b.
    pub rounding: f64,
}

impl Settings {
    /// Any positive number.
    pub const ANY: [f64; 2] = [0.0, f64::MAX];

    /// Returns the numbers in the order of the constants of [`CgSums`].
    pub fn numbers(&self) -> Vec<f64> {
        let [size, reduction] = self.target.settings();
        let head = [self.tolerance, size, reduction, self.max_iterations as f64];
        [&head[..], &self.b_range, &self.r_range, &[self.rounding]].concat()
    }
}

/// The start of a solve, from its sums and settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Start {
    pub b_norm: f64,
    pub r_norm: f64,
    /// The tolerance relative to $\|b\|$.
    pub tolerance: f64,
    /// Whether the norms lie in their ranges.
    pub is_usual: bool,
}

impl Start {
    /// Returns the start from the first sums; the same bits as the kernel `cg_decide`.
    pub(super) fn of<D: Device>(sums: &[f64], settings: &[f64]) -> Self {
        let setting = |place: usize| settings[place];
        let (b_norm, r_norm) = (sums[CgSums::<D>::B_DOT_B].sqrt(), sums[CgSums::<D>::R_DOT_R].sqrt());
        let (size, reduction) = (setting(CgSums::<D>::SIZE), setting(CgSums::<D>::REDUCTION));
        let mut tolerance = setting(CgSums::<D>::TOLERANCE);
        if size > 0.0 {
            tolerance = (tolerance * size / b_norm).min(LOOSEST);
        }
        if reduction > 0.0 {
            tolerance = tolerance.min(reduction * r_norm / b_norm).max(ROUNDING);
        }
        if setting(CgSums::<D>::ROUNDING) > 0.0 {
            tolerance = tolerance.max((setting(CgSums::<D>::ROUNDING) / b_norm).min(ROUGHEST));
        }
        let lies_in = |value: f64, range: usize| setting(range) <= value && value <= setting(range + 1);
        let is_met = r_norm / b_norm <= tolerance;
        let is_usual = lies_in(b_norm, CgSums::<D>::B_RANGE)
            && r_norm.is_finite()
            && (is_met || lies_in(r_norm, CgSums::<D>::R_RANGE));
        Self { b_norm, r_norm, tolerance, is_usual }
    }
}

/// [`super::CgKernels::cg_decide`] if the host can address the device's memory.
pub(super) fn decide<D: HostDevice>(scalars: &mut CgScalars<D>, sums: &CgSums<D>) {
    let (settings, sums) = (sums.settings.as_slice(), sums.first.as_slice());
    let start = Start::of::<D>(sums, settings);
    let rho = sums[CgSums::<D>::R_DOT_Z];
    let state = scalars.state.as_mut_slice();
    state[CgScalars::<D>::RHO] = rho;
    state[CgScalars::<D>::ALPHA] = 0.0;
    state[CgScalars::<D>::BETA] = 0.0;
    state[CgScalars::<D>::ITERATION] = 0.0;
    state[CgScalars::<D>::THRESHOLD] = (start.tolerance * start.b_norm).powi(2);
    state[CgScalars::<D>::FIRST_SUMS..].copy_from_slice(sums);
    state[CgScalars::<D>::LIMIT] = settings[CgSums::<D>::LIMIT];
    state[CgScalars::<D>::END] = if !start.is_usual {
        CgScalars::<D>::NOT_BEGUN
    } else if start.r_norm / start.b_norm <= start.tolerance {
        CgScalars::<D>::CONVERGED
    } else if settings[CgSums::<D>::LIMIT] <= 0.0 {
        CgScalars::<D>::LIMIT_REACHED
    } else if rho > 0.0 && rho.is_finite() {
        CgScalars::<D>::RUNNING
    } else {
        CgScalars::<D>::NOT_BEGUN
    };
}
