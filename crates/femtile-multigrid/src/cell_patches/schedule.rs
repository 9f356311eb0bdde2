//! Order in which the rows of a slab are processed.

use super::{PostOrder, parities};

/// Index of a row of patches.
pub(super) type Row = usize;

/// Returns how many rows to process at once so that few SIMD lanes are empty, for `n_patches` per row and colour.
pub(super) fn rows_per_batch(n_patches: usize, n_lanes: usize) -> usize {
    let n = n_patches.max(1);
    let unused = |rows: &usize| {
        let lanes = (rows * n).next_multiple_of(n_lanes);
        (lanes - rows * n) * 1000 / lanes
    };
    // More rows would exceed the near caches.
    (1..=n_lanes.div_ceil(n).max(4)).min_by_key(unused).unwrap_or(1)
}

/// Returns all `n` rows in order, up to `at_once` of one parity together: rows of the first parity in sequence, each
/// other row as soon as both neighbours are done.
pub(super) fn row_order(n: usize, order: PostOrder, at_once: usize) -> Vec<Vec<Row>> {
    let [first, second] = parities(order);
    let of = |parity: usize| (parity..n).step_by(2).collect::<Vec<Row>>();
    let mut waiting = of(second).into_iter().peekable();
    let mut turns = Vec::new();
    for rows in of(first).chunks(at_once) {
        let done = rows[rows.len() - 1];
        turns.push(rows.to_vec());
        let ready = std::iter::from_fn(|| waiting.next_if(|row| *row + 1 >= n || *row < done));
        turns.push(ready.collect());
    }
    turns.push(waiting.collect());
    turns.retain(|rows: &Vec<Row>| !rows.is_empty());
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_comes_once_and_after_its_neighbours_of_the_first_parity() {
        for order in [PostOrder::Same, PostOrder::Reversed] {
            let [first, _] = parities(order);
            for n in 0..12 {
                for at_once in 1..6 {
                    let turns = row_order(n, order, at_once);
                    let mut place = vec![usize::MAX; n];
                    for (turn, rows) in turns.iter().enumerate() {
                        assert!(rows.iter().all(|row| row % 2 == rows[0] % 2));
                        for row in rows {
                            assert_eq!(std::mem::replace(&mut place[*row], turn), usize::MAX);
                        }
                    }
                    assert!(place.iter().all(|turn| *turn < usize::MAX));
                    for row in (0..n).filter(|row| row % 2 != first) {
                        let near = [row.wrapping_sub(1), row + 1].into_iter().filter(|near| *near < n);
                        assert!(near.into_iter().all(|near| place[near] < place[row]), "{n} {at_once} {row}");
                    }
                }
            }
        }
    }

    #[test]
    fn short_rows_share_a_batch() {
        assert_eq!(rows_per_batch(24, 8), 1);
        assert_eq!(rows_per_batch(2, 8), 4);
        assert_eq!(rows_per_batch(20, 8), 2);
        assert_eq!(rows_per_batch(1, 16), 16);
        assert_eq!(rows_per_batch(0, 1), 1);
    }
}
