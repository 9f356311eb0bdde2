//! Tridiagonal systems along the first axis of an array, which ranks divide among themselves, in turn with one rank whose threads
//! share the work.
//!
//! Bytes: four values read and one written a row, as on one rank; ranks solve twice.

use femtile::comm::{Comm, threads};
use femtile::device::{Buffer, Cpu};
use femtile::tridiagonal::split::SplitTridiagonal;
use femtile::tridiagonal::{Bands, BatchLayout, Tridiagonal, TridiagonalConfig};

use super::{ROUNDS, VECTOR_BYTES};
use crate::Samples;
use crate::problems::tridiagonal::{BatchArray, entries};
use crate::{BenchError, Options, Record, Work};

/// Rows of a system, and systems.
const SHAPE: [usize; 2] = [512, 1 << 16];
const PARTS: [BatchArray; 4] = [BatchArray::Lower, BatchArray::Diagonal, BatchArray::Upper, BatchArray::Rhs];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let n_ranks = options.ranks.unwrap_or(2).max(1);
    let cpu = Cpu::new(n_ranks)?;
    let n = SHAPE[0] * SHAPE[1];
    let mut samples = [Samples::default(), Samples::default()];
    let mut triad = cpu.measure_streamed_triad(VECTOR_BYTES)?;
    for _ in 0..ROUNDS {
        let repeats = options.repeats(6).div_ceil(ROUNDS);
        on_one(&cpu, repeats, &mut samples[0])?;
        on_ranks(n_ranks, repeats, &mut samples[1])?;
        triad = triad.max(cpu.measure_streamed_triad(VECTOR_BYTES)?);
    }
    let work = Work { bytes: (5 * n * size_of::<f64>()) as f64, flops: 9.0 * n as f64 };
    let record = |(ranks, samples): (usize, &Samples)| {
        let problem = format!("tridiagonal along a split axis, {ranks} ranks");
        let mut record = Record::against_bandwidth(&problem, &cpu, samples, work, ("streamed triad", triad));
        record.set("length", SHAPE[0]);
        record.set("n_systems", SHAPE[1]);
        record.set("ranks", ranks);
        record.set("threads", n_ranks);
        record
    };
    Ok([1, n_ranks].into_iter().zip(&samples).map(record).collect())
}

/// Times solves of one rank with all threads.
fn on_one(cpu: &Cpu, repeats: usize, samples: &mut Samples) -> Result<(), BenchError> {
    let array = |part| Buffer::from_host(cpu, &entries::<f64>(part, SHAPE[0] * SHAPE[1]));
    let [lower, diagonal, upper, d] = PARTS.map(array);
    let (lower, diagonal, upper, mut u) = (lower?, diagonal?, upper?, d?);
    let layout = BatchLayout::contiguous(&SHAPE)?;
    let mut solver = Tridiagonal::new(cpu, &layout, 0, TridiagonalConfig::default())?;
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    (0..repeats).try_for_each(|_| {
        let outcome = samples.time(|| solver.solve_in_place(&mut u, bands))?;
        solved(outcome.is_solved())
    })
}

/// Times solves of ranks with a thread each.
fn on_ranks(n_ranks: usize, repeats: usize, samples: &mut Samples) -> Result<(), BenchError> {
    let work = |comm: Comm, samples: &mut Samples| -> Result<(), BenchError> {
        let cpu = Cpu::new(1)?;
        let cut = |rank: usize| SHAPE[0] * rank / n_ranks;
        let rows = cut(comm.rank())..cut(comm.rank() + 1);
        let array = |part| {
            let all = entries::<f64>(part, SHAPE[0] * SHAPE[1]);
            Buffer::from_host(&cpu, &all[rows.start * SHAPE[1]..rows.end * SHAPE[1]])
        };
        let [lower, diagonal, upper, d] = PARTS.map(array);
        let mut u = d?;
        let layout = BatchLayout::contiguous(&[rows.len(), SHAPE[1]])?;
        let bands = [lower?, diagonal?, upper?];
        let config = TridiagonalConfig::default();
        let mut solver = SplitTridiagonal::new((&cpu, comm.clone()), &layout, 0, config, bands)?;
        (0..repeats).try_for_each(|_| {
            // All ranks begin together.
            comm.sum_values(&mut [])?;
            let outcome = samples.time(|| solver.solve_in_place(&mut u))?;
            solved(outcome.failed.is_empty())
        })
    };
    threads::run(n_ranks, |comm| work(comm, samples), |comm| work(comm, &mut Samples::default()))
}

fn solved(is_solved: bool) -> Result<(), BenchError> {
    match is_solved {
        true => Ok(()),
        false => Err(BenchError::Setting { field: "length", message: "a system was not solved".into() }),
    }
}
