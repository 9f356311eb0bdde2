use femtile_device::cpu::SharedMut;
use femtile_device::{Cpu, Scalar};

/// Fewest lines per thread.
const MIN_LINES: usize = 16;

/// Gathers r on each of `n` lines, applies `solve` and scatters the result to z, on all threads; `rows` returns the rows
/// of a line, and no two lines share one.
pub(super) fn each_line<'l, T: Scalar>(
    cpu: &Cpu,
    z: &mut [T],
    r: &[T],
    (n_lines, rows): (usize, impl Fn(usize) -> &'l [u32] + Sync),
    solve: impl Fn(usize, &mut [T]) + Sync,
) {
    let z = SharedMut::new(z);
    cpu.for_ranges(n_lines, MIN_LINES, |lines| {
        let mut values = Vec::new();
        for line in lines {
            values.clear();
            values.extend(rows(line).iter().map(|&row| r[row as usize]));
            solve(line, &mut values);
            for (&row, &value) in rows(line).iter().zip(&values) {
                let at = row as usize;
                // SAFETY: a row is in one line only, and one thread processes a line.
                let to = unsafe { z.range(at..at + 1) };
                to[0] = value;
            }
        }
    });
}
