//! Levels of multigrid that a device sets up: each part against what it is defined to be, by plain loops.

use std::collections::BTreeSet;

use femtile::amg::{
    Amg, AmgConfig, AmgKernels, AmgSolver, Coarsened, DeviceAggregates as Groups, Graph, Grouping,
    PatchFormat, PatchKernels, PatchSmoother, Smoother,
};
use femtile::device::{Buffer, Device, Reference, Scalar};
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::{LinearOperator, Preconditioner};

use super::Scope;
use super::amg::AmgDevice;
use super::problems::{CsrArrays, Random, laplacian};

/// Constants of the set-up: Jacobi damping, and the margin of eigenvalues over their estimate.
pub(super) const DAMPING: f64 = 1.4;
pub(super) const HARMLESS: f64 = 1.25;

/// A graph Laplacian on n nodes joined to near ones, some to none, some weakly or hardly; `reach` sets how many neighbours there
/// are.
pub(super) fn network<T: Scalar>(n: usize, reach: usize, random: &mut Random) -> CsrArrays<T> {
    let mut rows = vec![std::collections::BTreeMap::new(); n];
    for i in 0..n {
        *rows[i].entry(i).or_insert(0.0) += 1e-2;
        for _ in 0..reach {
            let j = i + 1 + random.below(2 * reach);
            if j >= n || i % 97 == 5 || j % 97 == 5 {
                continue;
            }
            let weight = match random.below(5) {
                0 => 1e-4,
                1 => 2e-2,
                _ => 1.0 + 0.5 * random.unit(),
            };
            for (a, b) in [(i, j), (j, i)] {
                *rows[a].entry(b).or_insert(0.0) -= weight;
                *rows[a].entry(a).or_insert(0.0) += weight;
            }
        }
    }
    CsrArrays::from_rows(n, rows.into_iter().map(|row| row.into_iter().collect()).collect())
}

fn problems<T: Scalar>(scope: &Scope) -> Vec<CsrArrays<T>> {
    let mut random = Random::new(21);
    let n = scope.side * scope.side;
    vec![
        laplacian(scope.side, &mut random),
        network(n, 3, &mut random),
        network(n + 1, 20, &mut random),
        network(2, 1, &mut random),
        network(1, 1, &mut random),
    ]
}

/// A matrix by rows on the host.
pub(super) struct Rows(pub Vec<Vec<(usize, f64)>>);

impl Rows {
    pub(super) fn of<T: Scalar, D: Device>(a: &Csr<T, D>) -> Self {
        let host = a.copy_to(&Reference).unwrap();
        let row = |row| host.row(row).map(|(column, value)| (column, value.to_f64())).collect();
        Self((0..host.n_rows()).map(row).collect())
    }

    pub(super) fn entry(&self, row: usize, column: usize) -> f64 {
        self.0[row].iter().find(|(c, _)| *c == column).map_or(0.0, |(_, value)| *value)
    }

    pub(super) fn diagonal(&self, row: usize) -> f64 {
        self.entry(row, row)
    }

    fn ascends(&self) -> bool {
        self.0.iter().all(|row| row.is_sorted_by(|a, b| a.0 < b.0))
    }

    /// Strong neighbours of a row.
    pub(super) fn strong(&self, row: usize, theta: f64) -> Vec<usize> {
        let is_strong = |&(column, value): &(usize, f64)| {
            let least = theta * theta * self.diagonal(row) * self.diagonal(column);
            column != row && value * value > least && value != 0.0
        };
        self.0[row].iter().copied().filter(is_strong).map(|(column, _)| column).collect()
    }
}

