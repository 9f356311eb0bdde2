//! Parts of a cycle in fewer launches than steps: corrections, and all levels of few rows at once.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need_product};
use femtile_sparse::ProductMatrix;
use femtile_sparse::csr::{Csr, Offsets};

use super::{THREADS, address};
use crate::AmgConfig;
use crate::kernels::Tail;
use crate::level::{Coarsest, Level};
use crate::relaxation::Relaxation;
use crate::vectors::Vectors;

static CORRECT: Program = Program {
    name: "amg_correct",
    source: include_str!("correct.cu"),
    headers: &[femtile_device::cuda::LANES_HEADER],
};
static TAIL: Program = Program {
    name: "amg_tail",
    source: include_str!("tail.cu"),
    headers: &[femtile_device::cuda::LANES_HEADER],
};
/// Lanes of a row of a prolongator.
const CORRECTING: usize = 4;
/// Lanes of a row and threads of a block of a tail, as the kernel has them.
const LANES: usize = 8;
const TAIL_THREADS: u32 = 512;
/// The most rows of a level of a tail, and of the inverse of the coarsest one.
const MOST_ROWS: usize = 5_000;
const MOST_INVERTED: usize = 600;
/// The most levels of a tail and steps of their smoother: each number of them is a program of its own.
const MOST_LEVELS: usize = 3;
const MOST_STEPS: usize = 4;
/// The most blocks: with more, waiting for all of them takes longer than they save.
const MOST_BLOCKS: usize = 32;
/// Fewer multiprocessors have one block.
const FEW_MULTIPROCESSORS: usize = 8;

type Correct<H> = (Write<H>, Read<H>, Structure);
type Run = (Write<u32>, Structure);

fn correct_program<H: Scalar>() -> Specialisation {
    CORRECT.of::<H>().define("FEMTILE_LANES", CORRECTING)
}

fn tail_program<H: Scalar>(n_levels: usize, n_steps: usize) -> Specialisation {
    let program = TAIL.of::<H>().define("FEMTILE_LANES", LANES);
    program.define("FEMTILE_LEVELS", n_levels).define("FEMTILE_DEGREE", n_steps)
}

/// Returns the programs of a cycle with a polynomial smoother.
pub(super) fn programs<H: Scalar>(config: &AmgConfig) -> Vec<Specialisation> {
    let n_steps = config.smoother.n_products() / 2;
    let tails = [1, 2].into_iter().filter(|_| (1..=MOST_STEPS).contains(&n_steps));
    std::iter::once(correct_program::<H>()).chain(tails.map(|n| tail_program::<H>(n, n_steps))).collect()
}

/// The programs of this file, for checks that compile all of them.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let tails = [(1, 2), (2, 2), (2, 1), (MOST_LEVELS, MOST_STEPS)];
    let tails =
        tails.map(|(levels, steps)| [tail_program::<f32>(levels, steps), tail_program::<f64>(levels, steps)]);
    [correct_program::<f32>(), correct_program::<f64>()]
        .into_iter()
        .chain(tails.into_iter().flatten())
        .collect()
}

/// Returns a matrix as kernels see it; none if its offsets have 64 bits.
fn rows<H: Scalar>(a: &Csr<H, Cuda>) -> Option<[u64; 4]> {
    let Offsets::Narrow(offsets) = a.offsets() else { return None };
    Some([address(offsets), address(a.columns()), address(a.values()), a.n_rows() as u64])
}

/// Computes $x \mathrel{+}= P e$ in one launch; false if the offsets have 64 bits.
pub(super) fn correct<H: Scalar>(
    x: &mut Buffer<H, Cuda>,
    p: &Csr<H, Cuda>,
    e: &Buffer<H, Cuda>,
) -> Result<bool, LinalgError> {
    need_product([p.n_rows(), p.n_cols()], x.len(), e.len())?;
    let Some(structure) = rows(p) else { return Ok(false) };
    let device = x.device().clone();
    let launch = Launch::over(CORRECTING * p.n_rows(), THREADS);
    let arguments = (x.write(), e.read(), Structure(structure.to_vec()));
    let kernel = Kernel::<Correct<H>>::new("amg_correct");
    // SAFETY: the lengths were checked, the structure of the matrix when it was made.
    unsafe { device.launch(&correct_program::<H>(), &kernel, launch, arguments) }?;
    Ok(true)
}

