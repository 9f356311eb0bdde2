//! Threads that share short pieces of work without system calls.
//!
//! A whole solve runs in the rayon pool of its `Cpu`. A team with fixed shares runs the short parallel regions of
//! vector kernels. Its threads spin for about 10 µs, then sleep; they do not spin if there are more threads than
//! cores. A share stays on its core, so its memory stays local. A test checks the protocol over all schedules with
//! few preemptions (`model/`).

#[cfg(test)]
mod model;
mod protocol;
mod sync;
#[cfg(test)]
mod tests;

pub(super) use protocol::Team;
