//! Devices that problems are solved on, and iterative methods on them.

use femtile_amg::AmgDevice;
use femtile_comm::{Comm, KrylovDevice, KrylovMethod};
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_fem::AssemblyKernels;
use femtile_linalg::krylov::Monitor;
use femtile_linalg::krylov::cg::{CgOutcome, ConjugateGradient, KrylovConfig};
use femtile_linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile_linalg::krylov::merged_cg::MergedCg;
use femtile_linalg::krylov::pipelined_cg::PipelinedCg;
use femtile_linalg::krylov::s_step_cg::{SStepCg, SStepCgConfig};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile_sparse::SparseDevice;

use crate::ranks::Agreed;
use crate::{Method, SolveError, SolvedSystem, SolverConfig, Stages};

/// A device that problems are solved on: [`Cpu`] and [`Cuda`].
pub trait SolveDevice:
    AssemblyKernels<f64>
    + KrylovDevice
    + SparseDevice
    + AmgDevice<f32>
    + AmgDevice<f64>
    + Convert<f64, f32>
    + Convert<f32, f64>
    + Convert<f64, f64>
    + Convert<f32, f32>
{
    /// Whether the device is a GPU, for which other methods are chosen.
    const IS_GPU: bool;
}

impl SolveDevice for Cpu {
    const IS_GPU: bool = false;
}

impl SolveDevice for Cuda {
    const IS_GPU: bool = true;
}

/// Returns the settings that all methods share.
pub(crate) fn cg_config(config: &SolverConfig) -> KrylovConfig {
    KrylovConfig {
        tolerance: config.tolerance,
        max_iterations: config.max_iterations,
        time_limit: config.time_limit,
        is_verified: config.is_verified,
        ..KrylovConfig::default()
    }
}

/// Solves $A x = b$ from `x`, with its rows on all ranks; the stage has begun. All ranks end in the same iteration.
/// Collective.
pub(crate) fn iterate<D: SolveDevice>(
    config: &SolverConfig,
    comm: &Comm,
    x: &mut Buffer<f64, D>,
    (a, m): (&dyn LinearOperator<f64, D>, &dyn Preconditioner<f64, D>),
    b: &Buffer<f64, D>,
    stages: &mut Stages<'_>,
) -> Result<CgOutcome, SolveError> {
    let mut agreed = Agreed::new(comm, config, stages.progress());
    let outcome = by_method(&agreed.settings(config), comm, x, (a, m), b, &mut agreed)?;
    agreed.ended()?;
    if comm.n_ranks() == 1 {
        stages.progress().solved(&Solved { a, b, x });
    }
    Ok(outcome)
}

/// Solves $A x = b$ from `x`, with its rows on all ranks.
pub(crate) fn by_method<D: SolveDevice>(
    config: &SolverConfig,
    comm: &Comm,
    x: &mut Buffer<f64, D>,
    system: (&dyn LinearOperator<f64, D>, &dyn Preconditioner<f64, D>),
    b: &Buffer<f64, D>,
    monitor: &mut dyn Monitor,
) -> Result<CgOutcome, LinalgError> {
    D::krylov(&krylov_method(config), comm, x, system, b, monitor)
}

/// Returns the method of the settings.
pub(crate) fn krylov_method(config: &SolverConfig) -> KrylovMethod {
    let cg = cg_config(config);
    match config.method {
        Method::Cg => KrylovMethod::Cg(ConjugateGradient::new(cg)),
        Method::MergedCg => KrylovMethod::MergedCg(MergedCg::new(cg)),
        Method::PipelinedCg => KrylovMethod::PipelinedCg(PipelinedCg::new(cg)),
        Method::SStepCg { steps } => KrylovMethod::SStepCg(SStepCg::new(SStepCgConfig { cg, steps })),
        Method::Gmres { restart } => KrylovMethod::Gmres(Gmres::new(GmresConfig { cg, restart })),
    }
}

/// A system for those who check it.
struct Solved<'a, D: SolveDevice> {
    a: &'a dyn LinearOperator<f64, D>,
    b: &'a Buffer<f64, D>,
    x: &'a Buffer<f64, D>,
}

impl<D: SolveDevice> SolvedSystem for Solved<'_, D> {
    fn right_side(&self) -> Result<Vec<f64>, SolveError> {
        Ok(self.b.to_host()?)
    }

    fn solution(&self) -> Result<Vec<f64>, SolveError> {
        Ok(self.x.to_host()?)
    }

    fn apply(&self, v: &[f64]) -> Result<Vec<f64>, SolveError> {
        let v = Buffer::from_host(self.b.device(), v)?;
        let mut y = Buffer::zeros(self.b.device(), v.len())?;
        self.a.apply(&mut y, &v)?;
        Ok(y.to_host()?)
    }
}
