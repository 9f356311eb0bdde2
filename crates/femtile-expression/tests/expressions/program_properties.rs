//! Random programs: all vector instructions and the point by point evaluation agree.

use crate::common;

use femtile_device::cpu::SimdLevel;
use femtile_expression::{Expression, Program, ProgramBuilder, ProgramInput, Split, TapeScratch, Value};
use proptest::prelude::*;

const INPUTS: [&str; 3] = ["x", "y", "z"];

/// A program with a value of each text and, for two of them, the derivative by `x`.
fn program(texts: &[String]) -> Program {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    let mut outputs: Vec<Value> = texts.iter().map(|text| builder.expression(text).unwrap()).collect();
    for i in 0..outputs.len().min(2) {
        outputs.push(builder.derivative(outputs[i], builder.input(0)));
    }
    builder.finish(&outputs)
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Compares `run` with `eval` for `n` points; the last input is the same at all.
fn check(program: &Program, points: &[[f64; 3]], n: usize, scratch: &mut TapeScratch) {
    let column = |axis: usize| -> Vec<f64> { (0..n).map(|i| points[i % points.len()][axis]).collect() };
    let (x, y, z) = (column(0), column(1), points[0][2]);
    let inputs = [ProgramInput::Values(&x), ProgramInput::Values(&y), ProgramInput::Uniform(z)];
    let mut found = vec![vec![f64::NAN; n]; program.n_outputs()];
    let mut slices: Vec<&mut [f64]> = found.iter_mut().map(Vec::as_mut_slice).collect();
    program.run(&mut slices, &inputs, scratch);
    let mut expected = vec![f64::NAN; program.n_outputs()];
    for i in 0..n {
        program.eval(&[x[i], y[i], z], &mut expected);
        for (k, &expected) in expected.iter().enumerate() {
            let found = found[k][i];
            assert!(same(found, expected), "output {k} at point {i} of {n}: {found:e}, not {expected:e}");
        }
    }
}

fn coordinate() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => -2.0..2.0f64,
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, 1e300, -1e-300, 720.0, f64::INFINITY, f64::NAN]),
        1 => any::<f64>(),
    ]
}

/// Texts of the form of rate constants: exponentials of affine functions, quotients, gates.
fn rate() -> impl Strategy<Value = String> {
    let constant = prop::sample::select(vec!["0.1", "-35", "7", "1", "-0.05", "1e3"]);
    let name = prop::sample::select(vec!["x", "y", "z"]);
    let affine = (name.clone(), prop::sample::select(vec!["+", "-"]), constant.clone(), constant.clone())
        .prop_map(|(a, op, b, c)| format!("({a} {op} {b})/{c}"));
    let reversed =
        (constant.clone(), name.clone(), constant.clone()).prop_map(|(a, b, c)| format!("({a} - {b})*{c}"));
    let exponential = prop_oneof![affine, reversed].prop_map(|a| format!("exp({a})"));
    let logistic = (constant, exponential.clone()).prop_map(|(c, e)| format!("{c}/(1 + {e})"));
    prop_oneof![exponential, logistic, name.prop_map(str::to_owned)].prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a}{op}{b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - ({a} - {b})*exp(-0.1/({b})))")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("if({a} < {b}, {a}/(1/({b})), expm1({a})^1.5)")),
        ]
    })
}

