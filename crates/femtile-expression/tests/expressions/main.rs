//! Expressions: values, laws, errors, and what pages say of them.

mod arrays;
mod common;
mod cuda;
mod documentation;
mod elementary;
mod errors;
mod mathematics;
mod names;
mod program;
mod program_properties;
mod properties;
mod values;
