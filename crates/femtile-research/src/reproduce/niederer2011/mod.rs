//! `[niederer2011]`: the N-version benchmark of monodomain solvers, activation times of a slab.

mod published;

use std::cell::OnceCell;

use femtile::fem::functionals;
use femtile::space::Space;
use femtile::{DeviceChoice, PreconditionerConfig, SolverConfig};
use femtile_bench::BenchError;
use femtile_bench::problems::slab;

use super::{Cell, Claim, Figure, Item, Quantity, Session, Table};
use published::{PUBLISHED, Published};

const KEY: &str = "niederer2011";
/// The corners of the slab and its centre; the stimulus is at the first, P8 is the far corner.
const POINTS: [[f64; 3]; 9] = [
    [0.0, 0.0, 0.0],
    [0.0, 7.0, 0.0],
    [20.0, 0.0, 0.0],
    [20.0, 7.0, 0.0],
    [0.0, 0.0, 3.0],
    [0.0, 7.0, 3.0],
    [20.0, 0.0, 3.0],
    [20.0, 7.0, 3.0],
    [10.0, 3.5, 1.5],
];
/// Points along the diagonal from the stimulus to the far corner.
const ON_DIAGONAL: usize = 21;
/// The far corner.
const P8: usize = 7;

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("activation", "activation times at the corners and the centre", activation),
        item("diagonal", "activation times along the diagonal", diagonal),
    ]
}

/// Activation times for a mesh and a step.
#[derive(Debug, Clone)]
struct Run {
    h_mm: f64,
    step_ms: f64,
    at_points: Vec<Option<f64>>,
    on_diagonal: Vec<Option<f64>>,
    seconds: f64,
}

/// The runs, made once.
#[derive(Debug, Default)]
pub(super) struct Shared(OnceCell<Vec<Run>>);

/// Spacings and steps: all nine with a GPU, those that take a minute without.
fn sizes(session: &Session) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> =
        [0.5, 0.2, 0.1].into_iter().flat_map(|h| [0.05, 0.01, 0.005].map(|step| (h, step))).collect();
    match (session.settings.small, session.gpu.is_some()) {
        (true, _) => vec![(0.5, 0.05)],
        (false, true) => all,
        (false, false) => all[..4].to_vec(),
    }
}

fn runs(session: &Session) -> Result<&[Run], BenchError> {
    if let Some(found) = session.niederer2011.0.get() {
        return Ok(found);
    }
    let made = sizes(session).into_iter().map(|size| run(session, size)).collect::<Result<Vec<_>, _>>()?;
    Ok(session.niederer2011.0.get_or_init(|| made))
}

fn run(session: &Session, (h_mm, step_ms): (f64, f64)) -> Result<Run, BenchError> {
    let mesh = slab::mesh(h_mm)?;
    let config = SolverConfig {
        device: if session.gpu.is_some() { DeviceChoice::Cuda(0) } else { DeviceChoice::Cpu },
        threads: session.settings.threads,
        preconditioner: PreconditionerConfig::Jacobi,
        ..SolverConfig::default()
    };
    let end = if h_mm > 0.3 { 100.0 } else { 60.0 };
    let solution = slab::problem(&mesh)?.times(0.0, end, step_ms).solve(&config)?;
    let times = &solution.activation.first;
    let at = |points: &[[f64; 3]]| -> Result<Vec<Option<f64>>, BenchError> {
        let found = functionals::values_at(&Space::new(&mesh, 1)?, times, points)?;
        Ok(found.into_iter().map(|time| time.filter(|time| !time.is_nan())).collect())
    };
    let share = |i: usize| i as f64 / (ON_DIAGONAL - 1) as f64;
    let line: Vec<[f64; 3]> = (0..ON_DIAGONAL).map(|i| slab::SIDES.map(|side| share(i) * side)).collect();
    let seconds = solution.outcome.seconds;
    Ok(Run { h_mm, step_ms, at_points: at(&POINTS)?, on_diagonal: at(&line)?, seconds })
}

fn activation(session: &Session) -> Result<Figure, BenchError> {
    let runs = runs(session)?;
    let names = POINTS.iter().enumerate().map(|(i, [x, y, z])| format!("P{} ({x}, {y}, {z})", i + 1));
    let mut table = Table::new(names.collect());
    for run in runs {
        let cells = run.at_points.iter().map(|&time| Cell::from(time)).collect();
        let is_drawn = is_finest(runs, run.h_mm, run.step_ms);
        table = table.with(&format!("h = {} mm, Δt = {} ms", run.h_mm, run.step_ms), cells, is_drawn);
        for published in published_at(run) {
            let cells = published.at_points.iter().map(|&time| Cell::from(time)).collect();
            table = table.with(&published.name(), cells, is_drawn);
        }
    }
    let mut figure = figure(session, ("activation", "Activation times, ms", "point"), table);
    figure.claims = PUBLISHED.iter().filter_map(|published| claim(runs, published)).collect();
    figure.notes = runs
        .iter()
        .map(|run| format!("h = {} mm, Δt = {} ms: {:.1} s", run.h_mm, run.step_ms, run.seconds))
        .collect();
    Ok(figure)
}

/// Returns whether no run with these spacings has shorter steps.
fn is_finest(runs: &[Run], h_mm: f64, step_ms: f64) -> bool {
    runs.iter().all(|run| run.h_mm != h_mm || run.step_ms >= step_ms)
}

/// Returns what is published for the spacing and the step of a run.
fn published_at(run: &Run) -> impl Iterator<Item = &'static Published> {
    let of_run = (run.h_mm, run.step_ms);
    PUBLISHED.iter().filter(move |published| (published.h_mm, published.step_ms) == of_run)
}

/// The far corner in another program and here.
fn claim(runs: &[Run], published: &Published) -> Option<Claim> {
    let run = runs.iter().find(|run| (run.h_mm, run.step_ms) == (published.h_mm, published.step_ms));
    Some(Claim {
        what: format!("far corner, h = {} mm, Δt = {} ms", published.h_mm, published.step_ms),
        place: published.program,
        theirs: format!("{:.2} ms", published.at_points[P8]?),
        ours: run.and_then(|run| run.at_points[P8]).map(|time| format!("{time:.2} ms")),
    })
}

fn diagonal(session: &Session) -> Result<Figure, BenchError> {
    let length = slab::SIDES.iter().map(|side| side * side).sum::<f64>().sqrt();
    let place = |i: usize| format!("{:.2}", length * i as f64 / (ON_DIAGONAL - 1) as f64);
    let mut table = Table::new((0..ON_DIAGONAL).map(place).collect());
    for run in runs(session)? {
        let cells = run.on_diagonal.iter().map(|&time| Cell::from(time)).collect();
        table = table.drawn(&format!("h = {} mm, Δt = {} ms", run.h_mm, run.step_ms), cells);
    }
    Ok(figure(session, ("diagonal", "Activation times along the diagonal, ms", "mm"), table))
}

fn figure(
    session: &Session,
    (item, title, abscissa): (&'static str, &str, &'static str),
    table: Table,
) -> Figure {
    let setting = format!(
        "{}; ten Tusscher–Panfilov 2006 (epi), splitting with θ = ½, consistent mass matrix, Kuhn tetrahedra",
        session.machine()
    );
    session.figure(KEY, (item, title, Quantity::Milliseconds, abscissa), setting, table)
}
