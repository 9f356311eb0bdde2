//! The formulas of a model as values of a program.

use femtile::expression::{ProgramBuilder, Value};

use super::Model;
use super::model::{Dynamics, State};
use super::resolve::read;
use super::source::Formula;
use crate::CardiacError;

/// Prefix of names that are not those of a description.
pub(super) const RESERVED: &str = "femtile_";

/// The right side of the equations of a model, in a builder whose first inputs are the voltage and the states.
pub(crate) struct Formulas {
    pub builder: ProgramBuilder,
    pub current: Value,
    pub states: Vec<StateFormula>,
}

/// The equation of a state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StateFormula {
    /// A gate: its steady value, and the rate 1/τ at which it is approached, as a fraction.
    Gate { steady: Value, rate: Fraction },
    /// The rate of any other state.
    Rate(Value),
}

/// A numerator over a denominator; a denominator of 1 is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fraction {
    pub numerator: Option<Value>,
    pub denominator: Option<Value>,
}

impl Fraction {
    /// Returns `factor` times the fraction.
    pub fn times(self, builder: &mut ProgramBuilder, factor: Value) -> Value {
        let product = self.numerator.map_or(factor, |numerator| builder.mul(factor, numerator));
        self.denominator.map_or(product, |denominator| builder.div(product, denominator))
    }
}

impl Formulas {
    /// Reads the formulas of a model into a builder with the inputs voltage and states.
    pub fn new(model: &Model) -> Result<Self, CardiacError> {
        Self::with_inputs(model, &[])
    }

    /// Reads the formulas of a model into a builder with the inputs voltage, states and `further` ones.
    pub fn with_inputs(model: &Model, further: &[String]) -> Result<Self, CardiacError> {
        let mut inputs = vec![model.voltage_name()];
        inputs.extend(model.states.iter().map(State::name));
        inputs.extend(further.iter().map(String::as_str));
        let at_start = |error: femtile::expression::ExpressionError| model.source.error(0, error.to_string());
        let mut builder = ProgramBuilder::new(&inputs).map_err(at_start)?;
        for (name, value) in model.constants() {
            let value = builder.constant(value);
            builder.bind(name, value).map_err(at_start)?;
        }
        for (name, formula) in &model.definitions {
            let value = read(&model.source, &mut builder, formula)?;
            builder.bind(name, value).map_err(at_start)?;
        }
        let mut states = Vec::new();
        for state in &model.states {
            states.push(StateFormula::read(model, &mut builder, state)?);
        }
        let current = read(&model.source, &mut builder, &model.current)?;
        Ok(Self { builder, current, states })
    }

    /// Returns the rates of all states.
    pub fn rates(&mut self) -> Vec<Value> {
        let builder = &mut self.builder;
        let rate = |(i, state): (usize, &StateFormula)| match *state {
            StateFormula::Rate(rate) => rate,
            StateFormula::Gate { steady, rate } => {
                let state = builder.input(1 + i);
                let distance = builder.sub(steady, state);
                rate.times(builder, distance)
            }
        };
        self.states.iter().enumerate().map(rate).collect()
    }

    /// Refuses models whose current or rates are not finite at the initial state, or whose time constants are not
    /// positive there.
    pub fn check_initial_state(&mut self, model: &Model) -> Result<(), CardiacError> {
        let rates = self.rates();
        let one = self.builder.constant(1.0);
        let gates = self.states.iter().map(|state| match *state {
            StateFormula::Gate { rate, .. } => rate.times(&mut self.builder, one),
            StateFormula::Rate(_) => one,
        });
        let outputs: Vec<Value> = [self.current].into_iter().chain(rates).chain(gates).collect();
        let mut inputs = vec![model.rest_voltage()];
        inputs.extend(model.states.iter().map(State::initial));
        let mut values = vec![f64::NAN; outputs.len()];
        self.builder.finish(&outputs).eval(&inputs, &mut values);
        let n = model.n_states();
        let refuse = |formula: &Formula, what: String| {
            Err(model.source.error(formula.begin, format!("at the initial state {what}")))
        };
        if !values[0].is_finite() {
            return refuse(&model.current, format!("the current is {}", values[0]));
        }
        for (i, state) in model.states.iter().enumerate() {
            let formula = state.dynamics.formula();
            let (rate, inverse) = (values[1 + i], values[1 + n + i]);
            if inverse.is_nan() || inverse <= 0.0 {
                return refuse(formula, format!("the time constant of `{}` is not positive", state.name));
            }
            if !rate.is_finite() {
                return refuse(formula, format!("the rate of `{}` is {rate}", state.name));
            }
        }
        Ok(())
    }
}

impl StateFormula {
    fn read(model: &Model, builder: &mut ProgramBuilder, state: &State) -> Result<Self, CardiacError> {
        let mut value = |formula: &Formula| read(&model.source, builder, formula);
        Ok(match &state.dynamics {
            Dynamics::Rate(rate) => Self::Rate(value(rate)?),
            Dynamics::Relaxation { steady, time_constant } => {
                let (steady, time_constant) = (value(steady)?, value(time_constant)?);
                let rate = Fraction { numerator: None, denominator: Some(time_constant) };
                Self::Gate { steady, rate }
            }
            Dynamics::Opening { steady, alpha, beta } => {
                let (alpha, beta) = (value(alpha)?, value(beta)?);
                let given = steady.as_ref().map(value).transpose()?;
                let sum = builder.add(alpha, beta);
                let steady = given.unwrap_or_else(|| builder.div(alpha, sum));
                Self::Gate { steady, rate: Fraction { numerator: Some(sum), denominator: None } }
            }
        })
    }
}

impl Dynamics {
    /// The formula that a message about the state points to.
    fn formula(&self) -> &Formula {
        match self {
            Self::Relaxation { time_constant: formula, .. }
            | Self::Opening { alpha: formula, .. }
            | Self::Rate(formula) => formula,
        }
    }
}
