use femtile::device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::{CudaHook, Hook};
use femtile::linalg::krylov::cg::product_hook;

use super::carries::OpenSums;
use super::{HookKernels, TileKernels, coo, ell, jds, merge};

/// Sums over runs of entries, for kernels that take tiles of them.
pub(super) const SEGMENTED: Header = Header { name: "segmented.cuh", text: include_str!("segmented.cuh") };
/// A few entries of a row at once, for kernels that take rows.
pub(super) const BATCH: Header = Header { name: "batch.cuh", text: include_str!("batch.cuh") };
/// Threads of a block of such a kernel, which is also the number of carries that it takes, as the header has it.
pub(super) const SEGMENT_THREADS: u32 = 256;
/// Entries of a tile, as the header has it.
const TILE: usize = 2048;

static CARRY: Program = Program { name: "carry", source: include_str!("carry.cu"), headers: &[SEGMENTED] };
static HOOK_ROWS: Program = Program { name: "hook_rows", source: include_str!("hook_rows.cu"), headers: &[] };
/// Threads of a block of the pass of a hook.
const HOOK_THREADS: u32 = 256;

type CarryAdd<T> = (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<T>, u64);
type HookRows<T> = (Read<T>, Read<T>, u64, Structure);

/// Returns the GPU programs of all formats, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    let unhooked = [
        vec![CARRY.of::<f32>(), CARRY.of::<f64>()],
        coo::cuda::specialisations(),
        merge::cuda::specialisations(),
    ];
    let hooks = [CudaHook::none(), product_hook()];
    unhooked.into_iter().flatten().chain(hooks.iter().flat_map(hooked)).collect()
}

/// Returns the programs that include the source of a hook.
fn hooked(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    let passes = [HOOK_ROWS.of::<f32>(), HOOK_ROWS.of::<f64>()];
    let passes = passes.map(|pass| pass.header("hook.cuh", hook.source()));
    [passes.into(), ell::cuda::specialisations(hook), jds::cuda::specialisations(hook)].concat()
}

impl TileKernels for Cuda {
    fn tile_entries(&self) -> usize {
        TILE
    }

    /// One for each tile, one for each block that adds those, and so on down to one block.
    fn tile_carries(&self, n_entries: usize) -> usize {
        let mut level = n_entries.div_ceil(TILE);
        let mut total = level;
        while level > 1 {
            level = level.div_ceil(SEGMENT_THREADS as usize);
            total += level;
        }
        total
    }
}

/// Adds to y what the tiles of `n_entries` entries have left open.
pub(super) fn add_carries<T: Scalar>(
    y: &mut Buffer<T, Cuda>,
    open: &mut OpenSums<T, Cuda>,
    n_entries: usize,
) -> Result<(), LinalgError> {
    let device = y.device().clone();
    let (mut first, mut n) = (0, n_entries.div_ceil(TILE));
    while n > 1 {
        let launch = Launch::over(n, SEGMENT_THREADS);
        let arguments = (
            y.write(),
            Write::from(&mut open.rows, first + n),
            Write::from(&mut open.sums, first + n),
            Read::from(&open.rows, first),
            Read::from(&open.sums, first),
            n as u64,
        );
        let kernel = Kernel::<CarryAdd<T>>::new("carry_add");
        // SAFETY: rows are those of the matrix, which y has an entry for each, and there is room for a carry a block.
        unsafe { device.launch(&CARRY.of::<T>(), &kernel, launch, arguments) }?;
        (first, n) = (first + n, launch.grid[0] as usize);
    }
    Ok(())
}

impl<T: Scalar> HookKernels<T> for Cuda {
    fn hook_rows(
        &self,
        y: &mut Buffer<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
        product: impl FnOnce(&mut Buffer<T, Self>) -> Result<(), LinalgError>,
    ) -> Result<(), LinalgError> {
        let hook = CudaHook::of(hook, [y.len(), x.len()])?;
        product(y)?;
        if hook == CudaHook::none() {
            return Ok(());
        }
        let program = HOOK_ROWS.of::<T>().header("hook.cuh", hook.source());
        let (kernel, n) = (Kernel::<HookRows<T>>::new("hook_rows"), y.len());
        let arguments = (y.read(), x.read(), n as u64, hook.fields());
        // SAFETY: x and y have n entries; what the hook touches is its maker's promise.
        Ok(unsafe { self.launch(&program, &kernel, Launch::over(n, HOOK_THREADS), arguments) }?)
    }
}
