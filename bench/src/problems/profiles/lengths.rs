//! Row lengths with given quartiles, mean and variance.
//!
//! Each quarter of the sorted lengths rises from one quartile to the next as a power of the rank. The
//! powers, and how high the last quarter rises before its longest row, are searched for until mean and
//! variance of the rounded lengths are those asked for.

use super::Profile;
use super::random::Random;

/// Mean positions of a quarter between its ends that are tried.
const POSITIONS: [f64; 21] = [
    0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.925, 0.95,
    0.98, 0.99, 0.995,
];
/// The same for the quarters beside the median.
const INNER_POSITIONS: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Heights of the last quarter that are tried.
const HEIGHTS: i32 = 16;
/// Ranks at which the moments of a shape are taken.
const SAMPLES: usize = 4096;
/// How much a bend counts beside a relative error of mean or variance.
const BEND_WEIGHT: f64 = 1e-3;

/// What is asked of the lengths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub n_rows: usize,
    /// Minimum, lower quartile, median, upper quartile, maximum.
    pub quartiles: [usize; 5],
    pub mean: f64,
    pub variance: f64,
}

/// How the lengths of a quarter rise with their rank.
#[derive(Debug, Clone, Copy)]
struct Shape {
    low: f64,
    rise: f64,
    exponent: f64,
    /// How far it is from a straight line.
    bend: f64,
    /// Mean and mean square of the rounded lengths.
    moments: [f64; 2],
}

impl Shape {
    /// From `low` to `high`, with its mean at `position` between them.
    fn new(low: f64, high: f64, position: f64) -> Self {
        let bend = (position - 0.5) * (position - 0.5);
        let mut shape = Self {
            low,
            rise: high - low,
            exponent: 1.0 / position - 1.0,
            bend: if high > low { bend } else { 0.0 },
            moments: [0.0; 2],
        };
        for k in 0..SAMPLES {
            let length = shape.length((k as f64 + 0.5) / SAMPLES as f64);
            shape.moments[0] += length / SAMPLES as f64;
            shape.moments[1] += length * length / SAMPLES as f64;
        }
        shape
    }

    /// The length of the row at `rank`, a number of [0, 1].
    fn length(&self, rank: f64) -> f64 {
        (self.low + self.rise * rank.powf(self.exponent)).round()
    }
}

fn shapes(low: usize, high: usize, positions: &[f64]) -> Vec<Shape> {
    let (low, high) = (low as f64, high as f64);
    let positions = if low == high { &positions[..1] } else { positions };
    positions.iter().map(|&position| Shape::new(low, high, position)).collect()
}

/// Shapes that end at heights from `low` to `high`, for a longest row may stand far above the next.
fn tails(low: usize, high: usize) -> Vec<Shape> {
    let height = |k: i32| low as f64 + (high - low) as f64 * 0.7_f64.powi(k);
    let heights = if low == high { 0..1 } else { 0..HEIGHTS };
    heights.flat_map(|k| POSITIONS.map(|position| Shape::new(low as f64, height(k), position))).collect()
}

/// One shape a quarter, so that mean and variance are closest to the target's.
fn fit(target: &Target) -> [Shape; 4] {
    let [min, q1, median, q3, max] = target.quartiles;
    let lower = shapes(min, q1, &POSITIONS);
    let inner = [shapes(q1, median, &INNER_POSITIONS), shapes(median, q3, &INNER_POSITIONS)];
    let tails = tails(q3, max);
    let longest = max as f64 / target.n_rows as f64;
    let mut best = ([lower[0], inner[0][0], inner[1][0], tails[0]], f64::INFINITY);
    for a in &lower {
        for b in &inner[0] {
            for c in &inner[1] {
                let sum = |k: usize| a.moments[k] + b.moments[k] + c.moments[k];
                let (first, second) = (sum(0), sum(1));
                let bend = a.bend + b.bend + c.bend;
                for d in &tails {
                    let mean = (first + d.moments[0]) / 4.0 + longest;
                    let square = (second + d.moments[1]) / 4.0 + longest * max as f64;
                    let errors = relative(mean, target.mean)
                        + relative(square - mean * mean, target.variance)
                        + BEND_WEIGHT * (bend + d.bend);
                    if errors < best.1 {
                        best = ([*a, *b, *c, *d], errors);
                    }
                }
            }
        }
    }
    best.0
}

fn relative(found: f64, wanted: f64) -> f64 {
    (found - wanted).abs() / wanted.max(1e-3)
}

/// Lengths in ascending order of quarters, whose sum is that of the target as nearly as the quartiles allow.
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
        // The rows that make the quartiles stay.
        let fixed = row == 0 || row + 1 == quarter(k).end;
        if fixed { None } else { Some(target.quartiles[k]..=target.quartiles[k + 1]) }
    };
    correct_sum(&mut lengths, (target.mean * n as f64).round() as usize, bounds, random);
    lengths
}

/// Makes rows one longer or shorter within their bounds, in an order of chance, until the sum is `wanted`.
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

/// The length of each row; runs of `profile.run` rows are about equally long.
pub(super) fn row_lengths(profile: &Profile, target: &Target, random: &mut Random) -> Vec<usize> {
    let sorted = by_quarter(target, random);
    let runs: Vec<_> = sorted.chunks(profile.run).collect();
    random.permutation(runs.len()).into_iter().flat_map(|run| runs[run].iter().copied()).collect()
}
