//! Figure 5: how long ranges of vectors are in use.

use super::{Cell, Claim, Figure, Problem, Quantity, Session, Table, figure};
use femtile_bench::BenchError;

/// Batches of cells from the first that touches a range to the last.
const BATCHES: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, 1000];

pub(super) fn figure_5(session: &Session) -> Result<Figure, BenchError> {
    let mut table = Table::new(BATCHES.map(|n| n.to_string()).to_vec());
    let mut at_once = Vec::new();
    // Theirs have about 615 batches of 32 cells and 1,229 of 16 on each rank.
    let cells = if session.settings.small { 4 } else { 28 };
    for (name, components) in [("vector Laplacian", 3), ("scalar Laplacian", 1)] {
        let lives: Vec<usize> = Problem::of_components(components)
            .look(&session.cpu, cells, |a| a.cell_loop().liveliness().collect())?;
        let share =
            |most: usize| lives.iter().filter(|&&life| life <= most).count() as f64 / lives.len() as f64;
        at_once.push(100.0 * share(1));
        table = table.drawn(name, BATCHES.map(|most| Cell::Number(100.0 * share(most))).to_vec());
    }
    let claims = vec![Claim {
        what: "ranges that begin and end in one batch, vector Laplacian".into(),
        place: "Figure 5, section 5.3",
        theirs: "76 %".into(),
        ours: Some(format!("{:.0} %", at_once[0])),
    }];
    let notes = vec![format!(
        "Ranges of 64 nodes, {cells}³ cubes, degree 5, no conditions, one thread. Our batches are groups of 48 cells for any number of \
         components, each numbered from what it alone touches to what others touch last."
    )];
    let title = "Share of vector ranges in use for at most a number of batches of cells";
    let what = ("figure-5", title, Quantity::Percent, "batches");
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}
