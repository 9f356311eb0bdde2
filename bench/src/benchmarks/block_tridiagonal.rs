//! Block tridiagonal systems of the sizes of `[laszlo2016]`, Tables III and IV, beside MKL's banded solver.
//!
//! A CPU, which keeps intermediate blocks in its caches, reads 3M² + M and writes M values a block row; a GPU writes
//! and reads 2 (M² + M) more.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda, DeviceError, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::Algorithm;
use femtile::tridiagonal::block::{
    BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig, BlockTridiagonalKernels,
};
use serde::Deserialize;

use super::between_bandwidths;
use crate::Samples;
use crate::problems::tridiagonal::{BatchArray, block_entries};
use crate::python::ask;
use crate::{BenchError, Options, Record, Work};

const SCRIPT: &str = include_str!("../../peers/mkl_gbsv.py");
/// Bytes of the bands on a CPU: large enough to exceed the caches, beyond which size has no effect.
const CPU_BYTES: usize = 256 << 20;
/// Batches that the paper solves by cyclic reduction as well, of 128 rows of 4 × 4 blocks.
const REDUCED: [usize; 3] = [512, 4096, 32_768];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    for cpu in options.cpus()? {
        records.extend(on_cpu::<f64>(&cpu, options)?);
        records.extend(on_cpu::<f32>(&cpu, options)?);
    }
    match Cuda::new(0) {
        Ok(device) => {
            records.extend(on_gpu::<f64>(&device, options)?);
            records.extend(on_gpu::<f32>(&device, options)?);
        }
        Err(error @ DeviceError::Absent { .. }) => {
            crate::skipped(format_args!("block systems on a GPU: {error}"))
        }
        Err(error) => return Err(error.into()),
    }
    Ok(records)
}

/// Block rows and systems of the tables.
fn table(block: usize) -> (usize, usize) {
    if block <= 6 { (128, 65_536) } else { (96, 32_768) }
}

/// Returns the batch of one size: all systems of the table, the requested number, or as many as fit `bytes`.
fn shape<T: Scalar>(block: usize, order: BlockOrder, systems: Option<usize>, bytes: usize) -> BlockShape {
    let (n_rows, of_table) = table(block);
    let held = bytes / (3 * block * block * n_rows * size_of::<T>());
    let n_systems = systems.unwrap_or(of_table.min(held)).max(1);
    BlockShape { block, n_rows, n_systems, order }
}

fn work<T: Scalar>(shape: BlockShape, passes_over_star: usize) -> Work {
    let (m, n_blocks) = (shape.block, (shape.n_rows * shape.n_systems) as f64);
    let values = 3 * m * m + 2 * m + passes_over_star * (m * m + m);
    let flops = 14.0 / 3.0 * (m * m * m) as f64 + (6 * m * m) as f64;
    Work { bytes: (size_of::<T>() * values) as f64 * n_blocks, flops: flops * n_blocks }
}

/// The arrays of a batch on a device; their entries serve any order of blocks.
struct Arrays<T: Scalar, D: BlockTridiagonalKernels<T>> {
    bands: [Buffer<T, D>; 3],
    d: Buffer<T, D>,
    u: Buffer<T, D>,
}

impl<T: Scalar, D: BlockTridiagonalKernels<T>> Arrays<T, D> {
    fn new(device: &D, shape: BlockShape) -> Result<Self, BenchError> {
        let array = |part| {
            Buffer::from_host(device, &block_entries(part, shape.block, shape.n_rows * shape.n_systems))
        };
        let bands = [array(BatchArray::Lower)?, array(BatchArray::Diagonal)?, array(BatchArray::Upper)?];
        Ok(Self { bands, d: array(BatchArray::Rhs)?, u: array(BatchArray::Rhs)? })
    }

    /// A solver for these arrays that has solved once.
    fn solver(
        &mut self,
        shape: BlockShape,
        algorithm: Algorithm,
    ) -> Result<BlockTridiagonal<T, D>, BenchError> {
        let config = BlockTridiagonalConfig { algorithm, ..Default::default() };
        let mut solver = BlockTridiagonal::new(self.d.device(), shape, config)?;
        self.queue(&mut solver)?;
        let outcome = solver.outcome()?;
        if outcome.is_solved() {
            return Ok(solver);
        }
        Err(BenchError::Setting { field: "systems", message: outcome.to_string() })
    }

    fn queue(&mut self, solver: &mut BlockTridiagonal<T, D>) -> Result<(), LinalgError> {
        let [lower, diagonal, upper] = &self.bands;
        solver.queue(&mut self.u, BlockBands { lower, diagonal, upper }, &self.d)
    }
}

fn describe<T: Scalar>(record: &mut Record, shape: BlockShape, algorithm: &str) {
    record.precision = T::NAME.into();
    record.set("block", shape.block);
    record.set("n_rows", shape.n_rows);
    record.set("n_systems", shape.n_systems);
    record.set("order", shape.order.name());
    record.set("algorithm", algorithm);
    record.set("ns_per_block_row", 1e9 * record.seconds_min / (shape.n_rows * shape.n_systems) as f64);
}

/// Output of the script.
#[derive(Deserialize)]
struct Peer {
    library: String,
    solver: String,
    /// Nanoseconds of a block row, fastest run.
    ns: Vec<f64>,
}

