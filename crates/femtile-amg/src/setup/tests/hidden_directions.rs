//! Flat hexahedra and slivers, whose matrices hide the direction of strong coupling.

use super::super::evolution::Evolution;
use super::super::rank_matrix::RankMatrix;
use super::super::rows::{RowAccess, Rows};
use super::super::strength::Strength;
use super::{diagonal, entry, grid, product};
use crate::distributed::modes::local_modes;

/// $K \otimes M \otimes M + M \otimes K \otimes M + h^{-2} M \otimes M \otimes K$ on `n` points per axis:
/// trilinear hexahedra whose third side is h times the others, without conditions, except for a factor.
fn hexahedra(n: usize, h: f64) -> Rows<f64> {
    let is_end = |i: usize| i == 0 || i + 1 == n;
    let stiffness = |i: usize, j: usize| if i == j { if is_end(i) { 1.0 } else { 2.0 } } else { -1.0 };
    let mass = |i: usize, j: usize| if i == j { if is_end(i) { 2.0 } else { 4.0 } } else { 1.0 };
    let places = |row: usize| [row % n, row / n % n, row / (n * n)];
    let mut rows = Rows { n_cols: n * n * n, offsets: vec![0], columns: vec![], values: vec![] };
    for row in 0..n * n * n {
        for column in 0..n * n * n {
            let (at, to) = (places(row), places(column));
            if (0..3).all(|d| at[d].abs_diff(to[d]) <= 1) {
                let along = |axis: usize| -> f64 {
                    (0..3)
                        .map(|d| if d == axis { stiffness(at[d], to[d]) } else { mass(at[d], to[d]) })
                        .product()
                };
                rows.columns.push(column as u32);
                rows.values.push(along(0) + along(1) + along(2) / (h * h));
            }
        }
        rows.offsets.push(rows.columns.len());
    }
    rows
}

#[test]
fn evolution_connects_flat_hexahedra_along_their_short_side_alone() {
    let (n, ones) = (6, [1.0; 216]);
    let flat = hexahedra(n, 0.1);
    let by_size = Strength::new(&flat, &diagonal(&flat), 1, [0.04; 2], 1.0).graph;
    assert!(by_size.of(86).len() > 10, "sizes of entries tell it as well");
    let graph = Strength::of_scalars(&flat, &diagonal(&flat), &ones, None, None, [0.04; 2]).graph;
    for row in 0..n * n * n {
        let layer = row / (n * n);
        let below = (layer > 0).then(|| (row - n * n) as u32);
        let above = (layer + 1 < n).then_some((row + n * n) as u32);
        assert!(
            graph.of(row).iter().copied().eq(below.into_iter().chain(above)),
            "{row}: {:?}",
            graph.of(row)
        );
    }
}

/// The modes for constants as near-nullspace.
fn modes_of(a: &Rows<f64>, diagonal: &[f64]) -> Option<Rows<f64>> {
    let matrix = RankMatrix::whole(a.clone()).unwrap();
    let modes = local_modes(&matrix, diagonal, &vec![1.0; a.n_rows()]).unwrap();
    modes.map(|modes| modes.rows)
}

#[test]
fn evolution_leaves_matrices_without_large_positive_entries_alone() {
    for a in [hexahedra(5, 1.0), hexahedra(5, 0.8), grid(20)] {
        let ones = vec![1.0; a.n_rows()];
        let large = vec![true; a.columns.len()];
        assert!(Evolution::new(&a, &diagonal(&a), &ones, &large, None, |_| false).is_none());
        assert!(modes_of(&a, &diagonal(&a)).is_none());
    }
}

/// The grid with $K s s^\mathsf{T}$, s = (1, −1, −1, 1), on the corners of the square at row and column `at`.
fn sliver(side: usize, at: usize, k: f64) -> Rows<f64> {
    let mut a = grid(side);
    let first = side * at + at;
    let corners = [(first, 1.0), (first + 1, -1.0), (first + side, -1.0), (first + side + 1, 1.0)];
    let mut full: Vec<std::collections::BTreeMap<u32, f64>> = (0..a.n_rows())
        .map(|row| a.row(row).0.iter().copied().zip(a.row(row).1.iter().copied()).collect())
        .collect();
    for (i, s) in corners {
        for (j, t) in corners {
            *full[i].entry(j as u32).or_insert(0.0) += k * s * t;
        }
    }
    (a.offsets, a.columns, a.values) = (vec![0], vec![], vec![]);
    for row in full {
        a.columns.extend(row.keys());
        a.values.extend(row.values());
        a.offsets.push(a.columns.len());
    }
    a
}

#[test]
fn modes_of_a_sliver_are_those_that_it_does_not_see() {
    let (side, at) = (7, 2);
    let a = sliver(side, at, 1e4);
    let modes = modes_of(&a, &diagonal(&a)).unwrap();
    assert_eq!(modes.n_cols, 2, "three vectors, of which the constant is in the aggregates");
    for mode in 0..2 {
        let u: Vec<f64> = (0..49).map(|row| entry(&modes, row, mode)).collect();
        let energy: f64 = (0..49).map(|row| u[row] * product(&a, row, &u)).sum();
        let length: f64 = u.iter().map(|u| u * u).sum();
        assert!(length >= 1.0 && energy < 10.0 * length, "mode {mode}: energy {energy}");
    }
    // The grid has no modes, nor has a matrix that is singular to f32.
    assert!(modes_of(&grid(side), &[4.0; 49]).is_none());
    let steep = sliver(side, at, 1e15);
    assert!(modes_of(&steep, &diagonal(&steep)).is_none());
}
