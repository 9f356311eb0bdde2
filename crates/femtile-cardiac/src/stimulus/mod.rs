//! Currents applied from outside: place, strength and time.

mod place;
mod pulses;

use femtile::Mesh;
use femtile::device::{Buffer, Device, DeviceError};

use crate::CardiacError;
use crate::monodomain::Nodes;
pub use place::Place;
pub use pulses::Pulses;

/// A current applied to a part of the tissue in pulses.
#[derive(Debug, Clone, PartialEq)]
pub struct Stimulus {
    /// The part.
    pub place: Place,
    /// The current density $I_{stim}$ in units of the equation, positive if it depolarises.
    pub strength: f64,
    /// The pulses.
    pub pulses: Pulses,
}

/// Stimuli resolved on a mesh, and the rate of the potential that they cause on a device.
///
/// A step that a pulse covers in part receives the share of its strength that keeps the charge.
pub(crate) struct Stimuli<D: Device> {
    device: D,
    n_nodes: usize,
    /// Nodes of this rank, rate of the potential, and pulses of each stimulus.
    resolved: Vec<(Vec<u32>, f64, Pulses)>,
    /// The shares of the strengths that `rate` holds.
    shares: Vec<f64>,
    rate: Option<Buffer<f64, D>>,
}

impl<D: Device> Stimuli<D> {
    /// Resolves stimuli on the mesh of this rank; collective. `per_current` is the rate of the potential for
    /// a current of one, $1/(\chi C_m)$.
    ///
    /// # Errors
    /// [`CardiacError::Entry`] if a stimulus has no node or its pulses are not in order.
    pub fn new(
        device: &D,
        (mesh, here): (&Mesh, &Nodes<'_>),
        stimuli: &[Stimulus],
        per_current: f64,
    ) -> Result<Self, CardiacError> {
        let resolve = |(number, stimulus): (usize, &Stimulus)| {
            let wrong = |(field, message)| CardiacError::Entry { list: "stimulus", number, field, message };
            stimulus.pulses.check().map_err(wrong)?;
            if !stimulus.strength.is_finite() {
                let message = format!("a strength of {} is not finite", stimulus.strength);
                return Err(wrong(("strength", message)));
            }
            let nodes = stimulus.place.nodes(mesh, here)?.map_err(|message| wrong(("place", message)))?;
            Ok((here.listed(&nodes), stimulus.strength * per_current, stimulus.pulses))
        };
        let resolved: Vec<_> = stimuli.iter().enumerate().map(resolve).collect::<Result<_, _>>()?;
        let shares = vec![0.0; resolved.len()];
        Ok(Self { device: device.clone(), n_nodes: here.n(), resolved, shares, rate: None })
    }

    /// Returns the rate of the potential at all nodes, averaged over a step; none if no pulse overlaps the
    /// step.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn rate(&mut self, begin: f64, length: f64) -> Result<Option<&Buffer<f64, D>>, DeviceError> {
        let share = |(_, _, pulses): &(Vec<u32>, f64, Pulses)| pulses.share(begin, length);
        let shares: Vec<f64> = self.resolved.iter().map(share).collect();
        if shares != self.shares {
            self.rate = match shares.iter().all(|&share| share == 0.0) {
                true => None,
                false => Some(self.sum_of(&shares)?),
            };
            self.shares = shares;
        }
        Ok(self.rate.as_ref())
    }

    fn sum_of(&self, shares: &[f64]) -> Result<Buffer<f64, D>, DeviceError> {
        let mut rates = vec![0.0; self.n_nodes];
        for ((nodes, strength, _), share) in self.resolved.iter().zip(shares) {
            nodes.iter().for_each(|&node| rates[node as usize] += share * strength);
        }
        Buffer::from_vec(&self.device, rates)
    }
}
