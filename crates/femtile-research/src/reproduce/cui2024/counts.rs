//! Tables 1 to 3: full multigrid for −Δu = 1 to 1e-9, counted.

use femtile::device::Buffer;
use femtile::multigrid::{BoxGrid, BoxKernels, Multigrid, MultigridConfig, PostOrder, Smoother};

use super::points::PointMultigrid;
use super::{Claim, Cycles, Figure, Session, Table, figure};
use crate::reproduce::Cell;
use femtile_bench::BenchError;

const TOLERANCE: f64 = 1e-9;
/// Cycles after which a smoother is given up.
const MAX_CYCLES: usize = 100;
/// The first level that the paper prints.
const FIRST_LEVEL: usize = 4;
/// Largest number of matrix entries per unknown: point Gauss–Seidel computes every row again.
const POINT_ENTRIES: f64 = 100.0;

/// Printed counts of a level, from degree one on.
type Printed = (usize, &'static [usize]);

const TABLE_1: [Printed; 3] = [
    (4, &[9, 5, 3, 3, 3, 2, 2, 2, 2, 2]),
    (11, &[7, 5, 3, 3, 3, 2, 2, 2, 2, 2]),
    (12, &[7, 4, 3, 3, 2, 2, 2, 2, 2, 2]),
];
const TABLE_2: [Printed; 5] = [
    (4, &[6, 5, 3, 3, 3, 3, 2, 2]),
    (7, &[6, 5, 3, 3, 3, 3, 2, 2]),
    (8, &[6, 5, 3, 3, 3, 3, 2]),
    (9, &[6, 5, 3]),
    (10, &[6]),
];
/// Gauss–Seidel, on levels where it no longer changes.
const TABLE_3: [usize; 8] = [6, 8, 11, 13, 19, 20, 27, 30];

pub(super) fn table_1(session: &Session) -> Result<Figure, BenchError> {
    by_level(session, "table-1", 2, &TABLE_1)
}

pub(super) fn table_2(session: &Session) -> Result<Figure, BenchError> {
    by_level(session, "table-2", 3, &TABLE_2)
}

/// A table of levels and degrees.
fn by_level(
    session: &Session,
    item: &'static str,
    dimension: usize,
    printed: &[Printed],
) -> Result<Figure, BenchError> {
    let degrees = printed[0].1.len();
    let mut rows = Vec::new();
    for level in FIRST_LEVEL..=last_level(session) {
        let theirs = printed.iter().find(|(printed, _)| *printed == level).map_or(&[][..], |(_, row)| row);
        for degree in 1..=degrees {
            let theirs = theirs.get(degree - 1).copied();
            if let Some(row) = both(session, dimension, (level, degree), true, theirs)? {
                rows.push(row);
            }
        }
    }
    let claims = printed.iter().filter_map(|&(level, theirs)| claim(item, level, theirs, &rows)).collect();
    let notes = vec![notes(session)];
    let title = format!("Cycles of full multigrid with vertex patches, {dimension} dimensions");
    let table = table(&rows, degrees);
    Ok(Figure { claims, notes, ..figure(session, item, &title, rows, table) })
}

pub(super) fn table_3(session: &Session) -> Result<Figure, BenchError> {
    let degrees = if session.settings.small { 2 } else { TABLE_3.len() };
    let mut rows = Vec::new();
    for (has_patches, printed) in [(false, &TABLE_3[..]), (true, TABLE_2[0].1)] {
        for (k, &theirs) in printed.iter().enumerate().take(degrees) {
            let level = point_level(session, k + 1);
            rows.extend(both(session, 3, (level, k + 1), has_patches, Some(theirs))?);
        }
    }
    let notes = vec![
        "Of each degree the finest level on which sweeps of point Gauss–Seidel are affordable, as --max-level and --unknowns \
         allow; theirs are of levels from which on counts stay the same."
            .into(),
        notes(session),
    ];
    let table = table(&rows, degrees);
    let title = "Cycles of full multigrid with point Gauss–Seidel and with vertex patches, 3 dimensions";
    Ok(Figure { notes, ..figure(session, "table-3", title, rows, table) })
}

/// The finest level in three dimensions whose matrix has not too many entries; the first one at least.
fn point_level(session: &Session, degree: usize) -> usize {
    let fits = |level: &usize| {
        let nodes = unknowns(3, *level, degree);
        nodes <= session.settings.unknowns as f64
            && nodes * (2.0 * degree as f64 + 1.0).powi(3) <= POINT_ENTRIES * session.settings.unknowns as f64
    };
    (FIRST_LEVEL..=last_level(session)).rev().find(fits).unwrap_or(FIRST_LEVEL)
}

fn unknowns(dimension: usize, level: usize, degree: usize) -> f64 {
    (degree as f64 * 2f64.powi(level as i32 - 1) - 1.0).powi(dimension as i32)
}

fn last_level(session: &Session) -> usize {
    if session.settings.small { FIRST_LEVEL } else { session.settings.max_level }
}

/// Counts cycles in either order; none with too many unknowns.
fn both(
    session: &Session,
    dimension: usize,
    (level, degree): (usize, usize),
    has_patches: bool,
    theirs: Option<usize>,
) -> Result<Option<Cycles>, BenchError> {
    if unknowns(dimension, level, degree) > session.settings.unknowns as f64 {
        return Ok(None);
    }
    let coarse = BoxGrid::unit(dimension, degree, 2)?;
    let on_gpu = session.gpu.as_ref().filter(|_| degree <= 8);
    let count = |post| match on_gpu {
        _ if !has_patches => {
            PointMultigrid::new(&session.cpu, &coarse, level - 1, post)?.cycles(TOLERANCE, MAX_CYCLES)
        }
        Some(gpu) => cycles(&gpu.device, &coarse, level, post),
        None => cycles(&session.cpu, &coarse, level, post),
    };
    let (ours_reversed, ours_same) = (count(PostOrder::Reversed)?, count(PostOrder::Same)?);
    let smoother = if has_patches { "vertex-patch" } else { "point" };
    Ok(Some(Cycles { level, degree, smoother, theirs, ours_reversed, ours_same }))
}

/// Returns the cycles of a solve in double precision; none if it does not converge.
fn cycles<D: BoxKernels<f64>>(
    device: &D,
    coarse: &BoxGrid,
    level: usize,
    post: PostOrder,
) -> Result<Option<usize>, BenchError> {
    let config = MultigridConfig { smoother: Smoother::VertexPatch, post };
    // Level 2 has two cells a side, and is the first with a vertex inside.
    let multigrid = Multigrid::<f64, D>::new(device, coarse, level - 1, config)?;
    let b = Buffer::from_vec(device, multigrid.grid().load_of_product(|_, _| 1.0))?;
    let mut x = Buffer::zeros(device, b.len())?;
    let outcome = multigrid.solve_full(&mut x, &b, TOLERANCE, MAX_CYCLES)?;
    Ok(outcome.is_converged.then(|| outcome.cycles()))
}

/// Returns a table of degrees by levels, published and measured.
fn table(rows: &[Cycles], degrees: usize) -> Table {
    let mut table = Table::new((1..=degrees).map(|degree| format!("Q{degree}")).collect());
    let mut kinds: Vec<(usize, &str)> = Vec::new();
    for row in rows {
        if !kinds.contains(&(row.level, row.smoother)) {
            kinds.push((row.level, row.smoother));
        }
    }
    for (level, smoother) in kinds {
        let of = |pick: fn(&Cycles) -> Option<usize>| {
            let found = |degree: usize| {
                let is_it =
                    |row: &&Cycles| (row.level, row.smoother, row.degree) == (level, smoother, degree);
                rows.iter().find(is_it).and_then(pick).map_or(Cell::Nothing, Cell::Count)
            };
            (1..=degrees).map(found).collect::<Vec<_>>()
        };
        let kind = if smoother == "point" { "point, " } else { "" };
        table = table.listed(&format!("{kind}L = {level}, theirs"), of(|row| row.theirs));
        table = table.drawn(&format!("{kind}L = {level}, reversed"), of(|row| row.ours_reversed));
        table = table.drawn(&format!("{kind}L = {level}, same"), of(|row| row.ours_same));
    }
    table
}

/// Sums over the degrees of a printed row that were counted here.
fn claim(item: &'static str, level: usize, theirs: &[usize], rows: &[Cycles]) -> Option<Claim> {
    let rows: Vec<_> = rows.iter().filter(|row| row.level == level && row.theirs.is_some()).collect();
    let sum = |pick: fn(&Cycles) -> Option<usize>| rows.iter().copied().map(pick).sum::<Option<usize>>();
    let words = |sum: Option<usize>| sum.map_or("not converged".into(), |sum| sum.to_string());
    (!rows.is_empty()).then(|| Claim {
        what: format!("level {level}, sum of cycles of Q1 to Q{}", rows.len()),
        place: if item == "table-1" { "Table 1" } else { "Table 2" },
        theirs: theirs[..rows.len()].iter().sum::<usize>().to_string(),
        ours: Some(format!(
            "{} reversed, {} in the same order",
            words(sum(|row| row.ours_reversed)),
            words(sum(|row| row.ours_same))
        )),
    })
}

fn notes(session: &Session) -> String {
    format!(
        "f = 1, residual reduced by 1e9. Level L has 2^(L − 1) cells a side; the coarsest of our cycles has two, and is solved \
         exactly. Cycles are counted from the first on the finest level, which begins with what comes from the level below. Levels \
         up to {} with at most {} unknowns; --max-level and --unknowns change both.",
        last_level(session),
        session.settings.unknowns
    )
}
