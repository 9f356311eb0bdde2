//! Formulas from text: values, derivatives, fast evaluation at many points, CUDA text.
//!
//! [`Expression`] is a number that depends on a point and on inputs with names ([`Names`]), [`Condition`] is true or
//! false at a point, [`Tape`] evaluates an expression for whole arrays of points. [`Program`] computes several outputs of
//! named inputs, with definitions that they share; [`Mathematics`] are its formulas for readers.
//!
//! ```text
//! condition  = conjunction { ("or" | "||") conjunction }
//! conjunction = negation { ("and" | "&&") negation }
//! negation   = { "not" | "!" } ( comparison | "(" condition ")" | "true" | "false" )
//! comparison = sum ("<" | "<=" | ">" | ">=" | "==" | "!=") sum { the same again: a chain }
//! sum        = product { ("+" | "-") product }
//! product    = signed { ("*" | "/") signed }
//! signed     = { "-" | "+" } power
//! power      = primary [ ("^" | "**") signed ]
//! primary    = number | name | "pi" | "e" | function "(" sum { "," sum } ")"
//!            | "if" "(" condition "," sum "," sum ")" | "(" sum ")"
//! ```
//!
//! A name is `x`, `y` or `z`, `t` where [`Names::time`] allows it, another input or a definition. `-x^2` is `-(x^2)` and
//! `2^3^2` is `2^9`. Text of any content and size is safe to parse: nesting and number of terms are limited, nothing else
//! recurses.
//!
//! A text goes through `lexer` and `parser` into a `graph` that `simplify` keeps small; `derivative`, `display`, `tape`
//! and `cuda` each walk that graph once.
#![forbid(unsafe_code)]

mod array;
mod condition;
mod cuda;
mod derivative;
mod display;
mod elementary;
mod error;
mod expression;
mod function;
mod graph;
mod lexer;
mod mathematics;
mod names;
mod node;
mod parser;
mod program;
mod simplify;
mod tape;

pub use array::{Array, Shape};
pub use condition::Condition;
pub use error::ExpressionError;
pub use expression::Expression;
pub use mathematics::{Equality, Mathematics, Notation, Symbol};
pub use names::Names;
pub use node::Variable;
pub use program::{Precision, Program, ProgramBuilder, ProgramInput, Split, Value};
pub use tape::{Inputs, Tape, TapeScratch};
