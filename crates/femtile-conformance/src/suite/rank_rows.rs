//! Rows of ranks on a GPU: divided there, and the first level of multigrid that is made of them.

use std::sync::Arc;

use femtile::amg::{Amg, AmgConfig, AmgKernels};
use femtile::comm::{Comm, Halo, OwnedRows, RankKernels, threads};
use femtile::device::{Buffer, Cpu, Cuda};
use femtile::linalg::sparse::csr::{Csr, HostOffsets};
use femtile::linalg::{LinalgError, Preconditioner};

use super::Scope;
use super::problems::Random;

/// The matrix of a part: some columns of each row; some entries of ghosts are zero.
fn part(cpu: &Cpu, [n_owned, n_ghosts]: [usize; 2]) -> Csr<f64, Cpu> {
    let (n, mut random) = (n_owned + n_ghosts, Random::new(n_owned as u64));
    let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let before = columns.len();
        for column in 0..n {
            if column != row && random.below(9) > 0 {
                continue;
            }
            columns.push(column as u32);
            let is_zero = column >= n_owned && random.below(3) == 0;
            values.push(if is_zero { 0.0 } else { random.unit() });
        }
        lengths.push(columns.len() - before);
    }
    Csr::from_parts(cpu, n, HostOffsets::from_row_lengths(lengths.into_iter()), columns, values).unwrap()
}

/// A GPU divides the rows of a part as the host does.
pub fn divided_rows_are_those_of_the_host(device: &Cuda, scope: &Scope) {
    let cpu = Cpu::new(1).unwrap();
    let large = if scope.has_every_kind { [5_003, 401] } else { [301, 43] };
    for counts in [[0, 0], [1, 0], [1, 1], [2, 3], [0, 4], [127, 1], [129, 0], large] {
        let a = part(&cpu, counts);
        let expected = OwnedRows::from_local_rows(&cpu, &a, counts[0]).unwrap();
        let found = device.divide(a.copy_to(device).unwrap(), counts[0]).unwrap();
        for (found, expected) in [(&found.own, &expected.own), (&found.border, &expected.border)] {
            let found = found.copy_to(&cpu).unwrap();
            assert_eq!([found.n_rows(), found.n_cols()], [expected.n_rows(), expected.n_cols()]);
            assert_eq!(found.row_lengths(), expected.row_lengths());
            assert_eq!(found.columns().as_slice(), expected.columns().as_slice());
            assert_eq!(found.values().as_slice(), expected.values().as_slice());
        }
        let few = a.copy_to(device).unwrap();
        assert!(device.divide(few, counts[0] + counts[1] + 1).is_err());
    }
}

/// The sum of each row.
const SHIFT: f64 = 1e-5;

/// The seven-point matrix of layers of `n`² points, which are dealt out to ranks.
struct Layered {
    n: usize,
    layers: usize,
    /// K of slivers, K s sᵀ with s = (1, −1, −1, 1), within halves of the layers, and between them.
    slivers: Option<[f64; 2]>,
}

impl Layered {
    fn entries(&self, node: usize) -> Vec<(usize, f64)> {
        let Self { n, layers, .. } = *self;
        let at = [node % n, node / n % n, node / (n * n)];
        let mut entries = Vec::new();
        for (axis, (most, step)) in [(n, 1), (n, n), (layers, n * n)].into_iter().enumerate() {
            entries.extend((at[axis] > 0).then(|| (node - step, -1.0)));
            entries.extend((at[axis] + 1 < most).then(|| (node + step, -1.0)));
        }
        // Of all rows the sum is the same, so small that smoothing hardly changes constants.
        entries.push((node, entries.len() as f64 + SHIFT));
        self.add_sliver(node, &mut entries);
        entries
    }

    /// Adds the sliver of a node, if it has one: every third square along y, in every fourth layer.
    fn add_sliver(&self, node: usize, entries: &mut Vec<(usize, f64)>) {
        let Some([within, between]) = self.slivers else { return };
        let [y, z] = [node / self.n % self.n, node / (self.n * self.n)];
        let [Some(above), Some(beside)] = [(z % 4).checked_sub(1), (y % 3).checked_sub(1)] else { return };
        if above > 1 {
            return;
        }
        let steps = [0, self.n, self.n * self.n, self.n * (self.n + 1)];
        let signs = [1.0, -1.0, -1.0, 1.0];
        let corner = 2 * above + beside;
        let k = if 2 * (z - above + 1) == self.layers { between } else { within };
        for (step, sign) in steps.into_iter().zip(signs) {
            let (other, value) = (node - steps[corner] + step, k * signs[corner] * sign);
            match entries.iter_mut().find(|entry| entry.0 == other) {
                Some(entry) => entry.1 += value,
                None => entries.push((other, value)),
            }
        }
    }

