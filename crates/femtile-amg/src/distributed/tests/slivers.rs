//! Slivers whose nodes belong to several ranks.

use std::collections::BTreeMap;

use femtile_comm::DistributedMatrix;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};

use super::*;

/// Points of an axis of the cube.
const SIDE: usize = 12;

fn places(i: usize) -> [usize; 3] {
    [i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE]
}

/// The rows of a cube of points, one side of it held, in which every third square of four points along all axes has a sliver:
/// K s sᵀ with s = (1, −1, −1, 1).
fn cube(k: f64) -> Vec<BTreeMap<usize, f64>> {
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

/// Iterations to 1e-10 for a right side of ones, and the number of modes of the first level.
fn solve(n_ranks: usize, owner: impl Fn([usize; 3]) -> usize + Sync, k: f64) -> (usize, usize) {
    let (rows, found) = (cube(k), Mutex::new((0, 0)));
    let work = |comm: Comm| -> Result<(), AmgError> {
        let entries = |i: usize| rows[i].iter().map(|(&j, &value)| (j, value)).collect();
        let (owned, matrix, halo) = of_rank(&comm, rows.len(), |i| owner(places(i)), entries);
        let cpu = matrix.own.values().device().clone();
        let amg = DistributedAmg::<f64, Cpu>::new(&cpu, &matrix, &halo, None, &AmgConfig::default())?;
        let a = DistributedMatrix::new(Box::new(matrix.own), matrix.border, Arc::clone(&halo))?;
        let b = Buffer::from_vec(&cpu, vec![1.0; owned.len()]).map_err(LinalgError::from)?;
        let mut x = Buffer::zeros(&cpu, owned.len()).map_err(LinalgError::from)?;
        let config = KrylovConfig { tolerance: 1e-10, max_iterations: 300, ..KrylovConfig::default() };
        let outcome = ConjugateGradient::new(config).solve(&mut x, &a, &amg, &b, &comm, &mut ())?;
        assert_eq!(outcome.stop, Stop::Converged);
        let [first, next, ..] = amg.shapes() else { panic!("one level") };
        *found.lock().unwrap() = (outcome.iterations, next.n_rows - first.n_aggregates);
        Ok(())
    };
    threads::run(n_ranks, work, work).unwrap();
    found.into_inner().unwrap()
}

#[test]
fn slivers_across_borders_cost_hardly_more_iterations_than_on_one_rank() {
    for k in [1e3, 1e5] {
        let (of_one, n_modes) = solve(1, |_| 0, k);
        assert_eq!(n_modes, 2 * 4 * 4 * 4, "two of each sliver");
        // Borders go through slivers: along one axis, and along two, where each node of some has another rank.
        let halves = |at: [usize; 3]| usize::from(at[1] >= 5);
        let layers = |at: [usize; 3]| usize::from(at[1] >= 5) + usize::from(at[1] >= 8);
        let quarters = |at: [usize; 3]| usize::from(at[0] >= 5) + 2 * usize::from(at[1] >= 5);
        let of_ranks =
            [(solve(2, halves, k), 1.25), (solve(3, layers, k), 1.25), (solve(4, quarters, k), 1.5)];
        for (n_ranks, ((iterations, modes), most)) in (2..).zip(of_ranks) {
            assert_eq!(modes, n_modes, "{n_ranks} ranks");
            let is_few = iterations as f64 <= most * of_one as f64;
            assert!(is_few, "{iterations} iterations on {n_ranks} ranks, {of_one} on one, K = {k}");
        }
    }
}
