//! Gaussian elimination row by row, of systems with open ends.
//!
//! $$ c^*_i = \frac{c_i}{b_i - a_i c^*_{i-1}}, \qquad d^*_i = \frac{d_i - a_i d^*_{i-1}}{b_i - a_i c^*_{i-1}},
//!    \qquad u_i = d^*_i - c^*_i u_{i+1} $$
//!
//! # Cost
//! A division, 5 products and 3 differences a row; 2 values a row are kept between the two sweeps.
//! # Source
//! `[laszlo2016]`, Alg. 1; on a GPU Alg. 6 to 9.

#[allow(unsafe_code)]
pub(super) mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
pub(super) mod reference;
