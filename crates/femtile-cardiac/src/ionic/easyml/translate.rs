//! From statements to a description in TOML.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use femtile::expression::ProgramBuilder;

use super::parser::{Assignment, parse};
use crate::CardiacError;
use crate::ionic::source::Source;

/// Most names of which each depends on the next.
const MAX_CHAIN: usize = 1000;

/// The name that a name has in formulas: with `_` behind those that mean something there.
pub fn renamed(name: &str) -> String {
    if ProgramBuilder::new(&[name]).is_ok() { name.into() } else { format!("{name}_") }
}

/// Translates a model in EasyML to a description in TOML.
///
/// # Errors
/// [`CardiacError::Model`] with the place in the text.
pub fn to_toml(source: &Source, name: &str) -> Result<String, CardiacError> {
    let statements = parse(source)?;
    let mut named = BTreeMap::new();
    for mut assignment in statements.assignments {
        assignment.name = renamed(&assignment.name);
        let (name, at) = (assignment.name.clone(), assignment.at);
        if named.insert(name.clone(), assignment).is_some() {
            return Err(source.error(at, format!("`{name}` has a second value")));
        }
    }
    let external = |role: &str| {
        let found = statements.externals.iter().find(|(_, of)| of == role);
        found.map_or_else(|| renamed(role), |(name, _)| renamed(name))
    };
    let translation = Translation { source, named, voltage: external("Vm"), order: Vec::new() };
    translation.text(name, &external("Iion"))
}

/// A name while its dependencies are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Constant,
    Variable,
}

struct Translation<'a> {
    source: &'a Source,
    named: BTreeMap<String, Assignment>,
    voltage: String,
    /// Constants and intermediate values, each behind those that it depends on.
    order: Vec<(String, Mark)>,
}

