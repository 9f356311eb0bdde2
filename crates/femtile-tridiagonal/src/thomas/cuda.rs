use femtile_device::cuda::{
    Cuda, Kernel, Launch, Program, RECIPROCAL_HEADER, Read, Specialisation, Structure, Write,
};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;

use crate::cuda::{Batch, EQUATION, LINES, RuleSource};
use crate::{Algorithm, BatchProblem, Ends, Lines, Stability};

static THOMAS: Program = Program {
    name: "tridiagonal_thomas",
    source: include_str!("thomas.cu"),
    headers: &[RECIPROCAL_HEADER, LINES, EQUATION],
};
static TRANSPOSED: Program = Program {
    name: "tridiagonal_thomas_transposed",
    source: include_str!("transposed.cu"),
    headers: &[RECIPROCAL_HEADER, LINES, EQUATION],
};
static PIVOTED: Program = Program {
    name: "tridiagonal_pivoted",
    source: include_str!("../pivoted/pivoted.cu"),
    headers: &[RECIPROCAL_HEADER, LINES, EQUATION],
};

const THREADS: usize = 128;
/// Threads of a multiprocessor that are in flight, at most.
const THREADS_OF_MULTIPROCESSOR: usize = 1024;
/// Bytes of scratch, at most, but for one block a multiprocessor.
const SCRATCH_BYTES: usize = 1 << 30;

/// The arguments of [`crate::cuda::Solve`], and scratch.
type Thomas<T> = (Write<T>, Read<T>, Read<T>, Read<T>, Read<T>, Structure, Write<u64>, Structure, Write<T>);

fn define(
    program: Specialisation,
    rule: &RuleSource,
    ends: Ends,
    variant: (&'static str, bool),
) -> Specialisation {
    rule.define(program)
        .define("FEMTILE_PERIODIC", u32::from(ends == Ends::Periodic))
        .define(variant.0, u32::from(variant.1))
}

/// Refuses lines whose tiles cannot be transposed.
pub(crate) fn refuse_transposing<T: Scalar>(
    problem: &BatchProblem,
    has_rule: bool,
) -> Result<(), LinalgError> {
    let lines = &problem.lines;
    let is_whole = |x: usize| x.is_multiple_of(16 / size_of::<T>());
    let in_packs = is_whole(lines.length)
        && lines.axes.iter().all(|axis| is_whole(axis.stride) && is_whole(axis.band_stride));
    let what = if lines.stride != 1 || lines.band_stride != 1 {
        "transposes contiguous lines, and these have strides: choose `thomas` or `hybrid`"
    } else if has_rule || problem.ends == Ends::Periodic {
        "reads the bands of open systems from arrays: choose `thomas` or `hybrid`"
    } else if problem.algorithm == Algorithm::ThomasShuffle && !in_packs {
        "moves packs of 16 bytes, and these lines do not begin and end with one: choose `thomas-shared`"
    } else {
        return Ok(());
    };
    Err(LinalgError::Setting { field: "algorithm", message: format!("`{}` {what}", problem.algorithm) })
}

/// Values of scratch for each row and thread.
fn scratch_arrays(problem: &BatchProblem, is_transposed: bool) -> usize {
    match (problem.stability, problem.ends) {
        (Stability::PartialPivoting, _) => 3,
        (_, Ends::Periodic) => 2,
        _ if is_transposed => 2,
        _ => 1,
    }
}

/// Blocks of threads that are in flight.
fn n_blocks<T: Scalar>(device: &Cuda, lines: &Lines, arrays: usize, wanted: usize) -> usize {
    let multiprocessors = device.properties().n_multiprocessors.max(1);
    let of_memory = SCRATCH_BYTES / (arrays * lines.length.max(1) * THREADS * size_of::<T>());
    wanted
        .min(multiprocessors * (THREADS_OF_MULTIPROCESSOR / THREADS))
        .min(of_memory.max(multiprocessors))
        .max(1)
}

/// Blocks that give each line to one thread.
fn wanted_blocks(problem: &BatchProblem) -> usize {
    let lines = &problem.lines;
    if problem.algorithm == Algorithm::ThomasGrid {
        let fastest = lines.axes[2].count.max(1);
        return fastest.div_ceil(32) * (lines.n_lines() / fastest).div_ceil(THREADS / 32);
    }
    lines.n_lines().div_ceil(THREADS)
}

/// Queues the solution of a batch.
pub(crate) fn solve<T: Scalar>(
    device: &Cuda,
    problem: &BatchProblem,
    batch: Batch<'_, T>,
    scratch: &mut Option<Buffer<T, Cuda>>,
) -> Result<(), LinalgError> {
    let is_transposed = matches!(problem.algorithm, Algorithm::ThomasShared | Algorithm::ThomasShuffle);
    let is_pivoted = problem.stability == Stability::PartialPivoting;
    let (program, name) = if is_pivoted {
        (
            define(PIVOTED.of::<T>(), &batch.rule, problem.ends, ("FEMTILE_PLANE", false)),
            "tridiagonal_pivoted",
        )
    } else if is_transposed {
        refuse_transposing::<T>(problem, batch.rule.is_rule())?;
        let by_shuffles = ("FEMTILE_SHUFFLE", problem.algorithm == Algorithm::ThomasShuffle);
        (
            define(TRANSPOSED.of::<T>(), &batch.rule, problem.ends, by_shuffles),
            "tridiagonal_thomas_transposed",
        )
    } else {
        let plane = ("FEMTILE_PLANE", problem.algorithm == Algorithm::ThomasGrid);
        (define(THOMAS.of::<T>(), &batch.rule, problem.ends, plane), "tridiagonal_thomas")
    };
    let arrays = scratch_arrays(problem, is_transposed);
    let blocks = n_blocks::<T>(device, &problem.lines, arrays, wanted_blocks(problem));
    let len = arrays * problem.lines.length * blocks * THREADS;
    let workspace = match scratch {
        Some(workspace) if workspace.len() >= len => workspace,
        _ => scratch.insert(Buffer::zeros(device, len)?),
    };
    let (u, d, a, b, c, lines, status, rule) = batch.arguments(&problem.lines);
    let arguments = (u, d, a, b, c, lines, status, rule, workspace.write());
    let launch = Launch::line(blocks, THREADS as u32);
    // SAFETY: the solver has checked that the arrays hold what the lines reach; scratch has `arrays` values for each
    // row and each thread of the launch.
    Ok(unsafe { device.launch(&program, &Kernel::<Thomas<T>>::new(name), launch, arguments) }?)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let mut all = kinds::<f32>();
    all.extend(kinds::<f64>());
    all
}

fn kinds<T: Scalar>() -> Vec<Specialisation> {
    let rule = RuleSource::none();
    let of = |program: &'static Program, ends, variant| define(program.of::<T>(), &rule, ends, variant);
    vec![
        of(&THOMAS, Ends::Open, ("FEMTILE_PLANE", false)),
        of(&THOMAS, Ends::Open, ("FEMTILE_PLANE", true)),
        of(&THOMAS, Ends::Periodic, ("FEMTILE_PLANE", false)),
        of(&TRANSPOSED, Ends::Open, ("FEMTILE_SHUFFLE", false)),
        of(&TRANSPOSED, Ends::Open, ("FEMTILE_SHUFFLE", true)),
        of(&PIVOTED, Ends::Open, ("FEMTILE_PLANE", false)),
    ]
}
