//! Conductivity and reaction at arbitrary points.

use femtile_expression::TapeScratch;
use femtile_mesh::Mesh;

use super::checks::{definite, is_projection, not_negative};
use super::{Coefficient, Compiled, Points};
use crate::FemError;

/// The conductivity and the reaction of a form, compiled for evaluation at points of any rule.
pub(crate) struct PointCoefficients<'a> {
    sigma: Compiled<'a>,
    lambda: Compiled<'a>,
    dimension: usize,
    /// Whether σ is the same everywhere.
    is_constant: bool,
    /// Whether there is only a reaction.
    is_zero: bool,
    /// Whether λ may be negative.
    has_any_reaction: bool,
}

impl<'a> PointCoefficients<'a> {
    /// Compiles the coefficients for a mesh.
    ///
    /// # Errors
    /// [`femtile_form::FormError::Shape`] for a wrong shape.
    pub fn new(mesh: &'a Mesh, sigma: &'a Coefficient, lambda: &'a Coefficient) -> Result<Self, FemError> {
        Ok(Self {
            sigma: Compiled::tensor("sigma", sigma, mesh)?,
            lambda: Compiled::scalar("lambda", lambda, mesh)?,
            dimension: mesh.dimension(),
            is_constant: sigma.as_constant().is_some() || matches!(sigma, Coefficient::Tensor(_)),
            is_zero: is_projection(sigma, lambda),
            has_any_reaction: false,
        })
    }

    /// As [`Self::new`], for a λ that may be negative.
    pub fn of_any_sign(
        mesh: &'a Mesh,
        sigma: &'a Coefficient,
        lambda: &'a Coefficient,
    ) -> Result<Self, FemError> {
        Ok(Self { has_any_reaction: true, ..Self::new(mesh, sigma, lambda)? })
    }

    /// Evaluates σ at points as tensors that are symmetric to the last bit.
    ///
    /// # Errors
    /// The first point at which σ is not finite, or not symmetric positive definite. With a reaction λ, σ = 0
    /// is accepted.
    pub fn sigma(
        &self,
        out: &mut [[[f64; 3]; 3]],
        points: &Points,
        tape: &mut TapeScratch,
    ) -> Result<(), FemError> {
        self.sigma.eval_tensor(out, points, self.dimension, tape)?;
        let n_checked = if self.is_constant { out.len().min(1) } else { out.len() };
        if !self.is_zero {
            definite(&out[..n_checked], points, self.dimension)?;
        }
        for t in out {
            *t = std::array::from_fn(|i| std::array::from_fn(|j| 0.5 * (t[i][j] + t[j][i])));
        }
        Ok(())
    }

    /// Evaluates λ at points.
    ///
    /// # Errors
    /// The first point at which λ is not finite, or is negative without permission.
    pub fn lambda(&self, out: &mut [f64], points: &Points, tape: &mut TapeScratch) -> Result<(), FemError> {
        self.lambda.eval_scalar(out, points, tape)?;
        if !self.has_any_reaction {
            not_negative("lambda", out, points)?;
        }
        Ok(())
    }
}
