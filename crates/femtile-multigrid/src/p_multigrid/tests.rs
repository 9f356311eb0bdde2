//! p-multigrid on nested spaces: Galerkin products $I^\mathsf{T} A I$ with linear interpolations $I$.

use femtile_device::Cpu;
use femtile_linalg::Transfer;
use femtile_sparse::Triplets;
use femtile_sparse::csr::Csr;

use femtile_element::tensor::Table;

use super::*;
use crate::axis::matrices;

/// Rows of a dense matrix.
type Dense = Vec<Vec<f64>>;

/// Stiffness of a line of `n` nodes plus a small mass.
fn line(n: usize) -> Dense {
    let entry = |i: usize, j: usize| match i.abs_diff(j) {
        0 => 2.05 + 0.5 * (i % 3) as f64,
        1 => -1.0,
        _ => 0.0,
    };
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

/// Linear interpolation from every other node.
fn interpolation(n: usize) -> Dense {
    let entry = |i: usize, j: usize| match i.abs_diff(2 * j) {
        0 => 1.0,
        1 => 0.5,
        _ => 0.0,
    };
    (0..n).map(|i| (0..n.div_ceil(2)).map(|j| entry(i, j)).collect()).collect()
}

/// $I^\mathsf{T} A I$.
fn galerkin(a: &Dense, p: &Dense) -> Dense {
    let n = p[0].len();
    let entry = |i: usize, j: usize| -> f64 {
        let row = |k: usize| a[k].iter().zip(p).map(|(a, p)| a * p[j]).sum::<f64>();
        (0..a.len()).map(|k| p[k][i] * row(k)).sum()
    };
    (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
}

fn sparse<T: Scalar>(a: &Dense) -> Csr<T, Cpu> {
    let mut triplets = Triplets::new(a.len(), a[0].len());
    for (i, row) in a.iter().enumerate() {
        for (j, &entry) in row.iter().enumerate().filter(|(_, entry)| **entry != 0.0) {
            triplets.push(i, j, T::from_f64(entry)).unwrap();
        }
    }
    triplets.into_csr(&Cpu::new(2).unwrap()).unwrap().matrix
}

/// An interpolation, by rows.
struct Interpolation<T>(Vec<Vec<T>>);

impl<T: Scalar> Transfer<T, Cpu> for Interpolation<T> {
    fn n_fine(&self) -> usize {
        self.0.len()
    }

    fn n_coarse(&self) -> usize {
        self.0[0].len()
    }

    fn prolongate(&self, x: &mut Buffer<T, Cpu>, e: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        for (x, row) in x.as_mut_slice().iter_mut().zip(&self.0) {
            *x += row.iter().zip(e.as_slice()).map(|(&p, &e)| p * e).sum();
        }
        Ok(())
    }

    fn restrict(&self, b: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        for (j, b) in b.as_mut_slice().iter_mut().enumerate() {
            *b = self.0.iter().zip(r.as_slice()).map(|(row, &r)| row[j] * r).sum();
        }
        Ok(())
    }
}

/// The inverse of a matrix, by Gauss–Jordan elimination.
struct Exact<T>(Vec<Vec<T>>);

impl<T: Scalar> Exact<T> {
    fn of(a: &Dense) -> Self {
        let n = a.len();
        let unit = |i: usize| (0..n).map(move |j| f64::from(u8::from(i == j)));
        let mut rows: Dense =
            a.iter().enumerate().map(|(i, row)| row.iter().copied().chain(unit(i)).collect()).collect();
        for k in 0..n {
            let pivot = rows[k][k];
            rows[k].iter_mut().for_each(|entry| *entry /= pivot);
            let own = rows[k].clone();
            for (_, row) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
                let factor = row[k];
                row.iter_mut().zip(&own).for_each(|(entry, own)| *entry -= factor * own);
            }
        }
        Self(rows.iter().map(|row| row[n..].iter().map(|&entry| T::from_f64(entry)).collect()).collect())
    }
}

impl<T: Scalar> Preconditioner<T, Cpu> for Exact<T> {
    fn apply(&self, z: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        for (z, row) in z.as_mut_slice().iter_mut().zip(&self.0) {
            *z = row.iter().zip(r.as_slice()).map(|(&m, &r)| m * r).sum();
        }
        Ok(())
    }
}

/// The levels of a line of `n` nodes, and the lowest matrix.
fn levels<T: Scalar>(n: usize, n_levels: usize) -> (Vec<PLevel<T, Cpu>>, Dense) {
    let (mut a, mut levels) = (line(n), Vec::new());
    for _ in 0..n_levels {
        let p = interpolation(a.len());
        let below = galerkin(&a, &p);
        let rows = p.iter().map(|row| row.iter().map(|&entry| T::from_f64(entry)).collect()).collect();
        levels.push(PLevel {
            operator: Box::new(sparse::<T>(&a)),
            diagonal: (0..a.len()).map(|i| T::from_f64(a[i][i])).collect(),
            lines: None,
            transfer: Box::new(Interpolation(rows)),
        });
        a = below;
    }
    (levels, a)
}

fn cycle<T: Scalar>(n: usize, n_levels: usize) -> PMultigrid<T, Cpu> {
    let (levels, lowest) = levels::<T>(n, n_levels);
    let below = (Box::new(Exact::of(&lowest)) as Box<dyn Preconditioner<T, Cpu>>, lowest.len());
    PMultigrid::new(&Cpu::new(2).unwrap(), levels, below, PMultigridConfig::default()).unwrap()
}

fn applied(m: &dyn Preconditioner<f64, Cpu>, r: Vec<f64>) -> Vec<f64> {
    let cpu = Cpu::new(2).unwrap();
    let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; r.len()]).unwrap();
    m.apply(&mut z, &Buffer::from_vec(&cpu, r).unwrap()).unwrap();
    z.as_slice().to_vec()
}

