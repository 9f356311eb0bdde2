//! Metrics computed at the points from the maps of the cells of a batch.

use femtile_device::Cpu;
use femtile_element::tensor::Table;
use femtile_space::TensorSpace;
use femtile_sum_factorization::{Mapped, SumFactorization, act_mapped, lanes};

use super::cells::Cells;
use crate::curvature;

/// Data stored for a batch with computed metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedMetric<'a, T> {
    /// Order of the polynomials of the map.
    pub order: usize,
    /// Coefficients of the polynomials, then σ, then λ: `[…][lanes]`.
    pub entries: &'a [T],
}

/// Functions of maps and their slopes at the points of a rule.
#[derive(Debug)]
pub(super) struct MapTables<T> {
    /// Order of the mesh.
    order: usize,
    /// For orders 1, 2 and that of the mesh, values and slopes: `[m][order + 1]` each.
    tables: [[Vec<T>; 2]; 3],
}

impl<T: SumFactorization> MapTables<T> {
    pub fn new(space: &TensorSpace<'_>, points: &[f64]) -> Self {
        let order = space.mesh().curved.as_ref().map_or(1, |curved| curved.order);
        let rounded = |table: Table| table.entries.into_iter().map(T::from_f64).collect();
        Self { order, tables: [1, 2, order].map(|order| curvature::tables(order, points).map(rounded)) }
    }

    /// Returns the number of workspace values of a metric.
    pub fn workspace_len(&self, lanes: usize) -> usize {
        Mapped::<T>::workspace_of_order(self.order, lanes)
    }

    fn of(&self, order: usize) -> [&[T]; 2] {
        let [values, slopes] = if order <= 2 { &self.tables[order - 1] } else { &self.tables[2] };
        [values, slopes]
    }
}

impl<T: SumFactorization> Cells<T> {
    /// Returns the metric in the form of the kernels.
    pub fn mapped<'a>(&'a self, metric: MappedMetric<'a, T>, lanes: usize) -> Mapped<'a, T> {
        let [n_sigma, n_lambda] = self.n_coefficients().map(|n| n * lanes);
        let MappedMetric { order, entries } = metric;
        let (coefficients, terms) = entries.split_at(entries.len() - n_sigma - n_lambda);
        let (sigma, lambda) = terms.split_at(n_sigma);
        Mapped { coefficients, order, tables: self.maps.of(order), weights: &self.weights, sigma, lambda }
    }

    /// Returns the entries listed by [`Self::stored_entries`] at all points, computed by applying the metric to unit
    /// slopes and ones: `[m³][entries][lanes]`.
    pub fn entries(&self, cpu: &Cpu, metric: MappedMetric<'_, T>) -> Vec<T> {
        let n_lanes = lanes::<T>(cpu);
        let metric = self.mapped(metric, n_lanes);
        let len = self.n_points() * n_lanes;
        let mut workspace = vec![T::ZERO; metric.workspace_len(n_lanes)];
        let mut mass = Vec::new();
        // For a unit slope along each axis, the flux along each axis.
        let fluxes: [[Vec<T>; 3]; 3] = std::array::from_fn(|axis| {
            let value = |a: usize| if a == axis { T::ONE } else { T::ZERO };
            let len_of_slopes = if metric.sigma.is_empty() { 0 } else { len };
            let mut g: [Vec<T>; 3] = std::array::from_fn(|a| vec![value(a); len_of_slopes]);
            mass = vec![T::ONE; len];
            act_mapped(cpu, metric, g.each_mut().map(|g| &mut g[..]), &mut mass, &mut workspace);
            g
        });
        let of_entry = |entry: usize| match AXES.get(entry) {
            Some(&[a, b]) => &fluxes[b][a],
            None => &mass,
        };
        let of_point = |at: usize| {
            let entries = self.stored_entries().iter();
            entries.flat_map(move |&entry| of_entry(entry)[at * n_lanes..(at + 1) * n_lanes].iter().copied())
        };
        (0..self.n_points()).flat_map(of_point).collect()
    }
}

/// Axes of the first six entries of a metric.
pub(super) const AXES: [[usize; 2]; 6] = [[0, 0], [1, 1], [2, 2], [1, 2], [0, 2], [0, 1]];
