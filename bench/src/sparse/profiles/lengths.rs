//! Row lengths with given quartiles, mean and variance.
//!
//! Between two quartiles the sorted lengths follow a curve with two parameters, which are fitted to the mean and the
//! variance of the rounded lengths.

use super::Profile;
use super::random::Random;

/// Initial guesses for the outer quarters: logarithms of shift and sharpness.
const OUTER: ([f64; 9], [f64; 7]) =
    ([-6.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 6.0], [-0.9, -0.6, -0.3, 0.0, 0.4, 0.8, 1.2]);
/// Initial guesses for the inner quarters.
const INNER: ([f64; 5], [f64; 1]) = ([-3.0, -1.0, 0.0, 1.0, 3.0], [0.0]);
/// Intervals of ranks for the moments of a curve, finer at its steep ends.
const SPANS: [[f64; 2]; 5] = [[0.0, 1e-3], [1e-3, 0.03], [0.03, 0.97], [0.97, 0.999], [0.999, 1.0]];
/// Sample ranks per interval.
const SAMPLES: usize = 400;
/// Weight of the curvature penalty relative to squared errors of mean and variance.
const BEND_WEIGHT: f64 = 1e-8;
/// Largest and smallest step of the parameter search.
const STEPS: [f64; 2] = [0.5, 1e-3];
/// Cost at which the search ends: mean and variance are then within 0.3 %.
const GOOD: f64 = 1e-5;

/// Required statistics of the lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub n_rows: usize,
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub quartiles: [usize; 5],
    pub mean: f64,
    pub variance: f64,
}

/// Lengths of a quarter as a function of rank.
#[derive(Debug, Clone, Copy)]
struct Shape {
    low: f64,
    rise: f64,
    /// Logarithms of the shift $c$ and of the sharpness $e$.
    parameters: [f64; 2],
    /// Mean and mean square of the rounded lengths.
    moments: [f64; 2],
}

impl Shape {
    fn new(low: f64, rise: f64, parameters: [f64; 2]) -> Self {
        let mut shape = Self { low, rise, parameters, moments: [0.0; 2] };
        for [begin, end] in SPANS {
            let weight = (end - begin) / SAMPLES as f64;
            for k in 0..SAMPLES {
                let length = shape.length(begin + (k as f64 + 0.5) * weight);
                shape.moments[0] += weight * length;
                shape.moments[1] += weight * length * length;
            }
        }
        shape
    }

    /// Returns the length at rank $r \in (0, 1)$, along the curve $1 / (1 + (c (1 - r) / r)^e)$.
    ///
    /// The curve is straight for $c = e = 1$, a step for large $e$, and a power law at its upper end for large $c$.
    fn length(&self, rank: f64) -> f64 {
        let [shift, sharpness] = self.parameters.map(f64::exp);
        (self.low + self.rise / (1.0 + (shift * (1.0 - rank) / rank).powf(sharpness))).round()
    }

    /// Returns the deviation from a straight line.
    fn bend(&self) -> f64 {
        self.parameters.iter().map(|parameter| parameter * parameter).sum()
    }
}

fn shapes(low: usize, high: usize, shifts: &[f64], sharpnesses: &[f64]) -> Vec<Shape> {
    let (low, rise) = (low as f64, (high - low) as f64);
    if rise == 0.0 {
        return vec![Shape::new(low, rise, [0.0; 2])];
    }
    let curves =
        shifts.iter().flat_map(|&shift| sharpnesses.iter().map(move |&sharpness| [shift, sharpness]));
    curves.map(|parameters| Shape::new(low, rise, parameters)).collect()
}

/// Returns the cost of curves: squared relative errors of mean and variance, plus the curvature penalty.
///
/// The cost is smooth enough for coordinate descent.
fn cost(target: &Target, shapes: [&Shape; 4]) -> f64 {
    let moment = |k: usize| shapes.iter().map(|shape| shape.moments[k]).sum::<f64>() / 4.0;
    let (mean, square) = (moment(0), moment(1));
    let variance = target.variance.max(1e-3);
    let mean_error = (mean - target.mean) * (1.0 / target.mean + 1.0 / variance.sqrt());
    let variance_error = (square - mean * mean - target.variance) / variance;
    let bend: f64 = shapes.iter().map(|shape| shape.bend()).sum();
    mean_error * mean_error + variance_error * variance_error + BEND_WEIGHT * bend
}

