//! Formulas of a case on a grid.

use femtile_expression::Expression;
use femtile_solve::{Key, expression};

use crate::file::{Entry, Value};
use crate::{Case, CaseError};

/// Parses an expression that may depend on the time.
pub(super) fn in_time(case: &Case, text: &str, path: &[Key]) -> Result<Expression, CaseError> {
    Expression::parse_in_time(text).map_err(|error| case.wrong_inside(path, &error.span, error.to_string()))
}

/// Returns the constant or the expression of an entry.
pub(super) fn scalar(entry: &Entry, path: &[Key]) -> Result<Expression, CaseError> {
    match entry {
        Entry::Number(number) => Ok(Expression::constant(*number)),
        Entry::Text(text) => Ok(expression(text, path)?),
    }
}

/// Returns the constant or the expression of a value, which may depend on the time.
pub(super) fn scalar_in_time(case: &Case, value: &Value, path: &[Key]) -> Result<Expression, CaseError> {
    match value {
        Value::Number(number) => Ok(Expression::constant(*number)),
        Value::Text(text) => in_time(case, text, path),
        _ => Err(case.wrong(path, "a number or an expression in x, y, z and t is needed here")),
    }
}
