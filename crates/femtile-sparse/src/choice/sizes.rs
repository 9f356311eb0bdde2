use super::Machine;
use super::model::{Gpu, Work, cpu_seconds};
use super::shape::Shape;
use super::statistics::Statistics;
use crate::ell_warp::cuda::batch;
use crate::ell_warp::{EllWarpConfig, IndexKind};

/// Sectors of x for each entry of a row, as meshes have them, where a sector holds four values.
const SECTORS: f64 = 0.15;
/// Seconds of a conversion on a GPU whatever the matrix, most of them to load its programs and those of the products, and
/// the rest in products by compressed rows; measured on an H200.
const PROGRAMS: f64 = 1.2e-3;
const ON_GPU: f64 = 4.0;
/// A conversion on a CPU, in products by compressed rows.
const ON_CPU: f64 = 45.0;

/// Sizes of a matrix, from which times of its products are estimated without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub n_rows: usize,
    pub n_cols: usize,
    pub n_nonzeros: usize,
    /// Bytes of a value of the matrix and of the vectors.
    pub value_bytes: usize,
}

impl Sizes {
    /// Expected seconds of a product by compressed rows.
    pub fn of_rows(&self, machine: &Machine) -> f64 {
        let lengths = self.statistics();
        self.seconds(machine, &lengths, &Work::of_csr(&lengths))
    }

    /// Expected seconds of a product by slices in which each lane has a row, with `n_stored` entries in all of them.
    pub fn of_slices(&self, machine: &Machine, config: &EllWarpConfig, n_stored: usize) -> f64 {
        let (n_slices, lanes) = (self.n_rows.div_ceil(config.lanes), config.lanes);
        let width = n_stored.div_ceil(lanes * n_slices.max(1));
        let batch = batch(lanes, config.indices == IndexKind::Delta);
        let shape = Shape {
            n_slices: n_slices as f64,
            n_columns: (n_stored / lanes) as f64,
            n_rounds: (n_slices * width.div_ceil(batch)) as f64,
            widest: width as f64,
            ..Shape::default()
        };
        self.seconds(machine, &self.statistics(), &Work::of_shape(self.n_rows, &shape, config))
    }

    /// Returns whether `n_products` products by slices save more time than the conversion takes.
    pub fn pays(&self, machine: &Machine, [of_rows, of_slices]: [f64; 2], n_products: usize) -> bool {
        let conversion = match machine {
            Machine::Gpu { .. } => PROGRAMS + ON_GPU * of_rows,
            Machine::Cpu { .. } => ON_CPU * of_rows,
        };
        n_products as f64 * (of_rows - of_slices) > conversion
    }

    fn seconds(&self, machine: &Machine, statistics: &Statistics, work: &Work) -> f64 {
        let saved = (8 - self.value_bytes.min(8)) as f64 * (work.n_stored + 2.0 * self.n_rows as f64);
        let mut work = *work;
        work.stream_bytes -= saved;
        match *machine {
            Machine::Gpu { n_multiprocessors, cache_bytes } => {
                Gpu { n_multiprocessors, cache_bytes }.seconds(statistics, &work)
            }
            Machine::Cpu { .. } => cpu_seconds(statistics, &work),
        }
    }

    /// Rows of equal length.
    fn statistics(&self) -> Statistics {
        let Self { n_rows, n_cols, n_nonzeros, value_bytes } = *self;
        Statistics {
            n_rows,
            n_cols,
            n_nonzeros,
            lengths: vec![(n_nonzeros.div_ceil(n_rows.max(1)) as u32, n_rows)],
            stretches: Vec::new(),
            sectors: SECTORS * value_bytes as f64 / 8.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Machine = Machine::Gpu { n_multiprocessors: 132, cache_bytes: 60 << 20 };
    const CPU: Machine = Machine::Cpu { lanes: 8 };

    /// Returns whether slices with 3 % of padding pay for a box with `side` nodes per axis.
    fn pays(machine: &Machine, side: usize, value_bytes: usize, n_products: usize) -> bool {
        let n = side.pow(3);
        let sizes = Sizes { n_rows: n, n_cols: n, n_nonzeros: 15 * n, value_bytes };
        let lanes = if *machine == GPU { 64 } else { 8 };
        let config = EllWarpConfig { indices: IndexKind::Delta, ..EllWarpConfig::new(lanes) };
        let of_slices = sizes.of_slices(machine, &config, 15 * n * 103 / 100);
        sizes.pays(machine, [sizes.of_rows(machine), of_slices], n_products)
    }

    #[test]
    fn slices_pay_where_a_large_matrix_is_multiplied_often() {
        for value_bytes in [4, 8] {
            assert!(pays(&GPU, 201, value_bytes, 40) && pays(&CPU, 129, value_bytes, 400));
            assert!(!pays(&GPU, 129, value_bytes, 10) && !pays(&CPU, 129, value_bytes, 40));
            assert!(!pays(&GPU, 28, value_bytes, 400));
        }
    }

    #[test]
    fn values_of_half_the_size_take_less_time() {
        for machine in [GPU, CPU] {
            let of = |value_bytes| Sizes {
                n_rows: 1_000_000,
                n_cols: 1_000_000,
                n_nonzeros: 15_000_000,
                value_bytes,
            };
            assert!(of(4).of_rows(&machine) < of(8).of_rows(&machine));
        }
    }
}
