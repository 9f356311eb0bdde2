//! ADI runs behind an interface without device and precision, compiled in this crate once for each.

use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_expression::Expression;

use super::{Adi, AdiConfig, AdiKernels, AdiOutcome, AdiProblem, Operator, StepMonitor};
use crate::TimeError;

/// An ADI run with its values.
pub trait AdiRun {
    /// Returns the operator and its grid.
    fn operator(&self) -> &Operator;

    /// Sets the values at the nodes as [`Adi::initial_values`] does.
    ///
    /// # Errors
    /// As [`Adi::initial_values`].
    fn set_values(&mut self, formula: &Expression) -> Result<(), TimeError>;

    /// Runs the remaining steps as [`Adi::run`] does.
    ///
    /// # Errors
    /// As [`Adi::run`].
    fn run(&mut self, monitor: &mut dyn StepMonitor) -> Result<AdiOutcome, TimeError>;

    /// Returns the values at the nodes.
    ///
    /// # Errors
    /// Errors of the device.
    fn values(&self) -> Result<Vec<f64>, TimeError>;
}

struct Run<T: Scalar, D: AdiKernels<T>> {
    adi: Adi<T, D>,
    u: Buffer<T, D>,
}

impl<T: Scalar, D: AdiKernels<T>> Run<T, D> {
    fn new(device: &D, problem: &AdiProblem, config: AdiConfig) -> Result<Self, TimeError> {
        let adi = Adi::new(device, problem, config)?;
        let u = Buffer::zeros(device, adi.operator().grid().n_nodes())?;
        Ok(Self { adi, u })
    }
}

impl<T: Scalar, D: AdiKernels<T>> AdiRun for Run<T, D> {
    fn operator(&self) -> &Operator {
        self.adi.operator()
    }

    fn set_values(&mut self, formula: &Expression) -> Result<(), TimeError> {
        self.u = self.adi.initial_values(formula)?;
        Ok(())
    }

    fn run(&mut self, monitor: &mut dyn StepMonitor) -> Result<AdiOutcome, TimeError> {
        self.adi.run(&mut self.u, monitor)
    }

    fn values(&self) -> Result<Vec<f64>, TimeError> {
        Ok(self.u.to_host()?.into_iter().map(Scalar::to_f64).collect())
    }
}

/// A device with ADI runs: [`Cpu`] and [`Cuda`].
///
/// [`Adi::new`] is generic and compiled again in each crate that calls it; these methods are not.
pub trait AdiDevice: AdiKernels<f32> + AdiKernels<f64> {
    /// Sets up [`Adi`] in 32 bits; all values are zero.
    ///
    /// # Errors
    /// As [`Adi::new`].
    fn adi_in_f32(&self, problem: &AdiProblem, config: AdiConfig) -> Result<Box<dyn AdiRun>, TimeError>;

    /// Sets up [`Adi`] in 64 bits; all values are zero.
    ///
    /// # Errors
    /// As [`Adi::new`].
    fn adi_in_f64(&self, problem: &AdiProblem, config: AdiConfig) -> Result<Box<dyn AdiRun>, TimeError>;
}

/// Implements [`AdiDevice`] for a device.
macro_rules! adi_device {
    ($device:ty) => {
        impl AdiDevice for $device {
            fn adi_in_f32(
                &self,
                problem: &AdiProblem,
                config: AdiConfig,
            ) -> Result<Box<dyn AdiRun>, TimeError> {
                Ok(Box::new(Run::<f32, Self>::new(self, problem, config)?))
            }

            fn adi_in_f64(
                &self,
                problem: &AdiProblem,
                config: AdiConfig,
            ) -> Result<Box<dyn AdiRun>, TimeError> {
                Ok(Box::new(Run::<f64, Self>::new(self, problem, config)?))
            }
        }
    };
}

adi_device!(Cpu);
adi_device!(Cuda);
