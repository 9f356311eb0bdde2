//! Load steps of a steady problem, and its values at a time.

use std::sync::Arc;

use femtile_form::{Argument, Coefficient};
use femtile_space::{LinearConstraints, Space};

use super::FormProblem;
use super::given::{Given, Terms, constraints, dirichlet_values, interpolated};
use super::problem::FacetTerm;
use super::relations::Unknowns;
use super::ties::Pair;
use crate::SolveError;

/// Load steps of a steady problem: t grows from 0 to 1, and each step begins at the solution of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    /// Steps of t, of equal length.
    pub steps: usize,
    /// How often a step that does not converge is halved; the steps after it grow again.
    pub max_halvings: u32,
}

impl Default for Continuation {
    /// Returns ten steps, halved eight times at most.
    fn default() -> Self {
        Self { steps: 10, max_halvings: 8 }
    }
}

impl Continuation {
    pub(super) fn check(self) -> Result<(), SolveError> {
        const MOST_HALVINGS: u32 = 40;
        if self.max_halvings > MOST_HALVINGS {
            let path = ["continuation".into(), "max_halvings".into()];
            let message = format!("{MOST_HALVINGS} is the most; shorter steps are rounding");
            return Err(SolveError::setting(&path, message));
        }
        match self.steps {
            0 => {
                let path = ["continuation".into(), "steps".into()];
                Err(SolveError::setting(&path, "0 steps lead nowhere: take 1 or more"))
            }
            _ => Ok(()),
        }
    }
}

/// A load step that converged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadStep {
    /// The time t at its end.
    pub time: f64,
    /// Its linearizations.
    pub iterations: usize,
}

/// The way of t to its end; without load steps it is at t = 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    continuation: Option<Continuation>,
    /// Steps whose ends were reached.
    reached: usize,
    time: f64,
    /// The length of the next step, unless the end of one of equal length comes first.
    length: f64,
}

impl Walk {
    pub fn new(continuation: Option<Continuation>) -> Self {
        let length = continuation.map_or(0.0, |of| 1.0 / of.steps as f64);
        Self { continuation, reached: 0, time: 0.0, length }
    }

    /// Returns the time that was reached.
    pub fn time(&self) -> f64 {
        self.time
    }

    /// Returns the time of the next solve.
    pub fn next(&self) -> f64 {
        let Some(Continuation { steps, .. }) = self.continuation else { return 0.0 };
        let goal = (self.reached + 1) as f64 / steps as f64;
        // What rounding leaves is no step.
        if self.time + 1.001 * self.length >= goal { goal } else { self.time + self.length }
    }

    /// Goes to the time of the next solve; returns whether it is the end.
    pub fn go_on(&mut self) -> bool {
        let Some(Continuation { steps, .. }) = self.continuation else { return true };
        self.time = self.next();
        if self.time == (self.reached + 1) as f64 / steps as f64 {
            self.reached += 1;
        }
        self.length = (2.0 * self.length).min(1.0 / steps as f64);
        self.reached == steps
    }

    /// Halves the next step; returns whether it may be as short.
    pub fn halve(&mut self) -> bool {
        let Some(Continuation { steps, max_halvings }) = self.continuation else { return false };
        self.length = 0.5 * (self.next() - self.time);
        let shortest = 0.999 * 0.5_f64.powi(max_halvings as i32) / steps as f64;
        self.length >= shortest && self.next() > self.time
    }
}

