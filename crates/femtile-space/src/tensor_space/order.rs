//! The order in which cells are visited: along a Morton curve, for locality.

use femtile_device::parallel;
use femtile_mesh::Mesh;
use rayon::prelude::*;

/// Bits of each coordinate.
const BITS: u32 = 21;

/// Sorts cells along a Morton curve through their centres; ties by number.
///
/// Coordinates are in units of the mean cell size, so that evenly spaced cells fill squares and cubes of powers of two
/// exactly.
pub fn along_curve(mesh: &Mesh) -> Vec<u32> {
    let d = mesh.space_dimension();
    let (mut lower, mut upper, mut extent) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3], [0.0; 3]);
    let boxes = parallel::map(mesh.n_cells(), 256, |cell| box_of(mesh, cell));
    // Extents are summed in the order of cells, so that their rounding does not depend on threads.
    for (low, high) in &boxes {
        for a in 0..d {
            lower[a] = f64::min(lower[a], low[a]);
            upper[a] = f64::max(upper[a], high[a]);
            extent[a] += high[a] - low[a];
        }
    }
    let unit = extent.map(|extent| extent / mesh.n_cells() as f64);
    let n_units = (0..d).map(|a| (upper[a] - lower[a]) / unit[a]).fold(1.0, f64::max);
    // Fraction bits: as many as the longest axis leaves.
    let fraction = (f64::from(BITS) - 1.0 - n_units.log2().ceil()).max(0.0).exp2();
    let mut keyed = parallel::map(mesh.n_cells(), 256, |cell| {
        let (low, high) = &boxes[cell];
        let mut key = 0;
        for a in 0..d {
            let steps = (0.5 * (low[a] + high[a]) - lower[a]) / unit[a] * fraction;
            key |= spread(steps as u64 & ((1 << BITS) - 1), d) << a;
        }
        (key, cell as u32)
    });
    keyed.par_sort_unstable();
    keyed.into_iter().map(|(_, cell)| cell).collect()
}

fn box_of(mesh: &Mesh, cell: usize) -> ([f64; 3], [f64; 3]) {
    let mut found = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for &node in mesh.cell(cell) {
        for a in 0..3 {
            let x = mesh.points[node as usize][a];
            found.0[a] = f64::min(found.0[a], x);
            found.1[a] = f64::max(found.1[a], x);
        }
    }
    found
}

/// Returns the bits of a coordinate, `stride` apart.
fn spread(coordinate: u64, stride: usize) -> u64 {
    (0..BITS as usize).fold(0, |key, bit| key | (coordinate >> bit & 1) << (bit * stride))
}
