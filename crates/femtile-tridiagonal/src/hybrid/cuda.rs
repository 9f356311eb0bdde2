use femtile_device::Scalar;
use femtile_device::cuda::{
    COPY_HEADER, Cuda, Header, Kernel, Launch, Program, RECIPROCAL_HEADER, Specialisation,
};
use femtile_linalg::LinalgError;

use super::shape::{self, Shape};
use crate::cuda::{Batch, LINES, RuleSource, Solve};
use crate::{BatchProblem, Ends, Lines};

const CHUNK: Header = Header { name: "chunk.cuh", text: include_str!("chunk.cuh") };
const LANES: Header = Header { name: "lanes.cuh", text: include_str!("lanes.cuh") };
const EXCHANGE: Header = Header { name: "exchange.cuh", text: include_str!("exchange.cuh") };
const HEADERS: [Header; 6] = [COPY_HEADER, RECIPROCAL_HEADER, LINES, CHUNK, LANES, EXCHANGE];

static ROWS: Program =
    Program { name: "tridiagonal_hybrid_rows", source: include_str!("rows.cu"), headers: &HEADERS };
static COLUMNS: Program =
    Program { name: "tridiagonal_hybrid_columns", source: include_str!("columns.cu"), headers: &HEADERS };

/// A binary of one of the two programs.
fn specialisation<T: Scalar>(
    program: &'static Program,
    shape: &Shape,
    ends: Ends,
    packs: bool,
    rule: &RuleSource,
) -> Specialisation {
    rule.define(
        program
            .of::<T>()
            .define("FEMTILE_ROWS", shape.rows)
            .define("FEMTILE_CHUNKS", shape.chunks)
            .define("FEMTILE_SYSTEMS", shape.systems)
            .define("FEMTILE_DEPTH", shape.depth)
            .define("FEMTILE_BLOCKS", shape.blocks)
            .define("FEMTILE_PERIODIC", u32::from(ends == Ends::Periodic))
            .define("FEMTILE_PACKS", u32::from(packs)),
    )
}

/// Returns whether lines of this length and stride can be kept in the registers of a block.
pub(crate) fn takes<T: Scalar>(lines: &Lines) -> bool {
    let bytes = size_of::<T>();
    if lines.stride == 1 {
        shape::of_rows(lines.length, bytes, 32).is_some_and(|shape| {
            lines.length <= 1024 || shape::fits_everywhere(shape::shared_bytes_of_rows(&shape, bytes, 4))
        })
    } else {
        shape::of_columns(lines.length, bytes, false).is_some()
    }
}

/// Returns whether lines begin at packs of 16 bytes and end with one.
fn rows_in_packs(lines: &Lines, width: usize, has_arrays: bool) -> bool {
    let is_whole = |x: usize| x.is_multiple_of(width);
    let of_bands =
        !has_arrays || lines.band_stride == 1 && lines.axes.iter().all(|axis| is_whole(axis.band_stride));
    is_whole(lines.length) && lines.axes.iter().all(|axis| is_whole(axis.stride)) && of_bands
}

/// Returns whether neighbouring lines lie in packs of 16 bytes.
fn columns_in_packs(lines: &Lines, width: usize, has_arrays: bool) -> bool {
    let is_whole = |x: usize| x.is_multiple_of(width);
    let [outer @ .., inner] = &lines.axes;
    let of_lines = is_whole(lines.stride) && outer.iter().all(|axis| is_whole(axis.stride));
    let of_bands = is_whole(lines.band_stride) && outer.iter().all(|axis| is_whole(axis.band_stride));
    inner.stride == 1
        && is_whole(inner.count)
        && of_lines
        && (!has_arrays || inner.band_stride == 1 && of_bands)
}

/// Queues the solution of a batch.
pub(crate) fn solve<T: Scalar>(
    device: &Cuda,
    problem: &BatchProblem,
    batch: Batch<'_, T>,
) -> Result<(), LinalgError> {
    let (bytes, lines) = (size_of::<T>(), &problem.lines);
    let width = 16 / bytes;
    let arrays = if batch.rule.is_rule() { 1 } else { 4 };
    let is_rows = lines.stride == 1;
    let shape = if is_rows {
        let in_packs = rows_in_packs(lines, width, arrays == 4);
        shape::of_rows(lines.length, bytes, shape::usual_rows(bytes, in_packs, arrays == 1))
    } else {
        let workspace = device.properties().shared_bytes_per_block();
        shape::of_columns(lines.length, bytes, problem.ends == Ends::Periodic)
            .map(|shape| shape.within(workspace, bytes, arrays))
    };
    let Some(shape) = shape else {
        let message = format!(
            "`hybrid` keeps systems on the chip, and {} rows are too many; choose `thomas`",
            lines.length
        );
        return Err(LinalgError::Setting { field: "algorithm", message });
    };
    let (program, name, packs, shared) = if is_rows {
        let shared = shape::shared_bytes_of_rows(&shape, bytes, arrays);
        (&ROWS, "tridiagonal_hybrid_rows", rows_in_packs(lines, width, arrays == 4), shared)
    } else {
        let shared = shape::shared_bytes_of_columns(&shape, bytes, arrays);
        (&COLUMNS, "tridiagonal_hybrid_columns", columns_in_packs(lines, width, arrays == 4), shared)
    };
    let program = specialisation::<T>(program, &shape, problem.ends, packs, &batch.rule);
    let launch = Launch::line(lines.n_lines().div_ceil(shape.systems), shape.threads() as u32).shared(shared);
    // SAFETY: the solver has checked that the arrays hold what the lines reach; a thread touches rows below the
    // length of lines below their number alone, and shared memory is that of its shape.
    Ok(unsafe { device.launch(&program, &Kernel::<Solve<T>>::new(name), launch, batch.arguments(lines)) }?)
}

/// Programs of all kinds, for checks that compile them.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    let mut all = kinds::<f32>(4);
    all.extend(kinds::<f64>(8));
    all
}

fn kinds<T: Scalar>(bytes: usize) -> Vec<Specialisation> {
    let mut all = Vec::new();
    let kinds = [(Ends::Open, true), (Ends::Open, false), (Ends::Periodic, true)];
    for length in [3, 100, 128, 256, 512, 1024, 2000] {
        for (ends, packs) in kinds {
            let shapes = [
                (&ROWS, shape::of_rows(length, bytes, shape::usual_rows(bytes, packs, false))),
                (&COLUMNS, shape::of_columns(length, bytes, ends == Ends::Periodic)),
            ];
            for (program, shape) in shapes {
                let of_shape = |shape| specialisation::<T>(program, &shape, ends, packs, &RuleSource::none());
                all.extend(shape.map(of_shape));
            }
        }
    }
    all
}
