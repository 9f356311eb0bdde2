//! Elimination row by row: `[laszlo2016]`, Alg. 1 and 6 to 9.

#[allow(unsafe_code)]
pub(crate) mod cuda;
