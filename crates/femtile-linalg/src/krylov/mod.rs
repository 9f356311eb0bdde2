//! Krylov methods and how they end.

pub mod cg;
mod monitor;
mod stop;

pub use monitor::Monitor;
pub use stop::Stop;
