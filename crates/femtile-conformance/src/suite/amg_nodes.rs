//! Levels whose nodes have several rows, with several vectors as near-nullspace, against what they are defined to be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use femtile::amg::{AmgConfig, AmgKernels, AmgSolver, CoarseSpace, Grouping};
use femtile::device::{Buffer, Cpu, Reference, Scalar};
use femtile::linalg::krylov::Stop;
use femtile::linalg::sparse::csr::Csr;

use super::Scope;
use super::amg::AmgDevice;
use super::amg_levels::{DAMPING, HARMLESS, Rows, groups_are_connected_and_cover, transpose_and_product};
use super::problems::{CsrArrays, Random};

/// A network of springs between points of a grid that are moved about, with nodes that are held and nodes without springs.
struct Springs {
    dimension: usize,
    /// Displacements of each point.
    rows: Vec<Vec<(usize, f64)>>,
    /// Rigid motions: translations and rotations.
    motions: Vec<f64>,
}

impl Springs {
    /// Points are `side` along each axis; `ground` holds each of them softly.
    fn new(dimension: usize, side: usize, ground: f64, random: &mut Random) -> Self {
        let n = side.pow(dimension as u32);
        let place = |node: usize, axis: usize| node / side.pow(axis as u32) % side;
        let points: Vec<[f64; 3]> = (0..n)
            .map(|node| {
                [0, 1, 2].map(|axis| {
                    if axis < dimension { place(node, axis) as f64 + 0.3 * random.unit() } else { 0.0 }
                })
            })
            .collect();
        let mut blocks = vec![std::collections::BTreeMap::<usize, [[f64; 3]; 3]>::new(); n];
        for i in 0..n {
            blocks[i].entry(i).or_default();
            let near = |j: &usize| (0..dimension).all(|axis| place(i, axis).abs_diff(place(*j, axis)) <= 1);
            for j in (i + 1..n).filter(near) {
                if i % 41 == 7 || j % 41 == 7 {
                    continue;
                }
                let weight = if random.below(9) == 0 { 1e-3 } else { 1.0 + 0.5 * random.unit() };
                let along = [0, 1, 2].map(|axis| points[j][axis] - points[i][axis]);
                let length = along.iter().map(|x| x * x).sum::<f64>().sqrt();
                for (row, column, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                    let block = blocks[row].entry(column).or_default();
                    for (a, b) in (0..9).map(|at| (at / 3, at % 3)) {
                        block[a][b] += sign * weight * along[a] * along[b] / (length * length);
                    }
                }
            }
        }
        // The first nodes are held, one of them along an axis only.
        let is_held = |row: usize| row < 2 * dimension || row == 3 * dimension;
        let entry = |row: usize, column: usize, value: f64| match is_held(row) || is_held(column) {
            true => {
                if row == column {
                    1.0
                } else {
                    0.0
                }
            }
            false => value + if row == column { ground } else { 0.0 },
        };
        let of_row = |row: usize| {
            let blocks = blocks[row / dimension].iter();
            blocks
                .flat_map(|(other, block)| (0..dimension).map(move |b| (dimension * other + b, block)))
                .map(|(column, block)| {
                    (column, entry(row, column, block[row % dimension][column % dimension]))
                })
                .collect()
        };
        let rows = (0..n * dimension).map(of_row).collect();
        let pairs: &[(usize, usize)] = if dimension == 2 { &[(0, 1)] } else { &[(0, 1), (1, 2), (2, 0)] };
        let mut motions = Vec::new();
        for (row, point) in (0..n * dimension).map(|row| (row, points[row / dimension])) {
            let axis = row % dimension;
            motions.extend((0..dimension).map(|other| if other == axis { 1.0 } else { 0.0 }));
            motions.extend(pairs.iter().map(|&(a, b)| match axis {
                axis if axis == a => -point[b],
                axis if axis == b => point[a],
                _ => 0.0,
            }));
        }
        Self { dimension, rows, motions }
    }

