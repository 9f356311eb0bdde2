//! Krylov methods over ranks behind an interface that is not generic, compiled in this crate once per device.

use std::sync::Arc;

use femtile_device::cuda::Specialisation;
use femtile_device::{Buffer, Cpu, Cuda};
use femtile_linalg::krylov::cg::{
    self, CgKernels, CgOutcome, CgSolver, ConjugateGradient, KrylovConfig, Target,
};
use femtile_linalg::krylov::gmres::Gmres;
use femtile_linalg::krylov::merged_cg::{self, MergedCg, MergedCgKernels};
use femtile_linalg::krylov::pipelined_cg::{self, PipelinedCg, PipelinedCgKernels};
use femtile_linalg::krylov::s_step_cg::{self, SStepCg, SStepCgKernels};
use femtile_linalg::krylov::{Monitor, PreconditioningKind};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use crate::Comm;

/// A Krylov method with its settings.
#[derive(Debug, Clone)]
pub enum KrylovMethod {
    /// Conjugate gradients.
    Cg(ConjugateGradient),
    /// Conjugate gradients with vector updates merged into the product.
    MergedCg(MergedCg),
    /// Pipelined conjugate gradients.
    PipelinedCg(PipelinedCg),
    /// s-step conjugate gradients.
    SStepCg(SStepCg),
    /// The restarted generalized minimal residual method.
    Gmres(Gmres),
}

impl KrylovMethod {
    /// Returns the GPU programs of its passes over vectors in f64 with these kinds of preconditioners; products, the
    /// preconditioner and [`femtile_linalg::vector`] have their own.
    pub fn cuda_programs(&self, kinds: &[PreconditioningKind]) -> Vec<Specialisation> {
        match self {
            Self::Cg(_) => cg::cuda_programs::<f64>(),
            Self::MergedCg(_) => {
                [cg::cuda_programs::<f64>(), vec![merged_cg::cuda_program::<f64>()]].concat()
            }
            Self::PipelinedCg(_) => {
                kinds.iter().map(|kind| pipelined_cg::cuda_program::<f64>(*kind)).collect()
            }
            Self::SStepCg(method) => s_step_cg::cuda_programs::<f64>(method.config().steps),
            Self::Gmres(_) => Vec::new(),
        }
    }
}

/// A device with Krylov methods for vectors in f64: [`Cpu`] and [`Cuda`].
///
/// Generic methods such as [`ConjugateGradient::solve`] are compiled again in each crate that calls them; these are not.
pub trait KrylovDevice:
    CgKernels<f64> + MergedCgKernels<f64> + PipelinedCgKernels<f64> + SStepCgKernels<f64>
{
    /// Solves $A x = b$ from `x`, with the rows of this rank. Collective.
    ///
    /// # Errors
    /// As [`ConjugateGradient::solve`] and those of the other methods.
    fn krylov(
        method: &KrylovMethod,
        comm: &Comm,
        x: &mut Buffer<f64, Self>,
        system: (&dyn LinearOperator<f64, Self>, &dyn Preconditioner<f64, Self>),
        b: &Buffer<f64, Self>,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError>;

    /// [`CgSolver::with_communicator`]. Collective.
    ///
    /// # Errors
    /// As [`CgSolver::with_communicator`].
    fn cg_solver(
        a: Arc<dyn LinearOperator<f64, Self>>,
        m: Arc<dyn Preconditioner<f64, Self>>,
        comm: &Comm,
    ) -> Result<CgSolver<f64, Self>, LinalgError>;

    /// [`CgSolver::set_operator`]. Collective.
    ///
    /// # Errors
    /// As [`CgSolver::set_operator`].
    fn set_cg_operator(
        solver: &mut CgSolver<f64, Self>,
        a: Arc<dyn LinearOperator<f64, Self>>,
        m: Arc<dyn Preconditioner<f64, Self>>,
        comm: &Comm,
    ) -> Result<(), LinalgError>;

    /// [`CgSolver::solve`]. Collective.
    ///
    /// # Errors
    /// As [`CgSolver::solve`].
    fn cg_solve(
        solver: &mut CgSolver<f64, Self>,
        config: &KrylovConfig,
        target: Target,
        comm: &Comm,
        monitor: &mut dyn Monitor,
    ) -> Result<CgOutcome, LinalgError>;
}

/// Implements [`KrylovDevice`] for a device.
macro_rules! krylov_device {
    ($device:ty) => {
        impl KrylovDevice for $device {
            fn krylov(
                method: &KrylovMethod,
                comm: &Comm,
                x: &mut Buffer<f64, Self>,
                (a, m): (&dyn LinearOperator<f64, Self>, &dyn Preconditioner<f64, Self>),
                b: &Buffer<f64, Self>,
                monitor: &mut dyn Monitor,
            ) -> Result<CgOutcome, LinalgError> {
                match method {
                    KrylovMethod::Cg(method) => method.solve(x, a, m, b, comm, monitor),
                    KrylovMethod::MergedCg(method) => method.solve(x, a, m, b, comm, monitor),
                    KrylovMethod::PipelinedCg(method) => method.solve(x, a, m, b, comm, monitor),
                    KrylovMethod::SStepCg(method) => method.solve(x, a, m, b, comm, monitor),
                    KrylovMethod::Gmres(method) => method.solve(x, a, m, b, comm, monitor),
                }
            }

            fn cg_solver(
                a: Arc<dyn LinearOperator<f64, Self>>,
                m: Arc<dyn Preconditioner<f64, Self>>,
                comm: &Comm,
            ) -> Result<CgSolver<f64, Self>, LinalgError> {
                CgSolver::with_communicator(a, m, comm)
            }

            fn set_cg_operator(
                solver: &mut CgSolver<f64, Self>,
                a: Arc<dyn LinearOperator<f64, Self>>,
                m: Arc<dyn Preconditioner<f64, Self>>,
                comm: &Comm,
            ) -> Result<(), LinalgError> {
                solver.set_operator(a, m, comm)
            }

            fn cg_solve(
                solver: &mut CgSolver<f64, Self>,
                config: &KrylovConfig,
                target: Target,
                comm: &Comm,
                monitor: &mut dyn Monitor,
            ) -> Result<CgOutcome, LinalgError> {
                solver.solve(config, target, comm, monitor)
            }
        }
    };
}

krylov_device!(Cpu);
krylov_device!(Cuda);
