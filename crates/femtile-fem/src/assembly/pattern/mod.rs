//! Sparsity pattern of linear elements, found on a GPU.

#[allow(unsafe_code)]
mod cuda;

pub(super) use cuda::{Incidence, program, specialisations};
