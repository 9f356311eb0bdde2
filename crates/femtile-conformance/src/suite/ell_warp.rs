//! ELL-WARP in all its variants: products, conversions, new values, renumbered vectors.

use femtile::device::{Buffer, Cpu, Reference, Scalar};
use femtile::linalg::hooks::DotHook;
use femtile::linalg::krylov::cg::{CgKernels, ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::csr::CsrKernels;
use femtile::linalg::sparse::ell_warp::{
    EllWarp, EllWarpConfig, EllWarpKernels, IndexKind, Numbering, Reduction,
};
use femtile::linalg::vector::{Convert, VectorKernels};
use femtile::linalg::{LinalgError, LinearOperator};

use super::csr::product;
use super::problems::{CsrArrays, Random, laplacian, profiles, random_matrix};
use super::vector::nan;
use super::{Scope, SparseDevice};

/// Lanes that slices may have on a device, which are the same in every precision.
fn lanes<D: SparseDevice>() -> &'static [usize] {
    <D as EllWarpKernels<f64, f64>>::LANES
}

/// Every way of laying out rows, on a device whose slices may have these lanes.
fn configs(lanes: &[usize], has_all: bool) -> Vec<EllWarpConfig> {
    let all_rows = EllWarpConfig::ALL_ROWS;
    let mut configs = Vec::new();
    for &lanes in lanes {
        for (window, threshold) in
            [(1, None), (256, None), (all_rows, None), (1, Some(3)), (all_rows, Some(5))]
        {
            for (numbering, indices) in [
                (Numbering::Kept, IndexKind::Full),
                (Numbering::Sorted, IndexKind::Full),
                (Numbering::SortedColumns, IndexKind::Full),
                (Numbering::Kept, IndexKind::Delta),
                (Numbering::SortedColumns, IndexKind::Delta),
            ] {
                let reduction = if window == 1 { Reduction::Shared } else { Reduction::Shuffle };
                let new = EllWarpConfig::new(lanes);
                configs.push(EllWarpConfig { window, threshold, numbering, indices, reduction, ..new });
            }
        }
    }
    if !has_all {
        configs = configs.into_iter().step_by(8).collect();
    }
    configs
}

/// $A x$ in the numbering of the matrix that `a` was made from; y is poisoned before.
fn product_of<T: Scalar, V: Scalar, D: EllWarpKernels<T, V> + VectorKernels<T>>(
    device: &D,
    a: &EllWarp<T, D, V>,
    x: &[T],
) -> Vec<T> {
    let x = Buffer::from_host(device, x).unwrap();
    let mut y = nan(device, a.n_rows());
    if a.config().numbering == Numbering::Kept {
        a.apply(&mut y, &x).unwrap();
        return y.to_host().unwrap();
    }
    let mut sorted = nan(device, a.n_cols());
    a.sort(&mut sorted, &x).unwrap();
    a.apply(&mut y, &sorted).unwrap();
    let mut unsorted = nan(device, a.n_rows());
    a.unsort(&mut unsorted, &y).unwrap();
    unsorted.to_host().unwrap()
}

fn agree<T: Scalar, V: Scalar, D>(device: &D, parts: &CsrArrays<V>, config: &EllWarpConfig, tolerance: f64)
where
    D: EllWarpKernels<T, V> + EllWarpKernels<f64, V> + VectorKernels<T>,
{
    let csr = parts.on(&Reference);
    if config.numbering != Numbering::Kept && csr.n_rows() != csr.n_cols() {
        assert!(EllWarp::<T, D, V>::from_csr(device, &csr, config).is_err());
        return;
    }
    let mut random = Random::new(17);
    let x: Vec<T> = random.vector(csr.n_cols());
    let a = EllWarp::<T, D, V>::from_csr(device, &csr, config).unwrap();
    let found = product_of(device, &a, &x);
    let of = |column: usize| x[column].to_f64();
    for (row, found) in found.iter().enumerate() {
        let terms: Vec<f64> = csr.row(row).map(|(column, value)| value.to_f64() * of(column)).collect();
        let (expected, size) = (terms.iter().sum::<f64>(), terms.iter().map(|term| term.abs()).sum::<f64>());
        let error = (found.to_f64() - expected).abs();
        assert!(error <= tolerance * size, "{}: row {row}: {found} {expected}", config.name());
    }
    let back = a.to_csr().unwrap();
    assert_eq!(back.offsets_as_u64(), csr.offsets_as_u64(), "{}", config.name());
    assert_eq!(back.columns().as_slice(), csr.columns().as_slice(), "{}", config.name());
    assert_eq!(back.values().as_slice(), csr.values().as_slice(), "{}", config.name());
}

