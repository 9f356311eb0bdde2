//! Batches of tridiagonal systems in arrays of NumPy.

use femtile::Cpu;
use femtile::device::Scalar;
use femtile::device::cpu::{Borrowed, BorrowedMut};
use femtile::device::{Cuda, cuda};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::block::{
    BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig, BlockTridiagonalKernels,
};
use femtile::tridiagonal::{
    Bands, BatchLayout, Ends, Stability, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
};
use numpy::{Element, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::{Raise, exception};
use crate::gpu::{GpuArray, Layout, Streams, Values, gpu, ordered};
use crate::threads::cpu;

/// Three bands, the right side where it is not in `u`, and the solution, as flat arrays.
type Arrays<'a, 'py> = ([Bound<'py, PyAny>; 3], Option<Bound<'py, PyAny>>, &'a Bound<'py, PyAny>);

/// Systems that failed, and the line and the row of the first.
type Failure = Option<(u64, usize, usize)>;

/// Shape `[outer, n, inner]`; whether all systems share their bands; whether they are periodic; whether rows are exchanged.
type Batch = ([usize; 3], bool, bool, bool);

/// A solver for systems along the middle axis.
fn solver<T: Scalar, D: TridiagonalKernels<T>>(
    device: &D,
    (shape, is_shared, is_periodic, pivots): Batch,
) -> Result<Tridiagonal<T, D>, LinalgError> {
    let config = TridiagonalConfig {
        ends: if is_periodic { Ends::Periodic } else { Ends::Open },
        stability: if pivots { Stability::PartialPivoting } else { Stability::Unpivoted },
        ..TridiagonalConfig::default()
    };
    let solver = Tridiagonal::new(device, &BatchLayout::contiguous(&shape)?, 1, config)?;
    if is_shared { solver.with_band_strides(&[0, 1, 0]) } else { Ok(solver) }
}

/// Solves systems along the middle axis of arrays of shape `[outer, n, inner]`; where the first flag is set, the bands have
/// `n` entries for all systems. Returns where it failed.
#[pyfunction]
pub fn solve_tridiagonal<'py>(
    py: Python<'py>,
    bands: [Bound<'py, PyAny>; 3],
    d: Option<Bound<'py, PyAny>>,
    u: &Bound<'py, PyAny>,
    batch: Batch,
    threads: usize,
) -> PyResult<Failure> {
    let cpu = cpu(py, threads)?;
    let arrays = (bands, d, u);
    if u.extract::<PyReadonlyArray1<'_, f64>>().is_ok() {
        lines::<f64>(py, &cpu, arrays, batch)
    } else {
        lines::<f32>(py, &cpu, arrays, batch)
    }
}

/// The flat arrays of one precision.
struct Typed<'py, T: Element> {
    bands: [PyReadonlyArray1<'py, T>; 3],
    d: Option<PyReadonlyArray1<'py, T>>,
    u: PyReadwriteArray1<'py, T>,
}

impl<'py, T: Element> Typed<'py, T> {
    fn new((bands, d, u): Arrays<'_, 'py>) -> PyResult<Self> {
        let wrong = |_| PyTypeError::new_err("all arrays are flat and of one precision, and distinct");
        let read = |array: &Bound<'py, PyAny>| array.extract::<PyReadonlyArray1<'py, T>>().map_err(wrong);
        let [a, b, c] = &bands;
        let bands = [read(a)?, read(b)?, read(c)?];
        Ok(Self { bands, d: d.as_ref().map(read).transpose()?, u: u.extract().map_err(wrong)? })
    }
}

fn lines<T: Scalar + Element>(
    py: Python<'_>,
    cpu: &Cpu,
    arrays: Arrays<'_, '_>,
    (shape, is_shared, is_periodic, pivots): Batch,
) -> PyResult<Failure>
where
    Cpu: TridiagonalKernels<T>,
{
    let mut typed = Typed::<T>::new(arrays)?;
    let [a, b, c] = &typed.bands;
    let bands = [a.as_slice()?, b.as_slice()?, c.as_slice()?];
    let d = typed.d.as_ref().map(|d| d.as_slice()).transpose()?;
    let u = typed.u.as_slice_mut()?;
    let solve = || -> Result<_, LinalgError> {
        let mut solver = solver(cpu, (shape, is_shared, is_periodic, pivots))?;
        let [lower, diagonal, upper] = bands.map(|band| Borrowed::new(cpu, band));
        let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
        let mut u = BorrowedMut::new(cpu, u);
        // SAFETY: a solve overwrites the values of the buffer and leaves it where it is.
        let u = unsafe { u.buffer() };
        match d {
            Some(d) => solver.solve(u, bands, &Borrowed::new(cpu, d)),
            None => solver.solve_in_place(u, bands),
        }
    };
    let outcome = py.detach(|| cpu.install(solve)).map_err(|error| error.raise(py))?;
    Ok(outcome.first.map(|first| (outcome.n_failed, first.line, first.row)))
}

/// Addresses on a GPU: three bands, the right sides where they are not in the solution, the solution where there is an array
/// for it; then whether numbers have 32 bits.
type Addresses = ([u64; 3], Option<u64>, Option<u64>, bool);

/// As [`solve_tridiagonal`], on arrays in the memory of a GPU; returns the array of this layout that was made for the solution,
/// where none was given, and where it failed.
#[pyfunction]
pub fn solve_tridiagonal_on_gpu(
    py: Python<'_>,
    ordinal: usize,
    addresses: Addresses,
    layout: Layout,
    batch: Batch,
    streams: Streams,
) -> PyResult<(Option<GpuArray>, Failure)> {
    let solved = py.detach(|| match addresses.3 {
        true => lines_on_gpu::<f32>(&gpu(ordinal)?, addresses, layout, batch, &streams),
        false => lines_on_gpu::<f64>(&gpu(ordinal)?, addresses, layout, batch, &streams),
    });
    solved.map_err(|error: LinalgError| error.raise(py))
}

fn lines_on_gpu<T: Scalar>(
    gpu: &Cuda,
    (bands, d, u, _): Addresses,
    layout: Layout,
    batch: Batch,
    streams: &Streams,
) -> Result<(Option<GpuArray>, Failure), LinalgError>
where
    Cuda: TridiagonalKernels<T>,
    Values: From<femtile::device::Buffer<T, Cuda>>,
{
    let n: usize = batch.0.iter().product();
    let n_of_band = if batch.1 { batch.0[1] } else { n };
    // SAFETY: the Python sources have checked the arrays and hold them until the stream of their package waits for this work.
    let borrowed = |address, n| unsafe { cuda::Borrowed::<T>::new(gpu, address, n) };
    ordered(gpu, streams, || {
        let mut made = match u {
            Some(_) => None,
            None => Some(GpuArray::buffer::<T>(gpu, &layout)?),
        };
        let mut given = u.map(|u| borrowed(u, n));
        let target = match (&mut given, &mut made) {
            // SAFETY: a solve overwrites the values of the buffer and leaves it where it is.
            (Some(given), _) => unsafe { given.buffer_mut() },
            (None, Some(made)) => made,
            (None, None) => return Err(LinalgError::Setting { field: "out", message: "is missing".into() }),
        };
        let [lower, diagonal, upper] = bands.map(|band| borrowed(band, n_of_band));
        let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
        let mut solver = solver(gpu, batch)?;
        let outcome = match d {
            Some(d) => solver.solve(target, bands, &borrowed(d, n)),
            None => solver.solve_in_place(target, bands),
        }?;
        let failure = outcome.first.map(|first| (outcome.n_failed, first.line, first.row));
        Ok((made.map(|made| GpuArray::new(made, layout)), failure))
    })
}

/// Solves block systems: bands of shape `[systems, rows, block, block]`, `u` of shape `[systems, rows, block]`.
#[pyfunction]
pub fn solve_block_tridiagonal<'py>(
    py: Python<'py>,
    bands: [Bound<'py, PyAny>; 3],
    u: &Bound<'py, PyAny>,
    shape: [usize; 3],
    pivots: bool,
    threads: usize,
) -> PyResult<()> {
    let cpu = cpu(py, threads)?;
    if u.extract::<PyReadonlyArray1<'_, f64>>().is_ok() {
        blocks::<f64>(py, &cpu, (bands, None, u), shape, pivots)
    } else {
        blocks::<f32>(py, &cpu, (bands, None, u), shape, pivots)
    }
}