/// One level, in the precision `H`; whether the device makes it.
fn level<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    a: &Csr<H, D>,
    thresholds: [f64; 2],
    tolerance: f64,
) -> bool {
    let [of_graph, of_smoothing] = thresholds;
    let config = AmgConfig::default();
    let Some(made) = device.amg_coarsen(a, None, thresholds, &config, Grouping::Connections).unwrap() else {
        return false;
    };
    let rows = Rows::of(a);
    let groups = made.parts.of_node().to_host().unwrap();
    scaling_bounds_the_spectrum(device, a, &rows, &made, tolerance);
    let p = Rows::of(&made.p);
    transpose_and_product(&rows, &p, &made, tolerance);
    if made.nodes.from_doubtful.is_some() {
        // Evolution, not the size of entries, has chosen connections.
        return true;
    }
    groups_are_connected_and_cover(&rows, &made.parts, &groups, of_graph);
    let all = AmgConfig { least_aggregate: 1, ..AmgConfig::default() };
    let parts = device
        .amg_coarsen(a, None, thresholds, &all, Grouping::Connections)
        .unwrap()
        .expect("the same")
        .parts;
    groups_are_those_of_the_reference(&rows, &parts.of_node().to_host().unwrap(), of_graph);
    prolongator_is_the_smoothed_constant(&rows, &p, &made, &groups, of_smoothing, tolerance);
    let again =
        device.amg_coarsen(a, None, thresholds, &config, Grouping::Connections).unwrap().expect("the same");
    assert_eq!(made.coarse.values().to_host().unwrap(), again.coarse.values().to_host().unwrap());
    let kept = device
        .amg_coarsen(a, None, thresholds, &config, Grouping::Known(&made.parts))
        .unwrap()
        .expect("the same");
    assert_eq!(made.p.values().to_host().unwrap(), kept.p.values().to_host().unwrap());
    true
}

pub(super) fn groups_are_connected_and_cover<D: Device>(
    rows: &Rows,
    parts: &Groups<D>,
    groups: &[u32],
    theta: f64,
) {
    let mut members = vec![BTreeSet::new(); parts.n()];
    for (node, &group) in groups.iter().enumerate() {
        let is_alone = rows.strong(node, theta).is_empty();
        assert_eq!(group == u32::MAX, is_alone, "node {node}");
        if !is_alone {
            members[group as usize].insert(node);
        }
    }
    for inside in members {
        let first = *inside.first().expect("a group has nodes");
        let (mut reached, mut ring) = (BTreeSet::from([first]), vec![first]);
        while let Some(node) = ring.pop() {
            let near = rows.strong(node, theta).into_iter();
            ring.extend(near.filter(|other| inside.contains(other) && reached.insert(*other)));
        }
        assert_eq!(reached, inside, "a group is not connected");
    }
}

/// Compares groups, none of which is dissolved, with those that the reference makes of strong connections.
fn groups_are_those_of_the_reference(rows: &Rows, groups: &[u32], theta: f64) {
    let n = groups.len();
    let joined =
        (0..n).flat_map(|i| rows.strong(i, theta).into_iter().flat_map(move |j| [i as u32, j as u32]));
    let graph = Graph::from_cells(n, 2, &joined.collect::<Vec<_>>()).unwrap();
    let expected = PatchKernels::<f32>::patch_partition(&Reference, &graph, 1).unwrap();
    assert_eq!(groups, expected.expect("the reference leaves nothing out").of_node);
}

fn scaling_bounds_the_spectrum<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    a: &Csr<H, D>,
    rows: &Rows,
    made: &Coarsened<H, D>,
    tolerance: f64,
) {
    let inverse = made.inverse_diagonal.to_host().unwrap();
    for (row, inverse) in inverse.iter().enumerate() {
        let sum: f64 = rows.0[row].iter().map(|(_, value)| value.abs()).sum();
        let expected = rows.diagonal(row).max(sum / (HARMLESS * made.largest));
        assert!((inverse.to_f64() * expected - 1.0).abs() < 10.0 * tolerance, "row {row}");
    }
    let mut random = Random::new(3);
    let (mut v, mut found) = (random.vector::<H>(rows.0.len()), 0.0);
    for _ in 0..30 {
        let mut product = Buffer::zeros(device, v.len()).unwrap();
        a.apply(&mut product, &Buffer::from_host(device, &v).unwrap()).unwrap();
        let w: Vec<f64> =
            product.to_host().unwrap().iter().zip(&inverse).map(|(y, d)| y.to_f64() * d.to_f64()).collect();
        let size = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
        found = size(&mut w.iter().copied()) / size(&mut v.iter().map(|x| x.to_f64()));
        let scale = 1.0 / size(&mut w.iter().copied());
        v = w.iter().map(|x| H::from_f64(scale * x)).collect();
    }
    assert!(found <= HARMLESS * made.largest, "{} of {found}", made.largest);
}

