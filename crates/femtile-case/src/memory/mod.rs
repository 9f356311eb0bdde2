//! What a run takes of memory, estimated from counts before anything is made, and how much there may be.

mod estimate;
mod machine;

use femtile_device::cuda::gpus;
use femtile_mesh::generate::Counts;

use crate::device::Request;
use crate::place::Key;
use crate::{Case, CaseError};
pub(crate) use estimate::Estimate;

/// The most memory this process has held so far, in bytes; none where the system does not say.
pub(crate) fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// How many bytes there may be, and who says so; none where nobody does.
fn limit(case: Option<&Case>) -> Option<(f64, &'static str)> {
    let asked = case.and_then(|case| case.file.solver.memory_limit.as_ref());
    match asked.and_then(|amount| amount.bytes().ok()) {
        Some(bytes) => Some((bytes, "solver.memory_limit")),
        None => machine::memory_bytes().map(|bytes| (bytes as f64, "this machine or its control group")),
    }
}

/// What to say where an estimate exceeds what there is.
fn excess(estimate: &Estimate, case: Option<&Case>, advice: &str) -> Option<String> {
    let (limit, whose) = limit(case).filter(|(limit, _)| estimate.total() > *limit)?;
    Some(format!(
        "about {} of memory would be needed ({estimate}), and the limit of {whose} is {}: {advice}",
        estimate::amount(estimate.total()),
        estimate::amount(limit)
    ))
}

/// Says what a mesh, refined so many times, needs more than the machine has, if it does.
pub(crate) fn excess_of_mesh(counts: Counts, refine: u32) -> Option<String> {
    excess(&Estimate::of_mesh(counts, refine), None, "ask for a coarser mesh")
}

/// Refuses a case whose mesh has such counts before its refinements and that needs more than there may be; a GPU that
/// carries it out has memory of its own.
pub(crate) fn check(case: &Case, counts: Counts, has_gpu: bool, place: &[Key]) -> Result<(), CaseError> {
    let advice = "ask for a coarser mesh or a lighter preconditioner, or raise solver.memory_limit";
    refuse(case, |on_gpu| Estimate::of_case(case, counts, on_gpu), has_gpu, (place, advice))
}

/// Refuses a case on a grid of so many nodes that needs more than there may be.
pub(crate) fn check_grid(case: &Case, n_nodes: f64, has_gpu: bool) -> Result<(), CaseError> {
    let place: [Key; 3] = ["mesh".into(), "generate".into(), "nodes".into()];
    let advice = "ask for fewer nodes, or raise solver.memory_limit";
    refuse(case, |on_gpu| Estimate::of_grid(case, n_nodes, on_gpu), has_gpu, (&place, advice))
}

/// Refuses what exceeds the limit on the processor, and on a GPU where there is one for it.
fn refuse(
    case: &Case,
    estimate: impl Fn(bool) -> Estimate,
    has_gpu: bool,
    (place, advice): (&[Key], &str),
) -> Result<(), CaseError> {
    let Some(mut message) = excess(&estimate(false), Some(case), advice) else { return Ok(()) };
    if has_gpu || Request::of(case)? == Request::Auto && gpus().is_ok() {
        match excess(&estimate(true), Some(case), advice) {
            Some(beside_gpu) => message = beside_gpu,
            None => return Ok(()),
        }
    }
    Err(case.wrong(place, message))
}
