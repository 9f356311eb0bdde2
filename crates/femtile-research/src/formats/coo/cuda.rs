use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda, Scalar};
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, need_product};

use super::{Coo, CooKernels};
use crate::formats::TileKernels;
use crate::formats::cuda::{SEGMENT_THREADS, SEGMENTED, add_carries};

static COO: Program = Program { name: "coo", source: include_str!("coo.cu"), headers: &[SEGMENTED] };

type Apply<T> = (Write<T>, Write<u32>, Write<T>, Read<u32>, Read<u32>, Read<T>, Read<T>, u64);

fn program<T: Scalar>(add: bool) -> Specialisation {
    COO.of::<T>().define("FEMTILE_ADD", add)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    [false, true].into_iter().flat_map(|add| [program::<f32>(add), program::<f64>(add)]).collect()
}

impl<T: Scalar> CooKernels<T> for Cuda {
    fn coo_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
        add: bool,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        if a.has_empty_rows && !add {
            self.fill(y, T::ZERO)?;
        }
        let n = a.n_nonzeros();
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
        let launch = Launch::line(n.div_ceil(self.tile_entries()), SEGMENT_THREADS);
        // SAFETY: the matrix was made from a sound one, the lengths of x and y were checked above, and there
        // is room for a carry a tile.
        unsafe { self.launch(&program::<T>(add), &Kernel::<Apply<T>>::new("coo_apply"), launch, arguments) }?;
        add_carries(y, &mut open, n)
    }
}
