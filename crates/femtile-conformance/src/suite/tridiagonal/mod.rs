//! Batches of tridiagonal systems: backward errors of every algorithm, kinds of bands, lines that fail.

mod batch;
mod factored;
mod rule;

use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::factored::FactoredKernels;
use femtile::tridiagonal::{
    Algorithm, Bands, BatchLayout, Ends, Stability, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
    TridiagonalOutcome,
};

use super::Scope;
use super::problems::Random;
pub use batch::{Batch, row_major};
pub use factored::{a_singular_matrix_is_refused_with_its_row, one_matrix_solves_for_all_right_sides};
pub use rule::Steps;

/// A device that solves tridiagonal systems in both precisions.
pub trait TridiagonalDevice: FactoredKernels<f64> + FactoredKernels<f32> {}

impl<D: FactoredKernels<f64> + FactoredKernels<f32>> TridiagonalDevice for D {}

/// The settings of an algorithm for dominant systems with open ends.
pub fn config(algorithm: Algorithm) -> TridiagonalConfig {
    TridiagonalConfig { algorithm, ..TridiagonalConfig::default() }
}

/// The algorithms to try: all that the device lists, and the one that it chooses.
fn algorithms<T: Scalar, D: TridiagonalKernels<T>>(device: &D) -> Vec<Algorithm> {
    [&[Algorithm::Auto], device.tridiagonal_algorithms()].concat()
}

/// Solves, and holds the backward error to 20 ε.
fn hold<T: Scalar, D: TridiagonalKernels<T>>(device: &D, batch: &Batch<T>, config: TridiagonalConfig) {
    let Some((u, outcome)) = batch.solve(device, config) else { return };
    assert!(outcome.is_solved(), "{config:?}, {:?}, axis {}: {outcome}", batch.shape, batch.axis);
    let error = match config.stability {
        Stability::Unpivoted => batch.backward_error(&u, config.ends, |_| true),
        Stability::PartialPivoting => batch.backward_error_of_rows(&u, config.ends),
    } / T::EPSILON.to_f64();
    let Batch { shape, strides, axis, .. } = batch;
    assert!(
        error <= 20.0,
        "{} {config:?}: backward error {error} ε, {shape:?}, {strides:?}, axis {axis}",
        T::NAME
    );
}

fn hold_dominant<T: Scalar, D: TridiagonalKernels<T>>(
    device: &D,
    shape: &[usize],
    strides: &[usize],
    ends: Ends,
) {
    for axis in 0..shape.len() {
        let mut random = Random::new((shape[axis] + 7 * axis) as u64);
        let batch = Batch::<T>::dominant(shape, strides, axis, ends, &mut random);
        for algorithm in algorithms::<T, D>(device) {
            hold(device, &batch, TridiagonalConfig { ends, ..config(algorithm) });
        }
    }
}

/// Systems of all lengths of the scope along both axes of a matrix.
pub fn every_algorithm_solves_dominant_systems<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    for &n in scope.lengths {
        for shape in [[n, scope.side], [scope.side, n]] {
            let axis = usize::from(shape[1] == n);
            let mut random = Random::new(n as u64);
            let double = Batch::<f64>::dominant(&shape, &row_major(&shape), axis, Ends::Open, &mut random);
            let single = Batch::<f32>::dominant(&shape, &row_major(&shape), axis, Ends::Open, &mut random);
            for algorithm in algorithms::<f64, D>(device) {
                hold(device, &double, config(algorithm));
            }
            for algorithm in algorithms::<f32, D>(device) {
                hold(device, &single, config(algorithm));
            }
        }
    }
}

/// One to four dimensions along each axis: row-major, with gaps, and with the axes in another order.
pub fn any_axis_of_any_layout_is_solved<D: TridiagonalDevice>(device: &D, _: &Scope) {
    let layouts: [(&[usize], &[usize]); 9] = [
        (&[35], &[1]),
        (&[9], &[3]),
        (&[17, 6], &[11, 1]),
        (&[6, 37], &[2, 13]),
        (&[3, 7, 9], &[63, 9, 1]),
        (&[3, 7, 33], &[260, 37, 1]),
        (&[5, 16, 4], &[1, 20, 5]),
        (&[2, 3, 5, 8], &[120, 40, 8, 1]),
        (&[2, 9, 4, 3], &[300, 1, 75, 10]),
    ];
    for (shape, strides) in layouts {
        hold_dominant::<f64, D>(device, shape, strides, Ends::Open);
        hold_dominant::<f32, D>(device, shape, strides, Ends::Open);
    }
}

