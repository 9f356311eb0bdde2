//! Conductivity and reaction at any points.

use femtile_expression::TapeScratch;
use femtile_mesh::Mesh;

use super::checks::{definite, is_projection, not_negative};
use super::{Coefficient, Compiled, Points};
use crate::FemError;

/// The conductivity and the reaction of a form, ready for evaluation at points of any rule.
pub(crate) struct PointCoefficients<'a> {
    sigma: Compiled<'a>,
    lambda: Compiled<'a>,
    dimension: usize,
    /// Whether there is a reaction alone.
    is_zero: bool,
}

impl<'a> PointCoefficients<'a> {
    /// Of a mesh.
    ///
    /// # Errors
    /// [`FemError::Shape`] for what has the wrong shape.
    pub fn new(mesh: &'a Mesh, sigma: &'a Coefficient, lambda: &'a Coefficient) -> Result<Self, FemError> {
        Ok(Self {
            sigma: Compiled::tensor("sigma", sigma, mesh)?,
            lambda: Compiled::scalar("lambda", lambda, mesh)?,
            dimension: mesh.dimension(),
            is_zero: is_projection(sigma, lambda),
        })
    }

    /// σ at points as tensors that are symmetric to the last bit.
    ///
    /// # Errors
    /// The first point where it is not finite, or not symmetric positive definite, but for the number zero beside a λ.
    pub fn sigma(
        &self,
        out: &mut [[[f64; 3]; 3]],
        points: &Points,
        tape: &mut TapeScratch,
    ) -> Result<(), FemError> {
        self.sigma.eval_tensor(out, points, self.dimension, tape)?;
        if !self.is_zero {
            definite(out, points, self.dimension)?;
        }
        for t in out {
            *t = std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (t[i][j] + t[j][i])));
        }
        Ok(())
    }

    /// λ at points.
    ///
    /// # Errors
    /// The first point where it is not finite or negative.
    pub fn lambda(&self, out: &mut [f64], points: &Points, tape: &mut TapeScratch) -> Result<(), FemError> {
        self.lambda.eval_scalar(out, points, tape)?;
        not_negative("lambda", out, points)
    }
}
