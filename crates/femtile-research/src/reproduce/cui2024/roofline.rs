//! Figures 19 and 20: what operations could reach by memory, by shared memory and by arithmetic, and what they do.

use std::process::Command;

use femtile::device::{Buffer, Cuda, Scalar};
use femtile::multigrid::{BoxGrid, CudaBoxOperator, CudaTransfer};

use super::accesses::Work;
use super::step::{DEGREES, by_degree, fused, grid, vectors};
use super::work::{prolongation, residual, restriction, smoothing};
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure};
use crate::published_kernels::Layout;
use crate::reproduce::figure::INTENSITY;
use crate::reproduce::session::{Gpu, no_gpu};
use crate::reproduce::timing::fastest;
use femtile_bench::BenchError;

/// Rates of a GPU at its highest clock.
struct Ceilings {
    /// Operations a second in double and in single precision.
    flop_per_s: [f64; 2],
    /// Bytes of shared memory a second, eq. (4.3).
    shared_bytes_per_s: f64,
}

/// A point: operations for a byte, operations a second, and what the roof allows.
struct Point {
    intensity: f64,
    flop_per_s: f64,
    roof: f64,
}

impl Ceilings {
    /// None for GPUs whose rates per clock or clocks are unknown.
    fn of(gpu: &Gpu) -> Option<Self> {
        let properties = gpu.device.properties();
        let per_clock = match properties.compute_capability {
            (9 | 10, 0) => [128.0, 256.0],
            (8, 0) => [64.0, 128.0],
            (8, _) => [4.0, 256.0],
            _ => return None,
        };
        let clocks = properties.n_multiprocessors as f64 * clock_hz()?;
        // 32 banks of 4 bytes.
        Some(Self { flop_per_s: per_clock.map(|flop| flop * clocks), shared_bytes_per_s: 128.0 * clocks })
    }
}

/// Returns the highest clock of multiprocessors, as the driver's program reports it.
fn clock_hz() -> Option<f64> {
    let asked = ["--query-gpu=clocks.max.sm", "--format=csv,noheader,nounits", "--id=0"];
    let said = Command::new("nvidia-smi").args(asked).output().ok()?;
    Some(1e6 * String::from_utf8(said.stdout).ok()?.trim().parse::<f64>().ok()?)
}

pub(super) fn figure_19(session: &Session) -> Result<Figure, BenchError> {
    let mut table = by_degree();
    if let Some((gpu, ceilings)) = session.gpu.as_ref().and_then(|gpu| Some((gpu, Ceilings::of(gpu)?))) {
        let peak = ceilings.flop_per_s[0];
        let bandwidth = 1e9 * gpu.copy_gb_per_s;
        for operation in Operation::ALL {
            let points: Result<Vec<_>, BenchError> = DEGREES
                .map(|degree| {
                    let (flop, bytes) = operation.of_unknown(degree);
                    let intensity = flop / bytes;
                    let rate = operation.rate(session, gpu, degree)?;
                    Ok(Point { intensity, flop_per_s: flop * rate, roof: peak.min(bandwidth * intensity) })
                })
                .collect();
            table = with(table, operation.name(), &points?);
        }
    }
    let title = "Roofs of memory and arithmetic, f64";
    let said = "Bytes are those of vectors, each once.";
    Ok(of_table(session, "figure-19", title, table, said))
}

pub(super) fn figure_20(session: &Session) -> Result<Figure, BenchError> {
    let mut table = by_degree();
    let mut claims = Vec::new();
    if let Some(ceilings) = session.gpu.as_ref().and_then(Ceilings::of) {
        let double = of_smoothing::<f64>(session, &ceilings, 0)?;
        let single = of_smoothing::<f32>(session, &ceilings, 1)?;
        let most = |points: &[Point], peak: f64| {
            points.iter().map(|point| 100.0 * point.flop_per_s / peak).fold(0.0, f64::max)
        };
        claims.push(Claim {
            what: "the conflict-free kernel, most of the peak of any degree".into(),
            place: "Figure 20",
            theirs: "36 % in both precisions".into(),
            ours: Some(format!(
                "{:.0} % in f64, {:.0} % in f32",
                most(&double, ceilings.flop_per_s[0]),
                most(&single, ceilings.flop_per_s[1])
            )),
        });
        table = with(with(table, "f64", &double), "f32", &single);
    }
    let title = "Roofs of shared memory and arithmetic, the conflict-free kernel";
    let said = "Bytes are those that threads read from shared memory and write there: values that many of them share come at \
                once, so that points may lie above.";
    Ok(Figure { claims, ..of_table(session, "figure-20", title, table, said) })
}

