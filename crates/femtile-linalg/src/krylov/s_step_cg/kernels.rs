use femtile_device::{Buffer, Scalar};

use super::{MAX_STEPS, SStepGram, SmallMatrix};
use crate::vector::VectorKernels;
use crate::{LinalgError, error::need};

/// The three passes of s-step conjugate gradients over blocks of vectors.
///
/// The basis is $T = [t_0, \dots, t_s]$ with $t_0 = D^{-1} r$ and $t_{j+1} = D^{-1} A t_j$, so that
/// $A t_j = D\, t_{j+1}$ needs no vectors of its own. `inverse_diagonal` is $D^{-1}$; without it $D = I$.
///
/// # Shapes
/// `p: [n; s_before]`, `t: [n; s + 1]`, with s and `s_before` up to [`MAX_STEPS`].
/// # Errors
/// [`LinalgError::Length`] when vectors differ in length.
pub trait SStepCgKernels<T: Scalar>: VectorKernels<T> {
    /// All sums of a block, with the directions `p` before it. Reads `s_before` + s + 1 values for each unknown.
    fn s_step_gram(
        &self,
        p: &[Buffer<T, Self>],
        t: &[Buffer<T, Self>],
        inverse_diagonal: Option<&Buffer<T, Self>>,
    ) -> Result<SStepGram, LinalgError>;

    /// $x \mathrel{+}= P_- a_- + P a$; $P = R + P_- B$ replaces the first columns $P_-$ of `p`. $P_-$ has a
    /// column per entry of `a_before`; $P$ has a column per vector of `r` and entry of `a`. Reads s +
    /// `s_before` + 1 and writes s + 1 values for each unknown.
    ///
    /// # Errors
    /// As above, and if `p` or `a` has too few columns.
    fn s_step_update(
        &self,
        x: &mut Buffer<T, Self>,
        p: &mut [Buffer<T, Self>],
        r: &[Buffer<T, Self>],
        b: &SmallMatrix,
        a: &[f64],
        a_before: &[f64],
    ) -> Result<(), LinalgError>;

    /// Computes $r = b - v$ with $v = A x$, stores $t_0 = D^{-1} r$, and returns $r^\mathsf{T} r$. Reads 2
    /// values and writes 1 for each unknown.
    fn s_step_residual(
        &self,
        t_0: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        v: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
    ) -> Result<f64, LinalgError>;
}

/// Refuses more directions or vectors of a basis than a block has.
pub(super) fn few(n_p: usize, n_t: usize) -> Result<(), LinalgError> {
    let n_steps = n_p.max(n_t.saturating_sub(1));
    need("steps", n_steps.min(MAX_STEPS), n_steps)
}

/// Refuses an update with fewer directions or coefficients than it needs; returns the number of directions.
pub(super) fn enough(n_p: usize, n_r: usize, a: &[f64], a_before: &[f64]) -> Result<usize, LinalgError> {
    let n_needed = n_r.max(a_before.len());
    few(n_needed, 0)?;
    need("p", n_needed, n_p.min(n_needed))?;
    need("a", n_r, a.len())?;
    Ok(n_needed)
}
