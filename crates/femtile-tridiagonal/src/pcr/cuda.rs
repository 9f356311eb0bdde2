use femtile_device::Scalar;
use femtile_device::cuda::{Cuda, Kernel, Launch, Program, RECIPROCAL_HEADER, Specialisation};
use femtile_linalg::LinalgError;

use crate::cuda::{Batch, EQUATION, LINES, RuleSource, Solve};
use crate::{Algorithm, BatchProblem, Ends};

static PCR: Program = Program {
    name: "tridiagonal_pcr",
    source: include_str!("pcr.cu"),
    headers: &[RECIPROCAL_HEADER, LINES, EQUATION],
};

const MAX_THREADS: usize = 512;
/// Shared memory of a block on every GPU from compute capability 8.0 on.
const SHARED_BYTES: usize = 96 << 10;

/// Bytes of shared memory of a system: three values a row, twice where rows are not reduced in place.
fn shared_bytes<T: Scalar>(problem: &BatchProblem) -> usize {
    let copies = if problem.algorithm == Algorithm::Cr { 1 } else { 2 };
    3 * copies * problem.lines.length * size_of::<T>()
}

fn specialisation<T: Scalar>(sweeps: bool, rule: &RuleSource) -> Specialisation {
    rule.define(PCR.of::<T>()).define("FEMTILE_PERIODIC", 0).define("FEMTILE_SWEEPS", u32::from(sweeps))
}

/// Refuses rings and lines that shared memory does not hold.
pub(crate) fn refuse<T: Scalar>(problem: &BatchProblem) -> Result<(), LinalgError> {
    let message = if problem.ends == Ends::Periodic {
        format!("`{}` solves open systems: choose `hybrid` or `thomas`", problem.algorithm)
    } else if shared_bytes::<T>(problem) > SHARED_BYTES {
        let (rows, name) = (problem.lines.length, problem.algorithm);
        format!("`{name}` keeps systems in shared memory, and {rows} rows are too many: choose `thomas`")
    } else {
        return Ok(());
    };
    Err(LinalgError::Setting { field: "algorithm", message })
}

/// Queues the solution of a batch.
pub(crate) fn solve<T: Scalar>(
    device: &Cuda,
    problem: &BatchProblem,
    batch: Batch<'_, T>,
) -> Result<(), LinalgError> {
    let program = specialisation::<T>(problem.algorithm == Algorithm::Cr, &batch.rule);
    let lines = &problem.lines;
    let threads = lines.length.next_multiple_of(32).min(MAX_THREADS) as u32;
    let launch = Launch::line(lines.n_lines(), threads).shared(shared_bytes::<T>(problem));
    let kernel = Kernel::<Solve<T>>::new("tridiagonal_pcr");
    // SAFETY: the solver has checked that the arrays hold what the lines reach; shared memory holds three values for
    // each row, twice where they are not reduced in place.
    Ok(unsafe { device.launch(&program, &kernel, launch, batch.arguments(lines)) }?)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let rule = RuleSource::none();
    [false, true]
        .into_iter()
        .flat_map(|sweeps| [specialisation::<f32>(sweeps, &rule), specialisation::<f64>(sweeps, &rule)])
        .collect()
}
