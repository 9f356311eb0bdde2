//! Preconditioners and iterative methods as a case asks for them.

use std::ops::ControlFlow;
use std::time::Duration;

use femtile_amg::{Amg, AmgKernels, Hierarchy, LevelShape};
use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_fem::AssemblyKernels;
use femtile_linalg::comm::Alone;
use femtile_linalg::krylov::cg::{CgConfig, CgKernels, CgOutcome, ConjugateGradient, make_room};
use femtile_linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile_linalg::krylov::merged_cg::MergedCg;
use femtile_linalg::krylov::pipelined_cg::PipelinedCg;
use femtile_linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig};
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::precondition::{Diagonal, MeanFree};
use femtile_linalg::sparse::csr::{Csr, CsrKernels};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use crate::file::{AmgSection, LevelPrecision, Method, PreconditionerName, SolverSection};
use crate::report::LevelReport;
use crate::run::Clock;
use crate::{CaseError, Progress, SolvedSystem, Stage, Timings};

/// Passes iterations on and stops when the user asks.
struct Watch<'a> {
    progress: &'a mut dyn Progress,
    tolerance: f64,
}

impl Monitor for Watch<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop> {
        self.progress.iteration(iteration, relative_residual, self.tolerance);
        if self.progress.is_interrupted() {
            ControlFlow::Break(Stop::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A device that cases are solved on.
pub(crate) trait SolveDevice:
    AssemblyKernels<f64>
    + CgKernels<f64>
    + CsrKernels<f64>
    + AmgKernels<f32>
    + AmgKernels<f64>
    + Convert<f64, f32>
    + Convert<f32, f64>
    + Convert<f64, f64>
    + Convert<f32, f32>
{
    /// Solves $A x = b$ from `x` by the method of the case.
    fn iterate(solver: &SolverSection, system: System<'_, Self>) -> Result<CgOutcome, LinalgError>;
}

/// What an iterative method is given.
pub(crate) struct System<'a, D: SolveDevice> {
    x: &'a mut Buffer<f64, D>,
    a: &'a dyn LinearOperator<f64, D>,
    m: &'a dyn Preconditioner<f64, D>,
    b: &'a Buffer<f64, D>,
    monitor: &'a mut dyn Monitor,
}

impl SolveDevice for Cpu {
    fn iterate(solver: &SolverSection, system: System<'_, Self>) -> Result<CgOutcome, LinalgError> {
        let System { x, a, m, b, monitor } = system;
        let cg = config(solver);
        match solver.method {
            Method::Cg => ConjugateGradient::new(cg).solve(x, a, m, b, &Alone, monitor),
            Method::MergedCg => MergedCg::new(cg).solve(x, a, m, b, &Alone, monitor),
            Method::PipelinedCg => PipelinedCg::new(cg).solve(x, a, m, b, &Alone, monitor),
            Method::SStepCg => {
                let steps = solver.steps.unwrap_or(SStepCgConfig::default().steps);
                SStepCg::new(SStepCgConfig { cg, steps }).solve(x, a, m, b, &Alone, monitor)
            }
            Method::Gmres => gmres(solver).solve(x, a, m, b, &Alone, monitor),
        }
    }
}

impl SolveDevice for Cuda {
    /// A case with a method that is not [for GPUs](Method::is_for_gpus) was refused when it was read.
    fn iterate(solver: &SolverSection, system: System<'_, Self>) -> Result<CgOutcome, LinalgError> {
        let System { x, a, m, b, monitor } = system;
        let cg = config(solver);
        match solver.method {
            Method::MergedCg => MergedCg::new(cg).solve(x, a, m, b, &Alone, monitor),
            Method::Gmres => gmres(solver).solve(x, a, m, b, &Alone, monitor),
            _ => ConjugateGradient::new(cg).solve(x, a, m, b, &Alone, monitor),
        }
    }
}

/// The settings that all methods share.
fn config(solver: &SolverSection) -> CgConfig {
    CgConfig {
        tolerance: solver.tolerance,
        max_iterations: solver.max_iterations,
        time_limit: solver.time_limit_s.map(Duration::from_secs_f64),
        ..CgConfig::default()
    }
}

/// The generalized minimal residual method as the case asks for it.
fn gmres(solver: &SolverSection) -> Gmres {
    let restart = solver.restart.unwrap_or(GmresConfig::default().restart);
    Gmres::new(GmresConfig { cg: config(solver), restart })
}

/// A preconditioner and what there is to tell of it.
pub(crate) type Preconditioning<D> = (Box<dyn Preconditioner<f64, D>>, Vec<LevelReport>);

/// Solves from zero, with the method and the settings of a case.
pub(crate) fn solve<D: SolveDevice>(
    solver: &SolverSection,
    a: &dyn LinearOperator<f64, D>,
    m: &dyn Preconditioner<f64, D>,
    b: &Buffer<f64, D>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<(Buffer<f64, D>, CgOutcome), CaseError> {
    let mut x = Buffer::zeros(b.device(), b.len())?;
    timings.setup = clock.seconds();
    clock.begin(Stage::Solve)?;
    let mut watch = Watch { progress: &mut *clock.progress, tolerance: solver.tolerance };
    let outcome = D::iterate(solver, System { x: &mut x, a, m, b, monitor: &mut watch })?;
    timings.solve = clock.seconds();
    clock.progress.solved(&Solved { a, b, x: &x });
    Ok((x, outcome))
}

/// A system for those who check it.
struct Solved<'a, D: SolveDevice> {
    a: &'a dyn LinearOperator<f64, D>,
    b: &'a Buffer<f64, D>,
    x: &'a Buffer<f64, D>,
}

impl<D: SolveDevice> SolvedSystem for Solved<'_, D> {
    fn right_side(&self) -> Result<Vec<f64>, CaseError> {
        Ok(self.b.to_host()?)
    }

    fn solution(&self) -> Result<Vec<f64>, CaseError> {
        Ok(self.x.to_host()?)
    }

    fn apply(&self, v: &[f64]) -> Result<Vec<f64>, CaseError> {
        let v = Buffer::from_host(self.b.device(), v)?;
        let mut y = Buffer::zeros(self.b.device(), v.len())?;
        self.a.apply(&mut y, &v)?;
        Ok(y.to_host()?)
    }
}

/// The same on a system of so many unknowns whose solution is determined up to a constant, if it is: what multigrid makes of a
/// residual then has mean zero. A diagonal enlarges no constants, and stays one.
pub(crate) fn without_constants<D: SolveDevice>(
    device: &D,
    (of, levels): Preconditioning<D>,
    n: usize,
    is_pure_neumann: bool,
) -> Result<Preconditioning<D>, LinalgError> {
    if !is_pure_neumann || of.diagonal().is_some() {
        return Ok((of, levels));
    }
    Ok((Box::new(MeanFree::new(device, n, of)?), levels))
}

/// Multigrid with levels in the precision `H`.
fn multigrid<H: Scalar, D>(
    options: &AmgSection,
    matrix: &mut Csr<f64, D>,
) -> Result<Preconditioning<D>, CaseError>
where
    D: SolveDevice + AmgKernels<H> + Convert<f64, H> + Convert<H, f64>,
{
    let amg = Amg::<H, D>::in_room_of(matrix, None, &options.config())?;
    let levels = level_reports(amg.hierarchy());
    Ok((Box::new(amg), levels))
}

/// What there is to tell of levels that have a matrix each.
pub(crate) fn level_reports<H: Scalar, D: AmgKernels<H>>(hierarchy: &Hierarchy<H, D>) -> Vec<LevelReport> {
    let level = |shape: &LevelShape| LevelReport {
        n_rows: shape.n_rows,
        n_nonzeros: Some(shape.n_nonzeros),
        n_patches: Some(shape.n_patches).filter(|n| *n > 0),
    };
    hierarchy.shapes().iter().map(level).collect()
}

/// Multigrid with levels in single precision; in double precision, with a warning, where the matrix is none for that.
fn multigrid_in_single<D: SolveDevice>(
    options: &AmgSection,
    matrix: &mut Csr<f64, D>,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, CaseError> {
    match multigrid::<f32, D>(options, matrix) {
        Err(CaseError::Amg(error)) if error.is_of_precision() => {
            let made = multigrid::<f64, D>(options, matrix)?;
            warnings
                .push(format!("multigrid keeps its levels in double precision, as single failed: {error}"));
            Ok(made)
        }
        made => made,
    }
}

/// What the case asks for.
pub(crate) fn preconditioner<D: SolveDevice>(
    device: &D,
    solver: &SolverSection,
    matrix: &mut Csr<f64, D>,
    warnings: &mut Vec<String>,
) -> Result<Preconditioning<D>, CaseError> {
    if solver.preconditioner != PreconditionerName::Amg {
        make_room(matrix)?;
    }
    Ok(match solver.preconditioner {
        PreconditionerName::None => (Box::new(Diagonal::identity(device, matrix.n_rows())?), Vec::new()),
        PreconditionerName::Amg => {
            let options = solver.amg.clone().unwrap_or_default();
            match options.precision {
                LevelPrecision::Single => multigrid_in_single(&options, matrix, warnings)?,
                LevelPrecision::Double => multigrid::<f64, D>(&options, matrix)?,
            }
        }
        // Multigrid on cells was refused beside a matrix.
        PreconditionerName::Jacobi | PreconditionerName::Gmg | PreconditionerName::Pmg => {
            (Box::new(Diagonal::new(matrix)?), Vec::new())
        }
    })
}
