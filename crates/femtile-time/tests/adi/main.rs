//! Alternating directions: orders, stability, agreement of devices, bad input.

mod agreement;
mod boundary;
mod heston;
mod manufactured;
mod order;
mod refusals;
mod stability;
