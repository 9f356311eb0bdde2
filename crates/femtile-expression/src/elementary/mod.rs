//! Elementary functions without branches, tables or calls, so that a loop over them becomes vector instructions.
//!
//! Sums of products are rounded once where this text says `mul_add`, and nowhere else: a function has the same bits in
//! scalar code and in vectors of any width. Processors without fused multiply-add are slow here, not different.
//!
//! Most arguments are ordinary: for them a function `ordinary_…` has the value with fewer operations. Whether arguments
//! are is told by the highest bit of integers, which a loop can gather without leaving its vectors.

mod exponential;
mod logarithm;

pub(crate) use exponential::{exp, expm1, exprel, ordinary_exp, ordinary_expm1, tanh, unusual_exponent};
pub(crate) use logarithm::{log, log1p, ordinary_log, unusual_number};

/// The upper 42 bits of log 2: a product with an integer of 11 bits is exact.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
/// log 2 − [`LN2_HIGH`].
const LN2_LOW: f64 = 5.497_923_018_708_371e-14;
