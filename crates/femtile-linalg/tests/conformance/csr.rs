use std::ops::Range;
use std::sync::Mutex;

use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::hooks::{DotHook, Hook};
use femtile_linalg::precondition::Jacobi;
use femtile_linalg::sparse::csr::{Csr, CsrKernels};
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use crate::problems::{Parts, Random, random_matrix};
use crate::{SIZES, cpus};

#[test]
fn a_product_of_three_by_three_is_as_computed_by_hand() {
    let a = Parts::<f64>::from_rows(
        3,
        vec![vec![(0, 2.0), (2, -1.0)], vec![], vec![(0, 1.0), (1, 1.0), (2, 1.0)]],
    );
    let a = a.on(&Reference);
    let x = Buffer::from_vec(&Reference, vec![1.0, 10.0, 100.0]).unwrap();
    let mut y = Buffer::from_vec(&Reference, vec![f64::NAN; 3]).unwrap();
    a.apply(&mut y, &x).unwrap();
    assert_eq!(y.as_slice(), [-98.0, 0.0, 111.0]);
    assert_eq!(a.product_bytes(), 5 * 12 + 3 * 20);
}

fn product<T: Scalar, D: CsrKernels<T>>(a: &Csr<T, D>, x: &[T]) -> Vec<T> {
    let device = a.values().device();
    let x = Buffer::from_host(device, x).unwrap();
    let mut y = Buffer::from_vec(device, vec![T::from_f64(f64::NAN); a.n_rows()]).unwrap();
    a.apply(&mut y, &x).unwrap();
    y.to_host().unwrap()
}

fn agree<T: Scalar>(n_rows: usize, n_cols: usize, tolerance: f64) {
    let mut random = Random::new(n_rows as u64 + 3);
    let parts = random_matrix::<T>(n_rows, n_cols, &mut random);
    let x = random.vector(n_cols);
    let expected = product(&parts.on(&Reference), &x);
    let first = product(&parts.on(&cpus()[0]), &x);
    for cpu in cpus() {
        let found = product(&parts.on(&cpu), &x);
        assert_eq!(found, first, "the same bits on {cpu:?}");
        assert_eq!(product(&parts.wide_on(&cpu), &x), first);
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert!((*found - *expected).to_f64().abs() <= tolerance, "row {row}: {found} {expected}");
        }
    }
}

#[test]
fn csr_products_agree_with_the_reference() {
    for &n in SIZES {
        agree::<f64>(n, n, 1e-14);
        agree::<f32>(n, n, 1e-5);
        agree::<f64>(n, 2 * n + 1, 1e-14);
    }
}

#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<(bool, Range<usize>)>>,
}

impl Hook<f64> for Recorder {
    fn pre(&self, rows: Range<usize>) {
        self.calls.lock().unwrap().push((false, rows));
    }

    fn post(&self, rows: Range<usize>, x: &[f64], y: &[f64]) {
        assert_eq!((x.len(), y.len()), (rows.len(), rows.len()));
        assert!(y.iter().all(|y| y.is_finite()), "post came before the last write");
        self.calls.lock().unwrap().push((true, rows));
    }
}

fn tiles(n: usize, mut ranges: Vec<Range<usize>>) {
    ranges.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in ranges {
        assert_eq!(range.start, end);
        assert!(range.end > range.start || n == 0);
        end = range.end;
    }
    assert_eq!(end, n);
}

#[test]
fn hook_ranges_tile_the_rows_once_and_pre_comes_before_post() {
    for &n in SIZES {
        let mut random = Random::new(5);
        let parts = random_matrix::<f64>(n, n, &mut random);
        for cpu in cpus() {
            let (a, recorder) = (parts.on(&cpu), Recorder::default());
            let x = Buffer::from_vec(&cpu, random.vector(n)).unwrap();
            let mut y = Buffer::from_vec(&cpu, vec![f64::NAN; n]).unwrap();
            a.apply_with(&mut y, &x, &recorder).unwrap();
            let calls = recorder.calls.into_inner().unwrap();
            let of = |post| calls.iter().filter(|c| c.0 == post).map(|c| c.1.clone()).collect::<Vec<_>>();
            tiles(n, of(false));
            tiles(n, of(true));
            let last_pre = calls.iter().rposition(|c| !c.0).unwrap_or(0);
            let first_post = calls.iter().position(|c| c.0).unwrap_or(calls.len());
            assert!(last_pre <= first_post, "any row may read any x");
        }
    }
}

#[test]
fn the_dot_hook_sums_x_times_y() {
    for &n in SIZES {
        let mut random = Random::new(11);
        let parts = random_matrix::<f64>(n, n, &mut random);
        let x: Vec<f64> = random.vector(n);
        let y = product(&parts.on(&Reference), &x);
        let expected: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let mut bits = vec![];
        for cpu in cpus() {
            let (a, dot) = (parts.on(&cpu), DotHook::new(n));
            let x = Buffer::from_host(&cpu, &x).unwrap();
            a.apply_with(&mut Buffer::zeros(&cpu, n).unwrap(), &x, &dot).unwrap();
            assert!((dot.sum() - expected).abs() <= 1e-14 * (n as f64 + 1.0));
            bits.push(dot.sum().to_bits());
        }
        assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn broken_structures_are_refused_with_their_row() {
    let refuse = |offsets: Vec<u32>, columns: Vec<u32>| {
        let values = vec![1.0; columns.len()];
        Csr::from_parts(&Reference, 3, offsets.into(), columns, values).map(|_| ()).unwrap_err()
    };
    let row = |error| match error {
        LinalgError::Structure { row, .. } => row,
        other => panic!("{other}"),
    };
    assert_eq!(row(refuse(vec![0, 1, 3], vec![0, 2, 2])), 1);
    assert_eq!(row(refuse(vec![0, 1, 3], vec![3, 0, 1])), 0);
    assert_eq!(row(refuse(vec![0, 2, 1], vec![0, 1])), 1);
    assert_eq!(row(refuse(vec![1, 2], vec![0, 1])), 0);
    assert!(matches!(refuse(vec![0, 1], vec![0, 1]), LinalgError::Length { .. }));
}

#[test]
fn jacobi_names_the_row_whose_diagonal_is_not_positive() {
    for (bad, row) in [(vec![(1, 1.0)], 0), (vec![(0, -2.0)], 0), (vec![(0, f64::NAN)], 0)] {
        let parts = Parts::<f64>::from_rows(2, vec![bad, vec![(1, 4.0)]]);
        for cpu in cpus() {
            match Jacobi::new(&parts.on(&cpu)) {
                Err(LinalgError::Diagonal { row: found, .. }) => assert_eq!(found, row),
                other => panic!("{other:?}"),
            }
        }
        assert!(Jacobi::new(&parts.on(&Reference)).is_err());
    }
}

#[test]
fn jacobi_divides_by_the_diagonal() {
    let parts = Parts::<f64>::from_rows(2, vec![vec![(0, 2.0), (1, 1.0)], vec![(1, 4.0)]]);
    for cpu in cpus() {
        let jacobi = Jacobi::new(&parts.on(&cpu)).unwrap();
        let r = Buffer::from_vec(&cpu, vec![3.0, -1.0]).unwrap();
        let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; 2]).unwrap();
        jacobi.apply(&mut z, &r).unwrap();
        assert_eq!(z.to_host().unwrap(), [1.5, -0.25]);
    }
}