/// The largest magnitude of a call or a bracket within `text`, where each operation of [`rate`] stands in one.
fn largest_part(text: &str, point: [f64; 3]) -> f64 {
    let part = |open: usize| {
        let start = text[..open].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let mut depth = 0;
        let length = text[open..].chars().position(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &text[start..=open + length.expect("brackets of a text are closed")]
    };
    let brackets = text.match_indices('(').map(|(open, _)| part(open));
    brackets.map(|part| Expression::parse(part).unwrap().eval(point).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn programs_have_the_same_bits_with_all_vector_instructions(
        texts in prop::collection::vec(prop_oneof![common::any_number(), rate()], 1..5),
        points in prop::collection::vec([coordinate(), coordinate(), coordinate()], 1..40),
    ) {
        let program = program(&texts);
        for level in SimdLevel::available() {
            let mut scratch = TapeScratch::with_simd(level);
            for n in [0, 1, 2, 3, 5, 7, 8, 9, 17, 127, 128, 131, 257] {
                check(&program, &points, n, &mut scratch);
            }
        }
    }

    #[test]
    fn the_parts_of_a_program_compute_what_it_does(
        texts in prop::collection::vec(prop_oneof![common::any_number(), rate()], 1..4),
        point in [coordinate(), coordinate(), coordinate()],
        is_late in [any::<bool>(), any::<bool>(), any::<bool>()],
    ) {
        let program = program(&texts);
        let Split { early, late, inputs } = program.split(|input| is_late[input]);
        let n_late = is_late.iter().filter(|is_late| **is_late).count();
        prop_assert!((0..3).all(|input| !(is_late[input] && early.reads(input))));
        prop_assert_eq!(inputs.len(), early.n_outputs());
        let mut numbers = vec![f64::NAN; early.n_outputs()];
        early.eval(&point, &mut numbers);
        let given: Vec<f64> = (0..3).filter(|&input| is_late[input]).map(|input| point[input]).collect();
        prop_assert_eq!(late.n_inputs(), n_late + numbers.len());
        let (mut expected, mut found) = (vec![f64::NAN; program.n_outputs()], vec![f64::NAN; program.n_outputs()]);
        program.eval(&point, &mut expected);
        late.eval(&[given, numbers.clone()].concat(), &mut found);
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert!(same(*found, *expected), "{texts:?}: {found:e}, not {expected:e}");
        }
        // An input that a number does not name does not change it.
        for input in (0..3).filter(|&input| !is_late[input]) {
            let mut other = point;
            other[input] += 0.37;
            let mut changed = vec![f64::NAN; early.n_outputs()];
            early.eval(&other, &mut changed);
            for (number, inputs) in inputs.iter().enumerate().filter(|(_, inputs)| !inputs.contains(&input)) {
                prop_assert!(same(changed[number], numbers[number]), "{texts:?}: {inputs:?}");
            }
        }
    }

    #[test]
    fn programs_compute_what_their_texts_say(
        text in common::smooth_number(),
        point in [-0.9..0.9f64, -0.9..0.9f64, -0.9..0.9f64],
    ) {
        let expected = Expression::parse(&text).unwrap().eval(point);
        let mut found = [f64::NAN; 2];
        program(std::slice::from_ref(&text)).eval(&point, &mut found);
        // Products with reciprocals differ by rounding, which a function may magnify.
        prop_assume!(expected.abs() < 1e6);
        prop_assert!((found[0] - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{text}: {} not {expected}", found[0]);
    }

    #[test]
    fn derivatives_of_programs_agree_with_central_differences(text in rate(), x in 0.5..1.5f64, y in 0.5..1.5f64) {
        // Large parts may cancel: a difference quotient then sees their rounding alone.
        prop_assume!(largest_part(&text, [x, y, 0.7]) < 1e3);
        let program = program(std::slice::from_ref(&text));
        let at = |step: f64| {
            let mut values = [f64::NAN; 2];
            program.eval(&[x + step, y, 0.7], &mut values);
            values
        };
        let h = 1e-5;
        let (before, here, behind) = (at(-h), at(0.0), at(h));
        let difference = (behind[0] - before[0]) / (2.0 * h);
        let curvature = ((behind[1] - before[1]) / (2.0 * h)).abs();
        let size = here[0].abs() + here[1].abs() + 1.0;
        prop_assume!(size < 1e4 && curvature < 1e4 && (before[1] - 2.0 * here[1] + behind[1]).abs() < 1e-5);
        prop_assert!((difference - here[1]).abs() <= 1e-5 * size, "{text}: {difference} against {}", here[1]);
    }
}

#[test]
fn an_output_may_be_a_constant_an_input_or_given_twice() {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    let seven = builder.constant(7.0);
    let sum = builder.expression("x + y").unwrap();
    let outputs = [seven, builder.input(1), sum, sum, builder.input(1), seven, builder.input(2)];
    let program = builder.finish(&outputs);
    for n in [0, 1, 130] {
        check(&program, &[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], n, &mut TapeScratch::default());
    }
}

#[test]
fn one_scratch_serves_programs_of_different_sizes() {
    let mut scratch = TapeScratch::default();
    for text in ["x", "sin(x)*y + cos(y)*x + exp(x*y)/(x + 3)", "1", "exp(exp(x/7))"] {
        check(&program(&[text.into()]), &[[0.5, 0.25, 0.0], [0.1, -0.2, 0.0]], 200, &mut scratch);
    }
}
