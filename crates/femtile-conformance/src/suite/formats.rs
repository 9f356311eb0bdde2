//! Products in the formats of `femtile-research`, compared with plain loops over CSR.

use femtile::device::{Buffer, Reference, Scalar};
use femtile::linalg::comm::Alone;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{CgKernels, ConjugateGradient};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::{Csr, CsrKernels};
use femtile::linalg::{LinalgError, LinearOperator};
use femtile_research::formats::coo::CooKernels;
use femtile_research::formats::ell::EllKernels;
use femtile_research::formats::jds::JdsKernels;
use femtile_research::formats::merge::MergeKernels;
use femtile_research::formats::{Coo, Ell, EllConfig, Hyb, Jds, Merge};

use super::cg::config;
use super::csr::product;
use super::problems::{Parts, Random, laplacian};
use super::vector::nan;

/// Sizes of the matrices of a run: an emulator takes a thousand times as long as a processor.
#[derive(Debug, Clone, Copy)]
pub struct FormatScope {
    /// Numbers of rows.
    pub sizes: &'static [usize],
    /// Points on a side of the grid that systems are solved on.
    pub side: usize,
    /// Entries of a row that crosses many tiles.
    pub long_row: usize,
}

/// Sizes that no warp or tile divides evenly; the long row needs two levels of carries on a GPU.
pub const FULL_FORMATS: FormatScope =
    FormatScope { sizes: &[0, 1, 31, 33, 257, 1027], side: 37, long_row: 600_000 };

/// The same for an emulator.
pub const SMALL_FORMATS: FormatScope = FormatScope { sizes: &[0, 1, 33, 257], side: 12, long_row: 540_000 };

/// A device that multiplies with every format in one precision.
pub trait FormatKernels<T: Scalar>:
    CgKernels<T> + CsrKernels<T> + CooKernels<T> + MergeKernels<T> + EllKernels<T> + JdsKernels<T>
{
}

impl<T: Scalar, D> FormatKernels<T> for D where
    D: CgKernels<T> + CsrKernels<T> + CooKernels<T> + MergeKernels<T> + EllKernels<T> + JdsKernels<T>
{
}

/// A device that multiplies with every format in both precisions.
pub trait FormatDevice: FormatKernels<f64> + FormatKernels<f32> {}

impl<D: FormatKernels<f64> + FormatKernels<f32>> FormatDevice for D {}

/// Instantiates the checks of sparse formats as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! sparse_formats {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            formats: products_of_every_format_agree_with_the_reference,
                every_format_goes_back_to_the_same_matrix, a_nan_reaches_the_rows_of_its_column_alone,
                every_format_solves_with_conjugate_gradients, rows_across_many_tiles_are_added_up,
                vectors_that_do_not_fit_a_format_are_refused, ellpack_refuses_what_it_is_not_made_for;
        }
    };
}

/// A matrix in one format, as an operator and as what it gives back.
pub struct Format<T: Scalar, D: FormatKernels<T>> {
    /// The format and its settings.
    pub name: String,
    /// The matrix.
    pub operator: Box<dyn LinearOperator<T, D>>,
    back: Csr<T, Reference>,
    padding: f64,
    bytes: usize,
}

/// A matrix in every format that takes it.
pub fn formats<T: Scalar, D: FormatKernels<T>>(device: &D, parts: &Parts<T>) -> Vec<Format<T, D>> {
    let (a, wide) = (&parts.on(&Reference), &parts.wide_on(&Reference));
    let mut formats = Vec::new();
    macro_rules! add {
        ($name:expr, $matrix:expr) => {
            let matrix = $matrix;
            formats.push(Format {
                name: $name.into(),
                back: matrix.to_csr(&Reference).unwrap(),
                padding: matrix.padding(),
                bytes: matrix.product_bytes(),
                operator: Box::new(matrix),
            });
        };
    }
    add!("coo", Coo::from_csr(device, a).unwrap());
    add!("merge", Merge::from_csr(device, a).unwrap());
    add!("merge with 64-bit offsets", Merge::from_csr(device, wide).unwrap());
    add!("jds", Jds::from_csr(device, a).unwrap());
    add!("hyb", Hyb::from_csr(device, a).unwrap());
    for config in ell_configs() {
        match Ell::from_csr(device, a, config) {
            Ok(ell) => {
                add!(format!("ell, {config:?}"), ell);
            }
            Err(error) => assert!(needs_much_padding(a, config), "{error}"),
        }
    }
    formats
}

