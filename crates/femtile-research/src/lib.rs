//! Kernels and formats that exist to be compared with, and the tables and figures of papers.
//!
//! The program `femtile-research` prints what [`reproduce`] returns; `femtile reproduce` runs it. No library and no
//! other program depends on this crate.
#![deny(unsafe_code)]

pub mod formats;
pub mod reproduce;
