//! The acts of a cycle on a GPU: in the kernels of products.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Element, Scalar};
use femtile_linalg::hooks::{CudaHook, Hook};
use femtile_linalg::sparse::csr::cuda_specialisations as products;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::kernels::{AmgKernels, Convert, Smoothed, Step};
use crate::patch::cuda_specialisations as patches;

static CYCLE: Program = Program { name: "cycle", source: include_str!("cycle.cu"), headers: &[] };
const THREADS: u32 = 256;

type FirstStep<H> = (Write<H>, Write<H>, Read<H>, Read<H>, H, u64);

fn program<H: Scalar, T: Scalar>() -> Specialisation {
    CYCLE.of::<H>().define("FEMTILE_FROM", T::C_NAME)
}

/// The programs of this crate, for checks that compile all of them.
pub fn specialisations() -> Vec<Specialisation> {
    let hooks = [residual_hook(vec![0; 2]), step_hook(vec![0; 6])];
    let own = [program::<f32, f64>(), program::<f64, f32>(), program::<f32, f32>(), program::<f64, f64>()];
    own.into_iter().chain(patches()).chain(hooks.iter().flat_map(products)).collect()
}

fn residual_hook(arguments: Vec<u64>) -> CudaHook {
    CudaHook { source: include_str!("residual_hook.cuh"), arguments }
}

fn step_hook(arguments: Vec<u64>) -> CudaHook {
    CudaHook { source: include_str!("step_hook.cuh"), arguments }
}

/// A hook that has a body for GPUs alone.
struct OnGpu(CudaHook);

impl<H: Scalar> Hook<H> for OnGpu {
    fn cuda(&self) -> Option<CudaHook> {
        Some(self.0.clone())
    }
}

fn address<E: Element>(buffer: &Buffer<E, Cuda>) -> u64 {
    buffer.memory().address()
}

impl<H: Scalar> AmgKernels<H> for Cuda {
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
