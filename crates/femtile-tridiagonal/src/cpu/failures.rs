//! Lines that cannot be solved: found one by one, counted and filled with NaN.

use std::ops::Range;

use femtile_device::Scalar;

use super::sweep::{Batch, Source};
use crate::reference::solve_line;

/// The lower, diagonal and upper band and the right side of one line.
///
/// # Safety
/// The arrays hold every entry of every line, and no other thread writes this line.
pub(super) unsafe fn gather<T: Scalar>(batch: &Batch<'_, T>, line: usize) -> [Vec<T>; 4] {
    let (lines, n) = (&batch.problem.lines, batch.problem.lines.length);
    let column = |source: *const T, start: usize, stride: usize| {
        // SAFETY: what the caller promises.
        (0..n).map(|row| unsafe { *source.add(start + row * stride) }).collect::<Vec<T>>()
    };
    let d = column(batch.d, lines.start(line), lines.stride);
    let [a, b, c] = match batch.bands {
        Source::Arrays(bands) => bands.map(|band| column(band, lines.band_start(line), lines.band_stride)),
        Source::Rule(rule) => {
            let [mut a, mut b, mut c] = [0; 3].map(|_| vec![T::ZERO; n]);
            rule.fill(line..line + 1, 0..n, &mut a, &mut b, &mut c);
            [a, b, c]
        }
    };
    [a, b, c, d]
}

/// The lines of a panel that fail with the rows where they do, found while their right sides are still there.
///
/// # Safety
/// As [`gather`], for all of the lines.
#[cold]
#[inline(never)]
pub(super) unsafe fn look_for<T: Scalar>(batch: &Batch<'_, T>, lines: Range<usize>) -> Vec<(usize, usize)> {
    let failing = |line: usize| {
        // SAFETY: what the caller promises.
        let [a, b, c, d] = unsafe { gather(batch, line) };
        solve_line(batch.problem, &a, &b, &c, &d).err().map(|row| (line, row))
    };
    lines.filter_map(failing).collect()
}

/// Counts lines that failed and fills them with NaN, those of the panel whose solution is not finite included.
///
/// # Safety
/// `u` holds every entry of these lines, and no other thread has them.
#[cold]
#[inline(never)]
pub(super) unsafe fn mark<T: Scalar>(batch: &Batch<'_, T>, panel: Range<usize>, failed: &[(usize, usize)]) {
    let lines = &batch.problem.lines;
    for line in panel {
        let start = lines.start(line);
        // SAFETY: what the caller promises.
        let entry = |row: usize| unsafe { batch.u.add(start + row * lines.stride) };
        let found = failed.iter().find(|failed| failed.0 == line).map(|failed| failed.1);
        // SAFETY: as above.
        let left_range = || (0..lines.length).rev().find(|&row| !unsafe { *entry(row) }.is_finite());
        if let Some(row) = found.or_else(left_range) {
            batch.note_failure(line, row);
            for row in 0..lines.length {
                // SAFETY: as above.
                unsafe { *entry(row) = T::from_f64(f64::NAN) };
            }
        }
    }
}
