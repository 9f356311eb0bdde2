use femtile_device::{Buffer, Scalar};

use super::{SmallMatrix, SmallVector};
use crate::LinalgError;
use crate::vector::VectorKernels;

/// The sums over a block of directions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SStepSums {
    /// $W = P^\mathsf{T} A P$, where $A P$ is taken for that of the basis.
    pub w: SmallMatrix,
    /// $g = P^\mathsf{T} r$.
    pub g: SmallVector,
}

/// The four passes of s-step conjugate gradients over blocks of vectors.
///
/// The basis is $T = [t_0, \dots, t_s]$ with $t_0 = D^{-1} r$ and $t_{j+1} = D^{-1} A t_j$, so that $A t_j = D\, t_{j+1}$
/// needs no vectors of its own; `inverse_diagonal` is that of $D$, which is $I$ where it is absent.
///
/// # Shapes
/// `p: [n; s_before]`, `t: [n; s + 1]`, with s and `s_before` from 1 to [`MAX_STEPS`](super::MAX_STEPS).
/// # Errors
/// [`LinalgError::Length`] when vectors differ in length.
pub trait SStepCgKernels<T: Scalar>: VectorKernels<T> {
    /// $C_{ij} = p_i^\mathsf{T} A t_j$ for the directions before. Reads 2s values for each unknown.
    fn s_step_couplings(
        &self,
        p: &[Buffer<T, Self>],
        t: &[Buffer<T, Self>],
        inverse_diagonal: Option<&Buffer<T, Self>>,
    ) -> Result<SmallMatrix, LinalgError>;

    /// $P = [t_0, \dots, t_{s-1}] + P B$, with the first `n_before` columns of $P$, then the sums of the new directions.
    /// Reads 2s + 1 and writes s values for each unknown.
    fn s_step_directions(
        &self,
        p: &mut [Buffer<T, Self>],
        t: &[Buffer<T, Self>],
        b: &SmallMatrix,
        n_before: usize,
        inverse_diagonal: Option<&Buffer<T, Self>>,
    ) -> Result<SStepSums, LinalgError>;

    /// $x \mathrel{+}= \sum_j a_j p_j$. Reads s + 1 values and writes 1 for each unknown.
    fn s_step_solution(
        &self,
        x: &mut Buffer<T, Self>,
        p: &[Buffer<T, Self>],
        a: &[f64],
    ) -> Result<(), LinalgError>;

    /// $r = b - v$ with $v = A x$, of which $t_0 = D^{-1} r$ is kept; gives $r^\mathsf{T} r$. Reads 2 values and writes
    /// 1 for each unknown.
    fn s_step_residual(
        &self,
        t_0: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        v: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
    ) -> Result<f64, LinalgError>;
}
