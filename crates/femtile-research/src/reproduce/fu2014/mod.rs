//! `[fu2014]`: assembly and conjugate gradients with multigrid on five meshes (tables 1 to 6, figures 6 and 7).

mod assembly;
mod growth;
mod inner;
mod materials;
mod meshes;
mod overview;
mod peers;
mod solves;
mod theirs;

use std::cell::{OnceCell, RefCell};

use super::session::once;
use super::{Absent, Cell, Claim, Figure, Item, Quantity, Session, Table};
use femtile_bench::multigrid::Peers;
use meshes::Case;

const KEY: &str = "fu2014";

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "the meshes", overview::table_1),
        item("table-2", "assembly", assembly::table_2),
        item("table-3", "set-up of multigrid", solves::table_3),
        item("table-4", "iterations where two materials differ", materials::table_4),
        item("table-5", "times and iterations of solves", solves::table_5),
        item("table-6", "time of an iteration", solves::table_6),
        item("figure-6", "iterations against the number of nodes", growth::figure_6),
        item("figure-7", "iterations against inner iterations of the smoother", inner::figure_7),
    ]
}

/// Data shared by several items: each mesh is made and each solve is measured on first use.
#[derive(Debug, Default)]
pub(super) struct Shared {
    cases: OnceCell<Vec<Case>>,
    peers: RefCell<Option<Peers>>,
}

/// Returns the meshes: those of the paper, their replacements, and samples.
fn all(session: &Session) -> &[Case] {
    session.fu2014.cases.get_or_init(|| meshes::cases(session.settings.small))
}

fn names(cases: &[Case]) -> Vec<String> {
    cases.iter().map(|case| case.name.clone()).collect()
}

fn figure(
    session: &Session,
    (item, title, quantity, abscissa): (&'static str, &str, Quantity, &'static str),
    table: Table,
) -> Figure {
    let setting =
        format!("{}; f64, levels of multigrid in f32; theirs: GTX 580, Core i7-965", session.machine());
    session.figure(KEY, (item, title, quantity, abscissa), setting, table)
}

fn times(factor: f64) -> String {
    format!("{factor:.2}×")
}
