//! Elimination within chunks of a system, parallel cyclic reduction between them: `[laszlo2016]`, Alg. 3 to 5, 10, 11.
//!
//! Differs: one unknown per chunk is left for cyclic reduction; `[laszlo2016]` leaves two.

#[allow(unsafe_code)]
pub(crate) mod cuda;
pub(super) mod reference;
mod shape;
