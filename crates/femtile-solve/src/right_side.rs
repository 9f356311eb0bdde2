//! Right sides of linear systems, and the way back from their solutions to u.

use femtile_device::{Buffer, Device};
use femtile_fem::{Constraints, FemError, WithoutMatrix};
use femtile_space::Space;

/// The right side of a system, with boundary values lifted.
#[derive(Debug)]
pub(crate) struct RightSide<'a, D: Device> {
    space: Space<'a>,
    /// That of each component.
    systems: Vec<WithoutMatrix<f64, D>>,
    /// Of several components, whose rows alternate node by node.
    together: Option<Buffer<f64, D>>,
}

impl<'a, D: Device> RightSide<'a, D> {
    /// Joins the systems of all components.
    pub fn new(device: &D, space: Space<'a>, systems: Vec<WithoutMatrix<f64, D>>) -> Result<Self, FemError> {
        let mut together = None;
        if systems.len() > 1 {
            let parts = systems.iter().map(|system| system.rhs.to_host()).collect::<Result<Vec<_>, _>>()?;
            together = Some(Buffer::from_vec(device, interleaved(parts))?);
        }
        Ok(Self { space, systems, together })
    }

    /// Returns the right side.
    pub fn values(&self) -> &Buffer<f64, D> {
        self.together.as_ref().unwrap_or(&self.systems[0].rhs)
    }

    /// Returns the largest imbalance of a component.
    pub fn imbalance(&self) -> f64 {
        self.systems.iter().fold(0.0, |most, system| system.imbalance.max(most))
    }

    /// Returns whether each component is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        self.systems.iter().any(|system| system.is_pure_neumann)
    }

    /// Returns the Dirichlet values of each component.
    pub fn into_constraints(self) -> Vec<Constraints> {
        self.systems.into_iter().map(|system| system.constraints).collect()
    }

    /// Returns each component of u from the solution of the system.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        if let [system] = &self.systems[..] {
            return Ok(vec![system.solution(&self.space, w)?]);
        }
        let (w, n) = (w.to_host()?, self.systems.len());
        let one = |(component, system): (usize, &WithoutMatrix<f64, D>)| {
            let own = w.iter().copied().skip(component).step_by(n).collect();
            system.solution(&self.space, &Buffer::from_vec(system.rhs.device(), own)?)
        };
        self.systems.iter().enumerate().map(one).collect()
    }
}

/// Interleaves parts of one length: an entry of each in turn.
pub(crate) fn interleaved(mut parts: Vec<Vec<f64>>) -> Vec<f64> {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let n = parts.first().map_or(0, Vec::len);
    (0..n).flat_map(|i| parts.iter().map(move |part| part[i])).collect()
}
