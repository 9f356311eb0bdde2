//! Products in the formats of `femtile-research`, compared with plain loops over CSR.

use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::Csr;
use femtile_research::formats::{ComparedFormat, ComparedMatrix, FormatKernels};

use super::csr::product;
use super::problems::{CsrArrays, Random};
use super::vector::nan;

/// Sizes of the matrices of a run: an emulator takes a thousand times as long as a processor.
#[derive(Debug, Clone, Copy)]
pub struct FormatScope {
    /// Numbers of rows.
    pub sizes: &'static [usize],
    /// Entries of a row that crosses many tiles.
    pub long_row: usize,
}

/// Sizes that no warp or tile divides evenly; the long row needs two levels of carries on a GPU.
pub const FULL_FORMATS: FormatScope = FormatScope { sizes: &[0, 1, 31, 33, 257, 1027], long_row: 600_000 };

/// The same for an emulator.
pub const SMALL_FORMATS: FormatScope = FormatScope { sizes: &[0, 1, 33, 257], long_row: 540_000 };

/// A device that multiplies with every format in both precisions.
pub trait FormatDevice: FormatKernels<f64> + FormatKernels<f32> {}

impl<D: FormatKernels<f64> + FormatKernels<f32>> FormatDevice for D {}

/// Instantiates the checks of sparse formats as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! sparse_formats {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            formats: products_of_every_format_agree_with_the_reference,
                a_nan_reaches_the_rows_of_its_column_alone, rows_across_many_tiles_are_added_up,
                vectors_that_do_not_fit_a_format_are_refused;
        }
    };
}

