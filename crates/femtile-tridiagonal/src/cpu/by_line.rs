//! Line by line, for algorithms that are there to be compared with.

use femtile_device::{Cpu, Scalar};

use super::MIN_ENTRIES;
use super::failures::gather;
use super::sweep::Batch;
use crate::reference::solve_line;

/// Solves a batch as the reference does, lines shared out between threads.
pub(super) fn solve<T: Scalar>(cpu: &Cpu, batch: &Batch<'_, T>) -> (u64, u64) {
    let lines = &batch.problem.lines;
    let (n, n_lines) = (lines.length, lines.n_lines());
    cpu.for_ranges(n_lines, MIN_ENTRIES.div_ceil(n), |part| {
        for line in part {
            let start = lines.start(line);
            // SAFETY: the arrays hold every entry of every line, and no other thread has this line.
            let entry = |row: usize| unsafe { batch.u.add(start + row * lines.stride) };
            // SAFETY: as above.
            let [a, b, c, d] = unsafe { gather(batch, line) };
            let solution = solve_line(batch.problem, &a, &b, &c, &d).unwrap_or_else(|row| {
                batch.note_failure(line, row);
                vec![T::from_f64(f64::NAN); n]
            });
            for (row, value) in solution.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { *entry(row) = value };
            }
        }
    });
    batch.failures()
}
