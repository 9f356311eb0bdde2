//! Kernels and formats that exist to be compared with, the tables and figures of papers, and the pictures of the documents.
//!
//! The program `femtile-research` prints what [`reproduce`] returns; `femtile reproduce` runs it. `femtile-picture` draws with
//! [`picture`]. Of the other crates only the conformance suite depends on this one.
#![deny(unsafe_code)]

pub mod formats;
pub mod patch_assembly;
pub mod picture;
pub mod published_kernels;
pub mod reproduce;
