//! Synchronization of the protocol; the model replaces this file.

pub use std::sync::Mutex;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::thread::{Builder, JoinHandle, Thread, available_parallelism, park, yield_now};
