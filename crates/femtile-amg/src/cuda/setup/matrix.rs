use femtile_device::cuda::{CudaReadback, Kernel, Launch, Program, Read, Specialisation, Structure, Write};
use femtile_device::{Buffer, Cuda, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::largest_of_lanczos;

use super::{LANES, Numbers, Rows, THREADS, by_lanes};
use crate::check::{is_symmetric, smallest};
use crate::kernels::Nodes;
use crate::setup::evolution::{COARSER, DOUBTFUL};
use crate::setup::spectrum::n_steps;

pub(super) static MATRIX: Program =
    Program { name: "amg_matrix", source: include_str!("matrix.cu"), headers: &[LANES] };
/// A finest level with at most this share of doubtful rows is grouped by the size of entries alone.
const FEW_DOUBTFUL: f64 = 0.01;
/// Blocks of a grid whose sums all blocks of the next kernel add up.
const BLOCKS: usize = 1_056;

type Diagonal<H> = (Write<H>, Write<u32>, Write<u32>, Write<u32>, Write<f64>, Read<u32>, Structure, H, H);
type Start<H> = (Write<H>, Write<f64>, Read<H>, u64);
type Product<H> = (Write<H>, Write<f64>, Read<f64>, Read<H>, Read<H>, Structure, u32);
type Subtract<H> = (Write<H>, Write<f64>, Write<f64>, Read<f64>, Read<H>, Read<H>, u64, u32);
type Raise<H> = (Write<H>, Read<H>, Structure, f64);

/// Properties of the matrix of a level.
pub(super) struct Matrix<H: Scalar> {
    pub diagonal: Buffer<H, Cuda>,
    pub lanczos: Lanczos,
    /// 1 for each doubtful row, 0 for others; none if there are few.
    pub is_doubtful: Option<Numbers>,
    /// The most entries of a row.
    pub longest: u32,
}

/// The state of Lanczos' method.
pub(super) struct Lanczos {
    device: Cuda,
    notes: CudaReadback,
}

impl Lanczos {
    /// The largest eigenvalue of $D^{-1} A$, as [`crate::setup::spectrum::Scaling::largest`].
    pub fn end(self) -> Result<f64, LinalgError> {
        let notes: Vec<f64> = self.device.end_read(self.notes)?;
        let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
        for step in 0..notes.len() / 2 {
            let alpha = notes[2 * step];
            diagonal.push(alpha);
            match notes.get(2 * step + 3) {
                Some(&length) if length > 1e-6 * alpha.abs() => beside.push(length),
                _ => break,
            }
        }
        Ok(largest_of_lanczos(&diagonal, &beside))
    }
}

fn program<H: Scalar>(rows: &Rows<'_, H>) -> Specialisation {
    by_lanes::<H>(&MATRIX, rows.lanes)
}

/// Returns the number of blocks that reduce the values of n threads.
fn sums(n: usize) -> Launch {
    Launch::line(n.div_ceil(THREADS as usize).min(BLOCKS), THREADS)
}

/// Checks a matrix and starts Lanczos' method. None if the matrix is invalid or not symmetric. On the finest level, which has no `nodes`, all rows may be doubtful; on coarser levels, rows that
/// come from doubtful ones. Nodes have `block` rows.
pub(super) fn look<H: Scalar>(
    rows: &Rows<'_, H>,
    nodes: Option<&Nodes<Cuda>>,
    block: usize,
) -> Result<Option<Matrix<H>>, LinalgError> {
    let (device, n, program) = (rows.device, rows.n(), program(rows));
    let launch = sums(n * rows.lanes);
    let blocks = launch.grid[0] as usize;
    let mut diagonal = Buffer::zeros(device, n)?;
    let mut bad = Buffer::from_host(device, &[u32::MAX])?;
    let mut counts = Buffer::zeros(device, 2)?;
    let mut partials = Buffer::zeros(device, 2 * blocks)?;
    let mut is_doubtful = Buffer::zeros(device, n)?;
    let from_doubtful = nodes.and_then(|nodes| nodes.from_doubtful.as_ref());
    let share = if nodes.is_none() { DOUBTFUL } else { COARSER * DOUBTFUL };
    let marked = from_doubtful.map_or(Read::none(), Buffer::read);
    let [share, smallest] = [share, smallest::<H>()].map(H::from_f64);
    let of_rows = (diagonal.write(), is_doubtful.write(), marked, rows.structure());
    let sums = (bad.write(), counts.write(), partials.write());
    let arguments = (of_rows.0, of_rows.1, sums.0, sums.1, sums.2, of_rows.2, of_rows.3, share, smallest);
    let kernel = Kernel::<Diagonal<H>>::new("amg_diagonal");
    // SAFETY: the matrix is square, each row has an entry of the diagonal and marks, each block two partial sums, and there
    // are two counts.
    unsafe { device.launch(&program, &kernel, launch, arguments) }?;
    let lanczos = lanczos(rows, &diagonal, n_steps(block))?;
    let (bad, counts) = (bad.to_host()?[0], counts.to_host()?);
    let has_direction = match nodes {
        None => f64::from(counts[1]) > FEW_DOUBTFUL * n as f64,
        Some(_) => from_doubtful.is_some() && counts[1] > 0,
    };
    let partials: Vec<f64> = partials.to_host()?;
    let (difference, squares) = partials.split_at(blocks);
    let is_sound =
        bad == u32::MAX && is_symmetric(difference.iter().sum(), squares.iter().sum::<f64>().sqrt());
    let is_doubtful = has_direction.then_some(is_doubtful);
    Ok(is_sound.then_some(Matrix { diagonal, lanczos, is_doubtful, longest: counts[0] }))
}

fn lanczos<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
    n_steps: usize,
) -> Result<Lanczos, LinalgError> {
    let (device, n, program) = (rows.device, rows.n(), program(rows));
    let launch = sums(n);
    let blocks = launch.grid[0] as usize;
    let mut squares = Buffer::zeros(device, (n_steps + 1) * blocks)?;
    let mut products = Buffer::zeros(device, n_steps * blocks)?;
    let mut notes = Buffer::zeros(device, 2 * n_steps)?;
    let (mut v, mut w) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
    let arguments = (v.write(), squares.write(), diagonal.read(), n as u64);
    let kernel = Kernel::<Start<H>>::new("amg_lanczos_start");
    // SAFETY: vectors have an entry for each row, sums one for each block.
    unsafe { device.launch(&program, &kernel, launch, arguments) }?;
    for step in 0..n_steps {
        let number = step as u32;
        let (square, product) = (squares.read(), products.write());
        let arguments = (w.write(), product, square, v.read(), diagonal.read(), rows.structure(), number);
        let kernel = Kernel::<Product<H>>::new("amg_lanczos_product");
        // SAFETY: as above; sums have one for each block and step.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        let (products, square) = (products.read(), squares.write());
        let arguments =
            (w.write(), square, notes.write(), products, v.read(), diagonal.read(), n as u64, number);
        let kernel = Kernel::<Subtract<H>>::new("amg_lanczos_subtract");
        // SAFETY: as above; there are two notes for each step.
        unsafe { device.launch(&program, &kernel, launch, arguments) }?;
        std::mem::swap(&mut v, &mut w);
    }
    Ok(Lanczos { device: device.clone(), notes: notes.begin_read()? })
}

/// The reciprocals of the diagonal, raised to `bound` times the absolute sums of rows.
pub(super) fn raise<H: Scalar>(
    rows: &Rows<'_, H>,
    diagonal: &Buffer<H, Cuda>,
    bound: f64,
) -> Result<Buffer<H, Cuda>, LinalgError> {
    let mut inverse = Buffer::zeros(rows.device, rows.n())?;
    let arguments = (inverse.write(), diagonal.read(), rows.structure(), bound);
    let kernel = Kernel::<Raise<H>>::new("amg_raise");
    let launch = Launch::over(rows.n() * rows.lanes, THREADS);
    // SAFETY: both vectors have an entry for each row.
    unsafe { rows.device.launch(&program(rows), &kernel, launch, arguments) }?;
    Ok(inverse)
}