    /// Linear interpolation from every other node along each axis, with held unknowns apart, and the rows of these nodes.
    fn every_other_node(&self, side: usize) -> (Vec<Vec<(usize, f64)>>, Vec<u32>) {
        let d = self.dimension;
        let n_along = side.div_ceil(2);
        let is_held = |row: usize| row < 2 * d || row == 3 * d;
        let place = |node: usize, axis: usize| node / side.pow(axis as u32) % side;
        let fine = |coarse: usize| -> usize {
            (0..d).map(|axis| 2 * (coarse / n_along.pow(axis as u32) % n_along) * side.pow(axis as u32)).sum()
        };
        let n_coarse = n_along.pow(d as u32);
        let of_row = |row: usize| {
            let (node, component) = (row / d, row % d);
            let mut entries = vec![(0, 1.0)];
            for axis in 0..d {
                let (at, step) = (place(node, axis), n_along.pow(axis as u32));
                let last = at / 2 + 1 == n_along;
                entries = entries
                    .into_iter()
                    .flat_map(|(coarse, value)| match at % 2 == 0 || last {
                        true => vec![(coarse + at / 2 * step, value)],
                        false => vec![
                            (coarse + at / 2 * step, 0.5 * value),
                            (coarse + (at / 2 + 1) * step, 0.5 * value),
                        ],
                    })
                    .collect();
            }
            entries.sort_unstable_by_key(|(coarse, _)| *coarse);
            let is_kept = |coarse: usize| {
                let own = fine(coarse) * d + component;
                own == row || !(is_held(own) || is_held(row))
            };
            let kept = entries.into_iter().filter(|(coarse, _)| is_kept(*coarse));
            kept.map(|(coarse, value)| (coarse * d + component, value)).collect()
        };
        let rows = (0..n_coarse * d).map(|i| (fine(i / d) * d + i % d) as u32).collect();
        ((0..self.rows.len()).map(of_row).collect(), rows)
    }

    /// Adds a triangle of springs in the plane, each node of which `ground` holds.
    fn with_triangle(mut self, ground: f64) -> Self {
        let points: [[f64; 2]; 3] = [[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]];
        let mut matrix = [[0.0; 6]; 6];
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            let along = [0, 1].map(|axis| points[j][axis] - points[i][axis]);
            let square = along[0] * along[0] + along[1] * along[1];
            for (row, column, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                for (a, b) in (0..4).map(|at| (at / 2, at % 2)) {
                    matrix[2 * row + a][2 * column + b] += sign * along[a] * along[b] / square;
                }
            }
        }
        let first = self.rows.len();
        for (i, mut row) in matrix.into_iter().enumerate() {
            row[i] += ground;
            self.rows.push(row.into_iter().enumerate().map(|(j, value)| (first + j, value)).collect());
            let [x, y] = points[i / 2];
            self.motions.extend(if i % 2 == 0 { [1.0, 0.0, -y] } else { [0.0, 1.0, x] });
        }
        self
    }

    fn arrays<T: Scalar>(&self) -> CsrArrays<T> {
        CsrArrays::from_rows(self.rows.len(), self.rows.clone())
    }
}

/// Q of B = Q R on each group, by Gram and Schmidt; dependent columns are zero.
fn orthonormal(b: &[f64], k: usize, groups: &[u32], block: usize) -> Vec<f64> {
    let mut q = b.to_vec();
    for group in groups.iter().copied().collect::<BTreeSet<_>>() {
        let rows: Vec<usize> = (0..q.len() / k).filter(|row| groups[row / block] == group).collect();
        for j in 0..k {
            let length = |q: &[f64]| rows.iter().map(|row| q[k * row + j].powi(2)).sum::<f64>().sqrt();
            let before = length(&q);
            for i in (0..j).chain(0..j) {
                let along: f64 = rows.iter().map(|row| q[k * row + i] * q[k * row + j]).sum();
                rows.iter().for_each(|row| q[k * row + j] -= along * q[k * row + i]);
            }
            let after = length(&q);
            let scale = if group == u32::MAX || after <= 1e-8 * before { 0.0 } else { 1.0 / after };
            rows.iter().for_each(|row| q[k * row + j] *= scale);
        }
    }
    q
}

/// Connections of blocks and of entries that are strong.
const THRESHOLDS: [f64; 2] = [0.08, 0.02];

/// Whether the device makes a level of a matrix of springs.
fn makes_level<H: Scalar, D: AmgKernels<H>>(device: &D, springs: &Springs) -> bool {
    let block = springs.dimension;
    let (a, of_nodes) = (springs.arrays::<H>().on(device), (springs.motions.as_slice(), block));
    let config = AmgConfig { block_size: block, ..AmgConfig::default() };
    device
        .amg_coarsen_nodes(&a, of_nodes.0, of_nodes.1, THRESHOLDS, &config, Grouping::Connections)
        .unwrap()
        .is_some()
}

