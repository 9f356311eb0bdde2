//! The acts of polynomial smoothers on a GPU: in the kernels of products.

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda, Scalar};

use super::{PolynomialKernels, Relaxed, Step};
use crate::hooks::{CudaHook, Hook};
use crate::{LinalgError, LinearOperator, error::need};

static POLYNOMIAL: Program =
    Program { name: "polynomial", source: include_str!("polynomial.cu"), headers: &[] };
const THREADS: u32 = 256;

type FromZero<T> = (Write<T>, Write<T>, Read<T>, Read<T>, T, u64);

/// Returns the program of a polynomial smoother, whose products have [`product_hooks`].
pub fn program<T: Scalar>() -> Specialisation {
    POLYNOMIAL.of::<T>()
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f32>(), program::<f64>()]
}

/// Returns the hooks with which products are compiled: that of the residual and that of a step.
pub fn product_hooks() -> [CudaHook<'static>; 2] {
    [residual_hook(vec![0; 2], 0), step_hook(vec![0; 6], 0)]
}

fn residual_hook(arguments: Vec<u64>, n: usize) -> CudaHook<'static> {
    // SAFETY: the arguments are two vectors of n entries, which live as long as the products with this hook.
    unsafe { CudaHook::new(include_str!("residual_hook.cuh"), arguments, Some(n)) }
}

fn step_hook(arguments: Vec<u64>, n: usize) -> CudaHook<'static> {
    // SAFETY: the arguments are four vectors of n entries, which live as long as the products with this hook, and two
    // numbers.
    unsafe { CudaHook::new(include_str!("step_hook.cuh"), arguments, Some(n)) }
}

/// A hook that has a body for GPUs alone.
struct OnGpu<'a>(CudaHook<'a>);

impl<T: Scalar> Hook<T> for OnGpu<'_> {
    fn cuda(&self) -> Option<CudaHook<'_>> {
        Some(self.0.clone())
    }
}

impl<T: Scalar> PolynomialKernels<T> for Cuda {
    fn relax_from_zero(
        &self,
        x: &mut Buffer<T, Self>,
        direction: &mut Buffer<T, Self>,
        step: Step<T>,
        inverse_diagonal: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        super::need_vectors(
            b,
            [("x", &*x), ("direction", &*direction), ("inverse_diagonal", inverse_diagonal)],
        )?;
        let n = b.len();
        let direction = if step.is_kept { direction.write() } else { Write::none() };
        let arguments = (x.write(), direction, inverse_diagonal.read(), b.read(), step.alpha, n as u64);
        let kernel = Kernel::<FromZero<T>>::new("relax_from_zero");
        // SAFETY: all vectors of a system have n entries.
        Ok(unsafe { self.launch(&program::<T>(), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    /// The product is written to the array of the result. The hook, which runs after it in the same thread,
    /// overwrites it, so memory sees writes to one array instead of two.
    fn relax(
        &self,
        a: &dyn LinearOperator<T, Self>,
        step: Step<T>,
        vectors: Relaxed<'_, T, Self>,
    ) -> Result<(), LinalgError> {
        super::need_relaxed(&vectors)?;
        let Relaxed { b, inverse_diagonal, x, next, direction, product: _ } = vectors;
        let arguments = vec![
            next.address_on(self)?,
            if step.is_kept || step.beta != T::ZERO { direction.address_on(self)? } else { 0 },
            b.address_on(self)?,
            inverse_diagonal.address_on(self)?,
            step.alpha.to_f64().to_bits(),
            step.beta.to_f64().to_bits(),
        ];
        a.apply_with(next, x, &OnGpu(step_hook(arguments, b.len())))
    }

    /// The product is written to the array of the residual, as in `relax`.
    fn relax_residual(
        &self,
        r: &mut Buffer<T, Self>,
        _product: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        x: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("b", r.len(), b.len())?;
        let arguments = vec![r.address_on(self)?, b.address_on(self)?];
        a.apply_with(r, x, &OnGpu(residual_hook(arguments, b.len())))
    }
}
