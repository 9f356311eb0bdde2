//! Passes over vectors between the precision of a solve and that of its cycles.

use femtile_device::Cpu;
use femtile_device::cpu::SharedMut;
use femtile_linalg::vector::sum::{BLOCK, block_dot, combine, n_blocks};
use femtile_tensor::Contract;

/// Blocks that a thread takes at least.
const MIN_BLOCKS: usize = 4;

/// Calls `work` with each element and the number of its place, on all threads.
fn each<T: Send>(cpu: &Cpu, x: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let n = x.len();
    let shared = SharedMut::new(x);
    cpu.for_ranges(n_blocks(n), MIN_BLOCKS, |blocks| {
        let range = blocks.start * BLOCK..(blocks.end * BLOCK).min(n);
        #[allow(unsafe_code)]
        // SAFETY: ranges of different threads do not meet.
        let part = unsafe { shared.range(range.clone()) };
        cpu.vectorize(
            #[inline(always)]
            || range.zip(part).for_each(|(at, x)| work(at, x)),
        );
    });
}

/// ‖x‖₂, with the same bits for any number of threads.
pub(crate) fn norm(cpu: &Cpu, x: &[f64]) -> f64 {
    combine(&of_blocks(cpu, x, |x| block_dot(x, x))).sqrt()
}

/// The largest magnitude; zero where there is none that is a number.
pub(crate) fn largest(cpu: &Cpu, x: &[f64]) -> f64 {
    let largest = |x: &[f64]| x.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    largest(&of_blocks(cpu, x, largest))
}

/// What `of_block` makes of each block.
fn of_blocks(cpu: &Cpu, x: &[f64], of_block: impl Fn(&[f64]) -> f64 + Sync) -> Vec<f64> {
    let mut found = vec![0.0; n_blocks(x.len())];
    let shared = SharedMut::new(&mut found);
    cpu.for_ranges(n_blocks(x.len()), MIN_BLOCKS, |blocks| {
        #[allow(unsafe_code)]
        // SAFETY: ranges of different threads do not meet.
        let found = unsafe { shared.range(blocks.clone()) };
        for (found, x) in found.iter_mut().zip(x[blocks.start * BLOCK..].chunks(BLOCK)) {
            *found = cpu.vectorize(
                #[inline(always)]
                || of_block(x),
            );
        }
    });
    found
}

/// $y = x / \alpha$ in another precision.
pub(crate) fn narrow<T: Contract>(cpu: &Cpu, y: &mut [T], alpha: f64, x: &[f64]) {
    each(cpu, y, |at, y| *y = T::from_f64(x[at] / alpha));
}

/// $y = \alpha x$ from another precision.
pub(crate) fn widen<T: Contract>(cpu: &Cpu, y: &mut [f64], alpha: f64, x: &[T]) {
    each(cpu, y, |at, y| *y = alpha * x[at].to_f64());
}

/// $y \leftarrow y + \alpha x$ from another precision.
pub(crate) fn add_wide<T: Contract>(cpu: &Cpu, y: &mut [f64], alpha: f64, x: &[T]) {
    each(cpu, y, |at, y| *y += alpha * x[at].to_f64());
}
