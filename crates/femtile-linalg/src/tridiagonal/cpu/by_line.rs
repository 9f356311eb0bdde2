//! Line by line, for algorithms that are there to be compared with.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use femtile_device::{Cpu, Scalar};

use super::failures::gather;
use super::sweep::Batch;
use crate::tridiagonal::reference::solve_line;

/// Entries below which a further thread costs more than it brings.
const MIN_ENTRIES: usize = 8192;

/// Solves a batch as the reference does, lines shared out between threads.
pub(super) fn solve<T: Scalar>(cpu: &Cpu, batch: &Batch<'_, T>) -> (u64, u64) {
    let lines = &batch.problem.lines;
    let (n, n_lines) = (lines.length, lines.n_lines());
    let (n_failed, first_failed) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    cpu.for_ranges(n_lines, MIN_ENTRIES.div_ceil(n), |part| {
        for line in part {
            let start = lines.start(line);
            // SAFETY: the arrays hold every entry of every line, and no other thread has this line.
            let entry = |row: usize| unsafe { batch.u.add(start + row * lines.stride) };
            // SAFETY: as above.
            let [a, b, c, d] = unsafe { gather(batch, line) };
            let solution = solve_line(batch.problem, &a, &b, &c, &d).unwrap_or_else(|row| {
                n_failed.fetch_add(1, Ordering::Relaxed);
                first_failed.fetch_min((line * n + row) as u64, Ordering::Relaxed);
                vec![T::from_f64(f64::NAN); n]
            });
            for (row, value) in solution.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { *entry(row) = value };
            }
        }
    });
    (n_failed.into_inner(), first_failed.into_inner())
}
