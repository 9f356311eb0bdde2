//! One matrix for all right sides, eliminated once.
//!
//! $$ d^*_i = (d_i - a_i d^*_{i-1}) r_i, \qquad u_i = d^*_i - c^*_i u_{i+1}, \qquad r_i = 1 / (b_i - a_i c^*_{i-1}) $$

#[allow(unsafe_code)]
pub(super) mod cpu;
mod kernels;
mod reference;

use femtile_device::{Buffer, Scalar};

use super::{Layout, Lines};
use crate::LinalgError;
use crate::error::need;
use crate::tridiagonal::thomas::reference::is_sound;
pub use kernels::{FactoredKernels, Factors};

/// Solves systems with open ends that all have the same matrix, whose elimination is done once.
///
/// # Cost
/// Reads one value a row and writes one: $2/5$ of what varying coefficients take.
/// # Source
/// `[laszlo2016]`, Alg. 1. Differs: what depends on the matrix alone is computed on the host when it is made.
#[derive(Debug)]
pub struct FactoredTridiagonal<T: Scalar, D: FactoredKernels<T>> {
    device: D,
    layout: Layout,
    lines: Lines,
    factors: Factors<T, D>,
}

impl<T: Scalar, D: FactoredKernels<T>> FactoredTridiagonal<T, D> {
    /// Eliminates the matrix of all lines along `axis` from its bands.
    ///
    /// # Shapes
    /// `lower`, `diagonal`, `upper`: one value a row; the first of `lower` and the last of `upper` are not read.
    /// # Errors
    /// [`LinalgError::Length`] when a band has not one value a row; [`LinalgError::Setting`] when there is no such
    /// axis, or a pivot is zero, lost to rounding or not finite.
    pub fn new(
        device: &D,
        layout: &Layout,
        axis: usize,
        lower: &[T],
        diagonal: &[T],
        upper: &[T],
    ) -> Result<Self, LinalgError> {
        let lines = layout.lines(axis)?;
        for (field, band) in [("lower", lower), ("diagonal", diagonal), ("upper", upper)] {
            need(field, lines.length, band.len())?;
        }
        let (mut inverse, mut c_star) = (vec![T::ZERO; lines.length], vec![T::ZERO; lines.length]);
        for i in 0..lines.length {
            let pivot = if i == 0 { diagonal[0] } else { diagonal[i] - lower[i] * c_star[i - 1] };
            inverse[i] = T::ONE / pivot;
            if !is_sound(pivot, diagonal[i]) || !inverse[i].is_finite() {
                let message = format!(
                    "the pivot of row {i} is {pivot}: check that row, or solve with partial pivoting by `Tridiagonal`"
                );
                return Err(LinalgError::Setting { field: "diagonal", message });
            }
            if i + 1 < lines.length {
                c_star[i] = upper[i] * inverse[i];
            }
        }
        let mut lower = lower.to_vec();
        if let Some(first) = lower.first_mut() {
            *first = T::ZERO;
        }
        let factors = Factors {
            lower: Buffer::from_vec(device, lower)?,
            inverse: Buffer::from_vec(device, inverse)?,
            upper: Buffer::from_vec(device, c_star)?,
        };
        Ok(Self { device: device.clone(), layout: layout.clone(), lines, factors })
    }

    /// The same with constant coefficients.
    ///
    /// # Errors
    /// Those of [`FactoredTridiagonal::new`].
    pub fn constant(
        device: &D,
        layout: &Layout,
        axis: usize,
        [lower, diagonal, upper]: [T; 3],
    ) -> Result<Self, LinalgError> {
        let n = layout.lines(axis)?.length;
        Self::new(device, layout, axis, &vec![lower; n], &vec![diagonal; n], &vec![upper; n])
    }

    /// Solves into `u` for the right sides `d`; a line whose right side is not finite gives one that is not.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when an array is too short; what the device reports.
    pub fn solve(&mut self, u: &mut Buffer<T, D>, d: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.at_least("d", d.len())?;
        self.solve_any(u, Some(d))
    }

    /// Solves, `u` holding the right sides before.
    ///
    /// # Errors
    /// As [`FactoredTridiagonal::solve`].
    pub fn solve_in_place(&mut self, u: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        self.solve_any(u, None)
    }

    fn solve_any(&mut self, u: &mut Buffer<T, D>, d: Option<&Buffer<T, D>>) -> Result<(), LinalgError> {
        self.at_least("u", u.len())?;
        if self.layout.n_entries() == 0 {
            return Ok(());
        }
        self.device.factored_solve(&self.lines, &self.factors, u, d)
    }

    fn at_least(&self, field: &'static str, found: usize) -> Result<(), LinalgError> {
        let required = self.layout.required_len();
        if found < required { need(field, required, found) } else { Ok(()) }
    }
}
