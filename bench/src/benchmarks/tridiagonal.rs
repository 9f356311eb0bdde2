//! Batches of tridiagonal systems on a CPU, in place along each axis, against a triad that writes past the cache.
//!
//! Bytes: four values read and one written a row. Beside MKL's `?dtsvb` on the contiguous axis, where Python has it.

use femtile::device::{Buffer, Cpu, Scalar};
use femtile::tridiagonal::{Bands, BatchLayout, Tridiagonal, TridiagonalConfig};
use serde::Deserialize;

use super::{ROUNDS, VECTOR_BYTES};
use crate::Samples;
use crate::problems::tridiagonal::{BatchArray, entries};
use crate::python::ask;
use crate::{BenchError, Options, Record, Work};

/// Lengths of systems, awkward ones among them.
const LENGTHS: [usize; 7] = [64, 100, 128, 252, 256, 512, 1024];
/// Lines along each of the two other axes, at least.
const ACROSS: usize = 256;
/// Bytes of all arrays, at least: smaller batches would stay in a cache.
const BATCH_BYTES: usize = 420 << 20;
const SCRIPT: &str = include_str!("../../peers/mkl_dtsvb.py");

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        for length in LENGTHS {
            records.extend(batches::<f64>(&cpu, options, length)?);
            records.extend(batches::<f32>(&cpu, options, length)?);
        }
    }
    Ok(records)
}

/// One length along all axes.
fn batches<T: Scalar>(cpu: &Cpu, options: &Options, length: usize) -> Result<Vec<Record>, BenchError> {
    let plane = 4 * ACROSS * length * size_of::<T>();
    let outer = BATCH_BYTES.div_ceil(plane).max(ACROSS);
    let n = outer * ACROSS * length;
    let array = |part| Buffer::from_host(cpu, &entries::<T>(part, n));
    let (lower, diagonal, upper) =
        (array(BatchArray::Lower)?, array(BatchArray::Diagonal)?, array(BatchArray::Upper)?);
    let mut u = array(BatchArray::Rhs)?;
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    let shapes = [[length, outer, ACROSS], [outer, length, ACROSS], [outer, ACROSS, length]];
    let mut samples = [Samples::default(), Samples::default(), Samples::default()];
    let mut triad = cpu.measure_streamed_triad(VECTOR_BYTES)?;
    for _ in 0..ROUNDS {
        for (axis, shape) in shapes.iter().enumerate() {
            let layout = BatchLayout::contiguous(shape)?;
            let mut solver = Tridiagonal::new(cpu, &layout, axis, TridiagonalConfig::default())?;
            for _ in 0..options.repeats(6).div_ceil(ROUNDS) {
                let outcome = samples[axis].time(|| solver.solve_in_place(&mut u, bands))?;
                if !outcome.is_solved() {
                    return Err(BenchError::Setting { field: "length", message: outcome.to_string() });
                }
            }
        }
        triad = triad.max(cpu.measure_streamed_triad(VECTOR_BYTES)?);
    }
    let work = Work { bytes: (5 * n * size_of::<T>()) as f64, flops: 9.0 * n as f64 };
    let mkl = ask_mkl::<T>(cpu, length, outer * ACROSS);
    let record = |(axis, samples): (usize, &Samples)| {
        let bound = ("streamed triad", triad);
        let mut record = Record::against_bandwidth("tridiagonal, in place", cpu, samples, work, bound);
        record.precision = T::NAME.into();
        record.set("length", length);
        record.set("axis", axis);
        record.set("n_systems", outer * ACROSS);
        record.set("threads", cpu.threads());
        if axis == 2 {
            match &mkl {
                Ok(peer) => {
                    record.set("mkl_library", peer.library.clone());
                    let theirs = peer.ns.first().map(|ns| 1e-9 * ns * n as f64);
                    record.set("mkl_seconds_over_ours_min", theirs.map(|theirs| theirs / samples.min()));
                }
                Err(reason) => record.set("mkl_absent", reason.clone()),
            }
        }
        record
    };
    Ok(samples.iter().enumerate().map(record).collect())
}

/// Output of the script.
#[derive(Deserialize)]
struct Peer {
    library: String,
    ns: Vec<f64>,
}

fn ask_mkl<T: Scalar>(cpu: &Cpu, length: usize, n_systems: usize) -> Result<Peer, String> {
    let [threads, length, n_systems] = [cpu.threads(), length, n_systems].map(|n| n.to_string());
    let arguments = [T::NAME.to_string(), "x".into(), threads, ROUNDS.to_string(), length, n_systems];
    ask(SCRIPT, &arguments, &[("MKL_NUM_THREADS", "1".to_string())])
}
