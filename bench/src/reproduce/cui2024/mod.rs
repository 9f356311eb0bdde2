//! `[cui2024]`: cycles of full multigrid (Tables 1 to 3), steps of the smoother (Figure 15), solves in two precisions (Table 7).

mod counts;
mod precision;
mod smoothing;

use super::{Cell, Claim, Cycles, Figure, Item, Quantity, Rows, Session, Table};

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "cycles of full multigrid in two dimensions, by level and degree", counts::table_1),
        item("table-2", "the same in three dimensions", counts::table_2),
        item("table-3", "the same beside point Gauss–Seidel", counts::table_3),
        item("table-7", "full multigrid with cycles in double and in single precision", precision::table_7),
        item("figure-15", "steps of the smoother by degree, processors and GPU", smoothing::figure_15),
    ]
}

/// A table of counts.
fn figure(session: &Session, item: &'static str, title: &str, rows: Vec<Cycles>, table: Table) -> Figure {
    Figure {
        paper: "cui2024",
        item,
        title: title.into(),
        quantity: Quantity::Iterations,
        abscissa: "degree",
        setting: session.machine(),
        rows: Rows::Counted(rows),
        table: Some(table),
        notes: Vec::new(),
        claims: Vec::new(),
        absent: Vec::new(),
    }
}