fn check_map<T: Scalar>(n: usize, n_levels: usize, tolerance: f64)
where
    Cpu: Convert<f64, T> + Convert<T, f64>,
{
    let (m, a) = (cycle::<T>(n, n_levels), line(n));
    let unit = |i: usize| (0..n).map(|j| f64::from(u8::from(i == j))).collect();
    let columns: Dense = (0..n).map(|i| applied(&m, unit(i))).collect();
    for (i, column) in columns.iter().enumerate() {
        for (j, (entry, mirrored)) in column.iter().zip(columns.iter().map(|column| column[i])).enumerate() {
            let gap = (entry - mirrored).abs();
            assert!(gap <= tolerance, "{n} nodes: entry {i}, {j} differs from its mirror image by {gap:e}");
        }
    }
    // The convergence factor in energy: the largest eigenvalue of I − M⁻¹A.
    let mut error: Vec<f64> = (0..n).map(|i| ((i * 7919 + 13) % 1009) as f64 / 1009.0 - 0.5).collect();
    let product =
        |x: &[f64]| -> Vec<f64> { a.iter().map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect() };
    let energy = |x: &[f64]| product(x).iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
    let mut left = 0.0;
    for _ in 0..20 {
        let before = energy(&error);
        let z = applied(&m, product(&error));
        error.iter_mut().zip(z).for_each(|(error, z)| *error -= z);
        left = (energy(&error) / before).sqrt();
        error.iter_mut().for_each(|error| *error /= before.sqrt());
    }
    assert!(left < 0.2, "{n} nodes on {n_levels} levels: a cycle leaves {left}");
}

#[test]
fn cycles_are_symmetric_and_contract_errors() {
    for (n, n_levels) in [(5, 1), (33, 1), (33, 2), (65, 3), (42, 3)] {
        check_map::<f64>(n, n_levels, 1e-14);
        check_map::<f32>(n, n_levels, 1e-6);
    }
}

#[test]
fn without_levels_the_lowest_is_all_there_is() {
    let m = cycle::<f64>(7, 0);
    let exact = Exact::<f64>::of(&line(7));
    let r: Vec<f64> = (0..7).map(|i| f64::from(i) - 2.5).collect();
    for (found, expected) in applied(&m, r.clone()).into_iter().zip(applied(&exact, r)) {
        assert!((found - expected).abs() < 1e-14);
    }
    assert_eq!(m.largest_eigenvalues().count(), 0);
}

#[test]
fn levels_in_single_precision_hold_right_sides_of_any_size() {
    let m = cycle::<f32>(33, 2);
    let r: Vec<f64> = (0..33).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let expected = applied(&m, r.clone());
    for size in [1e-140, 1e-30, 1e30, 1e140] {
        m.set_residual_norm(size);
        let found = applied(&m, r.iter().map(|r| size * r).collect());
        let is_close = |(x, y): (&f64, &f64)| (x / size - y).abs() < 1e-5;
        assert!(found.iter().zip(&expected).all(is_close), "{size:e}");
    }
    m.set_residual_norm(f64::NAN);
    assert_eq!(applied(&m, vec![0.0; 33]), vec![0.0; 33]);
}

