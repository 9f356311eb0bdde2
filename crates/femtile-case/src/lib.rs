//! Case files: from a text that names mesh, equation, boundary, solver and output to a checked solution.
//!
//! [`Case::load`] reads and checks a file, [`run`] carries it out, [`Report`] says how it went.
#![forbid(unsafe_code)]

mod boundary;
mod coefficient;
mod device;
mod diffusion;
mod error;
pub mod file;
mod finish;
mod functional;
mod high_order;
mod load;
mod memory;
mod mesh_source;
mod output;
mod overlap;
mod place;
mod placed;
mod plot;
mod progress;
mod report;
mod run;
mod solve;
mod verify;
mod wording;

pub use error::CaseError;
pub use file::schema;
pub use load::{Case, check_tolerance};
pub use mesh_source::{generate, refined};
pub use output::write_report;
pub use place::Key;
pub use plot::{residual_plot, save_residual_plot};
pub use progress::{Progress, Silent, SolvedSystem, Stage};
pub use report::{FileReport, LevelReport, Report, SolveReport, TimeReport, Timings};
pub use run::{run, run_on};
pub use verify::{Misfit, verify};
pub use wording::in_words;
