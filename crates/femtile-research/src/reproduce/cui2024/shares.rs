//! Figures 10, 11, 12 and 16: shares of the time of an iteration, each part timed separately.

use femtile::device::{Buffer, Cuda};
use femtile::linalg::LinalgError;
use femtile::linalg::vector::Convert;
use femtile::multigrid::{BoxGrid, BoxKernels, CudaBoxOperator, CudaTransfer, PatchKernel};

use super::step::{DEGREES, Step, fused, vectors};
use super::{Cell, Figure, Quantity, Session, Table, figure};
use crate::published_kernels::Layout;
use crate::reproduce::session::{Gpu, no_gpu};
use crate::reproduce::timing::fastest;
use femtile_bench::BenchError;

/// Levels of which each has a column; those below go together.
const LEVELS: usize = 3;
/// The degrees of Figure 16.
const FEW_DEGREES: [usize; 3] = [2, 3, 6];

/// Seconds of the parts of a cycle on a level.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    smooth: f64,
    residual: f64,
    transfer: f64,
}

/// Seconds of an iteration: levels of a cycle in single precision from the finest on, and what is in double precision.
#[derive(Debug, Clone, Default)]
struct Iteration {
    levels: Vec<Level>,
    outer: f64,
}

impl Level {
    fn sum(&self) -> f64 {
        self.smooth + self.residual + self.transfer
    }
}

impl Iteration {
    fn below(&self, first: usize) -> f64 {
        self.levels.iter().skip(first).map(Level::sum).sum()
    }

    fn sum(&self) -> f64 {
        self.below(0) + self.outer
    }

    /// The parts of the paper's plots.
    fn parts(&self) -> [f64; 5] {
        let finest = self.levels[0];
        [self.below(1), finest.residual, finest.transfer, finest.smooth, self.outer]
    }
}

const PARTS: [&str; 5] = [
    "levels below the finest",
    "residual",
    "restriction and prolongation",
    "two steps of the smoother",
    "residual and vectors in f64",
];

pub(super) fn figure_10(session: &Session) -> Result<Figure, BenchError> {
    let (rows, found) = of_degrees(session)?;
    let table = parts(rows, &found, |iteration, part| 1e3 * iteration.parts()[part]);
    let title = "Parts of an iteration with the basic kernel";
    Ok(of_table(session, "figure-10", title, Quantity::Milliseconds, table))
}

pub(super) fn figure_11(session: &Session) -> Result<Figure, BenchError> {
    let (rows, found) = of_degrees(session)?;
    let title = "Shares of the parts of an iteration with the basic kernel";
    Ok(of_table(session, "figure-11", title, Quantity::Percent, parts(rows, &found, share)))
}

pub(super) fn figure_12(session: &Session) -> Result<Figure, BenchError> {
    let (rows, found) = of_degrees(session)?;
    let mut table = Table::new(rows);
    let share = |of: &dyn Fn(&Iteration) -> f64| -> Vec<Cell> {
        found.iter().map(|it| Cell::Number(100.0 * of(it) / it.below(0))).collect()
    };
    for level in 0..LEVELS {
        let of_level = |it: &Iteration| it.below(level) - it.below(level + 1);
        let name = if level == 0 { "finest".to_string() } else { format!("finest − {level}") };
        table = table.drawn(&name, share(&of_level));
    }
    table = table.drawn("below", share(&|it| it.below(LEVELS)));
    let title = "Shares of levels in a cycle with the basic kernel";
    Ok(of_table(session, "figure-12", title, Quantity::Percent, table))
}

pub(super) fn figure_16(session: &Session) -> Result<Figure, BenchError> {
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    if let Some(gpu) = &session.gpu {
        for degree in FEW_DEGREES {
            for layout in [Some(Layout::Basic), Some(Layout::Boundary), None] {
                let step =
                    |grid: &BoxGrid| layout.map_or(Step::Shipped(PatchKernel::fastest::<f32>(grid)), fused);
                rows.push(match layout {
                    Some(layout) => format!("Q{degree}, {}", fused(layout).name()),
                    None => format!("Q{degree}, as shipped"),
                });
                found.push(iteration(session, gpu, degree, step)?);
            }
        }
    }
    let title = "Shares of the parts of an iteration by kernel of the smoother";
    Ok(of_table(session, "figure-16", title, Quantity::Percent, parts(rows, &found, share)))
}

/// Hundredths of an iteration.
fn share(iteration: &Iteration, part: usize) -> f64 {
    100.0 * iteration.parts()[part] / iteration.sum()
}