/// One level, in the precision `H`, its near-nullspace and the number of vectors that vanish on their part; none if the device
/// leaves it to the host.
fn level<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    a: &Csr<H, D>,
    (b, block): (&[f64], usize),
    tolerance: f64,
) -> Option<(Csr<H, D>, Vec<f64>, usize)> {
    let config = AmgConfig { block_size: block, ..AmgConfig::default() };
    let coarsen =
        |by: Grouping<'_, D>| device.amg_coarsen_nodes(a, b, block, THRESHOLDS, &config, by).unwrap();
    let made = coarsen(Grouping::Connections)?;
    let (rows, k) = (Rows::of(a), b.len() / a.n_rows());
    let mut squares = vec![std::collections::BTreeMap::new(); a.n_rows() / block];
    for (row, entries) in rows.0.iter().enumerate() {
        entries.iter().for_each(|(column, value)| {
            *squares[row / block].entry(column / block).or_insert(0.0) += value * value
        });
    }
    let norms = squares
        .into_iter()
        .map(|row| row.into_iter().map(|(column, square): (_, f64)| (column, square.sqrt())).collect());
    let groups = made.parts.of_node().to_host().unwrap();
    groups_are_connected_and_cover(&Rows(norms.collect()), &made.parts, &groups, THRESHOLDS[0]);

    let sum = |row: usize| rows.0[row].iter().map(|(_, value)| value.abs()).sum::<f64>();
    let mut ratios: Vec<f64> = (0..a.n_rows()).map(|row| sum(row) / rows.diagonal(row)).collect();
    ratios.sort_by(f64::total_cmp);
    let most = HARMLESS * made.largest.max(ratios[ratios.len() / 2]);
    let raised = |row: usize| rows.diagonal(row).max(sum(row) / most);
    for (row, inverse) in made.inverse_diagonal.to_host().unwrap().iter().enumerate() {
        assert!((inverse.to_f64() * raised(row) - 1.0).abs() < 10.0 * tolerance, "row {row}");
    }

    let (p, q) = (Rows::of(&made.p), orthonormal(b, k, &groups, block));
    assert_eq!(made.p.n_cols(), k * made.parts.n());
    for row in 0..a.n_rows() {
        let own = groups[row / block];
        let mut near: BTreeSet<u32> = rows.0[row].iter().map(|(column, _)| groups[column / block]).collect();
        near.remove(&u32::MAX);
        assert!(
            p.0[row].iter().map(|(column, _)| (column / k) as u32).collect::<BTreeSet<_>>().is_subset(&near)
        );
        for (group, v) in near.iter().flat_map(|group| (0..k).map(move |v| (*group, v))) {
            let of = |row: usize| if groups[row / block] == group { q[k * row + v] } else { 0.0 };
            let product: f64 = rows.0[row].iter().map(|&(column, value)| value * of(column)).sum();
            let expected = match own {
                u32::MAX => 0.0,
                _ => of(row) - product * DAMPING / (raised(row) * made.largest),
            };
            let found = p.entry(row, k * group as usize + v);
            assert!(
                (found - expected).abs() < 100.0 * tolerance,
                "row {row}: {found} where {expected} is expected"
            );
        }
    }
    let held: BTreeSet<usize> =
        p.0.iter().flatten().filter(|(_, value)| *value != 0.0).map(|(column, _)| *column).collect();
    let zero: Vec<usize> = (0..k * made.parts.n()).filter(|column| !held.contains(column)).collect();
    if zero.is_empty() {
        transpose_and_product(&rows, &p, &made, tolerance);
    }
    let coarse = Rows::of(&made.coarse);
    zero.iter().for_each(|&row| assert_eq!(coarse.diagonal(row), 1.0, "a vector that vanishes on its part"));

    // Q times the next near-nullspace is the near-nullspace.
    assert_eq!(made.nodes.len(), k * k * made.parts.n());
    for row in (0..a.n_rows()).filter(|row| groups[row / block] != u32::MAX) {
        let first = k * groups[row / block] as usize;
        for v in 0..k {
            let found: f64 = (0..k).map(|i| q[k * row + i] * made.nodes[k * (first + i) + v]).sum();
            assert!(
                (found - b[k * row + v]).abs() < 1e-9 * b[k * row + v].abs().max(1.0),
                "row {row}, vector {v}"
            );
        }
    }
    let again = coarsen(Grouping::Connections).expect("the same");
    assert_eq!(made.coarse.values().to_host().unwrap(), again.coarse.values().to_host().unwrap());
    let kept = coarsen(Grouping::Known(&made.parts)).expect("the same");
    assert_eq!(made.p.values().to_host().unwrap(), kept.p.values().to_host().unwrap());
    Some((made.coarse, made.nodes, zero.len()))
}

