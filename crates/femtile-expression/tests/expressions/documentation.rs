//! The page for users, `docs/expressions.md`, against the parser.

use femtile_expression::{Condition, Expression};

const PAGE: &str = include_str!("../../../../docs/expressions.md");

/// Lines of the fenced blocks of one language.
fn fenced(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = PAGE.split(&opening).skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<_> = blocks.flat_map(str::lines).collect();
    assert!(!lines.is_empty(), "no block of {language}");
    lines
}

#[test]
fn every_example_of_the_page_parses() {
    for line in fenced("expression") {
        assert!(Expression::parse(line).is_ok(), "{line}");
    }
    for line in fenced("condition") {
        assert!(Condition::parse(line).is_ok(), "{line}");
    }
}

#[test]
fn the_page_names_every_function_and_constant() {
    let advice = Expression::parse("unknown").unwrap_err().advice.unwrap_or_default();
    let names = advice.replace("the names are", "").replace("the functions are", "").replace(';', ",");
    let names: Vec<_> = names.split(',').map(str::trim).collect();
    assert!(names.len() > 25);
    for name in names {
        assert!(PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("`{name}(")), "{name}");
    }
}

#[test]
fn the_error_on_the_page_is_the_one_that_is_given() {
    let lines = fenced("text");
    let error = Expression::parse(lines[0]).unwrap_err();
    assert_eq!(error.pointed(lines[0]), lines[..2].join("\n"));
    assert!(error.to_string().starts_with(lines[2].trim_end_matches(" …")), "{error}");
}

#[test]
fn the_rust_of_the_page_gives_the_source_of_a_manufactured_solution() {
    use femtile_expression::Variable;
    let u = Expression::parse("sin(pi*x)*cosh(y)").unwrap();
    let sigma = Expression::parse("1 + x^2").unwrap();
    let flux = |variable| (&sigma * &u.derivative(variable)).derivative(variable);
    let source = -&(&flux(Variable::X) + &flux(Variable::Y));
    let by_hand = "(1 + x^2)*(pi^2 - 1)*sin(pi*x)*cosh(y) - 2*x*pi*cos(pi*x)*cosh(y)";
    let by_hand = Expression::parse(by_hand).unwrap();
    for point in [[0.1, 0.2, 0.0], [0.7, -1.3, 0.0], [-2.0, 0.5, 0.0]] {
        let (source, by_hand) = (source.eval(point), by_hand.eval(point));
        assert!((source - by_hand).abs() < 1e-12 * (1.0 + by_hand.abs()), "{source} against {by_hand}");
    }
}

#[test]
fn the_inputs_of_the_page_have_names() {
    use femtile_expression::{Names, Variable};
    let sigma = Expression::parse_with("1 + u^2", &Names { time: false, others: &["u"] }).unwrap();
    let slope = sigma.derivative(Variable::Other(0));
    assert_eq!(slope.to_string(), "2*u");
    assert_eq!(slope.eval_with([0.0; 3], 0.0, &[3.0]), 6.0);
}

#[test]
fn the_program_of_the_page_computes_a_gate_and_a_current_with_its_slope() {
    use femtile_expression::{ProgramBuilder, ProgramInput, TapeScratch};
    let mut builder = ProgramBuilder::new(&["V", "m", "dt"]).unwrap();
    for (name, text) in [
        ("steady", "1/(1 + exp((-40 - V)/5))"),
        ("tau", "0.1 + 2/exprel((V + 30)/7)"),
        ("next", "steady - (steady - m)*exp(-dt/tau)"),
    ] {
        assert!(PAGE.contains(&format!("builder.define(\"{name}\", \"{text}\")")), "{name}");
        builder.define(name, text).unwrap();
    }
    let gate = builder.value("next").unwrap();
    let current = builder.expression("12*next^3*(V - 50)").unwrap();
    let slope = builder.derivative(current, builder.input(0));
    let program = builder.finish(&[gate, current, slope]);
    let (v, m) = ([-80.0, 0.0, 30.0], [0.1, 0.5, 0.9]);
    let (mut gates, mut currents, mut slopes) = ([0.0; 3], [0.0; 3], [0.0; 3]);
    let inputs = [ProgramInput::Values(&v), ProgramInput::Values(&m), ProgramInput::Uniform(0.02)];
    program.run(&mut [&mut gates, &mut currents, &mut slopes], &inputs, &mut TapeScratch::default());
    let next = |v: f64, m: f64| {
        let steady = 1.0 / (1.0 + ((-40.0 - v) / 5.0).exp());
        let z = (v + 30.0) / 7.0;
        steady - (steady - m) * (-0.02 / (0.1 + 2.0 * z / z.exp_m1())).exp()
    };
    let current = |v: f64, m: f64| 12.0 * next(v, m).powi(3) * (v - 50.0);
    for i in 0..3 {
        let h = 1e-4;
        let slope = (current(v[i] + h, m[i]) - current(v[i] - h, m[i])) / (2.0 * h);
        assert!((gates[i] - next(v[i], m[i])).abs() < 1e-14);
        assert!((currents[i] - current(v[i], m[i])).abs() < 1e-12);
        assert!((slopes[i] - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{} {slope}", slopes[i]);
    }
}
