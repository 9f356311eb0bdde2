//! The names that a text may use, and what is said about any other.

use std::cmp::Reverse;
use std::f64::consts;
use std::ops::Range;

use crate::array::ArrayFunction;
use crate::error::{ExpressionError, quote};
use crate::names::Scope;
use crate::node::{Binary, Unary, Variable};

/// The meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meaning {
    Variable(Variable),
    /// Inputs or a definition bound to the name.
    Bound,
    Constant(f64),
    Truth(bool),
    /// A function of one argument.
    Unary(Unary),
    /// A function of two arguments.
    Binary(Binary),
    /// `min` and `max`: two arguments or more.
    Fold(Binary),
    /// `if(condition, a, b)`.
    If,
    /// A function of a vector or a matrix.
    Array(ArrayFunction),
}

/// Every name; of two with one meaning the first is the one that is printed.
pub(crate) const NAMES: [(&str, Meaning); 35] = [
    ("x", Meaning::Variable(Variable::X)),
    ("y", Meaning::Variable(Variable::Y)),
    ("z", Meaning::Variable(Variable::Z)),
    ("pi", Meaning::Constant(consts::PI)),
    ("π", Meaning::Constant(consts::PI)),
    ("e", Meaning::Constant(consts::E)),
    ("true", Meaning::Truth(true)),
    ("false", Meaning::Truth(false)),
    ("sin", Meaning::Unary(Unary::Sin)),
    ("cos", Meaning::Unary(Unary::Cos)),
    ("tan", Meaning::Unary(Unary::Tan)),
    ("asin", Meaning::Unary(Unary::Asin)),
    ("acos", Meaning::Unary(Unary::Acos)),
    ("atan", Meaning::Unary(Unary::Atan)),
    ("atan2", Meaning::Binary(Binary::Atan2)),
    ("sinh", Meaning::Unary(Unary::Sinh)),
    ("cosh", Meaning::Unary(Unary::Cosh)),
    ("tanh", Meaning::Unary(Unary::Tanh)),
    ("exp", Meaning::Unary(Unary::Exp)),
    ("expm1", Meaning::Unary(Unary::Expm1)),
    ("exprel", Meaning::Unary(Unary::Exprel)),
    ("log", Meaning::Unary(Unary::Log)),
    ("ln", Meaning::Unary(Unary::Log)),
    ("log1p", Meaning::Unary(Unary::Log1p)),
    ("log10", Meaning::Unary(Unary::Log10)),
    ("sqrt", Meaning::Unary(Unary::Sqrt)),
    ("abs", Meaning::Unary(Unary::Abs)),
    ("sign", Meaning::Unary(Unary::Sign)),
    ("floor", Meaning::Unary(Unary::Floor)),
    ("ceil", Meaning::Unary(Unary::Ceil)),
    ("min", Meaning::Fold(Binary::Min)),
    ("max", Meaning::Fold(Binary::Max)),
    ("pow", Meaning::Binary(Binary::Power)),
    ("hypot", Meaning::Binary(Binary::Hypot)),
    ("if", Meaning::If),
];

/// Functions of texts with vectors and matrices.
pub(crate) const ARRAY_NAMES: [(&str, Meaning); 7] = [
    ("grad", Meaning::Array(ArrayFunction::Gradient)),
    ("div", Meaning::Array(ArrayFunction::Divergence)),
    ("det", Meaning::Array(ArrayFunction::Determinant)),
    ("inv", Meaning::Array(ArrayFunction::Inverse)),
    ("tr", Meaning::Array(ArrayFunction::Trace)),
    ("sym", Meaning::Array(ArrayFunction::Symmetric)),
    ("dev", Meaning::Array(ArrayFunction::Deviator)),
];

/// Names of other programs that are too far from ours for a suggestion by spelling.
const FOREIGN: [(&str, &str); 10] = [
    ("fabs", "abs"),
    ("sgn", "sign"),
    ("lg", "log10"),
    ("power", "pow"),
    ("ceiling", "ceil"),
    ("select", "if"),
    ("where", "if"),
    ("nabla_grad", "grad"),
    ("trace", "tr"),
    ("inverse", "inv"),
];

impl Meaning {
    /// Returns `true` for names that need arguments in parentheses.
    pub(crate) fn is_function(self) -> bool {
        matches!(self, Self::Unary(_) | Self::Binary(_) | Self::Fold(_) | Self::If | Self::Array(_))
    }

    /// The name that is printed for it.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, meaning)| *meaning == self).map_or("", |(name, _)| name)
    }
}

/// The error for a name that means nothing: the nearest name of the same sort if one is near, and all there are.
pub(crate) fn unknown_name(
    name: &str,
    span: Range<usize>,
    called: bool,
    scope: &Scope,
) -> Box<ExpressionError> {
    let kind = if called { "function" } else { "name" };
    let error = ExpressionError::new(span, format!("unknown {kind} {}", quote(name)));
    let functions = || scope.functions().collect::<Vec<_>>().join(", ");
    let known = if called {
        format!("the functions are {}", functions())
    } else {
        format!("the names are {}; the functions are {}", scope.list(), functions())
    };
    match nearest(name, called, scope) {
        Some(nearest) => error.advise(format!("did you mean `{nearest}`? {known}")),
        None => error.advise(known),
    }
}

fn nearest<'s>(name: &str, called: bool, scope: &'s Scope) -> Option<&'s str> {
    const LONGEST: usize = 16;
    let lower = name.to_lowercase();
    let length = lower.chars().count();
    if length > LONGEST {
        return None;
    }
    if let Some((_, ours)) =
        FOREIGN.iter().find(|(foreign, ours)| *foreign == lower && scope.meaning(ours).is_some())
    {
        return Some(ours);
    }
    // A short name is near to everything: it may differ by case alone, a longer one by a third of its letters.
    let allowed = if length < 3 { length - 1 } else { 2.min(length / 2) };
    let functions = scope.functions().map(|name| (name, true));
    let names = scope.names().map(|name| (name, false));
    // Of names equally far, one of the sort that the text needs, then the one that begins most alike.
    let (distance, _, _, known) = names
        .chain(functions)
        .map(|(known, is_function)| {
            let known_lower = known.to_lowercase();
            let alike = lower.chars().zip(known_lower.chars()).take_while(|(a, b)| a == b).count();
            let distance = strsim::damerau_levenshtein(&lower, &known_lower);
            (distance, is_function != called, Reverse(alike), known)
        })
        .min_by_key(|&(distance, other_sort, alike, _)| (distance, other_sort, alike))?;
    let nothing_in_common = distance > 0 && distance >= known.chars().count();
    (distance <= allowed && !nothing_in_common).then_some(known)
}
