use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::hooks::{CudaHook, Hook};
use femtile::linalg::{LinalgError, need_product};

use super::{Ell, EllConfig, EllKernels};
use crate::formats::cuda::BATCH;

static ELL: Program = Program { name: "ell", source: include_str!("ell.cu"), headers: &[BATCH] };
const THREADS: u32 = 256;

type Apply<T> = (Write<T>, Read<u32>, Read<u32>, Read<T>, Read<T>, u64, u32, u32, Structure);

fn program<T: Scalar>(config: EllConfig, hook: &CudaHook<'_>) -> Specialisation {
    let lanes = ELL.of::<T>().define("FEMTILE_LANES", config.threads_per_row);
    lanes.define("FEMTILE_LENGTHS", u8::from(config.lengths)).header("hook.cuh", hook.source())
}

/// The programs of this folder with a hook, for checks that compile all of them.
pub(crate) fn specialisations(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    let threads = [1, 2, 4, 8, 16, 32].into_iter();
    let configs = threads.map(|threads_per_row| EllConfig { threads_per_row, lengths: true });
    let configs = configs.chain([EllConfig::PLAIN]);
    configs.flat_map(|config| [program::<f32>(config, hook), program::<f64>(config, hook)]).collect()
}

impl<T: Scalar> EllKernels<T> for Cuda {
    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let hook = CudaHook::of(hook, [a.n_rows, a.n_cols])?;
        let program = program::<T>(a.config, &hook);
        let rows = (THREADS as usize / a.config.threads_per_row).max(CudaHook::ROWS);
        let launch = Launch::line(a.n_rows.div_ceil(rows), THREADS);
        let arguments = (
            y.write(),
            a.lengths.as_ref().map_or(Read::none(), Buffer::read),
            a.columns.read(),
            a.values.read(),
            x.read(),
            a.n_rows as u64,
            a.pitch as u32,
            a.steps as u32,
            hook.fields(),
        );
        // SAFETY: the matrix was made from a sound one, and the lengths of x and y were checked above; what
        // the hook touches is its maker's promise.
        Ok(unsafe { self.launch(&program, &Kernel::<Apply<T>>::new("ell_apply"), launch, arguments) }?)
    }
}
