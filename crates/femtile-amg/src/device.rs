//! Multigrid behind an interface without the precision of its levels, compiled in this crate once per device.

use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::{Cpu, Cuda, Device, Scalar};
use femtile_linalg::Preconditioner;
use femtile_linalg::precondition::LevelPrecision;
use femtile_linalg::vector::Convert;
use femtile_sparse::Format;
use femtile_sparse::csr::Csr;

use crate::{Amg, AmgConfig, AmgError, AmgKernels, DistributedAmg, Graph, LevelShape};

/// Algebraic multigrid for vectors in `T`, with levels in any precision.
pub trait AnyAmg<T: Scalar, D: Device>: Preconditioner<T, D> {
    /// Returns the settings.
    fn config(&self) -> &AmgConfig;

    /// Returns the sizes of the levels, the finest first.
    fn shapes(&self) -> &[LevelShape];

    /// Returns the formats of the matrices of the levels, the finest first.
    fn formats(&self) -> Vec<Format>;

    /// Returns the dimension of the null space of the matrix.
    fn n_null(&self) -> usize;

    /// Returns whether coarsening ended at a level that is too large for a direct solve.
    fn is_stalled(&self) -> bool;

    /// Returns the non-zeros of all levels over those of the first.
    fn operator_complexity(&self) -> f64;

    /// Replaces the values on the same pattern.
    ///
    /// # Errors
    /// As [`Amg::refill`].
    fn refill(&mut self, a: &Csr<f64, D>, near_nullspace: Option<&[f64]>) -> Result<(), AmgError>;
}

impl<T: Scalar, H: Scalar, D: AmgKernels<H> + Convert<T, H> + Convert<H, T>> AnyAmg<T, D> for Amg<H, D> {
    fn config(&self) -> &AmgConfig {
        self.hierarchy().config()
    }

    fn shapes(&self) -> &[LevelShape] {
        self.hierarchy().shapes()
    }

    fn formats(&self) -> Vec<Format> {
        self.hierarchy().formats()
    }

    fn n_null(&self) -> usize {
        self.hierarchy().n_null()
    }

    fn is_stalled(&self) -> bool {
        self.hierarchy().is_stalled()
    }

    fn operator_complexity(&self) -> f64 {
        self.hierarchy().operator_complexity()
    }

    fn refill(&mut self, a: &Csr<f64, D>, near_nullspace: Option<&[f64]>) -> Result<(), AmgError> {
        Amg::refill(self, a, near_nullspace)
    }
}

/// Algebraic multigrid on a device, for vectors in `T`.
pub type BoxedAmg<T, D> = Box<dyn AnyAmg<T, D>>;

/// Algebraic multigrid over ranks for vectors in `T`, with the global sizes of its levels.
pub type BoxedDistributedAmg<T, D> = (Box<dyn Preconditioner<T, D>>, Vec<LevelShape>);

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

    /// [`Amg::with_memory_limit`] with levels in a precision, and with aggregates of the first level from a graph, if there is
    /// one.
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

    /// [`DistributedAmg::new`] with levels in a precision. Collective.
    ///
    /// # Errors
    /// As [`DistributedAmg::new`].
    fn distributed_amg(
        &self,
        a: &OwnedRows<f64, Self>,
        halo: &Arc<Halo>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
        precision: LevelPrecision,
    ) -> Result<BoxedDistributedAmg<T, Self>, AmgError>;
}

/// Sets up multigrid as [`AmgDevice::amg_with_memory_limit`] does, with levels in `H`.
fn with_memory_limit<H: Scalar, D: AmgKernels<H>>(
    a: &mut Csr<f64, D>,
    graph: Option<&Graph>,
    near_nullspace: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<Amg<H, D>, AmgError> {
    match graph {
        Some(graph) => Amg::from_graph_with_memory_limit(a, graph, near_nullspace, config),
        None => Amg::with_memory_limit(a, near_nullspace, config),
    }
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
                Ok(match precision {
                    LevelPrecision::F32 => Box::new(Amg::<f32, Self>::new(a, near_nullspace, config)?),
                    LevelPrecision::F64 => Box::new(Amg::<f64, Self>::new(a, near_nullspace, config)?),
                })
            }

            fn amg_with_memory_limit(
                a: &mut Csr<f64, Self>,
                graph: Option<&Graph>,
                near_nullspace: Option<&[f64]>,
                config: &AmgConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedAmg<$t, Self>, AmgError> {
                Ok(match precision {
                    LevelPrecision::F32 => {
                        Box::new(with_memory_limit::<f32, Self>(a, graph, near_nullspace, config)?)
                    }
                    LevelPrecision::F64 => {
                        Box::new(with_memory_limit::<f64, Self>(a, graph, near_nullspace, config)?)
                    }
                })
            }

            fn distributed_amg(
                &self,
                a: &OwnedRows<f64, Self>,
                halo: &Arc<Halo>,
                near_nullspace: Option<&[f64]>,
                config: &AmgConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedDistributedAmg<$t, Self>, AmgError> {
                Ok(match precision {
                    LevelPrecision::F32 => {
                        let amg = DistributedAmg::<f32, Self>::new(self, a, halo, near_nullspace, config)?;
                        let shapes = amg.shapes().to_vec();
                        (Box::new(amg), shapes)
                    }
                    LevelPrecision::F64 => {
                        let amg = DistributedAmg::<f64, Self>::new(self, a, halo, near_nullspace, config)?;
                        let shapes = amg.shapes().to_vec();
                        (Box::new(amg), shapes)
                    }
                })
            }
        }
    };
}

amg_device!(Cpu, f32);
amg_device!(Cpu, f64);
amg_device!(Cuda, f32);
amg_device!(Cuda, f64);
