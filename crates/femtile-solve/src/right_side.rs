//! Right sides of linear systems, and the way back from their solutions to u.

use femtile_device::{Buffer, Device};
use femtile_fem::assembly::completed;
use femtile_fem::{Constraints, FemError, WithoutMatrix};
use femtile_space::Space;

/// The right side of the owned rows of a system, with boundary values lifted.
#[derive(Debug)]
pub(crate) struct RightSide<'a, D: Device> {
    /// Of several components, the values alternate.
    pub values: Buffer<f64, D>,
    /// The Dirichlet values of each component at the owned unknowns.
    pub constraints: Vec<Constraints>,
    /// Whether each component is determined up to a constant only.
    pub is_pure_neumann: bool,
    /// The largest imbalance of a component, as in `femtile_fem::AssembledSystem`.
    pub imbalance: f64,
    /// The space in which a free mean is removed from solutions; none if several ranks own its unknowns.
    pub space: Option<Space<'a>>,
}

impl<'a, D: Device> RightSide<'a, D> {
    /// Joins the systems of all components, with all unknowns on one rank.
    pub fn new(
        device: &D,
        space: Space<'a>,
        mut systems: Vec<WithoutMatrix<f64, D>>,
    ) -> Result<Self, FemError> {
        let is_pure_neumann = systems.iter().any(|system| system.is_pure_neumann);
        let imbalance = systems.iter().fold(0.0, |most: f64, system| system.imbalance.max(most));
        let (values, constraints) = match systems.len() {
            1 => {
                let system = systems.swap_remove(0);
                (system.rhs, vec![system.constraints])
            }
            _ => {
                let parts = systems.iter().map(|system| system.rhs.to_host()).collect::<Result<_, _>>()?;
                let constraints = systems.into_iter().map(|system| system.constraints).collect();
                (Buffer::from_vec(device, interleaved(parts))?, constraints)
            }
        };
        Ok(Self { values, constraints, is_pure_neumann, imbalance, space: Some(space) })
    }

    /// Returns each component of u from the solution of the system, at the owned unknowns: with its Dirichlet values, and mean zero
    /// if a constant is free and the rank is alone.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        let (w, n) = (w.to_host()?, self.constraints.len());
        let components = match n {
            1 => vec![w],
            _ => (0..n).map(|component| w.iter().copied().skip(component).step_by(n).collect()).collect(),
        };
        let one = |(mut w, constraints): (Vec<f64>, &Constraints)| match &self.space {
            Some(space) => completed(space, w, constraints, self.is_pure_neumann),
            None => {
                constraints.impose(&mut w);
                Ok(w)
            }
        };
        components.into_iter().zip(&self.constraints).map(one).collect()
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
