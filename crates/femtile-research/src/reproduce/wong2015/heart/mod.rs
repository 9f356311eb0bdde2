//! Figures 2, 3, 15 and 16: the simulation of a heart on meshes that are refined, one core of the CPU against the GPU.

mod figures;

use std::cell::OnceCell;

use femtile::device::{Buffer, Cpu, Cuda};
use femtile::fem::assemble;
use femtile::linalg::LinearOperator;
use femtile::linalg::sparse::{MatrixFormat, ProductMatrix};
use femtile::solve::SolveDevice;
use femtile::{DeviceChoice, Mesh, Poisson, PreconditionerConfig, SolverConfig, Value};
use femtile_bench::BenchError;
use femtile_bench::problems::ventricle;
use femtile_bench::sparse::right_vector;

use super::{Session, once};
use crate::reproduce::timing::{Timed, fastest};
pub(super) use figures::{figure_2, figure_3, figure_15, figure_16};

/// Edges of the meshes, mm: about 3,000, 10,000 and 50,000 nodes.
const EDGES_MM: [f64; 3] = [1.5, 0.9, 0.5];
/// Edges of the mesh for a GPU, about 200,000 nodes, and the end of its simulation, after the front has passed: one core would
/// take many minutes for the whole beat.
const FINEST: (f64, f64) = (0.31, 10.0);
/// Edges and end for tests.
const SMALL: (f64, f64) = (3.0, 3.0);
/// Runs on a GPU, of which the fastest counts: the first one compiles kernels.
const GPU_RUNS: usize = 2;
/// Products of a timing.
const PRODUCTS: usize = 50;
/// Products with a tangent in a run, enough for any format to pay.
const MANY: usize = 10_000;
/// Products of a linear solve besides those of its iterations: the first and the last residual.
const PRODUCTS_BESIDES: usize = 2;

/// A simulation on one device.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Seconds of all steps.
    seconds: f64,
    /// Seconds of local iterations, of the sums and the rest of the assembly, and of conjugate gradients.
    membrane: f64,
    sums: f64,
    rest: f64,
    solver: f64,
    steps: usize,
    newton: usize,
    iterations: usize,
    /// Seconds of a product with the tangent.
    product: f64,
}

impl Run {
    /// The assembly as the paper counts it: element quantities, with the local iterations, and their sums.
    fn assembly(&self) -> f64 {
        self.membrane + self.sums + self.rest
    }

    /// The products of conjugate gradients, as many as were taken times the seconds of one.
    fn products(&self) -> f64 {
        let count = self.iterations + PRODUCTS_BESIDES * self.newton;
        (count as f64 * self.product).min(self.solver)
    }
}

/// A mesh and the simulations on it.
#[derive(Debug)]
pub(super) struct Heart {
    n_nodes: usize,
    n_cells: usize,
    /// The end of the simulation, in units of time.
    end: f64,
    /// One core.
    core: Run,
    /// Seconds with all threads of the session, if there are more.
    all_cores: Option<f64>,
    /// Seconds on the GPU, and a run whose parts are measured.
    gpu: Option<(f64, Run)>,
}

/// The hearts, simulated once.
pub(super) type Hearts = OnceCell<Vec<Heart>>;

fn hearts(session: &Session) -> Result<&[Heart], BenchError> {
    let found = once(&session.wong2015.hearts, || {
        let beats = EDGES_MM.map(|edge| (edge, ventricle::END));
        let sizes = match (session.settings.small, session.gpu.is_some()) {
            (true, _) => vec![SMALL],
            (false, true) => [beats.as_slice(), &[FINEST]].concat(),
            (false, false) => beats.to_vec(),
        };
        sizes.into_iter().map(|(edge, end)| heart(session, &ventricle::mesh(edge)?, end)).collect()
    })?;
    Ok(found)
}

fn heart(session: &Session, mesh: &Mesh, end: f64) -> Result<Heart, BenchError> {
    let one = Cpu::new(1)?;
    let core = run((mesh, end), &config(DeviceChoice::Cpu, 1), true, product(&one, mesh)?)?;
    let threads = session.cpu.threads();
    let all_cores = if threads > 1 {
        Some(run((mesh, end), &config(DeviceChoice::Cpu, threads), false, 0.0)?.seconds)
    } else {
        None
    };
    let gpu = session.gpu.as_ref().map(|gpu| on_gpu(&gpu.device, (mesh, end))).transpose()?;
    Ok(Heart { n_nodes: mesh.n_nodes(), n_cells: mesh.n_cells(), end, core, all_cores, gpu })
}

fn on_gpu(device: &Cuda, (mesh, end): (&Mesh, f64)) -> Result<(f64, Run), BenchError> {
    let config = config(DeviceChoice::Cuda(0), 0);
    let mut seconds = f64::INFINITY;
    for _ in 0..GPU_RUNS {
        seconds = seconds.min(run((mesh, end), &config, false, 0.0)?.seconds);
    }
    Ok((seconds, run((mesh, end), &config, true, product(device, mesh)?)?))
}

fn config(device: DeviceChoice, threads: usize) -> SolverConfig {
    SolverConfig { device, threads, preconditioner: PreconditionerConfig::Jacobi, ..SolverConfig::default() }
}

/// Simulates a beat; `product` is the time of a product with the tangent.
fn run(
    (mesh, end): (&Mesh, f64),
    config: &SolverConfig,
    timed: bool,
    product: f64,
) -> Result<Run, BenchError> {
    let outcome = ventricle::beat(mesh, end)?.timed(timed).solve(config)?.outcome;
    let parts = outcome.parts.unwrap_or_default();
    Ok(Run {
        seconds: outcome.seconds,
        membrane: parts.membrane,
        sums: parts.assembly_products,
        rest: parts.assembly_rest,
        solver: parts.solver,
        steps: outcome.steps,
        newton: outcome.newton,
        iterations: outcome.iterations,
        product,
    })
}

/// Returns the seconds of a product with a matrix that has the pattern and the format of the tangent.
fn product<D: SolveDevice + Timed>(device: &D, mesh: &Mesh) -> Result<f64, BenchError> {
    let problem = Poisson::new(mesh).sigma(Value::Number(1.0)).lambda(1.0).discretize()?;
    let matrix = assemble::<f64, D>(device, &problem.form(0), &|_| ())?.matrix;
    let matrix = ProductMatrix::new(matrix, MatrixFormat::Auto, MANY, &[])?.0;
    let x = Buffer::from_vec(device, right_vector(matrix.n_cols()))?;
    let mut y = Buffer::zeros(device, matrix.n_rows())?;
    let seconds = fastest(device, 3, || (0..PRODUCTS).try_for_each(|_| matrix.apply(&mut y, &x)))?;
    Ok(seconds / PRODUCTS as f64)
}