/// All degrees with the basic kernel; none without a GPU.
fn of_degrees(session: &Session) -> Result<(Vec<String>, Vec<Iteration>), BenchError> {
    let Some(gpu) = &session.gpu else { return Ok((Vec::new(), Vec::new())) };
    let of_degree = |degree| iteration(session, gpu, degree, |_| fused(Layout::Basic));
    let found = DEGREES.map(of_degree).collect::<Result<_, _>>()?;
    Ok((DEGREES.map(|degree| format!("Q{degree}")).collect(), found))
}

fn parts(rows: Vec<String>, found: &[Iteration], of: impl Fn(&Iteration, usize) -> f64) -> Table {
    let column = |part| found.iter().map(|iteration| Cell::Number(of(iteration, part))).collect();
    let names = PARTS.into_iter().enumerate();
    names.fold(Table::new(rows), |table, (part, name)| table.drawn(name, column(part)))
}

/// Runs on grids halved down to two cells a side, up to about the requested number of unknowns.
fn iteration(
    session: &Session,
    gpu: &Gpu,
    degree: usize,
    step: impl Fn(&BoxGrid) -> Step,
) -> Result<Iteration, BenchError> {
    let halvings = ((session.settings.unknowns as f64).cbrt() / (2 * degree) as f64).log2().round().max(1.0);
    let mut grids = vec![BoxGrid::unit(3, degree, 2)?];
    for _ in 0..halvings as usize {
        grids.extend(grids.last().map(BoxGrid::refined));
    }
    grids.reverse();
    let device = &gpu.device;
    let repeats = session.settings.repeats;
    let mut levels = Vec::new();
    for (grid, coarse) in grids.iter().zip(&grids[1..]) {
        let smooth = step(grid).seconds::<f32>(session, grid, None)?.unwrap_or(f64::NAN);
        let [mut x, b] = vectors::<f32, Cuda>(device, grid)?;
        let operator = CudaBoxOperator::<f32>::new(device, grid)?;
        let mut r = Buffer::zeros(device, grid.n_nodes())?;
        let residual = fastest(device, repeats, || operator.residual(&mut r, &b, &x))?;
        let transfer = CudaTransfer::<f32>::new(device, coarse, grid)?;
        let mut low = Buffer::zeros(device, coarse.n_nodes())?;
        let transfer = fastest(device, repeats, || {
            transfer.restrict(&mut low, &r)?;
            transfer.prolongate(&mut x, &low)
        })?;
        levels.push(Level { smooth: 2.0 * smooth, residual, transfer });
    }
    // The coarsest level is solved by a step.
    let coarsest = step(&grids[grids.len() - 1]).seconds::<f32>(session, &grids[grids.len() - 1], None)?;
    levels.push(Level { smooth: coarsest.unwrap_or(f64::NAN), ..Level::default() });
    Ok(Iteration { levels, outer: outer(session, device, &grids[0])? })
}

/// The residual in double precision, to single precision, and the correction back.
fn outer(session: &Session, device: &Cuda, grid: &BoxGrid) -> Result<f64, BenchError> {
    let operator = CudaBoxOperator::<f64>::new(device, grid)?;
    let [mut x, b] = vectors::<f64, Cuda>(device, grid)?;
    let mut r = Buffer::zeros(device, grid.n_nodes())?;
    let mut single = Buffer::<f32, _>::zeros(device, grid.n_nodes())?;
    let work = || -> Result<(), LinalgError> {
        operator.residual(&mut r, &b, &x)?;
        Convert::<f64, f32>::convert(device, &mut single, 1.0, &r)?;
        device.box_add(&mut x, 1e-9, &single)
    };
    Ok(fastest(device, session.settings.repeats, work)?)
}

fn of_table(session: &Session, item: &'static str, title: &str, quantity: Quantity, table: Table) -> Figure {
    let notes = vec![format!(
        "Full multigrid's iteration: the residual in f64 and a cycle in f32, on cubes of about {} unknowns (--unknowns) halved \
         down to two cells a side. Each part is timed by itself, the fastest of {}: on small levels launches weigh more than in \
         a cycle recorded as a graph. Theirs: plots of a solver with GMRES outside.",
        session.settings.unknowns, session.settings.repeats
    )];
    let absent = no_gpu(session).into_iter().collect();
    Figure { notes, absent, quantity, ..figure(session, item, title, Vec::new(), table) }
}
