//! The drift of linearizations, $\int \sigma_u\,\delta\,\nabla u\cdot\nabla v$, added to a matrix on a GPU.

#[allow(unsafe_code)]
mod cuda;

pub(super) use cuda::{Drift, specialisations};
