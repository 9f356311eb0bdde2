use femtile::device::cuda::{Header, Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda, Element, Scalar};
use femtile::linalg::sparse::Offsets;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, need_product};

use super::carries::OpenSums;
use super::{Coo, Ell, FormatKernels, Merge};

/// Sums over runs of entries, for kernels that take tiles of them.
const SEGMENTED: Header = Header { name: "segmented.cuh", text: include_str!("segmented.cuh") };
/// Threads of a block of such a kernel, which is also the number of carries that it takes, as the header has it.
const SEGMENT_THREADS: u32 = 256;
/// Entries of a tile, as the header has it.
const TILE: usize = 2048;
/// Threads of a block for rows in ELLPACK.
const ELL_THREADS: u32 = 256;

static CARRY: Program = Program { name: "carry", source: include_str!("carry.cu"), headers: &[SEGMENTED] };
static ELL: Program = Program { name: "ell", source: include_str!("ell.cu"), headers: &[] };
static COO: Program = Program { name: "coo", source: include_str!("coo.cu"), headers: &[SEGMENTED] };
static MERGE: Program = Program { name: "merge", source: include_str!("merge.cu"), headers: &[SEGMENTED] };

type CarryAdd<T> = (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<T>, u64);
type EllApply<T> = (Write<T>, Read<u32>, Read<T>, Read<T>, u64, u32, u32);
type CooAdd<T> = (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<u32>, Read<T>, Read<T>, u64);
type MergeApply<T, O> =
    (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<O>, Read<u32>, Read<T>, Read<T>, u64);

fn merge_program<T: Scalar, O: Element>() -> Specialisation {
    MERGE.of::<T>().define("FEMTILE_OFFSET", O::C_NAME)
}

/// Returns the GPU programs of all formats, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    let others =
        [&CARRY, &ELL, &COO].into_iter().flat_map(|program| [program.of::<f32>(), program.of::<f64>()]);
    let merge = [merge_program::<f32, u32>(), merge_program::<f32, u64>()].into_iter();
    others.chain(merge).chain([merge_program::<f64, u32>(), merge_program::<f64, u64>()]).collect()
}

impl<T: Scalar> FormatKernels<T> for Cuda {
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

    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let launch = Launch::over(a.n_rows, ELL_THREADS);
        let (pitch, steps) = (a.pitch as u32, a.steps as u32);
        let arguments =
            (y.write(), a.columns.read(), a.values.read(), x.read(), a.n_rows as u64, pitch, steps);
        let kernel = Kernel::<EllApply<T>>::new("ell_apply");
        // SAFETY: the matrix was made from a sound one, and the lengths of x and y were checked above.
        Ok(unsafe { self.launch(&ELL.of::<T>(), &kernel, launch, arguments) }?)
    }

    fn coo_add(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let n = a.values.len();
        let mut open = a.carries.lock();
        let arguments = (
            y.write(),
            open.rows.write(),
            open.sums.write(),
            a.rows.read(),
            a.columns.read(),
            a.values.read(),
            x.read(),
            n as u64,
        );
        let launch = Launch::line(n.div_ceil(TILE), SEGMENT_THREADS);
        // SAFETY: the matrix was made from a sound one, the lengths of x and y were checked above, and there
        // is room for a carry a tile.
        unsafe { self.launch(&COO.of::<T>(), &Kernel::<CooAdd<T>>::new("coo_add"), launch, arguments) }?;
        add_carries(y, &mut open, n)
    }

    fn merge_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Merge<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need_product([a.matrix.n_rows(), a.matrix.n_cols()], y.len(), x.len())?;
        if a.n_nonzeros() == 0 {
            return self.fill(y, T::ZERO);
        }
        match a.matrix.offsets() {
            Offsets::Narrow(offsets) => merge(y, a, offsets, x),
            Offsets::Wide(offsets) => merge(y, a, offsets, x),
        }
    }
}

fn merge<T: Scalar, O: Element>(
    y: &mut Buffer<T, Cuda>,
    a: &Merge<T, Cuda>,
    offsets: &Buffer<O, Cuda>,
    x: &Buffer<T, Cuda>,
) -> Result<(), LinalgError> {
    let (device, n) = (y.device().clone(), a.n_nonzeros());
    let mut open = a.carries.lock();
    let arguments = (
        y.write(),
        open.rows.write(),
        open.sums.write(),
        a.tile_rows.read(),
        offsets.read(),
        a.matrix.columns().read(),
        a.matrix.values().read(),
        x.read(),
        n as u64,
    );
    let launch = Launch::line(n.div_ceil(TILE), SEGMENT_THREADS);
    let kernel = Kernel::<MergeApply<T, O>>::new("merge_apply");
    // SAFETY: the structure of the matrix was checked when it was made, and the lengths of x and y by the caller;
    // there is room for a carry a tile.
    unsafe { device.launch(&merge_program::<T, O>(), &kernel, launch, arguments) }?;
    add_carries(y, &mut open, n)
}

/// Adds to y what the tiles of `n_entries` entries have left open.
fn add_carries<T: Scalar>(
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
