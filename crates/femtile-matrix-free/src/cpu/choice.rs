//! The treatment of each batch of cells: the one that was asked for, or the cheapest.

use super::batch_metrics::Treatment;
use super::numbers::Numbers;
use crate::metric::{Metrics, Scratch, Variation};
use femtile_device::parallel;
use femtile_fem::FemError;
use femtile_fem::geometry::MetricEvaluation;

/// What a core does in a second: operations on vectors, one multiplication and addition each, and bytes that come from
/// memory while it does them.
///
/// They stand for any processor: a choice by measured ones would change the bits of results from run to run.
const OPERATIONS: f64 = 2.5e9;
const BYTES: f64 = 1e10;

/// A computed metric is taken where it is expected to take less than this part of the time of a stored one.
const MARGIN: f64 = 0.9;

/// What decides.
///
/// A treatment of m³ points takes
/// $$ t = \frac{\text{operations}}{2.5 \cdot 10^9\, \text{lanes}} + \frac{\text{bytes}}{10^{10}\, \text{components}} $$
/// seconds a cell and component: bytes are read once for all components, operations are done for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    /// What was asked for.
    pub metric: Option<MetricEvaluation>,
    pub dimension: usize,
    /// Points of a cell along an axis.
    pub n_points: usize,
    /// Entries of a metric that is stored at points.
    pub n_stored: usize,
    /// Numbers of σ in a cell: none, one or six.
    pub n_sigma: usize,
    pub components: usize,
    /// Bytes of a number.
    pub number: usize,
}

/// What is known of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Nature {
    variation: Variation,
    /// Of its map; 1 where nothing depends on it.
    order: usize,
}

impl Choice {
    /// The treatment of each batch.
    ///
    /// # Errors
    /// [`FemError::UnfitMetric`] naming the first cell that is not served by what was asked for, and what is wrong with
    /// cells and coefficients.
    pub fn of_batches(&self, metrics: &Metrics<'_>, numbers: &Numbers) -> Result<Vec<Treatment>, FemError> {
        let of_cell = |scratch: &mut Scratch, position| self.nature(metrics, position, scratch);
        let natures = parallel::try_map_with(numbers.n_cells(), Scratch::default, of_cell)?;
        if let Some(metric) = self.metric {
            self.check(metric, metrics, &natures)?;
        }
        let of_batch = |batch| {
            let of_lane = |lane| natures[numbers.position(batch, lane)];
            let worst = (0..numbers.lanes).map(of_lane).fold(Nature::BEST, Nature::worse);
            self.treatment(worst, metrics, numbers.lanes)
        };
        Ok((0..numbers.n_batches()).map(of_batch).collect())
    }

    fn nature(
        &self,
        metrics: &Metrics<'_>,
        position: usize,
        scratch: &mut Scratch,
    ) -> Result<Nature, FemError> {
        let variation = metrics.variation(position, scratch)?;
        let is_plain = variation != Variation::Any || self.dimension != 3 || !metrics.is_by_cell();
        let order = if is_plain { 1 } else { metrics.order_of(position) };
        Ok(Nature { variation, order })
    }

    /// Whether all cells can be treated as was asked for.
    fn check(
        &self,
        metric: MetricEvaluation,
        metrics: &Metrics<'_>,
        natures: &[Nature],
    ) -> Result<(), FemError> {
        let unfit = |nature: &Nature| match metric {
            MetricEvaluation::Stored => None,
            MetricEvaluation::Constant if nature.variation != Variation::Any => None,
            MetricEvaluation::Constant => Some("its metric is not the same at all points"),
            _ if self.dimension != 3 => Some("it is for hexahedra"),
            _ if !metrics.is_by_cell() => Some("coefficients vary inside of it"),
            MetricEvaluation::Trilinear if nature.order > 1 => Some("its map is no trilinear one"),
            MetricEvaluation::Triquadratic if nature.order > 2 => Some("its map is no triquadratic one"),
            _ => None,
        };
        let found = natures
            .iter()
            .enumerate()
            .filter_map(|(position, nature)| Some((metrics.cell(position), nature, unfit(nature)?)));
        let Some((cell, nature, reason)) = found.min_by_key(|(cell, ..)| *cell) else { return Ok(()) };
        let instead = match nature.order {
            _ if self.dimension != 3 || !metrics.is_by_cell() => MetricEvaluation::Stored,
            1 => MetricEvaluation::Trilinear,
            2 => MetricEvaluation::Triquadratic,
            _ => MetricEvaluation::Isoparametric,
        };
        Err(FemError::UnfitMetric { metric, cell, reason, instead })
    }