/// A matrix in every format, with its name.
pub fn formats<T: Scalar, D: FormatKernels<T>>(
    device: &D,
    parts: &CsrArrays<T>,
) -> [(&'static str, ComparedMatrix<T, D>); 3] {
    let made = |a: &Csr<T, Reference>, format| ComparedMatrix::new(device, a, format).unwrap();
    let (a, wide) = (&parts.on(&Reference), &parts.wide_on(&Reference));
    [
        ("merge", made(a, ComparedFormat::Merge)),
        ("merge with 64-bit offsets", made(wide, ComparedFormat::Merge)),
        ("hyb", made(a, ComparedFormat::Hyb)),
    ]
}

/// $A x$ into a vector of `n_rows` that held NaN.
pub fn apply<T: Scalar, D: FormatKernels<T>>(
    device: &D,
    matrix: &ComparedMatrix<T, D>,
    n_rows: usize,
    x: &[T],
) -> Vec<T> {
    let x = Buffer::from_host(device, x).unwrap();
    let mut y = nan(device, n_rows);
    matrix.apply(&mut y, &x).unwrap();
    y.to_host().unwrap()
}

/// Row lengths of a matrix.
#[derive(Debug, Clone, Copy)]
enum Profile {
    Uniform,
    ManyEmpty,
    OneFull,
    PowerLaw,
    AllEmpty,
}

impl Profile {
    const ALL: [Self; 5] = [Self::Uniform, Self::ManyEmpty, Self::OneFull, Self::PowerLaw, Self::AllEmpty];

    fn length(self, row: usize, [n_rows, n_cols]: [usize; 2], random: &mut Random) -> usize {
        match self {
            Self::Uniform => 9,
            Self::ManyEmpty => [0, random.below(12)][usize::from(row % 3 == 1)],
            Self::OneFull => [3, n_cols][usize::from(row == n_rows / 2)],
            Self::PowerLaw => n_cols / (1 + random.below(n_rows)),
            Self::AllEmpty => 0,
        }
    }

    /// A matrix with about these lengths of rows and entries in [−1, 1).
    fn matrix<T: Scalar>(self, shape: [usize; 2], random: &mut Random) -> CsrArrays<T> {
        let row = |row: usize| {
            let length = self.length(row, shape, random).min(shape[1]);
            let mut columns: Vec<usize> = if length == shape[1] {
                (0..length).collect()
            } else {
                (0..length).map(|_| random.below(shape[1])).collect()
            };
            columns.sort_unstable();
            columns.dedup();
            columns.into_iter().map(|column| (column, random.unit())).collect()
        };
        CsrArrays::from_rows(shape[1], (0..shape[0]).map(row).collect())
    }
}

/// Shapes of a size: square, wide, narrow, of one column.
fn shapes(n: usize) -> [[usize; 2]; 4] {
    [[n, n], [n, 2 * n + 1], [n, n / 2], [n, 1]]
}

fn for_each_matrix<T: Scalar>(sizes: &[usize], mut check: impl FnMut(&CsrArrays<T>, &mut Random, &str)) {
    for &n in sizes {
        let mut random = Random::new(n as u64 + 17);
        for profile in Profile::ALL {
            for shape in shapes(n) {
                let parts = profile.matrix(shape, &mut random);
                check(&parts, &mut random, &format!("{profile:?} {shape:?}"));
            }
        }
    }
}

/// $|A| |x|$, by which errors of a product are measured.
fn magnitudes<T: Scalar>(a: &Csr<T, Reference>, x: &[T]) -> Vec<f64> {
    let term = |(column, value): (usize, T)| (value * x[column]).to_f64().abs();
    (0..a.n_rows()).map(|row| a.row(row).map(term).sum()).collect()
}

fn agree<T: Scalar, D: FormatKernels<T>>(device: &D, sizes: &[usize], tolerance: f64) {
    for_each_matrix::<T>(sizes, |parts, random, what| {
        let (a, x) = (parts.on(&Reference), random.vector(parts.n_cols));
        let (expected, magnitudes) = (product(&a, &x), magnitudes(&a, &x));
        for (name, matrix) in formats(device, parts) {
            let found = apply(device, &matrix, a.n_rows(), &x);
            for (row, ((found, expected), size)) in found.iter().zip(&expected).zip(&magnitudes).enumerate() {
                let error = (*found - *expected).to_f64().abs();
                assert!(error <= tolerance * size, "{name}, {what}, row {row}: {found} {expected}");
            }
        }
    });
}

/// Products of matrices of all shapes and lengths of rows are those of plain loops over CSR.
pub fn products_of_every_format_agree_with_the_reference<D: FormatDevice>(device: &D, scope: &FormatScope) {
    agree::<f64, _>(device, scope.sizes, 1e-13);
    agree::<f32, _>(device, scope.sizes, 1e-5);
}

/// NaN and infinities in x reach the rows that have their column, and no others through padding.
pub fn a_nan_reaches_the_rows_of_its_column_alone<D: FormatDevice>(device: &D, scope: &FormatScope) {
    for_each_matrix::<f64>(scope.sizes, |parts, random, what| {
        if parts.n_cols == 0 {
            return;
        }
        let (a, formats) = (parts.on(&Reference), formats(device, parts));
        for bad in [0, random.below(parts.n_cols), parts.n_cols - 1] {
            let mut x = vec![1.0; parts.n_cols];
            x[bad] = f64::NAN;
            for (name, matrix) in &formats {
                for (row, y) in apply(device, matrix, a.n_rows(), &x).into_iter().enumerate() {
                    let has_column = a.row(row).any(|(column, _)| column == bad);
                    assert_eq!(y.is_nan(), has_column, "{name}, {what}, row {row}, column {bad}");
                }
            }
        }
    });
}

/// A row so long that sums of its tiles are themselves cut, between short ones; the sums are exact.
pub fn rows_across_many_tiles_are_added_up<D: FormatDevice>(device: &D, scope: &FormatScope) {
    let n = scope.long_row;
    let row = |n: usize| (0..n).map(|column| (column, 1.0 + (column % 3) as f64)).collect::<Vec<_>>();
    let lengths = [3, n, 0, 1, n / 7, 5];
    let parts = CsrArrays::<f64>::from_rows(n, lengths.map(row).into());
    let sum = |length: usize| (0..length).map(|column| 1.0 + (column % 3) as f64).sum::<f64>();
    for (name, matrix) in formats(device, &parts) {
        assert_eq!(apply(device, &matrix, lengths.len(), &vec![1.0; n]), lengths.map(sum), "{name}");
    }
}

/// Vectors of another length are refused with both numbers.
pub fn vectors_that_do_not_fit_a_format_are_refused<D: FormatDevice>(device: &D, _: &FormatScope) {
    let parts = CsrArrays::<f64>::from_rows(3, vec![vec![(0, 1.0)], vec![(2, 1.0)]]);
    for (name, matrix) in formats(device, &parts) {
        for (n_y, n_x, expected, found) in [(3, 3, 2, 3), (2, 2, 3, 2)] {
            let (mut y, x) = (nan(device, n_y), nan(device, n_x));
            let error = matrix.apply(&mut y, &x).unwrap_err();
            let LinalgError::Length { expected: wanted, found: given, .. } = error else { panic!("{error}") };
            assert_eq!((wanted, given), (expected, found), "{name}");
        }
    }
}
