use femtile_device::parallel;

/// Entries that a thread looks through at a time.
const ENTRIES_PER_BLOCK: usize = 1 << 14;

/// Returns the position of the first entry with a property, found by all threads.
pub(crate) fn first_where<T: Sync>(entries: &[T], has: impl Fn(&T) -> bool + Sync) -> Option<usize> {
    let of_block = |block: usize| {
        let begin = block * ENTRIES_PER_BLOCK;
        &entries[begin..entries.len().min(begin + ENTRIES_PER_BLOCK)]
    };
    // Without an early end the loop has no branches and is vectorized; hardly any block has the property.
    let any = |block: usize| of_block(block).iter().fold(false, |any, entry| any | has(entry));
    let block = parallel::first(entries.len().div_ceil(ENTRIES_PER_BLOCK), 1, any)?;
    of_block(block).iter().position(has).map(|place| block * ENTRIES_PER_BLOCK + place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_is_found_in_any_block() {
        for n in [0, 1, 2, ENTRIES_PER_BLOCK, 3 * ENTRIES_PER_BLOCK + 7] {
            let entries: Vec<usize> = (0..n).collect();
            for first in [0, 1, ENTRIES_PER_BLOCK - 1, ENTRIES_PER_BLOCK, n / 2, n] {
                let found = first_where(&entries, |&i| i == first || i > first && i % 3 == 0);
                assert_eq!(found, (first..n).next(), "{first} of {n}");
            }
        }
    }
}
