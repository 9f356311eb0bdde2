//! Block tridiagonal systems: one measurement for figures 18 to 21, and block PCR compared with Thomas.

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::Algorithm;
use femtile::tridiagonal::block::{
    BlockBands, BlockOrder, BlockShape, BlockTridiagonal, BlockTridiagonalConfig, BlockTridiagonalKernels,
};

use super::{Absent, Figure, KEY, Quantity, Row, Session, claims, no_gpu, peers};
use crate::reproduce::timing::{Timed, fastest};
use femtile_bench::BenchError;
use femtile_bench::problems::tridiagonal::{BatchArray, block_entries};

/// Tables III and IV: rows of a system, and systems, by rows of a block.
fn sizes(session: &Session, block: usize) -> Size {
    let (length, n_systems) = if block <= 6 { (128, 65_536) } else { (96, 32_768) };
    let n_systems = n_systems.min(session.settings.systems);
    if session.settings.small {
        Size { block, length: 5, n_systems: 32 }
    } else {
        Size { block, length, n_systems }
    }
}

/// A batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub block: usize,
    pub length: usize,
    pub n_systems: usize,
}

impl Size {
    pub(super) fn n_block_rows(self) -> usize {
        self.length * self.n_systems
    }

    /// A row of ours without its solver and device.
    pub(super) fn row(self, precision: &'static str, seconds: f64) -> Row {
        let (m, n) = (self.block as f64, self.n_block_rows() as f64);
        let bytes = if precision == "f32" { 4.0 } else { 8.0 };
        Row {
            solver: String::new(),
            library: "femtile".into(),
            kind: "cpu",
            device: String::new(),
            precision,
            axis: None,
            block: self.block,
            length: self.length,
            n_systems: self.n_systems,
            seconds,
            ns: 1e9 * seconds / n,
            gb_per_s: 1e-9 * bytes * (3.0 * m * m + 2.0 * m) * n / seconds,
            gflop_per_s: 1e-9 * (14.0 / 3.0 * m.powi(3) + 6.0 * m * m) * n / seconds,
            of_bandwidth: None,
            mean_square: None,
        }
    }
}

const THOMAS: [Algorithm; 3] = [Algorithm::Thomas, Algorithm::ThomasShared, Algorithm::ThomasShuffle];

/// Returns the measurements of figures 18 to 21, made once.
fn all(session: &Session) -> Result<(Vec<Row>, Vec<Absent>), BenchError> {
    if let Some(measured) = session.blocks.get() {
        return Ok(measured.clone());
    }
    let sizes: Vec<Size> = (2..=8).map(|block| sizes(session, block)).collect();
    let (mut rows, mut absent) = (Vec::new(), Vec::new());
    for &size in &sizes {
        ours::<f32>(session, size, &THOMAS, &mut rows)?;
        ours::<f64>(session, size, &THOMAS, &mut rows)?;
    }
    if session.settings.peers {
        for precision in ["f32", "f64"] {
            peers::blocks(session, precision, &sizes, &mut rows, &mut absent);
        }
    }
    absent.extend(no_gpu(session));
    absent.dedup();
    Ok(session.blocks.get_or_init(|| (rows, absent)).clone())
}

fn ours<T: Scalar>(
    session: &Session,
    size: Size,
    algorithms: &[Algorithm],
    rows: &mut Vec<Row>,
) -> Result<(), BenchError>
where
    Cpu: BlockTridiagonalKernels<T>,
    Cuda: BlockTridiagonalKernels<T>,
{
    let repeats = session.settings.repeats;
    measure::<T, _>(&session.cpu, session.triad_gb_per_s, repeats, size, algorithms, rows)?;
    if let Some(gpu) = &session.gpu {
        measure::<T, _>(&gpu.device, gpu.copy_gb_per_s, repeats, size, algorithms, rows)?;
    }
    Ok(())
}

