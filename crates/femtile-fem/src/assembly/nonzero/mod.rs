//! Assembly by non-zeros on a GPU: values of elements once, then each entry sums its own, `[wong2015]`, section 4.

#[allow(unsafe_code)]
mod cuda;
mod incidence;
mod lists;

pub use cuda::Kept;
pub(super) use cuda::specialisations;
