//! Models in EasyML, the language of openCARP (`.model`), translated to descriptions in TOML.
//!
//! ```text
//! statement  = name [ "=" value ] ";" | "group" "{" { statement } "}" [ ";" ] | mark | condition
//! mark       = "." name "(" ... ")" ";"                                about the statement or group before it
//! condition  = "if" "(" value ")" block { "elif" "(" value ")" block } [ "else" block ]
//! ```
//!
//! `diff_x` is the rate of a state, `x_init` an initial value; a gate has `x_inf` and `tau_x`, or `alpha_x` and `beta_x` (or
//! `a_x`, `b_x`). Every other name is a constant or an intermediate value, in any order. `.external(Vm)` and
//! `.external(Iion)` mark voltage and current; other marks, such as tables, methods and traces, do not change the model.

mod lexer;
mod parser;
mod translate;

pub(super) use translate::to_toml;