/// Rings of one, two, three and more unknowns.
pub fn periodic_systems_are_solved<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    for &n in scope.lengths {
        let shape = [n, 5];
        hold_dominant::<f64, D>(device, &shape, &row_major(&shape), Ends::Periodic);
        hold_dominant::<f32, D>(device, &shape, &row_major(&shape), Ends::Periodic);
    }
    let [first, second] = [[1.0, 4.0, 2.0], [3.0, 9.0, 1.0]];
    let mut batch = Batch::<f64>::filled(&[2], &[1], &[1], 0, &mut Random::new(1), |i, _| [first, second][i]);
    batch.d = vec![10.0, 22.0];
    let ring = TridiagonalConfig { ends: Ends::Periodic, ..TridiagonalConfig::default() };
    let (u, _) = batch.solve(device, ring).unwrap();
    assert!((u[0] - 1.0).abs() < 1e-14 && (u[1] - 2.0).abs() < 1e-14, "{u:?}");
}

/// A row that is not dominant: random, nearly singular, with a small pivot that would grow, or badly scaled.
fn unruly_row(kind: usize, epsilon: f64, is_end: bool, random: &mut Random) -> [f64; 3] {
    match kind {
        0 => [random.unit(), random.unit(), random.unit()],
        1 => [-1.0, if is_end { 1.0 + 100.0 * epsilon } else { 2.0 }, -1.0],
        2 => [1.0, epsilon * (2.0 + random.unit()), 1.0],
        _ => {
            let scale = 10_f64.powi(random.below(13) as i32 - 6);
            [scale * random.unit(), scale * random.unit(), scale * random.unit()]
        }
    }
}

fn hold_pivoted<T: Scalar, D: TridiagonalKernels<T>>(device: &D, n: usize, side: usize) {
    let epsilon = T::EPSILON.to_f64();
    for kind in 0..4 {
        for (axis, shape) in [[n, side], [side, n]].into_iter().enumerate() {
            let (strides, mut random) = (row_major(&shape), Random::new((n + 1000 * kind) as u64));
            let mut batch = Batch::<T>::filled(&shape, &strides, &strides, axis, &mut random, |i, random| {
                unruly_row(kind, epsilon, i == 0 || i + 1 == n, random)
            });
            batch.poison_ends();
            for algorithm in algorithms::<T, D>(device) {
                let config = TridiagonalConfig { stability: Stability::PartialPivoting, ..config(algorithm) };
                hold(device, &batch, config);
            }
        }
    }
}

/// With partial pivoting the backward error is small for any matrix that is not singular.
pub fn pivoting_solves_systems_that_are_not_dominant<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    // A tiny pivot in the last row of an odd number of rows is as singular as numbers can tell.
    for n in scope.lengths.iter().map(|n| n.next_multiple_of(2)) {
        hold_pivoted::<f64, D>(device, n, scope.side);
        hold_pivoted::<f32, D>(device, n, scope.side);
    }
    let mut singular =
        Batch::<f64>::filled(&[2, 3], &[3, 1], &[3, 1], 1, &mut Random::new(1), |_, _| [0.0; 3]);
    let row = |i: usize| if i == 1 { [1.0, 0.0, 1.0] } else { [1.0, 3.0, 1.0] };
    for i in 0..3 {
        for k in 0..3 {
            singular.bands[k][i] = row(i)[k];
            singular.bands[k][3 + i] = [1.0, 0.0, 1.0][k];
        }
    }
    let config = TridiagonalConfig { stability: Stability::PartialPivoting, ..TridiagonalConfig::default() };
    let (u, outcome) = singular.solve(device, config).unwrap();
    assert_eq!(outcome.n_failed, 1);
    assert_eq!(outcome.first.map(|first| (first.line, first.row)), Some((1, 2)));
    assert!(singular.backward_error(&u, Ends::Open, |start| start == 0) < 1e-14);
}

