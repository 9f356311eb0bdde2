//! Geometric multigrid behind an interface without the precision of its levels, compiled in this crate once per device.

use std::sync::Arc;

use femtile_comm::{Comm, RankKernels};
use femtile_device::{Buffer, Cpu, Cuda, Device, Scalar};
use femtile_linalg::precondition::LevelPrecision;
use femtile_linalg::precondition::polynomial::{GlobalSums, PolynomialKernels};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner};

use crate::{
    BoxGrid, BoxKernels, DistributedMultigrid, GeometricMultigrid, Multigrid, MultigridConfig,
    MultigridError, NestedIteration, NestedOperator, PLevel, PMultigrid, PMultigridConfig, Smoother,
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

/// [`NestedIteration::add`] of a nested iteration with levels in any precision.
pub type BoxedNestedIteration<D> =
    Box<dyn Fn(&mut Buffer<f64, D>, &Buffer<f64, D>) -> Result<(), LinalgError> + Send + Sync>;

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

    /// [`NestedIteration`] with levels in a precision.
    ///
    /// # Errors
    /// As [`NestedIteration::new`].
    fn nested_iteration(
        &self,
        finest: (&BoxGrid, &[u32]),
        smoother: Smoother,
        operators: Vec<NestedOperator<Self>>,
        precision: LevelPrecision,
    ) -> Result<BoxedNestedIteration<Self>, MultigridError>;

    /// Returns the number of patches of a smoother on a grid in a precision, as [`BoxKernels::box_patches`] does.
    fn n_patches(&self, grid: &BoxGrid, smoother: Smoother, precision: LevelPrecision) -> Option<usize>;
}

/// A device with p-multigrid in the precision `T`: [`Cpu`] and [`Cuda`].
///
/// [`PMultigrid::new`] is compiled again in each crate that calls it; this is not.
pub trait PMultigridDevice<T: Scalar>: PolynomialKernels<T> {
    /// [`PMultigrid::distributed`]; of one rank, `sums` changes nothing and `first` is 0. Collective.
    ///
    /// # Errors
    /// As [`PMultigrid::distributed`].
    fn p_multigrid(
        &self,
        ranks: (&GlobalSums<'_>, u64),
        levels: Vec<PLevel<T, Self>>,
        lowest: (Box<dyn Preconditioner<T, Self>>, usize),
        config: PMultigridConfig,
    ) -> Result<Box<dyn Preconditioner<f64, Self>>, MultigridError>;
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

fn nested<T: Scalar, D: BoxKernels<T> + BoxKernels<f64> + Convert<f64, f64>>(
    device: &D,
    finest: (&BoxGrid, &[u32]),
    smoother: Smoother,
    operators: Vec<NestedOperator<D>>,
) -> Result<BoxedNestedIteration<D>, MultigridError> {
    let nested = NestedIteration::<T, D>::new(device, finest, smoother, operators)?;
    Ok(Box::new(move |w, r| nested.add(w, r)))
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

            fn nested_iteration(
                &self,
                finest: (&BoxGrid, &[u32]),
                smoother: Smoother,
                operators: Vec<NestedOperator<Self>>,
                precision: LevelPrecision,
            ) -> Result<BoxedNestedIteration<Self>, MultigridError> {
                match precision {
                    LevelPrecision::F32 => nested::<f32, Self>(self, finest, smoother, operators),
                    LevelPrecision::F64 => nested::<f64, Self>(self, finest, smoother, operators),
                }
            }

            fn n_patches(
                &self,
                grid: &BoxGrid,
                smoother: Smoother,
                precision: LevelPrecision,
            ) -> Option<usize> {
                match precision {
                    LevelPrecision::F32 => BoxKernels::<f32>::box_patches(self, grid, smoother),
                    LevelPrecision::F64 => BoxKernels::<f64>::box_patches(self, grid, smoother),
                }
            }
        }
    };
}

/// Implements [`PMultigridDevice`] for a device and a precision.
macro_rules! p_multigrid_device {
    ($device:ty, $t:ty) => {
        impl PMultigridDevice<$t> for $device {
            fn p_multigrid(
                &self,
                (sums, first): (&GlobalSums<'_>, u64),
                levels: Vec<PLevel<$t, Self>>,
                lowest: (Box<dyn Preconditioner<$t, Self>>, usize),
                config: PMultigridConfig,
            ) -> Result<Box<dyn Preconditioner<f64, Self>>, MultigridError> {
                Ok(Box::new(PMultigrid::distributed((self, sums, first), levels, lowest, config)?))
            }
        }
    };
}

multigrid_device!(Cpu);
multigrid_device!(Cuda);
p_multigrid_device!(Cpu, f32);
p_multigrid_device!(Cpu, f64);
p_multigrid_device!(Cuda, f32);
p_multigrid_device!(Cuda, f64);
