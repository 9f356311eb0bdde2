//! Equations whose coefficients depend on u, by Newton's method or Picard's iteration, steady and in time.
//!
//! [`tangent`] is the linearization on a device, [`equation`] the residual with its linear solves, [`steady`] the problem
//! without time; `transient/nonlinear.rs` has the stages of those in time.
//!
//! `linear` keeps the preconditioner; checkpoints hold the point at which it was made. If the capacity depends on
//! u, the content $E_i = \int e(u) \varphi_i$ stands for M u (`mass`).

mod config;
mod equation;
mod linear;
mod mass;
mod report;
mod settings;
mod steady;
mod tangent;

use femtile_space::geometry::{CellMap, CellMaps};

use crate::Discretization;
pub use config::{NonlinearConfig, NonlinearMethod};
pub(crate) use equation::DiscreteEquation;
pub use mass::MassMatrix;
pub(crate) use mass::{Mass, lump, lump_within};
pub use report::NonlinearReport;
pub(crate) use report::Worst;
pub(crate) use settings::{FORMAT_REASON, check, resolved};
pub(crate) use steady::solve;
pub(crate) use tangent::Derivatives;

/// Returns the point of an unknown.
pub(crate) fn place_of(problem: &Discretization<'_>, unknown: usize) -> [f64; 3] {
    let Some(space) = problem.space() else { return problem.mesh.points[unknown] };
    let mut dofs = vec![0; space.dofs_per_cell()];
    for position in 0..space.n_cells() {
        space.cell_dofs(position, &mut dofs);
        if let Some(at) = dofs.iter().position(|&dof| dof as usize == unknown) {
            let mut map = CellMap::default();
            CellMaps::new(space, space.shapes().nodes()).of_cell(position, &mut map);
            return map.points[at];
        }
    }
    [f64::NAN; 3]
}
