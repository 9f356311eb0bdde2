//! Metrics of all cells in the order of the GPU kernel.

use femtile_device::cuda::Structure;
use femtile_device::{Buffer, Cuda, Scalar, parallel};

use super::batches::{Batches, NONE};
use super::operator::address;
use super::program::Variant;
use crate::metric::{Entries, Metrics, Scratch, Variation};
use femtile_fem::FemError;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::geometry::MetricEvaluation;

/// Workspace for one cell.
type Workspace = (Scratch, Vec<Entries>);

/// Returns the cheapest evaluation that fits all cells.
pub(super) fn cheapest(metrics: &Metrics<'_>, n_cells: usize) -> Result<MetricEvaluation, FemError> {
    let of_cell = |scratch: &mut Scratch, position| metrics.variation(position, scratch);
    let variations = parallel::try_map_with(n_cells, Scratch::default, of_cell)?;
    let worst = variations.into_iter().fold(Variation::Diagonal, Variation::max);
    Ok(match worst {
        Variation::Diagonal | Variation::Constant => MetricEvaluation::Constant,
        Variation::Any if metrics.is_trilinear() => MetricEvaluation::Trilinear,
        Variation::Any => MetricEvaluation::Stored,
    })
}

/// The metrics of all cells, in the order of their batches.
#[derive(Debug)]
pub(super) enum MetricBuffer<T: Scalar> {
    /// In the precision of the vectors.
    Own(Buffer<T, Cuda>),
    /// In single precision beside vectors in any.
    Single(Buffer<f32, Cuda>),
}

impl<T: Scalar> MetricBuffer<T> {
    /// Evaluates the metrics, and copies them to the device.
    pub fn new(
        device: &Cuda,
        metrics: &Metrics<'_>,
        space: &TensorSpace<'_>,
        batches: &Batches,
        variant: &Variant,
    ) -> Result<Self, FemError> {
        Ok(match variant.is_single() {
            true => Self::Single(Buffer::from_vec(device, fill(metrics, space, batches, variant)?)?),
            false => Self::Own(Buffer::from_vec(device, fill(metrics, space, batches, variant)?)?),
        })
    }

    /// Returns their address: `struct Metrics` of the kernels.
    pub fn address(&self) -> Structure {
        Structure(vec![match self {
            Self::Own(metric) => address(metric),
            Self::Single(metric) => address(metric),
        }])
    }

    /// Returns their size.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Own(metric) => size_of::<T>() * metric.len(),
            Self::Single(metric) => size_of::<f32>() * metric.len(),
        }
    }
}

/// Evaluates the metrics of all cells, in the order of their batches.
fn fill<T: Scalar>(
    metrics: &Metrics<'_>,
    space: &TensorSpace<'_>,
    batches: &Batches,
    variant: &Variant,
) -> Result<Vec<T>, FemError> {
    let numbers = variant.cell_numbers();
    let mut filled = vec![T::ZERO; space.n_cells() * numbers];
    let positions: Vec<usize> =
        batches.slots.iter().filter(|slot| **slot != NONE).map(|&slot| slot as usize).collect();
    let write_cell = |workspace: &mut Workspace, (to, position): (&mut [T], usize)| match variant.metric {
        MetricEvaluation::Constant => {
            let entries = metrics.constant(position, &mut workspace.0)?;
            to.iter_mut().zip(variant.entries()).for_each(|(to, &entry)| *to = T::from_f64(entries[entry]));
            Ok(())
        }
        MetricEvaluation::Trilinear => of_corners(metrics, space, position, workspace, to),
        _ => stored(metrics, variant, position, workspace, to),
    };
    let cells = filled.chunks_exact_mut(numbers).zip(positions).collect();
    parallel::try_for_each_item_with(cells, Workspace::default, write_cell)?;
    Ok(filled)
}

fn write<T: Scalar>(to: &mut [T], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
}

/// Returns the stored metric: `[layer][entry][point of the layer]`.
fn stored<T: Scalar>(
    metrics: &Metrics<'_>,
    variant: &Variant,
    position: usize,
    (scratch, found): &mut Workspace,
    to: &mut [T],
) -> Result<(), FemError> {
    metrics.at_points(position, scratch, found)?;
    let (layer, kept) = (variant.layer_points(), variant.stored_entries());
    let layers = to.chunks_exact_mut(kept.len() * layer).zip(found.chunks_exact(layer));
    for (to, entries) in layers {
        for (to, &e) in to.chunks_exact_mut(layer).zip(kept) {
            to.iter_mut().zip(entries).for_each(|(to, entries)| *to = T::from_f64(entries[e]));
        }
    }
    Ok(())
}

/// Returns corners, σ as xx, yy, zz, yz, xz, xy, or xx, yy, xy in two dimensions, and λ.
fn of_corners<T: Scalar>(
    metrics: &Metrics<'_>,
    space: &TensorSpace<'_>,
    position: usize,
    (scratch, _): &mut Workspace,
    to: &mut [T],
) -> Result<(), FemError> {
    let (sigma, lambda) = metrics.coefficients(position, scratch)?;
    let (d, corners) = (space.dimension(), space.corners(position));
    let (of_corners, of_terms) = to.split_at_mut(d * corners.len());
    for (to, &node) in of_corners.chunks_exact_mut(d).zip(corners) {
        write(to, &space.mesh().points[node as usize][..d]);
    }
    let [xx, yy, _, _, _, xy] = sigma;
    match d {
        2 => write(of_terms, &[xx, yy, xy, lambda]),
        _ => {
            write(&mut of_terms[..6], &sigma);
            of_terms[6] = T::from_f64(lambda);
        }
    }
    Ok(())
}
