//! Kernels and formats that exist to be compared with, and the tables and figures of papers.
//!
//! The program `femtile-research` prints what [`reproduce`] returns; `femtile reproduce` runs it. Of the other crates only the
//! conformance suite depends on this one.
#![deny(unsafe_code)]

pub mod formats;
pub mod patch_assembly;
pub mod published_kernels;
pub mod reproduce;
