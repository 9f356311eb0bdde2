//! Right sides of linear systems, and the way back from their solutions to u.

use femtile_device::{Buffer, Device};
use femtile_fem::tensor::TensorRightSide;
use femtile_fem::{Constraints, FemError};
use femtile_mesh::Mesh;

/// A system without its matrix.
type Eliminated<D> = femtile_fem::AssembledSystem<f64, D, ()>;

/// The right side of a system, with boundary values lifted.
#[derive(Debug)]
pub(crate) enum RightSide<'a, D: Device> {
    /// Of linear elements on simplices.
    Simplices(&'a Mesh, Eliminated<D>),
    /// Of one component on quadrilaterals or hexahedra.
    Tensor(TensorRightSide<'a, D>),
    /// Of several components, whose rows alternate node by node in the buffer.
    Components(Vec<TensorRightSide<'a, D>>, Buffer<f64, D>),
}

impl<'a, D: Device> RightSide<'a, D> {
    /// Joins the systems of all components.
    pub fn of_components(device: &D, mut systems: Vec<TensorRightSide<'a, D>>) -> Result<Self, FemError> {
        if systems.len() == 1 {
            return Ok(Self::Tensor(systems.remove(0)));
        }
        let parts = systems.iter().map(|system| system.rhs.to_host()).collect::<Result<Vec<_>, _>>()?;
        let together = Buffer::from_vec(device, interleaved(parts))?;
        Ok(Self::Components(systems, together))
    }

    /// Returns the right side.
    pub fn values(&self) -> &Buffer<f64, D> {
        match self {
            Self::Simplices(_, system) => &system.rhs,
            Self::Tensor(system) => &system.rhs,
            Self::Components(_, together) => together,
        }
    }

    /// Returns the largest imbalance of a component.
    pub fn imbalance(&self) -> f64 {
        match self {
            Self::Simplices(_, system) => system.imbalance,
            Self::Tensor(system) => system.imbalance,
            Self::Components(systems, _) => {
                systems.iter().fold(0.0, |most, system| system.imbalance.max(most))
            }
        }
    }

    /// Returns whether each component is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        match self {
            Self::Simplices(_, system) => system.is_pure_neumann,
            Self::Tensor(system) => system.is_pure_neumann,
            Self::Components(systems, _) => systems.iter().any(|system| system.is_pure_neumann),
        }
    }

    /// Returns the Dirichlet values of each component.
    pub fn into_constraints(self) -> Vec<Constraints> {
        match self {
            Self::Simplices(_, system) => vec![system.constraints],
            Self::Tensor(system) => vec![system.constraints],
            Self::Components(systems, _) => systems.into_iter().map(|system| system.constraints).collect(),
        }
    }

    /// Returns each component of u from the solution of the system.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        match self {
            Self::Simplices(mesh, system) => Ok(vec![system.solution(mesh, w)?]),
            Self::Tensor(system) => Ok(vec![system.solution(w)?]),
            Self::Components(systems, _) => {
                let (w, n) = (w.to_host()?, systems.len());
                let one = |(component, system): (usize, &TensorRightSide<'a, D>)| {
                    let own = w.iter().copied().skip(component).step_by(n).collect();
                    system.solution(&Buffer::from_vec(system.rhs.device(), own)?)
                };
                systems.iter().enumerate().map(one).collect()
            }
        }
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
