use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::hooks::{CudaHook, Hook};
use femtile::linalg::{LinalgError, need_product};

use super::{Jds, JdsKernels};
use crate::formats::cuda::BATCH;

static JDS: Program = Program { name: "jds", source: include_str!("jds.cu"), headers: &[BATCH] };
const THREADS: u32 = 256;

type Apply<T> = (Write<T>, Read<u32>, Read<u32>, Read<u32>, Read<u32>, Read<T>, Read<T>, u64, Structure);

fn program<T: Scalar>(hook: &CudaHook<'_>) -> Specialisation {
    JDS.of::<T>().header("hook.cuh", hook.source())
}

/// The programs of this folder with a hook, for checks that compile all of them.
pub(crate) fn specialisations(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    vec![program::<f32>(hook), program::<f64>(hook)]
}

impl<T: Scalar> JdsKernels<T> for Cuda {
    fn jds_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Jds<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let shape = [a.rows.len(), a.n_cols];
        need_product(shape, y.len(), x.len())?;
        let hook = CudaHook::of(hook, shape)?;
        let program = program::<T>(&hook);
        let n = a.rows.len();
        let arguments = (
            y.write(),
            a.rows.read(),
            a.lengths.read(),
            a.starts.read(),
            a.columns.read(),
            a.values.read(),
            x.read(),
            n as u64,
            hook.fields(),
        );
        // SAFETY: the matrix was made from a sound one, and the lengths of x and y were checked above; what
        // the hook touches is its maker's promise.
        Ok(unsafe {
            self.launch(&program, &Kernel::<Apply<T>>::new("jds_apply"), Launch::over(n, THREADS), arguments)
        }?)
    }
}
