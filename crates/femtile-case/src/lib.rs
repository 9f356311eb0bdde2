//! Case files: mesh, equation, boundary conditions, solver and output in one text.
//!
//! [`Case::load`] reads and checks a file, [`run`] runs it, [`Report`] describes the outcome. A [`Study`] runs a case for all
//! combinations of some of its values.
//!
//! Messages have the line of the case file (`place`, `placed`) or the option that overrides it (`overrides`).
//! `transient` writes frames, traces and checkpoints of runs on a mesh, `diffusion` runs alternating directions,
//! `distribution` chooses how ranks get their parts of a mesh.
#![forbid(unsafe_code)]

mod ahead;
mod animation;
mod begun_output;
mod cardiac;
mod check;
mod checked_mesh;
mod conditions;
mod diffusion;
mod distribution;
mod drawn_field;
mod embedding;
mod error;
pub mod file;
mod file_names;
mod form;
mod functional;
mod load;
mod memory;
mod mesh_source;
mod output;
mod overlap;
mod overrides;
mod page;
mod pieces;
mod place;
mod placed;
mod plot;
mod profile;
mod read;
mod recovered;
mod report;
mod restart;
mod roofline;
mod route;
mod run;
mod series;
mod settings;
mod side_matrix;
mod stationary;
mod study;
mod syntax;
mod system;
mod transient;
mod verify;
mod vtkhdf;

pub use ahead::gpu_programs;
pub use embedding::{Embedding, Receiver};
pub use error::CaseError;
pub use femtile_solve::{
    Key, Progress, Silent, SolutionData, SolveError, SolvedSystem, Stage, check_tolerance,
};
pub use file::schema;
pub use form::{Array, ByConstant, FormState};
pub use form::{Convergence, ConvergenceLevel, Norms, Verdict, verify_exact};
pub use load::Case;
pub use mesh_source::{generate, refined};
pub use output::write_report;
pub use overrides::Override;
pub use plot::{residual_plot, save_residual_plot};
pub use profile::{Profile, Watched};
pub use report::{
    FileReport, LevelReport, ModeReport, NonlinearReport, RanksReport, Report, SolveReport, TimeReport,
    Timings,
};
pub use run::{run, run_on};
pub use side_matrix::SideMatrix;
pub use study::{Study, StudyNumbers, StudyOrder, StudyReport, StudyRun, StudyTable, Vary};
pub use system::CaseSystem;
pub use verify::{Misfit, verify};