    /// The sum of all entries.
    fn energy_of_constants(&self) -> f64 {
        (self.n * self.n * self.layers) as f64 * SHIFT
    }

    /// The rank of a node: layers are divided, those of four ranks in two directions, so that all of them meet.
    fn owner(&self, node: usize, n_ranks: usize) -> usize {
        let (y, z) = (node / self.n % self.n, node / (self.n * self.n));
        match n_ranks {
            4 => 2 * (2 * y / self.n) + 2 * z / self.layers,
            _ => z * n_ranks / self.layers,
        }
    }

    fn of_rank(&self, cpu: &Cpu, comm: &Comm) -> (Vec<usize>, OwnedRows<f64>, Arc<Halo>) {
        let n = self.n * self.n * self.layers;
        let owner = |node: usize| self.owner(node, comm.n_ranks());
        OwnedRows::of_global(cpu, comm, n, owner, |node| self.entries(node)).unwrap()
    }
}

/// The first level of ranks is made on their GPU, with about as many aggregates as on the host, and a cycle with it is symmetric.
pub fn first_levels_of_ranks_are_made_there(device: &Cuda, scope: &Scope) {
    let box_of = if scope.has_every_kind {
        Layered { n: 24, layers: 40, slivers: None }
    } else {
        Layered { n: 12, layers: 44, slivers: None }
    };
    for n_ranks in [2, 3, 4] {
        let work = |comm: Comm| -> Result<(), LinalgError> {
            let comm = comm.with_gpu(device)?;
            let cpu = Cpu::new(1)?;
            let (owned, host, halo) = box_of.of_rank(&cpu, &comm);
            let matrix = OwnedRows { own: host.own.copy_to(device)?, border: host.border.copy_to(device)? };
            let config = AmgConfig::default();
            let rows = (&matrix, &halo);
            let first = device.amg_coarsen_on_ranks(rows, None, [0.04, 0.01], &config)?;
            let first = first.expect("the host made the first level");
            let rows = (&first.coarse.split(device)?, first.coarse.halo());
            let next = device.amg_coarsen_on_ranks(rows, Some(&first.nodes), [0.01, 0.005], &config)?;
            let next = next.expect("the host made the next level");
            // Prolongators reproduce constants, and their products are Galerkin's: constants have the same energy on all levels.
            let constants = box_of.energy_of_constants();
            for (number, level) in [&first, &next].into_iter().enumerate() {
                let weights = level.nodes.weights.to_host()?;
                let b: Vec<f64> = weights.into_iter().map(|weight| f64::from(weight).sqrt()).collect();
                let energy = level.coarse.energy(&b)?;
                let is_near = (energy - constants).abs() <= 1e-4 * constants;
                assert!(is_near, "{n_ranks} ranks, level {}: {energy} and {constants}", number + 1);
            }
            let of_gpu = Amg::<f64, Cuda>::on_ranks(device, &matrix, &halo, None, &config).unwrap();
            let of_host = Amg::<f64, Cpu>::on_ranks(&cpu, &host, &halo, None, &config).unwrap();
            let [found, expected] = [of_gpu.hierarchy().shapes(), of_host.hierarchy().shapes()]
                .map(|shapes| shapes[1].n_rows as f64);
            assert!(
                (0.7..1.4).contains(&(found / expected)),
                "{found} rows of level 1, {expected} of the host"
            );
            let mut random = Random::new(comm.rank() as u64);
            let mut vector = || owned.iter().map(|_| random.unit()).collect::<Vec<f64>>();
            let cycle = |r: &[f64]| -> Result<Vec<f64>, LinalgError> {
                let r = Buffer::from_host(device, r)?;
                let mut z = Buffer::from_vec(device, vec![f64::NAN; r.len()])?;
                of_gpu.apply(&mut z, &r)?;
                Ok(z.to_host()?)
            };
            let dot = |x: &[f64], y: &[f64]| -> Result<f64, LinalgError> {
                let mut sum = [x.iter().zip(y).map(|(x, y)| x * y).sum()];
                comm.sum_values(&mut sum)?;
                Ok(sum[0])
            };
            let (x, y) = (vector(), vector());
            let (mx, my) = (cycle(&x)?, cycle(&y)?);
            let (one, other, size) = (dot(&mx, &y)?, dot(&my, &x)?, dot(&mx, &x)?);
            assert!((one - other).abs() <= 1e-11 * size, "{n_ranks} ranks: {one} and {other}, {size}");
            assert!(size > 0.0);
            // Buffers of the cycle are read by others until their values have come.
            comm.all_gather(&[0_u8]).map(drop)
        };
        threads::run(n_ranks, work, work).unwrap();
    }
}

