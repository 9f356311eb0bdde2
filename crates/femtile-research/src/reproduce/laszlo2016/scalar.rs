//! Scalar systems on a box of right sides, along any of its axes.

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::{
    Algorithm, Bands, BatchLayout, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
};

use super::{Absent, Row, Session, no_gpu, peers};
use crate::reproduce::timing::{Timed, fastest};
use femtile_bench::BenchError;
use femtile_bench::problems::tridiagonal::{BatchArray, entries, plain_thomas};

/// A box of unknowns, x contiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    /// Entries along x, y and z.
    pub sizes: [usize; 3],
    /// Along which systems lie.
    pub axis: &'static str,
}

impl Grid {
    fn index(&self) -> usize {
        ["z", "y", "x"].iter().position(|axis| *axis == self.axis).unwrap_or(2)
    }

    fn shape(&self) -> [usize; 3] {
        let [x, y, z] = self.sizes;
        [z, y, x]
    }

    pub(super) fn length(&self) -> usize {
        self.shape()[self.index()]
    }

    fn n_entries(&self) -> usize {
        self.sizes.iter().product()
    }

    pub(super) fn n_systems(&self) -> usize {
        self.n_entries() / self.length().max(1)
    }
}

/// Requirements of a figure.
#[derive(Debug)]
pub(super) struct Wanted {
    pub grids: Vec<Grid>,
    pub precisions: &'static [&'static str],
    pub peers: bool,
}

/// Operations of Thomas' algorithm on a row, and values that are moved for it.
const FLOPS: f64 = 9.0;
const VALUES: f64 = 5.0;

/// Measures our solvers on all devices, and the peers.
pub(super) fn measure(session: &Session, wanted: &Wanted) -> Result<(Vec<Row>, Vec<Absent>), BenchError> {
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    for &precision in wanted.precisions {
        match precision {
            "f32" => ours::<f32>(session, &wanted.grids, &mut rows)?,
            _ => ours::<f64>(session, &wanted.grids, &mut rows)?,
        }
        if wanted.peers && session.settings.peers {
            peers::scalar(session, precision, &wanted.grids, &mut rows, &mut absent);
        }
    }
    absent.extend(no_gpu(session));
    absent.dedup();
    Ok((rows, absent))
}

fn ours<T: Scalar>(session: &Session, grids: &[Grid], rows: &mut Vec<Row>) -> Result<(), BenchError>
where
    Cpu: TridiagonalKernels<T>,
    Cuda: TridiagonalKernels<T>,
{
    let context = Context { repeats: session.settings.repeats, bandwidth: session.triad_gb_per_s };
    sweep::<T, _>(&session.cpu, &context, grids, &[Algorithm::Auto], rows)?;
    plain::<T>(&session.cpu, &context, grids, rows)?;
    let Some(gpu) = &session.gpu else { return Ok(()) };
    let context = Context { bandwidth: gpu.copy_gb_per_s, ..context };
    sweep::<T, _>(&gpu.device, &context, grids, &ON_A_GPU, rows)
}

/// Algorithms measured on a GPU; cyclic reduction in all steps is in none of the figures.
const ON_A_GPU: [Algorithm; 6] = [
    Algorithm::ThomasGrid,
    Algorithm::Thomas,
    Algorithm::ThomasShared,
    Algorithm::ThomasShuffle,
    Algorithm::Hybrid,
    Algorithm::Auto,
];

/// Data shared by the rows of one device.
struct Context {
    repeats: usize,
    bandwidth: f64,
}

impl Context {
    fn row<T: Scalar, D: Timed>(&self, device: &D, solver: &str, grid: &Grid, seconds: f64) -> Row {
        let mut row = row(grid, T::NAME, seconds);
        row.solver = solver.into();
        row.kind = D::KIND;
        row.device = device.description();
        row.of_bandwidth = Some(row.gb_per_s / self.bandwidth);
        row
    }
}

/// A row of ours without its solver and device.
pub(super) fn row(grid: &Grid, precision: &'static str, seconds: f64) -> Row {
    let (n, bytes) = (grid.n_entries() as f64, if precision == "f32" { 4.0 } else { 8.0 });
    Row {
        solver: String::new(),
        library: "femtile".into(),
        kind: "cpu",
        device: String::new(),
        precision,
        axis: Some(grid.axis),
        block: 1,
        length: grid.length(),
        n_systems: grid.n_systems(),
        seconds,
        ns: 1e9 * seconds / n,
        gb_per_s: 1e-9 * VALUES * bytes * n / seconds,
        gflop_per_s: 1e-9 * FLOPS * n / seconds,
        of_bandwidth: None,
        mean_square: None,
    }
}

/// Times every algorithm of the device, in place, on every grid; the arrays are allocated once, for the largest.
fn sweep<T: Scalar, D: TridiagonalKernels<T> + Timed>(
    device: &D,
    context: &Context,
    grids: &[Grid],
    algorithms: &[Algorithm],
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let len = grids.iter().map(Grid::n_entries).max().unwrap_or(0);
    let [lower, diagonal, upper] = [BatchArray::Lower, BatchArray::Diagonal, BatchArray::Upper]
        .map(|part| Buffer::from_vec(device, entries::<T>(part, len)));
    let (lower, diagonal, upper) = (lower?, diagonal?, upper?);
    let rhs = entries::<T>(BatchArray::Rhs, len);
    let mut u = Buffer::zeros(device, len)?;
    let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
    for grid in grids {
        let layout = BatchLayout::contiguous(&grid.shape())?;
        for &algorithm in algorithms {
            let config = TridiagonalConfig { algorithm, ..TridiagonalConfig::default() };
            let mut solver = match Tridiagonal::new(device, &layout, grid.index(), config) {
                // Not every device has every algorithm for every length.
                Err(LinalgError::Setting { .. }) => continue,
                other => other?,
            };
            // Solved in place many hundred times over, some of the lines would grow beyond all numbers.
            u.upload(&rhs)?;
            let seconds = fastest(device, context.repeats, || solver.queue_in_place(&mut u, bands))?;
            let outcome = solver.outcome()?;
            if !outcome.is_solved() {
                return Err(BenchError::Setting { field: "systems", message: outcome.to_string() });
            }
            let name =
                if algorithm == Algorithm::Auto && D::KIND == "cpu" { solver.algorithm() } else { algorithm };
            rows.push(context.row::<T, D>(device, name.name(), grid, seconds));
        }
    }
    Ok(())
}

/// The loop that one writes down, along x, systems shared out to threads.
fn plain<T: Scalar>(
    cpu: &Cpu,
    context: &Context,
    grids: &[Grid],
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let grids: Vec<_> = grids.iter().filter(|grid| grid.axis == "x").collect();
    let len = grids.iter().map(|grid| grid.n_entries()).max().unwrap_or(0);
    let [lower, diagonal, upper, mut u] = BatchArray::ALL.map(|part| entries::<T>(part, len));
    for grid in grids {
        let (n, length) = (grid.n_entries(), grid.length());
        let share = grid.n_systems().div_ceil(cpu.threads()) * length;
        let seconds = fastest(cpu, context.repeats, || {
            std::thread::scope(|scope| {
                for (k, part) in u[..n].chunks_mut(share).enumerate() {
                    let rows = k * share..k * share + part.len();
                    let bands = [&lower, &diagonal, &upper].map(|band| &band[rows.clone()]);
                    scope.spawn(move || plain_thomas(part, bands, length, &mut vec![T::ZERO; length]));
                }
            });
            Ok(())
        })?;
        rows.push(context.row::<T, Cpu>(cpu, "plain loop", grid, seconds));
    }
    Ok(())
}
