//! Figure 18: time for an unknown by the number of them, with cycles in double and in single precision.

use super::precision::{Right, Timed, level, seconds_of};
use super::{Cell, Figure, Quantity, Session, Table, figure};
use crate::reproduce::figure::UNKNOWNS;
use femtile_bench::BenchError;

/// The degrees with curves, and the finest level of each.
const DEGREES: [(usize, usize); 3] = [(1, 10), (3, 9), (7, 8)];
const FIRST_LEVEL: usize = 4;

pub(super) fn figure_18(session: &Session) -> Result<Figure, BenchError> {
    let mut found: Vec<(usize, [Timed; 4])> = Vec::new();
    for (degree, highest) in DEGREES {
        for level in FIRST_LEVEL..=level(session, degree, highest) {
            let repeats = session.settings.repeats;
            found.push(match &session.gpu {
                Some(gpu) => (degree, seconds_of(&gpu.device, (degree, level), Right::Sine, repeats)?),
                None => (degree, seconds_of(&session.cpu, (degree, level), Right::Sine, repeats)?),
            });
        }
    }
    found.sort_by_key(|(_, both)| both[0].n_unknowns);
    let mut table = Table::new(found.iter().map(|(_, both)| both[0].n_unknowns.to_string()).collect());
    for (degree, _) in DEGREES {
        for (k, name) in ["double", "single", "GMRES, double", "GMRES, single"].into_iter().enumerate() {
            let cell = |(of, both): &(usize, [Timed; 4])| {
                let ns = 1e9 * both[k].seconds / both[k].n_unknowns as f64;
                if *of == degree { Cell::Number(ns) } else { Cell::Nothing }
            };
            table = table.drawn(&format!("Q{degree}, {name}"), found.iter().map(cell).collect());
        }
    }
    let notes = vec![format!(
        "u = sin πx sin πy sin πz by full multigrid, residual reduced by 1e9, which is seconds for 10⁹ unknowns too. Levels with \
         at most {} unknowns (--unknowns), the fastest of {}. GMRES, as in their plot: from zero with a V-cycle for preconditioner.",
        session.settings.unknowns, session.settings.repeats
    )];
    let title = "Time of a solve for an unknown, cycles in double and in single precision";
    Ok(Figure {
        notes,
        quantity: Quantity::Nanoseconds,
        abscissa: UNKNOWNS,
        ..figure(session, "figure-18", title, Vec::new(), table)
    })
}
