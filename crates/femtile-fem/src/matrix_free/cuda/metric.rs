//! Metrics of all cells in the order in which a GPU reads them.

use femtile_device::Scalar;
use rayon::prelude::*;

use super::batches::{Batches, NONE};
use super::config::Geometry;
use super::program::Variant;
use crate::FemError;
use crate::dofs::TensorSpace;
use crate::matrix_free::metric::{Entries, Metrics, Scratch, Variation};

/// Numbers of a cell with a constant metric, and of a trilinear one.
const CONSTANT: usize = 8;
const TRILINEAR: usize = 32;

/// Room for one cell.
type Room = (Scratch, Vec<Entries>);

/// The cheapest geometry that serves all cells.
pub(super) fn cheapest(metrics: &Metrics<'_>, n_cells: usize) -> Result<Geometry, FemError> {
    let worst = (0..n_cells)
        .into_par_iter()
        .map_init(Scratch::default, |scratch, position| metrics.variation(position, scratch))
        .try_reduce(|| Variation::Diagonal, |a, b| Ok(a.max(b)))?;
    Ok(match worst {
        Variation::Diagonal | Variation::Constant => Geometry::Constant,
        Variation::Any if metrics.is_trilinear() => Geometry::Trilinear,
        Variation::Any => Geometry::Stored,
    })
}

/// Metrics of all batches as [`Geometry`] says.
pub(super) fn fill<T: Scalar>(
    metrics: &Metrics<'_>,
    space: &TensorSpace<'_>,
    batches: &Batches,
    variant: &Variant,
) -> Result<Vec<T>, FemError> {
    let cells = variant.shape.cells;
    let per_batch = match variant.geometry {
        Geometry::Stored => variant.batch_entries::<T>(),
        Geometry::Constant => CONSTANT * cells,
        Geometry::Trilinear => TRILINEAR * cells,
    };
    let mut filled = vec![T::ZERO; batches.slots.len() / cells * per_batch];
    filled.par_chunks_exact_mut(per_batch).zip(batches.slots.par_chunks_exact(cells)).try_for_each_init(
        Room::default,
        |room, (to, slots)| {
            for (place, &position) in slots.iter().enumerate().filter(|(_, position)| **position != NONE) {
                let position = position as usize;
                match variant.geometry {
                    Geometry::Stored => stored(metrics, variant, position, place, room, to)?,
                    Geometry::Constant => {
                        let entries = metrics.constant(position, &mut room.0)?;
                        write(&mut to[CONSTANT * place..], &entries);
                    }
                    Geometry::Trilinear => {
                        trilinear(metrics, space, position, room, &mut to[TRILINEAR * place..])?;
                    }
                }
            }
            Ok::<(), FemError>(())
        },
    )?;
    Ok(filled)
}

fn write<T: Scalar>(to: &mut [T], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
}

/// `[plane][entry][cell of the batch][point of the plane]`.
fn stored<T: Scalar>(
    metrics: &Metrics<'_>,
    variant: &Variant,
    position: usize,
    place: usize,
    (scratch, found): &mut Room,
    to: &mut [T],
) -> Result<(), FemError> {
    metrics.at_points(position, scratch, found)?;
    let layer = variant.n_points().pow(2);
    let kept = if variant.has_stiffness { 0..6 + usize::from(variant.has_mass) } else { 6..7 };
    for (plane, entries) in found.chunks_exact(layer).enumerate() {
        for (row, e) in kept.clone().enumerate() {
            let begin = ((plane * kept.len() + row) * variant.shape.cells + place) * layer;
            let to = &mut to[begin..begin + layer];
            to.iter_mut().zip(entries).for_each(|(to, entries)| *to = T::from_f64(entries[e]));
        }
    }
    Ok(())
}

/// Corners, σ as xx, yy, zz, yz, xz, xy, and λ.
fn trilinear<T: Scalar>(
    metrics: &Metrics<'_>,
    space: &TensorSpace<'_>,
    position: usize,
    (scratch, _): &mut Room,
    to: &mut [T],
) -> Result<(), FemError> {
    let (sigma, lambda) = metrics.coefficients(position, scratch)?;
    for (corner, &node) in space.corners(position).iter().enumerate() {
        write(&mut to[3 * corner..3 * corner + 3], &space.mesh().points[node as usize]);
    }
    write(&mut to[24..30], &sigma);
    to[30] = T::from_f64(lambda);
    Ok(())
}
