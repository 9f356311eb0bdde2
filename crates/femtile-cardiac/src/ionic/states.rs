//! The states of a model at its points.

use femtile::device::{Buffer, Device, DeviceError};
use femtile::linalg::need;

use super::{Model, Points};
use crate::CardiacError;

/// Numbers that gates are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GatePrecision {
    /// 64 bits, as all other states.
    #[default]
    Double,
    /// 32 bits; a GPU evaluates the equations of gates with 32 bits too.
    Single,
}

/// The states of a model at its points: a row of values for each state, gates first.
///
/// Gates of [`GatePrecision::Single`] are `[n_gates][stride]` with 32 bits, the others `[n_states - n_gates][stride]`.
#[derive(Debug)]
pub struct States<D: Device> {
    n_single: usize,
    n_states: usize,
    stride: usize,
    single: Buffer<f32, D>,
    double: Buffer<f64, D>,
}

impl<D: Device> States<D> {
    /// Allocates the states of a model and sets them to their initial values.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        device: &D,
        model: &Model,
        points: &Points<D>,
        gates: GatePrecision,
    ) -> Result<Self, CardiacError> {
        let n_single = n_single(model, gates);
        let (n_states, stride) = (model.n_states(), points.stride());
        let (single, double) = (
            Buffer::zeros(device, n_single * stride)?,
            Buffer::zeros(device, (n_states - n_single) * stride)?,
        );
        let mut states = Self { n_single, n_states, stride, single, double };
        let initial = model.states().iter().flat_map(|state| std::iter::repeat_n(state.initial(), stride));
        states.upload(&initial.collect::<Vec<f64>>())?;
        Ok(states)
    }

    /// Returns the number of values of all rows.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.n_states * self.stride
    }

    /// Copies all rows to the host, `[n_states][stride]`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn to_host(&self) -> Result<Vec<f64>, DeviceError> {
        let single = self.single.host_view()?;
        let double = self.double.host_view()?;
        Ok(single.iter().map(|&gate| f64::from(gate)).chain(double.iter().copied()).collect())
    }

    /// Overwrites all rows with those of [`States::to_host`].
    ///
    /// # Errors
    /// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) when they are not as many.
    pub fn upload(&mut self, states: &[f64]) -> Result<(), CardiacError> {
        need("states", self.len(), states.len())?;
        let (single, double) = states.split_at(self.single.len());
        self.single.upload(&single.iter().map(|&gate| gate as f32).collect::<Vec<f32>>())?;
        Ok(self.double.upload(double)?)
    }

    /// Copies the first n values of a row, which exist, to the host.
    pub(super) fn row(&self, state: usize, n: usize) -> Result<Vec<f64>, DeviceError> {
        if let Some(state) = state.checked_sub(self.n_single) {
            let begin = state * self.stride;
            return Ok(self.double.host_view()?[begin..begin + n].to_vec());
        }
        let begin = state * self.stride;
        Ok(self.single.host_view()?[begin..begin + n].iter().map(|&gate| f64::from(gate)).collect())
    }

    /// Number of rows with 32 bits, the first ones.
    pub fn n_single(&self) -> usize {
        self.n_single
    }

    /// The rows with 32 and those with 64 bits.
    pub fn parts(&self) -> (&Buffer<f32, D>, &Buffer<f64, D>) {
        (&self.single, &self.double)
    }

    /// The rows with 32 and those with 64 bits, to be overwritten.
    pub(super) fn parts_mut(&mut self) -> (&mut Buffer<f32, D>, &mut Buffer<f64, D>) {
        (&mut self.single, &mut self.double)
    }

    /// Checks the number of states, of their points, and of their rows of 32 bits.
    pub(super) fn check(
        &self,
        n_states: usize,
        n_single: usize,
        points: &Points<D>,
    ) -> Result<(), CardiacError> {
        need("states", n_states * points.stride(), self.len())?;
        Ok(need("gates", n_single * points.stride(), self.single.len())?)
    }
}

/// Number of states of a model that have 32 bits.
pub(super) fn n_single(model: &Model, gates: GatePrecision) -> usize {
    let n_gates = model.states().iter().take_while(|state| state.is_gate()).count();
    if gates == GatePrecision::Single { n_gates } else { 0 }
}
