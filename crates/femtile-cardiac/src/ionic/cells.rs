//! A model at points of a device.

use femtile::device::Buffer;
use femtile::linalg::need;

use super::{GatePrecision, IonicKernels, LocalScheme, Model, Points, State, States};
use crate::CardiacError;

/// A model of the membrane with its states at points of a device.
///
/// The states of one model. Voltages, stimuli and currents are vectors over all nodes; [`Points`] selects the
/// nodes of this model.
#[derive(Debug)]
pub struct Ionic<D: IonicKernels> {
    device: D,
    model: Model,
    scheme: LocalScheme,
    program: D::Program,
    points: Points<D>,
    states: States<D>,
    implicit: Option<Implicit<D>>,
    history: Option<History<D>>,
}

/// Data of implicit steps besides the states.
#[derive(Debug)]
struct Implicit<D: IonicKernels> {
    program: D::ImplicitProgram,
    /// The states of the step that is being solved.
    states: States<D>,
}

/// Data for the extrapolation of states.
#[derive(Debug)]
struct History<D: IonicKernels> {
    /// The states before the last step that was accepted, if there was one.
    before: States<D>,
    has_step: bool,
    /// The distance of the states of a step to the line.
    distance: Buffer<f64, D>,
    /// One over the range of each value, if some are not one, and room for the product.
    weights: Option<(Buffer<f64, D>, Buffer<f64, D>)>,
}

