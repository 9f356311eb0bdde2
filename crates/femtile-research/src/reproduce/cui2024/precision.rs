//! Table 7: solves with cycles in double and in single precision.

use std::f64::consts::PI;
use std::time::Instant;

use femtile::device::{Buffer, Device, Scalar};
use femtile::multigrid::{BoxGrid, BoxKernels, Multigrid};

use super::gmres::{self, GmresDevice, Outcome};
use super::{Cell, Claim, Figure, PATCHES, Quantity, Session, Table, figure};
use femtile_bench::BenchError;

pub(super) const TOLERANCE: f64 = 1e-9;
const MAX_CYCLES: usize = 30;
/// Evaluations of the exact solution that a second norm of the error may take.
const MAX_POINTS: f64 = 2e9;
/// Degrees, with level, cycles, error and seconds in double and single precision as printed.
const PRINTED: [(usize, usize, usize, f64, [f64; 2]); 3] = [
    (1, 10, 5, 1.12e-6, [3.391, 2.385]),
    (3, 9, 3, 2.30e-13, [3.941, 2.418]),
    (7, 8, 2, 2.89e-16, [5.891, 3.326]),
];

/// Right sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// Right side of the solution sin πx sin πy sin πz.
    Sine,
    /// One everywhere.
    One,
}

/// Cost and result of a solve.
struct Solve {
    cycles: Option<usize>,
    seconds: f64,
    /// Of the sine, by as many points a cell and axis as there are nodes.
    error: Option<f64>,
    /// With three more points, unless that takes too long.
    true_error: Option<f64>,
}

/// Table 7 as the paper has it.
pub(super) fn table_7(session: &Session) -> Result<Figure, BenchError> {
    by_precision(session, "table-7", Right::Sine)
}

/// The same solves where no level below is good to rounding already.
pub(super) fn table_7_one(session: &Session) -> Result<Figure, BenchError> {
    by_precision(session, "table-7-one", Right::One)
}

fn by_precision(session: &Session, item: &'static str, right: Right) -> Result<Figure, BenchError> {
    let mut rows = Vec::new();
    let mut found = Vec::new();
    for (degree, highest, ..) in PRINTED {
        let level = level(session, degree, highest);
        let repeats = session.settings.repeats;
        found.push(match &session.gpu {
            Some(gpu) => all(&gpu.device, (degree, level), right, repeats)?,
            None => all(&session.cpu, (degree, level), right, repeats)?,
        });
        rows.push(format!("Q{degree}, L = {level}"));
    }
    let column = |of: &dyn Fn(&[Solve; 4]) -> Cell| found.iter().map(of).collect::<Vec<_>>();
    let cycles = |cycles: Option<usize>| cycles.map_or(Cell::Words("none"), Cell::Count);
    let mut table = Table::new(rows).listed("cycles, theirs", PRINTED.map(|row| Cell::Count(row.2)).into());
    for (k, (method, name)) in
        [("", "double"), ("", "single"), ("GMRES, ", "double"), ("GMRES, ", "single")].into_iter().enumerate()
    {
        let counted = if method.is_empty() { "cycles" } else { "iterations" };
        table = table.listed(&format!("{method}{counted}, {name}"), column(&|all| cycles(all[k].cycles)));
        if right == Right::Sine {
            table = table.listed(&format!("{method}L2 error, {name}"), column(&|all| all[k].error.into()));
        }
        table =
            table.drawn(&format!("{method}ms, {name}"), column(&|all| Cell::Number(1e3 * all[k].seconds)));
    }
    let gain = |all: &[Solve; 4], k: usize| all[k].seconds / all[k + 1].seconds;
    table = table.listed("double over single", column(&|all| Cell::Number(gain(all, 0))));
    table = table.listed("GMRES, double over single", column(&|all| Cell::Number(gain(all, 2))));
    let claims = PRINTED.iter().zip(&found).map(|((degree, level, _, error, seconds), both)| {
        let of_error = both[1].error.map_or(String::new(), |error| format!(", {error:.2e}"));
        let true_error = both[1].true_error.map_or(String::new(), |error| format!(" ({error:.2e} in truth)"));
        Claim {
            what: format!("Q{degree}, double over single precision; seconds and error in single"),
            place: "Table 7",
            theirs: format!("{:.2}×; {} s, {error:.2e} at L = {level}", seconds[0] / seconds[1], seconds[1]),
            ours: Some(format!(
                "{:.2}×; {:.4} s{of_error}{true_error}; GMRES {:.2}×; {:.4} s",
                gain(both, 0),
                both[1].seconds,
                gain(both, 2),
                both[3].seconds
            )),
        }
    });
    let problem = match right {
        Right::Sine => "u = sin πx sin πy sin πz; errors by k + 1 Gauss points a cell and axis.",
        Right::One => "−Δu = 1; theirs are of u = sin πx sin πy sin πz.",
    };
    let notes = vec![format!(
        "{problem} Full multigrid, residual reduced by 1e9, the same order of colours before and after; the outer iteration is in \
         double precision. GMRES, which is what they time, from zero with a V-cycle for preconditioner. Levels with at most {} unknowns (--unknowns); theirs are L = 10, 9 and 8 on an A100. Solves of what is \
         in place, fastest of {}.",
        session.settings.unknowns, session.settings.repeats
    )];
    let title = "Full multigrid with cycles in double and in single precision";
    Ok(Figure {
        quantity: Quantity::Milliseconds,
        claims: claims.collect(),
        notes,
        ..figure(session, item, title, Vec::new(), table)
    })
}