fn hold_repeated<T: Scalar, D: TridiagonalKernels<T>>(device: &D) {
    let shape = [4, 33, 6];
    for axis in 0..3 {
        // One matrix for all lines; one for several right sides; constants; full along the lines of one axis.
        let mut one = [0; 3];
        one[axis] = 1;
        let mut several = row_major(&shape);
        several[(axis + 1) % 3] = 0;
        let mut along = [0; 3];
        along[(axis + 2) % 3] = 1;
        for band_strides in [one.to_vec(), several, vec![0; 3], along.to_vec()] {
            for ends in [Ends::Open, Ends::Periodic] {
                let (strides, mut random) = (row_major(&shape), Random::new(axis as u64));
                let mut batch =
                    Batch::<T>::filled(&shape, &strides, &band_strides, axis, &mut random, |_, r| {
                        [r.unit(), 2.1 + r.unit().abs(), r.unit()]
                    });
                if ends == Ends::Open {
                    batch.poison_ends();
                }
                for algorithm in algorithms::<T, D>(device) {
                    hold(device, &batch, TridiagonalConfig { ends, ..config(algorithm) });
                }
            }
        }
    }
}

/// Bands with strides of zero: one matrix for all lines, several right sides, constants.
pub fn bands_may_repeat<D: TridiagonalDevice>(device: &D, _: &Scope) {
    hold_repeated::<f64, D>(device);
    hold_repeated::<f32, D>(device);
}

fn hold_rule<T: Scalar, D: TridiagonalKernels<T>>(device: &D, shape: &[usize], axis: usize) {
    let (n, strides, mut random) = (shape[axis], row_major(shape), Random::new(4));
    for (ends, stability) in [
        (Ends::Open, Stability::Unpivoted),
        (Ends::Periodic, Stability::Unpivoted),
        (Ends::Open, Stability::PartialPivoting),
    ] {
        let rule = Steps::new(3, n, ends);
        let mut batch = Batch::<T>::filled(shape, &strides, &strides, axis, &mut random, |_, _| [0.0; 3]);
        let lines = BatchLayout::contiguous(shape).unwrap().lines(axis).unwrap();
        for (line, row) in (0..lines.n_lines()).flat_map(|line| (0..n).map(move |row| (line, row))) {
            let place = lines.start(line) + row * lines.stride;
            for (band, value) in batch.bands.iter_mut().zip(rule.row(line as u64, row as u64)) {
                band[place] = T::from_f64(value);
            }
        }
        for algorithm in algorithms::<T, D>(device) {
            let config = TridiagonalConfig { algorithm, ends, stability };
            let Some((u, outcome)) = batch.solve_with(device, config, Bands::Rule(&rule)) else { continue };
            assert!(outcome.is_solved(), "{config:?}: {outcome}");
            let error = batch.backward_error(&u, ends, |_| true) / T::EPSILON.to_f64();
            assert!(error <= 20.0, "{} {config:?}: backward error {error} ε", T::NAME);
        }
    }
}

/// Bands that are formed where they are used solve the systems of the same bands in arrays.
pub fn bands_of_a_rule_are_those_of_arrays<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    for &n in scope.lengths {
        for (axis, shape) in [[n, scope.side], [scope.side, n]].into_iter().enumerate() {
            hold_rule::<f64, D>(device, &shape, axis);
            hold_rule::<f32, D>(device, &shape, axis);
        }
    }
}

fn hold_failures<T: Scalar, D: TridiagonalKernels<T>>(device: &D, shape: [usize; 2], axis: usize) {
    let (n, n_lines) = (shape[axis], shape[1 - axis]);
    let (strides, nan) = (row_major(&shape), T::from_f64(f64::NAN));
    let lines = BatchLayout::contiguous(&shape).unwrap().lines(axis).unwrap();
    let mut batch = Batch::<T>::dominant(&shape, &strides, axis, Ends::Open, &mut Random::new(9));
    let bad = [(n_lines / 3, n / 2), (n_lines / 2, n - 1), (n_lines - 1, 0)];
    for (kind, &(line, row)) in bad.iter().enumerate() {
        let place = lines.start(line) + row * lines.stride;
        match kind {
            0 => batch.bands.iter_mut().for_each(|band| band[place] = T::ZERO),
            1 => batch.d[place] = nan,
            _ => batch.bands[1][place] = T::from_f64(f64::INFINITY),
        }
    }
    for algorithm in algorithms::<T, D>(device) {
        let Some((u, outcome)) = batch.solve(device, config(algorithm)) else { continue };
        let TridiagonalOutcome { n_failed, first: Some(first) } = outcome else {
            panic!("{algorithm}: {outcome}")
        };
        assert_eq!((n_failed, first.line), (3, bad[0].0), "{algorithm}");
        assert!(first.row < n && first.index[axis] == first.row && first.index[1 - axis] == first.line);
        if algorithm.name().starts_with("thomas") {
            assert_eq!(first.row, bad[0].1, "{algorithm}");
        }
        let starts = bad.map(|(line, _)| lines.start(line));
        let error = batch.backward_error(&u, Ends::Open, |start| !starts.contains(&start));
        assert!(error <= 20.0 * T::EPSILON.to_f64(), "{algorithm}: {error}");
        for start in starts {
            assert!((0..n).all(|row| !u[start + row * lines.stride].is_finite()), "{algorithm}");
        }
    }
}

