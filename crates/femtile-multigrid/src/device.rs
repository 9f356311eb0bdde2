//! Geometric multigrid behind an interface without the precision of its levels, compiled in this crate once per device.

use std::sync::Arc;

use femtile_comm::{Comm, RankKernels};
use femtile_device::{Buffer, Cpu, Cuda, Device, Scalar};
use femtile_linalg::precondition::LevelPrecision;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner};

use crate::{
    BoxGrid, BoxKernels, DistributedMultigrid, GeometricMultigrid, Multigrid, MultigridConfig, MultigridError,
};

/// Geometric multigrid with levels in any precision.
pub trait AnyMultigrid<D: Device>: Preconditioner<f64, D> {
    /// Returns the grids of the levels, the coarsest first.
    fn grids(&self) -> Vec<&BoxGrid>;

    /// As [`GeometricMultigrid::add_start`].
    ///
    /// # Errors
    /// As [`GeometricMultigrid::add_start`].
    fn add_start(&self, w: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError>;
}

impl<T: Scalar, D: BoxKernels<T> + BoxKernels<f64> + Convert<f64, f64>> AnyMultigrid<D>
    for GeometricMultigrid<T, D>
{
    fn grids(&self) -> Vec<&BoxGrid> {
        self.multigrid().grids().collect()
    }

    fn add_start(&self, w: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        GeometricMultigrid::add_start(self, w, r)
    }
}

/// Geometric multigrid over ranks, with the global grids of its levels, the finest first.
pub type BoxedDistributedMultigrid<D> = (Box<dyn Preconditioner<f64, D>>, Vec<BoxGrid>);

/// A device with geometric multigrid: [`Cpu`] and [`Cuda`].
///
/// Generic constructors such as [`Multigrid::new`] are compiled again in each crate that calls them; these are not.
pub trait MultigridDevice: BoxKernels<f32> + BoxKernels<f64> {
    /// [`GeometricMultigrid`] below a finest grid, with a numbering of vectors and levels in a precision.
    ///
    /// # Errors
    /// As [`Multigrid::from_finest`] and [`GeometricMultigrid::with_numbering`].
    fn geometric_multigrid(
        &self,
        finest: &BoxGrid,
        nodes: &[u32],
        config: MultigridConfig,
        precision: LevelPrecision,
    ) -> Result<Arc<dyn AnyMultigrid<Self>>, MultigridError>;

    /// [`DistributedMultigrid::new`] with levels in a precision. Collective.
    ///
    /// # Errors
    /// As [`DistributedMultigrid::new`].
    fn distributed_multigrid(
        &self,
        comm: &Comm,
        of: (&BoxGrid, &[u32]),
        config: MultigridConfig,
        precision: LevelPrecision,
    ) -> Result<BoxedDistributedMultigrid<Self>, MultigridError>;
}

fn geometric<T: Scalar, D: BoxKernels<T> + BoxKernels<f64> + Convert<f64, f64>>(
    device: &D,
    finest: &BoxGrid,
    nodes: &[u32],
    config: MultigridConfig,
) -> Result<Arc<dyn AnyMultigrid<D>>, MultigridError> {
    let levels = Multigrid::<T, D>::from_finest(device, finest, config)?;
    Ok(Arc::new(GeometricMultigrid::from_multigrid(levels)?.with_numbering(nodes)?))
}

fn distributed<T: Scalar, D: BoxKernels<T> + RankKernels<T>>(
    device: &D,
    comm: &Comm,
    of: (&BoxGrid, &[u32]),
    config: MultigridConfig,
) -> Result<BoxedDistributedMultigrid<D>, MultigridError> {
    let cycle = DistributedMultigrid::<T, D>::new(device, comm, of, config)?;
    let grids = cycle.grids().to_vec();
    Ok((Box::new(cycle), grids))
}

/// Implements [`MultigridDevice`] for a device.
macro_rules! multigrid_device {
    ($device:ty) => {
        impl MultigridDevice for $device {
            fn geometric_multigrid(
                &self,
                finest: &BoxGrid,
                nodes: &[u32],
                config: MultigridConfig,
                precision: LevelPrecision,
            ) -> Result<Arc<dyn AnyMultigrid<Self>>, MultigridError> {
                match precision {
                    LevelPrecision::F32 => geometric::<f32, Self>(self, finest, nodes, config),
                    LevelPrecision::F64 => geometric::<f64, Self>(self, finest, nodes, config),
                }
            }

            fn distributed_multigrid(
                &self,
                comm: &Comm,
                of: (&BoxGrid, &[u32]),
                config: MultigridConfig,
                precision: LevelPrecision,
            ) -> Result<BoxedDistributedMultigrid<Self>, MultigridError> {
                match precision {
                    LevelPrecision::F32 => distributed::<f32, Self>(self, comm, of, config),
                    LevelPrecision::F64 => distributed::<f64, Self>(self, comm, of, config),
                }
            }
        }
    };
}

multigrid_device!(Cpu);
multigrid_device!(Cuda);
