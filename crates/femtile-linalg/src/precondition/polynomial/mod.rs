//! Smoothers that are polynomials in $D^{-1} A$: nothing but products and a diagonal, so they serve every operator.

mod chebyshev;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod iterate;
mod kernels;
mod reference;
mod spectrum;

pub use chebyshev::chebyshev;
pub use cuda::{product_hooks, program as cuda_program};
pub use iterate::Iterate;
pub use kernels::{PolynomialKernels, Relaxed, Step};
use kernels::{need_relaxed, need_vectors};
pub use spectrum::{
    GlobalSums, largest_eigenvalue, largest_from, largest_of_lanczos, largest_of_ranks,
    largest_preconditioned, start_of_lanczos, start_of_rows,
};
