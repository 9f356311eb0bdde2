//! Matrices whose set-up needs more than strength of connection, as on one rank.

use super::*;

/// Points of a side of the grid.
const SIDE: usize = 60;

/// The five-point stencil on a square with Dirichlet values outside, and `more` rows without entries.
fn grid(more: usize) -> Rows {
    let n = SIDE * SIDE;
    let mut rows = vec![BTreeMap::new(); n + more];
    for i in 0..n {
        rows[i].insert(i, 4.0);
        for j in
            [(i % SIDE + 1 < SIDE).then_some(i + 1), (i + SIDE < n).then_some(i + SIDE)].into_iter().flatten()
        {
            rows[i].insert(j, -1.0);
            rows[j].insert(i, -1.0);
        }
    }
    rows
}

fn join(rows: &mut Rows, [i, j]: [usize; 2], weight: f64) {
    for (i, j) in [(i, j), (j, i)] {
        *rows[i].entry(i).or_insert(0.0) += weight;
        *rows[i].entry(j).or_insert(0.0) -= weight;
    }
}

/// Rows in turn, so that all ranks meet.
fn owner(i: usize) -> usize {
    i / (SIDE * SIDE / 3 + 7) % 3
}

#[test]
fn dense_rows_leave_the_levels_of_ranks_sparse() {
    let (n, mut rows) = (SIDE * SIDE, grid(4));
    for hub in 0..4 {
        (0..n).filter(|i| i % 4 == hub).for_each(|i| join(&mut rows, [i, n + hub], 1e-2));
    }
    let (iterations, hierarchy) = solve(3, &rows, owner, |_| 1.0);
    assert!(hierarchy.operator_complexity() < 1.7, "{hierarchy}");
    assert!(iterations < 30, "{iterations}");
}

#[test]
fn parts_that_nothing_holds_are_counted_on_ranks_as_on_one() {
    let (mut first, mut rows) = (SIDE * SIDE, grid(20));
    for (number, len) in [15, 2, 3].into_iter().enumerate() {
        (1..len).for_each(|i| join(&mut rows, [first + i - 1, first + i], 3.0_f64.powi(number as i32 - 4)));
        first += len;
    }
    // A right side in the range of the matrix.
    let x = |i: usize| ((i * 7919 + 13) % 101) as f64 - 50.0;
    let b = |i: usize| rows[i].iter().map(|(&j, value)| value * x(j)).sum();
    let of_one = solve(1, &rows, |_| 0, b);
    // The parts are divided as well.
    let of_ranks = solve(3, &rows, |i| if i < SIDE * SIDE { owner(i) } else { i / 2 % 3 }, b);
    assert_eq!([of_one.1.n_null(), of_ranks.1.n_null()], [3, 3]);
    assert!(of_ranks.0 < 25, "{} iterations, {} on one rank", of_ranks.0, of_one.0);
}
