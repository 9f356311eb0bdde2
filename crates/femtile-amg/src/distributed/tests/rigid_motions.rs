//! Nodes of several rows: a plate of springs with its rigid motions as near-nullspace.

use super::*;

/// Springs between neighbouring points of a lattice, also along diagonals, of the stiffness of their reciprocal length; points
/// with x = 0 are held.
struct Plate {
    /// Points along x and y.
    n: [usize; 2],
}

impl Plate {
    fn n_rows(&self) -> usize {
        2 * self.n[0] * self.n[1]
    }

    fn place(&self, row: usize) -> [usize; 2] {
        [row / 2 % self.n[0], row / 2 / self.n[0]]
    }

    /// The entries of a row, zeros within blocks of points included.
    fn entries(&self, row: usize) -> Vec<(usize, f64)> {
        let ([x, y], p) = (self.place(row), row % 2);
        if x == 0 {
            return vec![(row, 1.0)];
        }
        let (mut entries, mut own) = (Vec::new(), [0.0; 2]);
        for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
            let other = [x as i64 + dx, y as i64 + dy];
            let is_there = (0..2).all(|axis| (0..self.n[axis] as i64).contains(&other[axis]));
            if (dx, dy) == (0, 0) || !is_there {
                continue;
            }
            let (along, point) = ([dx as f64, dy as f64], other[1] as usize * self.n[0] + other[0] as usize);
            let length = along[0].hypot(along[1]);
            for q in 0..2 {
                let value = along[p] * along[q] / length.powi(3);
                own[q] += value;
                if other[0] > 0 {
                    entries.push((2 * point + q, -value));
                }
            }
        }
        let first = row - p;
        entries.extend([(first, own[0]), (first + 1, own[1])]);
        entries.sort_by_key(|entry| entry.0);
        entries
    }

    /// The values of both translations and of the rotation in a row.
    fn motions(&self, row: usize) -> [f64; 3] {
        let [x, y] = self.place(row).map(|at| at as f64 / self.n[0] as f64);
        match (self.place(row)[0], row % 2) {
            (0, _) => [0.0; 3],
            (_, 0) => [1.0, 0.0, -y],
            _ => [0.0, 1.0, x],
        }
    }
}

/// The rank of each point of a plate.
type Owner = fn([usize; 2], [usize; 2]) -> usize;

/// The rows, the multigrid and the numbers of rows of a rank.
type OfRank = (DistributedMatrix<f64, Cpu>, Amg<f64, Cpu>, Vec<usize>);

fn set_up(comm: &Comm, plate: &Plate, owner: Owner, config: &AmgConfig) -> Result<OfRank, AmgError> {
    let owner = |row: usize| owner(plate.place(row), plate.n);
    let (owned, matrix, halo) = of_rank(comm, plate.n_rows(), owner, |row| plate.entries(row));
    let cpu = matrix.own.values().device().clone();
    let motions: Vec<f64> = owned.iter().flat_map(|&row| plate.motions(row)).collect();
    let amg = Amg::on_ranks(&cpu, &matrix, &halo, Some(&motions), config)?;
    let a = DistributedMatrix::new(Box::new(matrix.own), matrix.border, halo)?;
    Ok((a, amg, owned))
}

/// Iterations to 1e-10 for a force along y, and the sizes of the levels.
fn solve_plate(n_ranks: usize, n: [usize; 2], owner: Owner, cycle: Cycle) -> (usize, Vec<LevelShape>) {
    let (plate, found) = (Plate { n }, Mutex::new((0, Vec::new())));
    let work = |comm: Comm| -> Result<(), AmgError> {
        let (a, amg, owned) =
            set_up(&comm, &plate, owner, &AmgConfig { cycle, ..AmgConfig::displacements(2) })?;
        let force = |&row: &usize| f64::from(u8::from(row % 2 == 1 && plate.place(row)[0] > 0));
        let b = Buffer::from_vec(a.device(), owned.iter().map(force).collect()).map_err(LinalgError::from)?;
        let mut x = Buffer::zeros(a.device(), owned.len()).map_err(LinalgError::from)?;
        let config = KrylovConfig { tolerance: 1e-10, max_iterations: 300, ..KrylovConfig::default() };
        let outcome = ConjugateGradient::new(config).solve(&mut x, &a, &amg, &b, &comm, &mut ())?;
        assert_eq!(outcome.stop, Stop::Converged);
        assert!(outcome.true_relative_residual < 1e-9);
        *found.lock().unwrap() = (outcome.iterations, amg.hierarchy().shapes().to_vec());
        Ok(())
    };
    threads::run(n_ranks, work, work).unwrap();
    found.into_inner().unwrap()
}

