use super::bend::bend;
use crate::{Mesh, MeshError};

/// Deformation of the interior of a box or rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeformConfig {
    /// Displacement of the centre along each axis, in sides of the box; between −0.25 and 0.25.
    pub amplitude: f64,
    /// Degree of the polynomials of each cell, 1 to 9; 1 leaves cells straight.
    pub order: usize,
}

impl Default for DeformConfig {
    fn default() -> Self {
        Self { amplitude: 0.1, order: 1 }
    }
}

/// Moves the inside of a box or rectangle and keeps its sides fixed:
/// $$ x_d \mathrel{+}= a\, l_d \prod_e \sin \pi \xi_e, $$
/// with $\xi$ the position in the box around all nodes and $l_d$ its sides. Cells of an order above 1 become curved.
///
/// # Errors
/// [`MeshError::Invalid`] for an amplitude that folds cells or an order that the cells cannot have.
pub fn deform(mesh: &mut Mesh, config: &DeformConfig) -> Result<(), MeshError> {
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in &mesh.points {
        for d in 0..3 {
            (lower[d], upper[d]) = (lower[d].min(point[d]), upper[d].max(point[d]));
        }
    }
    deform_within(mesh, config, [lower, upper])
}

/// As [`deform`]; `mesh` may be a part of the box between these corners.
pub(super) fn deform_within(
    mesh: &mut Mesh,
    config: &DeformConfig,
    [lower, upper]: [[f64; 3]; 2],
) -> Result<(), MeshError> {
    let DeformConfig { amplitude, order } = *config;
    // The Jacobian of the map is 1 − 3.63 a at least in three dimensions, 1 − π a in two.
    if amplitude.is_nan() || amplitude.abs() >= 0.25 {
        let message = format!("{amplitude}; between -0.25 and 0.25, else cells fold");
        return Err(MeshError::Invalid { field: "amplitude", message });
    }
    bend(mesh, order, deformation(amplitude, mesh.dimension(), [lower, upper]))
}

/// The map of [`deform`] of the box between two corners.
pub(crate) fn deformation(
    amplitude: f64,
    dimension: usize,
    [lower, upper]: [[f64; 3]; 2],
) -> impl Fn([f64; 3]) -> [f64; 3] + Sync {
    move |point| {
        let along = |d: usize| (point[d] - lower[d]) / (upper[d] - lower[d]);
        // Exactly zero on the sides, where the sine of π is not.
        let is_inside = (0..dimension).all(|d| point[d] > lower[d] && point[d] < upper[d]);
        let product: f64 = (0..dimension).map(|d| (std::f64::consts::PI * along(d)).sin()).product();
        let share = if is_inside { amplitude * product } else { 0.0 };
        std::array::from_fn(
            |d| if d < dimension { point[d] + share * (upper[d] - lower[d]) } else { point[d] },
        )
    }
}