    /// The treatment of cells that are no worse than one of some nature.
    fn treatment(&self, worst: Nature, metrics: &Metrics<'_>, lanes: usize) -> Treatment {
        let constant = match worst.variation {
            // Products of matrices along the axes are for cubes.
            Variation::Diagonal if self.dimension == 3 => Some(Treatment::Diagonal),
            Variation::Diagonal | Variation::Constant => Some(Treatment::Constant),
            Variation::Any => None,
        };
        match self.metric {
            None | Some(MetricEvaluation::Constant) => {
                constant.unwrap_or_else(|| self.cheapest(worst, metrics, lanes))
            }
            Some(MetricEvaluation::Trilinear) => Treatment::Polynomial(1),
            Some(MetricEvaluation::Triquadratic) => Treatment::Polynomial(2),
            Some(MetricEvaluation::Isoparametric) => Treatment::Polynomial(metrics.order()),
            Some(MetricEvaluation::Inverse) => Treatment::Inverse,
            Some(MetricEvaluation::Stored) => Treatment::Stored,
        }
    }

    /// Stored, or computed where that is cheaper.
    fn cheapest(&self, worst: Nature, metrics: &Metrics<'_>, lanes: usize) -> Treatment {
        let is_computable = self.dimension == 3 && metrics.is_by_cell();
        let computed = self.seconds(self.computed(worst.order), lanes);
        if is_computable && computed < MARGIN * self.seconds(self.stored(), lanes) {
            Treatment::Polynomial(worst.order)
        } else {
            Treatment::Stored
        }
    }

    /// Of operations on vectors and of numbers of a cell.
    fn seconds(&self, [operations, numbers]: [f64; 2], lanes: usize) -> f64 {
        operations / (OPERATIONS * lanes as f64)
            + numbers * self.number as f64 / (BYTES * self.components as f64)
    }

    /// Operations and numbers of a metric that is loaded.
    fn stored(&self) -> [f64; 2] {
        let n_points = self.n_points.pow(3) as f64;
        let operations = if self.n_sigma == 0 { 1.0 } else { 9.0 };
        [operations * n_points, self.n_stored as f64 * n_points]
    }

    /// Operations and numbers of a metric that is computed from polynomials of an order: sums for J along one axis after the
    /// other, the rows of its inverse, a division that takes as long as eight products, and slopes times all that.
    fn computed(&self, order: usize) -> [f64; 2] {
        let (n, k) = (self.n_points as f64, order as f64 + 1.0);
        // Of powers, the first takes no multiplication, in slopes nor the second.
        let [of_values, of_slopes] = if order <= 2 { [k - 1.0, k - 2.0] } else { [k, k] };
        let of_plane = 3.0 * k * k * (of_values + of_slopes);
        let of_line = 3.0 * k * (2.0 * of_values + of_slopes);
        let of_jacobian = 3.0 * (2.0 * of_values + of_slopes);
        let of_metric = match self.n_sigma {
            0 => 14.0,
            1 => 51.0,
            _ => 60.0,
        };
        let operations = n * (of_plane + n * (of_line + n * (of_jacobian + of_metric)));
        [operations, 3.0 * k.powi(3) + 7.0]
    }
}

impl Nature {
    const BEST: Self = Self { variation: Variation::Diagonal, order: 1 };

    /// What serves both cells.
    fn worse(self, other: Self) -> Self {
        Self { variation: self.variation.max(other.variation), order: self.order.max(other.order) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: Choice =
        Choice { metric: None, dimension: 3, n_points: 6, n_stored: 6, n_sigma: 1, components: 1, number: 8 };

    fn is_computed(choice: Choice, order: usize, lanes: usize) -> bool {
        choice.seconds(choice.computed(order), lanes) < MARGIN * choice.seconds(choice.stored(), lanes)
    }

    #[test]
    fn metrics_are_computed_where_many_lanes_do_it() {
        assert!(is_computed(CHOICE, 1, 8) && is_computed(CHOICE, 2, 8));
        assert!(!is_computed(CHOICE, 1, 1), "one lane computes less than is read in the time");
        let of_three = Choice { components: 3, ..CHOICE };
        assert!(!is_computed(of_three, 1, 8), "three components read a metric once");
        assert!(!is_computed(CHOICE, 9, 8), "a map of many points is more than the metric");
    }
}