/// Products of every layout with every profile of rows, in f64, in f32 and with f32 values for f64 vectors.
pub fn ell_warp_products_agree_with_csr<D: SparseDevice>(device: &D, scope: &Scope) {
    for config in configs(lanes::<D>(), scope.has_every_kind) {
        for &n in scope.sparse_sizes {
            for parts in profiles::<f64>(n, n).iter().chain(&profiles(n, 2 * n + 1)) {
                agree::<f64, f64, _>(device, parts, &config, 1e-13);
            }
        }
    }
    for config in configs(lanes::<D>(), scope.has_every_kind).into_iter().step_by(2) {
        for &n in scope.sparse_sizes {
            for parts in profiles::<f32>(n, n) {
                agree::<f32, f32, _>(device, &parts, &config, 1e-5);
                agree::<f64, f32, _>(device, &parts, &config, 1e-13);
            }
        }
    }
}

/// Columns farther apart than 16 bits reach keep 32 bits, slice by slice.
pub fn far_columns_are_kept_in_full<D: SparseDevice>(device: &D, _: &Scope) {
    let n = 200_000;
    let row = |i: usize| match i {
        5 => vec![(0, 1.0), (70_000, 2.0), (199_999, 3.0)],
        i if i < 100 => vec![(i, 1.0), (i + 65_535, 0.5)],
        _ => vec![(i, 2.0)],
    };
    let parts = CsrArrays::<f64>::from_rows(n, (0..150).map(row).collect());
    for &lanes in lanes::<D>() {
        let config = EllWarpConfig { indices: IndexKind::Delta, ..EllWarpConfig::new(lanes) };
        agree::<f64, f64, _>(device, &parts, &config, 1e-15);
    }
}

/// Rows of thousands of entries, which a GPU gives to whole blocks, next to short ones.
pub fn long_rows_agree_with_csr<D: SparseDevice>(device: &D, _: &Scope) {
    let mut random = Random::new(11);
    let mut row = |i: usize| {
        let n = if i % 40 == 7 { 3000 + i } else { i % 5 };
        (0..n).map(|k| (k * 2 + i % 2, random.unit())).collect()
    };
    let parts = CsrArrays::<f64>::from_rows(8000, (0..100).map(&mut row).collect());
    for &lanes in lanes::<D>() {
        for (window, indices) in [(1, IndexKind::Full), (EllWarpConfig::ALL_ROWS, IndexKind::Delta)] {
            let new = EllWarpConfig::new(lanes);
            let config = EllWarpConfig { window, indices, threshold: Some(4), block_threads: 64, ..new };
            agree::<f64, f64, _>(device, &parts, &config, 1e-13);
        }
    }
}

/// Lanes of a row that are added through shared memory, as `[wong2015]` does.
pub fn lanes_added_in_shared_memory_agree_with_csr<D: SparseDevice>(device: &D, _: &Scope) {
    let new = EllWarpConfig::new(32);
    let config = EllWarpConfig { threshold: Some(3), reduction: Reduction::Shared, ..new };
    for parts in profiles::<f64>(257, 257) {
        agree::<f64, f64, _>(device, &parts, &config, 1e-13);
    }
}

/// Lanes that a device has no product for are refused when a matrix is made or copied to it, not by its
/// product.
pub fn lanes_without_a_product_are_refused<D: SparseDevice>(device: &D, _: &Scope) {
    let csr = CsrArrays::<f64>::from_rows(3, vec![vec![(0, 1.0)], vec![(1, 2.0)], vec![]]).on(&Reference);
    for n in [0, 1, 2, 3, 4, 8, 16, 24, 32, 64, 128] {
        let config = EllWarpConfig::new(n);
        let field = |made: Result<EllWarp<f64, D>, LinalgError>| match made {
            Err(LinalgError::Setting { field, .. }) => field,
            Err(error) => panic!("{n} lanes: {error}"),
            Ok(_) => "none",
        };
        let expected = if lanes::<D>().contains(&n) { "none" } else { "lanes" };
        assert_eq!(field(EllWarp::from_csr(device, &csr, &config)), expected, "{n} lanes");
        if let Ok(a) = EllWarp::<f64, Reference>::from_csr(&Reference, &csr, &config) {
            assert_eq!(field(a.copy_to(device)), expected, "{n} lanes, copied");
        }
    }
}