fn prolongator_is_the_smoothed_constant<H: Scalar, D: AmgKernels<H>>(
    rows: &Rows,
    p: &Rows,
    made: &Coarsened<H, D>,
    groups: &[u32],
    theta: f64,
    tolerance: f64,
) {
    let mut sizes = vec![0_u32; made.parts.n()];
    groups.iter().filter(|group| **group != u32::MAX).for_each(|group| sizes[*group as usize] += 1);
    assert_eq!(sizes, made.nodes.weights.to_host().unwrap());
    let q = |node: usize, group: usize| {
        if groups[node] as usize == group { 1.0 / f64::from(sizes[group]).sqrt() } else { 0.0 }
    };
    for row in 0..rows.0.len() {
        if groups[row] == u32::MAX {
            assert!(p.0[row].is_empty(), "row {row} is in no group");
            continue;
        }
        let strong = rows.strong(row, theta);
        let others: f64 = strong.iter().map(|&column| rows.entry(row, column).abs()).sum();
        let weak = rows.0[row].iter().filter(|(column, _)| !strong.contains(column));
        let own: f64 = weak.map(|(_, value)| value).sum();
        let bound = own.max((own + others) / (HARMLESS * made.largest)) * made.largest / DAMPING;
        let near: BTreeSet<usize> = strong
            .iter()
            .chain([&row])
            .map(|&node| groups[node] as usize)
            .filter(|g| *g != u32::MAX as usize)
            .collect();
        assert!(p.0[row].iter().map(|(column, _)| *column).eq(near.iter().copied()), "row {row}");
        for &group in &near {
            let product: f64 = strong.iter().map(|&column| rows.entry(row, column) * q(column, group)).sum();
            // A row whose weak entries outweigh its diagonal is not smoothed.
            let change = if own > 0.0 { (own * q(row, group) + product) / bound } else { 0.0 };
            let expected = q(row, group) - change;
            assert!((p.entry(row, group) - expected).abs() < 10.0 * tolerance, "row {row}, group {group}");
        }
    }
}

pub(super) fn transpose_and_product<H: Scalar, D: AmgKernels<H>, N>(
    rows: &Rows,
    p: &Rows,
    made: &Coarsened<H, D, Csr<H, D>, N>,
    tolerance: f64,
) {
    let (r, coarse) = (Rows::of(&made.r), Rows::of(&made.coarse));
    assert!(r.ascends() && coarse.ascends() && p.ascends());
    let n: usize = p.0.iter().map(Vec::len).sum();
    assert_eq!(n, r.0.iter().map(Vec::len).sum::<usize>());
    for (row, entries) in p.0.iter().enumerate() {
        entries.iter().for_each(|&(column, value)| assert_eq!(r.entry(column, row), value));
    }
    let mut expected = vec![std::collections::BTreeMap::new(); made.p.n_cols()];
    for (row, entries) in rows.0.iter().enumerate() {
        for &(middle, value) in entries {
            for &(i, left) in &p.0[row] {
                for &(j, right) in &p.0[middle] {
                    *expected[i].entry(j).or_insert(0.0) += left * value * right;
                }
            }
        }
    }
    let size = rows.0.iter().flatten().fold(0.0_f64, |size, (_, value)| size.max(value.abs()));
    for (expected, found) in expected.iter().zip(&coarse.0) {
        assert!(expected.keys().copied().eq(found.iter().map(|(column, _)| *column)));
        for (e, (_, f)) in expected.values().zip(found) {
            assert!((e - f).abs() < 100.0 * tolerance * size, "{f} where {e} is expected");
        }
    }
}

/// Every part of a level in both precisions, on matrices of several shapes, with and without weak entries.
pub fn levels_are_what_they_are_defined_to_be<D: AmgDevice>(device: &D, scope: &Scope) {
    for parts in problems::<f64>(scope) {
        let a = parts.on(device);
        assert!(level::<f64, D>(device, &a, [0.02, 0.001], 1e-13) || a.n_rows() <= 2);
    }
    for parts in problems::<f32>(scope) {
        let a = parts.on(device);
        assert!(level::<f32, D>(device, &a, [0.0; 2], 1e-6) || a.n_rows() <= 2);
    }
}

