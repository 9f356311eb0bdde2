//! The coarse-level solve of a K cycle: two steps of flexible conjugate gradients.

use femtile_device::Scalar;
use femtile_linalg::precondition::polynomial::Iterate;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::kernels::AmgKernels;
use crate::level::LevelMatrix;
use crate::vectors::{KVectors, Vectors};

/// The second direction is used if this share of its energy is left after A-orthogonalization against the
/// first.
const INDEPENDENT: f64 = 1e-6;

/// Applies a cycle to the right side of the first level and writes the result to its `x`.
type Precondition<'a, H, D> = &'a mut dyn FnMut(&mut [Vectors<H, D>]) -> Result<(), LinalgError>;

/// Computes $x \approx A^{-1} b$ by two steps of conjugate gradients from zero, preconditioned by `cycle`; `b` is overwritten.
///
/// # Cost
/// Two cycles, two products, five scalar products, each a sum over the ranks of a divided level; moves 12n values besides.
/// # Source
/// `[notay2010]`, section 3. Differs: the second step is always done.
pub(crate) fn solve_by_steps<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    a: &LevelMatrix<H, D>,
    levels: &mut [Vectors<H, D>],
    cycle: Precondition<'_, H, D>,
) -> Result<(), LinalgError> {
    cycle_and_keep(device, levels, cycle)?;
    let Some(Vectors { own: Iterate { b, x, .. }, inner: Some(KVectors { c, v, w }), .. }) =
        levels.first_mut()
    else {
        return Ok(());
    };
    std::mem::swap(b, w);
    std::mem::swap(x, c);
    a.apply(v, c)?;
    let (c_dot_v, c_dot_b) = (a.dot(c, v)?, a.dot(c, b)?);
    if !(c_dot_v > 0.0 && c_dot_b.is_finite()) {
        std::mem::swap(x, c);
        return Ok(());
    }
    let first = c_dot_b / c_dot_v;
    device.axpby(b, H::from_f64(-first), v, H::ONE)?;
    cycle_and_keep(device, levels, cycle)?;
    let Some(Vectors { own: Iterate { x: d, .. }, inner: Some(KVectors { c, v, w }), .. }) =
        levels.first_mut()
    else {
        return Ok(());
    };
    let d_dot_b = a.dot(d, w)?;
    a.apply(w, d)?;
    let (d_dot_v, d_dot_w) = (a.dot(d, v)?, a.dot(d, w)?);
    let energy = d_dot_w - d_dot_v * d_dot_v / c_dot_v;
    let second = if energy > INDEPENDENT * d_dot_w { d_dot_b / energy } else { 0.0 };
    let of_c = first - second * d_dot_v / c_dot_v;
    device.axpby(d, H::from_f64(of_c), c, H::from_f64(second))
}

/// Applies a cycle after copying the right side, which the cycle may overwrite, to `w`.
fn cycle_and_keep<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    levels: &mut [Vectors<H, D>],
    cycle: Precondition<'_, H, D>,
) -> Result<(), LinalgError> {
    if let Some(Vectors { own: Iterate { b, .. }, inner: Some(KVectors { w, .. }), .. }) = levels.first_mut()
    {
        device.copy(w, b)?;
    }
    cycle(levels)
}
