//! Kernels over the rows of a product: those of constrained unknowns, and the hook on all of them.

use femtile_device::cuda::{Kernel, Launch, Read, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::CudaHook;

use super::operator::THREADS;
use super::program::{ROWS, sums};

type Keep<T> = (Write<T>, Read<T>, Read<u32>, u64, Structure);
type Post<T> = (Read<T>, Read<T>, u64, Structure);

/// Queues y = x in all components of constrained unknowns, with a hook and its fields for this kernel.
pub(super) fn queue_constrained<T: Scalar>(
    components: usize,
    y: &mut Buffer<T, Cuda>,
    x: &Buffer<T, Cuda>,
    constrained: &Buffer<u32, Cuda>,
    hook: &CudaHook<'_>,
    fields: Structure,
) -> Result<(), LinalgError> {
    let n = constrained.len();
    let arguments = (y.write(), x.read(), constrained.read(), n as u64, fields);
    let kernel = Kernel::<Keep<T>>::new("matrix_free_keep");
    let launch = Launch::over(n * components, THREADS);
    // SAFETY: constrained rows are unknowns of a component.
    Ok(unsafe { x.device().launch(&sums::<T>(components, hook), &kernel, launch, arguments) }?)
}

/// Queues the hook on all rows.
pub(super) fn queue_post<T: Scalar>(
    components: usize,
    y: &Buffer<T, Cuda>,
    x: &Buffer<T, Cuda>,
    hook: &CudaHook<'_>,
) -> Result<(), LinalgError> {
    let n = x.len();
    let arguments = (y.read(), x.read(), n as u64, hook.fields());
    let kernel = Kernel::<Post<T>>::new("matrix_free_post");
    let launch = Launch::line(n.div_ceil(ROWS), THREADS);
    // SAFETY: both vectors have an entry per row; the creator of the hook guarantees its accesses.
    Ok(unsafe { x.device().launch(&sums::<T>(components, hook), &kernel, launch, arguments) }?)
}