/// The formulas of a state.
enum Equation {
    Rate(String),
    Gate([(&'static str, String); 2]),
}

impl Translation<'_> {
    fn text(mut self, name: &str, current: &str) -> Result<String, CardiacError> {
        let states = self.states();
        let mut marks = BTreeMap::from([(self.voltage.clone(), Mark::Variable)]);
        marks.extend(states.iter().map(|(state, _)| (renamed(state), Mark::Variable)));
        if !self.named.contains_key(current) {
            return Err(self.source.error(0, format!("there is no current `{current}`")));
        }
        let names: Vec<String> = self.named.keys().filter(|name| !name.ends_with("_init")).cloned().collect();
        for name in &names {
            self.visit(name, &mut marks, [0, 0])?;
        }
        let initial = self.initial_values(&states)?;
        let mut text = format!("name = {name:?}\n");
        let _ = write!(
            text,
            "\n[voltage]\nname = {:?}\ninitial = {:?}\ncurrent = {current:?}\n",
            self.voltage, initial[&self.voltage]
        );
        for (section, wanted) in [("constants", Mark::Constant), ("definitions", Mark::Variable)] {
            let _ = writeln!(text, "\n[{section}]");
            for (name, _) in self.order.iter().filter(|(_, mark)| *mark == wanted) {
                let _ = writeln!(text, "{name} = {:?}", self.formula(name));
            }
        }
        for (state, equation) in &states {
            let (value, state) = (initial[state], renamed(state));
            let _ = match equation {
                Equation::Rate(rate) => {
                    write!(text, "\n[states.{state}]\ninitial = {value:?}\nrate = {rate:?}\n")
                }
                Equation::Gate([(one, first), (other, second)]) => write!(
                    text,
                    "\n[gates.{state}]\ninitial = {value:?}\n{one} = {first:?}\n{other} = {second:?}\n"
                ),
            };
        }
        Ok(text)
    }

    /// The formula of a name, or its initial value if it has no formula.
    fn formula(&self, name: &str) -> &str {
        let own = self.named.get(name).or_else(|| self.named.get(&format!("{name}_init")));
        own.map_or("", |assignment| &assignment.formula)
    }

    /// States by `diff_x`, and gates by their formulas, under the names that they have in the text.
    fn states(&self) -> Vec<(String, Equation)> {
        let used: BTreeSet<&String> = self.named.values().flat_map(|assignment| &assignment.names).collect();
        let mut states = Vec::new();
        for name in self.named.keys() {
            if let Some(state) = name.strip_prefix("diff_") {
                states.push((state.into(), Equation::Rate(name.clone())));
                continue;
            }
            let first = |names: &[String]| names.iter().find(|name| self.named.contains_key(*name)).cloned();
            // Of alpha_x and beta_x, x is a gate where something uses it that has no value.
            let is_gate = |gate: &&str| used.contains(&renamed(gate)) && !self.has_own_value(gate);
            let gate = |prefix: &str| name.strip_prefix(prefix).filter(is_gate);
            if let Some(gate) = gate("tau_")
                && let Some(steady) = first(&[format!("{gate}_inf"), format!("{gate}_infinity")])
            {
                let equation = Equation::Gate([("steady", steady), ("time_constant", name.clone())]);
                states.push((gate.into(), equation));
            } else if let Some(gate) = gate("alpha_").or_else(|| gate("a_"))
                && first(&[format!("tau_{gate}")]).is_none()
                && let Some(beta) = first(&[format!("beta_{gate}"), format!("b_{gate}")])
            {
                states.push((gate.into(), Equation::Gate([("alpha", name.clone()), ("beta", beta)])));
            }
        }
        states
    }

    /// Whether a name is computed, or a state with a rate of its own.
    fn has_own_value(&self, name: &str) -> bool {
        self.named.contains_key(&renamed(name)) || self.named.contains_key(&format!("diff_{name}"))
    }

    /// Puts a name into the order behind all that it depends on; returns whether it is constant. `at` and `depth` are
    /// the place that uses it and the length of the chain to it.
    fn visit(
        &mut self,
        name: &str,
        marks: &mut BTreeMap<String, Mark>,
        [at, depth]: [usize; 2],
    ) -> Result<Mark, CardiacError> {
        match marks.get(name) {
            Some(Mark::Open) => return Err(self.source.error(at, format!("`{name}` depends on itself"))),
            None if depth > MAX_CHAIN => {
                return Err(self.source.error(at, "too long a chain of definitions"));
            }
            Some(mark) => return Ok(*mark),
            None => {}
        }
        let own = self.named.get(name).or_else(|| self.named.get(&format!("{name}_init")));
        let Some(assignment) = own.cloned() else {
            return Err(self.source.error(at, format!("`{name}` has no value")));
        };
        marks.insert(name.into(), Mark::Open);
        let mut mark = Mark::Constant;
        for used in &assignment.names {
            if self.visit(used, marks, [assignment.at, depth + 1])? == Mark::Variable {
                mark = Mark::Variable;
            }
        }
        marks.insert(name.into(), mark);
        self.order.push((name.into(), mark));
        Ok(mark)
    }

    /// Initial values: those given, and steady values of gates at the initial voltage.
    fn initial_values(&self, states: &[(String, Equation)]) -> Result<BTreeMap<String, f64>, CardiacError> {
        let mut builder = self.builder()?;
        let mut values = BTreeMap::new();
        let constants = self.order.iter().filter(|(_, mark)| *mark == Mark::Constant);
        for (name, _) in constants {
            self.define(&mut builder, name)?;
        }
        let given = |state: &str| self.named.get(&format!("{state}_init"));
        let names = [&self.voltage].into_iter().chain(states.iter().map(|(state, _)| state));
        let (with, without): (Vec<_>, Vec<_>) = names.partition(|name| given(name).is_some());
        for name in with {
            values.insert(name.clone(), self.evaluate(&mut builder, name, &format!("{name}_init"))?);
        }
        if !values.contains_key(&self.voltage) {
            return Err(self.source.error(0, format!("there is no `{}_init`", self.voltage)));
        }
        // Gates without an initial value: zero first, for formulas that use them, then their steady values.
        for name in &without {
            let zero = builder.constant(0.0);
            builder.bind(&renamed(name), zero).map_err(|error| self.source.error(0, error.to_string()))?;
        }
        for (name, _) in self.order.iter().filter(|(_, mark)| *mark == Mark::Variable) {
            self.define(&mut builder, name)?;
        }
        for name in without {
            let equation = states.iter().find(|(state, _)| state == name).map(|(_, equation)| equation);
            let steady = match equation {
                Some(Equation::Gate([("steady", steady), _])) => steady.clone(),
                Some(Equation::Gate([(_, alpha), (_, beta)])) => format!("{alpha}/({alpha} + {beta})"),
                _ => return Err(self.source.error(0, format!("there is no `{name}_init`"))),
            };
            let value =
                builder.expression(&steady).map_err(|error| self.source.error(0, error.to_string()))?;
            values.insert(name.clone(), evaluated(&builder, value));
        }
        Ok(values)
    }

    fn builder(&self) -> Result<ProgramBuilder, CardiacError> {
        ProgramBuilder::new(&[]).map_err(|error| self.source.error(0, error.to_string()))
    }

    fn define(&self, builder: &mut ProgramBuilder, name: &str) -> Result<(), CardiacError> {
        let at = self.named.get(name).map_or(0, |assignment| assignment.at);
        let defined = builder.define(name, self.formula(name));
        defined.map(drop).map_err(|error| self.source.error(at, error.to_string()))
    }

    /// Computes the value of `initial` and gives it the name of the state.
    fn evaluate(&self, builder: &mut ProgramBuilder, name: &str, initial: &str) -> Result<f64, CardiacError> {
        let Assignment { formula, at, .. } = &self.named[initial];
        let wrong = |error: femtile::expression::ExpressionError| self.source.error(*at, error.to_string());
        let value = builder.expression(formula).map_err(wrong)?;
        let number = evaluated(builder, value);
        let constant = builder.constant(number);
        builder.bind(&renamed(name), constant).map_err(wrong)?;
        Ok(number)
    }
}

fn evaluated(builder: &ProgramBuilder, value: femtile::expression::Value) -> f64 {
    let mut values = [f64::NAN];
    builder.finish(&[value]).eval(&[], &mut values);
    values[0]
}
