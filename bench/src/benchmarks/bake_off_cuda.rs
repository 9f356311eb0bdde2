//! On a GPU: products without a matrix and iterations of Jacobi-CG on a cube of hexahedra, degrees 3 to 8.
//!
//! Bytes of a product are 16 an unknown (x read, y written) and those of metrics, of numbers of unknowns and of what groups
//! of cells share; an iteration moves 80 an unknown more, plain or merged.

use femtile::device::cuda::{CudaCosts, measure};
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::fem::dofs::TensorSpace;
use femtile::fem::matrix_free::{CudaMatrixFree, Geometry};
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::cg::{CgConfig, ConjugateGradient};
use femtile::linalg::krylov::merged_cg::MergedCg;
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, LinearOperator};

use crate::problems::bake_off::{BakeOff, Shape};
use crate::timing::Samples;
use crate::{BenchError, Options, Record, Work};

/// Shapes of cells, and how their metrics are come by.
const WAYS: [(Shape, Geometry); 3] = [
    (Shape::Cartesian, Geometry::Constant),
    (Shape::Deformed, Geometry::Trilinear),
    (Shape::Deformed, Geometry::Stored),
];

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let device = Cuda::new(0)?;
    let costs = measure(&device)?;
    let mut records = Vec::new();
    for degree in options.degree.map_or(3..=8, |degree| degree..=degree) {
        for (shape, geometry) in WAYS {
            for problem in [BakeOff::Bp1, BakeOff::Bp3, BakeOff::Bp5] {
                records.extend(records_of(&device, problem, (shape, geometry), degree, options, costs)?);
            }
        }
    }
    Ok(records)
}

fn records_of(
    device: &Cuda,
    problem: BakeOff,
    (shape, geometry): (Shape, Geometry),
    degree: usize,
    options: &Options,
    costs: CudaCosts,
) -> Result<[Record; 3], BenchError> {
    let nodes = options.nodes(369)?;
    let mesh = shape.mesh(((nodes - 1) / degree.max(1)).max(1))?;
    let space = Cpu::new(0)?.install(|| TensorSpace::new(&mesh, degree))?;
    let a = problem.cuda_operator(device, &space, geometry)?;
    let n = space.n_dofs();
    let values: Vec<f64> = (0..n).map(|i| (i % 17) as f64 * 0.1).collect();
    let x = Buffer::from_vec(device, values)?;
    let product = product(&a, &x, options)?;
    let repeats = options.repeats(20).div_ceil(4);
    let (plain, merged) =
        (plain_iteration(device, &a, &x, repeats)?, merged_iteration(device, &a, &x, repeats)?);
    let bytes = (16 * n + a.bytes()) as f64;
    let record = |what: &str, samples: &Samples, bytes: f64| {
        let bound = ("copy bandwidth", 1e-9 * costs.copy_bytes_per_second);
        let problem = format!("{} {what}, {}, {geometry:?}, degree {degree}", problem.name(), shape.name());
        let work = Work { bytes, flops: 0.0 };
        let mut record = Record::against_bandwidth(&problem, device, samples, work, bound);
        record.set("degree", degree);
        record.set("n_dofs", n);
        record.set("n_cells", mesh.n_cells());
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
pub(crate) fn plain_iteration(
    device: &Cuda,
    a: &CudaMatrixFree<f64>,
    b: &Buffer<f64, Cuda>,
    repeats: usize,
) -> Result<Samples, BenchError> {
    iteration(b, repeats, |config, x| {
        // Passes take as long whatever the diagonal holds.
        let jacobi = Jacobi::identity(device, b.len())?;
        let cg = ConjugateGradient::new(config);
        device.time(|| cg.solve(x, a, &jacobi, b, &Alone, &mut ()).map(drop))
    })
}

/// Seconds of an iteration of merged ones.
pub(crate) fn merged_iteration(
    device: &Cuda,
    a: &CudaMatrixFree<f64>,
    b: &Buffer<f64, Cuda>,
    repeats: usize,
) -> Result<Samples, BenchError> {
    iteration(b, repeats, |config, x| {
        let jacobi = Jacobi::identity(device, b.len())?;
        let cg = MergedCg::new(config);
        device.time(|| cg.solve(x, a, &jacobi, b, &Alone, &mut ()).map(drop))
    })
}

/// Of solves that `seconds` takes the time of, the difference of a long and a short one, which leaves out how they begin and
/// end.
fn iteration(
    b: &Buffer<f64, Cuda>,
    repeats: usize,
    seconds: impl Fn(CgConfig, &mut Buffer<f64, Cuda>) -> Result<f64, LinalgError>,
) -> Result<Samples, BenchError> {
    let device = b.device();
    let mut x = Buffer::zeros(device, b.len())?;
    let mut samples = Samples::default();
    let (short, long) = (16, 96);
    for round in 0..=repeats {
        let mut seconds = |max_iterations| {
            let config = CgConfig { tolerance: 1e-200, max_iterations, ..CgConfig::default() };
            device.fill(&mut x, 0.0)?;
            seconds(CgConfig { stagnation_window: usize::MAX, ..config }, &mut x)
        };
        let difference = seconds(long)? - seconds(short)?;
        if round > 0 {
            samples.push(difference / (long - short) as f64);
        }
    }
    Ok(samples)
}
