//! The operator on a CPU: SIMD across cells, threads without atomics.

mod batches;
mod cells;
mod diagonal;
#[allow(unsafe_code)]
mod exchange;
mod layout;
#[allow(unsafe_code)]
mod operator;
mod parts;
#[cfg(test)]
mod tests;

pub use operator::MatrixFree;