/// The first level of a matrix by its parts, and a cycle: symmetric, positive, and a contraction in the energy norm.
pub fn matrix_is_preconditioned<D: AmgDevice>(device: &D, a: &Csr<f64, D>, block_size: usize, name: &str) {
    if block_size == 1 {
        level::<f64, D>(device, a, [0.04, 0.01], 1e-11);
    }
    let n = a.n_rows();
    let amg = Amg::<f64, D>::new(a, None, &AmgConfig { block_size, ..AmgConfig::default() }).unwrap();
    let on_device = |x: &[f64]| Buffer::from_host(device, x).unwrap();
    let poisoned = || Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
    let cycle = |r: &[f64]| {
        let mut z = poisoned();
        amg.apply(&mut z, &on_device(r)).unwrap();
        z.to_host().unwrap()
    };
    let product = |x: &[f64]| {
        let mut y = poisoned();
        a.apply(&mut y, &on_device(x)).unwrap();
        y.to_host().unwrap()
    };
    let mut random = Random::new(5);
    let (x, y) = (random.vector::<f64>(n), random.vector::<f64>(n));
    let (mx, my) = (cycle(&x), cycle(&y));
    let size = dot(&mx, &mx).sqrt() * dot(&y, &y).sqrt();
    assert!((dot(&mx, &y) - dot(&x, &my)).abs() <= 1e-9 * size, "{name}: not symmetric");
    assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0, "{name}: not positive");
    let mut e = random.vector::<f64>(n);
    for _ in 0..5 {
        let before = dot(&e, &product(&e)).sqrt();
        let correction = cycle(&product(&e));
        e.iter_mut().zip(correction).for_each(|(e, c)| *e = (*e - c) / before);
        let after = dot(&e, &product(&e)).sqrt();
        assert!(after < 1.0, "{name}: an error becomes {after} of what it was");
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A hierarchy whose first levels the device has made: the same bits in every run, symmetric and positive, taken over
/// when values change; by every smoother. A chain has small groups, so that the device makes its second level as well.
pub fn hierarchies_made_on_the_device_precondition<D: AmgDevice>(device: &D, scope: &Scope) {
    let grid = laplacian::<f64>(scope.side.max(42), &mut Random::new(12)).on(device);
    let patches = |inner, format| Smoother::Patch { inner, format };
    for smoother in [
        Smoother::Chebyshev { degree: 2 },
        patches(3, PatchFormat::FullRowEll),
        patches(2, PatchFormat::Csr),
        patches(3, PatchFormat::SymmetricCoo),
    ] {
        preconditions(device, &grid, smoother, 1);
    }
    preconditions(device, &chain(10_000).on(device), patches(3, PatchFormat::FullRowEll), 1_500);
}

fn chain(n: usize) -> CsrArrays<f64> {
    let row = |i: usize| {
        let others = [i.checked_sub(1), (i + 1 < n).then_some(i + 1)].into_iter().flatten();
        let entries = others.map(|j| (j, -1.0)).chain([(i, 2.0 + 1e-4 * (i % 5) as f64)]);
        let mut entries: Vec<(usize, f64)> = entries.collect();
        entries.sort_by_key(|entry| entry.0);
        entries
    };
    CsrArrays::from_rows(n, (0..n).map(row).collect())
}

/// A cycle of levels, the second of which has more than `least` rows.
fn preconditions<D: AmgDevice>(device: &D, a: &Csr<f64, D>, smoother: Smoother, least: usize) {
    let (n, mut random) = (a.n_rows(), Random::new(12));
    let (x, y) = (random.vector::<f64>(n), random.vector::<f64>(n));
    let config = AmgConfig { coarse_rows: 12, smoother, ..AmgConfig::default() };
    let mut amg = Amg::<f64, D>::new(a, None, &config).unwrap();
    let apply = |amg: &Amg<f64, D>, r: &[f64]| {
        let mut z = Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
        amg.apply(&mut z, &Buffer::from_host(device, r).unwrap()).unwrap();
        z.to_host().unwrap()
    };
    let (mx, my) = (apply(&amg, &x), apply(&amg, &y));
    assert!((dot(&mx, &y) - dot(&x, &my)).abs() < 1e-12 * dot(&mx, &mx).sqrt() * dot(&y, &y).sqrt());
    assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0);
    // Sums of blocks in this format come in any order.
    let has_any_order = matches!(smoother, Smoother::Patch { format: PatchFormat::SymmetricCoo, .. });
    let same = |found: &[f64]| {
        let distance: f64 = mx.iter().zip(found).map(|(x, y)| (x - y) * (x - y)).sum();
        assert!(distance <= if has_any_order { 1e-20 * dot(&mx, &mx) } else { 0.0 }, "{smoother:?}");
    };
    same(&apply(&Amg::<f64, D>::new(a, None, &config).unwrap(), &x));
    amg.refill(a, None).unwrap();
    same(&apply(&amg, &x));
    let (shapes, levels) = (amg.hierarchy().shapes(), amg.hierarchy().shapes().len());
    assert!(levels >= 3 && shapes[1].n_rows == shapes[0].n_aggregates, "{}", amg.hierarchy());
    assert!(shapes[1].n_rows > least, "{}", amg.hierarchy());
    assert_eq!(shapes[0].n_patches > 0, matches!(smoother, Smoother::Patch { .. }));
    let product = |x: &[f64]| {
        let mut y = Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
        a.apply(&mut y, &Buffer::from_host(device, x).unwrap()).unwrap();
        y.to_host().unwrap()
    };
    let mut e = y;
    for _ in 0..3 {
        let before = dot(&e, &product(&e)).sqrt();
        let correction = apply(&amg, &product(&e));
        e.iter_mut().zip(correction).for_each(|(e, c)| *e -= c);
        let after = dot(&e, &product(&e)).sqrt();
        assert!(after < 0.8 * before, "{smoother:?}: an error becomes {} of what it was", after / before);
    }
}

