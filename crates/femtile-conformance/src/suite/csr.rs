//! Products with matrices in compressed sparse rows, and their diagonals.

use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::{Csr, CsrKernels};
use femtile::linalg::{LinalgError, LinearOperator, Preconditioner};

use super::problems::{CsrArrays, Random, random_matrix};
use super::vector::nan;
use super::{LinearDevice, Scope};

/// $A x$ on the device of the matrix.
pub fn product<T: Scalar, D: CsrKernels<T>>(a: &Csr<T, D>, x: &[T]) -> Vec<T> {
    let device = a.values().device();
    let x = Buffer::from_host(device, x).unwrap();
    let mut y = nan(device, a.n_rows());
    a.apply(&mut y, &x).unwrap();
    y.to_host().unwrap()
}

fn agree<T: Scalar, D: CsrKernels<T>>(device: &D, n_rows: usize, n_cols: usize, tolerance: f64) {
    let mut random = Random::new(n_rows as u64 + 3);
    let parts = random_matrix::<T>(n_rows, n_cols, &mut random);
    let x = random.vector(n_cols);
    let expected = product(&parts.on(&Reference), &x);
    let found = product(&parts.on(device), &x);
    assert_eq!(product(&parts.wide_on(device), &x), found, "64-bit offsets");
    for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!((*found - *expected).to_f64().abs() <= tolerance, "row {row}: {found} {expected}");
    }
}

/// Products of matrices with rows of 0 to 40 entries, square and not, and of one with a very long row.
pub fn csr_products_agree_with_the_reference<D: LinearDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes {
        agree::<f64, _>(device, n, n, 1e-14);
        agree::<f32, _>(device, n, n, 1e-5);
        agree::<f64, _>(device, n, 2 * n + 1, 1e-14);
    }
    let row = |n: usize| (0..n).map(|column| (column, 1.0 + column as f64)).collect::<Vec<_>>();
    let parts = CsrArrays::<f64>::from_rows(5000, vec![row(3), row(5000), row(0), row(1)]);
    assert_eq!(product(&parts.on(device), &vec![1.0; 5000]), [6.0, 12_502_500.0, 0.0, 1.0]);
}

/// $(\alpha A + \beta B) x$ is $\alpha A x + \beta B x$, also when A is gone; matrices of other sizes are refused.
pub fn matrices_of_one_pattern_are_combined<D: LinearDevice>(device: &D, scope: &Scope) {
    for &n in scope.sizes.iter().filter(|n| **n < 300) {
        let mut random = Random::new(n as u64);
        let a = random_matrix::<f64>(n, n, &mut random);
        let b = CsrArrays { values: random.vector(a.values.len()), ..a.clone() };
        let x = random.vector(n);
        let combined = {
            let (on_device, other) = (a.on(device), b.on(device));
            on_device.combined(2.0, &other, -0.5).unwrap()
        };
        let (found, of_a, of_b) =
            (product(&combined, &x), product(&a.on(device), &x), product(&b.on(device), &x));
        for i in 0..n {
            assert!((found[i] - (2.0 * of_a[i] - 0.5 * of_b[i])).abs() < 1e-13, "row {i} of {n}");
        }
        let longer = random_matrix::<f64>(n + 1, n + 1, &mut random).on(device);
        assert!(combined.combined(1.0, &longer, 1.0).is_err());
    }
}

/// The first row whose diagonal entry is absent, negative or not a number is named with its value.
pub fn jacobi_names_the_row_whose_diagonal_is_not_positive<D: LinearDevice>(device: &D, _: &Scope) {
    for (bad, value) in [(vec![(0, 1.0)], 0.0), (vec![(1, -2.0)], -2.0), (vec![(1, f64::NAN)], f64::NAN)] {
        let parts = CsrArrays::<f64>::from_rows(3, vec![vec![(0, 4.0)], bad, vec![]]);
        match Jacobi::new(&parts.on(device)) {
            Err(LinalgError::Diagonal { row, value: found }) => {
                assert_eq!((row, found.to_bits()), (1, value.to_bits()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// $z_i = r_i / a_{ii}$.
pub fn jacobi_divides_by_the_diagonal<D: LinearDevice>(device: &D, _: &Scope) {
    let parts = CsrArrays::<f64>::from_rows(2, vec![vec![(0, 2.0), (1, 1.0)], vec![(1, 4.0)]]);
    let jacobi = Jacobi::new(&parts.on(device)).unwrap();
    let r = Buffer::from_vec(device, vec![3.0, -1.0]).unwrap();
    let mut z = nan(device, 2);
    jacobi.apply(&mut z, &r).unwrap();
    assert_eq!(z.to_host().unwrap(), [1.5, -0.25]);
}
