//! A model at points of a device.

use femtile::device::Buffer;
use femtile::linalg::need;

use super::{GatePrecision, IonicKernels, LocalScheme, Model, Points, States};
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
        Ok(Self { device, model, scheme, program, points, states })
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

/// Refuses a length of a step that is not positive.
pub(crate) fn check_step(dt: f64) -> Result<(), CardiacError> {
    if dt > 0.0 && dt.is_finite() {
        return Ok(());
    }
    Err(CardiacError::setting("dt", format!("the length of a step is {dt}; it has to be a positive number")))
}