/// The finest level with no more unknowns than are wanted.
pub(super) fn level(session: &Session, degree: usize, highest: usize) -> usize {
    let fits = |level: &usize| {
        let nodes = degree as f64 * 2f64.powi(*level as i32 - 1) - 1.0;
        nodes.powi(3) <= session.settings.unknowns as f64
    };
    (3..=highest).rev().find(fits).unwrap_or(3)
}

/// Full multigrid with cycles in double, then in single precision, and GMRES with both.
fn all<D: GmresDevice>(
    device: &D,
    of: (usize, usize),
    right: Right,
    repeats: usize,
) -> Result<[Solve; 4], BenchError> {
    Ok([
        looked_at(solution::<f64, D>(device, of, right, repeats)?, of.0, right)?,
        looked_at(solution::<f32, D>(device, of, right, repeats)?, of.0, right)?,
        looked_at(by_gmres::<f64, D>(device, of, right, repeats)?, of.0, right)?,
        looked_at(by_gmres::<f32, D>(device, of, right, repeats)?, of.0, right)?,
    ])
}

fn by_gmres<T: Scalar, D: GmresDevice + BoxKernels<T>>(
    device: &D,
    (degree, level): (usize, usize),
    right: Right,
    repeats: usize,
) -> Result<Solution<D>, BenchError> {
    let Outcome { grid, x, iterations, seconds } =
        gmres::solve::<T, D>(device, (degree, level), |grid| load(grid, right), repeats)?;
    Ok(Solution { grid, x, cycles: iterations, seconds })
}

/// Times a solve without computing its error.
pub(super) struct Timed {
    pub n_unknowns: usize,
    pub seconds: f64,
}

/// Full multigrid with cycles in double, then in single precision, and GMRES with both.
pub(super) fn seconds_of<D: GmresDevice>(
    device: &D,
    (degree, level): (usize, usize),
    right: Right,
    repeats: usize,
) -> Result<[Timed; 4], BenchError> {
    let double = solution::<f64, D>(device, (degree, level), right, repeats)?;
    let single = solution::<f32, D>(device, (degree, level), right, repeats)?;
    let of_gmres = [
        by_gmres::<f64, D>(device, (degree, level), right, repeats)?,
        by_gmres::<f32, D>(device, (degree, level), right, repeats)?,
    ];
    let [gmres_double, gmres_single] = of_gmres;
    Ok([double, single, gmres_double, gmres_single]
        .map(|Solution { grid, seconds, .. }| Timed { n_unknowns: grid.n_unknowns(), seconds }))
}

/// Final state of a solve.
struct Solution<D: Device> {
    grid: BoxGrid,
    x: Buffer<f64, D>,
    cycles: Option<usize>,
    seconds: f64,
}

fn solution<T: Scalar, D: BoxKernels<f64> + BoxKernels<T>>(
    device: &D,
    (degree, level): (usize, usize),
    right: Right,
    repeats: usize,
) -> Result<Solution<D>, BenchError> {
    let coarse = BoxGrid::unit(3, degree, 2)?;
    let multigrid = Multigrid::<T, D>::new(device, &coarse, level - 1, PATCHES)?;
    let b = Buffer::from_vec(device, load(multigrid.grid(), right))?;
    let mut x = Buffer::zeros(device, b.len())?;
    let (mut seconds, mut cycles) = (f64::MAX, None);
    for _ in 0..repeats.max(1) {
        let begin = Instant::now();
        let outcome = multigrid.solve_full(&mut x, &b, TOLERANCE, MAX_CYCLES)?;
        seconds = seconds.min(begin.elapsed().as_secs_f64());
        cycles = outcome.is_converged.then(|| outcome.cycles());
    }
    Ok(Solution { grid: multigrid.grid().clone(), x, cycles, seconds })
}

/// The load of a right side.
fn load(grid: &BoxGrid, right: Right) -> Vec<f64> {
    let scale = (3.0 * PI * PI).cbrt();
    match right {
        Right::Sine => grid.load_of_product(|_, x| scale * (PI * x).sin()),
        Right::One => grid.load_of_product(|_, _| 1.0),
    }
}

/// With the errors of a solution, if it is known.
fn looked_at<D: Device>(
    Solution { grid, x, cycles, seconds }: Solution<D>,
    degree: usize,
    right: Right,
) -> Result<Solve, BenchError> {
    if right == Right::One {
        return Ok(Solve { cycles, seconds, error: None, true_error: None });
    }
    let wave = |at: [f64; 3]| at.map(|x| (PI * x).sin()).iter().product();
    let u = x.to_host()?;
    let error = grid.error_l2(&u, wave, degree + 1);
    let n_cells: f64 = (0..3).map(|axis| grid.widths(axis).len() as f64).product();
    let is_cheap = n_cells * ((degree + 4) as f64).powi(3) <= MAX_POINTS;
    let true_error = is_cheap.then(|| grid.error_l2(&u, wave, degree + 4));
    Ok(Solve { cycles, seconds, error: Some(error), true_error })
}
