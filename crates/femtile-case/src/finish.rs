//! The end of a stationary case: what the report says, and the files.

use std::collections::BTreeMap;

use femtile_device::{Device, MemoryUse};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;

use crate::file::{CycleName, Method, PreconditionerName};
use crate::report::{LevelReport, MemoryReport, MeshReport, SpaceReport};
use crate::{Case, Report, SolveReport, Timings};

/// What a case ended with.
pub(crate) struct Finished {
    pub mesh: MeshReport,
    pub space: SpaceReport,
    pub outcome: CgOutcome,
    pub levels: Vec<LevelReport>,
    pub functionals: BTreeMap<String, f64>,
    pub timings: Timings,
    pub warnings: Vec<String>,
    /// Keys of the papers behind the operator.
    pub citations: Vec<&'static str>,
}

impl Finished {
    /// The report, with warnings about the solve and about what found no room on the device.
    pub fn report<D: Device>(mut self, case: &Case, device: &D, reason: &str) -> Report {
        warn_of_outcome(case, &self.outcome, &mut self.warnings);
        let used = device.memory_use();
        self.warnings.extend(used.and_then(warning_of_overflow));
        let outcome = self.outcome;
        Report {
            mesh: self.mesh,
            space: self.space,
            solve: SolveReport {
                iterations: outcome.iterations,
                stop: outcome.stop,
                relative_residual: outcome.relative_residual,
                true_relative_residual: outcome.true_relative_residual,
                algebraic_error_estimate: outcome.energy_error,
                energy_norm: outcome.energy_norm,
                residuals: outcome.residuals,
                levels: self.levels,
            },
            time: None,
            files: BTreeMap::new(),
            functionals: self.functionals,
            timings_s: self.timings,
            memory_bytes: MemoryReport::of_device(used),
            device: device.description(),
            device_reason: reason.into(),
            kernel_launches: device.kernel_launches(),
            warnings: self.warnings,
            citations: citations(case, &self.citations),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// What to say of a right side that was projected, if anything.
pub(crate) fn warning_of_imbalance(imbalance: f64) -> Option<String> {
    (imbalance > 1e-9).then(|| {
        format!(
            "source and flux of the pure Neumann problem balance up to {imbalance:.1e} of their size; the rest was projected \
             away"
        )
    })
}

/// The papers behind what was used.
fn citations(case: &Case, operator: &[&'static str]) -> Vec<String> {
    let multigrid = match case.file.solver.preconditioner {
        PreconditionerName::Amg => ["vanek1996", "fu2014"].as_slice(),
        PreconditionerName::Gmg => &["cui2024"],
        PreconditionerName::Pmg => &["fehn2020", "vanek1996", "fu2014"],
        PreconditionerName::Jacobi | PreconditionerName::None => &[],
    };
    let options = case.file.solver.amg.as_ref();
    let is_k = options.is_some_and(|options| options.cycle == CycleName::K);
    let flexible = if is_k { ["notay2000", "notay2010"].as_slice() } else { &[] };
    let method = match case.file.solver.method {
        Method::Cg => [].as_slice(),
        Method::MergedCg => &["chronopoulos1989", "kronbichler2022"],
        Method::PipelinedCg => &["ghysels2014", "kronbichler2022"],
        Method::SStepCg => &["chronopoulos1989", "kronbichler2022"],
        Method::Gmres => &["saad1986"],
    };
    let operator = operator.iter().filter(|key| !method.contains(key));
    ["hestenes1952"]
        .iter()
        .chain(method)
        .chain(operator)
        .chain(multigrid)
        .chain(flexible)
        .map(|key| (*key).into())
        .collect()
}

/// What to say of arrays that found no room in the memory of the GPU.
fn warning_of_overflow(used: MemoryUse) -> Option<String> {
    let MemoryUse { near_peak, far_peak, .. } = used;
    let gigabytes = |bytes: usize| bytes as f64 * 1e-9;
    (far_peak > 0).then(|| {
        format!(
            "the memory of the GPU was too small: {:.2} GB went to the host's, which the GPU reads slowly, beside {:.2} GB \
             in its own; where most of it does, `cpu` is faster",
            gigabytes(far_peak),
            gigabytes(near_peak)
        )
    })
}

fn warn_of_outcome(case: &Case, outcome: &CgOutcome, warnings: &mut Vec<String>) {
    if outcome.stop != Stop::Converged {
        warnings.push(format!(
            "the solve {} (‖r‖/‖b‖ = {:.2e} after {} iterations)",
            outcome.stop, outcome.relative_residual, outcome.iterations
        ));
    } else if outcome.true_relative_residual > 10.0 * case.file.solver.tolerance {
        warnings.push(format!(
            "rounding keeps the true residual at {:.1e}, above the tolerance {:.1e}",
            outcome.true_relative_residual, case.file.solver.tolerance
        ));
    }
}
