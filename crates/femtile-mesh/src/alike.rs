use femtile_device::parallel;

use crate::check::hash;

/// Passes on the numbers below `n` that share their key with others, those of each key together and ascending.
///
/// # Cost
/// A sort of 8 bytes per number by all threads.
pub(crate) fn for_each_alike(n: usize, key: &(dyn Fn(u32) -> [u32; 8] + Sync), each: &mut dyn FnMut(&[u32])) {
    let hash_of = |number: u32| hash(&key(number).map(i64::from)) >> 32 << 32 | u64::from(number);
    let mut hashes = parallel::map(n, parallel::CHEAP, |number| hash_of(number as u32));
    parallel::sort(&mut hashes);
    for group in hashes.chunk_by(|a, b| a >> 32 == b >> 32).filter(|group| group.len() > 1) {
        // Different keys may have the same hash.
        let mut numbers: Vec<u32> = group.iter().map(|&hash| hash as u32).collect();
        numbers.sort_unstable_by_key(|&number| (key(number), number));
        numbers.chunk_by(|&a, &b| key(a) == key(b)).filter(|alike| alike.len() > 1).for_each(&mut *each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_key_come_together() {
        for n in [0, 1, 2, 1009, 100_003] {
            // A third of the numbers have a key of their own, the others share keys with numbers far away.
            let key = |number: u32| {
                let shared = [number % 3, number % 1013, 0, 0, 0, 0, 0, 0];
                if number.is_multiple_of(3) { [0, number, 1, 0, 0, 0, 0, 0] } else { shared }
            };
            let mut expected = std::collections::BTreeMap::<_, Vec<u32>>::new();
            (0..n).for_each(|number| expected.entry(key(number)).or_default().push(number));
            let mut expected: Vec<_> = expected.into_values().filter(|alike| alike.len() > 1).collect();
            let mut found = Vec::new();
            for_each_alike(n as usize, &key, &mut |alike| found.push(alike.to_vec()));
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{n}");
        }
    }
}
