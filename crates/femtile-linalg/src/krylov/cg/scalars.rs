//! The scalars of an iteration, and the steps between its passes.

use femtile_device::{Buffer, Device, DeviceError, HostDevice};

use super::CgSums;
use crate::krylov::Stop;
use crate::{LinalgError, error::need};

/// The numbers of a CG solve; they live on the device so that no kernel waits for the host.
pub struct CgScalars<D: Device> {
    /// $p^\mathsf{T} q$, as addends; alone because it is summed over ranks before the others are known.
    pub p_dot_q: Buffer<f64, D>,
    /// $r^\mathsf{T} r$, $r^\mathsf{T} z$ and, if needed, $q^\mathsf{T} z$, as addends, summed over ranks
    /// together.
    pub r_sums: Buffer<f64, D>,
    /// Everything else, in the order of the constants of this type.
    pub state: Buffer<f64, D>,
    /// Memory for partial sums, if the device needs it.
    pub partials: Buffer<f64, D>,
    /// Counters of finished work within a kernel, one per addend of a sum; zero between kernels.
    pub counters: Buffer<u32, D>,
    /// Whether $\beta = -\alpha q^\mathsf{T} z / \rho$, which allows for a preconditioner that is not fixed.
    pub is_flexible: bool,
}

/// The progress of a solve, as the host reads it from the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgProgress {
    /// Iterations done.
    pub iteration: usize,
    /// The reason why the method ended on the device, if it has.
    pub stop: Option<Stop>,
}

/// The coefficients of one iteration of conjugate gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CgStep {
    /// $\rho = r^\mathsf{T} M^{-1} r$ before the step.
    pub rho: f64,
    /// The length $\alpha$ of the step, which lowers the squared energy norm of the error by $\alpha \rho$.
    pub alpha: f64,
}

/// The numbers that a solve has found, iteration by iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CgHistory {
    /// $r^\mathsf{T} r$ at the start and after each iteration seen; NaN if a method does not compute it.
    pub r_dot_r: Vec<f64>,
    /// One entry per iteration if the method has the coefficients of conjugate gradients; else empty.
    pub steps: Vec<CgStep>,
}

impl<D: Device> CgScalars<D> {
    /// Place of $r^\mathsf{T} r$ in `r_sums`.
    pub const R_DOT_R: usize = 0;
    /// Place of $r^\mathsf{T} z$ in `r_sums`.
    pub const R_DOT_Z: usize = 1;
    /// Place of $q^\mathsf{T} z$ in `r_sums`.
    pub const Q_DOT_Z: usize = 2;

    /// Place in `state` of $\rho$, the $r^\mathsf{T} z$ of the residual before.
    pub const RHO: usize = 0;
    /// Place in `state` of $\alpha = \rho / p^\mathsf{T} q$.
    pub const ALPHA: usize = 1;
    /// Place in `state` of $\beta$.
    pub const BETA: usize = 2;
    /// Place in `state` of the number of iterations done.
    pub const ITERATION: usize = 3;
    /// Index in `state` of one of `RUNNING`, `CONVERGED`, `LIMIT_REACHED`, `BAD_P_DOT_Q`, `BAD_R_DOT_R`,
    /// `BAD_R_DOT_Z`, `NOT_BEGUN`.
    pub const END: usize = 4;
    /// Place in `state` of the $r^\mathsf{T} r$ that ends the method.
    pub const THRESHOLD: usize = 5;
    /// Place in `state` of the number of iterations that ends the method.
    pub const LIMIT: usize = 6;

    /// Index in `state` of a ring buffer. Iteration i is stored at i modulo [`CgScalars::RING`], as
    /// [`CgScalars::RING_WIDTH`] numbers: $r^\mathsf{T} r$ after it, then $\rho$ before it and $\alpha$.
    pub const RING_START: usize = 7;

    /// Index in `state` of the sums at the start of a solve, after the ring and a copy of what lies before it.
    pub const FIRST_SUMS: usize = Self::RING_START + Self::RING * Self::RING_WIDTH + Self::RING_START;

    /// Numbers in `state`.
    pub const STATE: usize = Self::FIRST_SUMS + CgSums::<D>::N_FIRST;

    /// The method is running.
    pub const RUNNING: f64 = 0.0;
    /// The residual is below the threshold.
    pub const CONVERGED: f64 = 1.0;
    /// The limit of iterations is reached.
    pub const LIMIT_REACHED: f64 = 2.0;
    /// $p^\mathsf{T} q$ is not positive and finite; x is that of the iteration before.
    pub const BAD_P_DOT_Q: f64 = 3.0;
    /// $r^\mathsf{T} r$ is not finite; x is that of the iteration before.
    pub const BAD_R_DOT_R: f64 = 4.0;
    /// $r^\mathsf{T} z$ is not positive and finite though r is not zero.
    pub const BAD_R_DOT_Z: f64 = 5.0;
    /// The method has not begun: the host decides by the sums at the start.
    pub const NOT_BEGUN: f64 = 6.0;

