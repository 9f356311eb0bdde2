//! Figure 1: what the operations of an iteration take.

use super::throughput::sizes;
use super::{BASE, Cell, Claim, Figure, Quantity, Session, Table, UNKNOWNS, figure};
use femtile_bench::BenchError;
use femtile_bench::iterations::{IterationSeconds, MatrixFreeSystem};

/// Unknowns, and the seconds of an iteration of the fastest of several solves.
fn fastest(session: &Session, n_unknowns: usize) -> Result<(usize, IterationSeconds), BenchError> {
    BASE.look(&session.cpu, BASE.cells(n_unknowns), |a| {
        let mut system = MatrixFreeSystem::new(a, BASE.operator.components(), true)?;
        let mut best = system.parts()?;
        for _ in 0..session.settings.repeats {
            let parts = system.parts()?;
            if parts.sum() < best.sum() {
                best = parts;
            }
        }
        Ok((a.cell_loop().n_rows(), best))
    })?
}

pub(super) fn figure_1(session: &Session) -> Result<Figure, BenchError> {
    let mut found = Vec::new();
    for n_unknowns in sizes(session) {
        found.push(fastest(session, n_unknowns)?);
    }
    let of = |part: fn(&IterationSeconds) -> f64| {
        let share = |(_, parts): &(usize, IterationSeconds)| Cell::Number(100.0 * part(parts) / parts.sum());
        found.iter().map(share).collect::<Vec<_>>()
    };
    let ns = found.iter().map(|(n, parts)| Cell::Number(1e9 * parts.sum() / *n as f64)).collect();
    let table = Table::new(found.iter().map(|(n, _)| n.to_string()).collect())
        .drawn("product", of(|parts| parts.product))
        .drawn("updates", of(|parts| parts.updates))
        .drawn("dot products", of(|parts| parts.dots))
        .drawn("preconditioner", of(|parts| parts.preconditioner))
        .listed("ns an unknown", ns);
    let beside = |(_, parts): &(usize, IterationSeconds)| {
        format!("{:.0} %", 100.0 - 100.0 * parts.product / parts.sum())
    };
    let claims = vec![
        Claim {
            what: "all beside the product, largest size".into(),
            place: "Figure 1, section 1",
            theirs: "two thirds".into(),
            ours: found.last().map(beside),
        },
        Claim {
            what: "an iteration of few unknowns".into(),
            place: "Figure 1, section 3.1",
            theirs: "6·10⁻⁵ s below 10⁵ unknowns".into(),
            ours: found.first().map(|(n, parts)| format!("{:.1e} s, {n} unknowns", parts.sum())),
        },
    ];
    let notes = vec![
        "BP4, p = 5, Algorithm 1 as it stands: three updates, three dot products and the preconditioner, each a pass \
         of its own, bent cells. Ours reads a diagonal for each component. Femtile's plain iteration is fused into two passes \
         (figure-8)."
            .into(),
    ];
    let what = ("figure-1", "Share of an iteration by operation against size", Quantity::Percent, UNKNOWNS);
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}
