//! Batches of tridiagonal systems on a GPU, in place, along a contiguous and a strided axis.

use femtile::device::cuda::{CudaCosts, measure};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::vector::VectorKernels;
use femtile::tridiagonal::{Bands, BatchLayout, Tridiagonal, TridiagonalConfig};

use crate::Samples;
use crate::problems::tridiagonal::{BatchArray, entries};
use crate::{BenchError, Options, Record, Work};

/// Entries of each array: far more than any cache holds.
const ENTRIES: usize = 1 << 26;
/// Neighbouring lines along the strided axis.
const ACROSS: usize = 256;
/// Lengths with records of their own, awkward ones among them.
const LENGTHS: [usize; 16] =
    [64, 100, 127, 128, 192, 256, 320, 384, 500, 509, 512, 640, 768, 896, 1021, 1024];
/// Values that a row moves: four read, one written.
const VALUES: f64 = 5.0;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let costs = measure(&device)?;
    let mut records = batches::<f64>(&device, options, costs)?;
    records.extend(batches::<f32>(&device, options, costs)?);
    Ok(records)
}

/// The bands and right sides of all batches.
struct Arrays<T: Scalar> {
    u: Buffer<T, Cuda>,
    lower: Buffer<T, Cuda>,
    diagonal: Buffer<T, Cuda>,
    upper: Buffer<T, Cuda>,
}

impl<T: Scalar> Arrays<T> {
    fn new(device: &Cuda) -> Result<Self, BenchError> {
        let array = |part| Buffer::from_host(device, &entries::<T>(part, ENTRIES));
        Ok(Self {
            u: Buffer::zeros(device, ENTRIES)?,
            lower: array(BatchArray::Lower)?,
            diagonal: array(BatchArray::Diagonal)?,
            upper: array(BatchArray::Upper)?,
        })
    }

    /// Times solves of as many systems of `length` rows as there is room for.
    fn solve(
        &mut self,
        length: usize,
        contiguous: bool,
        repeats: usize,
    ) -> Result<(Samples, usize), BenchError> {
        let device = self.u.device().clone();
        let n_lines = ENTRIES / length / ACROSS * ACROSS;
        let (shape, axis) =
            if contiguous { (vec![n_lines, length], 1) } else { (vec![n_lines / ACROSS, length, ACROSS], 1) };
        let layout = BatchLayout::contiguous(&shape)?;
        device.fill(&mut self.u, T::ONE)?;
        let mut solver = Tridiagonal::new(&device, &layout, axis, TridiagonalConfig::default())?;
        let bands = Bands::Arrays { lower: &self.lower, diagonal: &self.diagonal, upper: &self.upper };
        solver.queue_in_place(&mut self.u, bands)?;
        let mut samples = Samples::default();
        for _ in 0..repeats {
            samples.push(device.time(|| solver.queue_in_place(&mut self.u, bands))?);
        }
        let outcome = solver.outcome()?;
        if !outcome.is_solved() {
            return Err(BenchError::Setting { field: "length", message: outcome.to_string() });
        }
        Ok((samples, n_lines))
    }
}

fn batches<T: Scalar>(device: &Cuda, options: &Options, costs: CudaCosts) -> Result<Vec<Record>, BenchError> {
    let mut arrays = Arrays::<T>::new(device)?;
    let mut records = Vec::new();
    for contiguous in [true, false] {
        let mut sweep = Vec::new();
        for length in
            (64..=1024).filter(|length: &usize| length.is_multiple_of(4) || LENGTHS.contains(length))
        {
            let is_shown = LENGTHS.contains(&length);
            let (samples, n_lines) =
                arrays.solve(length, contiguous, options.repeats(if is_shown { 9 } else { 3 }))?;
            let rows = (length * n_lines) as f64;
            let work = Work { bytes: VALUES * size_of::<T>() as f64 * rows, flops: 9.0 * rows };
            let bound = ("copy bandwidth", 1e-9 * costs.copy_bytes_per_second);
            let mut record =
                Record::against_bandwidth("tridiagonal, in place", device, &samples, work, bound);
            record.precision = T::NAME.into();
            record.set("axis", if contiguous { "contiguous" } else { "strided" });
            record.set("length", length);
            record.set("n_lines", n_lines);
            sweep.push((length, 1e-9 * work.bytes / samples.median()));
            if is_shown {
                records.push(record);
            }
        }
        summarise(&mut records, &sweep);
    }
    Ok(records)
}

/// Notes in the last record how even the rates of the whole sweep are, by medians.
fn summarise(records: &mut [Record], sweep: &[(usize, f64)]) {
    let by_rate = |x: &&(usize, f64), y: &&(usize, f64)| x.1.total_cmp(&y.1);
    let short = || sweep.iter().filter(|(length, _)| *length <= 512);
    let Some(record) = records.last_mut() else { return };
    for (name, found) in [
        ("sweep_fastest", sweep.iter().max_by(by_rate)),
        ("sweep_slowest", sweep.iter().min_by(by_rate)),
        ("sweep_slowest_to_512", short().min_by(by_rate)),
    ] {
        let Some((length, rate)) = found else { continue };
        record.set(name, format!("{rate:.0} GB/s at {length}"));
    }
}