/// New values on the same pattern give the matrix that would be made from them, its padding included.
pub fn ell_warp_takes_new_values<D: SparseDevice>(device: &D, scope: &Scope) {
    let mut random = Random::new(3);
    let mut refill = |config: &EllWarpConfig, mut parts: CsrArrays<f64>| {
        let mut a = EllWarp::<f64, D>::from_csr(device, &parts.on(&Reference), config).unwrap();
        parts.values = random.vector(parts.values.len());
        a.refill(&parts.on(device)).unwrap();
        let expected = EllWarp::<f64, D>::from_csr(device, &parts.on(&Reference), config).unwrap();
        let (found, expected) = (a.values().to_host().unwrap(), expected.values().to_host().unwrap());
        assert_eq!(found, expected, "{}", config.name());
    };
    for config in configs(lanes::<D>(), scope.has_every_kind) {
        profiles::<f64>(257, 257).into_iter().for_each(|parts| refill(&config, parts));
    }
    // Enough entries for several threads.
    let n = if scope.has_every_kind { 4099 } else { 257 };
    let parts = random_matrix::<f64>(n, n, &mut Random::new(4));
    configs(lanes::<D>(), false).iter().for_each(|config| refill(config, parts.clone()));
}

/// Rounded values are those of a conversion from rounded ones, and products read them.
pub fn values_of_slices_are_rounded<D>(device: &D, _: &Scope)
where
    D: SparseDevice + Convert<f64, f32>,
{
    let mut random = Random::new(7);
    for config in configs(lanes::<D>(), false) {
        for parts in profiles::<f64>(257, 257) {
            let a = EllWarp::<f64, D>::from_csr(device, &parts.on(&Reference), &config).unwrap();
            let rounded = a.rounded::<f32>().unwrap();
            let expected = EllWarp::<f64, D, f32>::from_csr(device, &parts.on(&Reference), &config).unwrap();
            assert_eq!(rounded.difference(&expected).unwrap(), None, "{}", config.name());
            let x = Buffer::from_vec(device, random.vector::<f64>(257)).unwrap();
            let of = |matrix: &EllWarp<f64, D, f32>| {
                let mut y = nan(device, 257);
                matrix.apply(&mut y, &x).unwrap();
                y.to_host().unwrap()
            };
            assert_eq!(of(&rounded), of(&expected), "{}", config.name());
        }
    }
}

/// Conversions on a device and on the host agree array for array.
fn converts<V: Scalar, D: EllWarpKernels<V, V>>(device: &D, parts: &CsrArrays<V>, config: &EllWarpConfig) {
    let csr = parts.on(&Reference);
    let expected = EllWarp::<V, D>::from_csr(device, &csr, config).unwrap();
    for csr in [parts.on(device), parts.wide_on(device)] {
        let found = EllWarp::<V, D>::convert(&csr, config).unwrap();
        let difference = found.difference(&expected).unwrap();
        assert_eq!(difference, None, "{}, {} rows", config.name(), csr.n_rows());
        let n_stored = EllWarp::<V, D>::stored(&csr, config).unwrap();
        assert_eq!(n_stored, expected.n_stored(), "{}, {} rows", config.name(), csr.n_rows());
    }
}

/// Every layout with a lane a row and vectors in their own numbering, and one of each that a GPU leaves to
/// the host.
fn conversions(lanes: &[usize]) -> Vec<EllWarpConfig> {
    let all_rows = EllWarpConfig::ALL_ROWS;
    let mut configs = Vec::new();
    for &lanes in lanes {
        let new = EllWarpConfig::new(lanes);
        for window in [1, lanes.max(2), 256, 8192, all_rows] {
            for indices in [IndexKind::Full, IndexKind::Delta] {
                configs.push(EllWarpConfig { window, indices, ..new });
            }
        }
        configs.push(EllWarpConfig { threshold: Some(3), ..new });
        configs.push(EllWarpConfig { window: 256, numbering: Numbering::SortedColumns, ..new });
    }
    configs
}

/// Matrices of `n` rows with empty rows, one full row, none at all.
fn converted<T: Scalar>(n: usize) -> Vec<CsrArrays<T>> {
    let mut random = Random::new(n as u64);
    let gaps = random_matrix(n, n, &mut random);
    let row = |i: usize| {
        let n_entries = if i == n / 3 { n } else { i % 5 };
        (0..n_entries.min(n)).map(|column| (column, 1.5)).collect()
    };
    let full_row = CsrArrays::from_rows(n, (0..n).map(row).collect());
    let wide = random_matrix(n, 300_000, &mut random);
    vec![gaps, full_row, wide, CsrArrays::from_rows(n, vec![vec![]; n])]
}

