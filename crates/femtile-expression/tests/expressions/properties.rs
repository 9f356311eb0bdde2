//! Random expressions: printing, the tape and derivatives against their definitions.

use crate::common;

use femtile_expression::{Condition, Expression, TapeScratch, Variable};
use proptest::prelude::*;

/// Coordinates with the values at which functions break.
fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -2.0..2.0f64,
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 0.5, 1e300, -1e-300, f64::INFINITY, f64::NAN]),
        1 => any::<f64>(),
    ]
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Compares tape and `eval` bit for bit on `n` points.
fn check_tape(expression: &Expression, points: &[[f64; 3]], n: usize, scratch: &mut TapeScratch) {
    let column = |axis: usize| -> Vec<f64> {
        (0..n).map(|i| points[i % points.len()][axis] + (i / 7) as f64).collect()
    };
    let (x, y, z) = (column(0), column(1), column(2));
    let mut out = vec![f64::NAN; n];
    expression.tape().eval_block(&mut out, &x, &y, &z, scratch);
    for i in 0..n {
        let expected = expression.eval([x[i], y[i], z[i]]);
        assert!(
            same(out[i], expected),
            "{expression} at {:?}: {} against {expected}",
            [x[i], y[i], z[i]],
            out[i]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn printed_expressions_parse_back_to_equal_ones(text in common::any_number()) {
        let expression = Expression::parse(&text).unwrap();
        let printed = expression.to_string();
        let again = Expression::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
        prop_assert_eq!(&again, &expression, "{}", printed);
        prop_assert_eq!(again.to_string(), printed);
    }

    #[test]
    fn printed_conditions_parse_back_to_equal_ones(text in common::any_condition()) {
        let condition = Condition::parse(&text).unwrap();
        let printed = condition.to_string();
        let again = Condition::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
        prop_assert_eq!(again, condition, "{}", printed);
    }

    #[test]
    fn printed_derivatives_parse_back_to_equal_ones(text in common::any_number()) {
        for variable in Variable::ALL {
            let slope = Expression::parse(&text).unwrap().derivative(variable);
            let printed = slope.to_string();
            if !printed.ends_with('…') {
                let again = Expression::parse(&printed).unwrap_or_else(|error| panic!("{printed}: {error}"));
                prop_assert_eq!(again, slope, "{}", printed);
            }
        }
    }

    #[test]
    fn the_tape_gives_the_bits_of_eval(
        text in common::any_number(),
        points in prop::collection::vec([coordinate(), coordinate(), coordinate()], 1..40),
    ) {
        let expression = Expression::parse(&text).unwrap();
        let mut scratch = TapeScratch::default();
        for n in [0, 1, 2, 127, 128, 129, 255, 256, 257, 521] {
            check_tape(&expression, &points, n, &mut scratch);
        }
        let slope = expression.derivative(Variable::X);
        for n in [1, 257] {
            check_tape(&slope, &points, n, &mut scratch);
        }
    }

    #[test]
    fn derivatives_agree_with_central_differences(
        text in common::smooth_number(),
        point in [-0.9..0.9f64, -0.9..0.9f64, -0.9..0.9f64],
    ) {
        let expression = Expression::parse(&text).unwrap();
        for variable in Variable::ALL {
            let slope = expression.derivative(variable);
            let at = |step: f64| {
                let mut point = point;
                point[variable.index()] += step;
                (expression.eval(point), slope.eval(point))
            };
            let h = 1e-5;
            let difference = (at(h).0 - at(-h).0) / (2.0 * h);
            let exact = at(0.0).1;
            // Truncation is bounded by the change of the second derivative, itself a difference of slopes.
            let curvature = ((at(100.0 * h).1 - 2.0 * exact + at(-100.0 * h).1) / (100.0 * h).powi(2)).abs();
            let size = at(0.0).0.abs() + exact.abs() + 1.0;
            let tolerance = 1e-9 * size + h * h * curvature;
            prop_assume!(exact.is_finite() && size < 1e6 && curvature < 1e6);
            prop_assert!((difference - exact).abs() <= tolerance, "d {expression} = {slope}: {difference} against {exact}");
        }
    }

    #[test]
    fn derivatives_are_linear_and_obey_the_product_rule(
        a in common::smooth_number(),
        b in common::smooth_number(),
        point in [-0.9..0.9f64, -0.9..0.9f64, -0.9..0.9f64],
    ) {
        let (a, b) = (Expression::parse(&a).unwrap(), Expression::parse(&b).unwrap());
        let (da, db) = (a.derivative(Variable::Y), b.derivative(Variable::Y));
        let rule = &(&da * &b) + &(&a * &db);
        for (ours, rule) in [((&a * &b).derivative(Variable::Y), rule), ((&a - &b).derivative(Variable::Y), &da - &db)] {
            let (ours, rule) = (ours.eval(point), rule.eval(point));
            prop_assert!((ours - rule).abs() <= 1e-9 * (1.0 + rule.abs()) || !rule.is_finite());
        }
    }
}

#[test]
fn derivatives_read_as_in_the_textbook() {
    for (text, slope) in [
        ("7", "0"),
        ("y", "0"),
        ("x", "1"),
        ("x^2", "2*x"),
        ("x^3", "3*x^2"),
        ("1/x", "-1/x/x"),
        ("x^-2", "-2*x^-3"),
        ("x*y", "y"),
        ("sin(2*x)", "2*cos(2*x)"),
        ("cos(x)", "-sin(x)"),
        ("exp(-x)", "-exp(-x)"),
        ("expm1(x)", "exp(x)"),
        ("log1p(2*x)", "2/(1 + 2*x)"),
        ("log(x)", "1/x"),
        ("sqrt(x)", "1/(2*sqrt(x))"),
        ("tanh(x)", "1 - tanh(x)^2"),
        ("atan(x)", "1/(1 + x^2)"),
        ("abs(x)", "sign(x)"),
        ("floor(x) + sign(x)", "0"),
        ("x^y", "y*x^(y - 1)"),
        ("if(x < 1, x^2, y)", "if(x < 1, 2*x, 0)"),
        ("max(x, y)", "if(x > y, 1, 0)"),
    ] {
        let derivative = Expression::parse(text).unwrap().derivative(Variable::X);
        assert_eq!(derivative.to_string(), slope, "{text}");
    }
}

#[test]
fn a_tape_needs_no_coordinates_that_it_does_not_use() {
    let tape = Expression::parse("y^2 + 1").unwrap().tape();
    let y: Vec<f64> = (0..300).map(f64::from).collect();
    let mut out = vec![f64::NAN; 300];
    tape.eval_block(&mut out, &[], &y, &[], &mut TapeScratch::default());
    assert!(out.iter().zip(&y).all(|(&out, &y)| out == y * y + 1.0));
}

#[test]
#[should_panic(expected = "2 values of x for 3 points")]
fn a_tape_refuses_slices_of_different_lengths() {
    let tape = Expression::parse("x").unwrap().tape();
    tape.eval_block(&mut [0.0; 3], &[1.0; 2], &[], &[], &mut TapeScratch::default());
}

#[test]
fn one_scratch_serves_tapes_of_different_sizes() {
    let mut scratch = TapeScratch::default();
    let points: Vec<[f64; 3]> = (0..300).map(|i| [f64::from(i) * 0.01, 0.5, -0.25]).collect();
    for text in
        ["x", "2", "sin(x)*cos(x) + sin(y)*cos(y) + (x*y + y*z)*(x*z + y*x)", "1/0", "x^7 + x^6 + x^-3"]
    {
        check_tape(&Expression::parse(text).unwrap(), &points, 300, &mut scratch);
    }
}
