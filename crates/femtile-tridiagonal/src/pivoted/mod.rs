//! Gaussian elimination with scaled partial pivoting, of systems with open ends.
//!
//! A row is exchanged with the next one where that one's entry in the column is larger, each measured by the
//! largest entry of its row. Exchanges fill a second upper band, so that
//! $u_i = d^*_i - c^*_i u_{i+1} - s^*_i u_{i+2}$.
//!
//! # Cost
//! A division for each row and one for each factor; 3 values a row are kept between the two sweeps.

#[allow(unsafe_code)]
pub(super) mod cpu;
pub(super) mod reference;
