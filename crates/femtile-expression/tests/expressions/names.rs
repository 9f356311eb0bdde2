//! Expressions of inputs with names of their own.

use femtile_expression::{Expression, ExpressionError, Inputs, Names, TapeScratch, Variable};

const U: Variable = Variable::Other(0);

fn of_u(text: &str) -> Expression {
    Expression::parse_with(text, &Names { time: true, others: &["u", "E_Na"] }).unwrap()
}

fn refused(text: &str, time: bool, others: &[&str]) -> ExpressionError {
    Expression::parse_with(text, &Names { time, others }).unwrap_err()
}

#[test]
fn names_stand_for_the_inputs_at_their_positions() {
    let formula = of_u("x*u^2 - E_Na*t");
    assert!(formula.uses(U) && formula.uses(Variable::Other(1)) && !formula.uses(Variable::Y));
    assert_eq!(formula.to_string(), "x*u^2 - E_Na*t");
    assert_eq!(formula.eval_with([2.0, 0.0, 0.0], 3.0, &[5.0, 7.0]), 2.0 * 25.0 - 21.0);
    assert_eq!(formula.derivative(U).to_string(), "x*(2*u)");
    assert_eq!(formula.at_time(2.0).to_string(), "x*u^2 - 2*E_Na");
    assert!(formula.as_constant().is_none() && of_u("u - u + 0*E_Na").as_constant().is_none());
    assert_eq!(of_u("0*u + 3").as_constant(), Some(3.0));
    let product = &formula * &Expression::parse("y").unwrap();
    assert_eq!(product.to_string(), "(x*u^2 - E_Na*t)*y");
}

#[test]
fn inputs_without_values_are_not_numbers() {
    let formula = of_u("u + 1");
    assert!(formula.eval([0.0; 3]).is_nan() && formula.eval_with([0.0; 3], 0.0, &[]).is_nan());
    assert!(of_u("t").eval_with([0.0; 3], f64::NAN, &[1.0, 1.0]).is_nan());
}

#[test]
fn the_tape_gives_the_bits_of_eval_with() {
    for text in ["u", "t", "3*t", "u^3 + exp(-E_Na*t)*x", "if(u < E_Na, t, u/y)", "sin(t)*u + t/u"] {
        let formula = of_u(text);
        let tape = formula.tape();
        let mut scratch = TapeScratch::default();
        for n in [0, 1, 2, 255, 256, 257, 521] {
            let column = |factor: f64| (0..n).map(|i| f64::from(i) * factor - 1.0).collect::<Vec<f64>>();
            let (x, y, u, e) = (column(0.1), column(0.3), column(0.013), column(0.007));
            let mut out = vec![f64::NAN; n as usize];
            let inputs = Inputs { x: &x, y: &y, t: 0.7, others: &[&u, &e], ..Inputs::default() };
            tape.eval_block_with(&mut out, &inputs, &mut scratch);
            for i in 0..out.len() {
                let expected = formula.eval_with([x[i], y[i], f64::NAN], 0.7, &[u[i], e[i]]);
                assert_eq!(out[i].to_bits(), expected.to_bits(), "{text} at {i}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "0 values of other for 3 points")]
fn a_tape_refuses_to_run_without_the_inputs_it_uses() {
    of_u("u").tape().eval_block(&mut [0.0; 3], &[], &[], &[], &mut TapeScratch::default());
}

#[test]
fn names_that_mean_something_else_are_refused() {
    for (name, reason) in [
        ("x", "a coordinate"),
        ("t", "the time"),
        ("e", "a constant"),
        ("pi", "a constant"),
        ("true", "a constant"),
        ("exp", "a function"),
        ("if", "a function"),
        ("and", "an operator"),
        ("not", "an operator"),
        ("", "cannot be a name"),
        ("2u", "cannot be a name"),
        ("a b", "cannot be a name"),
        ("ä", "cannot be a name"),
        ("u'", "cannot be a name"),
    ] {
        for time in [false, true] {
            let error = refused("1", time, &["w", name]);
            assert!(error.message.contains(reason) && error.span == (0..0), "{name}: {error}");
        }
    }
    assert!(refused("1", false, &["u", "v", "u"]).message.contains("given twice"));
    for name in ["V", "E_Na", "Ca_i", "_", "d2", "E", "T", "X"] {
        assert!(Expression::parse_with(name, &Names { time: false, others: &[name] }).is_ok(), "{name}");
    }
}

#[test]
fn unknown_names_are_answered_with_those_there_are() {
    let error = refused("x + v", false, &["V", "E_Na"]);
    assert_eq!(error.span, 4..5);
    assert!(error.to_string().contains("did you mean `V`? the names are V, E_Na, x, y, z, pi,"), "{error}");
    let error = refused("E_na*u", true, &["u", "E_Na"]);
    assert!(error.to_string().contains("did you mean `E_Na`?"), "{error}");
    assert!(error.to_string().contains(", t;"), "{error}");
    assert!(refused("t", false, &["u"]).message.contains("unknown name `t`"));
    assert!(refused("u(1)", false, &["u"]).message.contains("`u` is not a function"));
    let many: Vec<String> = (0..100).map(|i| format!("name_{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refused("q", false, &many).to_string().contains("name_59 and 48 more"));
}

#[test]
fn expressions_that_differ_by_the_spelling_of_a_name_are_equal() {
    let of =
        |name: &str| Expression::parse_with(&format!("1 + {name}"), &Names { time: false, others: &[name] });
    assert_eq!(of("u").unwrap(), of("v").unwrap());
    assert_ne!(of_u("u").to_string(), of_u("E_Na").to_string());
    assert_ne!(of_u("u"), of_u("E_Na"));
}

#[test]
fn a_cuda_function_has_a_parameter_for_every_name() {
    let text = of_u("E_Na*x").cuda_function("f");
    assert!(text.contains(" f(double x, double y, double z, double other_0, double other_1) {"), "{text}");
    let text = of_u("u + t").cuda_function("f");
    assert!(text.contains("double z, double t, double other_0, double other_1) {"), "{text}");
    let plain = Expression::parse("x").unwrap();
    let text = Expression::cuda_array_function("f", &[&plain, &of_u("u"), &of_u("t")]);
    assert!(text.contains("double z, double t, double other_0, double other_1) {"), "{text}");
}
