//! Preconditioners and conjugate gradients as a case asks for them.

use std::ops::ControlFlow;
use std::time::Duration;

use femtile_amg::{Amg, AmgKernels, Convert, LevelShape};
use femtile_device::{Buffer, Scalar};
use femtile_fem::AssemblyKernels;
use femtile_linalg::comm::Alone;
use femtile_linalg::krylov::cg::{CgConfig, CgKernels, CgOutcome, ConjugateGradient, make_room};
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::sparse::csr::{Csr, CsrKernels};
use femtile_linalg::{LinearOperator, Preconditioner};

use crate::file::{AmgSection, LevelPrecision, PreconditionerName, SolverSection};
use crate::report::LevelReport;
use crate::run::Clock;
use crate::{CaseError, Progress, Stage, Timings};

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
{
}

impl<D> SolveDevice for D where
    D: AssemblyKernels<f64>
        + CgKernels<f64>
        + CsrKernels<f64>
        + AmgKernels<f32>
        + AmgKernels<f64>
        + Convert<f64, f32>
        + Convert<f32, f64>
        + Convert<f64, f64>
{
}

/// A preconditioner and what there is to tell of it.
pub(crate) type Preconditioning<D> = (Box<dyn Preconditioner<f64, D>>, Vec<LevelReport>);

/// Conjugate gradients from zero, with the settings of a case.
pub(crate) fn solve<D: CgKernels<f64>>(
    solver: &SolverSection,
    a: &dyn LinearOperator<f64, D>,
    m: &dyn Preconditioner<f64, D>,
    b: &Buffer<f64, D>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<(Buffer<f64, D>, CgOutcome), CaseError> {
    let mut x = Buffer::zeros(b.device(), b.len())?;
    timings.setup = clock.seconds();
    clock.begin(Stage::Solve);
    let config = CgConfig {
        tolerance: solver.tolerance,
        max_iterations: solver.max_iterations,
        time_limit: solver.time_limit_s.map(Duration::from_secs_f64),
        ..CgConfig::default()
    };
    let mut watch = Watch { progress: &mut *clock.progress, tolerance: solver.tolerance };
    let outcome = ConjugateGradient::new(config).solve(&mut x, a, m, b, &Alone, &mut watch)?;
    timings.solve = clock.seconds();
    Ok((x, outcome))
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
    let level = |shape: &LevelShape| LevelReport {
        n_rows: shape.n_rows,
        n_nonzeros: shape.n_nonzeros,
        n_patches: Some(shape.n_patches).filter(|n| *n > 0),
    };
    let levels = amg.hierarchy().shapes().iter().map(level).collect();
    Ok((Box::new(amg), levels))
}

/// What the case asks for.
pub(crate) fn preconditioner<D: SolveDevice>(
    device: &D,
    solver: &SolverSection,
    matrix: &mut Csr<f64, D>,
) -> Result<Preconditioning<D>, CaseError> {
    if solver.preconditioner != PreconditionerName::Amg {
        make_room(matrix)?;
    }
    Ok(match solver.preconditioner {
        PreconditionerName::None => (Box::new(Diagonal::identity(device, matrix.n_rows())?), Vec::new()),
        PreconditionerName::Amg => {
            let options = solver.amg.clone().unwrap_or_default();
            match options.precision {
                LevelPrecision::Single => multigrid::<f32, D>(&options, matrix)?,
                LevelPrecision::Double => multigrid::<f64, D>(&options, matrix)?,
            }
        }
        PreconditionerName::Jacobi | PreconditionerName::Gmg => {
            (Box::new(Diagonal::new(matrix)?), Vec::new())
        }
    })
}