#[test]
fn eigenvalues_are_close_to_those_of_the_matrix() {
    // D⁻¹A of the second difference alone has eigenvalues up to 2.
    let n = 65;
    let entry = |i: usize, j: usize| [2.0, -1.0, 0.0][i.abs_diff(j).min(2)];
    let a: Dense = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
    let p = interpolation(n).into_iter().collect();
    let level = PLevel {
        operator: Box::new(sparse::<f64>(&a)),
        diagonal: vec![2.0; n],
        lines: None,
        transfer: Box::new(Interpolation(p)),
    };
    let below: Box<dyn Preconditioner<f64, Cpu>> = Box::new(Exact(vec![vec![0.0; 33]; 33]));
    let m = PMultigrid::new(&Cpu::new(1).unwrap(), vec![level], (below, 33), PMultigridConfig::default())
        .unwrap();
    let largest = m.largest_eigenvalues().next().unwrap();
    assert!((1.95..=2.1).contains(&largest), "{largest}");
}

#[test]
fn eigenvalues_are_those_of_free_rows_whatever_the_scale_beside_given_ones() {
    let n = 65;
    let is_given = |i: usize| i.is_multiple_of(16);
    for scale in [1e-12, 1.0, 1e12] {
        let entry = |i: usize, j: usize| match (is_given(i) || is_given(j), i.abs_diff(j)) {
            (false, 0) => 2.0 * scale,
            (false, 1) => -scale,
            (true, 0) => 1.0,
            _ => 0.0,
        };
        let a: Dense = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
        let level = PLevel {
            operator: Box::new(sparse::<f64>(&a)),
            diagonal: (0..n).map(|i| entry(i, i)).collect(),
            lines: None,
            transfer: Box::new(Interpolation(interpolation(n))),
        };
        let below: Box<dyn Preconditioner<f64, Cpu>> = Box::new(Exact(vec![vec![0.0; 33]; 33]));
        let cpu = Cpu::new(1).unwrap();
        let m = PMultigrid::new(&cpu, vec![level], (below, 33), PMultigridConfig::default()).unwrap();
        let largest = m.largest_eigenvalues().next().unwrap();
        assert!((1.9..=2.1).contains(&largest), "{scale}: {largest}");
    }
}

/// Square cells of degree 2 stacked along y, and a wide cell beside the first.
fn flat_cells(number: usize, unknowns: &mut [u32]) -> LineCell {
    let stiffness = if number < 3 { [0.1, 10.0, 0.0] } else { [1.0, 1.0, 0.0] };
    for (local, unknown) in unknowns.iter_mut().enumerate() {
        let (i, j) = (local % 3, local / 3);
        *unknown = match (number, i) {
            (3, 0) => 3 * j + 2,
            (3, _) => 21 + 2 * j + i - 1,
            _ => 3 * (2 * number + j) + i,
        } as u32;
    }
    LineCell { stiffness, mass: 0.5 }
}