    /// Iterations that are kept until the host looks.
    pub const RING: usize = 64;
    /// Number of values stored per iteration.
    pub const RING_WIDTH: usize = 3;

    /// The numbers before the first iteration, sums kept as `n_addends` numbers, with room for `n_partials` sums.
    pub fn new(
        device: &D,
        threshold: f64,
        limit: usize,
        n_addends: usize,
        n_partials: usize,
    ) -> Result<Self, DeviceError> {
        let mut state = vec![0.0; Self::STATE];
        state[Self::THRESHOLD] = threshold;
        state[Self::LIMIT] = limit as f64;
        Ok(Self {
            p_dot_q: Buffer::zeros(device, n_addends)?,
            r_sums: Buffer::zeros(device, 3 * n_addends)?,
            state: Buffer::from_host(device, &state)?,
            partials: Buffer::zeros(device, n_partials)?,
            counters: Buffer::zeros(device, n_addends)?,
            is_flexible: false,
        })
    }

    /// Refuses indices that do not belong to a sum of `r_sums`.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub(super) fn check_place(place: usize) -> Result<(), LinalgError> {
        need("place", place.min(Self::Q_DOT_Z), place)
    }

    /// Index in `state` of the values of iteration i.
    const fn ring_place(iteration: usize) -> usize {
        Self::RING_START + iteration % Self::RING * Self::RING_WIDTH
    }

    /// Returns the progress from a state read from the device, and appends the iterations that are new to `history`, which
    /// holds $r^\mathsf{T} r$ of the start.
    pub(in crate::krylov) fn progress(
        &self,
        state: &[f64],
        history: &mut CgHistory,
    ) -> Result<CgProgress, DeviceError> {
        let sum = |of: &Buffer<f64, D>, place: usize| -> Result<f64, DeviceError> {
            let n_addends = self.p_dot_q.len();
            Ok(of.to_host()?[place * n_addends..][..n_addends].iter().sum())
        };
        let iteration = state[Self::ITERATION] as usize;
        for i in history.r_dot_r.len()..=iteration {
            let place = Self::ring_place(i);
            history.r_dot_r.push(state[place]);
            history.steps.push(CgStep { rho: state[place + 1], alpha: state[place + 2] });
        }
        let breakdown = |quantity, value| Some(Stop::Breakdown { quantity, value });
        let first = &state[Self::FIRST_SUMS..];
        let stop = match state[Self::END] {
            Self::RUNNING => None,
            Self::CONVERGED => Some(Stop::Converged),
            Self::LIMIT_REACHED => Some(Stop::MaxIterations),
            Self::BAD_P_DOT_Q => breakdown("p·Ap", sum(&self.p_dot_q, 0)?),
            Self::BAD_R_DOT_R => breakdown("r·r", sum(&self.r_sums, Self::R_DOT_R)?),
            Self::NOT_BEGUN if !first[CgSums::<D>::R_DOT_R].is_finite() => {
                breakdown("r·r", first[CgSums::<D>::R_DOT_R])
            }
            Self::NOT_BEGUN => breakdown("r·z", first[CgSums::<D>::R_DOT_Z]),
            _ => breakdown("r·z", sum(&self.r_sums, Self::R_DOT_Z)?),
        };
        Ok(CgProgress { iteration, stop })
    }
}

pub(in crate::krylov) fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Keeps what the iteration counted last has found, in the ring of a state.
pub(in crate::krylov) fn keep<D: Device>(state: &mut [f64], r_dot_r: f64, step: CgStep) {
    let place = CgScalars::<D>::ring_place(state[CgScalars::<D>::ITERATION] as usize);
    state[place..][..CgScalars::<D>::RING_WIDTH].copy_from_slice(&[r_dot_r, step.rho, step.alpha]);
}

/// [`super::CgKernels::cg_step_length`] if the host can address the device's memory.
pub(super) fn step_length<D: HostDevice>(scalars: &mut CgScalars<D>) {
    let p_dot_q = scalars.p_dot_q.as_slice()[0];
    let state = scalars.state.as_mut_slice();
    if state[CgScalars::<D>::END] == CgScalars::<D>::RUNNING && !is_positive(p_dot_q) {
        state[CgScalars::<D>::END] = CgScalars::<D>::BAD_P_DOT_Q;
    }
    let running = state[CgScalars::<D>::END] == CgScalars::<D>::RUNNING;
    state[CgScalars::<D>::ALPHA] = if running { state[CgScalars::<D>::RHO] / p_dot_q } else { 0.0 };
}

