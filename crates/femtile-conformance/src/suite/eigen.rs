//! Products of sets of vectors, held to plain loops.

use femtile::device::{Buffer, Device};
use femtile::linalg::eigen::{BlockKernels, Dense};

use super::Scope;
use super::problems::Random;

/// Numbers of vectors on both sides: none, one, one off the side of a tile, more tiles than one.
const SETS: [(usize, usize); 7] = [(0, 3), (2, 0), (1, 1), (4, 31), (33, 5), (32, 32), (70, 37)];

fn vectors(n_vectors: usize, n: usize, random: &mut Random) -> Vec<Vec<f64>> {
    (0..n_vectors).map(|_| random.vector(n)).collect()
}

fn on<D: Device>(device: &D, vectors: &[Vec<f64>]) -> Vec<Buffer<f64, D>> {
    vectors.iter().map(|v| Buffer::from_host(device, v).unwrap()).collect()
}

/// $X^\mathsf{T} Y$ and $X C$ are those of plain loops to rounding, and have the same bits again.
pub fn products_of_sets_of_vectors_agree_with_plain_loops<D: BlockKernels>(device: &D, _: &Scope) {
    for (n, sets) in [(0, &SETS[..]), (1, &SETS), (2, &SETS), (33, &SETS), (257, &SETS), (1025, &SETS[..4])] {
        for &(n_x, n_y) in sets {
            let random = &mut Random::new((n * 1000 + n_x) as u64);
            let (x, y) = (vectors(n_x, n, random), vectors(n_y, n, random));
            let (on_x, on_y) = (on(device, &x), on(device, &y));
            let (all_x, all_y): (Vec<_>, Vec<_>) = (on_x.iter().collect(), on_y.iter().collect());
            let gram = device.gram(&all_x, &all_y).unwrap();
            for (i, j) in (0..n_x).flat_map(|i| (0..n_y).map(move |j| (i, j))) {
                let terms = || x[i].iter().zip(&y[j]).map(|(x, y)| x * y);
                let (sum, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
                let found = gram[(i, j)];
                assert!(
                    (found - sum).abs() <= 1e-14 * size,
                    "{n} rows, {n_x} × {n_y}, ({i}, {j}): {found} {sum}"
                );
            }
            assert_eq!(gram, device.gram(&all_x, &all_y).unwrap());
            let entries: Vec<f64> = random.vector(n_x * n_y);
            let c = Dense::of([n_x, n_y], |i, j| entries[i * n_y + j]);
            let product = device.multiply(&all_x, &c).unwrap();
            assert_eq!(product.len(), c.n_columns());
            for (j, column) in product.iter().enumerate() {
                for (row, found) in column.to_host().unwrap().into_iter().enumerate() {
                    let expected: f64 = (0..n_x).map(|i| x[i][row] * c[(i, j)]).sum();
                    assert!(
                        (found - expected).abs() <= 1e-14 * n_x as f64,
                        "{n} rows, {n_x} × {n_y}, ({row}, {j})"
                    );
                }
            }
        }
    }
}

/// Vectors of different lengths, and other numbers of rows of C than vectors, are refused.
pub fn sets_that_do_not_fit_are_refused<D: BlockKernels>(device: &D, _: &Scope) {
    let random = &mut Random::new(3);
    let (x, y) = (on(device, &vectors(2, 5, random)), on(device, &vectors(2, 4, random)));
    assert!(device.gram(&[&x[0]], &[&y[0]]).is_err());
    assert!(device.gram(&[&x[0], &y[0]], &[&x[0]]).is_err());
    assert!(device.multiply(&[&x[0], &y[0]], &Dense::of([2, 1], |_, _| 1.0)).is_err());
    assert!(device.multiply(&[&x[0]], &Dense::of([2, 1], |_, _| 1.0)).is_err());
}