/// Every part of two levels, in the plane and in space, in both precisions.
pub fn levels_of_nodes_are_what_they_are_defined_to_be<D: AmgDevice>(device: &D, scope: &Scope) {
    for (dimension, side) in [(2, scope.side), (3, scope.side / 4 + 2)] {
        let springs = Springs::new(dimension, side, 1e-2, &mut Random::new(dimension as u64));
        let k = springs.motions.len() / springs.rows.len();
        let of_first = (springs.motions.as_slice(), springs.dimension);
        let a = springs.arrays::<f64>().on(device);
        let (coarse, b, _) =
            level::<f64, D>(device, &a, of_first, 1e-12).expect("the device makes the level");
        level::<f64, D>(device, &coarse, (&b, k), 1e-12).expect("the device makes the next level");
        let a = springs.arrays::<f32>().on(device);
        level::<f32, D>(device, &a, of_first, 1e-5).expect("the device makes the level");
    }
    let mut springs = Springs::new(2, scope.side, 1e-2, &mut Random::new(3));
    let n = springs.motions.len() / 2;
    springs.motions[..n].chunks_exact_mut(3).for_each(|of_row| of_row[2] = 0.0);
    let a = springs.arrays::<f64>().on(device);
    let (.., n_zero) =
        level::<f64, D>(device, &a, (&springs.motions, 2), 1e-12).expect("the device makes the level");
    assert!(n_zero > 0, "no vector vanishes on its part");
    // A part that nothing holds becomes rows without energy, which the host has to isolate.
    for (ground, is_made) in [(1e-2, true), (0.0, false)] {
        let springs = Springs::new(2, scope.side, 1e-2, &mut Random::new(7)).with_triangle(ground);
        assert_eq!(makes_level::<f64, D>(device, &springs), is_made, "ground {ground}");
        assert_eq!(makes_level::<f32, D>(device, &springs), is_made, "ground {ground} in single precision");
    }
}

/// Rows that are scaled unlike their neighbours are found.
pub fn badly_scaled_nodes_are_found<D: AmgDevice>(device: &D, scope: &Scope) {
    let mut springs = Springs::new(2, scope.side, 1e-2, &mut Random::new(5));
    let is_lopsided = |springs: &Springs| {
        AmgKernels::<f64>::amg_is_lopsided(device, &springs.arrays::<f64>().on(device)).unwrap()
    };
    assert_eq!(is_lopsided(&springs), Some(false), "a sound matrix");
    let factor = |row: usize| if row.is_multiple_of(2) { 1.0 } else { 1e4 };
    for (row, entries) in springs.rows.iter_mut().enumerate() {
        entries.iter_mut().for_each(|(column, value)| *value *= factor(row) * factor(*column));
    }
    assert_eq!(is_lopsided(&springs), Some(true));
}

/// A solve with levels made on the device takes two iterations more at most than one with those of the host, again with other
/// values on the same pattern.
pub fn nodes_grouped_on_the_device_are_as_good_as_those_of_the_host<D: AmgDevice>(device: &D, scope: &Scope) {
    for (dimension, side) in [(2, 2 * scope.side), (3, scope.side / 2)] {
        let springs = Springs::new(dimension, side, 1e-6, &mut Random::new(9));
        assert!(makes_level::<f32, D>(device, &springs), "the device makes no level");
        let expected = iterations(&Reference, &springs, None);
        let found = iterations(device, &springs, None);
        println!("{} rows: {found:?} iterations, {expected:?} with groups of the host", springs.rows.len());
        assert!(
            found.iter().zip(&expected).all(|(found, expected)| *found <= expected + 2),
            "{found:?}, {expected:?}"
        );
    }
}

/// A level above one that is known, of nodes of several rows and of one, in both precisions: P transposed, the product, the largest
/// eigenvalue and the diagonal. Solves take as many iterations as with levels of the host.
pub fn levels_above_a_known_one_are_those_of_the_host<D: AmgDevice>(device: &D, scope: &Scope) {
    for (dimension, side) in [(1, 8 * scope.side), (2, scope.side), (3, scope.side / 4 + 2)] {
        let springs = Springs::new(dimension, side, 1e-3, &mut Random::new(17));
        let (p, rows) = springs.every_other_node(side);
        above_known::<f64, D>(device, &springs, &p, 1e-12);
        above_known::<f32, D>(device, &springs, &p, 1e-5);
        let prolongation = CsrArrays::<f64>::from_rows(rows.len(), p).on(&Cpu::new(1).unwrap());
        let space = Some(Arc::new(CoarseSpace::new(&prolongation, rows.clone()).unwrap()));
        let expected = iterations(&Reference, &springs, space.clone());
        let found = iterations(device, &springs, space);
        println!("{} rows: {found:?} iterations, {expected:?} by the host", springs.rows.len());
        assert!(
            found.iter().zip(&expected).all(|(found, expected)| *found <= expected + 2),
            "{found:?}, {expected:?}"
        );
    }
}

