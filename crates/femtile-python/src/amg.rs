//! `LinearSolver` as a class.

use std::sync::Mutex;
use std::time::Duration;

use femtile::device::{Buffer, cuda};
use femtile::linalg::LinalgError;
use femtile::linalg::vector::VectorKernels;
use femtile::solve::{SolveLimits, SolverConfig};
use femtile::{Cpu, LinearSolver, PreconditionerConfig};
use femtile_case::file::{MatrixAmg, named};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::{CsrArrays, array, csr};
use crate::errors::{Raise, exception, of_argument};
use crate::gpu::{GpuArray, Streams, ordered};
use crate::interrupt::{Stop, Watch, interruptible, interruptible_from};
use crate::threads::cpu;

/// The outcome of iterations: number, stop by name and in words, relative residuals of the recurrence and computed afresh,
/// history.
pub type Outcome = (usize, &'static str, String, f64, f64, Vec<f64>);

/// Returns an outcome for Python.
pub fn outcome(outcome: femtile::linalg::krylov::cg::CgOutcome) -> Outcome {
    let stop = outcome.stop;
    let (recurred, computed) = (outcome.relative_residual, outcome.true_relative_residual);
    (outcome.iterations, stop.name(), outcome.reason(), recurred, computed, outcome.residuals)
}

/// A matrix with algebraic multigrid, set up for many right sides.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Solver {
    /// None while a refill has failed half-way.
    solver: Mutex<Option<LinearSolver>>,
    cpu: Cpu,
}

/// Settings of a solver: device, threads, rows of a node, strength of connection where it is not the default, smoother, cycle
/// and precision by the words of case files.
type Settings = (String, usize, usize, Option<f64>, String, String, String);

fn config(py: Python<'_>, settings: &Settings) -> PyResult<SolverConfig> {
    let (device, threads, block_size, strength, smoother, cycle, precision) = settings;
    let wrong = |argument: &'static str| move |message: String| of_argument(py, argument, &message);
    let amg = MatrixAmg {
        block_size: *block_size,
        strength: *strength,
        smoother: named(smoother).map_err(wrong("smoother"))?,
        cycle: named(cycle).map_err(wrong("cycle"))?,
        precision: named(precision).map_err(wrong("precision"))?,
    };
    Ok(SolverConfig {
        device: device.parse().map_err(|error: femtile::SolveError| error.raise(py))?,
        threads: *threads,
        preconditioner: PreconditionerConfig::Amg(amg.options()),
        ..SolverConfig::default()
    })
}

#[pymethods]
impl Solver {
    #[new]
    fn new(
        py: Python<'_>,
        matrix: CsrArrays<'_, f64>,
        near_nullspace: Option<PyReadonlyArray1<'_, f64>>,
        settings: Settings,
    ) -> PyResult<Self> {
        let config = config(py, &settings)?;
        let cpu = cpu(py, settings.1)?;
        let a = csr(py, &cpu, &matrix)?;
        let near = near_nullspace.as_ref().map(|vectors| vectors.as_slice()).transpose()?;
        let made = interruptible(py, &Stop::default(), || match near {
            Some(vectors) => LinearSolver::with_near_nullspace(&a, vectors, &config),
            None => LinearSolver::new(&a, &config),
        })?;
        let solver = made.map_err(|error| error.raise(py))?;
        Ok(Self { solver: Mutex::new(Some(solver)), cpu })
    }

