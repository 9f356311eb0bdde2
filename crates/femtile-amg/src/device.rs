//! Multigrid behind an interface without the precision of its levels, compiled in this crate once per device.

use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::{Cpu, Cuda, Device, Scalar};
use femtile_linalg::Preconditioner;
use femtile_linalg::precondition::LevelPrecision;
use femtile_linalg::vector::Convert;
use femtile_sparse::csr::Csr;

use crate::{Amg, AmgConfig, AmgError, AmgKernels, Graph, Hierarchy};

/// Algebraic multigrid for vectors in `T`, with levels in any precision.
pub trait AnyAmg<T: Scalar, D: Device>: Preconditioner<T, D> {
    /// Returns the sizes of the levels.
    fn hierarchy(&self) -> &Hierarchy;

    /// Replaces the values on the same pattern.
    ///
    /// # Errors
    /// As [`Amg::refill`].
    fn refill(&mut self, a: &Csr<f64, D>, near_nullspace: Option<&[f64]>) -> Result<(), AmgError>;
}

impl<T: Scalar, H: Scalar, D: AmgKernels<H> + Convert<T, H> + Convert<H, T>> AnyAmg<T, D> for Amg<H, D> {
    fn hierarchy(&self) -> &Hierarchy {
        Amg::hierarchy(self)
    }

    fn refill(&mut self, a: &Csr<f64, D>, near_nullspace: Option<&[f64]>) -> Result<(), AmgError> {
        Amg::refill(self, a, near_nullspace)
    }
}

/// Algebraic multigrid on a device, for vectors in `T`.
pub type BoxedAmg<T, D> = Box<dyn AnyAmg<T, D>>;

/// A device with algebraic multigrid for vectors in `T`: [`Cpu`] and [`Cuda`].
///
/// Generic constructors such as [`Amg::new`] are compiled again in each crate that calls them; these are not.
pub trait AmgDevice<T: Scalar>: AmgKernels<f32> + AmgKernels<f64> {
    /// [`Amg::new`] with levels in a precision.
    ///
    /// # Errors
    /// As [`Amg::new`].
    fn amg(
        a: &Csr<f64, Self>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        precision: LevelPrecision,
    ) -> Result<BoxedAmg<T, Self>, AmgError>;

    /// [`Amg::with_memory_limit`] with levels in a precision.
    ///
    /// # Errors
    /// As [`Amg::with_memory_limit`].
    fn amg_with_memory_limit(
        a: &mut Csr<f64, Self>,
        graph: Option<&Graph>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        precision: LevelPrecision,
    ) -> Result<BoxedAmg<T, Self>, AmgError>;

    /// [`Amg::on_ranks`] with levels in a precision. Collective.
    ///
    /// # Errors
    /// As [`Amg::on_ranks`].
    fn amg_on_ranks(
        &self,
        a: &OwnedRows<f64, Self>,
        halo: &Arc<Halo>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        precision: LevelPrecision,
    ) -> Result<BoxedAmg<T, Self>, AmgError>;
}

/// Boxes multigrid with levels in a precision.
macro_rules! in_precision {
    ($precision:expr, $h:ident => $made:expr) => {
        Ok(match $precision {
            LevelPrecision::F32 => {
                type $h = f32;
                Box::new($made?)
            }
            LevelPrecision::F64 => {
                type $h = f64;
                Box::new($made?)
            }
        })
    };
}

/// Implements [`AmgDevice`] for a device and a precision of vectors.
macro_rules! amg_device {
    ($device:ty, $t:ty) => {
        impl AmgDevice<$t> for $device {
            fn amg(
                a: &Csr<f64, Self>,
                near_nullspace: Option<&[f64]>,
                config: &AmgConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedAmg<$t, Self>, AmgError> {
                in_precision!(precision, H => Amg::<H, Self>::new(a, near_nullspace, config))
            }

            fn amg_with_memory_limit(
                a: &mut Csr<f64, Self>,
                graph: Option<&Graph>,
                near_nullspace: Option<&[f64]>,
                config: &AmgConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedAmg<$t, Self>, AmgError> {
                in_precision!(precision, H => Amg::<H, Self>::with_memory_limit(a, graph, near_nullspace, config))
            }

            fn amg_on_ranks(
                &self,
                a: &OwnedRows<f64, Self>,
                halo: &Arc<Halo>,
                near_nullspace: Option<&[f64]>,
                config: &AmgConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedAmg<$t, Self>, AmgError> {
                in_precision!(precision, H => Amg::<H, Self>::on_ranks(self, a, halo, near_nullspace, config))
            }
        }
    };
}

amg_device!(Cpu, f32);
amg_device!(Cpu, f64);
amg_device!(Cuda, f32);
amg_device!(Cuda, f64);