/// Returns the curve of each quarter that fits the mean and variance of the target best.
fn fit(target: &Target) -> [Shape; 4] {
    let [min, q1, median, q3, max] = target.quartiles;
    let first = shapes(min, q1, &OUTER.0, &OUTER.1);
    let second = shapes(q1, median, &INNER.0, &INNER.1);
    let third = shapes(median, q3, &INNER.0, &INNER.1);
    let last = shapes(q3, max, &OUTER.0, &OUTER.1);
    let mut best = ([first[0], second[0], third[0], last[0]], f64::INFINITY);
    for a in &first {
        for b in &second {
            for c in &third {
                for d in &last {
                    let cost = cost(target, [a, b, c, d]);
                    if cost < best.1 {
                        best = ([*a, *b, *c, *d], cost);
                    }
                }
            }
        }
    }
    improve(target, best.0, best.1)
}

/// Minimizes the cost by coordinate descent with decreasing steps.
fn improve(target: &Target, mut shapes: [Shape; 4], mut least: f64) -> [Shape; 4] {
    let mut step = STEPS[0];
    while step > STEPS[1] && least > GOOD {
        let mut moved = false;
        for (k, parameter, sign) in moves() {
            let Shape { low, rise, mut parameters, .. } = shapes[k];
            parameters[parameter] += sign * step;
            let mut tried = shapes;
            tried[k] = Shape::new(low, rise, parameters);
            let cost = cost(target, tried.each_ref());
            if cost < least {
                (shapes, least, moved) = (tried, cost, true);
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    shapes
}

/// Returns the coordinate steps: each parameter of each quarter, up and down.
fn moves() -> impl Iterator<Item = (usize, usize, f64)> {
    (0..16).map(|k| (k / 4, k / 2 % 2, if k % 2 == 0 { 1.0 } else { -1.0 }))
}

/// Returns lengths, quarter by quarter, whose sum is as close to the target as the quartiles allow.
fn by_quarter(target: &Target, random: &mut Random) -> Vec<usize> {
    let n = target.n_rows;
    let quarter = |k: usize| k * n / 4..(k + 1) * n / 4;
    let mut lengths = vec![0; n];
    for (k, shape) in fit(target).iter().enumerate() {
        let rows = quarter(k);
        let (first, n_quarter) = (rows.start, rows.len() as f64);
        for row in rows.clone() {
            lengths[row] = shape.length(((row - first) as f64 + 0.5) / n_quarter) as usize;
        }
        lengths[rows.end - 1] = target.quartiles[k + 1];
    }
    lengths[0] = target.quartiles[0];
    let bounds = |row: usize| {
        let k = (0..3).find(|&k| row < quarter(k).end).unwrap_or(3);
        // Rows at the quartiles keep their lengths.
        let fixed = row == 0 || row + 1 == quarter(k).end;
        if fixed { None } else { Some(target.quartiles[k]..=target.quartiles[k + 1]) }
    };
    correct_sum(&mut lengths, (target.mean * n as f64).round() as usize, bounds, random);
    lengths
}

/// Changes lengths by one within their bounds, in random order, until their sum is `wanted`.
fn correct_sum(
    lengths: &mut [usize],
    wanted: usize,
    bounds: impl Fn(usize) -> Option<std::ops::RangeInclusive<usize>>,
    random: &mut Random,
) {
    let mut sum: usize = lengths.iter().sum();
    let order = random.permutation(lengths.len());
    let mut moved = true;
    while sum != wanted && moved {
        moved = false;
        for &row in &order {
            let longer = if sum < wanted { lengths[row] + 1 } else { lengths[row].saturating_sub(1) };
            if sum != wanted && bounds(row).is_some_and(|bounds| bounds.contains(&longer)) {
                sum = sum + longer - lengths[row];
                lengths[row] = longer;
                moved = true;
            }
        }
    }
}

/// Returns the length of each row; runs of `profile.run` rows have similar lengths.
pub(super) fn row_lengths(profile: &Profile, target: &Target, random: &mut Random) -> Vec<usize> {
    let sorted = by_quarter(target, random);
    let runs: Vec<_> = sorted.chunks(profile.run).collect();
    random.permutation(runs.len()).into_iter().flat_map(|run| runs[run].iter().copied()).collect()
}
