//! Potentials at electrodes outside of the tissue.

use femtile::Mesh;
use femtile::device::Buffer;

use super::Nodes;
use super::stepper::Stepper;
use crate::{CardiacDevice, CardiacError};

/// An electrode outside of the tissue.
#[derive(Debug, Clone, PartialEq)]
pub struct Electrode {
    /// Its name in results.
    pub name: String,
    /// Its position.
    pub position: [f64; 3],
}

/// The lead field of an electrode in an infinite homogeneous medium of conductivity $\sigma_b$: the pseudo-ECG.
///
/// $$ \varphi_e(x) = -\frac{1}{4\pi\sigma_b} \int_\Omega D \nabla V \cdot \nabla_y \frac{1}{|y - x|}\,dy
///    = w^\mathsf{T} V, \qquad w = -\frac{1}{4\pi\sigma_b} K g, \quad g_i = \frac{1}{|y_i - x|} $$
///
/// The kernel is interpolated at the nodes, so the electrode has to lie farther from the tissue than a cell is wide.
///
/// # Cost
/// One product at the start, then a scalar product for each value.
/// # Source
/// `[plonsey1988]`, the potential of a distribution of current sources.
pub(super) fn lead_field<D: CardiacDevice>(
    (device, mesh, here): (&D, &Mesh, &Nodes<'_>),
    stepper: &dyn Stepper<D>,
    electrode: &Electrode,
    bath: f64,
) -> Result<Buffer<f64, D>, CardiacError> {
    let distance = |point: &[f64; 3]| {
        let square: f64 = (0..3).map(|axis| (point[axis] - electrode.position[axis]).powi(2)).sum();
        square.sqrt()
    };
    let is_at = |&node: &usize| !(1.0 / distance(&mesh.points[node])).is_finite();
    // Of all ranks, so that each of them refuses what one does.
    let first = here.least((0..here.n_complete()).find(is_at).map(|node| here.number(node)))?;
    if let Some(node) = first {
        let message = format!("`{}` lies at node {node}: move it out of the tissue", electrode.name);
        return Err(CardiacError::setting("electrode", message));
    }
    let kernel: Vec<f64> = here.of_mesh(&mesh.points).map(|point| 1.0 / distance(&point)).collect();
    let kernel = Buffer::from_vec(device, kernel)?;
    let mut product = Buffer::zeros(device, kernel.len())?;
    stepper.apply_stiffness(&mut product, &kernel)?;
    let mut lead = Buffer::zeros(device, kernel.len())?;
    device.axpby(&mut lead, -1.0 / (4.0 * std::f64::consts::PI * bath), &product, 0.0)?;
    Ok(lead)
}