/// Conversion where the matrix lies gives the arrays that conversion on the host gives, in every precision.
pub fn conversion_on_a_device_gives_the_arrays_of_the_host<D: SparseDevice>(device: &D, _: &Scope) {
    for config in conversions(lanes::<D>()) {
        for n in [0, 1, 31, 33, 1027] {
            let is_square = config.numbering != Numbering::Kept;
            let fits = |n_cols: usize| n_cols == n || !is_square;
            for parts in converted::<f64>(n).iter().filter(|parts| fits(parts.n_cols)) {
                converts(device, parts, &config);
            }
            for parts in converted::<f32>(n).iter().filter(|parts| fits(parts.n_cols)).take(1) {
                converts(device, parts, &config);
            }
        }
    }
}

/// Slices that several blocks count, windows of which a block sorts several, and one that fills a block.
pub fn conversion_of_many_rows_gives_the_arrays_of_the_host<D: SparseDevice>(device: &D, _: &Scope) {
    let (n, new) = (50_000, EllWarpConfig::new(32));
    let far = |i: usize| if i > n / 2 { 70_000 } else { 40_000 };
    let row = |i: usize| (0..i * 7 / 5 % 3).map(|k| (i + far(i) * k, 1.0)).collect();
    let parts = CsrArrays::<f64>::from_rows(3 * n, (0..n).map(row).collect());
    for window in [1, 64, 8192] {
        converts(device, &parts, &EllWarpConfig { window, indices: IndexKind::Delta, ..new });
    }
}

/// A NaN in x reaches exactly the rows that have its column.
pub fn a_nan_reaches_no_row_without_it<D: SparseDevice>(device: &D, scope: &Scope) {
    for config in configs(lanes::<D>(), scope.has_every_kind) {
        let parts = &profiles::<f64>(257, 257)[0];
        let csr = parts.on(&Reference);
        let mut x = vec![1.0; 257];
        x[40] = f64::NAN;
        let a = EllWarp::<f64, D>::from_csr(device, &csr, &config).unwrap();
        for (row, y) in product_of(device, &a, &x).iter().enumerate() {
            let has = csr.row(row).any(|(column, _)| column == 40);
            assert_eq!(y.is_nan(), has, "{}: row {row}", config.name());
        }
    }
}

/// Conjugate gradients take as many iterations to the same solution as with CSR.
pub fn cg_runs_on_ell_warp<D>(device: &D, scope: &Scope)
where
    D: SparseDevice + CgKernels<f64> + CsrKernels<f64>,
{
    let parts = laplacian::<f64>(scope.side, &mut Random::new(5));
    let csr = parts.on(device);
    let n = csr.n_rows();
    let jacobi = Jacobi::new(&csr).unwrap();
    let b = Buffer::from_vec(device, Random::new(6).vector(n)).unwrap();
    let cg = ConjugateGradient::new(KrylovConfig { tolerance: 1e-10, ..KrylovConfig::default() });
    let solve = |a: &dyn LinearOperator<f64, D>| {
        let mut x = Buffer::zeros(device, n).unwrap();
        let outcome = cg.solve(&mut x, a, &jacobi, &b, &femtile::linalg::comm::SingleRank, &mut ()).unwrap();
        (outcome.iterations, x.to_host().unwrap())
    };
    let (iterations, expected) = solve(&csr);
    for config in
        configs(lanes::<D>(), false).into_iter().filter(|config| config.numbering == Numbering::Kept)
    {
        let a = EllWarp::<f64, D>::from_csr(device, &parts.on(&Reference), &config).unwrap();
        let (found_iterations, found) = solve(&a);
        assert!(found_iterations.abs_diff(iterations) <= 1, "{}: {found_iterations}", config.name());
        let error = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-8, "{}: {error}", config.name());
    }
}

/// On a CPU the sums that a hook takes have the bits of the same sums over x and y afterwards.
pub fn hooks_see_what_was_written(cpu: &Cpu) {
    let n = 10_007;
    let parts = random_matrix::<f64>(n, n, &mut Random::new(8));
    let x = Buffer::from_vec(cpu, Random::new(9).vector(n)).unwrap();
    for config in configs(&[4, 8], false).into_iter().filter(|config| config.numbering == Numbering::Kept) {
        let a = EllWarp::<f64, Cpu>::from_csr(cpu, &parts.on(&Reference), &config).unwrap();
        let (hook, mut y) = (DotHook::new(n), nan(cpu, n));
        a.apply_with(&mut y, &x, &hook).unwrap();
        assert_eq!(hook.sum().to_bits(), cpu.dot(&x, &y).unwrap().to_bits(), "{}", config.name());
        let plain = product(&parts.on(&Reference), x.as_slice());
        let error = plain.iter().zip(y.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-13);
    }
}
