//! Right sides and solutions of one component or of several.

use femtile_device::{Buffer, Device};
use femtile_fem::FemError;
use femtile_fem::tensor::TensorSystem;

/// The right side of a system whose rows are those of all components, node by node.
pub(super) struct RightSide<'a, D: Device> {
    systems: Vec<TensorSystem<'a, D>>,
    /// Of several components.
    together: Option<Buffer<f64, D>>,
}

impl<'a, D: Device> RightSide<'a, D> {
    /// From the systems of all components.
    pub fn new(device: &D, systems: Vec<TensorSystem<'a, D>>) -> Result<Self, FemError> {
        let mut together = None;
        if systems.len() > 1 {
            let parts = systems.iter().map(|system| system.rhs.to_host()).collect::<Result<Vec<_>, _>>()?;
            together = Some(Buffer::from_vec(device, interleaved(parts))?);
        }
        Ok(Self { systems, together })
    }

    /// The right side.
    pub fn values(&self) -> &Buffer<f64, D> {
        self.together.as_ref().unwrap_or(&self.systems[0].rhs)
    }

    /// The largest imbalance of a component.
    pub fn imbalance(&self) -> f64 {
        self.systems.iter().fold(0.0, |most, system| system.imbalance.max(most))
    }

    /// Whether each component is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        self.systems.iter().any(|system| system.is_pure_neumann)
    }

    /// The solution of each component from that of the system.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        let [several @ .., last] = &self.systems[..] else { return Ok(Vec::new()) };
        if several.is_empty() {
            return Ok(vec![last.solution(w)?]);
        }
        let (w, n) = (w.to_host()?, self.systems.len());
        let one = |(component, system): (usize, &TensorSystem<'a, D>)| {
            let own = w.iter().copied().skip(component).step_by(n).collect();
            system.solution(&Buffer::from_vec(system.rhs.device(), own)?)
        };
        self.systems.iter().enumerate().map(one).collect()
    }
}

/// Parts of one length, an entry of each in turn.
pub(super) fn interleaved(mut parts: Vec<Vec<f64>>) -> Vec<f64> {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let n = parts.first().map_or(0, Vec::len);
    (0..n).flat_map(|i| parts.iter().map(move |part| part[i])).collect()
}
