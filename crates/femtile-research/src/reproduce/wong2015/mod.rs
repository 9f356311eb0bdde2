//! `[wong2015]`: ELL-WARP on fifteen matrices (tables 2 to 4 and 6 to 9, figures 4, 12 to 14 and 17 to 22), and the simulation
//! of a heart (figures 2, 3, 15 and 16).

mod bandwidth;
mod coalescing;
mod heart;
mod machine;
mod matrices;
mod overview;
mod parameters;
mod peers;
mod refill;
mod rivals;
mod search;
mod sorting;
mod variants;

use std::cell::OnceCell;

use super::session::once;
use super::{Absent, Cell, Claim, Figure, Item, Quantity, Session, Table};
use matrices::{Case, cases};

const KEY: &str = "wong2015";
/// Counts of products in a row: 1, 50 and 1,200.
const COUNTS: usize = 3;

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-2", "the fifteen matrices", overview::table_2),
        item("figure-2", "shares of assembly and solver in the simulation of a heart", heart::figure_2),
        item("figure-3", "shares of sparse products in assembly and solver", heart::figure_3),
        item("figure-4", "row lengths of the smallest mesh", overview::figure_4),
        item("table-3", "fastest settings of K1 and K2, one product", parameters::table_3),
        item("figure-12", "effective bandwidth, one product", bandwidth::figure_12),
        item("table-4", "products after which reordering the values has paid", refill::table_4),
        item("figure-13", "time of reordering the values over that of a product", refill::figure_13),
        item("figure-14", "values column by column and row by row", coalescing::figure_14),
        item("table-6", "what sorting rows by length saves", sorting::table_6),
        item("figure-15", "the simulation of a heart, GPU against one core", heart::figure_15),
        item("figure-16", "the same for each watt of nominal power", heart::figure_16),
        item("table-7", "segmented sums: their values a thread, our times", parameters::table_7),
        item("figure-17", "effective bandwidth, 1,200 products in a row", bandwidth::figure_17),
        item("table-8", "fastest block of K1 for 1, 50 and 1,200 products", parameters::table_8),
        item("table-9", "fastest threshold and block of K2 for the same", parameters::table_9),
        item("figure-18", "K1 and K1r (vectors renumbered)", variants::figure_18),
        item("figure-19", "K2 and K2r", variants::figure_19),
        item("figure-20", "what the final remapping costs K1r", variants::figure_20),
        item("figure-21", "K1r and K1rs (columns sorted again)", variants::figure_21),
        item("figure-22", "K2r and K2rs", variants::figure_22),
    ]
}

/// Data shared by several items: each matrix and each measurement is made on first use.
#[derive(Debug)]
pub(super) struct Shared {
    cases: Vec<Case>,
    hearts: heart::Hearts,
    /// The reason why the other library did not run.
    no_peer: OnceCell<String>,
}

impl Default for Shared {
    fn default() -> Self {
        Self { cases: cases(), hearts: OnceCell::new(), no_peer: OnceCell::new() }
    }
}

fn all(session: &Session) -> &[Case] {
    &session.wong2015.cases
}

/// The seven matrices of section 7.
fn of_section_7(session: &Session) -> Vec<&Case> {
    all(session).iter().filter(|case| case.matrix.is_in_section_7).collect()
}

fn names<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<String> {
    cases.into_iter().map(|case| case.matrix.label()).collect()
}

/// Counts of products as the paper writes them.
fn count_names(session: &Session) -> [String; COUNTS] {
    machine::Timing::of(session).counts.map(|count| format!("[{count}]"))
}

/// The least and the greatest.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, value| {
        Some(range.map_or((value, value), |(least, most): (f64, f64)| (least.min(value), most.max(value))))
    })
}

fn figure(
    session: &Session,
    (item, title, quantity, abscissa): (&'static str, &str, Quantity, &'static str),
    table: Table,
) -> Figure {
    let setting = setting(session);
    session.figure(KEY, (item, title, quantity, abscissa), setting, table)
}

fn setting(session: &Session) -> String {
    let lanes = session.measured().lanes();
    let device = if session.gpu.is_some() {
        "measured on the GPU".into()
    } else {
        format!("measured on the CPU, {lanes} lanes in the place of a warp")
    };
    let matrices = if session.settings.small { "small copies of profiles" } else { "profiles" };
    format!(
        "{}; {device}; f64; {matrices} of the matrices, bent boxes for hearts, whose meshes cannot be had",
        session.machine()
    )
}
