use std::fmt;
use std::str::FromStr;

use crate::display;
use crate::error::ExpressionError;
use crate::graph::{Builder, Graph};
use crate::names::Scope;
use crate::parser::{self, Sort};

/// A statement about the coordinates that is true or false at every point, such as `x < 1e-9 and not y > 0.5`.
///
/// `<`, `<=`, `>`, `>=` compare the numbers as they are; `==` holds within 1e-12·max(1, |a|, |b|), so that computed
/// coordinates can be compared, and `!=` is its opposite. A comparison with NaN is false, `!=` true. Comparisons
/// chain (`0 < x < 1`) and are joined by `and` (`&&`), `or` (`||`), `not` (`!`).
///
/// ```
/// use femtile_expression::Condition;
/// let wall = Condition::parse("x < 1e-9 or x == 1")?;
/// assert!(wall.holds([0.1 + 0.2 + 0.7, 0.5, 0.0]));
/// assert!(!wall.holds([0.5, 0.5, 0.0]));
/// # Ok::<(), femtile_expression::ExpressionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    graph: Graph,
}

impl Condition {
    /// Parses a condition; the grammar is in the documentation of this crate.
    ///
    /// # Errors
    /// As [`Expression::parse`](crate::Expression::parse), and where the text is a number, not a comparison.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let mut builder = Builder::default();
        match parser::parse(text, Sort::Condition, &mut builder, &Scope::of_points(false)) {
            Ok(root) => Ok(Self { graph: builder.finish(root) }),
            Err(error) => Err(*error),
        }
    }

    /// Returns `true` where the condition holds at a point.
    pub fn holds(&self, point: [f64; 3]) -> bool {
        self.graph.eval(point, f64::NAN, &[]) != 0.0
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display::write(&self.graph, f)
    }
}

impl FromStr for Condition {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        Self::parse(text)
    }
}