fn above_known<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    springs: &Springs,
    p: &[Vec<(usize, f64)>],
    tolerance: f64,
) {
    let block = springs.dimension;
    let n_coarse = 1 + p.iter().flatten().map(|(column, _)| *column).max().unwrap();
    let (a, on_device) =
        (springs.arrays::<H>().on(device), CsrArrays::<H>::from_rows(n_coarse, p.to_vec()).on(device));
    let made = device.amg_above_known(&a, &on_device, block).unwrap().expect("the device makes the level");
    let (rows, r, coarse) = (Rows::of(&a), Rows::of(&made.r), Rows::of(&made.coarse));
    let sum = |row: usize| rows.0[row].iter().map(|(_, value)| value.abs()).sum::<f64>();
    let mut ratios: Vec<f64> = (0..a.n_rows()).map(|row| sum(row) / rows.diagonal(row)).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = if block == 1 { 0.0 } else { ratios[ratios.len() / 2] };
    let most = HARMLESS * made.largest.max(middle);
    for (row, inverse) in made.inverse_diagonal.to_host().unwrap().iter().enumerate() {
        let raised = rows.diagonal(row).max(sum(row) / most);
        assert!((inverse.to_f64() * raised - 1.0).abs() < 10.0 * tolerance, "row {row}");
    }
    assert_eq!(r.0.len(), n_coarse);
    let (mut transpose, mut product) = (vec![Vec::new(); n_coarse], vec![BTreeMap::new(); n_coarse]);
    for (row, entries) in p.iter().enumerate() {
        entries.iter().for_each(|&(column, value)| transpose[column].push((row, value)));
        for (&(i, left), &(middle, value)) in
            entries.iter().flat_map(|left| rows.0[row].iter().map(move |right| (left, right)))
        {
            for &(j, right) in &p[middle] {
                *product[i].entry(j).or_insert(0.0) += left * value * right;
            }
        }
    }
    let largest =
        product.iter().flat_map(BTreeMap::values).fold(0.0_f64, |most, value| most.max(value.abs()));
    for i in 0..n_coarse {
        assert_eq!(r.0[i].len(), transpose[i].len(), "column {i}");
        for (found, expected) in r.0[i].iter().zip(&transpose[i]) {
            assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < tolerance, "column {i}");
        }
        let found: Vec<usize> = coarse.0[i].iter().map(|(column, _)| *column).collect();
        assert_eq!(found, product[i].keys().copied().collect::<Vec<_>>(), "row {i}");
        for (&j, expected) in &product[i] {
            assert!((coarse.entry(i, j) - expected).abs() < 10.0 * tolerance * largest, "entry {i}, {j}");
        }
    }
}

/// Of a solve, and of one with the double of the values.
fn iterations<D: AmgDevice>(
    device: &D,
    springs: &Springs,
    coarse_space: Option<Arc<CoarseSpace>>,
) -> [usize; 2] {
    let config = AmgConfig { coarse_rows: 50, coarse_space, ..AmgConfig::displacements(springs.dimension) };
    let arrays = springs.arrays::<f64>();
    let doubled =
        CsrArrays { values: arrays.values.iter().map(|value| 2.0 * value).collect(), ..arrays.clone() };
    let mut solver =
        AmgSolver::<f32, _>::from_matrix(&arrays.on(device), Some(&springs.motions), &config).unwrap();
    let right = Random::new(1).vector::<f64>(springs.rows.len());
    let solve = |solver: &mut AmgSolver<f32, D>, arrays: &CsrArrays<f64>| {
        let a = arrays.on(device);
        let mut x = Buffer::zeros(device, right.len()).unwrap();
        let b = Buffer::from_host(device, &right).unwrap();
        let outcome = solver.solve(&mut x, &a, &b).unwrap();
        assert_eq!(outcome.stop, Stop::Converged);
        outcome.iterations
    };
    let first = solve(&mut solver, &arrays);
    solver.refill(&doubled.on(device)).unwrap();
    [first, solve(&mut solver, &doubled)]
}
