//! What the protocol waits and wakes by; the model has a file of its own in this place.

pub use std::sync::Mutex;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub use std::thread::{Builder, JoinHandle, Thread, available_parallelism, park, yield_now};
