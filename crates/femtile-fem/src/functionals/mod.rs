//! Functionals of a solution: integrals, norms, errors, fluxes, point values.
//!
//! Sums run over fixed blocks of cells whose results are added in order: the same bits for any number of threads.

pub(crate) mod box_tree;
pub(crate) mod dirichlet_facets;
mod energy;
mod errors;
mod flux;
mod integrals;
mod line;
mod point;

use femtile_device::parallel;
use femtile_mesh::Mesh;

use crate::FemError;
pub use dirichlet_facets::sum_of_facets;
pub use energy::energy;
pub use errors::{error_h1, error_l2};
pub use flux::{facet_fluxes, facet_shares, flux, reaction_integral, source_integral};
pub(crate) use flux::{for_cells, times_sigma};
pub use integrals::{integral, l2_norm, mean, measure};
pub use line::Line;
pub use point::{along, value_at, values_at};

/// Cells summed together.
const BLOCK: usize = 4096;

/// Returns the largest value at a node; NaN without nodes.
pub fn max(u: &[f64]) -> f64 {
    u.iter().copied().fold(f64::NAN, f64::max)
}

/// Returns the smallest value at a node; NaN without nodes.
pub fn min(u: &[f64]) -> f64 {
    u.iter().copied().fold(f64::NAN, f64::min)
}

/// Refuses a vector without exactly one entry per node.
pub(crate) fn check_length(mesh: &Mesh, u: &[f64]) -> Result<(), FemError> {
    if u.len() == mesh.n_nodes() {
        return Ok(());
    }
    Err(FemError::Length { field: "u", found: u.len(), expected: mesh.n_nodes() })
}

/// Sums `part` over all cells, block by block.
fn sum_blocks<E: Send>(
    mesh: &Mesh,
    part: impl Fn(std::ops::Range<u32>) -> Result<f64, E> + Sync,
) -> Result<f64, E> {
    let n_cells = mesh.n_cells();
    let of_block = |block: usize| part((block * BLOCK) as u32..((block + 1) * BLOCK).min(n_cells) as u32);
    let parts = parallel::map(n_cells.div_ceil(BLOCK), 1, of_block);
    parts.into_iter().sum()
}

/// Returns the corners of a cell and the values there.
pub(crate) fn corners(mesh: &Mesh, u: &[f64], cell: u32) -> ([[f64; 3]; 4], [f64; 4], usize) {
    let nodes = mesh.cell(cell as usize);
    let (mut points, mut values) = ([[0.0; 3]; 4], [0.0; 4]);
    for (a, &node) in nodes.iter().enumerate() {
        points[a] = mesh.points[node as usize];
        values[a] = u[node as usize];
    }
    (points, values, nodes.len())
}
