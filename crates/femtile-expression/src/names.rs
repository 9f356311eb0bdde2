//! The names that a text may use besides functions.

use std::collections::HashMap;

use crate::array::{Array, SpaceDerivative};
use crate::error::{ExpressionError, quote};
use crate::function::{ARRAY_NAMES, Meaning, NAMES};
use crate::node::Variable;

/// Names that an expression may use besides x, y, z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names<'a> {
    /// Whether `t`, the time, is a name.
    pub time: bool,
    /// The names of further inputs: `[A-Za-z_][A-Za-z0-9_]*`, no function, constant, coordinate or `t`.
    pub others: &'a [&'a str],
}

/// What the names of a text stand for, in the order in which they were bound.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Whether x, y, z are names.
    coordinates: bool,
    /// Whether t is a name.
    time: bool,
    /// Whether texts may have vectors and matrices.
    pub has_arrays: bool,
    /// How numbers change from point to point, if `grad` is known.
    pub space: Option<SpaceDerivative>,
    order: Vec<String>,
    bound: HashMap<String, Array>,
}

/// Words that are operators.
const OPERATORS: [&str; 3] = ["and", "or", "not"];

impl Scope {
    /// The scope of an expression of a point.
    pub(crate) fn of_points(time: bool) -> Self {
        Self { coordinates: true, time, ..Self::default() }
    }

    /// The scope of texts with vectors and matrices.
    pub(crate) fn with_arrays() -> Self {
        Self { has_arrays: true, ..Self::default() }
    }

    /// Gives a value a name, which must be new.
    pub(crate) fn bind(&mut self, name: &str, array: Array) -> Result<(), Box<ExpressionError>> {
        if let Some((message, advice)) = self.objection(name) {
            return Err(ExpressionError::new(0..0, message).advise(advice));
        }
        self.order.push(name.to_owned());
        self.bound.insert(name.to_owned(), array);
        Ok(())
    }

    /// The reason why a name cannot be bound and what to do about it.
    fn objection(&self, name: &str) -> Option<(String, &'static str)> {
        let quoted = quote(name);
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_word) {
            return Some((
                format!("{quoted} cannot be a name"),
                "a name has letters, digits and _, and does not begin with a digit",
            ));
        }
        let taken = match self.fixed(name) {
            _ if OPERATORS.contains(&name) => "an operator",
            Some(Meaning::Variable(_)) if self.coordinates => "a coordinate",
            Some(meaning) if meaning.is_function() => "a function",
            Some(Meaning::Constant(_) | Meaning::Truth(_)) => "a constant",
            _ if self.coordinates && name == Variable::T.name() => "the time",
            _ if self.bound.contains_key(name) => {
                return Some((format!("the name {quoted} is given twice"), "choose another name"));
            }
            _ => return None,
        };
        Some((format!("{quoted} is {taken} and cannot be the name of something else"), "choose another name"))
    }

    /// What a name is bound to.
    pub(crate) fn value(&self, name: &str) -> Option<&Array> {
        self.bound.get(name)
    }

    /// The names that are the same in all texts of the kind of this scope.
    fn fixed_names(&self) -> impl Iterator<Item = &'static (&'static str, Meaning)> {
        NAMES.iter().chain(ARRAY_NAMES.iter().filter(|_| self.has_arrays))
    }

    fn fixed(&self, name: &str) -> Option<Meaning> {
        self.fixed_names().find(|(known, _)| *known == name).map(|(_, meaning)| *meaning)
    }

    /// The names of functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &'static str> {
        self.fixed_names().filter(|(_, meaning)| meaning.is_function()).map(|(name, _)| *name)
    }

    /// The meaning of a name in this scope.
    pub(crate) fn meaning(&self, name: &str) -> Option<Meaning> {
        if self.bound.contains_key(name) {
            return Some(Meaning::Bound);
        }
        if self.time && name == Variable::T.name() {
            return Some(Meaning::Variable(Variable::T));
        }
        self.fixed(name).filter(|meaning| self.coordinates || !matches!(meaning, Meaning::Variable(_)))
    }

    /// Every name that is no function.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let is_fixed = |name: &&str| {
            !self.bound.contains_key(*name)
                && self.meaning(name).is_some_and(|meaning| !meaning.is_function())
        };
        let fixed = NAMES.iter().map(|(name, _)| *name).filter(is_fixed);
        let time = self.time.then_some(Variable::T.name());
        // What was bound is nearest to what a text means.
        self.order.iter().map(String::as_str).chain(fixed).chain(time)
    }

    /// The names for a message, at most 60.
    pub(crate) fn list(&self) -> String {
        const MOST: usize = 60;
        let n_more = self.names().count().saturating_sub(MOST);
        let mut list = self.names().take(MOST).collect::<Vec<_>>().join(", ");
        if n_more > 0 {
            list += &format!(" and {n_more} more");
        }
        list
    }
}
