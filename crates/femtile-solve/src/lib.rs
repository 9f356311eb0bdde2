//! From a problem on a mesh, or a matrix, to its solution: devices, operators, preconditioners and methods by name.
//!
//! [`Poisson`] is an equation on a mesh, [`LinearSolver`] takes a matrix, [`SolverConfig`] says how to solve either.
//!
//! An error about a setting carries the keys that the setting has in a case file (`SolveError::Setting`);
//! `femtile-case` finds their place in its text. `Stages` times the steps of a solve and passes them on. A matrix
//! without a mesh enters as [`LinearSolver`]; problems on meshes go through [`Discretization`] and [`WeakForm`] to
//! a [`LinearSystem`], and back to a [`Solution`]. `Plan` decides their operator, preconditioner and device before anything
//! is made; estimates of memory and lists of GPU programs read it as well.
#![forbid(unsafe_code)]

mod aggregation;
mod auto;
mod bidomain;
mod boundary;
mod boundary_areas;
mod capacity;
mod check;
mod coefficient;
mod component;
mod config;
mod contrast;
mod data;
mod device;
mod discretization;
mod distributed_solution;
mod error;
mod fibres;
mod fields;
mod form;
mod format;
mod from_mesh;
mod gathered_solution;
mod interpolation;
mod matrix;
mod matrix_preconditioner;
pub mod memory;
mod method;
mod nodes;
mod nonlinear;
mod output;
mod overlap;
mod plan;
mod preconditioner;
mod problem;
mod programs;
mod progress;
mod ranks;
mod regions;
mod right_side;
mod rounding;
mod saddle_point;
mod setting;
mod solution;
mod space;
mod standalone_system;
mod system;
mod tensor;
mod transient;
mod unseen;

pub use boundary::{InnerFacets, Region, Selected};
pub use check::check_cells;
pub use coefficient::{Entry, TagName, Value, cell_tags, check_count, expression};
pub use component::Component;
pub use config::{
    AmgGraph, AmgOptions, DeviceChoice, GmgOptions, GmgStart, MatrixFormat, Method, OperatorKind, PmgOptions,
    PreconditionerConfig, Remembered, SolverConfig, check_tolerance,
};
pub use data::SolutionData;
pub use device::{Choice, Chosen};
pub use discretization::{Discretization, WeakForm};
pub use error::SolveError;
pub use femtile_linalg::precondition::LevelPrecision;
pub use femtile_mesh::partition::{PartitionQuality, Partitioner};
pub use fibres::Sheets;
pub use fields::{FieldConfig, Fields};
pub use form::{
    Continuation, ErrorNorms, FormAt, FormIntegral, FormObserver, FormProblem, FormSolution, Functional,
    InterfaceFlux, InterfacePlace, LoadStep, ManufacturedBoundary, Mode, Periodic, SideFluxes, SideMap,
    Stress,
};
pub use from_mesh::amg_from_mesh;
pub use gathered_solution::{GatheredSolution, GatheredValues};
pub use interpolation::Interpolation;
pub use matrix::{LinearSolution, LinearSolver, SolveLimits};
pub use method::SolveDevice;
pub use nodes::Nodes;
pub use nonlinear::{MassMatrix, NonlinearConfig, NonlinearMethod, NonlinearReport};
pub use output::SolutionFile;
pub use overlap::{Overlap, overlaps};
pub use preconditioner::Level;
pub use problem::Poisson;
pub use programs::{Cells, Outline, likely_programs};
pub use progress::{Progress, Silent, SolvedSystem, Stage, Stages, Timings};
pub use ranks::{
    DistributedProblem, FEWEST_LAYERS, LocalProblem, RankDevice, Ranks, RanksUsed, has_gpus_of_ranks, scatter,
};
pub use regions::{tag_regions, tag_regions_of_ranks};
pub use setting::{Key, below, path_text};
pub use solution::Solution;
pub use space::{MAX_COMPONENTS, Quadrature, SpaceConfig, check_degree};
pub use standalone_system::StandaloneSystem;
pub use system::{LinearSystem, PreconditionedOperator};
pub use tensor::{OperatorDevice, cells_fill_rows};
pub use transient::{CheckpointInterval, Frame, Observer, TimeStepping, Transient, TransientSolution};
