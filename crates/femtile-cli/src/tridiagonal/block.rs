//! `femtile tridiagonal --block`: systems whose entries are blocks.

use std::time::Instant;

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::tridiagonal::block::{
    BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig, BlockTridiagonalKernels,
};

use super::batch::{NAMES, broadcast, index_of, laid_out, refuse_size, tuple};
use super::report::{LISTED, Report};
use super::{ASKED_FOR, Device, Task, write};
use crate::arrays::{Array, strides};
use crate::failure::Failure;

/// A batch in the layout of the solver: system by system, row by row.
struct Blocks<T> {
    /// Axes of the systems, then that of the rows: the shape of the solution but for the rows of a block.
    outer: Vec<usize>,
    /// Rows and columns of a block.
    block: usize,
    bands: [Vec<T>; 3],
    rhs: Vec<T>,
}

impl<T: Scalar> Blocks<T> {
    /// Broadcasts the axes of systems and rows of four arrays.
    fn new(arrays: [Array; 4]) -> Result<Self, Failure> {
        let shapes = arrays.each_ref().map(|array| array.shape.clone());
        let disagree = |why: &str| {
            let shown = NAMES.iter().zip(&shapes).map(|(name, shape)| format!("{name} {}", tuple(shape)));
            let shown: Vec<_> = shown.collect();
            Failure::message(format!(
                "{why}: {}; with --block bands have the shape (…, N, M, M) and the right side (…, N, M)",
                shown.join(", ")
            ))
        };
        let [.., rhs] = &shapes;
        let (&block, rows) = rhs.split_last().ok_or_else(|| disagree("the right side has no axes"))?;
        let mut outers = vec![rows.to_vec()];
        for shape in &shapes[..3] {
            match shape.split_last_chunk::<2>() {
                Some((rows, &[m, n])) if (m, n) == (block, block) => outers.push(rows.to_vec()),
                _ => return Err(disagree("the blocks disagree")),
            }
        }
        if outers.iter().any(Vec::is_empty) {
            return Err(disagree("an axis of rows is missing"));
        }
        let outer = broadcast(&outers).ok_or_else(|| disagree("the shapes disagree"))?;
        let vector = [&outer[..], &[block]].concat();
        let matrix = [&outer[..], &[block, block]].concat();
        refuse_size(&matrix).map_err(Failure::message)?;
        let [lower, diagonal, upper, rhs] = arrays;
        let lay = |band| laid_out(band, &matrix, false);
        let bands = [lay(lower)?, lay(diagonal)?, lay(upper)?];
        Ok(Self { outer, block, bands, rhs: laid_out(rhs, &vector, false)? })
    }

    fn shape(&self) -> BlockShape {
        let (n_rows, systems) = self.outer.split_last().expect("there is an axis of rows");
        let n_systems = systems.iter().product();
        BlockShape { block: self.block, n_rows: *n_rows, n_systems, order: BlockOrder::SystemMajor }
    }

    /// Returns the first non-finite entry of each array, such as `lower[3, 7, 0, 1]`.
    fn non_finite(&self) -> Vec<String> {
        let (n_rows, m) = (self.shape().n_rows, self.block);
        let [lower, diagonal, upper] = &self.bands;
        let arrays = [(lower, Some(0)), (diagonal, None), (upper, n_rows.checked_sub(1)), (&self.rhs, None)];
        let mut found = Vec::new();
        for (k, (values, unread_row)) in arrays.into_iter().enumerate() {
            let inner = if k < 3 { vec![m, m] } else { vec![m] };
            let size: usize = inner.iter().product();
            let is_read = |at: usize| unread_row != Some(at / size.max(1) % n_rows.max(1));
            let bad = values.iter().enumerate().find(|(at, value)| !value.is_finite() && is_read(*at));
            if let Some((at, value)) = bad {
                let shape = [&self.outer[..], &inner].concat();
                let index: Vec<_> =
                    index_of(at, &strides(&shape, false)).iter().map(ToString::to_string).collect();
                found.push(format!("{}[{}] is {value}", NAMES[k], index.join(", ")));
            }
        }
        found
    }
}

