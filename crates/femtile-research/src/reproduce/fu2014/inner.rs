//! Figure 7: iterations against the number of inner iterations of the smoother by patches.

use super::solves::{patches, solved, system};
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure};
use femtile_bench::BenchError;
use femtile_bench::multigrid::SolveDevice;
use femtile_bench::problems::regular;

/// Refinements of the Regular mesh of the paper.
const OF_PAPER: usize = 3;
/// Inner iterations at most.
const MOST: usize = 6;

/// Iterations with 1, 2, … inner ones.
fn iterations<D: SolveDevice>(device: &D, refinements: usize) -> Result<Vec<usize>, BenchError> {
    let mesh = regular::mesh(refinements)?;
    let mut system = system(device, &mesh)?;
    let mut of = |inner| Ok(solved(&mut system, &patches(inner), 1)?.iterations);
    (1..=MOST).map(&mut of).collect()
}

pub(super) fn figure_7(session: &Session) -> Result<Figure, BenchError> {
    let refinements = if session.settings.small { 1 } else { OF_PAPER };
    let found = match &session.gpu {
        Some(gpu) => iterations(&gpu.device, refinements)?,
        None => iterations(&session.cpu, refinements)?,
    };
    let table = Table::new((1..=MOST).map(|inner| inner.to_string()).collect())
        .drawn("Regular", found.iter().map(|&count| Cell::Count(count)).collect());
    // From how many on one more saves no iteration of ten.
    let enough = found.windows(2).position(|pair| 10 * pair[1] > 9 * pair[0]).map_or(MOST, |at| at + 1);
    let claims = vec![Claim {
        what: "inner iterations after which more gain little".into(),
        place: "Figure 7, section 6.2.3",
        theirs: "3".into(),
        ours: Some(enough.to_string()),
    }];
    let what = ("figure-7", "Iterations against inner iterations", Quantity::Iterations, "inner iterations");
    Ok(Figure { claims, ..figure(session, what, table) })
}
