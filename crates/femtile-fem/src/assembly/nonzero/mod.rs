//! Assembly by non-zeros on a GPU, `[wong2015]`, section 4: element values are computed once, then each entry sums its
//! own.
//!
//! Each entry sums by ascending cell, so its bits do not depend on patches or blocks of threads.

#[allow(unsafe_code)]
mod cuda;
mod lists;

pub use cuda::RefillData;
pub(super) use cuda::specialisations;