/// [`super::CgKernels::cg_conjugation`] if the host can address the device's memory.
pub(super) fn conjugation<D: HostDevice>(scalars: &mut CgScalars<D>) {
    let sums = scalars.r_sums.as_slice();
    let (r_dot_r, r_dot_z) = (sums[CgScalars::<D>::R_DOT_R], sums[CgScalars::<D>::R_DOT_Z]);
    let (q_dot_z, is_flexible) = (sums[CgScalars::<D>::Q_DOT_Z], scalars.is_flexible);
    let state = scalars.state.as_mut_slice();
    if state[CgScalars::<D>::END] != CgScalars::<D>::RUNNING {
        return;
    }
    if !r_dot_r.is_finite() {
        state[CgScalars::<D>::END] = CgScalars::<D>::BAD_R_DOT_R;
        state[CgScalars::<D>::ALPHA] = 0.0;
        return;
    }
    state[CgScalars::<D>::ITERATION] += 1.0;
    let iteration = state[CgScalars::<D>::ITERATION];
    let step = CgStep { rho: state[CgScalars::<D>::RHO], alpha: state[CgScalars::<D>::ALPHA] };
    keep::<D>(state, r_dot_r, step);
    if r_dot_r <= state[CgScalars::<D>::THRESHOLD] {
        state[CgScalars::<D>::END] = CgScalars::<D>::CONVERGED;
    } else if !is_positive(r_dot_z) {
        state[CgScalars::<D>::END] = CgScalars::<D>::BAD_R_DOT_Z;
    } else if iteration >= state[CgScalars::<D>::LIMIT] {
        state[CgScalars::<D>::END] = CgScalars::<D>::LIMIT_REACHED;
    }
    let numerator = if is_flexible { -state[CgScalars::<D>::ALPHA] * q_dot_z } else { r_dot_z };
    state[CgScalars::<D>::BETA] = numerator / state[CgScalars::<D>::RHO];
    state[CgScalars::<D>::RHO] = r_dot_z;
}

/// α and β.
pub(super) fn alpha_beta<D: HostDevice>(scalars: &CgScalars<D>) -> (f64, f64) {
    let state = scalars.state.as_slice();
    (state[CgScalars::<D>::ALPHA], state[CgScalars::<D>::BETA])
}

/// The methods of [`CgKernels`](super::CgKernels) that devices in host memory share: those of scalars, and sums of whole
/// vectors.
macro_rules! on_host {
    () => {
        fn cg_product(
            &self,
            q: &mut Buffer<T, Self>,
            a: &dyn $crate::LinearOperator<T, Self>,
            p: &Buffer<T, Self>,
            scalars: &mut CgScalars<Self>,
        ) -> Result<(), $crate::LinalgError> {
            let dot = $crate::hooks::DotHook::new(p.len());
            a.apply_with(q, p, &dot)?;
            scalars.p_dot_q.as_mut_slice()[0] = dot.sum();
            Ok(())
        }

        fn cg_step_length(&self, scalars: &mut CgScalars<Self>) -> Result<(), $crate::LinalgError> {
            $crate::krylov::cg::scalars::step_length(scalars);
            Ok(())
        }

        fn cg_dot(
            &self,
            place: usize,
            x: &Buffer<T, Self>,
            y: &Buffer<T, Self>,
            scalars: &mut CgScalars<Self>,
        ) -> Result<(), $crate::LinalgError> {
            CgScalars::<Self>::check_place(place)?;
            let x_dot_y = self.dot(x, y)?;
            scalars.r_sums.as_mut_slice()[place] = x_dot_y;
            Ok(())
        }

        fn cg_first_dot(
            &self,
            place: usize,
            x: &Buffer<T, Self>,
            y: &Buffer<T, Self>,
            sums: &mut $crate::krylov::cg::CgSums<Self>,
        ) -> Result<(), $crate::LinalgError> {
            sums.check(0)?;
            $crate::krylov::cg::CgSums::<Self>::check_place(place)?;
            sums.first.as_mut_slice()[place] = self.dot(x, y)?;
            Ok(())
        }

        fn cg_decide(
            &self,
            scalars: &mut CgScalars<Self>,
            sums: &$crate::krylov::cg::CgSums<Self>,
        ) -> Result<(), $crate::LinalgError> {
            sums.check(0)?;
            $crate::krylov::cg::start::decide(scalars, sums);
            Ok(())
        }

        fn cg_conjugation(&self, scalars: &mut CgScalars<Self>) -> Result<(), $crate::LinalgError> {
            $crate::krylov::cg::scalars::conjugation(scalars);
            Ok(())
        }
    };
}
pub(super) use on_host;
