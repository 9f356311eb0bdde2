//! $y = A x$ in every format: boxes of linear tetrahedra, a mesh out of order, profiles of known matrices.
//!
//! Rates count 12 bytes a non-zero and 20 a row, whatever a format stores, so that they compare formats by time.

use femtile::device::cuda::{gpus, measure};
use femtile::device::{Cpu, Cuda, Reference};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::choice::{Described, candidates};
use femtile::linalg::sparse::ell_warp::{EllWarp, EllWarpConfig, IndexKind};
use femtile::linalg::sparse::{Csr, SparseKernels};

use crate::problems::{irregular_box, kuhn_box};
use crate::sparse::{Peer, Timed, ask_peers, nominal_bytes, profiles, time_format, time_operator};
use crate::{BenchError, Options, Record, Stopwatch, Work};

type Named = (String, Csr<f64, Reference>);

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let mut records = Vec::new();
    if options.threads.is_none() && gpus().is_ok_and(|gpus| !gpus.is_empty()) {
        let cuda = Cuda::new(0)?;
        let bound = ("copy bandwidth", 1e-9 * measure(&cuda)?.copy_bytes_per_second);
        for problem in problems(options, &[65, 129, 201])? {
            measure_on(&cuda, &problem, Peer::Cusparse, 0, bound, options, &mut records)?;
        }
    }
    for cpu in options.cpus()? {
        let bandwidth = cpu.measure_bandwidth(256 << 20)?;
        let bound = ("read bandwidth", bandwidth.read_gb_per_s);
        for problem in problems(options, &[65, 129])? {
            let threads = cpu.threads();
            measure_on(&cpu, &problem, Peer::Mkl, threads, bound, options, &mut records)?;
        }
    }
    Ok(records)
}

fn problems(options: &Options, boxes: &[usize]) -> Result<Vec<Named>, BenchError> {
    let cpu = Cpu::new(0)?;
    let chosen: Vec<usize> = options.nodes.map_or(boxes.to_vec(), |nodes| vec![nodes]);
    let mut problems = Vec::new();
    for nodes in chosen {
        let a = kuhn_box::matrix::<f64, _>(&cpu, nodes)?.copy_to(&Reference)?;
        problems.push((format!("box of {nodes}³ nodes"), a));
    }
    if options.nodes.is_none() {
        let a = irregular_box::matrix::<f64, _>(&cpu, 17, 3)?.copy_to(&Reference)?;
        problems.push(("bent box of 129³ nodes".into(), a));
        for profile in profiles::all() {
            problems.push((format!("profile of {}", profile.name), profile.matrix(1)?));
        }
    }
    Ok(problems)
}

fn measure_on<D: SparseKernels<f64> + Described + Stopwatch>(
    device: &D,
    (name, a): &Named,
    peer: Peer,
    threads: usize,
    bound: (&str, f64),
    options: &Options,
    records: &mut Vec<Record>,
) -> Result<(), BenchError> {
    let repeats = options.repeats(10);
    let mut note = |timed: Timed| {
        records.push(record(device, name, a, &timed, bound));
    };
    for format in candidates(&device.machine()) {
        match time_format(device, a, format, repeats) {
            Ok(timed) => note(timed),
            Err(BenchError::Linalg(LinalgError::Setting { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    for indices in [IndexKind::Full, IndexKind::Delta] {
        let (lanes, window) = if threads == 0 { (32, 256) } else { (8, 1) };
        let config = EllWarpConfig { window, indices, ..EllWarpConfig::new(lanes) };
        let matrix = EllWarp::<f64, D, f32>::from_csr(device, a, &config)?;
        let samples = time_operator(device, &matrix, repeats)?;
        note(Timed {
            format: format!("f32 values, {}", config.name()),
            seconds_median: samples.median(),
            seconds_min: samples.min(),
            padding: matrix.n_stored() as f64 / a.n_nonzeros() as f64,
            bytes: matrix.product_bytes(),
            seconds_built: 0.0,
        });
    }
    match ask_peers(peer, a, threads, repeats)? {
        Ok(times) => times.into_iter().for_each(note),
        Err(reason) => crate::skipped(format_args!("{peer:?}: {reason}")),
    }
    Ok(())
}

fn record<D: Stopwatch>(
    device: &D,
    name: &str,
    a: &Csr<f64, Reference>,
    timed: &Timed,
    bound: (&str, f64),
) -> Record {
    let work = Work { bytes: nominal_bytes(a) as f64, flops: 2.0 * a.n_nonzeros() as f64 };
    let seconds = (timed.seconds_median, timed.seconds_min);
    let mut record = Record::of_seconds(&format!("{name}: {}", timed.format), device, seconds, work, bound);
    record.set("n_rows", a.n_rows());
    record.set("n_nonzeros", a.n_nonzeros());
    record.set("format", timed.format.as_str());
    record.set("padding", timed.padding);
    record.set("bytes_of_format", timed.bytes);
    record.set("seconds_built", timed.seconds_built);
    record
}
