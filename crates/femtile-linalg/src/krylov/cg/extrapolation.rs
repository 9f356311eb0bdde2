use femtile_device::{Buffer, Scalar};

use super::{CgExtrapolate, CgKernels};
use crate::LinalgError;

/// The solution before the last one with its product: with the last ones they give the next first guess.
pub(super) struct Extrapolation<T: Scalar, D: CgKernels<T>> {
    pub previous_x: Buffer<T, D>,
    pub previous_q: Buffer<T, D>,
    /// Solutions with known products: 1 for the last, 2 for the one before as well.
    pub known: usize,
}

impl<T: Scalar, D: CgKernels<T>> Extrapolation<T, D> {
    pub fn new(device: &D, n: usize) -> Result<Self, LinalgError> {
        let (previous_x, previous_q) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        Ok(Self { previous_x, previous_q, known: 0 })
    }

    /// The vectors of the pass: x is the last solution, q its product.
    pub fn with<'a>(
        &'a mut self,
        x: &'a mut Buffer<T, D>,
        q: &'a Buffer<T, D>,
        r: &'a mut Buffer<T, D>,
    ) -> CgExtrapolate<'a, T, D> {
        let Self { previous_x, previous_q, .. } = self;
        CgExtrapolate { x, previous_x, q, previous_q, r }
    }
}
