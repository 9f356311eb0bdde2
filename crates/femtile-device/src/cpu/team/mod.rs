//! Threads that share short pieces of work without system calls.

#[cfg(test)]
mod model;
mod protocol;
mod sync;
#[cfg(test)]
mod tests;

pub(super) use protocol::Team;