    /// Solves from a guess; returns the solution and the outcome.
    fn solve<'py>(
        &self,
        py: Python<'py>,
        b: PyReadonlyArray1<'py, f64>,
        x0: Option<PyReadonlyArray1<'py, f64>>,
        limits: Limits,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, Outcome)> {
        let (limits, b) = (within(limits), b.as_slice()?);
        let x = x0.map_or_else(|| Ok(vec![0.0; b.len()]), |x0| x0.as_slice().map(<[f64]>::to_vec))?;
        let watch = &Watch::new(callback);
        let solved = interruptible_from(py, b.len(), &watch.stop, || {
            self.with(|solver| solver.solve_within(limits, x, b, &mut { watch }))
        })?;
        watch.raised()?;
        let solved = solved.ok_or_else(|| lost(py))?.map_err(|error| error.raise(py))?;
        Ok((array(py, solved.x), outcome(solved.outcome)))
    }

    /// The number of the GPU that holds the matrix and the handle of its stream; none on a processor.
    fn gpu(&self, py: Python<'_>) -> PyResult<Option<(usize, u64)>> {
        let of =
            |solver: &LinearSolver| solver.gpu().map(|gpu| (gpu.properties().ordinal, gpu.driver().stream()));
        self.with(of).ok_or_else(|| lost(py))
    }

    /// As `solve`, from the addresses of b and of the guess in the memory of the GPU, and their length.
    fn solve_on_gpu(
        &self,
        py: Python<'_>,
        given: (u64, Option<u64>, usize),
        limits: Limits,
        streams: Streams,
        callback: Option<Py<PyAny>>,
    ) -> PyResult<(GpuArray, Outcome)> {
        let (watch, n) = (Watch::new(callback), given.2);
        let solved = interruptible(py, &watch.stop, || {
            self.with(|solver| on_gpu(solver, given, within(limits), &streams, &watch))
        })?;
        watch.raised()?;
        let (x, found) = solved.ok_or_else(|| lost(py))?.map_err(|error| error.raise(py))?;
        Ok((GpuArray::new(x, (vec![n as i64], vec![1])), outcome(found)))
    }

    /// Applies the preconditioner.
    fn precondition<'py>(
        &self,
        py: Python<'py>,
        r: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let r = r.as_slice()?;
        let z = py.detach(|| self.with(|solver| solver.precondition(r)));
        Ok(array(py, z.ok_or_else(|| lost(py))?.map_err(|error| error.raise(py))?))
    }

    /// Takes over other values on the same pattern.
    fn refill(&self, py: Python<'_>, matrix: CsrArrays<'_, f64>) -> PyResult<()> {
        let a = csr(py, &self.cpu, &matrix)?;
        let refilled = interruptible(py, &Stop::default(), || {
            let mut held = self.solver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let mut solver = held.take()?;
            // One that is refused leaves the solver as it was; after a panic there is none.
            let refilled = solver.refill(&a);
            *held = Some(solver);
            Some(refilled)
        })?;
        refilled.ok_or_else(|| lost(py))?.map_err(|error| error.raise(py))
    }

    /// Rows and non-zeros of each level, the finest first.
    fn levels(&self, py: Python<'_>) -> PyResult<Vec<(usize, Option<usize>)>> {
        let levels = self.with(|solver| solver.levels().iter().map(|l| (l.n_rows, l.n_nonzeros)).collect());
        levels.ok_or_else(|| lost(py))
    }

    /// Device, reason for it, format of the matrix, warnings.
    fn description(&self, py: Python<'_>) -> PyResult<(String, String, String, Vec<String>)> {
        let of = |solver: &LinearSolver| {
            let (device, reason) = (solver.device(), solver.device_reason().to_owned());
            (device, reason, solver.format().0.name(), solver.warnings().to_vec())
        };
        self.with(of).ok_or_else(|| lost(py))
    }
}

impl Solver {
    /// Gives the solver to `work`, one caller at a time; none where there is none left.
    fn with<R>(&self, work: impl FnOnce(&LinearSolver) -> R) -> Option<R> {
        let solver = self.solver.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        solver.as_ref().map(work)
    }

    /// The solver for a preconditioned method.
    pub fn apply(&self, r: &[f64]) -> Option<Result<Vec<f64>, femtile::SolveError>> {
        self.with(|solver| solver.precondition(r))
    }
}

/// Tolerance, iterations, seconds.
type Limits = (f64, usize, Option<f64>);

fn within((tolerance, max_iterations, seconds): Limits) -> SolveLimits {
    SolveLimits { tolerance, max_iterations, time_limit: seconds.map(Duration::from_secs_f64) }
}

/// Solves with vectors of `n` entries at addresses on a GPU.
fn on_gpu(
    solver: &LinearSolver,
    (b, x0, n): (u64, Option<u64>, usize),
    limits: SolveLimits,
    streams: &Streams,
    mut watch: &Watch,
) -> Result<(Buffer<f64, femtile::device::Cuda>, femtile::linalg::krylov::cg::CgOutcome), femtile::SolveError>
{
    let Some(gpu) = solver.gpu() else {
        let message = "the matrix is on the processor".into();
        return Err(LinalgError::Setting { field: "b", message }.into());
    };
    // SAFETY: the Python sources have checked the arrays and hold them until the stream of their package waits for this work.
    let borrowed = |address| unsafe { cuda::Borrowed::<f64>::new(gpu, address, n) };
    ordered(gpu, streams, || {
        let (b, mut x) = (borrowed(b), Buffer::zeros(gpu, n)?);
        if let Some(x0) = x0 {
            gpu.copy(&mut x, &borrowed(x0))?;
        }
        let outcome = solver.solve_on_gpu(limits, &mut x, &b, &mut watch)?;
        if !outcome.relative_residual.is_finite() {
            let message = "has an entry that is not finite, or the guess has".into();
            return Err(LinalgError::Setting { field: "b", message }.into());
        }
        Ok((x, outcome))
    })
}

fn lost(py: Python<'_>) -> PyErr {
    exception(py, "Error", "an earlier refill failed half-way: set the solver up again", None)
}
