//! States of a model at points, advanced by the implicit Euler method: the local Newton iteration.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod newton;
mod reference;

use femtile::device::Buffer;

use crate::CardiacError;
use crate::ionic::{Model, State, check_step, stride_of};
pub use cpu::CpuImplicitProgram;
pub use cuda::CudaImplicitProgram;
pub use kernels::ImplicitKernels;
pub use newton::RightSide;

/// Most states of a model.
pub const MAX_STATES: usize = 4;

/// The states of a model at points of a device, `[n_states][stride]` with the stride of
/// [`Points`](crate::ionic::Points).
#[derive(Debug)]
pub struct LocalStates<D: ImplicitKernels> {
    device: D,
    program: D::ImplicitProgram,
    n_points: usize,
    states: Buffer<f64, D>,
    /// The states of the step that is being solved.
    trial: Buffer<f64, D>,
    history: Option<History<D>>,
}

/// Data for the extrapolation of states.
#[derive(Debug)]
struct History<D: ImplicitKernels> {
    /// The states before the last step that was accepted, if there was one.
    before: Buffer<f64, D>,
    has_step: bool,
    /// The distance of the states of a step to the line.
    distance: Buffer<f64, D>,
    /// One over the range of each value, if some are not one, and room for the product.
    weights: Option<(Buffer<f64, D>, Buffer<f64, D>)>,
}

impl<D: ImplicitKernels> LocalStates<D> {
    /// Compiles a model for a device and sets its states to their initial values. `keeps_before` keeps the states before
    /// the last step, for [`LocalStates::distance_to_line`].
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for models with more than [`MAX_STATES`] states; errors of the device.
    pub fn new(device: &D, model: &Model, n_points: usize, keeps_before: bool) -> Result<Self, CardiacError> {
        let rows = |of: &dyn Fn(&State) -> f64| {
            let rows =
                model.states().iter().flat_map(|state| std::iter::repeat_n(of(state), stride_of(n_points)));
            Buffer::from_vec(device, rows.collect())
        };
        let initial = || rows(&State::initial);
        let (states, trial) = (initial()?, initial()?);
        let history = if keeps_before {
            let is_physical = model.units().is_physical();
            // Gates and states without units are of the size of one, concentrations of that at rest.
            let weight = |state: &State| match is_physical && !state.is_gate() && state.initial() != 0.0 {
                true => 1.0 / state.initial().abs(),
                false => 1.0,
            };
            let is_weighted = model.states().iter().any(|state| weight(state) != 1.0);
            let zeros = || Buffer::zeros(device, states.len());
            let weights = if is_weighted { Some((rows(&weight)?, zeros()?)) } else { None };
            Some(History { before: initial()?, has_step: false, distance: zeros()?, weights })
        } else {
            None
        };
        let program = device.implicit_prepare(model)?;
        Ok(Self { device: device.clone(), program, n_points, states, trial, history })
    }

    /// Copies the states to the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn to_host(&self) -> Result<Vec<f64>, CardiacError> {
        Ok(self.states.to_host()?)
    }

    /// Solves the implicit Euler equations over a step that ends with the voltages `v`, and writes the current and its total
    /// derivative by the voltage; returns the number of points without convergence.
    ///
    /// The states of the step are kept apart until [`LocalStates::accept`], so that it can be solved again for other
    /// voltages.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when `dt` is not positive; errors of [`ImplicitKernels::implicit_solve`].
    pub fn solve(
        &mut self,
        v: &Buffer<f64, D>,
        results: [&mut Buffer<f64, D>; 2],
        dt: f64,
    ) -> Result<usize, CardiacError> {
        check_step(dt)?;
        self.device.implicit_solve(&self.program, &mut self.trial, results, v, &self.states, dt)
    }

    /// Takes the states that [`LocalStates::solve`] found last.
    pub fn accept(&mut self) {
        std::mem::swap(&mut self.states, &mut self.trial);
        if let Some(history) = &mut self.history {
            std::mem::swap(&mut history.before, &mut self.trial);
            history.has_step = true;
        }
    }

    /// Returns how far the last states of [`LocalStates::solve`] lie from the line through the two before, for a step of
    /// `ratio` times the previous length. This is a root mean square over the points, with states relative to their ranges.
    /// None if two earlier states are not kept.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn distance_to_line(&mut self, ratio: f64) -> Result<Option<f64>, CardiacError> {
        let Some(History { before, distance, weights, .. }) =
            self.history.as_mut().filter(|known| known.has_step)
        else {
            return Ok(None);
        };
        self.device
            .combine(distance, &[(1.0, &self.trial), (-1.0 - ratio, &self.states), (ratio, before)])?;
        let scaled = match weights {
            None => &*distance,
            Some((weights, scaled)) => {
                self.device.scale_by(scaled, weights, distance)?;
                &*scaled
            }
        };
        let n = self.n_points.max(1) as f64;
        Ok(Some((self.device.dot(scaled, scaled)? / n).sqrt()))
    }

    /// Moves the states that [`LocalStates::solve`] found last by a share of the distance of
    /// [`LocalStates::distance_to_line`], which was the last call, towards the line.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn move_to_line(&mut self, share: f64) -> Result<(), CardiacError> {
        match &self.history {
            Some(History { distance, has_step: true, .. }) => {
                Ok(self.device.axpby(&mut self.trial, -share, distance, 1.0)?)
            }
            _ => Ok(()),
        }
    }

    /// Returns the states before the last step on the host, if they are kept.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn before(&self) -> Result<Option<Vec<f64>>, CardiacError> {
        let kept = self.history.as_ref().filter(|history| history.has_step);
        Ok(kept.map(|history| history.before.to_host()).transpose()?)
    }

    /// Restores the result of [`LocalStates::to_host`], and after a step that of [`LocalStates::before`]; returns whether
    /// the lengths fit.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn restore(&mut self, states: &[f64], before: Option<&[Vec<f64>]>) -> Result<bool, CardiacError> {
        if states.len() != self.states.len() {
            return Ok(false);
        }
        match (&mut self.history, before) {
            (_, None) | (None, Some([])) => {}
            (Some(history), Some([before])) if before.len() == states.len() => {
                history.before.upload(before)?;
                history.has_step = true;
            }
            _ => return Ok(false),
        }
        self.states.upload(states)?;
        Ok(true)
    }
}
