//! The three bands of the matrices of a batch: from arrays, or formed where they are used.

use std::ops::Range;

use femtile_device::{Buffer, Device, Scalar};

use super::CudaBands;

/// The bands of all systems: $a_i u_{i-1} + b_i u_i + c_i u_{i+1} = d_i$.
pub enum Bands<'a, T: Scalar, D: Device> {
    /// Arrays, each with a value for every entry of the right side unless the solver was told strides of their own.
    Arrays {
        /// $a$: what couples a row to the one before.
        lower: &'a Buffer<T, D>,
        /// $b$.
        diagonal: &'a Buffer<T, D>,
        /// $c$: what couples a row to the one behind.
        upper: &'a Buffer<T, D>,
    },
    /// Formed row by row in the kernel that solves, so that no array of coefficients is read.
    Rule(&'a dyn BandRule<T>),
}

impl<T: Scalar, D: Device> Clone for Bands<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: Device> Copy for Bands<'_, T, D> {}

/// The source of the bands of any row of any line.
pub trait BandRule<T: Scalar>: Send + Sync {
    /// The bands of `rows` of `lines`: of each array the entry of (row, line) at
    /// `(row - rows.start) * lines.len() + (line - lines.start)`.
    fn fill(
        &self,
        lines: Range<usize>,
        rows: Range<usize>,
        lower: &mut [T],
        diagonal: &mut [T],
        upper: &mut [T],
    );

    /// The same for kernels on a GPU; none where there is only a body for the CPU.
    fn cuda(&self) -> Option<CudaBands> {
        None
    }
}
