mod hard_matrices;
mod rigid_motions;
mod slivers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use femtile_comm::{Comm, DistributedMatrix, Halo, OwnedRows, threads};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use super::FEW_ROWS;
use crate::{Amg, AmgConfig, AmgError, Cycle, Hierarchy, LevelShape, PatchFormat, Smoother};

/// The entries of each row.
type Rows = Vec<BTreeMap<usize, f64>>;

/// Iterations to 1e-10 for the right side `b`, and the levels.
fn solve(
    n_ranks: usize,
    rows: &Rows,
    owner: impl Fn(usize) -> usize + Sync,
    b: impl Fn(usize) -> f64 + Sync,
) -> (usize, Hierarchy) {
    let found = Mutex::new(None);
    let work = |comm: Comm| -> Result<(), AmgError> {
        let entries = |i: usize| rows[i].iter().map(|(&j, &value)| (j, value)).collect();
        let (owned, matrix, halo) = of_rank(&comm, rows.len(), &owner, entries);
        let cpu = matrix.own.values().device().clone();
        let amg = Amg::<f64, Cpu>::on_ranks(&cpu, &matrix, &halo, None, &AmgConfig::default())?;
        let a = DistributedMatrix::new(Box::new(matrix.own), matrix.border, Arc::clone(&halo))?;
        let b = Buffer::from_vec(&cpu, owned.iter().map(|&i| b(i)).collect()).map_err(LinalgError::from)?;
        let mut x = Buffer::zeros(&cpu, owned.len()).map_err(LinalgError::from)?;
        let config = KrylovConfig { tolerance: 1e-10, max_iterations: 300, ..KrylovConfig::default() };
        let outcome = ConjugateGradient::new(config).solve(&mut x, &a, &amg, &b, &comm, &mut ())?;
        assert_eq!(outcome.stop, Stop::Converged);
        *found.lock().unwrap() = Some((outcome.iterations, amg.hierarchy().clone()));
        Ok(())
    };
    threads::run(n_ranks, work, work).unwrap();
    found.into_inner().unwrap().unwrap()
}

/// The rows of a rank of a matrix of `n` rows with these owners and entries, and the number of each.
fn of_rank(
    comm: &Comm,
    n: usize,
    owner: impl Fn(usize) -> usize,
    entries: impl Fn(usize) -> Vec<(usize, f64)>,
) -> (Vec<usize>, OwnedRows<f64>, Arc<Halo>) {
    OwnedRows::of_global(&Cpu::new(1).unwrap(), comm, n, owner, entries).unwrap()
}

/// The rows of a rank of the five-point stencil on a square of n × n nodes with Dirichlet values outside, in strips.
fn strip(comm: &Comm, n: usize) -> (Vec<usize>, OwnedRows<f64>, Arc<Halo>) {
    let owner = |i: usize| i / n * comm.n_ranks() / n;
    let entries = |i: usize| {
        let (row, column) = (i / n, i % n);
        let mut entries = vec![(i, 4.0)];
        if row > 0 {
            entries.push((i - n, -1.0));
        }
        if row + 1 < n {
            entries.push((i + n, -1.0));
        }
        if column > 0 {
            entries.push((i - 1, -1.0));
        }
        if column + 1 < n {
            entries.push((i + 1, -1.0));
        }
        entries
    };
    of_rank(comm, n * n, owner, entries)
}

/// One cycle as a matrix: applied to each unit vector, by all ranks.
fn cycle_matrix(n_ranks: usize, n: usize, (max_levels, cycle): (usize, Cycle)) -> Vec<Vec<f64>> {
    let all = Mutex::new(vec![vec![f64::NAN; n * n]; n * n]);
    let work = |comm: Comm| -> Result<(), AmgError> {
        let (owned, matrix, halo) = strip(&comm, n);
        let cpu = matrix.own.values().device().clone();
        let config = AmgConfig { coarse_rows: 4, max_levels, cycle, ..AmgConfig::default() };
        let amg = Amg::<f64, Cpu>::on_ranks(&cpu, &matrix, &halo, None, &config)?;
        for unit in 0..n * n {
            let r = owned.iter().map(|&i| f64::from(u8::from(i == unit))).collect();
            let r = Buffer::from_vec(&cpu, r).map_err(LinalgError::from)?;
            let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; owned.len()]).map_err(LinalgError::from)?;
            amg.apply(&mut z, &r)?;
            let mut all = all.lock().unwrap();
            owned.iter().zip(z.as_slice()).for_each(|(&i, &z)| all[unit][i] = z);
        }
        Ok(())
    };
    threads::run(n_ranks, work, work).unwrap();
    all.into_inner().unwrap()
}

#[test]
fn a_cycle_is_symmetric_and_positive_definite() {
    let n = 12;
    for (n_ranks, max_levels, cycle) in [
        (1, 20, Cycle::V),
        (2, 2, Cycle::V),
        (3, 20, Cycle::V),
        (3, 20, Cycle::W),
        (3, 1, Cycle::V),
        (12, 20, Cycle::V),
    ] {
        let m = cycle_matrix(n_ranks, n, (max_levels, cycle));
        let size = m.iter().flatten().fold(0.0, |most: f64, value| value.abs().max(most));
        for (i, row) in m.iter().enumerate() {
            assert!(row[i] > 0.0);
            for (j, other) in m[..i].iter().enumerate() {
                assert!((row[j] - other[i]).abs() < 1e-12 * size, "{n_ranks} ranks, {i} {j}");
            }
        }
        // Positive on some vectors of both signs.
        for k in 1..20 {
            let x: Vec<f64> = (0..n * n).map(|i| ((i * k * 7919) % 101) as f64 - 50.0).collect();
            let energy: f64 =
                (0..n * n).map(|i| (0..n * n).map(|j| x[i] * m[i][j] * x[j]).sum::<f64>()).sum();
            assert!(energy > 0.0);
        }
    }
}

#[test]
fn what_several_ranks_do_not_have_is_refused() {
    let work = |comm: Comm| -> Result<(), AmgError> {
        let (_, matrix, halo) = strip(&comm, 8);
        let cpu = matrix.own.values().device().clone();
        let default = AmgConfig::default;
        for (config, word) in [
            (AmgConfig { smoother: Smoother::GaussSeidel { sweeps: 1 }, ..default() }, "chebyshev"),
            (
                AmgConfig { smoother: Smoother::Patch { inner: 3, format: PatchFormat::Csr }, ..default() },
                "chebyshev",
            ),
        ] {
            let error =
                Amg::<f32, Cpu>::on_ranks(&cpu, &matrix, &halo, None, &config).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        Ok(())
    };
    threads::run(2, work, work).unwrap();
}
