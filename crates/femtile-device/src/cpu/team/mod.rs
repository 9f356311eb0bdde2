//! Threads that share out short pieces of work without a trip through the operating system.

#[cfg(test)]
mod model;
mod protocol;
mod sync;
#[cfg(test)]
mod tests;

pub(super) use protocol::Team;