/// The level that patches smooth: what its parts add up to, its prolongator and the next matrix.
pub fn patched_levels_are_what_they_are_defined_to_be<D: AmgDevice>(device: &D, scope: &Scope) {
    for parts in problems::<f64>(scope).into_iter().take(3) {
        let a = parts.on(device);
        for format in [PatchFormat::FullRowEll, PatchFormat::Csr, PatchFormat::SymmetricCoo] {
            let config = AmgConfig { smoother: Smoother::Patch { inner: 3, format }, ..AmgConfig::default() };
            let made = device.amg_coarsen(&a, None, [0.02, 0.001], &config, Grouping::Connections).unwrap();
            let made = made.expect("no aggregate is larger than a patch");
            let patched = made.patched.as_ref().expect("patches smooth");
            let rows = Rows::of(&patched.a);
            let sorted = |rows: &Rows| {
                let mut all: Vec<u64> = (0..rows.0.len()).map(|row| rows.diagonal(row).to_bits()).collect();
                all.sort_unstable();
                all
            };
            assert!(rows.ascends() && sorted(&rows) == sorted(&Rows::of(&a)), "{format:?}");
            let omega = patched.smoother.omega;
            assert!(omega > 0.0 && omega < 2.0, "{format:?}: {omega}");
            parts_add_up(device, &rows, &patched.smoother);
            transpose_and_product(&rows, &Rows::of(&made.p), &made, 1e-13);
        }
    }
}

/// After a step from zero, what other patches add makes the residual whole.
fn parts_add_up<D: AmgDevice>(device: &D, rows: &Rows, by: &PatchSmoother<f64, D>) {
    let n = rows.0.len();
    let b = Random::new(7).vector::<f64>(n);
    let poisoned = || Buffer::from_vec(device, vec![f64::NAN; n]).unwrap();
    let (mut x, mut r) = (poisoned(), poisoned());
    device.patch_relax_from_zero(&mut x, &mut r, by, &Buffer::from_host(device, &b).unwrap()).unwrap();
    device.patch_subtract_outside(&mut r, &by.matrix, &x).unwrap();
    let (x, r) = (x.to_host().unwrap(), r.to_host().unwrap());
    for (row, entries) in rows.0.iter().enumerate() {
        let ax: f64 = entries.iter().map(|&(column, value)| value * x[column]).sum();
        assert!(
            (r[row] - (b[row] - ax)).abs() < 1e-10 * (1.0 + ax.abs()),
            "row {row}: {} {}",
            r[row],
            b[row] - ax
        );
    }
}

/// Groups that follow a graph other than the matrix's stay when values change.
pub fn groups_of_a_graph_outlive_a_refill<D: AmgDevice>(device: &D, scope: &Scope) {
    let side = scope.side.max(42);
    let n = side * side;
    let a = laplacian::<f64>(side, &mut Random::new(13)).on(device);
    let pairs: Vec<u32> =
        (0..n as u32).filter(|i| (i + 1) % side as u32 != 0).flat_map(|i| [i, i + 1]).collect();
    let lines = Graph::from_cells(n, 2, &pairs).unwrap();
    let patches = Smoother::Patch { inner: 3, format: PatchFormat::FullRowEll };
    for smoother in [AmgConfig::default().smoother, patches] {
        let config = AmgConfig { coarse_rows: 12, smoother, ..AmgConfig::default() };
        let mut solver = AmgSolver::<f64, D>::from_graph(&a, &lines, None, &config).unwrap();
        let before = solver.hierarchy().to_string();
        let from_matrix = AmgSolver::<f64, D>::from_matrix(&a, None, &config).unwrap();
        assert_ne!(before, from_matrix.hierarchy().to_string());
        solver.refill(&a).unwrap();
        assert_eq!(before, solver.hierarchy().to_string());
    }
}
