//! The parts of a matrix add up to it, and a step never overshoots.

use femtile_device::{Buffer, Cpu, HostDevice, Reference};

use super::damping::outer_damping;
use super::matrix::Inside;
use super::{PatchFormat, PatchKernels, PatchMatrix, PatchSmoother};
use crate::setup::rows::{RowAccess, Rows};

const FORMATS: [PatchFormat; 3] = [PatchFormat::FullRowEll, PatchFormat::Csr, PatchFormat::SymmetricCoo];

/// A matrix of `n` rows, row i joined with i ± 1, i ± 7 and i ± 150 by weights that jump.
fn matrix(n: usize) -> Rows<f64> {
    let mut a = Rows { n_cols: n, offsets: vec![0], columns: vec![], values: vec![] };
    for i in 0..n {
        let others = [150, 7, 1].map(|d| i.checked_sub(d)).into_iter().flatten();
        let others: Vec<usize> =
            others.chain([1, 7, 150].map(|d| i + d).into_iter().filter(|&j| j < n)).collect();
        let weight = |j: usize| if i.min(j) % 11 < 3 { 100.0 } else { 1.0 };
        let diagonal = 1e-3 + others.iter().map(|&j| weight(j)).sum::<f64>();
        let mut entries: Vec<(usize, f64)> = others.iter().map(|&j| (j, -weight(j))).collect();
        entries.push((i, diagonal));
        entries.sort_unstable_by_key(|entry| entry.0);
        a.columns.extend(entries.iter().map(|entry| entry.0 as u32));
        a.values.extend(entries.iter().map(|entry| entry.1));
        a.offsets.push(a.columns.len());
    }
    a
}

/// The largest patch there may be, small ones, and rows that no lane width divides.
const STARTS: [u32; 7] = [0, 400, 401, 414, 600, 999, 1_003];

fn product(a: &Rows<f64>, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| {
        let (columns, values) = a.row(row);
        columns.iter().zip(values).map(|(&column, value)| value * x[column as usize]).sum()
    };
    (0..a.n_rows()).map(row).collect()
}

fn vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| (i * i * 37 % 101) as f64 / 50.0 - 1.0).collect()
}

fn smoother<D: HostDevice>(
    device: &D,
    a: &Rows<f64>,
    format: PatchFormat,
    inner: usize,
) -> PatchSmoother<f64, D> {
    let entry = |row: usize| a.row(row).0.iter().position(|&column| column as usize == row).unwrap();
    let diagonal: Vec<f64> = (0..a.n_rows()).map(|row| a.row(row).1[entry(row)]).collect();
    let scale: Vec<f64> = diagonal.iter().map(|d| 0.6 / d).collect();
    let omega = outer_damping(a, &scale, &STARTS, inner);
    let matrix = PatchMatrix::new(device, a, diagonal, &STARTS, format).unwrap();
    PatchSmoother { matrix, scale: Buffer::from_vec(device, scale).unwrap(), inner, omega }
}

/// A step from zero and its residual.
fn first<D: HostDevice + PatchKernels<f64>>(by: &PatchSmoother<f64, D>, b: &[f64]) -> [Buffer<f64, D>; 2] {
    let device = by.scale.device();
    let poisoned = || Buffer::from_vec(device, vec![f64::NAN; b.len()]).unwrap();
    let (mut x, mut r, b) = (poisoned(), poisoned(), Buffer::from_host(device, b).unwrap());
    device.patch_relax_from_zero(&mut x, &mut r, by, &b).unwrap();
    device.patch_subtract_outside(&mut r, &by.matrix, &x).unwrap();
    [x, r]
}

fn check_steps<D: HostDevice + PatchKernels<f64>>(device: &D, a: &Rows<f64>) {
    let b = vector(a.n_rows());
    for (format, inner) in FORMATS.into_iter().flat_map(|format| [1, 2, 5].map(|inner| (format, inner))) {
        let by = smoother(device, a, format, inner);
        let [mut x, r] = first(&by, &b);
        for ((r, b), ax) in r.as_slice().iter().zip(&b).zip(product(a, x.as_slice())) {
            assert!((r - (b - ax)).abs() < 1e-10, "{format:?}, {inner}: a residual of {r}, not {}", b - ax);
        }
        // A second step adds the first step for the residual.
        let [more, _] = first(&by, r.as_slice());
        let expected: Vec<f64> = x.as_slice().iter().zip(more.as_slice()).map(|(x, more)| x + more).collect();
        let mut b = Buffer::from_host(device, &b).unwrap();
        device.patch_subtract_outside(&mut b, &by.matrix, &x).unwrap();
        device.patch_relax(&mut x, &by, &b).unwrap();
        for (x, e) in x.as_slice().iter().zip(&expected) {
            assert!((x - e).abs() < 1e-10, "{format:?}, {inner}: {x}, not {e}");
        }
    }
}

#[test]
fn residuals_and_steps_are_those_of_the_whole_matrix() {
    let a = matrix(1_003);
    check_steps(&Reference, &a);
    check_steps(&Cpu::new(2).unwrap(), &a);
}

#[test]
fn a_step_multiplies_no_error_by_less_than_minus_one() {
    let (cpu, a) = (Cpu::new(1).unwrap(), matrix(1_003));
    for inner in [1, 2, 3, 6] {
        let by = smoother(&cpu, &a, PatchFormat::FullRowEll, inner);
        let (mut v, mut largest) = (vector(a.n_rows()), 0.0);
        for _ in 0..300 {
            let [next, _] = first(&by, &product(&a, &v));
            largest = next.as_slice().iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            v = next.as_slice().iter().map(|x| x / largest).collect();
        }
        assert!((1.2..1.9).contains(&largest), "{inner} inner iterations: {largest}");
    }
}

#[test]
fn the_parts_hold_each_entry_once() {
    let a = matrix(1_003);
    let n_inside = |format| match smoother(&Reference, &a, format, 1).matrix.inside {
        Inside::FullRowEll { values, .. } => values.as_slice().iter().filter(|v| **v != 0.0).count(),
        Inside::Csr { values, .. } => values.len(),
        Inside::SymmetricCoo { values, .. } => 2 * values.len(),
    };
    let n_outside = smoother(&Reference, &a, PatchFormat::Csr, 1).matrix.outside.values.len();
    for format in FORMATS {
        assert_eq!(n_inside(format) + n_outside + a.n_rows(), a.values.len(), "{format:?}");
    }
}