/// Solves the systems of four arrays and writes the solution.
pub fn solve<T: Scalar>(task: &Task<'_>, device: Device, arrays: [Array; 4]) -> Result<Report, Failure>
where
    Cpu: BlockTridiagonalKernels<T>,
    Cuda: BlockTridiagonalKernels<T>,
{
    let blocks = Blocks::<T>::new(arrays)?;
    match device {
        Device::Cpu(cpu, reason) => solve_on(task, &cpu, reason, blocks),
        Device::Cuda(cuda) => solve_on(task, &cuda, ASKED_FOR, blocks),
    }
}

fn solve_on<T: Scalar, D: BlockTridiagonalKernels<T>>(
    task: &Task<'_>,
    device: &D,
    device_reason: &'static str,
    blocks: Blocks<T>,
) -> Result<Report, Failure> {
    let Task { options, config, output, begun } = *task;
    let config = BlockTridiagonalConfig { algorithm: config.algorithm, stability: config.stability };
    let shape = blocks.shape();
    let mut solver = BlockTridiagonal::new(device, shape, config)?;
    let warnings = blocks.non_finite();
    let read = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let Blocks { outer, block, bands: [lower, diagonal, upper], rhs } = blocks;
    let bytes = size_of::<T>() * (3 * shape.band_len() + 2 * shape.vector_len());
    let lower = Buffer::from_vec(device, lower)?;
    let diagonal = Buffer::from_vec(device, diagonal)?;
    let upper = Buffer::from_vec(device, upper)?;
    let mut u = Buffer::from_vec(device, rhs)?;
    let upload = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
    let outcome = solver.solve_in_place(&mut u, bands)?;
    let seconds = begun.elapsed().as_secs_f64();

    let begun = Instant::now();
    let u = u.to_host()?;
    let axis = outer.len() - 1;
    let systems = &outer[..axis];
    let failed = flags(&u, &shape, outcome.n_failed);
    let whole = [&outer[..], &[block]].concat();
    write(output, &u, &whole, false, systems, &failed)?;
    let written = begun.elapsed().as_secs_f64();

    let listed = (0..shape.n_systems).filter(|&system| failed[system] == 1).take(LISTED);
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        device: device.description(),
        device_reason,
        precision: T::NAME,
        algorithm: solver.algorithm().name(),
        periodic: false,
        pivoting: options.pivoting,
        block: Some(block),
        axis,
        n_systems: shape.n_systems,
        length: shape.n_rows,
        timings_s: [("read", read), ("upload", upload), ("solve", seconds), ("write", written)].into(),
        gb_per_s: 1e-9 * bytes as f64 / seconds,
        n_failed: outcome.n_failed,
        failed: listed.map(|system| of_system(system, systems)).collect(),
        first_failure: outcome
            .first
            .map(|first| [index_of(first.system, &strides(systems, false)), vec![first.row]].concat()),
        warnings,
        output: output.into(),
        shape: whole,
    })
}

/// 1 for each system that failed; all of it is NaN.
fn flags<T: Scalar>(u: &[T], shape: &BlockShape, n_failed: u64) -> Vec<u8> {
    let first = |system: usize| u.get(system * shape.n_rows * shape.block);
    let is_failed = |system| n_failed > 0 && first(system).is_some_and(|value| value.to_f64().is_nan());
    (0..shape.n_systems).map(|system| u8::from(is_failed(system))).collect()
}

/// A system by its number; none stands for the rows, and for those of a block.
fn of_system(system: usize, systems: &[usize]) -> Vec<Option<usize>> {
    let places = index_of(system, &strides(systems, false));
    places.into_iter().map(Some).chain([None, None]).collect()
}
