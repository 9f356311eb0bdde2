//! Generated CUDA C, compiled by the C++ compiler of the host, against `eval`.

use crate::common;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use femtile_expression::{Expression, Precision, ProgramBuilder, Variable};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Reads points from its input and writes the value of every function at each.
const MAIN: &str = "
int main() {
    double p[3];
    while (std::fread(p, sizeof(double), 3, stdin) == 3) {
        for (Function f : functions) {
            const double value = f(p[0], p[1], p[2]);
            std::fwrite(&value, sizeof(double), 1, stdout);
        }
        array(values, p[0], p[1], p[2]);
        std::fwrite(values, sizeof(double), sizeof(values) / sizeof(double), stdout);
    }
}
";

fn compiler() -> Option<String> {
    let command = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let output = Command::new(&command).arg("--version").output();
    output.is_ok_and(|output| output.status.success()).then_some(command)
}

/// A program of one function an expression, and of one for the last few together.
fn source(expressions: &[Expression], shared: &[&Expression]) -> String {
    let mut text = String::from("#include <cmath>\n#include <cstdio>\n#define __device__\n");
    text += "#define __forceinline__ inline\nnamespace {\n";
    text += Expression::CUDA_HEADER;
    for (i, expression) in expressions.iter().enumerate() {
        text += &expression.cuda_function(&format!("f{i}"));
    }
    text += &Expression::cuda_array_function("array", shared);
    let names: Vec<String> = (0..expressions.len()).map(|i| format!("f{i}")).collect();
    text += "typedef double (*Function)(double, double, double);\n";
    text += &format!("const Function functions[] = {{{}}};\n", names.join(", "));
    text += &format!("double values[{}];\n}}\n{MAIN}", shared.len());
    text
}

/// The values of all functions at all points.
fn run(compiler: &str, name: &str, source: &str, points: &[[f64; 3]]) -> Vec<f64> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (text, program) = (folder.join(format!("{name}.cpp")), folder.join(name));
    fs::write(&text, source).unwrap();
    let options = ["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-o"];
    let output = Command::new(compiler).args(options).arg(&program).arg(&text).arg("-lm").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input: Vec<u8> = points.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let (values, rest) = output.stdout.as_chunks::<8>();
    assert!(rest.is_empty());
    values.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect()
}

fn close(found: f64, expected: f64) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= 1e-14 * expected.abs()
}

fn check(name: &str, expressions: &[Expression], points: &[[f64; 3]]) {
    let Some(compiler) = compiler() else {
        eprintln!("SKIPPED: {name}: no C++ compiler (install g++ or set CXX)");
        return;
    };
    let shared: Vec<&Expression> = expressions.iter().rev().take(9).collect();
    let found = run(&compiler, name, &source(expressions, &shared), points);
    let n = expressions.len() + shared.len();
    assert_eq!(found.len(), n * points.len());
    for (point, found) in points.iter().zip(found.chunks(n)) {
        for (expression, &found) in expressions.iter().chain(shared.iter().copied()).zip(found) {
            let expected = expression.eval(*point);
            assert!(close(found, expected), "{expression} at {point:?}: {found:e}, not {expected:e}");
        }
    }
}

