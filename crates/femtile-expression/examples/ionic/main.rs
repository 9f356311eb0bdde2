//! A program of the size of an ionic model of a heart cell beside a loop written by hand:
//! `cargo run --release -p femtile-expression --example ionic`.
//!
//! The formulas have the form of [tentusscher2006] (epicardium); one step of the method of Rush and Larsen.

mod by_hand;
mod formulas;

use std::hint::black_box;
use std::time::Instant;

use femtile_expression::{ExpressionError, Program, ProgramBuilder, ProgramInput, TapeScratch};
use formulas::{CONSTANTS, DEFINITIONS, GATES, RATES, STATES};

const N_POINTS: usize = 4096;
const DT: f64 = 0.02;

fn main() -> Result<(), ExpressionError> {
    let program = step()?;
    println!("{} operations, {} outputs", program.n_operations(), program.n_outputs());
    let states: Vec<Vec<f64>> = STATES.iter().map(|&(_, initial)| spread(initial)).collect();

    let mut by_loop: Vec<Vec<f64>> = vec![vec![0.0; N_POINTS]; STATES.len()];
    let loop_ns = nanoseconds(|| by_hand::run(&mut by_loop, &states, DT));
    let mut by_program: Vec<Vec<f64>> = vec![vec![0.0; N_POINTS]; STATES.len()];
    let mut scratch = TapeScratch::default();
    let program_ns = nanoseconds(|| {
        let mut inputs: Vec<ProgramInput<'_>> =
            states.iter().map(|values| ProgramInput::Values(values)).collect();
        inputs.push(ProgramInput::Uniform(DT));
        let mut outputs: Vec<&mut [f64]> = by_program.iter_mut().map(Vec::as_mut_slice).collect();
        program.run(&mut outputs, &inputs, &mut scratch);
    });
    let pairs = by_loop.iter().flatten().zip(by_program.iter().flatten());
    let difference = pairs.map(|(a, b)| (a - b).abs() / (1e-3 + b.abs())).fold(0.0, f64::max);
    println!("loop {loop_ns:.0} ns a point, program {program_ns:.0} ns, {:.1} times", loop_ns / program_ns);
    println!("largest relative difference {difference:.1e}");
    Ok(())
}

/// One step: gates by their exact exponential, the others by the forward Euler method.
fn step() -> Result<Program, ExpressionError> {
    let mut names: Vec<&str> = STATES.iter().map(|&(name, _)| name).collect();
    names.push("dt");
    let mut builder = ProgramBuilder::new(&names)?;
    for (name, text) in CONSTANTS.iter().chain(DEFINITIONS) {
        builder.define(name, text)?;
    }
    let mut outputs = Vec::new();
    for (name, _) in STATES {
        let rate = RATES.iter().find(|(state, _)| state == name);
        outputs.push(match (rate, GATES.iter().find(|(gate, ..)| gate == name)) {
            (Some((_, rate)), _) => builder.expression(&format!("{name} + dt*({rate})"))?,
            (_, Some((_, steady, tau))) => {
                let text = format!("({steady}) - (({steady}) - {name})*exp(-dt/({tau}))");
                builder.expression(&text)?
            }
            _ => builder.expression(name)?,
        });
    }
    Ok(builder.finish(&outputs))
}

/// Values around one.
fn spread(value: f64) -> Vec<f64> {
    (0..N_POINTS).map(|i| value * (0.9 + 0.2 * (i as f64 * 0.618_034).fract())).collect()
}

/// Best time of some runs for one point.
fn nanoseconds(mut work: impl FnMut()) -> f64 {
    let times = (0..40).map(|_| {
        let start = Instant::now();
        work();
        black_box(());
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min) * 1e9 / N_POINTS as f64
}
