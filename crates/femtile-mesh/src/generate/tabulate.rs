use femtile_device::parallel;

use crate::MeshError;
use crate::interrupt::Interrupt;

/// Values that a thread writes at a time: few enough to share them evenly, enough to hide the cost of sharing.
const VALUES_PER_BLOCK: usize = 1 << 14;

/// Tabulates `n` entries of `width` values each by all threads; `write(i, values)` writes entry `i`.
///
/// # Errors
/// [`MeshError::Interrupted`]; asked in each block of entries.
pub(super) fn tabulate<T: Clone + Default + Send>(
    (n, width): (usize, usize),
    interrupt: Interrupt<'_>,
    write: impl Fn(usize, &mut [T]) + Sync,
) -> Result<Vec<T>, MeshError> {
    // Zeros come from the system untouched, so that the pages are first written, and placed, by the threads.
    let mut values = vec![T::default(); n * width];
    let per_block = (VALUES_PER_BLOCK / width).max(1);
    parallel::for_chunks_mut(&mut values, per_block * width, |begin, values| {
        if !interrupt.is_set() {
            values.chunks_exact_mut(width).zip(begin / width..).for_each(|(values, i)| write(i, values));
        }
    });
    interrupt.go_on()?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_a_loop_in_any_block() {
        for (n, width) in [(0, 3), (1, 1), (7, 24), (VALUES_PER_BLOCK + 1, 1), (1000, 97), (3, 40_000)] {
            let write = |i: usize, values: &mut [u32]| {
                values.iter_mut().zip(0..).for_each(|(v, j)| *v = i as u32 ^ j << 16)
            };
            let mut expected = vec![u32::MAX; n * width];
            expected.chunks_exact_mut(width).enumerate().for_each(|(i, values)| write(i, values));
            assert_eq!(tabulate((n, width), Interrupt::NEVER, write).unwrap(), expected, "{n} × {width}");
        }
        let stopped = tabulate((5, 1), Interrupt(Some(&|| true)), |_, _: &mut [u32]| ());
        assert!(matches!(stopped, Err(MeshError::Interrupted)));
    }
}
