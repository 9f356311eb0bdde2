//! Metrics that are worked out at the points from the maps of the cells of a batch.

use femtile_device::Cpu;
use femtile_element::tensor::Table;
use femtile_sum_factorization::{Map, Mapped, SumFactorization, act_mapped, lanes};

use super::cells::Cells;
use crate::curvature;
use femtile_fem::dofs::TensorSpace;

/// What is kept of the cells of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct MappedMetric<'a, T> {
    /// Of the polynomials of the map; none where the inverse Jacobian is kept.
    pub order: Option<usize>,
    /// Coefficients of the polynomials or the inverse Jacobian at all points, then σ, then λ: `[…][lanes]`.
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

    /// Values of room that a metric takes.
    pub fn room_len(&self, lanes: usize) -> usize {
        Mapped::<T>::room_of_order(self.order.max(2), lanes)
    }

    fn of(&self, order: usize) -> [&[T]; 2] {
        let [values, slopes] = if order <= 2 { &self.tables[order - 1] } else { &self.tables[2] };
        [values, slopes]
    }
}

impl<T: SumFactorization> Cells<T> {
    /// The metric as kernels take it.
    pub fn mapped<'a>(&'a self, metric: MappedMetric<'a, T>, lanes: usize) -> Mapped<'a, T> {
        let [n_sigma, n_lambda] = self.n_coefficients().map(|n| n * lanes);
        let (of_map, coefficients) = metric.entries.split_at(metric.entries.len() - n_sigma - n_lambda);
        let (sigma, lambda) = coefficients.split_at(n_sigma);
        let map = match metric.order {
            Some(order) => Map::Polynomial { coefficients: of_map, order, tables: self.maps.of(order) },
            None => Map::Inverse(of_map),
        };
        Mapped { map, weights: &self.weights, sigma, lambda }
    }

    /// Its entries that [`Self::stored_entries`] lists at all points, from what it makes of unit slopes and ones:
    /// `[m³][entries][lanes]`.
    pub fn made_known(&self, cpu: &Cpu, metric: MappedMetric<'_, T>) -> Vec<T> {
        let n_lanes = lanes::<T>(cpu);
        let metric = self.mapped(metric, n_lanes);
        let len = self.n_points() * n_lanes;
        let mut workspace = vec![T::ZERO; metric.room_len(n_lanes)];
        let mut mass = Vec::new();
        // By the axis of the slope: what becomes of it along each axis.
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
