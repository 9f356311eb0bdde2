mod rigid_motions;
mod slivers;

use std::sync::Mutex;

use femtile_comm::threads;
use femtile_device::Cpu;

use super::*;

/// The rows of a rank of a matrix of `n` rows with these owners and entries, what others copy last, and the number of each.
fn of_rank(
    comm: &Comm,
    n: usize,
    owner: impl Fn(usize) -> usize,
    entries: impl Fn(usize) -> Vec<(usize, f64)>,
) -> (Vec<usize>, OwnedRows<f64>, Arc<Halo>) {
    let rank = comm.rank();
    let reaches = |i: &usize| entries(*i).iter().any(|(j, _)| owner(*j) != rank);
    let own = || (0..n).filter(|i| owner(*i) == rank);
    let owned: Vec<usize> = own().filter(|i| !reaches(i)).chain(own().filter(reaches)).collect();
    let others = own().flat_map(&entries).map(|(j, _)| j).filter(|&j| owner(j) != rank);
    let mut ghosts: Vec<(u32, u64)> = others.map(|j| (owner(j) as u32, j as u64)).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    let ids: Vec<u64> = owned.iter().map(|&i| i as u64).collect();
    let halo = Arc::new(Halo::new(comm, &ids, &ghosts).unwrap());
    let mut places = vec![usize::MAX; n];
    let all = owned.iter().copied().chain(ghosts.iter().map(|ghost| ghost.1 as usize));
    all.enumerate().for_each(|(place, i)| places[i] = place);
    let row = |&i: &usize| {
        let mut row: Vec<(usize, f64)> =
            entries(i).into_iter().map(|(j, value)| (places[j], value)).collect();
        row.sort_unstable_by_key(|(column, _)| *column);
        row
    };
    let rows: Vec<Vec<(usize, f64)>> = owned.iter().map(row).collect();
    let cpu = Cpu::new(1).unwrap();
    let matrix = OwnedRows::new(&cpu, [owned.len(), ghosts.len()], |row| rows[row].iter().copied()).unwrap();
    (owned, matrix, halo)
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
fn cycle_matrix(n_ranks: usize, n: usize, few_levels: bool) -> Vec<Vec<f64>> {
    let all = Mutex::new(vec![vec![f64::NAN; n * n]; n * n]);
    let work = |comm: Comm| -> Result<(), AmgError> {
        let (owned, matrix, halo) = strip(&comm, n);
        let cpu = matrix.own.values().device().clone();
        let config =
            AmgConfig { coarse_rows: 4, max_levels: if few_levels { 2 } else { 20 }, ..AmgConfig::default() };
        let amg = DistributedAmg::<f64, Cpu>::new(&cpu, &matrix, &halo, None, &config)?;
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
    for (n_ranks, few_levels) in [(1, false), (2, true), (3, false), (12, false)] {
        let m = cycle_matrix(n_ranks, n, few_levels);
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
            (AmgConfig { cycle: Cycle::W, ..default() }, "V cycles"),
        ] {
            let error =
                DistributedAmg::<f32, Cpu>::new(&cpu, &matrix, &halo, None, &config).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        Ok(())
    };
    threads::run(2, work, work).unwrap();
}