/// All numbers of threads a row with lengths, and two without.
fn ell_configs() -> Vec<EllConfig> {
    let with_lengths =
        [1, 2, 4, 8, 16, 32].map(|threads_per_row| EllConfig { threads_per_row, lengths: true });
    let without = [EllConfig::PLAIN, EllConfig { threads_per_row: 4, lengths: false }];
    with_lengths.into_iter().chain(without).collect()
}

/// Returns whether ELLPACK would store more than fifty entries a non-zero.
fn needs_much_padding<T: Scalar>(a: &Csr<T, Reference>, config: EllConfig) -> bool {
    let longest = (0..a.n_rows()).map(|row| a.row(row).count()).max().unwrap_or(0);
    let pitch = (a.n_rows() * config.threads_per_row).next_multiple_of(32);
    longest.div_ceil(config.threads_per_row) * pitch > 50 * a.n_nonzeros()
}

/// $A x$ into a vector that held NaN.
fn apply<T: Scalar, D: FormatKernels<T>>(operator: &dyn LinearOperator<T, D>, x: &[T]) -> Vec<T> {
    let x = Buffer::from_host(operator.device(), x).unwrap();
    let mut y = nan(operator.device(), operator.n_rows());
    operator.apply(&mut y, &x).unwrap();
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
    fn matrix<T: Scalar>(self, shape: [usize; 2], random: &mut Random) -> Parts<T> {
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
        Parts::from_rows(shape[1], (0..shape[0]).map(row).collect())
    }
}

/// Shapes of a size: square, wide, narrow, of one column.
fn shapes(n: usize) -> [[usize; 2]; 4] {
    [[n, n], [n, 2 * n + 1], [n, n / 2], [n, 1]]
}

fn for_each_matrix<T: Scalar>(sizes: &[usize], mut check: impl FnMut(&Parts<T>, &mut Random, &str)) {
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
        for format in formats(device, parts) {
            let found = apply(format.operator.as_ref(), &x);
            for (row, ((found, expected), size)) in found.iter().zip(&expected).zip(&magnitudes).enumerate() {
                let error = (*found - *expected).to_f64().abs();
                assert!(error <= tolerance * size, "{}, {what}, row {row}: {found} {expected}", format.name);
            }
        }
    });
}

/// Products of matrices of all shapes and lengths of rows are those of plain loops over CSR.
pub fn products_of_every_format_agree_with_the_reference<D: FormatDevice>(device: &D, scope: &FormatScope) {
    agree::<f64, _>(device, scope.sizes, 1e-13);
    agree::<f32, _>(device, scope.sizes, 1e-5);
}

/// Making a format and going back gives the arrays of CSR bit for bit.
pub fn every_format_goes_back_to_the_same_matrix<D: FormatDevice>(device: &D, scope: &FormatScope) {
    for_each_matrix::<f64>(scope.sizes, |parts, _, what| {
        let a = parts.on(&Reference);
        for Format { name, back, padding, bytes, .. } in formats(device, parts) {
            assert_eq!((back.n_rows(), back.n_cols()), (a.n_rows(), a.n_cols()), "{name}, {what}");
            assert_eq!(back.columns().as_slice(), parts.columns, "{name}, {what}");
            assert_eq!(back.values().as_slice(), parts.values, "{name}, {what}");
            for row in 0..a.n_rows() {
                assert_eq!(back.row(row).count(), a.row(row).count(), "{name}, {what}, row {row}");
            }
            assert!(padding >= 1.0, "{name}, {what}: {padding}");
            assert!(bytes >= 12 * a.n_nonzeros(), "{name}, {what}: {bytes}");
        }
    });
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
            for format in &formats {
                for (row, y) in apply(format.operator.as_ref(), &x).into_iter().enumerate() {
                    let has_column = a.row(row).any(|(column, _)| column == bad);
                    assert_eq!(y.is_nan(), has_column, "{}, {what}, row {row}, column {bad}", format.name);
                }
            }
        }
    });
}