#[test]
fn lines_are_solved_as_the_matrix_of_the_cells_has_them() {
    let cells = LineCells { degree: 2, dimension: 2, n_cells: 4, cell: &flat_cells };
    let n = 27;
    // The matrix by its definition.
    let [mass, stiffness] = matrices(2, &[1.0]);
    let mut a = vec![vec![0.0; n]; n];
    let mut unknowns = [0; 9];
    for number in 0..4 {
        let LineCell { stiffness: [x, y, _], mass: of_mass } = flat_cells(number, &mut unknowns);
        for (i, &row) in unknowns.iter().enumerate() {
            for (j, &column) in unknowns.iter().enumerate() {
                let of = |table: &Table, axis: usize| table.row(i / [1, 3][axis] % 3)[j / [1, 3][axis] % 3];
                let [m, k] = [&mass, &stiffness];
                a[row as usize][column as usize] +=
                    x * of(k, 0) * of(m, 1) + y * of(m, 0) * of(k, 1) + of_mass * of(m, 0) * of(m, 1);
            }
        }
    }
    a[4][4] += 0.7;
    let cpu = Cpu::new(2).unwrap();
    let diagonal: Vec<f64> = (0..n).map(|i| a[i][i]).collect();
    let added = [(4, 0.7), (25, 0.3)].into_iter();
    let solves = LineSolves::new(&cpu, &cells, &diagonal, &[0, 9], added).unwrap().unwrap();
    // Three lines, the first shortened by Dirichlet nodes, and the rows of the wide cell.
    let mut expected = vec![vec![0.0; n]; n];
    let lines: Vec<Vec<usize>> = vec![
        vec![3, 6],
        vec![12, 15, 18],
        (0..7).map(|j| 3 * j + 1).collect(),
        (0..7).map(|j| 3 * j + 2).collect(),
    ];
    for line in
        (0..n).map(|i| vec![i]).filter(|of| !lines.iter().flatten().any(|i| *i == of[0])).chain(lines.clone())
    {
        let own: Dense = line.iter().map(|&i| line.iter().map(|&j| a[i][j]).collect()).collect();
        for (&i, row) in line.iter().zip(Exact::<f64>::of(&own).0) {
            line.iter().zip(row).for_each(|(&j, entry)| expected[i][j] = entry);
        }
    }
    let units = (0..n).map(|column| (0..n).map(|i| f64::from(u8::from(i == column))).collect());
    for (column, unit) in units.enumerate() {
        for (row, (z, wanted)) in applied(&solves, unit).into_iter().zip(&expected).enumerate() {
            let wanted = wanted[column];
            assert!((z - wanted).abs() < 1e-12 * (1.0 + wanted.abs()), "{row}, {column}: {z}, {wanted}");
        }
    }
    // A line that differs too much from the operator is left to the diagonal.
    let mut other = diagonal.clone();
    other[13] *= 5.0;
    let solves = LineSolves::new(&cpu, &cells, &other, &[0, 9], std::iter::empty()).unwrap().unwrap();
    let z = applied(&solves, vec![1.0; n]);
    let is_alone = |row: usize| (z[row] * other[row] - 1.0).abs() < 1e-12;
    assert!((0..7).all(|j| is_alone(3 * j + 1) && !is_alone(3 * j + 2)));
    let none = |_: usize, unknowns: &mut [u32]| LineCell { stiffness: [1.0; 3], ..flat_cells(0, unknowns) };
    let cubes = LineCells { degree: 2, dimension: 2, n_cells: 1, cell: &none };
    assert!(LineSolves::new(&cpu, &cubes, &diagonal, &[], std::iter::empty()).unwrap().is_none());
}

/// Returns the message for levels modified by `change`.
fn said(change: impl Fn(&mut Vec<PLevel<f64, Cpu>>), config: PMultigridConfig) -> String {
    let (mut levels, lowest) = levels::<f64>(33, 2);
    change(&mut levels);
    let below = (Box::new(Exact::of(&lowest)) as Box<dyn Preconditioner<f64, Cpu>>, lowest.len());
    match PMultigrid::new(&Cpu::new(1).unwrap(), levels, below, config) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("not refused"),
    }
}

#[test]
fn levels_that_do_not_fit_or_are_not_definite_are_refused_by_number() {
    let default = PMultigridConfig::default();
    let negated = |levels: &mut Vec<PLevel<f64, Cpu>>| {
        let a = galerkin(&line(33), &interpolation(33));
        let a: Dense = a.iter().map(|row| row.iter().map(|entry| -entry).collect()).collect();
        levels[1].operator = Box::new(sparse::<f64>(&a));
    };
    let message = said(negated, default);
    assert!(message.contains("level 1") && message.contains("positive definite"), "{message}");
    let message = said(|levels| levels[1].diagonal[3] = 0.0, default);
    assert!(
        message.contains("level 1") && message.contains("17 rows") && message.contains("row 3"),
        "{message}"
    );
    for change in [
        |levels: &mut Vec<PLevel<f64, Cpu>>| drop(levels.remove(1)),
        |levels: &mut Vec<PLevel<f64, Cpu>>| levels[0].diagonal.push(1.0),
    ] {
        let message = said(change, default);
        assert!(message.contains("level 0 has 33 rows"), "{message}");
    }
    for (config, field) in [
        (PMultigridConfig { sweeps: 0, ..default }, "sweeps"),
        (PMultigridConfig { sweeps: 17, ..default }, "sweeps"),
        (PMultigridConfig { range: 1.0, ..default }, "range"),
        (PMultigridConfig { eigenvalue_steps: 0, ..default }, "eigenvalue_steps"),
    ] {
        assert!(said(|_| (), config).starts_with(field));
    }
}
