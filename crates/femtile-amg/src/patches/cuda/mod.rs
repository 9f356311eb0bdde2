//! The patch smoother on a GPU: one block of threads per patch.

mod layout;
mod level;
mod partition;

use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Scalar};
use femtile_linalg::{LinalgError, need};
use femtile_sparse::csr::Csr;

use super::matrix::Inside;
use super::{DoublePartition, PatchKernels, PatchMatrix, PatchSmoother};
use crate::Graph;
use crate::cuda::address;
use crate::cuda::setup::by_lanes;
pub(crate) use level::coarsen;
pub(crate) use partition::order;

static PATCHES: Program = Program { name: "amg_patches", source: include_str!("patch.cu"), headers: &[] };

/// Names of the formats in the kernels.
const FORMATS: [&str; 3] = ["FULL_ROW_ELL", "CSR", "SYMMETRIC_COO"];
/// Vectors of a patch in shared memory, one more if rows are summed there.
const VECTORS: usize = 5;
/// Threads of a warp, and the most threads of a block, which has whole warps.
const WARP: usize = 32;
const MOST_THREADS: usize = 256;
/// Threads of a block of the compensation kernel.
const THREADS: u32 = 256;

type FromZero<H> = (Write<H>, Write<H>, Read<H>, Structure, H, u32);
type Relax<H> = (Write<H>, Read<H>, Structure, H, u32);
type Subtract<H> = (Write<H>, Read<u32>, Read<u32>, Read<u32>, Read<H>, Read<H>, u64);

fn program<H: Scalar>(format: &str) -> Specialisation {
    PATCHES.of::<H>().define("FEMTILE_FORMAT", format)
}

/// The programs of this folder, for checks that compile all of them.
pub(crate) fn specialisations() -> impl Iterator<Item = Specialisation> {
    let setup = [(&partition::PATCHES, partition::UNIT), (&layout::LAYOUT, layout::ROW)];
    let setup = setup
        .into_iter()
        .flat_map(|(program, lanes)| [by_lanes::<f32>(program, lanes), by_lanes::<f64>(program, lanes)]);
    FORMATS.into_iter().flat_map(|format| [program::<f32>(format), program::<f64>(format)]).chain(setup)
}

/// The program for a matrix, the shape of its launch, and `struct Inside` of the kernels.
fn launch<H: Scalar>(
    device: &Cuda,
    by: &PatchSmoother<H, Cuda>,
) -> Result<(Specialisation, Launch, Structure), LinalgError> {
    let matrix = &by.matrix;
    let (format, places, rows, columns, values) = match &matrix.inside {
        Inside::FullRowEll { starts, columns, values } => (0, starts, 0, columns, values),
        Inside::Csr { offsets, columns, values } => (1, offsets, 0, columns, values),
        Inside::SymmetricCoo { starts, rows, columns, values } => (2, starts, address(rows), columns, values),
    };
    let n_patches = matrix.n_patches();
    // As many threads as a patch has rows on average: others take further rows of larger ones.
    let average = matrix.diagonal.len() / n_patches.max(1);
    let threads = average.next_multiple_of(WARP).clamp(WARP, MOST_THREADS);
    let vectors = if format == 2 { VECTORS + 1 } else { VECTORS };
    let shape = Launch::line(n_patches, threads as u32).shared(vectors * matrix.most_rows * size_of::<H>());
    let inside = Structure(vec![
        matrix.starts.address_on(device)?,
        address(places),
        rows,
        address(columns),
        address(values),
        address(&matrix.diagonal),
        by.scale.address_on(device)?,
        matrix.most_rows as u64,
    ]);
    Ok((program::<H>(FORMATS[format]), shape, inside))
}

impl<H: Scalar> PatchKernels<H> for Cuda {
    fn patch_relax_from_zero(
        &self,
        x: &mut Buffer<H, Self>,
        r: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        by.matrix.need_vectors(&[("x", &*x), ("r", &*r), ("b", b), ("scale", &by.scale)])?;
        let (program, shape, inside) = launch(self, by)?;
        let arguments = (x.write(), r.write(), b.read(), inside, by.omega, by.inner as u32);
        let kernel = Kernel::<FromZero<H>>::new("patch_relax_from_zero");
        // SAFETY: vectors have an entry for each row, patches hold each row once, at most `most_rows` of them, for which
        // there is shared memory, and local rows and columns are below the rows of their patch.
        Ok(unsafe { self.launch(&program, &kernel, shape, arguments) }?)
    }

    fn patch_relax(
        &self,
        x: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        by.matrix.need_vectors(&[("x", &*x), ("b", b), ("scale", &by.scale)])?;
        let (program, shape, inside) = launch(self, by)?;
        let arguments = (x.write(), b.read(), inside, by.omega, by.inner as u32);
        let kernel = Kernel::<Relax<H>>::new("patch_relax");
        // SAFETY: as for a step from zero.
        Ok(unsafe { self.launch(&program, &kernel, shape, arguments) }?)
    }

    fn patch_subtract_outside(
        &self,
        y: &mut Buffer<H, Self>,
        matrix: &PatchMatrix<H, Self>,
        x: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        matrix.need_vectors(&[("y", &*y), ("x", x)])?;
        let outside = &matrix.outside;
        let n = outside.rows.len();
        let (rows, offsets) = (outside.rows.read(), outside.offsets.read());
        let (columns, values) = (outside.columns.read(), outside.values.read());
        let arguments = (y.write(), rows, offsets, columns, values, x.read(), n as u64);
        let kernel = Kernel::<Subtract<H>>::new("patch_subtract_outside");
        // SAFETY: each row is listed once, offsets have one number more, and columns are below the rows of the matrix.
        Ok(unsafe { self.launch(&program::<H>(FORMATS[0]), &kernel, Launch::over(n, THREADS), arguments) }?)
    }

    fn patch_reordered(
        &self,
        r: &Csr<H, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(Csr<H, Self>, Csr<H, Self>), LinalgError> {
        need("order", r.n_rows(), order.len())?;
        level::reordered(r, order)
    }

    fn patch_partition(
        &self,
        graph: &Graph,
        least_aggregate: u32,
    ) -> Result<Option<DoublePartition>, LinalgError> {
        partition::double_partition(self, graph, least_aggregate)
    }
}
