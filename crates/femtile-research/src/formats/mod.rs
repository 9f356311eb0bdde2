//! Storage formats of sparse matrices that ELL-WARP is compared with: those of `[wong2015]`, section 4.
//!
//! Each format is made from `Csr`. Solves use `Csr` and ELL-WARP alone.

mod carries;
mod compared;
pub mod coo;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
pub mod ell;
pub mod hyb;
pub mod jds;
mod kernels;
pub mod merge;
mod reference;
mod rows;

pub use compared::{ComparedFormat, ComparedMatrix, FormatKernels};
pub use coo::Coo;
pub use cuda::cuda_specialisations;
pub use ell::{Ell, EllConfig};
pub use hyb::Hyb;
pub use jds::Jds;
pub use kernels::{HookKernels, TileKernels};
pub use merge::Merge;

/// Implements `LinearOperator` for a format: checks the lengths of `y` and `x`, then calls the product.
macro_rules! linear_operator {
    (
        $matrix:ident, $kernels:path, |$a:ident| [$n_rows:expr, $n_cols:expr, $device:expr],
        |$y:ident, $x:ident, $hook:ident| $product:expr
    ) => {
        impl<T: Scalar, D: $kernels> LinearOperator<T, D> for $matrix<T, D> {
            fn n_rows(&self) -> usize {
                let $a = self;
                $n_rows
            }

            fn n_cols(&self) -> usize {
                let $a = self;
                $n_cols
            }

            fn device(&self) -> &D {
                let $a = self;
                $device
            }

            fn apply_with(
                &self,
                $y: &mut Buffer<T, D>,
                $x: &Buffer<T, D>,
                $hook: &dyn Hook<T>,
            ) -> Result<(), LinalgError> {
                let $a = self;
                need_product([self.n_rows(), self.n_cols()], $y.len(), $x.len())?;
                $product
            }
        }
    };
}
use linear_operator;