fn blocks<T: Scalar + Element>(
    py: Python<'_>,
    cpu: &Cpu,
    arrays: Arrays<'_, '_>,
    [n_systems, n_rows, block]: [usize; 3],
    pivots: bool,
) -> PyResult<()>
where
    Cpu: BlockTridiagonalKernels<T>,
{
    let mut typed = Typed::<T>::new(arrays)?;
    let [a, b, c] = &typed.bands;
    let bands = [a.as_slice()?, b.as_slice()?, c.as_slice()?];
    let u = typed.u.as_slice_mut()?;
    let stability = if pivots { Stability::PartialPivoting } else { Stability::Unpivoted };
    let config = BlockTridiagonalConfig { stability, ..BlockTridiagonalConfig::default() };
    let solve = || -> Result<_, LinalgError> {
        let shape = BlockShape { block, n_rows, n_systems, order: BlockOrder::SystemMajor };
        let mut solver = BlockTridiagonal::new(cpu, shape, config)?;
        let [lower, diagonal, upper] = bands.map(|band| Borrowed::new(cpu, band));
        let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
        let mut u = BorrowedMut::new(cpu, u);
        // SAFETY: a solve overwrites the values of the buffer and leaves it where it is.
        solver.solve_in_place(unsafe { u.buffer() }, bands)
    };
    let outcome = py.detach(|| cpu.install(solve)).map_err(|error| error.raise(py))?;
    match outcome.is_solved() {
        true => Ok(()),
        false => Err(exception(py, "SingularError", &outcome.to_string(), Some("b"))),
    }
}
