//! Slivers whose nodes belong to several ranks.

use super::*;

/// Points of an axis of the cube.
const SIDE: usize = 12;

fn places(i: usize) -> [usize; 3] {
    [i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE]
}

/// The rows of a cube of points, one side of it held, in which every third square of four points along all axes has a sliver:
/// K s sᵀ with s = (1, −1, −1, 1).
fn cube(k: f64) -> Rows {
    let mut rows = vec![BTreeMap::new(); SIDE.pow(3)];
    let mut add = |nodes: &[usize], s: &[f64], k: f64| {
        let free = || nodes.iter().zip(s).filter(|(node, _)| !node.is_multiple_of(SIDE));
        for (&i, s_i) in free() {
            free().for_each(|(&j, s_j)| *rows[i].entry(j).or_insert(0.0) += k * s_i * s_j);
        }
    };
    for i in 0..SIDE.pow(3) {
        let at = places(i);
        for (d, step) in [1, SIDE, SIDE * SIDE].into_iter().enumerate() {
            if at[d] + 1 < SIDE {
                add(&[i, i + step], &[1.0, -1.0], 1.0);
            }
        }
        if at.iter().all(|x| x % 3 == 1 && x + 1 < SIDE) {
            add(&[i, i + 1, i + SIDE, i + SIDE + 1], &[1.0, -1.0, -1.0, 1.0], k);
        }
    }
    (0..rows.len()).step_by(SIDE).for_each(|i| rows[i] = BTreeMap::from([(i, 1.0)]));
    rows
}

/// Iterations for a right side of ones, and the number of modes of the first level.
fn iterations_and_modes(
    n_ranks: usize,
    owner: impl Fn([usize; 3]) -> usize + Sync,
    k: f64,
) -> (usize, usize) {
    let (iterations, hierarchy) = solve(n_ranks, &cube(k), |i| owner(places(i)), |_| 1.0);
    let [first, next, ..] = hierarchy.shapes() else { panic!("one level") };
    (iterations, next.n_rows - first.n_aggregates)
}

#[test]
fn slivers_across_borders_cost_hardly_more_iterations_than_on_one_rank() {
    for k in [1e3, 1e5] {
        let (of_one, n_modes) = iterations_and_modes(1, |_| 0, k);
        assert_eq!(n_modes, 2 * 4 * 4 * 4, "two of each sliver");
        // Borders go through slivers: along one axis, and along two, where each node of some has another rank.
        let halves = |at: [usize; 3]| usize::from(at[1] >= 5);
        let layers = |at: [usize; 3]| usize::from(at[1] >= 5) + usize::from(at[1] >= 8);
        let quarters = |at: [usize; 3]| usize::from(at[0] >= 5) + 2 * usize::from(at[1] >= 5);
        let of_ranks = [
            iterations_and_modes(2, halves, k),
            iterations_and_modes(3, layers, k),
            iterations_and_modes(4, quarters, k),
        ];
        for (n_ranks, ((iterations, modes), most)) in (2..).zip(of_ranks.into_iter().zip([1.25, 1.25, 1.5])) {
            assert_eq!(modes, n_modes, "{n_ranks} ranks");
            let is_few = iterations as f64 <= most * of_one as f64;
            assert!(is_few, "{iterations} iterations on {n_ranks} ranks, {of_one} on one, K = {k}");
        }
    }
}