/// Points with the coordinates at which functions break.
fn points(n: usize) -> Vec<[f64; 3]> {
    let special =
        [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 1e300, -1e-300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let all = special.iter().flat_map(|&x| special.iter().map(move |&y| [x, y, 1.0 - x]));
    let mut runner = TestRunner::deterministic();
    let mut random = move || (-2.0..2.0f64).new_tree(&mut runner).unwrap().current();
    all.chain((0..n).map(|_| [random(), random(), random()])).collect()
}

const EVERY_FUNCTION: &[&str] = &[
    "x",
    "z",
    "7",
    "-x",
    "x + y",
    "x - y",
    "x*y",
    "x/y",
    "x^y",
    "x^2",
    "x^-1",
    "x^-5",
    "x^31",
    "x^32",
    "x^1.5",
    "x^-0.5",
    "x^-2.5",
    "x^16",
    "x^15.5",
    "sin(x)",
    "cos(x)",
    "tan(x)",
    "asin(x)",
    "acos(x)",
    "atan(x)",
    "sinh(x)",
    "cosh(x)",
    "tanh(x)",
    "exp(x)",
    "expm1(x)",
    "exprel(x)",
    "exprel(1e-12*x)",
    "log1p(x)",
    "log(x)",
    "log10(x)",
    "sqrt(x)",
    "abs(x)",
    "sign(x)",
    "floor(3*x)",
    "ceil(3*x)",
    "min(x, y)",
    "max(x, y)",
    "min(x, y, z)",
    "atan2(x, y)",
    "hypot(x, y)",
    "pow(x, y)",
    "if(x < y, x, y)",
    "if(x <= y, 1, 2)",
    "if(x > y, 1, 2)",
    "if(x >= y, 1, 2)",
    "if(x == y, 1, 2)",
    "if(x != y, 1, 2)",
    "if(x == y + 1e-13, 1, 2)",
    "if(x < y and y < z, 1, 2)",
    "if(not x < y or z == 1, 1, 2)",
    "if(true, x, y)",
    "1/0",
    "-1/0",
    "0/0 + x",
    "0.1",
    "1e-300*x",
    "1.7976931348623157e308",
    "5e-324*x",
    "x*y - y*x",
    "sqrt(x*y + z - x*y - z)",
];

#[test]
fn every_function_compiles_to_what_eval_computes() {
    let expressions: Vec<Expression> =
        EVERY_FUNCTION.iter().map(|text| Expression::parse(text).unwrap()).collect();
    check("every_function", &expressions, &points(50));
}

#[test]
fn random_expressions_and_their_slopes_compile_to_what_eval_computes() {
    let mut runner = TestRunner::deterministic();
    let texts = common::any_number();
    let mut expressions = Vec::new();
    for i in 0..300 {
        let text = texts.new_tree(&mut runner).unwrap().current();
        let expression = Expression::parse(&text).unwrap();
        if i % 3 == 0 {
            expressions.push(expression.derivative(Variable::ALL[i % 2]));
        }
        expressions.push(expression);
    }
    check("random_expressions", &expressions, &points(40));
}

#[test]
fn programs_compile_to_what_eval_computes_in_both_precisions() {
    let Some(compiler) = compiler() else {
        eprintln!("SKIPPED: programs: no C++ compiler (install g++ or set CXX)");
        return;
    };
    let mut builder = ProgramBuilder::new(&["x", "y", "z"]).unwrap();
    let more = ["1/(1 + exp((-26 - x)/7))", "x/(1/(y + 2))", "(2 + y)^1.5/3", "exp(x) + exp(x)/(1 + z)"];
    let texts: Vec<&str> = EVERY_FUNCTION.iter().chain(&more).copied().collect();
    let outputs: Vec<_> = texts.iter().map(|text| builder.expression(text).unwrap()).collect();
    let program = builder.finish(&outputs);
    let n = outputs.len();
    let mut text = String::from("#include <cmath>\n#include <cstdio>\n#define __device__\n");
    text += "#define __forceinline__ inline\nnamespace {\n";
    text += Expression::CUDA_HEADER;
    text += &program.cuda_function("exact", Precision::F64);
    text += &program.cuda_function("rough", Precision::F32);
    text += &format!("}}\nint main() {{\n    double p[3], out[{n}];\n    float q[3], r[{n}];\n");
    text += "    while (std::fread(p, sizeof(double), 3, stdin) == 3) {\n        exact(out, p);\n";
    text += "        std::fwrite(out, sizeof(out), 1, stdout);\n        for (int i = 0; i < 3; ++i) q[i] = p[i];\n";
    text += &format!("        rough(r, q);\n        for (int i = 0; i < {n}; ++i) out[i] = r[i];\n");
    text += "        std::fwrite(out, sizeof(out), 1, stdout);\n    }\n}\n";
    let points = points(40);
    let found = run(&compiler, "programs", &text, &points);
    assert_eq!(found.len(), 2 * n * points.len());
    let mut expected = vec![f64::NAN; n];
    for (point, found) in points.iter().zip(found.chunks(2 * n)) {
        program.eval(point, &mut expected);
        let (exact, rough) = found.split_at(n);
        let is_moderate = point.iter().all(|value| (0.01..3.0).contains(&value.abs()));
        for (i, text) in texts.iter().enumerate() {
            let expected = expected[i];
            assert!(close(exact[i], expected), "{text} at {point:?}: {:e}, not {expected:e}", exact[i]);
            // Slopes above a few, and differences that cancel, magnify the rounding of a float.
            let is_steep =
                text.contains("tan") || text.contains("x*y") || text.contains("pow") || text.contains('^');
            let is_compared = text.contains("if(") || text.contains("floor") || text.contains("ceil");
            if is_moderate && !is_steep && !is_compared && expected.abs() < 1e3 {
                let error = (rough[i] - expected).abs();
                assert!(
                    error <= 2e-5 * (1.0 + expected.abs()),
                    "{text} at {point:?}: {}, not {expected}",
                    rough[i]
                );
            }
        }
    }
}

#[test]
fn what_several_expressions_share_is_computed_once() {
    let parse = |text: &str| Expression::parse(text).unwrap();
    let (a, b) = (parse("exp(x) + 1"), parse("exp(x) - y"));
    let text = Expression::cuda_array_function("both", &[&a, &b]);
    assert_eq!(text.matches("exp(").count(), 1, "{text}");
}
