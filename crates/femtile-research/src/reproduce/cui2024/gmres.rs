//! The method that the paper times: GMRES in double precision, preconditioned by a V-cycle.

use std::time::Instant;

use femtile::device::{Buffer, Cpu, Cuda, Device, Scalar};
use femtile::linalg::LinearOperator;
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::KrylovConfig;
use femtile::linalg::krylov::gmres::{Gmres, GmresConfig};
use femtile::linalg::vector::VectorKernels;
use femtile::multigrid::{BoxGrid, BoxKernels, CudaBoxOperator, GeometricMultigrid, Multigrid};

use super::PATCHES;
use super::precision::TOLERANCE;
use femtile_bench::BenchError;

const MAX_ITERATIONS: usize = 30;

/// A device with the operator on boxes, and cycles in both precisions.
pub(super) trait GmresDevice: BoxKernels<f64> + BoxKernels<f32> {
    /// The operator on a grid.
    fn operator(&self, grid: &BoxGrid) -> Result<Box<dyn LinearOperator<f64, Self>>, BenchError>;
}

impl GmresDevice for Cpu {
    fn operator(&self, grid: &BoxGrid) -> Result<Box<dyn LinearOperator<f64, Self>>, BenchError> {
        Ok(Box::new(BoxKernels::<f64>::box_operator(self, grid)?))
    }
}

impl GmresDevice for Cuda {
    fn operator(&self, grid: &BoxGrid) -> Result<Box<dyn LinearOperator<f64, Self>>, BenchError> {
        Ok(Box::new(CudaBoxOperator::<f64>::new(self, grid)?))
    }
}

/// Iterations, error and time of a solve from zero.
#[derive(Debug)]
pub(super) struct Outcome<D: Device> {
    pub grid: BoxGrid,
    pub x: Buffer<f64, D>,
    /// None if it does not meet the tolerance.
    pub iterations: Option<usize>,
    /// Of the fastest.
    pub seconds: f64,
}

/// Solves with a cycle in the precision `T` that smooths once before and once after, in the same order, on levels of which the
/// coarsest has two cells a side; the residual is reduced by 10⁹.
///
/// # Source
/// `[cui2024]`, section 4.2.
pub(super) fn solve<T: Scalar, D: GmresDevice + BoxKernels<T>>(
    device: &D,
    (degree, level): (usize, usize),
    load: impl Fn(&BoxGrid) -> Vec<f64>,
    repeats: usize,
) -> Result<Outcome<D>, BenchError> {
    let coarse = BoxGrid::unit(3, degree, 2)?;
    let cycle = Multigrid::<T, D>::new(device, &coarse, level - 1, PATCHES)?;
    let m = GeometricMultigrid::from_multigrid(cycle)?;
    let grid = m.multigrid().grid();
    let a = device.operator(grid)?;
    let b = Buffer::from_vec(device, load(grid))?;
    let cg = KrylovConfig { tolerance: TOLERANCE, max_iterations: MAX_ITERATIONS, ..KrylovConfig::default() };
    let method = Gmres::new(GmresConfig { cg, ..GmresConfig::default() });
    let mut x = Buffer::zeros(device, b.len())?;
    let (mut seconds, mut iterations) = (f64::MAX, None);
    for _ in 0..repeats.max(1) {
        VectorKernels::<f64>::fill(device, &mut x, 0.0)?;
        let begin = Instant::now();
        let outcome = method.solve(&mut x, a.as_ref(), &m, &b, &SingleRank, &mut ())?;
        seconds = seconds.min(begin.elapsed().as_secs_f64());
        iterations = (outcome.stop == Stop::Converged).then_some(outcome.iterations);
    }
    Ok(Outcome { grid: grid.clone(), x, iterations, seconds })
}
