//! Time of one evaluation, by tape and point by point: `cargo run --release -p femtile-expression --example cost`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use femtile_expression::{Expression, TapeScratch, Variable};

const N_POINTS: usize = 1 << 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let coordinates =
        |factor: f64| -> Vec<f64> { (0..N_POINTS).map(|i| (i as f64 * factor).fract()).collect() };
    let points = [coordinates(0.618_034), coordinates(0.414_214), coordinates(0.732_051)];
    println!("{:<52}{:>12}{:>12}", "expression", "tape, ns", "eval, ns");
    for text in [
        "1 + x",
        "1 + x + y^2 - 2*x*y*z",
        "x^7 - 3*x^5 + 2*x^3",
        "if(x < 0.5, 1, 2)",
        "sqrt(x^2 + y^2 + z^2)",
        "exp(-10*((x - 0.5)^2 + (y - 0.5)^2))",
        "sin(pi*x)",
        "sin(pi*x)*y",
        "sin(pi*x)*sin(pi*y)*sin(pi*z)",
        "hypot(x, y)",
        "x^1.5",
        "atan2(y, x)",
    ] {
        let expression = Expression::parse(text)?;
        print_row(text, &expression, &points);
        if text == "sin(pi*x)*sin(pi*y)*sin(pi*z)" {
            print_row("  its derivative by x", &expression.derivative(Variable::X), &points);
        }
    }
    Ok(())
}

fn print_row(label: &str, expression: &Expression, [x, y, z]: &[Vec<f64>; 3]) {
    let tape = expression.tape();
    let mut scratch = TapeScratch::default();
    let mut out = vec![0.0; N_POINTS];
    let block = best_of(30, || tape.eval_block(&mut out, x, y, z, &mut scratch));
    let single = best_of(5, || {
        for (i, out) in out.iter_mut().enumerate() {
            *out = expression.eval([x[i], y[i], z[i]]);
        }
    });
    black_box(&out);
    let each = |time: Duration| time.as_secs_f64() * 1e9 / N_POINTS as f64;
    println!("{label:<52}{:>12.2}{:>12.1}", each(block), each(single));
}

fn best_of(n: usize, mut work: impl FnMut()) -> Duration {
    let times = (0..n).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
