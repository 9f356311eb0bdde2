use femtile_device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile_device::{Buffer, Cuda};

use super::kernels::{common_length, length};
use super::{BlockKernels, Dense};
use crate::LinalgError;

static EIGEN: Program = Program { name: "eigen", source: include_str!("eigen.cu"), headers: &[] };

const THREADS: u32 = 256;
/// Side of a tile of products, columns of a thread, as in the kernels.
const TILE: usize = 32;
/// Rows of a chunk at least, and chunks at most: enough blocks for a GPU, few enough partial products.
const ROWS: usize = 1024;
const CHUNKS: usize = 512;
/// Partial products of all chunks, at most if one chunk has fewer.
const MOST_PARTIALS: usize = 1 << 24;

type Table = Read<u64>;
type Gram = (Write<f64>, Table, u32, Table, u32, u64, u64);
type Sums = (Write<f64>, Read<f64>, u32, u32);
type Multiply = (Table, Table, u32, Read<f64>, u32, u64);
type Vector = Buffer<f64, Cuda>;

/// Returns the programs of this folder.
pub(crate) fn programs() -> Vec<Specialisation> {
    vec![EIGEN.of::<f64>().define("FEMTILE_THREADS", THREADS)]
}

/// The addresses of vectors on the device.
fn table<'a>(
    device: &Cuda,
    vectors: impl IntoIterator<Item = &'a Vector>,
) -> Result<Buffer<u64, Cuda>, LinalgError> {
    let addresses =
        vectors.into_iter().map(|vector| vector.address_on(device)).collect::<Result<Vec<_>, _>>()?;
    Ok(Buffer::from_vec(device, addresses)?)
}

impl BlockKernels for Cuda {
    fn gram(&self, x: &[&Vector], y: &[&Vector]) -> Result<Dense, LinalgError> {
        let n = common_length(x, y)?;
        let n_sums = x.len() * y.len();
        if n_sums == 0 || n == 0 {
            return Ok(Dense::of_values(y.len(), vec![0.0; n_sums]));
        }
        let rows = ROWS.max(n.div_ceil(CHUNKS.min(MOST_PARTIALS / n_sums).max(1)).next_multiple_of(TILE));
        let n_chunks = n.div_ceil(rows);
        let mut partials = Buffer::<f64, Cuda>::zeros(self, n_chunks * n_sums)?;
        let mut sums = Buffer::<f64, Cuda>::zeros(self, n_sums)?;
        let (of_x, of_y) = (table(self, x.iter().copied())?, table(self, y.iter().copied())?);
        let (n_x, n_y) = (x.len() as u32, y.len() as u32);
        let mut launch = Launch::line(n_chunks, THREADS);
        launch.grid[1..].copy_from_slice(&[x, y].map(|v| v.len().div_ceil(TILE) as u32));
        let program = &programs()[0];
        let arguments = (partials.write(), of_x.read(), n_x, of_y.read(), n_y, rows as u64, n as u64);
        // SAFETY: the tables have as many vectors of n entries as are passed, and each chunk has room for its products.
        unsafe { self.launch(program, &Kernel::<Gram>::new("eigen_gram"), launch, arguments) }?;
        let arguments = (sums.write(), partials.read(), n_sums as u32, n_chunks as u32);
        let launch = Launch::over(n_sums, THREADS);
        // SAFETY: there are as many sums as products of a chunk.
        unsafe { self.launch(program, &Kernel::<Sums>::new("eigen_sums"), launch, arguments) }?;
        Ok(Dense::of_values(y.len(), sums.to_host()?))
    }

    fn multiply(&self, x: &[&Vector], c: &Dense) -> Result<Vec<Vector>, LinalgError> {
        let n = length(x, c)?;
        let zeros = |_| Buffer::zeros(self, n).map_err(LinalgError::from);
        let y = (0..c.n_columns()).map(zeros).collect::<Result<Vec<Vector>, _>>()?;
        if y.is_empty() || n == 0 {
            return Ok(y);
        }
        let (of_x, of_y) = (table(self, x.iter().copied())?, table(self, &y)?);
        let factors = Buffer::from_host(self, c.values())?;
        let mut launch = Launch::over(n, THREADS);
        launch.grid[1] = y.len().div_ceil(TILE) as u32;
        let arguments = (of_y.read(), of_x.read(), x.len() as u32, factors.read(), y.len() as u32, n as u64);
        // SAFETY: the tables have as many vectors of n entries as C has rows and columns; those of Y are held by `y` alone.
        unsafe {
            self.launch(&programs()[0], &Kernel::<Multiply>::new("eigen_multiply"), launch, arguments)
        }?;
        Ok(y)
    }
}
