//! Observed orders of convergence: of errors from two levels, of other numbers from three by Richardson's extrapolation.

use toml::Value;

/// Differences below this, relative to the numbers, are rounding.
const ROUNDING: f64 = 1e-13;

/// Ratios of sizes that differ by less are the same.
const SAME_RATIO: f64 = 1e-9;

/// Returns the order at which errors fall between sizes h and h / `ratio`, $\log(e_c/e_f)/\log r$.
pub(crate) fn observed_order(coarse: f64, fine: f64, ratio: f64) -> f64 {
    (coarse / fine).log2() / ratio.log2()
}

/// Returns the sizes of cells or steps, up to a factor, that a value of a key of resolution means, one for each direction; none
/// for other keys.
pub(super) fn sizes(key: &str, value: &Value) -> Option<Vec<f64>> {
    let number = match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    };
    let inverse = |x: f64| 1.0 / x;
    let sizes = match key {
        "mesh.refine" => vec![(-number?).exp2()],
        "mesh.generate.h" | "time.step" => vec![number?],
        "time.steps" => vec![inverse(number?)],
        "mesh.generate.cells" => match value {
            Value::Array(counts) => {
                counts.iter().map(|n| Some(inverse(n.as_integer()? as f64))).collect::<Option<_>>()?
            }
            _ => vec![inverse(number?)],
        },
        _ => return None,
    };
    sizes.iter().all(|size| size.is_finite() && *size > 0.0).then_some(sizes)
}

/// Returns whether a key gives the length of steps in time rather than the size of cells.
pub(super) fn is_of_time(key: &str) -> bool {
    key.starts_with("time.")
}

/// Returns how many times finer sizes are, if in all directions alike.
fn ratio(coarse: &[f64], fine: &[f64]) -> Option<f64> {
    let mut ratios = coarse.iter().zip(fine).map(|(coarse, fine)| coarse / fine);
    let first = ratios.next().filter(|ratio| coarse.len() == fine.len() && *ratio > 1.0)?;
    ratios.all(|ratio| is_same(ratio, first)).then_some(first)
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME_RATIO * b.abs()
}

/// The order observed at a level, and the number that the levels tend to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Observed {
    pub order: f64,
    /// Richardson's extrapolation; zero of errors.
    pub limit: f64,
}

/// Returns the order at each of the levels, the coarsest first, of a number that is an error or tends to an unknown limit.
///
/// An error needs two levels, another number three with one ratio of sizes: $p = \log((f_1 - f_0)/(f_2 - f_1))/\log r$, with the
/// limit $f_2 + (f_2 - f_1)/(r^p - 1)$. There is none where the differences change their sign, grow, or are rounding.
pub(super) fn observed(levels: &[(Vec<f64>, Option<f64>)], is_error: bool) -> Vec<Option<Observed>> {
    let at = |i: usize| {
        let ratio = |i: usize| ratio(&levels[i - 1].0, &levels[i].0);
        let number = |i: usize| levels[i].1.filter(|number| number.is_finite());
        if is_error {
            let (coarse, fine) = (number(i.checked_sub(1)?)?, number(i)?);
            let order = observed_order(coarse, fine, ratio(i)?);
            return order.is_finite().then_some(Observed { order, limit: 0.0 });
        }
        let [f0, f1, f2] = [number(i.checked_sub(2)?)?, number(i - 1)?, number(i)?];
        let (first, second) = (ratio(i - 1)?, ratio(i)?);
        let is_rounding = (f2 - f1).abs() <= ROUNDING * f2.abs().max(f1.abs());
        let order = observed_order(f1 - f0, f2 - f1, second);
        let limit = f2 + (f2 - f1) / (second.powf(order) - 1.0);
        let is_sound = is_same(first, second) && !is_rounding && order > 0.0 && limit.is_finite();
        is_sound.then_some(Observed { order, limit })
    };
    (0..levels.len()).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: impl Fn(f64) -> f64) -> Vec<(Vec<f64>, Option<f64>)> {
        (0..4).map(|n| (-f64::from(n)).exp2()).map(|h| (vec![h], Some(of(h)))).collect()
    }

    #[test]
    fn orders_of_powers_are_exact() {
        for p in [1.0, 2.0, 3.5] {
            let errors = observed(&levels(|h| 3.0 * h.powf(p)), true);
            assert!(errors[0].is_none());
            assert!(errors[1..].iter().all(|found| (found.unwrap().order - p).abs() < 1e-12), "{errors:?}");
            let numbers = observed(&levels(|h| 7.0 - 3.0 * h.powf(p)), false);
            assert!(numbers[..2] == [None, None]);
            for found in &numbers[2..] {
                let Observed { order, limit } = found.unwrap();
                assert!((order - p).abs() < 1e-10 && (limit - 7.0).abs() < 1e-10, "{order} {limit}");
            }
        }
    }

    #[test]
    fn numbers_without_an_order_have_none() {
        // Constant, alternating, growing differences, missing.
        for of in [|_| 1.0, |h: f64| h.log2().rem_euclid(2.0), |h: f64| 1.0 / h, |_| f64::NAN] {
            assert!(observed(&levels(of), false).iter().all(Option::is_none));
        }
        assert!(observed(&levels(|_| 0.0), true).iter().all(Option::is_none));
        // Of errors the ratio may change, of other numbers it may not.
        let uneven = [1.0, 0.5, 0.1].map(|h: f64| (vec![h], Some(h * h))).to_vec();
        assert!((observed(&uneven, true)[2].unwrap().order - 2.0).abs() < 1e-12);
        assert_eq!(observed(&uneven, false)[2], None);
        // Refined in one direction alone.
        let flat = [[1.0, 1.0], [0.5, 1.0]].map(|sizes| (sizes.to_vec(), Some(sizes[0]))).to_vec();
        assert_eq!(observed(&flat, true)[1], None);
    }

    #[test]
    fn keys_of_resolution_have_sizes() {
        let cells = |n: [i64; 2]| Value::Array(n.map(Value::Integer).to_vec());
        for (key, coarse, fine, expected) in [
            ("mesh.refine", Value::Integer(1), Value::Integer(3), Some(4.0)),
            ("mesh.generate.h", Value::Float(0.3), Value::Float(0.1), Some(0.3 / 0.1)),
            ("mesh.generate.cells", Value::Integer(4), Value::Integer(12), Some(3.0)),
            ("mesh.generate.cells", cells([4, 6]), cells([6, 9]), Some(1.5)),
            ("mesh.generate.cells", cells([4, 6]), cells([8, 6]), None),
            ("time.steps", Value::Integer(10), Value::Integer(20), Some(2.0)),
            ("time.step", Value::Float(1.0), Value::Float(0.5), Some(2.0)),
        ] {
            let found = ratio(&sizes(key, &coarse).unwrap(), &sizes(key, &fine).unwrap());
            assert!(match (found, expected) {
                (Some(found), Some(expected)) => is_same(found, expected),
                (found, expected) => found == expected,
            });
        }
        for (key, value) in [
            ("solver.tolerance", Value::Float(0.1)),
            ("mesh.refine", Value::String("a".into())),
            ("time.steps", Value::Integer(0)),
        ] {
            assert_eq!(sizes(key, &value), None, "{key}");
        }
    }
}
