//! Schemes for the equations of the membrane at a point, as programs.
//!
//! A scheme is arithmetic on the graph of formulas. Both orders of Rush–Larsen share one program: its inputs
//! are the values at which coefficients are evaluated and the values from which the step starts.

use femtile::expression::{Program, ProgramBuilder, Value};

use super::Model;
use super::formulas::{Formulas, RESERVED, StateFormula};
use super::model::State;
use crate::CardiacError;

/// A scheme for the equations of the membrane at a point.
///
/// With the values $y_n = (V_n, w_n)$, gates $w_\infty$, τ and all other rates f, a stage of length h from $y_n$ with
/// coefficients at y is
///
/// $$ S(h, y): \quad w \leftarrow w_\infty(y) + (w_n - w_\infty(y))\,e^{-h/\tau(y)}, \qquad u \leftarrow u_n + h f(y) $$
///
/// for gates w and the other variables u, V among them.
///
/// # Source
/// `[rush1978]`; `[sundnes2009]` for the second order. Differs: gates alone are integrated exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocalScheme {
    /// First order: $y_{n+1} = S(Δt, y_n)$.
    #[default]
    RushLarsen,
    /// Second order: $y_{n+1} = S(Δt, S(\tfrac12Δt, y_n))$, two evaluations per step.
    RushLarsen2,
    /// First order: the explicit Euler method for all variables, gates too.
    Explicit,
}

impl LocalScheme {
    /// Number of evaluations of the model in a step.
    pub fn stages(self) -> usize {
        if self == Self::RushLarsen2 { 2 } else { 1 }
    }

    /// Lengths of the stages of a step.
    pub(super) fn lengths(self, dt: f64) -> [f64; 2] {
        if self == Self::RushLarsen2 { [0.5 * dt, dt] } else { [dt; 2] }
    }
}

/// Positions of the inputs of a stage: voltage and states at which coefficients are taken, stimulus, length, voltage and
/// states from which the stage starts. The outputs are the new voltage and states.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageInputs {
    /// Voltage and states together.
    pub n_variables: usize,
}

impl StageInputs {
    pub fn stimulus(self) -> usize {
        self.n_variables
    }

    pub fn length(self) -> usize {
        self.n_variables + 1
    }

    pub fn start(self) -> usize {
        self.n_variables + 2
    }

    pub fn count(self) -> usize {
        2 * self.n_variables + 2
    }
}

/// Returns the program of a stage, with inputs in the order of [`StageInputs`].
pub(super) fn stage(model: &Model, scheme: LocalScheme) -> Result<Program, CardiacError> {
    let (builder, outputs) = stage_outputs(model, scheme, Decay::Factor)?;
    Ok(builder.finish(&outputs))
}

/// Returns two programs of a stage: one without the new values of the first `n_gates` states, and one of
/// these values alone, which is accurate in single precision.
pub(super) fn split_stage(
    model: &Model,
    scheme: LocalScheme,
    n_gates: usize,
) -> Result<[Program; 2], CardiacError> {
    let (builder, outputs) = stage_outputs(model, scheme, Decay::Factor)?;
    let others: Vec<Value> = outputs[..1].iter().chain(&outputs[1 + n_gates..]).copied().collect();
    let (single, gates) = stage_outputs(model, scheme, Decay::Increment)?;
    Ok([builder.finish(&others), single.finish(&gates[1..=n_gates])])
}

/// The form of the exponential solution of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decay {
    /// $w_\infty + (w - w_\infty) e^{-h/τ}$
    Factor,
    /// $w + (w - w_\infty)(e^{-h/τ} - 1)$, which is accurate even if h/τ is near the precision.
    Increment,
}

fn stage_outputs(
    model: &Model,
    scheme: LocalScheme,
    decay: Decay,
) -> Result<(ProgramBuilder, Vec<Value>), CardiacError> {
    let inputs = StageInputs { n_variables: 1 + model.n_states() };
    let mut further = vec![format!("{RESERVED}stimulus"), format!("{RESERVED}length")];
    let variables = [model.voltage_name()].into_iter().chain(model.states.iter().map(State::name));
    further.extend(variables.map(|name| format!("{RESERVED}start_{name}")));
    let mut formulas = Formulas::with_inputs(model, &further)?;
    let rates = if scheme == LocalScheme::Explicit { formulas.rates() } else { Vec::new() };
    let Formulas { mut builder, current, states } = formulas;
    let length = builder.input(inputs.length());
    let stimulus = builder.input(inputs.stimulus());
    let rate = builder.sub(stimulus, current);
    let start = builder.input(inputs.start());
    let mut outputs = vec![euler(&mut builder, start, length, rate)];
    for (i, state) in states.into_iter().enumerate() {
        let start = builder.input(inputs.start() + 1 + i);
        outputs.push(match (state, rates.get(i)) {
            (_, Some(&rate)) | (StateFormula::Rate(rate), None) => euler(&mut builder, start, length, rate),
            (StateFormula::Gate { steady, rate }, None) => {
                let exponent = rate.times(&mut builder, length);
                let exponent = builder.neg(exponent);
                let distance = builder.sub(start, steady);
                let (factor, base) = match decay {
                    Decay::Factor => (builder.exp(exponent), steady),
                    Decay::Increment => (builder.expm1(exponent), start),
                };
                let part = builder.mul(distance, factor);
                builder.add(base, part)
            }
        });
    }
    Ok((builder, outputs))
}

/// Returns $u + hf$.
fn euler(builder: &mut ProgramBuilder, start: Value, length: Value, rate: Value) -> Value {
    let increment = builder.mul(length, rate);
    builder.add(start, increment)
}
