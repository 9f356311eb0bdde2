//! The acts of a cycle on a GPU: in the kernels of products.

mod setup;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::sparse::csr::{Csr, Offsets, cuda_specialisations as products};
use femtile_linalg::{LinalgError, LinearOperator};

use crate::AmgConfig;
use crate::kernels::{AmgKernels, Coarsened, Convert, Parts, Smoothed, Step};
use crate::patch::cuda_specialisations as patches;
use crate::setup::rows::to_unit;

static CYCLE: Program = Program { name: "cycle", source: include_str!("cycle.cu"), headers: &[] };
const THREADS: u32 = 256;
/// Blocks that look for a largest value, at most.
const MANY_BLOCKS: usize = 1_024;

type FirstStep<H> = (Write<H>, Write<H>, Read<H>, Read<H>, H, u64);

fn program<H: Scalar, T: Scalar>() -> Specialisation {
    CYCLE.of::<H>().define("FEMTILE_FROM", T::C_NAME)
}

/// The programs of this crate, for checks that compile all of them.
pub fn specialisations() -> Vec<Specialisation> {
    let hooks = [residual_hook(vec![0; 2]), step_hook(vec![0; 6])];
    let own = [program::<f32, f64>(), program::<f64, f32>(), program::<f32, f32>(), program::<f64, f64>()];
    let of_levels = setup::specialisations().into_iter().chain(patches());
    own.into_iter().chain(of_levels).chain(hooks.iter().flat_map(products)).collect()
}

fn residual_hook(arguments: Vec<u64>) -> CudaHook {
    CudaHook { source: include_str!("residual_hook.cuh"), arguments, is_product: false }
}

fn step_hook(arguments: Vec<u64>) -> CudaHook {
    CudaHook { source: include_str!("step_hook.cuh"), arguments, is_product: false }
}

/// A hook that has a body for GPUs alone.
struct OnGpu(CudaHook);

impl<H: Scalar> Hook<H> for OnGpu {
    fn cuda(&self) -> Option<CudaHook> {
        Some(self.0.clone())
    }
}

/// Where a buffer lies, for structures that kernels take.
pub(crate) fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

/// A copy of numbers of 32 bits.
fn copy(device: &Cuda, from: &Buffer<u32, Cuda>) -> Result<Buffer<u32, Cuda>, LinalgError> {
    let mut to = Buffer::zeros(device, from.len())?;
    let arguments = (to.write(), from.read(), from.len() as u64);
    let kernel = Kernel::<(Write<u32>, Read<u32>, u64)>::new("amg_copy");
    // SAFETY: both have as many entries.
    unsafe { device.launch(&program::<f32, f32>(), &kernel, Launch::over(from.len(), THREADS), arguments) }?;
    Ok(to)
}

/// The power of two that brings the largest magnitude between 1 and 2; none where there is no such.
fn scale<H: Scalar, T: Scalar>(values: &Buffer<T, Cuda>) -> Result<Option<f64>, LinalgError> {
    let device = values.device();
    let mut largest = Buffer::zeros(device, 1)?;
    let arguments = (largest.write(), values.read(), values.len() as u64);
    let kernel = Kernel::<(Write<u64>, Read<T>, u64)>::new("amg_largest");
    let blocks = values.len().div_ceil(THREADS as usize).min(MANY_BLOCKS);
    // SAFETY: the kernel reads as many values as there are.
    unsafe { device.launch(&program::<H, T>(), &kernel, Launch::line(blocks, THREADS), arguments) }?;
    let largest = f64::from_bits(largest.to_host()?[0]);
    Ok(largest.is_normal().then(|| to_unit(largest)))
}

impl<H: Scalar> AmgKernels<H> for Cuda {
    fn amg_scaled<T: Scalar>(&self, a: &Csr<T, Self>) -> Result<Option<(Csr<H, Self>, f64)>, LinalgError> {
        let Offsets::Narrow(offsets) = a.offsets() else { return Ok(None) };
        let Some(scale) = scale::<H, T>(a.values())? else { return Ok(None) };
        let mut values = Buffer::zeros(self, a.n_nonzeros())?;
        Convert::<T, H>::amg_convert(self, &mut values, scale, a.values())?;
        let (offsets, columns) = (copy(self, offsets)?, copy(self, a.columns())?);
        // SAFETY: the pattern is that of a matrix.
        let copied = unsafe { Csr::from_kernels(a.n_cols(), offsets, columns, values) }?;
        Ok(Some((copied, scale)))
    }

    fn amg_coarsen(
        &self,
        a: &Csr<H, Self>,
        weights: Option<&Buffer<u32, Self>>,
        thresholds: [f64; 2],
        config: &AmgConfig,
        known: Option<&Parts<Self>>,
    ) -> Result<Option<Coarsened<H, Self>>, LinalgError> {
        setup::coarsen(a, weights, thresholds, config.least_aggregate, known)
    }

    fn amg_first_step(
        &self,
        x: &mut Buffer<H, Self>,
        direction: &mut Buffer<H, Self>,
        step: Step<H>,
        inverse_diagonal: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        let n = b.len();
        let direction = if step.is_kept { direction.write() } else { Write::none() };
        let arguments = (x.write(), direction, inverse_diagonal.read(), b.read(), step.alpha, n as u64);
        let kernel = Kernel::<FirstStep<H>>::new("amg_first_step");
        // SAFETY: all vectors of a level have n entries.
        Ok(unsafe { self.launch(&program::<H, H>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn amg_step(
        &self,
        a: &dyn LinearOperator<H, Self>,
        step: Step<H>,
        vectors: Smoothed<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        let Smoothed { b, inverse_diagonal, x, next, direction, product } = vectors;
        let arguments = vec![
            address(next),
            if step.is_kept { address(direction) } else { 0 },
            address(b),
            address(inverse_diagonal),
            step.alpha.to_f64().to_bits(),
            step.beta.to_f64().to_bits(),
        ];
        a.apply_with(product, x, &OnGpu(step_hook(arguments)))
    }

    fn amg_residual(
        &self,
        r: &mut Buffer<H, Self>,
        product: &mut Buffer<H, Self>,
        a: &dyn LinearOperator<H, Self>,
        x: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        a.apply_with(product, x, &OnGpu(residual_hook(vec![address(r), address(b)])))
    }
}

impl<T: Scalar, H: Scalar> Convert<T, H> for Cuda {
    fn amg_convert(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let arguments = (y.write(), alpha, x.read(), x.len() as u64);
        let kernel = Kernel::<(Write<H>, f64, Read<T>, u64)>::new("amg_convert");
        // SAFETY: both vectors have as many entries; see `Amg::apply`.
        Ok(unsafe { self.launch(&program::<H, T>(), &kernel, Launch::over(x.len(), THREADS), arguments) }?)
    }

    fn amg_gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        let n = x.len();
        let arguments = (y.write(), alpha, x.read(), order.read(), n as u64);
        let kernel = Kernel::<(Write<H>, f64, Read<T>, Read<u32>, u64)>::new("amg_gather");
        // SAFETY: the order is one of all n entries of both vectors; see `Amg::apply`.
        Ok(unsafe { self.launch(&program::<H, T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }
}
