//! `[cui2024]`: cycles of full multigrid (Tables 1 to 3).

mod counts;

use super::{Claim, Cycles, Figure, Item, Quantity, Rows, Session, Table};

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "cycles of full multigrid in two dimensions, by level and degree", counts::table_1),
        item("table-2", "the same in three dimensions", counts::table_2),
        item("table-3", "the same beside point Gauss–Seidel", counts::table_3),
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
        setting: format!("{}; f64", session.machine()),
        rows: Rows::Counted(rows),
        table: Some(table),
        notes: Vec::new(),
        claims: Vec::new(),
        absent: Vec::new(),
    }
}
