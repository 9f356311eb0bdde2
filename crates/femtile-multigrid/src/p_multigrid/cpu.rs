use femtile_device::cpu::SharedMut;
use femtile_device::{Cpu, Scalar};

/// Lines that a thread takes at least.
const MIN_LINES: usize = 16;

/// Puts what `solve` makes of the values of r on each of so many lines into z, on all threads; `rows` gives the rows of a line,
/// no two of which have one in common.
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
                // SAFETY: a row is in one line alone, and a line is taken by one thread.
                let to = unsafe { z.range(at..at + 1) };
                to[0] = value;
            }
        }
    });
}
