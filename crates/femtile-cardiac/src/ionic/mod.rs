//! Models of the membrane of a cell: states, rates, and their integration at many points.
//!
//! A [`Model`] is a description in TOML with formulas; [`Ionic`] integrates it at points of a device:
//!
//! ```
//! use femtile::Cpu;
//! use femtile::device::Buffer;
//! use femtile_cardiac::ionic::{Ionic, LocalScheme, Model, Points};
//!
//! # fn main() -> Result<(), femtile_cardiac::CardiacError> {
//! let cpu = Cpu::new(1)?;
//! let model = Model::named("aliev-panfilov")?;
//! let mut cells = Ionic::new(&cpu, &model, LocalScheme::RushLarsen2, Points::all(3))?;
//! let mut v = Buffer::from_vec(&cpu, vec![0.0, 0.02, 0.5])?;
//! for _ in 0..100 {
//!     cells.advance(&mut v, None, 0.05)?;
//! }
//! // At rest, above the threshold of 0.01, and after the upstroke.
//! assert!(v.as_slice()[0] == 0.0 && v.as_slice()[1] < 0.1 && v.as_slice()[2] > 0.9, "{:?}", v.as_slice());
//! # Ok(())
//! # }
//! ```
//!
//! A model is data (`models/*.toml`), not code. It becomes one graph of formulas (`ProgramBuilder`), from which the
//! program of a stage, the CUDA function and the derivatives are made. States are arrays of a model, voltages are
//! vectors over nodes; a list of nodes that is checked when it is made (`Points`) joins the two. CPU kernels have
//! the bits of the reference, as both evaluate the same program.

mod cells;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod description;
mod easyml;
mod formulas;
mod kernels;
mod library;
mod model;
mod points;
mod reference;
mod resolve;
mod scheme;
mod source;
mod states;

pub use cells::Ionic;
pub(crate) use cells::check_step;
pub use cpu::CpuProgram;
pub(crate) use cpu::{BLOCK, Pool};
pub use cuda::CudaProgram;
pub(crate) use formulas::Formulas;
pub use kernels::IonicKernels;
pub use model::{Model, State, Units};
pub use points::Points;
pub(crate) use points::stride_of;
pub use reference::HostProgram;
pub use scheme::LocalScheme;
pub use states::{GatePrecision, States};

/// The program of docs/ionic-models.md, which is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/ionic-models.md")]
mod page {}
