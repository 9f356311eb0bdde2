//! A model at points of a device.

use femtile::device::Buffer;
use femtile::linalg::need;

use super::{IonicKernels, LocalScheme, Model, Points};
use crate::CardiacError;

/// A model of the membrane with its states at points of a device.
///
/// Voltages, stimuli and currents are vectors over nodes, of which [`Points`] selects those of this model; the states
/// belong to it.
#[derive(Debug)]
pub struct Ionic<D: IonicKernels> {
    device: D,
    model: Model,
    scheme: LocalScheme,
    program: D::Program,
    points: Points<D>,
    states: Buffer<f64, D>,
    implicit: Option<Implicit<D>>,
}

/// What implicit steps need besides the states.
#[derive(Debug)]
struct Implicit<D: IonicKernels> {
    program: D::ImplicitProgram,
    /// The states of the step that is being solved.
    states: Buffer<f64, D>,
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
        let stride = points.stride();
        let initial = model.states().iter().flat_map(|state| std::iter::repeat_n(state.initial(), stride));
        let states = Buffer::from_vec(device, initial.collect())?;
        let program = device.ionic_prepare(model, scheme)?;
        Ok(Self {
            device: device.clone(),
            model: model.clone(),
            scheme,
            program,
            points,
            states,
            implicit: None,
        })
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
    pub fn states(&self) -> &Buffer<f64, D> {
        &self.states
    }

    /// Replaces the states, those of a checkpoint for example.
    ///
    /// # Errors
    /// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) when they are not as many.
    pub fn set_states(&mut self, states: &[f64]) -> Result<(), CardiacError> {
        need("states", self.states.len(), states.len())?;
        Ok(self.states.upload(states)?)
    }

    /// Copies the values of a state at all points to the host; none for an unknown name.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn state(&self, name: &str) -> Result<Option<Vec<f64>>, CardiacError> {
        let Some(position) = self.model.position(name) else { return Ok(None) };
        let begin = position * self.points.stride();
        Ok(Some(self.states.host_view()?[begin..begin + self.points.len()].to_vec()))
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
    /// The stimulus is a rate of the voltage: current for each unit of capacitance, positive where it depolarizes.
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
        if self.implicit.is_none() {
            let program = self.device.ionic_prepare_implicit(&self.model)?;
            let states = Buffer::from_vec(&self.device, self.states.to_host()?)?;
            self.implicit = Some(Implicit { program, states });
        }
        let Some(Implicit { program, states }) = &mut self.implicit else { return Ok(0) };
        self.device.ionic_implicit(program, &self.points, v, &self.states, states, current, tangent, dt)
    }

    /// Takes the states that [`Ionic::implicit`] found last.
    pub fn accept(&mut self) {
        if let Some(implicit) = &mut self.implicit {
            std::mem::swap(&mut self.states, &mut implicit.states);
        }
    }

    /// Checks that voltage and states are finite at all points; copies them to the host only if they are not.
    ///
    /// # Errors
    /// [`CardiacError::NotFinite`] with the first point, in the order of variables.
    pub fn check(&self, v: &Buffer<f64, D>) -> Result<(), CardiacError> {
        need("v", self.points.n_nodes(), v.len())?;
        if self.device.sum(v)?.is_finite() && self.device.sum(&self.states)?.is_finite() {
            return Ok(());
        }
        let (v, states) = (v.host_view()?, self.states.host_view()?);
        let list = self.points.list().map(Buffer::host_view).transpose()?;
        let node = |point: usize| list.as_ref().map_or(point, |list| list[point] as usize);
        for variable in 0..=self.model.n_states() {
            for point in 0..self.points.len() {
                let value = match variable {
                    0 => v[node(point)],
                    _ => states[(variable - 1) * self.points.stride() + point],
                };
                if !value.is_finite() {
                    let name = match variable {
                        0 => self.model.voltage_name(),
                        _ => self.model.states()[variable - 1].name(),
                    };
                    return Err(CardiacError::NotFinite { variable: name.into(), node: node(point), value });
                }
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
