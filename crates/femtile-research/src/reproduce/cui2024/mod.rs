//! `[cui2024]`: cycles of full multigrid (Tables 1 to 3), accesses, layouts and steps of the smoother (Tables 4 to 6, Figures 3
//! to 9, 15 and 17), shares of time (Figures 10 to 12 and 16), solves in two precisions (Table 7, Figure 18), roofs (Figures 19
//! and 20).

mod accesses;
mod counts;
mod gmres;
mod layouts;
mod points;
mod precision;
mod roofline;
mod shares;
mod sizes;
mod smoothing;
mod step;
mod work;

use femtile::multigrid::{MultigridConfig, PostOrder, Smoother};

use super::{Cell, Claim, Cycles, Figure, Item, Quantity, Rows, Session, Table};

/// Cycles of the paper.
const PATCHES: MultigridConfig = MultigridConfig { smoother: Smoother::VertexPatch, post: PostOrder::Same };

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item("table-1", "cycles of full multigrid in two dimensions, by level and degree", counts::table_1),
        item("table-2", "the same in three dimensions", counts::table_2),
        item("table-3", "the same beside point Gauss–Seidel", counts::table_3),
        item("table-4", "values of global vectors that kernels read and write", accesses::table_4),
        item("table-5", "layouts of the fused kernel, with their bank conflicts", layouts::table_5),
        item("table-6", "fused and separate kernels, and their data alone", layouts::table_6),
        item("table-7", "full multigrid with cycles in double and in single precision", precision::table_7),
        item("table-7-one", "the same solves with right side 1", precision::table_7_one),
        item(
            "figure-3",
            "solves on patches by a dense inverse and by fast diagonalization",
            smoothing::figure_3,
        ),
        item("figure-5", "blocks with a thread for each column and for each node", smoothing::figure_5),
        item("figure-7", "steps by the number of patches of a block", smoothing::figure_7),
        item(
            "figure-8",
            "steps with one patch a block and with the best number of them",
            smoothing::figure_8,
        ),
        item("figure-9", "global, separate and fused kernels", smoothing::figure_9),
        item("figure-10", "parts of an iteration", shares::figure_10),
        item("figure-11", "shares of the parts of an iteration", shares::figure_11),
        item("figure-12", "shares of levels in a cycle", shares::figure_12),
        item("figure-15", "steps of the smoother by degree, processors and GPU", smoothing::figure_15),
        item("figure-16", "shares of the parts of an iteration by kernel of the smoother", shares::figure_16),
        item("figure-17", "separate and fused kernels without bank conflicts", smoothing::figure_17),
        item(
            "figure-18",
            "time of a solve for an unknown by their number, in two precisions",
            sizes::figure_18,
        ),
        item("figure-19", "roofs of memory and arithmetic", roofline::figure_19),
        item("figure-20", "roofs of shared memory and arithmetic", roofline::figure_20),
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
