//! Krylov methods and how they end.

pub mod cg;
pub mod merged_cg;
mod monitor;
mod stop;
mod watch;

pub use monitor::Monitor;
pub use stop::Stop;
