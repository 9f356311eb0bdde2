//! Values of expressions, checked by hand.

use femtile_expression::{Condition, Expression, Variable};

fn at(text: &str, point: [f64; 3]) -> f64 {
    Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).eval(point)
}

fn value(text: &str) -> f64 {
    at(text, [2.0, 3.0, 5.0])
}

fn holds(text: &str, point: [f64; 3]) -> bool {
    Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).holds(point)
}

#[test]
fn operators_bind_as_in_the_textbook() {
    for (text, expected) in [
        ("1 + 2*3", 7.0),
        ("-x^2", -4.0),
        ("(-x)^2", 4.0),
        ("2^3^2", 512.0),
        ("2**3**2", 512.0),
        ("2^-1", 0.5),
        ("2^-x^2", 0.0625),
        ("x - y - z", -6.0),
        ("x - (y - z)", 4.0),
        ("x/y/z", 2.0 / 3.0 / 5.0),
        ("x/y*z", 2.0 / 3.0 * 5.0),
        ("-x*y", -6.0),
        ("x*-y", -6.0),
        ("x - -y", 5.0),
        ("--x", 2.0),
        ("+x", 2.0),
        ("3 − x", 1.0),
        ("-2^2", -4.0),
        (" x\n+\ty ", 5.0),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn numbers_are_read_in_every_spelling() {
    for (text, expected) in
        [("1e-9", 1e-9), (".5", 0.5), ("2.", 2.0), ("2.e3", 2e3), ("1.5E+2", 150.0), ("007", 7.0), ("0", 0.0)]
    {
        assert_eq!(value(text).to_bits(), f64::to_bits(expected), "{text}");
    }
    assert_eq!(value("pi"), std::f64::consts::PI);
    assert_eq!(value("e"), std::f64::consts::E);
    assert_eq!(value("-0").to_bits(), (-0.0f64).to_bits());
}

#[test]
fn functions_give_the_values_of_the_standard_library() {
    let (a, b) = (0.3f64, 0.7f64);
    for (text, expected) in [
        ("sin(x)", a.sin()),
        ("cos(x)", a.cos()),
        ("tan(x)", a.tan()),
        ("asin(x)", a.asin()),
        ("acos(x)", a.acos()),
        ("atan(x)", a.atan()),
        ("atan2(x, y)", a.atan2(b)),
        ("sinh(x)", a.sinh()),
        ("cosh(x)", a.cosh()),
        ("tanh(x)", a.tanh()),
        ("exp(x)", a.exp()),
        ("e^x", a.exp()),
        ("log(x)", a.ln()),
        ("ln(x)", a.ln()),
        ("log10(x)", a.log10()),
        ("sqrt(x)", a.sqrt()),
        ("x^0.5", a.sqrt()),
        ("abs(-x)", a),
        ("pow(x, y)", a.powf(b)),
        ("x^1.5", a.powf(1.5)),
        ("hypot(x, y)", a.hypot(b)),
        ("min(x, y)", a),
        ("max(x, y)", b),
        ("min(4, y, x)", a),
        ("floor(-x)", -1.0),
        ("ceil(x)", 1.0),
        ("sign(-x)", -1.0),
        ("sign(x - x)", 0.0),
        ("sign(x)", 1.0),
    ] {
        assert_eq!(at(text, [a, b, 0.0]), expected, "{text}");
    }
}

#[test]
fn integer_powers_agree_with_pow_to_four_ulps_per_factor() {
    for exponent in -40..=40 {
        for base in [0.1, -0.7, 1.3, -2.5, 11.0] {
            let exact = f64::powf(base, f64::from(exponent));
            let power = at(&format!("x^{exponent}"), [base, 0.0, 0.0]);
            assert!(
                (power - exact).abs() <= 4e-15 * exact.abs(),
                "{base}^{exponent}: {power} against {exact}"
            );
        }
    }
}

#[test]
fn minimum_and_maximum_pass_nan_on_from_either_side() {
    for text in ["min(x, y)", "max(x, y)", "min(y, x)", "max(y, x)", "sign(x)"] {
        assert!(at(text, [f64::NAN, 1.0, 0.0]).is_nan(), "{text}");
    }
}

#[test]
fn the_branch_that_is_not_taken_does_not_leak() {
    assert_eq!(at("if(x > 0, 1/x, 7)", [0.0; 3]), 7.0);
    assert_eq!(at("if(x >= 0, sqrt(x), -1)", [-4.0, 0.0, 0.0]), -1.0);
    assert_eq!(at("if(x<0.5, 1, 2)", [0.4, 0.0, 0.0]), 1.0);
    assert_eq!(at("if(x<0.5, 1, 2)", [0.5, 0.0, 0.0]), 2.0);
}

#[test]
fn conditions_compare_chain_and_join() {
    let point = [0.25, 0.5, 1.0];
    for (text, expected) in [
        ("x < 0.25", false),
        ("x <= 0.25", true),
        ("x ≤ 0.25", true),
        ("z >= 1", true),
        ("z > 1", false),
        ("z != 1", false),
        ("x == y/2", true),
        ("0 < x < 1", true),
        ("0 < x < y < z", true),
        ("0 < x < 0.2", false),
        ("x > 1 or y > 0.4 and z > 2", false),
        ("(x > 1 or y > 0.4) and z < 2", true),
        ("x > 1 || y > 0.4 && z < 2", true),
        ("not x > 1", true),
        ("!(x < 1)", false),
        ("not not x < 1", true),
        ("not x < 1 or y < 1", true),
        ("true", true),
        ("true and not false", true),
        ("x < 1 and false", false),
        ("((x) < (1))", true),
        ("if(x < 1, 1, 2) == 1", true),
    ] {
        assert_eq!(holds(text, point), expected, "{text}");
    }
}

#[test]
fn equality_allows_rounding_and_nothing_more() {
    assert!(holds("x == 1", [0.1 + 0.2 + 0.7 + 1e-13, 0.0, 0.0]));
    assert!(!holds("x == 1", [1.0 + 2e-12, 0.0, 0.0]));
    assert!(holds("x == 0", [9e-13, 0.0, 0.0]));
    assert!(holds("x == 1e9", [1e9 + 5e-4, 0.0, 0.0]));
    assert!(!holds("x == y", [f64::NAN, f64::NAN, 0.0]));
    assert!(holds("x != y", [f64::NAN, f64::NAN, 0.0]));
    assert!(!holds("x == y", [f64::INFINITY, 5.0, 0.0]));
    assert!(!holds("x == y", [f64::INFINITY, f64::NEG_INFINITY, 0.0]));
    assert!(holds("x == y", [f64::INFINITY, f64::INFINITY, 0.0]));
    assert!(!holds("x < 1 or x >= 1", [f64::NAN, 0.0, 0.0]));
}

#[test]
fn constants_fold_and_neutral_elements_vanish() {
    for (text, simple) in [
        ("0*x", "0"),
        ("1*x", "x"),
        ("x*1", "x"),
        ("x + 0", "x"),
        ("0 + x", "x"),
        ("x - 0", "x"),
        ("x^1", "x"),
        ("x^0", "1"),
        ("x/1", "x"),
        ("0/x", "0"),
        ("-(-x)", "x"),
        ("0 - x", "-x"),
        ("x*2", "2*x"),
        ("2*(3*x)", "6*x"),
        ("-(2*x)", "-2*x"),
        ("x + -2", "x - 2"),
        ("x + -2*y", "x - 2*y"),
        ("x - -2*y", "x + 2*y"),
        ("2*3 + 4*x", "6 + 4*x"),
        ("sin(0) + x", "x"),
        ("if(1 < 2, x, y)", "x"),
        ("if(z < 2, x, x)", "x"),
        ("x^(1 + 1)", "x^2"),
        ("2*pi/2", "pi"),
    ] {
        let expression = Expression::parse(text).unwrap();
        assert_eq!(expression.to_string(), simple, "{text}");
    }
}

#[test]
fn a_constant_is_what_depends_on_nothing() {
    assert_eq!(Expression::parse("1/3 + 0*x").unwrap().as_constant(), Some(1.0 / 3.0));
    assert_eq!(Expression::parse("1/0").unwrap().as_constant(), Some(f64::INFINITY));
    assert_eq!(Expression::parse("x").unwrap().as_constant(), None);
    for value in [0.0, -0.0, 1e-320, -2.5, 1e308, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            Expression::constant(value).as_constant().map(f64::to_bits),
            Some(value.to_bits()),
            "{value}"
        );
    }
    assert!(Expression::constant(f64::NAN).as_constant().unwrap().is_nan());
}

#[test]
fn use_of_a_coordinate_is_that_of_the_simplified_expression() {
    let expression = Expression::parse("x + 0*y + if(z < 1, 1, 2)").unwrap();
    let uses = Variable::ALL.map(|variable| expression.uses(variable));
    assert_eq!(uses, [true, false, true]);
}

#[test]
fn arithmetic_on_expressions_is_that_of_their_texts() {
    let (a, b) = (Expression::parse("x + 1").unwrap(), Expression::parse("sin(y)").unwrap());
    assert_eq!(&a + &b, Expression::parse("x + 1 + sin(y)").unwrap());
    assert_eq!(&a - &b, Expression::parse("x + 1 - sin(y)").unwrap());
    assert_eq!(&a * &b, Expression::parse("(x + 1)*sin(y)").unwrap());
    assert_eq!(&a / &b, Expression::parse("(x + 1)/sin(y)").unwrap());
    assert_eq!(-&a, Expression::parse("-(x + 1)").unwrap());
}

#[test]
fn the_time_is_a_name_only_where_it_is_asked_for() {
    assert!(Expression::parse("x*t").is_err() && Condition::parse("t < 1").is_err());
    let u = Expression::parse_in_time("x^2*exp(-t) + t^3").unwrap();
    assert!(u.uses(Variable::T) && u.as_constant().is_none());
    assert_eq!(u.to_string(), "x^2*exp(-t) + t^3");
    assert!(u.eval([1.0, 0.0, 0.0]).is_nan());
    for t in [0.0, -1.5, 2.0] {
        let then = u.at_time(t);
        assert!(!then.uses(Variable::T));
        assert_eq!(then.eval([3.0, 0.0, 0.0]), 9.0 * (-t).exp() + t * t * t);
    }
    assert_eq!(Expression::parse_in_time("t/(1+t)").unwrap().at_time(1.0).as_constant(), Some(0.5));
    assert_eq!(u.derivative(Variable::T).at_time(2.0).eval([0.0; 3]), 12.0);
    assert!(u.cuda_function("u").contains("double z, double t)"));
    assert!(!u.at_time(1.0).cuda_function("u").contains("double t"));
}

#[test]
fn a_tape_without_the_time_gives_no_number() {
    let mut values = [0.0; 2];
    let tape = Expression::parse_in_time("x + t").unwrap().tape();
    tape.eval_block(&mut values, &[1.0, 2.0], &[], &[], &mut femtile_expression::TapeScratch::default());
    assert!(values.iter().all(|value| value.is_nan()));
}
