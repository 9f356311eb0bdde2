//! Table 1 and Figures 6 and 7: values moved for an unknown in an iteration.

use super::memory::{Model, STEPS, Work};
use super::{Cell, Claim, Figure, Problem, Quantity, Session, Table, UNKNOWNS, figure, times};
use femtile_bench::BenchError;

/// Cells a side, and the cache.
fn sizes(session: &Session) -> (usize, usize) {
    if session.settings.small { (5, 128 << 10) } else { (24, 2 << 20) }
}

fn sum(moved: [f64; 2]) -> f64 {
    moved[0] + moved[1]
}

fn numbers(of: &[[f64; 2]], k: usize) -> Vec<Cell> {
    of.iter().map(|moved| Cell::Number(moved[k])).collect()
}

/// Returns the description of the model.
fn note(cells: &str, cache_bytes: usize) -> String {
    format!(
        "A model: a cache of {} KiB with least-recently-used replacement, for the vectors of the Laplacian of degree 5 on {cells} \
         cubes, one thread; metrics and numbers of unknowns are not counted. Written values are fetched before: the \
         product reads y as well, which their model does not count.",
        cache_bytes >> 10
    )
}

pub(super) fn table_1(session: &Session) -> Result<Figure, BenchError> {
    let (cells, cache_bytes) = sizes(session);
    let works = [("product", Work::Product), ("PCG", Work::Plain), ("merged PCG", Work::Merged)];
    let mut found: Vec<[f64; 2]> = Vec::new();
    for components in [3, 1] {
        let model = Model { components, cache_bytes, has_diagonal: true };
        found.extend(
            Problem::of_components(components)
                .look(&session.cpu, cells, |a| works.map(|(_, work)| model.moved(a.cell_loop(), work)))?,
        );
    }
    // Of one component the diagonal counts three times as much.
    let theirs = [[2.0, 1.0], [15.0, 5.0], [3.0 + 5.0 / 6.0, 3.5], [2.0, 1.0], [15.0, 5.0], [4.5, 3.5]];
    let rows =
        ["3", "1"].iter().flat_map(|c| works.map(|(name, _)| format!("{name}, components: {c}"))).collect();
    let table = Table::new(rows)
        .drawn("reads", numbers(&found, 0))
        .drawn("reads, theirs", numbers(&theirs, 0))
        .drawn("writes", numbers(&found, 1))
        .drawn("writes, theirs", numbers(&theirs, 1));
    let claims = vec![
        Claim {
            what: "values moved by a merged preconditioned iteration, over the ideal, three components"
                .into(),
            place: "Table 1",
            theirs: "1 by definition".into(),
            ours: Some(format!("{:.2}", sum(found[2]) / sum(theirs[2]))),
        },
        Claim {
            what: "values moved by the preconditioned iteration over those of the merged one".into(),
            place: "Table 1",
            theirs: format!("{:.2}", sum(theirs[1]) / sum(theirs[2])),
            ours: Some(format!("{:.2}", sum(found[1]) / sum(found[2]))),
        },
    ];
    let notes = vec![
        note(&format!("{cells}³"), cache_bytes),
        "Theirs are the ideal of their Table 1; with one component their diagonal would be read three times as often. Our \
         plain iteration takes two passes beside the product."
            .into(),
    ];
    let what = ("table-1", "Values moved for an unknown in an iteration", Quantity::Values, "method");
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}

/// Preconditioned methods by name.
const METHODS: [(&str, Work); 5] = [
    ("PCG", Work::Plain),
    ("pipelined PCG", Work::Pipelined),
    ("s-step PCG", Work::SStep),
    ("merged PCG in three passes", Work::Apart),
    ("merged PCG", Work::Merged),
];

