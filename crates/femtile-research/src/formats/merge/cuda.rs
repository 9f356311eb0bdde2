use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda, Element, Scalar};
use femtile::linalg::sparse::Offsets;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, need_product};

use super::{Merge, MergeKernels};
use crate::formats::TileKernels;
use crate::formats::cuda::{SEGMENT_THREADS, SEGMENTED, add_carries};

static MERGE: Program = Program { name: "merge", source: include_str!("merge.cu"), headers: &[SEGMENTED] };

type Apply<T, O> = (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<O>, Read<u32>, Read<T>, Read<T>, u64);

fn program<T: Scalar, O: Element>() -> Specialisation {
    MERGE.of::<T>().define("FEMTILE_OFFSET", O::C_NAME)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![program::<f32, u32>(), program::<f32, u64>(), program::<f64, u32>(), program::<f64, u64>()]
}

fn apply<T: Scalar, O: Element>(
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
    let launch = Launch::line(n.div_ceil(device.tile_entries()), SEGMENT_THREADS);
    let kernel = Kernel::<Apply<T, O>>::new("merge_apply");
    // SAFETY: the structure of the matrix was checked when it was made, and the lengths of x and y by the caller;
    // there is room for a carry a tile.
    unsafe { device.launch(&program::<T, O>(), &kernel, launch, arguments) }?;
    add_carries(y, &mut open, n)
}

impl<T: Scalar> MergeKernels<T> for Cuda {
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
            Offsets::Narrow(offsets) => apply(y, a, offsets, x),
            Offsets::Wide(offsets) => apply(y, a, offsets, x),
        }
    }
}
