//! Rectangles with coefficient one, of any degree: kernels loop over rows of nodes instead of cells and
//! patches.
//!
//! The matrices of the axes are banded, so a row of nodes along x of a product is a sum of neighbouring rows. Rows are
//! contiguous: nothing is gathered, and vectors hold neighbouring nodes.
//!
//! The operator, the transfers and the Chebyshev smoother work on rows.

#![expect(clippy::needless_range_loop, reason = "loops by index over slices of one length become vectors")]

mod bands;
mod chebyshev;
#[allow(unsafe_code)]
mod kernels;
#[allow(unsafe_code)]
mod operator;
#[allow(unsafe_code)]
mod transfer;

pub use chebyshev::RowChebyshev;
pub use operator::RowOperator;
pub use transfer::RowTransfer;