impl<D: IonicKernels> Ionic<D> {
    /// Compiles a model for a device and sets its states to their initial values.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        device: &D,
        model: &Model,
        scheme: LocalScheme,
        points: Points<D>,
    ) -> Result<Self, CardiacError> {
        Self::with_gates(device, model, scheme, GatePrecision::Double, points)
    }

    /// [`Ionic::new`] with gates of a given precision.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn with_gates(
        device: &D,
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
        points: Points<D>,
    ) -> Result<Self, CardiacError> {
        let states = States::new(device, model, &points, gates)?;
        let program = device.ionic_prepare(model, scheme, gates)?;
        let (device, model) = (device.clone(), model.clone());
        Ok(Self { device, model, scheme, program, points, states, implicit: None, history: None })
    }

    /// Returns the model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the scheme of explicit steps.
    pub fn scheme(&self) -> LocalScheme {
        self.scheme
    }

    /// Returns the points.
    pub fn points(&self) -> &Points<D> {
        &self.points
    }

    /// Returns the states, `[n_states][points.stride()]`.
    pub fn states(&self) -> &States<D> {
        &self.states
    }

    /// Replaces the states, those of a checkpoint for example.
    ///
    /// # Errors
    /// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) when they are not as many.
    pub fn set_states(&mut self, states: &[f64]) -> Result<(), CardiacError> {
        self.states.upload(states)
    }

    /// Copies the values of a state at all points to the host; none for an unknown name.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn state(&self, name: &str) -> Result<Option<Vec<f64>>, CardiacError> {
        let Some(position) = self.model.position(name) else { return Ok(None) };
        Ok(Some(self.states.row(position, self.points.len())?))
    }

    /// Sets the voltage at all points to that of a cell at rest.
    ///
    /// # Errors
    /// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) for a vector of another length.
    pub fn set_rest_voltage(&self, v: &mut Buffer<f64, D>) -> Result<(), CardiacError> {
        need("v", self.points.n_nodes(), v.len())?;
        let rest = self.model.rest_voltage();
        let Some(list) = self.points.list() else { return Ok(self.device.fill(v, rest)?) };
        let mut host = v.to_host()?;
        for &node in &*list.host_view()? {
            host[node as usize] = rest;
        }
        Ok(v.upload(&host)?)
    }

    /// Advances voltage and states by a step; asynchronous on a GPU.
    ///
    /// The stimulus is a rate of the voltage: current per unit of capacitance, positive if it depolarizes.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when `dt` is not positive; errors of [`IonicKernels::ionic_advance`].
    pub fn advance(
        &mut self,
        v: &mut Buffer<f64, D>,
        stimulus: Option<&Buffer<f64, D>>,
        dt: f64,
    ) -> Result<(), CardiacError> {
        check_step(dt)?;
        self.device.ionic_advance(&self.program, &self.points, v, &mut self.states, stimulus, dt)
    }

    /// Solves the implicit Euler equations of the states over a step that ends with the voltages `v`, and writes the
    /// current and its total derivative by the voltage; returns the number of points without convergence.
    ///
    /// The states of the step are kept apart until [`Ionic::accept`], so that it can be solved again for other voltages.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] when `dt` is not positive or the model has too many states; errors of
    /// [`IonicKernels::ionic_implicit`].
    pub fn implicit(
        &mut self,
        v: &Buffer<f64, D>,
        current: &mut Buffer<f64, D>,
        tangent: &mut Buffer<f64, D>,
        dt: f64,
    ) -> Result<usize, CardiacError> {
        check_step(dt)?;
        if self.states.n_single() > 0 {
            let message = "implicit states need gates of double precision";
            return Err(CardiacError::setting("gates", message));
        }
        if self.implicit.is_none() {
            let program = self.device.ionic_prepare_implicit(&self.model)?;
            let states = States::new(&self.device, &self.model, &self.points, GatePrecision::Double)?;
            self.implicit = Some(Implicit { program, states });
        }
        let Some(Implicit { program, states }) = &mut self.implicit else { return Ok(0) };
        let (old, new) = (self.states.parts().1, states.parts_mut().1);
        self.device.ionic_implicit(program, &self.points, v, old, new, current, tangent, dt)
    }

    /// Takes the states that [`Ionic::implicit`] found last.
    pub fn accept(&mut self) {
        let Some(implicit) = &mut self.implicit else { return };
        std::mem::swap(&mut self.states, &mut implicit.states);
        if let Some(history) = &mut self.history {
            std::mem::swap(&mut history.before, &mut implicit.states);
            history.has_step = true;
        }
    }

    /// Keeps the states before the last step that was accepted, for [`Ionic::distance_to_line`].
    ///
    /// # Errors
    /// Errors of the device.
    pub fn keep_before(&mut self) -> Result<(), CardiacError> {
        let (device, model) = (&self.device, &self.model);
        let is_physical = model.units().is_physical();
        // Gates and states without units are of the size of one, concentrations of that at rest.
        let weight = |state: &State| match is_physical && !state.is_gate() && state.initial() != 0.0 {
            true => 1.0 / state.initial().abs(),
            false => 1.0,
        };
        let weights: Vec<f64> = model.states().iter().map(weight).collect();
        let weights = match weights.iter().all(|&weight| weight == 1.0) {
            true => None,
            false => {
                let rows = weights.into_iter().flat_map(|w| std::iter::repeat_n(w, self.points.stride()));
                Some((Buffer::from_vec(device, rows.collect())?, Buffer::zeros(device, self.states.len())?))
            }
        };
        let before = States::new(device, model, &self.points, GatePrecision::Double)?;
        let distance = Buffer::zeros(device, self.states.len())?;
        self.history = Some(History { before, has_step: false, distance, weights });
        Ok(())
    }

    /// Returns how far the last states of [`Ionic::implicit`] lie from the line through the two before, for a
    /// step of `ratio` times the previous length. This is a root mean square over the points, with states
    /// relative to their ranges. None if two earlier states are not kept.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn distance_to_line(&mut self, ratio: f64) -> Result<Option<f64>, CardiacError> {
        let (Some(Implicit { states: new, .. }), Some(history)) = (&self.implicit, &mut self.history) else {
            return Ok(None);
        };
        if !history.has_step {
            return Ok(None);
        }
        let [new, last, before] = [new, &self.states, &history.before].map(|states| states.parts().1);
        let distance = &mut history.distance;
        self.device.combine(distance, &[(1.0, new), (-1.0 - ratio, last), (ratio, before)])?;
        let scaled = match &mut history.weights {
            None => &*distance,
            Some((weights, scaled)) => {
                self.device.scale_by(scaled, weights, distance)?;
                &*scaled
            }
        };
        let n = self.points.len().max(1) as f64;
        Ok(Some((self.device.dot(scaled, scaled)? / n).sqrt()))
    }

    /// Moves the states that [`Ionic::implicit`] found last by a share of the distance of [`Ionic::distance_to_line`], which was
    /// the last call, towards the line.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn move_to_line(&mut self, share: f64) -> Result<(), CardiacError> {
        let (Some(implicit), Some(history)) = (&mut self.implicit, &self.history) else { return Ok(()) };
        if history.has_step {
            self.device.axpby(implicit.states.parts_mut().1, -share, &history.distance, 1.0)?;
        }
        Ok(())
    }

    /// Returns the states before the last step on the host, if they are kept.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn states_before(&self) -> Result<Option<Vec<f64>>, CardiacError> {
        let kept = self.history.as_ref().filter(|history| history.has_step);
        Ok(kept.map(|history| history.before.to_host()).transpose()?)
    }

    /// Restores the result of [`Ionic::states_before`]; returns whether it fits what is kept.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn set_states_before(&mut self, states: &[Vec<f64>]) -> Result<bool, CardiacError> {
        match (&mut self.history, states) {
            (None, []) => Ok(true),
            (Some(history), [states]) if states.len() == history.before.len() => {
                history.before.upload(states)?;
                history.has_step = true;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Checks that voltage and states are finite at all points; copies them to the host only if they are not.
    ///
    /// # Errors
    /// [`CardiacError::NotFinite`] with the first point, in the order of variables.
    pub fn check(&self, v: &Buffer<f64, D>) -> Result<(), CardiacError> {
        need("v", self.points.n_nodes(), v.len())?;
        // A gate that is no number makes the voltage one in the next step.
        if self.device.sum(v)?.is_finite() && self.device.sum(self.states.parts().1)?.is_finite() {
            return Ok(());
        }
        let list = self.points.list().map(Buffer::host_view).transpose()?;
        let node = |point: usize| list.as_ref().map_or(point, |list| list[point] as usize);
        let find = |variable: &str, values: &mut dyn Iterator<Item = f64>| {
            let found = values.enumerate().find(|(_, value)| !value.is_finite());
            let variable = variable.to_owned();
            found.map(|(point, value)| CardiacError::NotFinite { variable, node: node(point), value })
        };
        let n = self.points.len();
        let v = v.host_view()?;
        if let Some(error) = find(self.model.voltage_name(), &mut (0..n).map(|point| v[node(point)])) {
            return Err(error);
        }
        for (i, state) in self.model.states().iter().enumerate() {
            if let Some(error) = find(state.name(), &mut self.states.row(i, n)?.into_iter()) {
                return Err(error);
            }
        }
        Ok(())
    }
}

fn check_step(dt: f64) -> Result<(), CardiacError> {
    if dt > 0.0 && dt.is_finite() {
        return Ok(());
    }
    Err(CardiacError::setting("dt", format!("the length of a step is {dt}; it has to be a positive number")))
}
