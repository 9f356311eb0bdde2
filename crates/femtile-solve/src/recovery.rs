use femtile_fem::FemError;
use femtile_fem::recovery::{ErrorEstimate, IsInterrupted, RecoveredGradient as Linear};
use femtile_fem::tensor::RecoveredGradient as Tensor;

use crate::Component;

/// The recovered gradient of one component, on simplices or on elements of any degree.
#[derive(Debug)]
pub struct RecoveredGradient<'s>(Kind<'s>);

#[derive(Debug)]
enum Kind<'s> {
    Linear(Box<Linear<'s>>),
    Tensor(Box<Tensor<'s>>),
}

impl<'s> RecoveredGradient<'s> {
    pub(crate) fn new(of: &Component<'s>, stop: IsInterrupted<'_>) -> Result<Self, FemError> {
        let (form, values) = (&of.form, of.values);
        Ok(Self(match of.space {
            Some(space) => Kind::Tensor(Box::new(Tensor::new_interruptible(space, form, values, stop)?)),
            None => Kind::Linear(Box::new(Linear::new_interruptible(form, values, stop)?)),
        }))
    }

    /// Returns the gradient at the degrees of freedom: `[n_dofs × 3]`, zero along z in two dimensions.
    pub fn at_nodes(&self) -> Vec<f64> {
        match &self.0 {
            Kind::Linear(gradient) => gradient.at_nodes(),
            Kind::Tensor(gradient) => gradient.at_nodes(),
        }
    }

    /// Returns the flux density $-\sigma\nabla u$ at the degrees of freedom, in the order of [`Self::at_nodes`].
    ///
    /// # Errors
    /// A σ that is not finite at a node.
    pub fn flux_density(&self) -> Result<Vec<f64>, FemError> {
        match &self.0 {
            Kind::Linear(gradient) => gradient.flux_density(),
            Kind::Tensor(gradient) => gradient.flux_density(),
        }
    }

    /// Returns the estimate of the discretization error in the energy seminorm, with the share of each cell.
    ///
    /// # Errors
    /// A coefficient that is out of its range.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        match &self.0 {
            Kind::Linear(gradient) => gradient.error_estimate(),
            Kind::Tensor(gradient) => gradient.error_estimate(),
        }
    }
}