fn solves<T: Scalar, D: FormatKernels<T>>(device: &D, side: usize, tolerance: f64, of_x: f64) {
    let mut random = Random::new(3);
    let (parts, b) = (laplacian::<T>(side, &mut random), random.vector::<T>(side * side));
    let on_device = parts.on(device);
    let m = Jacobi::new(&on_device).unwrap();
    let b = Buffer::from_host(device, &b).unwrap();
    let solve = |a: &dyn LinearOperator<T, D>| {
        let mut x = Buffer::zeros(device, b.len()).unwrap();
        let cg = ConjugateGradient::new(config(tolerance));
        let outcome = cg.solve(&mut x, a, &m, &b, &Alone, &mut ()).unwrap();
        (x.to_host().unwrap(), outcome)
    };
    let (expected, oracle) = solve(&on_device);
    for format in formats(device, &parts) {
        let (x, outcome) = solve(format.operator.as_ref());
        assert_eq!(outcome.stop, Stop::Converged, "{}", format.name);
        assert!(outcome.iterations.abs_diff(oracle.iterations) <= 1, "{}", format.name);
        assert!(outcome.true_relative_residual <= 2.0 * tolerance, "{}", format.name);
        for (x, expected) in x.iter().zip(&expected) {
            assert!((*x - *expected).to_f64().abs() < of_x, "{}: {x} {expected}", format.name);
        }
    }
}

/// Conjugate gradients, which take pᵀAp in the hook of the product, come to the solution of CSR in as many steps.
pub fn every_format_solves_with_conjugate_gradients<D: FormatDevice>(device: &D, scope: &FormatScope) {
    solves::<f64, _>(device, scope.side, 1e-12, 1e-9);
    solves::<f32, _>(device, scope.side, 1e-5, 1e-2);
    solves::<f64, _>(device, 1, 1e-12, 1e-12);
}

/// A row so long that sums of its tiles are themselves cut, between short ones; the sums are exact.
pub fn rows_across_many_tiles_are_added_up<D: FormatDevice>(device: &D, scope: &FormatScope) {
    let n = scope.long_row;
    let row = |n: usize| (0..n).map(|column| (column, 1.0 + (column % 3) as f64)).collect::<Vec<_>>();
    let lengths = [3, n, 0, 1, n / 7, 5];
    let parts = Parts::<f64>::from_rows(n, lengths.map(row).into());
    let sum = |length: usize| (0..length).map(|column| 1.0 + (column % 3) as f64).sum::<f64>();
    let a = parts.on(&Reference);
    let (coo, merge) = (Coo::from_csr(device, &a).unwrap(), Merge::from_csr(device, &a).unwrap());
    let operators: [&dyn LinearOperator<f64, D>; 2] = [&coo, &merge];
    for operator in operators {
        assert_eq!(apply(operator, &vec![1.0; n]), lengths.map(sum));
    }
}

/// ELLPACK refuses threads that cannot share a row, and matrices that are nearly all padding.
pub fn ellpack_refuses_what_it_is_not_made_for<D: FormatDevice>(device: &D, _: &FormatScope) {
    let a = laplacian::<f64>(3, &mut Random::new(1)).on(&Reference);
    for threads_per_row in [0, 3, 64] {
        let error = Ell::from_csr(device, &a, EllConfig { threads_per_row, lengths: true }).unwrap_err();
        assert!(matches!(error, LinalgError::Setting { field: "threads_per_row", .. }), "{error}");
    }
    let row = |length: usize| (0..length).map(|column| (column, 1.0)).collect();
    let rows = (0..200).map(|i| row(if i == 7 { 200 } else { 1 })).collect();
    let a = Parts::<f64>::from_rows(200, rows).on(&Reference);
    let error = Ell::from_csr(device, &a, EllConfig::default()).unwrap_err();
    assert!(error.to_string().contains("44800 entries for 399 non-zeros"), "{error}");
    assert!(Hyb::from_csr(device, &a).unwrap().padding() < 1.2);
}

/// Vectors of another length are refused with both numbers.
pub fn vectors_that_do_not_fit_a_format_are_refused<D: FormatDevice>(device: &D, _: &FormatScope) {
    let parts = Parts::<f64>::from_rows(3, vec![vec![(0, 1.0)], vec![(2, 1.0)]]);
    for format in formats(device, &parts) {
        for (n_y, n_x, expected, found) in [(3, 3, 2, 3), (2, 2, 3, 2)] {
            let (mut y, x) = (nan(device, n_y), nan(device, n_x));
            let error = format.operator.apply(&mut y, &x).unwrap_err();
            let LinalgError::Length { expected: wanted, found: given, .. } = error else { panic!("{error}") };
            assert_eq!((wanted, given), (expected, found), "{}", format.name);
        }
    }
}