fn strips(n_ranks: usize) -> Owner {
    match n_ranks {
        2 => |[x, _], n| usize::from(2 * x >= n[0]),
        // The last rank has nothing.
        3 => |[x, _], n| usize::from(3 * x >= n[0]),
        _ => |[x, y], n| usize::from(2 * x >= n[0]) + 2 * usize::from(2 * y >= n[1]),
    }
}

#[test]
fn rigid_motions_take_about_the_iterations_of_one_rank() {
    for n in [[60, 40], [280, 240]] {
        let (of_one, _) = solve_plate(1, n, |_, _| 0, Cycle::V);
        for n_ranks in [2, 3, 4] {
            let (iterations, shapes) = solve_plate(n_ranks, n, strips(n_ranks), Cycle::V);
            let is_few = iterations as f64 <= 1.3 * of_one as f64 + 1.0;
            assert!(is_few, "{iterations} iterations on {n_ranks} ranks, {of_one} on one, {n:?}");
            // Of the larger plate two levels are divided.
            assert_eq!(shapes[1].n_rows > FEW_ROWS, n[0] == 280, "{shapes:?}");
            assert_eq!(shapes[1].n_rows, 3 * shapes[0].n_aggregates);
        }
    }
}

#[test]
fn k_cycles_take_fewer_iterations_on_ranks_too() {
    let n = [280, 240];
    let [v, k] = [Cycle::V, Cycle::K].map(|cycle| solve_plate(4, n, strips(4), cycle));
    assert!(k.1[1].n_rows > FEW_ROWS, "two levels are divided");
    assert!(k.0 < v.0, "{} iterations with K cycles, {} with V cycles", k.0, v.0);
}

#[test]
fn a_cycle_with_rigid_motions_is_symmetric() {
    let plate = Plate { n: [13, 11] };
    let vector = |k: usize| move |&row: &usize| ((row * k * 7919 + 13) % 101) as f64 - 50.0;
    let work = |comm: Comm| -> Result<(), AmgError> {
        let config = AmgConfig { coarse_rows: 12, ..AmgConfig::displacements(2) };
        let (a, amg, owned) = set_up(&comm, &plate, strips(4), &config)?;
        let x = [1, 2].map(|k| Buffer::from_vec(a.device(), owned.iter().map(vector(k)).collect()).unwrap());
        let z = x.each_ref().map(|x| {
            let mut z = Buffer::zeros(a.device(), owned.len()).unwrap();
            amg.apply(&mut z, x).unwrap();
            z
        });
        let dot = |i: usize, j: usize| x[i].as_slice().iter().zip(z[j].as_slice()).map(|(x, z)| x * z).sum();
        let mut sums = [dot(0, 1), dot(1, 0), dot(0, 0), dot(1, 1)];
        comm.sum_values(&mut sums)?;
        assert!(sums[2] > 0.0 && sums[3] > 0.0);
        assert!((sums[0] - sums[1]).abs() < 1e-12 * (sums[2] * sums[3]).sqrt(), "{sums:?}");
        Ok(())
    };
    threads::run(4, work, work).unwrap();
}

#[test]
fn nodes_on_two_ranks_and_wrong_vectors_are_refused() {
    let plate = Plate { n: [6, 5] };
    let work = |comm: Comm| -> Result<(), AmgError> {
        let cpu = Cpu::new(1).unwrap();
        let config = AmgConfig::displacements(2);
        let refused = |owner: &dyn Fn(usize) -> usize, n_vectors: usize| {
            let (owned, matrix, halo) = of_rank(&comm, plate.n_rows(), owner, |row| plate.entries(row));
            let vectors = vec![1.0; owned.len() * n_vectors];
            Amg::<f64, Cpu>::on_ranks(&cpu, &matrix, &halo, Some(&vectors), &config).unwrap_err().to_string()
        };
        let error = refused(&|row| usize::from(row > 30), 3);
        assert!(error.contains("give each node to one"), "{error}");
        let error = refused(&|row| usize::from(row >= 30), 2 + comm.rank());
        assert!(error.contains("different numbers of vectors"), "{error}");
        Ok(())
    };
    threads::run(2, work, work).unwrap();
}