/// Runs all levels below one in one launch; false if they are too large, too many or of another kind.
pub(super) fn run_tail<H: Scalar>(device: &Cuda, tail: Tail<'_, H, Cuda>) -> Result<bool, LinalgError> {
    let Tail { restriction, residual, levels, coarsest, vectors } = tail;
    let Some(Relaxation::Polynomial { steps, .. }) = levels.first().map(|level| &level.relaxation) else {
        return Ok(false);
    };
    let n_steps = steps.len();
    let n_levels = levels.len();
    let Coarsest::Direct(inverse) = coarsest else { return Ok(false) };
    let most = restriction.n_rows();
    let is_small = most <= MOST_ROWS && inverse.n_rows() <= MOST_INVERTED;
    if !is_small || n_levels > MOST_LEVELS || !(1..=MOST_STEPS).contains(&n_steps) {
        return Ok(false);
    }
    let Some(words) = words((restriction, residual), levels, inverse, vectors, n_steps) else {
        return Ok(false);
    };
    let Some(Vectors { arrivals, .. }) = vectors.first_mut() else { return Ok(false) };
    let launch = Launch::line(blocks(device, most), TAIL_THREADS);
    let kernel = Kernel::<Run>::new("amg_tail");
    let arguments = (arrivals.write(), Structure(words));
    // SAFETY: matrices and vectors of a hierarchy fit each other; as many blocks as there are multiprocessors are on the GPU
    // at the same time, and the count of arrivals is a multiple of their number after each launch.
    unsafe { device.launch(&tail_program::<H>(n_levels, n_steps), &kernel, launch, arguments) }?;
    Ok(true)
}

/// Returns the blocks for levels of `most` rows: a power of two, and no more than multiprocessors.
fn blocks(device: &Cuda, most: usize) -> usize {
    let multiprocessors = device.properties().n_multiprocessors;
    if multiprocessors < FEW_MULTIPROCESSORS {
        return 1;
    }
    let wanted = (LANES * most).div_ceil(TAIL_THREADS as usize).next_power_of_two();
    wanted.min(MOST_BLOCKS).min(1 << multiprocessors.ilog2())
}

/// Returns the structure `Tail` of the kernel; none if a level is not in rows or has other steps.
fn words<H: Scalar>(
    (restriction, residual): (&Csr<H, Cuda>, &Buffer<H, Cuda>),
    levels: &[Level<H, Cuda>],
    inverse: &Csr<H, Cuda>,
    vectors: &[Vectors<H, Cuda>],
    n_steps: usize,
) -> Option<Vec<u64>> {
    let mut words = vec![address(residual)];
    let mut from_above = restriction;
    for (level, Vectors { own, .. }) in levels.iter().zip(vectors) {
        let ProductMatrix::Rows(a) = &level.a.own else { return None };
        let Relaxation::Polynomial { steps, inverse_diagonal } = &level.relaxation else { return None };
        if steps.len() != n_steps {
            return None;
        }
        for matrix in [a, from_above, &level.transfer.prolongation] {
            words.extend(rows(matrix)?);
        }
        let is_kept = steps.iter().any(|step| step.is_kept || step.beta != H::ZERO);
        let direction = if is_kept { address(&own.direction) } else { 0 };
        words.push(address(inverse_diagonal));
        words.extend([&own.b, &own.x, &own.next].map(address));
        words.push(direction);
        words.extend(steps.iter().map(|step| step.alpha.to_f64().to_bits()));
        words.extend(steps.iter().map(|step| step.beta.to_f64().to_bits()));
        from_above = &level.transfer.restriction;
    }
    let coarsest = &vectors.get(levels.len())?.own;
    for matrix in [from_above, inverse] {
        words.extend(rows(matrix)?);
    }
    words.extend([&coarsest.b, &coarsest.x].map(address));
    Some(words)
}
