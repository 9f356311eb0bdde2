//! Metrics of batches of cells.

use femtile_device::cpu::Aligned;
use femtile_device::parallel;
use femtile_space::geometry::MetricEvaluation;
use femtile_sum_factorization::SumFactorization;

use super::cell_unknowns::CellUnknowns;
use super::cells::{BatchMetric, Cells, StoredMetric};
use super::maps::MappedMetric;
use super::metric_choice::MetricChoice;
use crate::metric::{Entries, Metrics, Scratch};
use femtile_fem::FemError;

/// Data stored for the cells of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Treatment {
    /// A diagonal metric, constant on each cell.
    Diagonal,
    /// A metric that is constant on each cell.
    Constant,
    /// The polynomial of the map, of some order, and coefficients.
    Polynomial(usize),
    /// The metric at all points.
    Stored,
}

/// Metrics of all cells, batch by batch.
#[derive(Debug)]
pub(super) struct BatchMetrics<T> {
    treatments: Vec<Treatment>,
    /// Start of the metric of each batch: `[n_batches + 1]`.
    begins: Vec<usize>,
    entries: Aligned<T>,
}

impl<T: SumFactorization> BatchMetrics<T> {
    /// Evaluates the metrics with the treatment chosen for each batch.
    pub fn new(
        metrics: &Metrics<'_>,
        cells: &Cells<T>,
        numbers: &CellUnknowns,
        choice: &MetricChoice,
    ) -> Result<Self, FemError> {
        let treatments = choice.of_batches(metrics, numbers)?;
        let mut begins = vec![0];
        for treatment in &treatments {
            begins.push(begins[begins.len() - 1] + cells.n_numbers(*treatment) * numbers.lanes);
        }
        let entries = Aligned::zeros(begins[treatments.len()]);
        let mut found = Self { treatments, begins, entries };
        found.fill(metrics, cells, numbers)?;
        Ok(found)
    }

    fn fill(
        &mut self,
        metrics: &Metrics<'_>,
        cells: &Cells<T>,
        numbers: &CellUnknowns,
    ) -> Result<(), FemError> {
        let (lanes, mut rest) = (numbers.lanes, &mut self.entries[..]);
        let mut parts = Vec::with_capacity(self.treatments.len());
        for (ends, treatment) in self.begins.windows(2).zip(&self.treatments) {
            let (part, tail) = rest.split_at_mut(ends[1] - ends[0]);
            parts.push((parts.len(), part, *treatment));
            rest = tail;
        }
        let write = |workspace: &mut Workspace, (batch, part, treatment): (usize, &mut [T], Treatment)| {
            for lane in 0..lanes {
                workspace.collect(metrics, cells, treatment, numbers.position(batch, lane))?;
                for (to, number) in part.iter_mut().skip(lane).step_by(lanes).zip(&workspace.numbers) {
                    *to = T::from_f64(*number);
                }
            }
            Ok(())
        };
        parallel::try_for_each_item_with(parts, Workspace::default, write)
    }

    /// Returns the metric of a batch.
    pub fn of(&self, batch: usize) -> BatchMetric<'_, T> {
        let entries = &self.entries[self.begins[batch]..self.begins[batch + 1]];
        match self.treatments[batch] {
            Treatment::Diagonal => BatchMetric::Stored(StoredMetric::Diagonal(entries)),
            Treatment::Constant => BatchMetric::Stored(StoredMetric::Constant(entries)),
            Treatment::Stored => BatchMetric::Stored(StoredMetric::AtPoints(entries)),
            Treatment::Polynomial(order) => BatchMetric::Mapped(MappedMetric { order, entries }),
        }
    }

    /// Returns the bytes of all metrics.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<T>()
    }

    /// Returns the number of cells per metric evaluation, without unused ones.
    pub fn metric_evaluations(&self, numbers: &CellUnknowns) -> Vec<(MetricEvaluation, usize)> {
        let cells_of = |metric: MetricEvaluation| {
            let batches = self.treatments.iter().enumerate();
            let with_metric = batches.filter(|(_, treatment)| treatment.metric() == metric);
            with_metric.map(|(batch, _)| numbers.n_active(batch)).sum()
        };
        let all = MetricEvaluation::ALL.map(|metric| (metric, cells_of(metric)));
        all.into_iter().filter(|(_, n_cells)| *n_cells > 0).collect()
    }
}

impl Treatment {
    /// Returns the metric evaluation of a treatment.
    fn metric(self) -> MetricEvaluation {
        match self {
            Self::Diagonal | Self::Constant => MetricEvaluation::Constant,
            Self::Polynomial(_) => MetricEvaluation::Computed,
            Self::Stored => MetricEvaluation::Stored,
        }
    }
}

/// Workspace for one cell.
#[derive(Default)]
struct Workspace {
    scratch: Scratch,
    entries: Vec<Entries>,
    /// Numbers stored for the cell.
    numbers: Vec<f64>,
}

impl Workspace {
    /// Evaluates the numbers of the cell at a position.
    fn collect<T: SumFactorization>(
        &mut self,
        metrics: &Metrics<'_>,
        cells: &Cells<T>,
        treatment: Treatment,
        position: usize,
    ) -> Result<(), FemError> {
        let Self { scratch, entries, numbers } = self;
        numbers.clear();
        match treatment {
            Treatment::Diagonal => {
                let all = metrics.constant(position, scratch)?;
                numbers.extend([0, 1, 2, 6].map(|entry: usize| all[entry]));
            }
            Treatment::Constant => numbers.extend(metrics.constant(position, scratch)?),
            Treatment::Stored => {
                metrics.at_points(position, scratch, entries)?;
                let kept = cells.stored_entries();
                numbers.extend(entries.iter().flat_map(|all| kept.iter().map(|&entry| all[entry])));
            }
            Treatment::Polynomial(order) => {
                numbers.extend(metrics.polynomial(position, order).as_flattened());
                let (sigma, lambda) = metrics.coefficients(position, scratch)?;
                let [n_sigma, n_lambda] = cells.n_coefficients();
                numbers.extend(&sigma[..n_sigma]);
                numbers.extend(&[lambda][..n_lambda]);
            }
        }
        Ok(())
    }
}