pub(super) fn figure_6(session: &Session) -> Result<Figure, BenchError> {
    let (_, cache_bytes) = sizes(session);
    let sides: &[usize] = if session.settings.small { &[2, 4] } else { &[2, 3, 4, 5, 6, 8, 12, 16, 24] };
    let model = Model { components: 3, cache_bytes, has_diagonal: true };
    let (mut rows, mut found) = (Vec::new(), Vec::new());
    for &cells in sides {
        let (n_rows, moved) = Problem::of_components(3).look(&session.cpu, cells, |a| {
            let cell_loop = a.cell_loop();
            (cell_loop.n_rows(), METHODS.map(|(_, work)| model.moved(cell_loop, work)))
        })?;
        rows.push(n_rows.to_string());
        found.push(moved);
    }
    let mut table = Table::new(rows);
    for (k, what) in ["reads", "writes"].into_iter().enumerate() {
        for (m, (name, _)) in METHODS.into_iter().enumerate() {
            let cells = found.iter().map(|moved| Cell::Number(moved[m][k])).collect();
            table = table.drawn(&format!("{name}, {what}"), cells);
        }
    }
    let last = found.last().copied().unwrap_or_default();
    let claim = |what: &str, theirs: &str, ours: f64| Claim {
        what: format!("reads of {what}, largest size"),
        place: "section 5.3, Figure 6",
        theirs: theirs.into(),
        ours: Some(format!("{ours:.2}")),
    };
    let claims = vec![
        claim("the merged method in three passes", "10.3", last[3][0]),
        claim("the merged method", "5.7", last[4][0]),
        claim("the former less those of the latter", "4.6", last[3][0] - last[4][0]),
    ];
    let notes = vec![
        note("a varying number of", cache_bytes),
        format!(
            "x, r, p, v and the diagonal fill the cache at {} unknowns. Theirs are counters of two Xeon Gold 6230 with all that \
             an operator with computed geometry reads.",
            3 * cache_bytes / (8 * 13)
        ),
    ];
    let what = ("figure-6", "Values moved for an unknown against size", Quantity::Values, UNKNOWNS);
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}

/// A row of Figure 7: its name, whether it has a diagonal, and what Table 1 estimates.
type Estimate = (&'static str, Work, bool, [f64; 2]);

/// Returns the traffic of the methods by Table 1, products included.
fn estimates() -> [Estimate; 7] {
    let s = STEPS as f64;
    let s_step = [5.0 + 4.0 / s + 2.0 * (1.0 + 1.0 / s), 1.0 + 2.0 / s + 1.0 + 1.0 / s];
    [
        ("product", Work::Product, false, [2.0, 1.0]),
        ("CG", Work::Plain, false, [11.0, 4.0]),
        ("pipelined CG", Work::Pipelined, false, [9.0, 7.0]),
        ("s-step CG", Work::SStep, false, s_step),
        ("merged CG", Work::Merged, false, [3.5, 3.5]),
        ("PCG", Work::Plain, true, [15.0, 5.0]),
        ("merged PCG", Work::Merged, true, [3.0 + 5.0 / 6.0, 3.5]),
    ]
}

pub(super) fn figure_7(session: &Session) -> Result<Figure, BenchError> {
    let (cells, cache_bytes) = sizes(session);
    let estimates = estimates();
    let found = Problem::of_components(3).look(&session.cpu, cells, |a| {
        estimates.map(|(_, work, has_diagonal, _)| {
            Model { components: 3, cache_bytes, has_diagonal }.moved(a.cell_loop(), work)
        })
    })?;
    let estimated = estimates.map(|(.., moved)| moved);
    // Of the others there is a plot alone.
    let counted = |name: &str, k: usize| match (name, k) {
        ("product", 0) => Cell::Number(3.0),
        ("product", _) => Cell::Number(1.3),
        ("merged PCG", 0) => Cell::Number(5.7),
        _ => Cell::Nothing,
    };
    let mut table = Table::new(estimates.iter().map(|(name, ..)| (*name).into()).collect());
    for (k, what) in ["reads", "writes"].into_iter().enumerate() {
        table = table
            .drawn(what, numbers(&found, k))
            .drawn(&format!("{what}, their estimate"), numbers(&estimated, k))
            .drawn(
                &format!("{what}, their counters"),
                estimates.iter().map(|(name, ..)| counted(name, k)).collect(),
            );
    }
    let over = |one: usize, other: usize| Some(times(sum(found[one]) / sum(found[other])));
    let claim = |what: &str, theirs: String, ours| Claim {
        what: what.into(),
        place: "Table 1, Figure 7",
        theirs,
        ours,
    };
    let ratio = |one: usize, other: usize| times(sum(estimated[one]) / sum(estimated[other]));
    let claims = vec![
        claim("PCG over merged PCG, estimated", ratio(5, 6), over(5, 6)),
        claim("pipelined CG over merged CG, estimated", ratio(2, 4), over(2, 4)),
        claim("s-step CG over merged CG, estimated", ratio(3, 4), over(3, 4)),
        claim("merged PCG over merged CG, estimated", ratio(6, 4), over(6, 4)),
    ];
    let notes = vec![
        note(&format!("{cells}³"), cache_bytes),
        format!(
            "Estimates are those of Table 1 with their products, s-step with s = {STEPS} and 1 + 1/s products a step. \
             Counters are of two Xeon Gold 6230, as far as the text has them, with all that an operator with computed geometry \
             moves. Counters of the memory controllers are not read here: only the system's administrator may, and \
             virtual machines have none."
        ),
    ];
    let what = ("figure-7", "Values moved for an unknown by all methods", Quantity::Values, "method");
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}
