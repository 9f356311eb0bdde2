//! The diagonal of the operator on the cells of a batch.

use femtile_device::Cpu;
use femtile_element::tensor::Table;
use femtile_sum_factorization::{Factor, Parity, SumFactorization, contract, lanes};

use super::cells::{BatchMetric, Cells, KnownMetric};
use super::maps::AXES;

/// Products of entries of two tables, transposed: values with values, slopes with values, slopes with slopes.
#[derive(Debug)]
pub(super) struct DiagonalTables<T>([Factor<T>; 3]);

impl<T: SumFactorization> DiagonalTables<T> {
    pub fn new(cells: &Cells<T>) -> Self {
        let [values, slopes] = &cells.tables;
        let product = |a: &Table, b: &Table| {
            let entries = a.entries.iter().zip(&b.entries).map(|(a, b)| a * b).collect();
            Factor::with_parity(&Table { entries, ..a.clone() }.transpose(), Parity::None)
        };
        Self([product(values, values), product(slopes, values), product(slopes, slopes)])
    }
}

impl<T: SumFactorization> Cells<T> {
    /// $\sum_q \sum_{ab} G_{ab}\, \partial_a\varphi_i\, \partial_b\varphi_i + \mu \varphi_i^2$ for every node, written to `sum`.
    pub fn diagonal(&self, tables: &DiagonalTables<T>, cpu: &Cpu, metric: BatchMetric<'_, T>, sum: &mut [T]) {
        let n_lanes = lanes::<T>(cpu);
        let entries;
        let metric = match metric {
            BatchMetric::Known(known) => known,
            BatchMetric::Mapped(mapped) => {
                entries = self.made_known(cpu, mapped);
                KnownMetric::Stored(&entries)
            }
        };
        sum.fill(T::ZERO);
        let mut at_points = vec![T::ZERO; self.n_points() * n_lanes];
        for &entry in self.stored_entries() {
            for (at, values) in at_points.chunks_exact_mut(n_lanes).enumerate() {
                let entry = self.entries_at(metric, entry, at, n_lanes);
                values.iter_mut().enumerate().for_each(|(lane, value)| *value = entry.of(lane, T::ONE));
            }
            // Entries beside the diagonal count twice.
            let times = if matches!(entry, 3..=5) { T::ONE + T::ONE } else { T::ONE };
            let slopes =
                |axis: usize| AXES.get(entry).map_or(0, |axes| axes.iter().filter(|&&a| a == axis).count());
            let mut values = at_points.clone();
            for axis in 0..self.d {
                let table = &tables.0[slopes(axis)];
                let mut next = vec![T::ZERO; values.len() / table.n_cols() * table.n_rows()];
                contract(cpu, table, self.n.pow(axis as u32), &values, &mut next);
                values = next;
            }
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += times * value);
        }
    }
}
