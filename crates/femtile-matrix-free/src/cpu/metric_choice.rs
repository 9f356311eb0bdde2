//! The treatment of each batch of cells: the requested one, or the cheapest.

use super::batch_metrics::Treatment;
use super::cell_unknowns::CellUnknowns;
use crate::metric::{Metrics, Scratch, Variation};
use femtile_device::parallel;
use femtile_fem::FemError;
use femtile_space::SpaceError;
use femtile_space::geometry::MetricEvaluation;

/// Assumed throughput of a core: vector operations per second, one multiplication and addition each, and bytes per
/// second from memory at the same time.
///
/// They are fixed for all processors: measured values would change the bits of results from run to run.
const OPERATIONS: f64 = 2.5e9;
const BYTES: f64 = 1e10;

/// A computed metric is chosen if its expected time is below this fraction of the time of a stored one.
const MARGIN: f64 = 0.9;

/// Input of the choice.
///
/// The expected time of a treatment with m³ points is
/// $$ t = \frac{\text{operations}}{2.5 \cdot 10^9\, \text{lanes}} + \frac{\text{bytes}}{10^{10}\, \text{components}} $$
/// seconds per cell and component: bytes are read once for all components, operations are done for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetricChoice {
    /// The requested evaluation.
    pub metric: Option<MetricEvaluation>,
    pub dimension: usize,
    /// Points of a cell along an axis.
    pub n_points: usize,
    /// Entries of a metric that is stored at points.
    pub n_stored: usize,
    /// Numbers of σ per cell: none, one or six.
    pub n_sigma: usize,
    pub components: usize,
    /// Bytes per number.
    pub number: usize,
}

/// Properties of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Nature {
    variation: Variation,
    /// Order of its map; 1 where nothing depends on it.
    order: usize,
}

impl MetricChoice {
    /// Chooses the treatment of each batch.
    ///
    /// # Errors
    /// [`FemError::Space`] with the first cell that the requested evaluation does not fit; errors of cells and
    /// coefficients.
    pub fn of_batches(
        &self,
        metrics: &Metrics<'_>,
        numbers: &CellUnknowns,
    ) -> Result<Vec<Treatment>, FemError> {
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

    /// Checks that the requested evaluation fits all cells.
    fn check(
        &self,
        metric: MetricEvaluation,
        metrics: &Metrics<'_>,
        natures: &[Nature],
    ) -> Result<(), FemError> {
        let unfit = |nature: &Nature| match metric {
            MetricEvaluation::Stored => None,
            MetricEvaluation::Constant if nature.variation != Variation::Any => None,
            MetricEvaluation::Constant => Some("its metric varies over the cell"),
            MetricEvaluation::Computed if self.dimension != 3 => Some("it is for hexahedra only"),
            MetricEvaluation::Computed if !metrics.is_by_cell() => Some("coefficients vary inside it"),
            MetricEvaluation::Computed => None,
        };
        let found = natures
            .iter()
            .enumerate()
            .filter_map(|(position, nature)| Some((metrics.cell(position), unfit(nature)?)));
        let Some((cell, reason)) = found.min_by_key(|(cell, ..)| *cell) else { return Ok(()) };
        let is_computable = self.dimension == 3 && metrics.is_by_cell();
        let instead = if is_computable { MetricEvaluation::Computed } else { MetricEvaluation::Stored };
        Err(SpaceError::UnfitMetric { metric, cell, reason, instead }.into())
    }

    /// Returns the treatment of cells whose properties are no worse than `worst`.
    fn treatment(&self, worst: Nature, metrics: &Metrics<'_>, lanes: usize) -> Treatment {
        let constant = match worst.variation {
            // The separable kernel is for cubes only.
            Variation::Diagonal if self.dimension == 3 => Some(Treatment::Diagonal),
            Variation::Diagonal | Variation::Constant => Some(Treatment::Constant),
            Variation::Any => None,
        };
        match self.metric {
            None | Some(MetricEvaluation::Constant) => {
                constant.unwrap_or_else(|| self.cheapest(worst, metrics, lanes))
            }
            Some(MetricEvaluation::Computed) => Treatment::Polynomial(worst.order),
            Some(MetricEvaluation::Stored) => Treatment::Stored,
        }
    }

    /// Returns a stored metric, or a computed one if that is cheaper.
    fn cheapest(&self, worst: Nature, metrics: &Metrics<'_>, lanes: usize) -> Treatment {
        let is_computable = self.dimension == 3 && metrics.is_by_cell();
        let computed = self.seconds(self.computed(worst.order), lanes);
        if is_computable && computed < MARGIN * self.seconds(self.stored(), lanes) {
            Treatment::Polynomial(worst.order)
        } else {
            Treatment::Stored
        }
    }

    /// Returns the expected time for numbers of vector operations and of values loaded per cell.
    fn seconds(&self, [operations, numbers]: [f64; 2], lanes: usize) -> f64 {
        operations / (OPERATIONS * lanes as f64)
            + numbers * self.number as f64 / (BYTES * self.components as f64)
    }

    /// Returns operations and loaded numbers of a stored metric.
    fn stored(&self) -> [f64; 2] {
        let n_points = self.n_points.pow(3) as f64;
        let operations = if self.n_sigma == 0 { 1.0 } else { 9.0 };
        [operations * n_points, self.n_stored as f64 * n_points]
    }

    /// Returns operations and loaded numbers of a metric computed from polynomials of an order: sums for J axis by
    /// axis, the rows of its inverse, a division as long as eight products, and the products with slopes.
    fn computed(&self, order: usize) -> [f64; 2] {
        let (n, k) = (self.n_points as f64, order as f64 + 1.0);
        // The first power takes no multiplication, nor does the second for slopes.
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

    /// Returns properties that cover both cells.
    fn worse(self, other: Self) -> Self {
        Self { variation: self.variation.max(other.variation), order: self.order.max(other.order) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOICE: MetricChoice = MetricChoice {
        metric: None,
        dimension: 3,
        n_points: 6,
        n_stored: 6,
        n_sigma: 1,
        components: 1,
        number: 8,
    };

    fn is_computed(choice: MetricChoice, order: usize, lanes: usize) -> bool {
        choice.seconds(choice.computed(order), lanes) < MARGIN * choice.seconds(choice.stored(), lanes)
    }

    #[test]
    fn metrics_are_computed_where_many_lanes_do_it() {
        assert!(is_computed(CHOICE, 1, 8) && is_computed(CHOICE, 2, 8));
        assert!(!is_computed(CHOICE, 1, 1), "one lane computes less than is read in the time");
        let of_three = MetricChoice { components: 3, ..CHOICE };
        assert!(!is_computed(of_three, 1, 8), "three components read a metric once");
        assert!(!is_computed(CHOICE, 9, 8), "a map of many points is more than the metric");
    }
}