fn ask_mkl<T: Scalar>(shape: BlockShape, threads: usize, repeats: usize) -> Result<Peer, String> {
    let sizes = [threads, repeats, shape.block, shape.n_rows, shape.n_systems].map(|n| n.to_string());
    ask(SCRIPT, &[vec![T::NAME.to_string()], sizes.to_vec()].concat(), &[])
}

/// Times each size in both orders, in turn with MKL on as many threads, if it is installed.
fn on_cpu<T: Scalar>(cpu: &Cpu, options: &Options) -> Result<Vec<Record>, BenchError>
where
    Cpu: BlockTridiagonalKernels<T>,
{
    let repeats = options.repeats(9).div_ceil(super::ROUNDS);
    let mut records = Vec::new();
    for block in 2..=8 {
        let shapes = BlockOrder::ALL.map(|order| shape::<T>(block, order, options.systems, CPU_BYTES));
        let mut arrays = Arrays::<T, Cpu>::new(cpu, shapes[0])?;
        let mut ours = [Samples::default(), Samples::default()];
        let (mut theirs, mut answer) = (Samples::default(), Err(String::new()));
        let bandwidth = between_bandwidths(cpu, || {
            for (shape, samples) in shapes.iter().zip(&mut ours) {
                let mut solver = arrays.solver(*shape, Algorithm::Thomas)?;
                for _ in 0..repeats {
                    samples.time(|| cpu.install(|| arrays.queue(&mut solver)))?;
                }
            }
            answer = ask_mkl::<T>(shapes[0], cpu.threads(), repeats);
            if let Ok(peer) = &answer {
                let n_blocks = (shapes[0].n_rows * shapes[0].n_systems) as f64;
                peer.ns.iter().for_each(|ns| theirs.push(1e-9 * ns * n_blocks));
            }
            Ok(())
        })?;
        let bound = ("read bandwidth", bandwidth.read_gb_per_s);
        let record = |shape: BlockShape, samples: &Samples, algorithm: &str| {
            let problem = format!("block tridiagonal, M = {block}, {}", shape.order);
            let mut record = Record::against_bandwidth(&problem, cpu, samples, work::<T>(shape, 0), bound);
            describe::<T>(&mut record, shape, algorithm);
            record.set("threads", cpu.threads());
            record
        };
        for (shape, samples) in shapes.into_iter().zip(&ours) {
            let mut mine = record(shape, samples, "thomas");
            if answer.is_ok() {
                mine.set("mkl_seconds_over_ours_min", theirs.min() / samples.min());
            }
            records.push(mine);
        }
        match &answer {
            Ok(peer) => {
                let mut mkl = record(shapes[1], &theirs, &peer.solver);
                mkl.problem = format!("banded, M = {block}, MKL");
                mkl.device = format!("cpu ({} threads, {})", cpu.threads(), peer.library);
                mkl.set("version", peer.library.as_str());
                records.push(mkl);
            }
            Err(reason) => crate::skipped(format_args!("MKL's gbsv: {reason}")),
        }
    }
    Ok(records)
}

/// Each size by both variants of the Thomas algorithm, then those that the paper solves by cyclic reduction.
fn on_gpu<T: Scalar>(device: &Cuda, options: &Options) -> Result<Vec<Record>, BenchError> {
    let costs = measure(device)?;
    let bound = ("copy bandwidth", 1e-9 * costs.copy_bytes_per_second);
    let variants = [Algorithm::ThomasShuffle, Algorithm::ThomasShared];
    let mut batches: Vec<(Vec<BlockShape>, Vec<Algorithm>)> = Vec::new();
    for block in 2..=8 {
        let bytes = device.properties().memory_bytes / 4;
        let shapes = BlockOrder::ALL.map(|order| shape::<T>(block, order, options.systems, bytes));
        batches.push((shapes.to_vec(), variants.to_vec()));
    }
    for n_systems in REDUCED {
        let shape = BlockShape { block: 4, n_rows: 128, n_systems, order: BlockOrder::Interleaved };
        batches.push((vec![shape], [&variants[..], &[Algorithm::Pcr]].concat()));
    }
    let mut records = Vec::new();
    for (shapes, algorithms) in batches {
        let mut arrays = Arrays::<T, Cuda>::new(device, shapes[0])?;
        let cases = shapes.iter().flat_map(|shape| algorithms.iter().map(move |a| (*shape, *a)));
        for (shape, algorithm) in cases {
            let mut solver = arrays.solver(shape, algorithm)?;
            let mut samples = Samples::default();
            for _ in 0..options.repeats(9) {
                samples.push(device.time(|| arrays.queue(&mut solver))?);
            }
            let problem = format!("block tridiagonal, M = {}, {algorithm}, {}", shape.block, shape.order);
            let work = work::<T>(shape, 2);
            let mut record = Record::against_bandwidth(&problem, device, &samples, work, bound);
            describe::<T>(&mut record, shape, algorithm.name());
            records.push(record);
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_tables_unless_memory_or_the_user_says_less() {
        let of = |block, systems, bytes| shape::<f64>(block, BlockOrder::Interleaved, systems, bytes);
        assert_eq!((of(4, None, usize::MAX).n_rows, of(4, None, usize::MAX).n_systems), (128, 65_536));
        assert_eq!((of(8, None, usize::MAX).n_rows, of(8, None, usize::MAX).n_systems), (96, 32_768));
        assert_eq!(of(8, Some(64), usize::MAX).n_systems, 64);
        assert_eq!(of(2, None, 3 * 4 * 128 * 8 * 10).n_systems, 10);
    }
}
