//! Expressions: values, laws, errors, and what pages say of them.

mod common;
mod cuda;
mod documentation;
mod errors;
mod names;
mod program;
mod properties;
mod values;
