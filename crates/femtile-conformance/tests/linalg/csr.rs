use std::ops::Range;
use std::sync::Mutex;

use femtile::device::{Buffer, Reference};
use femtile::linalg::hooks::{DotHook, Hook};
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::{LinalgError, LinearOperator};

use femtile_conformance::suite::FULL;
use femtile_conformance::suite::csr::product;
use femtile_conformance::suite::problems::{CsrArrays, Random, random_matrix};

use crate::cpus;

const SIZES: &[usize] = FULL.sizes;

#[test]
fn a_product_of_three_by_three_is_as_computed_by_hand() {
    let a = CsrArrays::<f64>::from_rows(
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