impl FormProblem<'_> {
    /// Returns the time at which the problem is solved.
    pub(super) fn end(&self) -> f64 {
        if self.continuation.is_some() { 1.0 } else { 0.0 }
    }

    /// Returns the problem with its values at a time.
    pub(super) fn at_time(&self, time: f64) -> Self {
        let all = |arguments: &[(String, Argument)]| -> Vec<(String, Argument)> {
            arguments.iter().map(|(name, argument)| (name.clone(), at_time(argument, time))).collect()
        };
        let mut problem = self.clone();
        problem.coefficients = all(&self.coefficients);
        let term = |term: &FacetTerm| FacetTerm { arguments: all(&term.arguments), ..term.clone() };
        problem.terms = self.terms.iter().map(term).collect();
        problem.given = self.given_at(time);
        problem.pairs = self.pairs_at(time);
        problem
    }

    /// Returns the Dirichlet values at a time and the constraints of sides that follow others, of floating parts and of components of
    /// degree 1, on `n` unknowns.
    pub(super) fn constraints_at(
        &self,
        space: &Space<'_>,
        n: usize,
        time: f64,
    ) -> Result<LinearConstraints, SolveError> {
        match self.given.is_empty() && !self.has_several_degrees() && !self.has_relations() {
            true => Ok(LinearConstraints::none(n)),
            false => {
                // Both are kept for the next time.
                self.of_linear(space)?;
                self.tied(space)?;
                let mut at_time = self.clone();
                (at_time.given, at_time.pairs) = (self.given_at(time), self.pairs_at(time));
                at_time.constraints(space, false)
            }
        }
    }

    /// Returns the constraints with which the residual of other unknowns comes to those with Dirichlet values or of floating parts,
    /// which are free.
    pub(super) fn constraints_of_others(&self, space: &Space<'_>) -> Result<LinearConstraints, SolveError> {
        self.constraints(space, true)
    }

    fn constraints(&self, space: &Space<'_>, keeps_held: bool) -> Result<LinearConstraints, SolveError> {
        let of_linear = self.of_linear(space)?;
        let given = if keeps_held && !self.has_relations() { &[] } else { &self.given[..] };
        let values = dirichlet_values(space, &self.facets, given, self.is_linear.len())?;
        let unknowns = Unknowns { values: &values, is_linear: &self.is_linear, of_linear: &of_linear };
        match self.has_relations() {
            false => constraints(&unknowns),
            true => self.relations(space, &unknowns, keeps_held),
        }
    }

    /// Returns the terms that components of degree 1 have their values between corners from; none if there are none.
    fn of_linear(&self, space: &Space<'_>) -> Result<Arc<Vec<Option<Terms>>>, SolveError> {
        Ok(match self.interpolated.get() {
            Some(of_linear) => Arc::clone(of_linear),
            None if self.has_several_degrees() => {
                let of_linear = Arc::new(interpolated(space)?);
                Arc::clone(self.interpolated.get_or_init(|| of_linear))
            }
            None => Arc::default(),
        })
    }

    fn pairs_at(&self, time: f64) -> Vec<Pair> {
        let mut pairs = self.pairs.clone();
        for jump in pairs.iter_mut().flat_map(|pair: &mut Pair| &mut pair.jump) {
            *jump = jump.at_time(time);
        }
        pairs
    }

    fn given_at(&self, time: f64) -> Vec<Given> {
        let value = |value: &Option<Coefficient>| value.as_ref().map(|value| value.at_time(time));
        let at_time =
            |given: &Given| Given { values: given.values.iter().map(value).collect(), ..given.clone() };
        self.given.iter().map(at_time).collect()
    }
}

fn at_time(argument: &Argument, time: f64) -> Argument {
    match argument {
        Argument::One(coefficient) => Argument::One(coefficient.at_time(time)),
        Argument::Vector(parts) => Argument::Vector(parts.iter().map(|part| part.at_time(time)).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_their_times_also_after_halvings() {
        let mut walk = Walk::new(Some(Continuation { steps: 3, max_halvings: 2 }));
        assert_eq!(walk.next(), 1.0 / 3.0);
        assert!(!walk.go_on());
        // Of the step to 2/3 a half and a quarter are refused.
        assert!(walk.halve());
        assert_eq!(walk.next(), 1.0 / 3.0 + 0.5 * (2.0 / 3.0 - 1.0 / 3.0));
        assert!(walk.halve());
        let quarter = walk.next();
        assert!((quarter - 5.0 / 12.0).abs() < 1e-15 && !walk.go_on());
        // The next one is twice as long, and the third ends the step.
        assert!((walk.next() - 7.0 / 12.0).abs() < 1e-15 && !walk.go_on());
        assert_eq!(walk.next(), 2.0 / 3.0);
        assert!(!walk.go_on() && walk.time() == 2.0 / 3.0);
        assert!(walk.next() == 1.0 && walk.go_on());
        let mut walk = Walk::new(Some(Continuation { steps: 1, max_halvings: 3 }));
        assert_eq!([(); 4].map(|()| walk.halve()), [true, true, true, false]);
        let mut alone = Walk::new(None);
        assert!(alone.next() == 0.0 && !alone.halve() && alone.go_on());
    }
}
