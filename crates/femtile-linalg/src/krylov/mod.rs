//! Krylov methods and how they end.
//!
//! Failure to converge is an outcome (`Stop`, with advice), never a panic or an error. The scalars of
//! `pipelined_cg` and `s_step_cg` live on the host; on a GPU each pass brings its sums there. All methods share
//! `acceptance/`, `watch` (limits, history, monitor), `residual` and `preconditioning` (none, diagonal, general).

mod acceptance;
pub mod cg;
mod energy;
mod failed_test;
pub mod gmres;
pub mod merged_cg;
mod monitor;
pub mod pipelined_cg;
mod preconditioning;
mod rescaled;
mod residual;
mod rounding;
pub mod s_step_cg;
mod stop;
mod watch;

pub use failed_test::{AcceptanceTest, FailedTest};
pub use monitor::Monitor;
pub use preconditioning::{Preconditioning, PreconditioningKind};
pub(crate) use residual::over_ranks;
pub use stop::Stop;
