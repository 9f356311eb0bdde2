//! Memory estimates of a case, made before it runs.

use femtile_mesh::generate::Counts;
use femtile_solve::memory::{Estimate, excess, refuse_excess};
use femtile_solve::{Key, has_gpus_of_ranks};

use crate::file::{Entry, Value};
use crate::{Case, CaseError, roofline};

/// Bytes per grid node: vectors, lines of systems, and stored coefficients.
const GRID: f64 = 40.0;
const GRID_LINE: f64 = 128.0;
const GRID_COEFFICIENTS: f64 = 75.0;
/// Bytes of host memory per grid node of a run on a GPU.
const GRID_BESIDE_GPU: f64 = 24.0;

/// The part that a page of a run takes, which shows the bandwidth.
const MEASUREMENT: &str = "bandwidth for `output.report`";

/// Returns a message if a mesh, refined `refine` times, needs more than the machine has.
pub(crate) fn excess_of_mesh(counts: Counts, refine: u32) -> Option<String> {
    excess(&Estimate::of_mesh(counts, refine), None, "ask for a coarser mesh")
}

/// Processes of the ranks of a case on this machine, and how much of the mesh they hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hosted {
    /// Their number and their share of all ranks; none of one rank alone.
    of_host: Option<(usize, f64)>,
    holds: Holds,
    /// Further bytes that each of them holds.
    of_each: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Whole,
    Parts,
    /// Parts, and the first one the whole mesh too, before or after the solve.
    FirstWhole,
    /// Parts, and the first one the whole mesh too, all the time.
    FirstKeeps,
}

impl Hosted {
    /// Each holds the whole mesh. Collective.
    pub fn whole(case: &Case) -> Result<Self, CaseError> {
        Self::of(case, Holds::Whole)
    }

    /// Each holds its part. Collective.
    pub fn parts(case: &Case) -> Result<Self, CaseError> {
        Self::of(case, Holds::Parts)
    }

    /// Each holds its part, and the first one the whole mesh before or after the solve. Collective.
    pub fn first(case: &Case) -> Result<Self, CaseError> {
        Self::of(case, Holds::FirstWhole)
    }

    /// Each rank holds its part, and the first one also the whole mesh. Collective.
    pub fn first_keeping(case: &Case) -> Result<Self, CaseError> {
        Self::of(case, Holds::FirstKeeps)
    }

    fn of(case: &Case, holds: Holds) -> Result<Self, CaseError> {
        Ok(Self { of_host: case.ranks().share_of_host()?, holds, of_each: 0.0 })
    }

    /// Adds further bytes that each process holds.
    pub fn with_each(self, bytes: f64) -> Self {
        Self { of_each: bytes, ..self }
    }
}

/// Returns an error for a case that needs more memory than allowed; `counts` are those of the mesh before refinement.
pub(crate) fn check(
    case: &Case,
    counts: Counts,
    (hosted, has_gpu): (Hosted, bool),
    place: &[Key],
) -> Result<(), CaseError> {
    let advice = "ask for a coarser mesh or a lighter preconditioner, or raise solver.memory_limit";
    let (config, space) = (case.solver_config()?, case.space_config());
    let equation = &case.file.equation;
    let sigma = equation.diffusion.as_ref().unwrap_or(&equation.sigma).into();
    let (refine, fields) = (case.file.mesh.refine, case.field_config());
    let Hosted { of_host, holds, of_each } = hosted;
    let besides = of_each * of_host.map_or(1.0, |(n_processes, _)| n_processes as f64);
    let has_gpu = has_gpu || has_gpus_of_ranks(&config, counts.kind);
    let estimate = |on_gpu| {
        let (of_run, fine) =
            (Estimate::of_run(&config, &space, (counts, refine), on_gpu), counts.refined(refine));
        let of_run = of_run.with_conductivity(&sigma, fine).with_fields(fields, &space, fine);
        let estimate = match holds {
            Holds::Whole => of_run.replicated_on_host(of_host),
            Holds::Parts => of_run.distributed_on_host(of_host),
            Holds::FirstWhole => of_run.clone().distributed_on_host(of_host).larger(of_run.without_solve()),
            Holds::FirstKeeps => {
                let whole = of_run.of_cells();
                of_run.distributed_on_host(of_host).with("whole mesh", whole)
            }
        };
        estimate.with("box of multigrid", besides).with(MEASUREMENT, roofline::bytes(case, on_gpu))
    };
    Ok(refuse_excess(estimate, config.memory_limit, (config.device, has_gpu), (place, advice))?)
}

/// Returns an error for a case on a grid of `n_nodes` nodes that needs more memory than allowed.
pub(crate) fn check_grid(case: &Case, n_nodes: f64, has_gpu: bool) -> Result<(), CaseError> {
    let place: [Key; 3] = ["mesh".into(), "generate".into(), "nodes".into()];
    let advice = "ask for fewer nodes, or raise solver.memory_limit";
    let config = case.solver_config()?;
    let estimate = |on_gpu| of_grid(case, n_nodes, on_gpu).with(MEASUREMENT, roofline::bytes(case, on_gpu));
    Ok(refuse_excess(estimate, config.memory_limit, (config.device, has_gpu), (&place, advice))?)
}

/// Estimates the memory of an equation in time on a grid.
fn of_grid(case: &Case, n_nodes: f64, on_gpu: bool) -> Estimate {
    if on_gpu {
        return Estimate::of_parts(&[("vectors", GRID_BESIDE_GPU * n_nodes)]);
    }
    let equation = &case.file.equation;
    let is_text = |entry: &Entry| matches!(entry, Entry::Text(_));
    let is_variable = !matches!(equation.diffusion, None | Some(Value::Number(_) | Value::Tensor(_)))
        || equation.convection.as_ref().is_some_and(|convection| convection.iter().any(is_text))
        || equation.reaction.as_ref().is_some_and(is_text);
    let is_line = case.file.mesh.generate.as_ref().is_some_and(|grid| grid.is_line());
    let lines = if is_line { GRID_LINE } else { 0.0 };
    let coefficients = if is_variable { GRID_COEFFICIENTS } else { 0.0 };
    Estimate::of_parts(&[
        ("vectors and output", GRID * n_nodes),
        ("lines of systems", lines * n_nodes),
        ("coefficients", coefficients * n_nodes),
    ])
}
