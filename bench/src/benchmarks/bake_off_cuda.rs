//! On a GPU: products without a matrix and iterations of Jacobi-CG on a cube of hexahedra, degrees 3 to 8.
//!
//! Bytes of a product are 16 an unknown (x read, y written) and those of metrics, of numbers of unknowns and of what groups
//! of cells share; an iteration moves 80 an unknown more, plain or merged. Fields of three components have as many unknowns,
//! on fewer cells.

use femtile::device::cuda::{CudaCosts, measure};
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::cg::{CgOutcome, ConjugateGradient, KrylovConfig};
use femtile::linalg::krylov::merged_cg::MergedCg;
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, LinearOperator};
use femtile::matrix_free::{CudaMatrixFree, MetricEvaluation};
use femtile::space::TensorSpace;

use crate::Samples;
use crate::problems::bake_off::{BakeOff, Shape};
use crate::{BenchError, Options, Record, Work};

/// Cell shapes, each with its metric evaluation.
const WAYS: [(Shape, MetricEvaluation); 3] = [
    (Shape::Cartesian, MetricEvaluation::Constant),
    (Shape::Deformed, MetricEvaluation::Computed),
    (Shape::Deformed, MetricEvaluation::Stored),
];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let costs = measure(&device)?;
    let mut records = Vec::new();
    for degree in options.degree.map_or(3..=8, |degree| degree..=degree) {
        for (shape, geometry) in WAYS {
            let problems = match options.has_vector_fields {
                true => [BakeOff::Bp2, BakeOff::Bp4, BakeOff::Bp6],
                false => [BakeOff::Bp1, BakeOff::Bp3, BakeOff::Bp5],
            };
            let scale = (problems[0].components() as f64).cbrt();
            let cells = ((options.nodes(369)? - 1) as f64 / scale) as usize / degree.max(1);
            let mesh = shape.mesh(cells.max(1))?;
            let space = Cpu::new(0)?.install(|| TensorSpace::new(&mesh, degree))?;
            for problem in problems {
                records.extend(records_of(&device, problem, (shape, geometry), &space, options, costs)?);
            }
        }
    }
    Ok(records)
}

fn records_of(
    device: &Cuda,
    problem: BakeOff,
    (shape, geometry): (Shape, MetricEvaluation),
    space: &TensorSpace<'_>,
    options: &Options,
    costs: CudaCosts,
) -> Result<[Record; 3], BenchError> {
    let a = problem.cuda_operator(device, space, geometry)?;
    let (n, degree) = (a.n_rows(), space.degree());
    let values: Vec<f64> = (0..n).map(|i| (i % 17) as f64 * 0.1).collect();
    let x = Buffer::from_vec(device, values)?;
    let product = product(&a, &x, options)?;
    let repeats = options.repeats(20).div_ceil(4);
    let (plain, merged) = (plain_iteration(&a, &x, repeats)?, merged_iteration(&a, &x, repeats)?);
    let bytes = (16 * n + a.bytes()) as f64;
    let record = |what: &str, samples: &Samples, bytes: f64| {
        let bound = ("copy bandwidth", 1e-9 * costs.copy_bytes_per_second);
        let problem = format!("{} {what}, {}, {geometry:?}, degree {degree}", problem.name(), shape.name());
        let work = Work { bytes, flops: 0.0 };
        let mut record = Record::against_bandwidth(&problem, device, samples, work, bound);
        record.set("degree", degree);
        record.set("n_dofs", n);
        record.set("n_cells", space.mesh().n_cells());
        record.set("mdof_per_s", 1e-6 * n as f64 / record.seconds_min);
        record.set("mdof_per_s_median", 1e-6 * n as f64 / record.seconds_median);
        record.set("operator_bytes_per_dof", a.bytes() as f64 / n as f64);
        record
    };
    let of_iteration = bytes + 80.0 * n as f64;
    Ok([
        record("product", &product, bytes),
        record("jacobi-cg iteration", &plain, of_iteration),
        record("merged jacobi-cg iteration", &merged, of_iteration),
    ])
}

fn product(a: &CudaMatrixFree<f64>, x: &Buffer<f64, Cuda>, options: &Options) -> Result<Samples, BenchError> {
    let device = a.device();
    let mut y = Buffer::zeros(device, x.len())?;
    a.apply(&mut y, x)?;
    let mut samples = Samples::default();
    for _ in 0..options.repeats(20) {
        samples.push(device.time(|| a.apply(&mut y, x))?);
    }
    Ok(samples)
}

/// Seconds of an iteration of conjugate gradients.
pub fn plain_iteration(
    a: &CudaMatrixFree<f64>,
    b: &Buffer<f64, Cuda>,
    repeats: usize,
) -> Result<Samples, BenchError> {
    iteration(b, repeats, |config, x, jacobi| {
        ConjugateGradient::new(config).solve(x, a, jacobi, b, &SingleRank, &mut ())
    })
}

/// Seconds of an iteration of merged ones.
pub fn merged_iteration(
    a: &CudaMatrixFree<f64>,
    b: &Buffer<f64, Cuda>,
    repeats: usize,
) -> Result<Samples, BenchError> {
    iteration(b, repeats, |config, x, jacobi| {
        MergedCg::new(config).solve(x, a, jacobi, b, &SingleRank, &mut ())
    })
}

/// The difference of a long and a short solve, which leaves out how they begin and end.
fn iteration(
    b: &Buffer<f64, Cuda>,
    repeats: usize,
    solve: impl Fn(KrylovConfig, &mut Buffer<f64, Cuda>, &Jacobi<f64, Cuda>) -> Result<CgOutcome, LinalgError>,
) -> Result<Samples, BenchError> {
    let device = b.device();
    let mut x = Buffer::zeros(device, b.len())?;
    // Passes take as long whatever the diagonal holds.
    let jacobi = Jacobi::identity(device, b.len())?;
    let mut samples = Samples::default();
    let (short, long) = (16, 96);
    for round in 0..=repeats {
        let mut seconds = |max_iterations| {
            let config = KrylovConfig { tolerance: 1e-200, max_iterations, ..KrylovConfig::default() };
            let config = KrylovConfig { stagnation_window: usize::MAX, ..config };
            device.fill(&mut x, 0.0)?;
            device.time(|| solve(config, &mut x, &jacobi).map(drop))
        };
        let difference = seconds(long)? - seconds(short)?;
        if round > 0 {
            samples.push(difference / (long - short) as f64);
        }
    }
    Ok(samples)
}
