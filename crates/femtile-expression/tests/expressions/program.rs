//! Programs of several outputs against expressions, derivatives against differences.

use femtile_expression::{ProgramBuilder, ProgramInput, TapeScratch};

fn run(program: &femtile_expression::Program, inputs: &[ProgramInput<'_>], n: usize) -> Vec<Vec<f64>> {
    let mut outputs = vec![vec![f64::NAN; n]; program.n_outputs()];
    let mut slices: Vec<&mut [f64]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    program.run(&mut slices, inputs, &mut TapeScratch::default());
    outputs
}

#[test]
fn definitions_and_inputs_are_names_of_later_texts() {
    let mut builder = ProgramBuilder::new(&["V", "x"]).unwrap();
    builder.define("RT", "2*3").unwrap();
    let gate = builder.define("m", "RT*V + x").unwrap();
    let rate = builder.expression("m^2 - V").unwrap();
    assert_eq!(builder.value("m"), Some(gate));
    assert_eq!(builder.value("n"), None);
    let program = builder.finish(&[rate, gate, builder.input(1)]);
    assert_eq!((program.n_inputs(), program.n_outputs()), (2, 3));
    let mut outputs = [f64::NAN; 3];
    program.eval(&[2.0, 5.0], &mut outputs);
    assert_eq!(outputs, [17.0 * 17.0 - 2.0, 17.0, 5.0]);
    assert_eq!(program.n_operations(), 4);
}

#[test]
fn coordinates_and_the_time_are_no_names_of_programs() {
    let mut builder = ProgramBuilder::new(&["V"]).unwrap();
    for name in ["x", "y", "z", "t"] {
        let error = builder.expression(name).unwrap_err();
        assert!(error.to_string().contains("the names are V, "), "{error}");
        assert!(error.to_string().contains(", pi, ") && !error.to_string().contains(&format!(" {name},")));
        builder.define(name, "V + 1").unwrap();
    }
    assert!(builder.expression("x + y + z + t").is_ok());
}

#[test]
fn names_of_programs_are_given_once_and_are_no_functions() {
    for names in [["V", "V"], ["V", "exp"], ["V", "e"], ["V", "1"]] {
        assert!(ProgramBuilder::new(&names).is_err(), "{names:?}");
    }
    let mut builder = ProgramBuilder::new(&["V"]).unwrap();
    builder.define("a", "1").unwrap();
    for name in ["V", "a", "tanh", "or"] {
        assert!(builder.define(name, "2").is_err(), "{name}");
    }
    let error = builder.define("b", "a*(V - )").unwrap_err();
    assert_eq!(error.span, 7..8);
    assert!(builder.value("b").is_none());
    assert!(builder.define("b", "a").is_ok());
}

#[test]
fn what_outputs_share_is_computed_once() {
    let mut builder = ProgramBuilder::new(&["V"]).unwrap();
    let a = builder.expression("1 + exp(V/7)").unwrap();
    let b = builder.expression("2/(1 + exp(V/7))").unwrap();
    let program = builder.finish(&[a, b, a]);
    assert_eq!(program.n_operations(), 4);
    let text = program.cuda_function("rates", femtile_expression::Precision::F64);
    assert_eq!(text.matches("exp(").count(), 1, "{text}");
    assert!(text.starts_with("__device__ __forceinline__ void rates(double* out, const double* in) {"));
}

#[test]
fn values_combine_as_texts_do() {
    let mut builder = ProgramBuilder::new(&["a", "b"]).unwrap();
    let (a, b) = (builder.input(0), builder.input(1));
    let two = builder.constant(2.0);
    let made = [
        builder.add(a, b),
        builder.sub(a, b),
        builder.mul(a, two),
        builder.div(a, b),
        builder.neg(a),
        builder.exp(a),
        builder.expm1(b),
    ];
    for (made, text) in made.iter().zip(["a + b", "a - b", "2*a", "a/b", "-a", "exp(a)", "expm1(b)"]) {
        assert_eq!(builder.expression(text).unwrap(), *made, "{text}");
    }
}

#[test]
fn derivatives_pass_through_definitions() {
    let mut builder = ProgramBuilder::new(&["V", "w"]).unwrap();
    let square = builder.define("square", "V^2").unwrap();
    let rate = builder.define("rate", "sin(square)*w + square").unwrap();
    let (v, w) = (builder.input(0), builder.input(1));
    let slopes = [builder.derivative(rate, v), builder.derivative(rate, w), builder.derivative(rate, square)];
    let none = builder.derivative(square, w);
    let mut outputs = [f64::NAN; 4];
    builder.finish(&[slopes[0], slopes[1], slopes[2], none]).eval(&[0.5, 3.0], &mut outputs);
    let by_square = 0.25_f64.cos() * 3.0 + 1.0;
    assert_eq!(outputs, [by_square, 0.25_f64.sin(), by_square, 0.0]);
}

#[test]
fn the_branch_that_is_not_taken_does_not_leak() {
    let mut builder = ProgramBuilder::new(&["V"]).unwrap();
    let value = builder.define("safe", "if(V > 0, log(V)*sqrt(V), 0)").unwrap();
    let slope = builder.derivative(value, builder.input(0));
    let program = builder.finish(&[value, slope]);
    let outputs = run(&program, &[ProgramInput::Values(&[-1.0, 0.0, 1.0])], 3);
    assert_eq!(outputs, [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]);
}

#[test]
#[should_panic(expected = "2 values of input 0 for 3 points")]
fn a_program_refuses_inputs_of_another_length() {
    let mut builder = ProgramBuilder::new(&["V"]).unwrap();
    let value = builder.expression("V").unwrap();
    run(&builder.finish(&[value]), &[ProgramInput::Values(&[1.0; 2])], 3);
}

#[test]
fn a_program_without_outputs_computes_nothing() {
    let builder = ProgramBuilder::new(&["V"]).unwrap();
    let program = builder.finish(&[]);
    assert_eq!((program.n_operations(), program.n_outputs()), (0, 0));
    run(&program, &[ProgramInput::Uniform(1.0)], 0);
}
