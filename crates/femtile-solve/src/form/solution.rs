//! The solution of a problem of a form.

use femtile_device::MemoryUse;
use femtile_form::Form;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_space::Space;

use super::FormProblem;
use crate::{Level, RanksUsed};

/// The solution of a [`FormProblem`].
///
/// Component c of degree of freedom i of the space is entry i · components + c of u.
#[derive(Debug, Clone)]
#[must_use]
pub struct FormSolution<'m> {
    pub(super) problem: FormProblem<'m>,
    pub(super) space: Space<'m>,
    pub(super) form: Form,
    pub(super) u: Vec<f64>,
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

impl<'m> FormSolution<'m> {
    /// Returns the problem.
    pub fn problem(&self) -> &FormProblem<'m> {
        &self.problem
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
