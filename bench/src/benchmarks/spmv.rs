//! $y = A x$ in every format: 12 bytes a non-zero and 20 a row in f64, whatever a format stores.

use femtile::device::cuda::measure;
use femtile::device::{Buffer, Cpu, Cuda, Reference};
use femtile::linalg::LinearOperator;
use femtile::linalg::sparse::Csr;
use femtile::linalg::sparse::ell_warp::{EllWarp, EllWarpConfig, IndexKind, Numbering};

use crate::problems::{irregular_box, kuhn_box};
use crate::timing::Samples;
use crate::{BenchError, Options, Record, Work};

/// Products that are timed as one.
const IN_A_ROW: usize = 20;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let cuda = Cuda::new(0)?;
    let copy = 1e-9 * measure(&cuda)?.copy_bytes_per_second;
    let mut records = Vec::new();
    for (name, a) in problems(options)? {
        let on_gpu = a.copy_to(&cuda)?;
        let mut record = |format: String, operator: &dyn LinearOperator<f64, Cuda>, stored: usize| {
            let samples = time(&cuda, operator, options)?;
            let work = Work { bytes: a.product_bytes() as f64, flops: 2.0 * a.n_nonzeros() as f64 };
            let bound = ("copy bandwidth", copy);
            let mut record =
                Record::against_bandwidth(&format!("{name}: {format}"), &cuda, &samples, work, bound);
            record.set("n_rows", a.n_rows());
            record.set("n_nonzeros", a.n_nonzeros());
            record.set("padding", stored as f64 / a.n_nonzeros() as f64);
            eprintln!(
                "{name}: {format}: {:.1} us, padding {:.3}, {:.0} GB/s",
                1e6 * samples.min(),
                stored as f64 / a.n_nonzeros() as f64,
                work.bytes / samples.min() * 1e-9
            );
            records.push(record);
            Ok::<(), BenchError>(())
        };
        record("CSR".into(), &on_gpu, a.n_nonzeros())?;
        drop(on_gpu);
        for config in configs() {
            let sliced = EllWarp::<f64, Cuda>::from_csr(&cuda, &a, &config)?;
            record(config.name(), &sliced, sliced.n_stored())?;
        }
        let config = EllWarpConfig { window: 1024, ..EllWarpConfig::new(32) };
        let sliced = EllWarp::<f64, Cuda, f32>::from_csr(&cuda, &a, &config)?;
        record(format!("f32 values, {}", config.name()), &sliced, sliced.n_stored())?;
        let config = EllWarpConfig { indices: IndexKind::Delta, ..config };
        let sliced = EllWarp::<f64, Cuda, f32>::from_csr(&cuda, &a, &config)?;
        record(format!("f32 values, {}", config.name()), &sliced, sliced.n_stored())?;
    }
    Ok(records)
}

fn problems(options: &Options) -> Result<Vec<(String, Csr<f64, Reference>)>, BenchError> {
    let cpu = Cpu::new(0)?;
    let mut problems = Vec::new();
    let sizes = match options.nodes {
        Some(n) => vec![n],
        None => vec![65, 129, 201],
    };
    for nodes in sizes {
        problems
            .push((format!("box {nodes}"), kuhn_box::matrix::<f64, _>(&cpu, nodes)?.copy_to(&Reference)?));
    }
    problems
        .push(("irregular 129".into(), irregular_box::matrix::<f64, _>(&cpu, 17, 3)?.copy_to(&Reference)?));
    Ok(problems)
}

fn configs() -> Vec<EllWarpConfig> {
    let mut configs = Vec::new();
    for lanes in [32, 64] {
        for window in [1, 256, 1024, 4096, EllWarpConfig::ALL_ROWS] {
            for (numbering, indices) in [
                (Numbering::Kept, IndexKind::Full),
                (Numbering::Kept, IndexKind::Delta),
                (Numbering::SortedColumns, IndexKind::Full),
                (Numbering::SortedColumns, IndexKind::Delta),
            ] {
                for block_threads in [64, 128, 256] {
                    if block_threads != 128 && (window != 1024 || numbering != Numbering::Kept) {
                        continue;
                    }
                    configs.push(EllWarpConfig {
                        window,
                        numbering,
                        indices,
                        block_threads,
                        ..EllWarpConfig::new(lanes)
                    });
                }
            }
        }
    }
    for threshold in [4, 8] {
        configs.push(EllWarpConfig { window: 1024, threshold: Some(threshold), ..EllWarpConfig::new(32) });
    }
    configs
}

fn time(device: &Cuda, a: &dyn LinearOperator<f64, Cuda>, options: &Options) -> Result<Samples, BenchError> {
    let x = Buffer::from_vec(device, (0..a.n_cols()).map(|i| 1.0 + (i % 17) as f64).collect())?;
    let mut y = Buffer::zeros(device, a.n_rows())?;
    a.apply(&mut y, &x)?;
    let mut samples = Samples::default();
    for _ in 0..options.repeats(10) {
        let seconds = device.time(|| (0..IN_A_ROW).try_for_each(|_| a.apply(&mut y, &x)))?;
        samples.push(seconds / IN_A_ROW as f64);
    }
    Ok(samples)
}
