//! Cyclic reduction, parallel and in two sweeps: `[laszlo2016]`, Alg. 2.

#[allow(unsafe_code)]
pub(crate) mod cuda;
pub(super) mod reference;