/// Every algorithm that the device has for blocks, in place and in both orders; entries are random, so that the same
/// arrays serve for both.
fn measure<T: Scalar, D: BlockTridiagonalKernels<T> + Timed>(
    device: &D,
    bandwidth: f64,
    repeats: usize,
    size: Size,
    algorithms: &[Algorithm],
    rows: &mut Vec<Row>,
) -> Result<(), BenchError> {
    let [lower, diagonal, upper, rhs] = BatchArray::ALL
        .map(|part| Buffer::from_vec(device, block_entries::<T>(part, size.block, size.n_block_rows())));
    let (lower, diagonal, upper, mut u) = (lower?, diagonal?, upper?, rhs?);
    let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
    let both = BlockOrder::ALL.into_iter().flat_map(|order| algorithms.iter().map(move |&a| (order, a)));
    for (order, algorithm) in both {
        let shape = BlockShape { block: size.block, n_rows: size.length, n_systems: size.n_systems, order };
        let config = BlockTridiagonalConfig { algorithm, ..BlockTridiagonalConfig::default() };
        let mut solver = match BlockTridiagonal::new(device, shape, config) {
            // Not every device has every algorithm.
            Err(LinalgError::Setting { .. }) => continue,
            other => other?,
        };
        let seconds = fastest(device, repeats, || solver.queue_in_place(&mut u, bands))?;
        let outcome = solver.outcome()?;
        if !outcome.is_solved() {
            return Err(BenchError::Setting { field: "systems", message: outcome.to_string() });
        }
        let mut row = size.row(T::NAME, seconds);
        row.solver = format!("{algorithm} {order}");
        row.kind = D::KIND;
        row.device = device.description();
        row.of_bandwidth = Some(row.gb_per_s / bandwidth);
        rows.push(row);
    }
    Ok(())
}

fn figure(
    session: &Session,
    item: &'static str,
    (title, quantity): (&str, Quantity),
) -> Result<Figure, BenchError> {
    let (rows, absent) = all(session)?;
    let claims = if quantity == Quantity::Speedup { claims::of_figure_21(&rows) } else { Vec::new() };
    let (title, setting) = (title.into(), session.machine());
    Ok(Figure {
        paper: KEY,
        item,
        title,
        quantity,
        abscissa: "block",
        setting,
        rows: rows.into(),
        table: None,
        notes: Vec::new(),
        claims,
        absent,
    })
}

pub(super) fn figure_18(session: &Session) -> Result<Figure, BenchError> {
    figure(
        session,
        "figure-18",
        ("Bandwidth of block solves: bands and right side read, solution written", Quantity::GbPerS),
    )
}

pub(super) fn figure_19(session: &Session) -> Result<Figure, BenchError> {
    figure(
        session,
        "figure-19",
        ("Arithmetic of block solves: 14/3 M³ + 6 M² for a row of blocks", Quantity::GflopPerS),
    )
}

pub(super) fn figure_20(session: &Session) -> Result<Figure, BenchError> {
    figure(session, "figure-20", ("Time of block solves for a row of blocks", Quantity::Nanoseconds))
}

pub(super) fn figure_21(session: &Session) -> Result<Figure, BenchError> {
    figure(session, "figure-21", ("Block solves against MKL's banded solver", Quantity::Speedup))
}

/// Blocks of 4, systems of 128 rows, single precision, 512 systems and more.
pub(super) fn block_pcr(session: &Session) -> Result<Figure, BenchError> {
    let mut rows = Vec::new();
    for n_systems in [512, 4096, 32_768] {
        let size = if session.settings.small { (5, n_systems / 64) } else { (128, n_systems) };
        let size = Size { block: 4, length: size.0, n_systems: size.1 };
        ours::<f32>(session, size, &[&THOMAS[..], &[Algorithm::Pcr]].concat(), &mut rows)?;
    }
    Ok(Figure {
        paper: KEY,
        item: "block-pcr",
        title: "Block Thomas beside block PCR: time for a row of blocks of 4, systems of 128 rows".into(),
        quantity: Quantity::Nanoseconds,
        abscissa: "systems",
        setting: session.machine(),
        claims: claims::of_block_pcr(&rows),
        rows: rows.into(),
        absent: no_gpu(session).into_iter().collect(),
        table: None,
        notes: Vec::new(),
    })
}

/// The best of ours on a kind of device at the size of `row`.
pub(super) fn best<'a>(rows: &'a [Row], kind: &str, row: &Row, wanted: &str) -> Option<&'a Row> {
    let same = rows.iter().filter(|other| {
        other.library == "femtile"
            && other.kind == kind
            && other.solver.starts_with(wanted)
            && other.is_same_problem(row)
            && other.n_systems == row.n_systems
    });
    same.min_by(|a, b| a.ns.total_cmp(&b.ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_counts_bands_right_side_and_solution_once() {
        let size = Size { block: 4, length: 10, n_systems: 3 };
        let row = size.row("f64", 30e-9);
        assert!((row.ns - 1.0).abs() < 1e-12);
        assert!((row.gb_per_s - 8.0 * 56.0).abs() < 1e-9);
        assert_eq!(claims::of_block_pcr(&[row])[0].ours, None);
    }
}
