//! The GPU: triad, dot, launches and nodes of recordings, assembly, the CSR product, one iteration of Jacobi-CG.

use femtile::device::cuda::{CudaCosts, measure};
use femtile::device::{Buffer, Cuda};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgKernels, CgScalars, ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, LinearOperator};

use crate::Samples;
use crate::problems::kuhn_box;
use crate::{BenchError, Options, Record, Work};

/// Entries of the long vectors: 1 GiB each in f64.
const LONG: usize = 1 << 27;
/// Nodes a side of the small box: 10,648 unknowns.
const SMALL_NODES: usize = 22;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let costs = measure(&device)?;
    let mut records = vectors(&device, options, costs)?;
    for nodes in [options.nodes(129)?, SMALL_NODES] {
        let (a, assembled) = assembly(&device, nodes, options, costs)?;
        records.push(assembled);
        records.push(product(&device, &a, nodes, options, costs)?);
        records.push(iteration(&device, &a, nodes, options, costs)?);
    }
    for record in &mut records {
        record.set("launch_us", 1e6 * costs.launch_seconds);
        record.set("node_us", 1e6 * costs.node_seconds);
    }
    Ok(records)
}

fn record(device: &Cuda, problem: &str, samples: &Samples, work: Work, costs: CudaCosts) -> Record {
    let bound = ("copy bandwidth", 1e-9 * costs.copy_bytes_per_second);
    Record::against_bandwidth(problem, device, samples, work, bound)
}

/// Times work by events of the device; the first run is not counted.
fn timed(
    device: &Cuda,
    repeats: usize,
    mut work: impl FnMut() -> Result<(), LinalgError>,
) -> Result<Samples, BenchError> {
    work()?;
    let mut samples = Samples::default();
    for _ in 0..repeats {
        samples.push(device.time(&mut work)?);
    }
    Ok(samples)
}

fn vectors(device: &Cuda, options: &Options, costs: CudaCosts) -> Result<Vec<Record>, BenchError> {
    let (repeats, n) = (options.repeats(20), LONG as f64);
    let mut x = Buffer::<f64, _>::zeros(device, LONG)?;
    let mut y = Buffer::<f64, _>::zeros(device, LONG)?;
    device.fill(&mut x, 0.7)?;
    device.fill(&mut y, 1.3)?;
    let triad = timed(device, repeats, || device.axpby(&mut y, 0.5, &x, 0.25))?;
    let dot = timed(device, repeats, || device.dot(&x, &y).map(drop))?;
    let mut scalars = CgScalars::new(device, 0.0, 0, 64, LONG / 64)?;
    let left = timed(device, repeats, || device.cg_dot(CgScalars::<Cuda>::R_DOT_Z, &x, &y, &mut scalars))?;
    let work = |values: f64, flops: f64| Work { bytes: 8.0 * values * n, flops: flops * n };
    let mut records = vec![
        record(device, "triad (axpby)", &triad, work(3.0, 3.0), costs),
        record(device, "dot, left on the GPU", &left, work(2.0, 2.0), costs),
        record(device, "dot, brought to the host", &dot, work(2.0, 2.0), costs),
    ];
    records.iter_mut().for_each(|record| record.set("n", LONG));
    Ok(records)
}

fn describe(record: &mut Record, a: &Csr<f64, Cuda>, nodes: usize) {
    record.set("nodes", nodes);
    record.set("n_rows", a.n_rows());
    record.set("n_nonzeros", a.n_nonzeros());
}

/// Pattern, matrix and right side by the host's clock: the pattern is found by the processor, and what the
/// kernels need of the mesh goes over the bus.
fn assembly(
    device: &Cuda,
    nodes: usize,
    options: &Options,
    costs: CudaCosts,
) -> Result<(Csr<f64, Cuda>, Record), BenchError> {
    let mesh = kuhn_box::mesh(nodes)?;
    let mut a = kuhn_box::system::<f64, _>(device, &mesh)?.matrix;
    let mut samples = Samples::default();
    for _ in 0..options.repeats(5).min(5) {
        drop(a);
        a = samples.time(|| kuhn_box::system::<f64, _>(device, &mesh))?.matrix;
    }
    let bytes = 4 * mesh.cells.len() + 24 * mesh.n_nodes() + 12 * a.n_nonzeros() + 12 * a.n_rows();
    let work = Work { bytes: bytes as f64, flops: 0.0 };
    let mut record = record(device, "assembly, box", &samples, work, costs);
    describe(&mut record, &a, nodes);
    Ok((a, record))
}

fn product(
    device: &Cuda,
    a: &Csr<f64, Cuda>,
    nodes: usize,
    options: &Options,
    costs: CudaCosts,
) -> Result<Record, BenchError> {
    let x = kuhn_box::ones(device, nodes)?;
    let mut y = Buffer::zeros(device, x.len())?;
    let samples = timed(device, options.repeats(50), || a.apply(&mut y, &x))?;
    let work = Work { bytes: a.product_bytes() as f64, flops: 2.0 * a.n_nonzeros() as f64 };
    let mut record = record(device, "csr product, box", &samples, work, costs);
    describe(&mut record, a, nodes);
    Ok(record)
}

/// Seconds of an iteration: the difference of a long and a short solve, which leaves out how they begin and end.
fn iteration(
    device: &Cuda,
    a: &Csr<f64, Cuda>,
    nodes: usize,
    options: &Options,
    costs: CudaCosts,
) -> Result<Record, BenchError> {
    let b = kuhn_box::ones(device, nodes)?;
    let jacobi = Jacobi::new(a)?;
    let mut x = Buffer::zeros(device, b.len())?;
    let mut samples = Samples::default();
    let (short, long) = (32, 352);
    for round in 0..=options.repeats(10) {
        let mut seconds = |max_iterations| -> Result<f64, LinalgError> {
            let config = KrylovConfig { tolerance: 1e-200, max_iterations, ..KrylovConfig::default() };
            let cg = ConjugateGradient::new(KrylovConfig { stagnation_window: usize::MAX, ..config });
            device.fill(&mut x, 0.0)?;
            device.time(|| cg.solve(&mut x, a, &jacobi, &b, &SingleRank, &mut ()).map(drop))
        };
        let difference = seconds(long)? - seconds(short)?;
        if round > 0 {
            samples.push(difference / (long - short) as f64);
        }
    }
    let n = a.n_rows() as f64;
    let work =
        Work { bytes: a.product_bytes() as f64 + 80.0 * n, flops: 2.0 * a.n_nonzeros() as f64 + 14.0 * n };
    let mut record = record(device, "jacobi-cg iteration, box", &samples, work, costs);
    describe(&mut record, a, nodes);
    Ok(record)
}
