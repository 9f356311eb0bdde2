//! Products of 1-D tables with tensors, along the three axes in turn: cubes of $n^3$ values, one a vector lane. A tensor
//! with its result takes 28 KB for six values a side and eight lanes, 65 KB for eight, which exceeds L1 caches.
//! One thread, f64.
//!
//! The bound is the rate at which a core issues fused multiply-adds; an addition counts as one.

use femtile::device::Cpu;
use femtile::element::quadrature::gauss_legendre;
use femtile::element::tensor::{Lagrange, Table};
use femtile::sum_factorization::{Factor, Parity, contract, lanes};

use crate::Samples;
use crate::{BenchError, Options, Record, Work};

/// Bytes that all tensors of a run take, one of them at least.
const BYTES: usize = 12 << 10;
/// Products along three axes in a sample.
const REPEATS: usize = 20_000;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let cpu = Cpu::new(1)?;
    let mut records = Vec::new();
    for n in 3..=9 {
        let shapes = Lagrange::gauss_lobatto(n - 1);
        let (points, _) = gauss_legendre(n);
        let table = shapes.values(&points);
        records.push(record(&cpu, &format!("interpolation, {n} even-odd"), &Factor::new(&table), options));
        let slopes = Factor::new(&shapes.slopes(&points));
        records.push(record(&cpu, &format!("differentiation, {n} even-odd"), &slopes, options));
        records.push(record(&cpu, &format!("interpolation, {n} plain"), &plain(&table), options));
    }
    Ok(records)
}

fn plain(table: &Table) -> Factor<f64> {
    Factor::with_parity(table, Parity::None)
}

fn record(cpu: &Cpu, problem: &str, factor: &Factor<f64>, options: &Options) -> Record {
    let (n, n_lanes) = (factor.n_cols(), lanes::<f64>(cpu));
    let cube = n.pow(3) * n_lanes;
    let n_cubes = (BYTES / (8 * cube)).max(1);
    let x: Vec<f64> = (0..n_cubes * cube).map(|i| (i % 13) as f64 - 6.0).collect();
    let mut y = vec![0.0; x.len()];
    let (mut samples, mut rate) = (Samples::default(), 0.0_f64);
    for _ in 0..options.repeats(9) {
        rate = rate.max(cpu.measure_arithmetic().0);
        samples.time(|| {
            for _ in 0..REPEATS / n_cubes {
                // Always from the same values: of results of results nothing would be left but denormal numbers.
                for inner in [1, n, n * n] {
                    contract(cpu, factor, inner, &x, &mut y);
                }
            }
        });
    }
    let n_lines = (REPEATS / n_cubes * n_cubes * 3 * n * n) as f64;
    let [additions, products] = factor.operations().map(|n| n as f64 * n_lines);
    let per_lane = n_lanes as f64;
    let work = Work { bytes: 0.0, flops: per_lane * (additions + 2.0 * products) };
    let mut record = Record::of_seconds(problem, cpu, (samples.median(), samples.min()), work, ("none", 0.0));
    record.bound = format!("vector arithmetic, {:.2} G/s", 1e-9 * rate);
    record.fraction_of_bound = (additions + products) / record.seconds_min / rate;
    record.set("lanes", n_lanes);
    record
}
