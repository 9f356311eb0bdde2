//! Metrics of all cells in the order of the GPU kernel.

use femtile_device::cpu::zeroed_vec;
use femtile_device::{Scalar, parallel};
use femtile_space::TensorSpace;
use femtile_space::geometry::MetricEvaluation;

use super::batches::{Batches, NONE};
use super::point_metric::PointMetric;
use super::program::Variant;
use crate::metric::{Entries, Metrics, Scratch, Variation};
use femtile_fem::FemError;

/// Workspace for one cell.
type Workspace = (Scratch, Vec<Entries>);

/// Returns the kind of the maps of all cells, with which coefficients are constant: constant, straight or any other.
pub(super) fn of_maps(metrics: &Metrics<'_>, n_cells: usize) -> Result<MetricEvaluation, FemError> {
    let of_cell = |scratch: &mut Scratch, position| metrics.variation(position, scratch);
    let variations = parallel::try_map_with(n_cells, Scratch::default, of_cell)?;
    let worst = variations.into_iter().fold(Variation::Diagonal, Variation::max);
    Ok(match worst {
        Variation::Diagonal | Variation::Constant => MetricEvaluation::Constant,
        Variation::Any if metrics.is_trilinear() => MetricEvaluation::Computed,
        Variation::Any => MetricEvaluation::Stored,
    })
}

/// Evaluates the metrics of all cells, in the order of their batches. `of_map` is the metric to use together
/// with coefficients at points.
pub(super) fn fill<T: Scalar>(
    [metrics, of_map]: [&Metrics<'_>; 2],
    space: &TensorSpace<'_>,
    batches: &Batches,
    variant: &Variant,
) -> Result<Vec<T>, FemError> {
    let [of_metric, at_points] = variant.cell_numbers();
    let numbers = of_metric + at_points;
    let mut filled = zeroed_vec(space.n_cells() * numbers);
    let positions: Vec<usize> =
        batches.slots.iter().filter(|slot| **slot != NONE).map(|&slot| slot as usize).collect();
    let write_cell = |workspace: &mut Workspace, (to, position): (&mut [T], usize)| {
        let (to, to_points) = to.split_at_mut(of_metric);
        if variant.is_at_points {
            coefficients(metrics, variant, position, workspace, to_points)?;
        }
        match variant.metric {
            MetricEvaluation::Constant => constant(of_map, variant, position, workspace, to),
            MetricEvaluation::Computed => of_corners(of_map, space, position, workspace, to),
            _ => stored(metrics, variant, position, workspace, to),
        }
    };
    let cells = filled.chunks_exact_mut(numbers).zip(positions).collect();
    parallel::try_for_each_item_with(cells, Workspace::default, write_cell)?;
    Ok(filled)
}

/// Returns given metrics of all cells, in the order of their batches.
pub(super) fn given<T: Scalar>(
    metric: &PointMetric<'_>,
    space: &TensorSpace<'_>,
    batches: &Batches,
    variant: &Variant,
) -> Vec<T> {
    let [numbers, _] = variant.cell_numbers();
    let mut filled = zeroed_vec(space.n_cells() * numbers);
    let n_points = variant.n_points() * variant.layer_points();
    let positions = batches.slots.iter().filter(|slot| **slot != NONE).map(|&slot| slot as usize);
    let cells = filled.chunks_exact_mut(numbers).zip(positions).collect();
    let write_cell = |found: &mut Vec<Entries>, (to, position): (&mut [T], usize)| {
        found.resize(if metric.is_constant { 1 } else { n_points }, [f64::NAN; 7]);
        (metric.write)(position, found);
        match metric.is_constant {
            true => write_constant(variant, &found[0], to),
            false => write_stored(variant, found, to),
        }
    };
    parallel::for_each_item_with(cells, 1, Vec::new, write_cell);
    filled
}

fn write<T: Scalar>(to: &mut [T], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to = T::from_f64(from));
}

/// Writes the metric of a cell on which it is constant.
fn constant<T: Scalar>(
    metrics: &Metrics<'_>,
    variant: &Variant,
    position: usize,
    (scratch, _): &mut Workspace,
    to: &mut [T],
) -> Result<(), FemError> {
    write_constant(variant, &metrics.constant(position, scratch)?, to);
    Ok(())
}

fn write_constant<T: Scalar>(variant: &Variant, entries: &Entries, to: &mut [T]) {
    to.iter_mut().zip(variant.entries()).for_each(|(to, &entry)| *to = T::from_f64(entries[entry]));
}

/// Writes coefficients at points: `[layer][term][point of the layer]`.
fn coefficients<T: Scalar>(
    metrics: &Metrics<'_>,
    variant: &Variant,
    position: usize,
    (scratch, _): &mut Workspace,
    to: &mut [T],
) -> Result<(), FemError> {
    let layer = variant.layer_points();
    let n_terms = to.len() / (layer * variant.n_points());
    for (term, values) in metrics.scalars_at_points(position, scratch)?.enumerate() {
        let layers = to.chunks_exact_mut(layer).skip(term).step_by(n_terms);
        layers.zip(values.chunks_exact(layer)).for_each(|(to, values)| write(to, values));
    }
    Ok(())
}

/// Writes the metric of a cell at its points.
fn stored<T: Scalar>(
    metrics: &Metrics<'_>,
    variant: &Variant,
    position: usize,
    (scratch, found): &mut Workspace,
    to: &mut [T],
) -> Result<(), FemError> {
    metrics.at_points(position, scratch, found)?;
    write_stored(variant, found, to);
    Ok(())
}

/// Writes a metric at points: `[layer][entry][point of the layer]`.
fn write_stored<T: Scalar>(variant: &Variant, found: &[Entries], to: &mut [T]) {
    let (layer, kept) = (variant.layer_points(), variant.stored_entries());
    let layers = to.chunks_exact_mut(kept.len() * layer).zip(found.chunks_exact(layer));
    for (to, entries) in layers {
        for (to, &e) in to.chunks_exact_mut(layer).zip(kept) {
            to.iter_mut().zip(entries).for_each(|(to, entries)| *to = T::from_f64(entries[e]));
        }
    }
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