fn of_smoothing<T: Scalar>(
    session: &Session,
    ceilings: &Ceilings,
    precision: usize,
) -> Result<Vec<Point>, BenchError> {
    let points = DEGREES.map(|degree| {
        let work = smoothing(degree);
        let intensity = work.flop / (work.shared_values * size_of::<T>() as f64);
        let rate = fused(Layout::ConflictFree).rate::<T>(session, degree)?.unwrap_or(f64::NAN);
        let roof = ceilings.flop_per_s[precision].min(ceilings.shared_bytes_per_s * intensity);
        let flop_per_s = 1e6 * rate * work.flop / degree.pow(3) as f64;
        Ok(Point { intensity, flop_per_s, roof })
    });
    points.collect()
}

/// Operations of Figure 19.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Smoothing,
    Residual,
    Restriction,
    Prolongation,
}

impl Operation {
    const ALL: [Self; 4] = [Self::Smoothing, Self::Residual, Self::Restriction, Self::Prolongation];

    fn name(self) -> &'static str {
        match self {
            Self::Smoothing => "smoothing, conflict-free",
            Self::Residual => "residual",
            Self::Restriction => "restriction",
            Self::Prolongation => "prolongation",
        }
    }

    /// Operations and bytes for an unknown of the fine grid.
    fn of_unknown(self, degree: usize) -> (f64, f64) {
        let nodes = degree.pow(3) as f64;
        let (flop, values) = match self {
            Self::Smoothing => {
                let accesses = Work::Fused.accesses(degree);
                (smoothing(degree).flop / nodes, (accesses.reads + accesses.writes) / nodes)
            }
            Self::Residual => (residual(degree) / nodes, 3.0),
            Self::Restriction => (restriction(degree) / (8.0 * nodes), 1.125),
            Self::Prolongation => (prolongation(degree) / (8.0 * nodes), 2.125),
        };
        (flop, 8.0 * values)
    }

    /// Unknowns of the fine grid a second.
    fn rate(self, session: &Session, gpu: &Gpu, degree: usize) -> Result<f64, BenchError> {
        let grid = grid(session, degree)?;
        let device = &gpu.device;
        let coarse = grid.coarsened().unwrap_or_else(|| grid.clone());
        let time = |seconds: f64| grid.n_unknowns() as f64 / seconds;
        if let Self::Smoothing = self {
            return Ok(1e6 * fused(Layout::ConflictFree).rate::<f64>(session, degree)?.unwrap_or(f64::NAN));
        }
        let [mut x, b] = vectors::<f64, Cuda>(device, &grid)?;
        Ok(time(self.seconds(session, device, &grid, &coarse, &mut x, &b)?))
    }

    fn seconds(
        self,
        session: &Session,
        device: &Cuda,
        grid: &BoxGrid,
        coarse: &BoxGrid,
        x: &mut Buffer<f64, Cuda>,
        b: &Buffer<f64, Cuda>,
    ) -> Result<f64, BenchError> {
        let repeats = session.settings.repeats;
        let mut low = Buffer::zeros(device, coarse.n_nodes())?;
        Ok(match self {
            Self::Residual => {
                let operator = CudaBoxOperator::<f64>::new(device, grid)?;
                let mut r = Buffer::zeros(device, grid.n_nodes())?;
                fastest(device, repeats, || operator.residual(&mut r, b, x))?
            }
            Self::Restriction => {
                let transfer = CudaTransfer::<f64>::new(device, coarse, grid)?;
                fastest(device, repeats, || transfer.restrict(&mut low, b))?
            }
            _ => {
                let transfer = CudaTransfer::<f64>::new(device, coarse, grid)?;
                fastest(device, repeats, || transfer.prolongate(x, &low))?
            }
        })
    }
}

/// Three columns of points; the picture takes the first as abscissa of the two that follow.
fn with(table: Table, name: &str, points: &[Point]) -> Table {
    let column = |of: fn(&Point) -> f64| points.iter().map(|point| Cell::Number(of(point))).collect();
    table
        .listed(&format!("{name}, {INTENSITY}"), column(|point| point.intensity))
        .drawn(&format!("{name}, reached"), column(|point| 1e-9 * point.flop_per_s))
        .drawn(&format!("{name}, roof"), column(|point| 1e-9 * point.roof))
}

fn of_table(session: &Session, item: &'static str, title: &str, table: Table, said: &str) -> Figure {
    let notes = vec![format!(
        "Operations and bytes counted from the algorithms, multiplications and additions each one; peaks from the highest clock, \
         bandwidth of memory as measured for copies. {said} Cubes of about {} unknowns (--unknowns), the fastest of {}.",
        session.settings.unknowns, session.settings.repeats
    )];
    let absent = no_gpu(session).into_iter().collect();
    Figure {
        notes,
        absent,
        quantity: Quantity::GflopPerS,
        abscissa: INTENSITY,
        ..figure(session, item, title, Vec::new(), table)
    }
}