/// The host makes the levels of slivers also where none of them has a positive entry within a rank; positive entries that are
/// smaller leave levels to the GPUs.
pub fn slivers_between_ranks_are_left_to_the_host(device: &Cuda, _: &Scope) {
    for (between, is_for_host) in [(3.0, false), (1e3, true)] {
        let box_of = Layered { n: 12, layers: 44, slivers: Some([3.0, between]) };
        let work = |comm: Comm| -> Result<(), LinalgError> {
            let comm = comm.with_gpu(device)?;
            let cpu = Cpu::new(1)?;
            let (_, host, halo) = box_of.of_rank(&cpu, &comm);
            let matrix = OwnedRows { own: host.own.copy_to(device)?, border: host.border.copy_to(device)? };
            let config = AmgConfig::default();
            let first = device.amg_coarsen_on_ranks((&matrix, &halo), None, [0.04, 0.01], &config)?;
            assert_eq!(first.is_none(), is_for_host, "K = {between}");
            Ok(())
        };
        threads::run(2, work, work).unwrap();
    }
}

/// The rows of a rank with two unknowns in place of each one, coupled with each other: definite, as the rows are.
fn doubled(
    cpu: &Cpu,
    (scalar, halo): (&OwnedRows<f64>, &Halo),
) -> Result<(OwnedRows<f64>, Arc<Halo>), LinalgError> {
    let (n, first) = (halo.n_owned(), halo.n_owned() - scalar.border.n_rows());
    let entries = |row: usize| {
        let (node, c) = (row / 2, row % 2);
        let border = node.checked_sub(first).into_iter().flat_map(|row| scalar.border.row(row));
        let of_node = scalar.own.row(node).chain(border.map(move |(ghost, value)| (n + ghost, value)));
        of_node.flat_map(move |(column, value)| {
            (0..2).map(move |d| (2 * column + d, if c == d { value } else { 0.25 * value }))
        })
    };
    let rows = OwnedRows::new(cpu, [2 * n, 2 * halo.n_ghosts()], entries)?;
    let exports = halo.exports().iter().map(|(to, places)| {
        (*to, places.iter().flat_map(|&place| [2 * place, 2 * place + 1]).collect::<Vec<u32>>())
    });
    let imports: Vec<(usize, usize)> =
        halo.imports().iter().map(|(from, ghosts)| (*from, 2 * ghosts.len())).collect();
    let halo = Halo::of_known(halo.comm(), 2 * n, exports.collect(), &imports)?;
    Ok((rows, Arc::new(halo)))
}

/// Levels of nodes with several rows are set up on hosts; a cycle with them on the GPUs of ranks is that on hosts.
pub fn cycles_of_nodes_on_ranks_are_those_of_the_host(device: &Cuda, _: &Scope) {
    let box_of = Layered { n: 8, layers: 14, slivers: None };
    let work = |comm: Comm| -> Result<(), LinalgError> {
        let comm = comm.with_gpu(device)?;
        let cpu = Cpu::new(1)?;
        let (owned, scalar, halo) = box_of.of_rank(&cpu, &comm);
        let (host, halo) = doubled(&cpu, (&scalar, &halo))?;
        let matrix = OwnedRows { own: host.own.copy_to(device)?, border: host.border.copy_to(device)? };
        let along = |node: usize| (node / 64) as f64 - 6.5;
        let vectors: Vec<f64> = owned
            .iter()
            .flat_map(|&node| [[1.0, 0.0, along(node)], [0.0, 1.0, -along(node)]].concat())
            .collect();
        let (config, vectors) = (AmgConfig::displacements(2), Some(&*vectors));
        let of_gpu = Amg::<f64, Cuda>::on_ranks(device, &matrix, &halo, vectors, &config).unwrap();
        let of_host = Amg::<f64, Cpu>::on_ranks(&cpu, &host, &halo, vectors, &config).unwrap();
        let shapes = of_host.hierarchy().shapes();
        assert_eq!(of_gpu.hierarchy().shapes(), shapes);
        assert_eq!(shapes[1].n_rows, 3 * shapes[0].n_aggregates);
        let mut random = Random::new(comm.rank() as u64);
        let r: Vec<f64> = (0..2 * owned.len()).map(|_| random.unit()).collect();
        let mut found = Buffer::from_vec(device, vec![f64::NAN; r.len()])?;
        let mut expected = Buffer::from_vec(&cpu, vec![f64::NAN; r.len()])?;
        of_gpu.apply(&mut found, &Buffer::from_host(device, &r)?)?;
        of_host.apply(&mut expected, &Buffer::from_host(&cpu, &r)?)?;
        let most = expected.as_slice().iter().fold(0.0, |most: f64, value| value.abs().max(most));
        let pairs = || found.to_host().into_iter().flatten().zip(expected.as_slice().iter().copied());
        assert!(pairs().all(|(found, expected)| (found - expected).abs() <= 1e-11 * most));
        // Buffers of the cycle are read by others until their values have come.
        comm.all_gather(&[0_u8]).map(drop)
    };
    threads::run(3, work, work).unwrap();
}
