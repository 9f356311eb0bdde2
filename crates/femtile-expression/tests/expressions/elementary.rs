//! Exponentials and logarithms against those of the standard library.

use femtile_device::cpu::SimdLevel;
use femtile_expression::{Expression, TapeScratch, Variable};
use proptest::prelude::*;

/// Distance in units in the last place; 0 for two NaN.
fn units_apart(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    let order = |value: f64| {
        let bits = value.to_bits() as i64;
        i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
    };
    (order(a) - order(b)).unsigned_abs() as u64
}

fn exprel(x: f64) -> f64 {
    match x {
        _ if x.abs() < 1e-17 => 1.0,
        f64::INFINITY => x,
        _ if x > 709.0 => x.exp() / x,
        _ => x.exp_m1() / x,
    }
}

type Function = fn(f64) -> f64;

/// Name, the standard library's function and the units in the last place that both may be apart.
const FUNCTIONS: [(&str, Function, u64); 6] = [
    ("exp", f64::exp, 1),
    ("expm1", f64::exp_m1, 3),
    ("exprel", exprel, 3),
    ("log", f64::ln, 1),
    ("log1p", f64::ln_1p, 2),
    ("tanh", f64::tanh, 4),
];

const SPECIAL: [f64; 30] = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    f64::MIN_POSITIVE,
    1e-310,
    -1e-310,
    1e-300,
    1e-17,
    -1e-17,
    0.5,
    1.0,
    -1.0,
    -0.9999999999999999,
    -1.0000000000000002,
    19.5,
    -40.0,
    707.9,
    708.0,
    709.782712893384,
    709.7827128933841,
    710.0,
    1e4,
    -708.0,
    -708.5,
    -745.1332191019411,
    -745.1332191019412,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Compares with the standard library, point by point and in blocks with all vector instructions.
fn check(points: &[f64]) {
    for (name, standard, most) in FUNCTIONS {
        let formula = Expression::parse(&format!("{name}(x)")).unwrap();
        let in_blocks = SimdLevel::available().into_iter().map(|level| {
            let mut values = vec![f64::NAN; points.len()];
            formula.tape().eval_block(&mut values, points, &[], &[], &mut TapeScratch::with_simd(level));
            values
        });
        let in_blocks: Vec<_> = in_blocks.collect();
        for (i, &x) in points.iter().enumerate() {
            let (single, standard) = (formula.eval([x, 0.0, 0.0]), standard(x));
            assert!(units_apart(single, standard) <= most, "{name}({x:e}) is {single:e}, not {standard:e}");
            for value in in_blocks.iter().map(|values| values[i]) {
                assert!(
                    units_apart(single, value) == 0,
                    "{name}({x:e}): {value:e} in a block, else {single:e}"
                );
            }
            if standard == 0.0 || x == 0.0 {
                assert_eq!(single.is_sign_negative(), standard.is_sign_negative(), "{name}({x:e})");
            }
        }
    }
}

#[test]
fn limits_overflow_and_subnormal_numbers_are_those_of_the_standard_library() {
    check(&SPECIAL);
    for point in SPECIAL {
        check(&[point]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn values_are_within_a_few_units_of_the_standard_library(
        anywhere in prop::collection::vec(any::<f64>(), 100),
        ordinary in prop::collection::vec(-750.0..750.0f64, 100),
        moderate in prop::collection::vec(-3.0..3.0f64, 100),
        near_one in prop::collection::vec(0.9..1.1f64, 100),
        small in prop::collection::vec((-1.0..1.0f64, -60..0i32), 100),
    ) {
        let small: Vec<f64> = small.iter().map(|(size, power)| size * 2.0_f64.powi(*power)).collect();
        for points in [anywhere, ordinary, moderate, near_one, small] {
            check(&points);
        }
    }

    #[test]
    fn slopes_of_exprel_agree_with_its_series_and_its_quotient(x in -5.0..5.0f64) {
        let slope = Expression::parse("exprel(x)").unwrap().derivative(Variable::X).eval([x, 0.0, 0.0]);
        let mut term = 0.5;
        let mut series = term;
        for k in 2..60 {
            term *= x * f64::from(k) / (f64::from(k - 1) * f64::from(k + 1));
            series += term;
        }
        prop_assert!((slope - series).abs() <= 2e-14 * series.abs(), "{x}: {slope} against {series}");
    }
}

#[test]
fn the_slope_of_exprel_at_zero_is_one_half() {
    let slope = Expression::parse("exprel(x)").unwrap().derivative(Variable::X);
    assert_eq!(slope.eval([0.0; 3]), 0.5);
    assert_eq!(slope.derivative(Variable::X).eval([0.0; 3]), 1.0 / 3.0);
    let flux = Expression::parse("1/exprel(x)").unwrap().derivative(Variable::X);
    assert_eq!(flux.eval([0.0; 3]), -0.5);
}