/// A row of zeros, an infinite and a missing number: those lines are not-a-number and counted, the first is named.
pub fn lines_that_fail_are_named_and_the_others_solved<D: TridiagonalDevice>(device: &D, scope: &Scope) {
    for n in [1, 2, 7, 33, 64] {
        for (axis, shape) in [[n, scope.side], [scope.side, n]].into_iter().enumerate() {
            hold_failures::<f64, D>(device, shape, axis);
            hold_failures::<f32, D>(device, shape, axis);
        }
    }
    let mut batch =
        Batch::<f64>::filled(&[2, 3], &[3, 1], &[3, 1], 1, &mut Random::new(1), |_, _| [1.0, 4.0, 1.0]);
    (batch.bands[1][3], batch.bands[1][4]) = (1.0, 1.0 + f64::EPSILON);
    let (_, outcome) = batch.solve(device, config(Algorithm::Thomas)).unwrap();
    let first = outcome.first.unwrap();
    assert_eq!((outcome.n_failed, first.line, first.row, first.index), (1, 1, 1, vec![1, 1]));
}

/// No rows, or no lines: nothing is read, written or reported.
pub fn batches_without_entries_are_left_alone<D: TridiagonalDevice>(device: &D, _: &Scope) {
    for (shape, axis) in [(vec![0], 0), (vec![0, 3], 0), (vec![3, 0], 0), (vec![4, 0, 5], 2)] {
        for algorithm in algorithms::<f64, D>(device) {
            let strides = row_major(&shape);
            let batch = Batch::<f64>::dominant(&shape, &strides, axis, Ends::Periodic, &mut Random::new(1));
            let config = TridiagonalConfig { ends: Ends::Periodic, ..config(algorithm) };
            let Some((u, outcome)) = batch.solve(device, config) else { continue };
            assert!(u.is_empty() && outcome.is_solved());
        }
    }
}

/// Arrays that are too short are named with both lengths; axes and algorithms that there are not, are refused.
pub fn what_does_not_fit_is_refused_with_numbers<D: TridiagonalDevice>(device: &D, _: &Scope) {
    let layout = BatchLayout::contiguous(&[3, 4]).unwrap();
    let mut solver = Tridiagonal::<f64, D>::new(device, &layout, 1, TridiagonalConfig::default()).unwrap();
    let buffer = |n| Buffer::<f64, D>::from_vec(device, vec![1.0; n]).unwrap();
    let (mut full, short) = (buffer(12), buffer(11));
    let whole = buffer(12);
    for (k, name) in ["lower", "diagonal", "upper"].into_iter().enumerate() {
        let of = |i| if i == k { &short } else { &whole };
        let bands = Bands::Arrays { lower: of(0), diagonal: of(1), upper: of(2) };
        let expected = LinalgError::Length { field: name, expected: 12, found: 11 };
        assert_eq!(solver.solve_in_place(&mut full, bands).unwrap_err(), expected);
    }
    let bands = Bands::Arrays { lower: &whole, diagonal: &whole, upper: &whole };
    let expected = LinalgError::Length { field: "d", expected: 12, found: 11 };
    assert_eq!(solver.solve(&mut full, bands, &short).unwrap_err(), expected);
    let refused =
        |axis, config| Tridiagonal::<f64, D>::new(device, &layout, axis, config).unwrap_err().to_string();
    assert!(refused(2, TridiagonalConfig::default()).contains("axis 2"));
    let ring = TridiagonalConfig {
        ends: Ends::Periodic,
        stability: Stability::PartialPivoting,
        ..TridiagonalConfig::default()
    };
    assert!(refused(0, ring).contains("periodic"));
    for algorithm in Algorithm::ALL {
        let known = algorithms::<f64, D>(device).contains(&algorithm);
        let error = Tridiagonal::<f64, D>::new(device, &layout, 0, config(algorithm)).err();
        assert!(known || error.is_some_and(|error| error.to_string().contains(algorithm.name())));
    }
}
