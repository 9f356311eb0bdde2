//! The solution of a problem of a form.

use femtile_device::MemoryUse;
use femtile_form::Form;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_space::Space;

use super::{FormProblem, LoadStep, Mode};
use crate::ranks::RankDevice;
use crate::system::SystemSummary;
use crate::{Level, NonlinearReport, RanksUsed, SolverConfig};

/// The solution of a [`FormProblem`].
///
/// Component c of degree of freedom i of the space is entry i · components + c of u.
#[derive(Debug, Clone)]
#[must_use]
pub struct FormSolution<'m> {
    pub(super) problem: FormProblem<'m>,
    pub(super) space: Space<'m>,
    pub(super) form: Form,
    /// The time t of the solution.
    pub(super) time: f64,
    pub(super) u: Vec<f64>,
    /// ∂u/∂t as functions with factors, in a run in time that has rates after its initial time.
    pub(super) rate: Vec<(f64, Vec<f64>)>,
    /// None of a linear form.
    pub(super) nonlinear: Option<NonlinearReport>,
    pub(super) load_steps: Vec<LoadStep>,
    pub(super) modes: Vec<Mode>,
    pub(super) outcome: CgOutcome,
    pub(super) by: SolvedBy,
    pub(super) warnings: Vec<String>,
}

/// Device, matrix format and preconditioner of a solve.
#[derive(Debug, Clone)]
pub(super) struct SolvedBy {
    pub device: String,
    pub device_reason: String,
    pub format: String,
    pub format_reason: String,
    pub preconditioner: &'static str,
    pub levels: Vec<Level>,
    pub citations: Vec<&'static str>,
    pub kernel_launches: u64,
    pub memory: Option<MemoryUse>,
    /// None if one rank solved.
    pub ranks: Option<RanksUsed>,
}

impl SolvedBy {
    /// Describes a solve on one rank by its device, with the reason for it, its parts and settings.
    pub fn new<D: RankDevice>(
        (device, reason): (&D, &str),
        parts: SystemSummary,
        config: &SolverConfig,
    ) -> Self {
        Self {
            device: device.description(),
            device_reason: reason.to_owned(),
            format: parts.format,
            format_reason: parts.format_reason.unwrap_or_default(),
            preconditioner: config.preconditioner.name(),
            levels: parts.levels,
            citations: config.citations(&parts.citations),
            kernel_launches: device.kernel_launches(),
            memory: device.memory_use(),
            ranks: None,
        }
    }
}

impl<'m> FormSolution<'m> {
    /// Returns the problem, with the values at the time of the solution.
    pub fn problem(&self) -> &FormProblem<'m> {
        &self.problem
    }

    /// Returns the form that was solved.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Returns the space.
    pub fn space(&self) -> &Space<'m> {
        &self.space
    }

    /// Returns u, interleaved by components.
    pub fn u(&self) -> &[f64] {
        &self.u
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.form.n_components()
    }

    /// Returns the outcome of the iterations.
    pub fn outcome(&self) -> &CgOutcome {
        &self.outcome
    }

    /// Returns statistics of the nonlinear solve, if the tangent depends on u.
    pub fn nonlinear(&self) -> Option<&NonlinearReport> {
        self.nonlinear.as_ref()
    }

    /// Returns the time t of the solution: the end of the load steps unless they were interrupted, zero without.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Returns the load steps of a nonlinear problem that has them.
    pub fn load_steps(&self) -> &[LoadStep] {
        &self.load_steps
    }

    /// Returns the modes of [`FormProblem::modes`], by ascending eigenvalues; u is that of the first one.
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// Returns the device, in words.
    pub fn device(&self) -> &str {
        &self.by.device
    }

    /// Returns the reason for the device.
    pub fn device_reason(&self) -> &str {
        &self.by.device_reason
    }

    /// Returns the name of the format of the matrix, and the reason for it.
    pub fn format(&self) -> (&str, &str) {
        (&self.by.format, &self.by.format_reason)
    }

    /// Returns the name of the preconditioner, as in case files.
    pub fn preconditioner(&self) -> &'static str {
        self.by.preconditioner
    }

    /// Returns the levels of multigrid, the finest first; none without multigrid.
    pub fn levels(&self) -> &[Level] {
        &self.by.levels
    }

    /// Returns the keys in `references.bib` of the methods used.
    pub fn citations(&self) -> &[&'static str] {
        &self.by.citations
    }

    /// Returns the number of kernels launched on a GPU.
    pub fn kernel_launches(&self) -> u64 {
        self.by.kernel_launches
    }

    /// Returns the memory that arrays took on a GPU.
    pub fn memory(&self) -> Option<MemoryUse> {
        self.by.memory
    }

    /// Returns how the problem was divided among ranks; none if one rank solved it.
    pub fn ranks(&self) -> Option<&RanksUsed> {
        self.by.ranks.as_ref()
    }

    /// Returns the warnings of the solve.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns a component at each degree of freedom of the space.
    pub fn component(&self, component: usize) -> Vec<f64> {
        self.u.iter().skip(component).step_by(self.n_components()).copied().collect()
    }
}
