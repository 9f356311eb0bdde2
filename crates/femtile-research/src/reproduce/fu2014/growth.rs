//! Figure 6: iterations against the number of nodes, on refinements of one mesh.

use super::solves::{amg, solved, system};
use super::theirs::MESHES;
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure, times};
use femtile_bench::BenchError;
use femtile_bench::multigrid::{Preconditioning, SolveDevice};
use femtile_bench::problems::regular;

/// Refinements of the Regular mesh of the paper.
const OF_PAPER: usize = 3;

/// Ways of preconditioning, by name.
fn ways() -> [(&'static str, Preconditioning); 3] {
    [("multigrid", amg()), ("Jacobi-CG", Preconditioning::Jacobi), ("CG", Preconditioning::None)]
}

/// Nodes, and iterations in each way.
fn iterations<D: SolveDevice>(device: &D, refinements: usize) -> Result<(usize, [usize; 3]), BenchError> {
    let mesh = regular::mesh(refinements)?;
    let mut system = system(device, &mesh)?;
    let mut counts = [0; 3];
    for (count, (_, how)) in counts.iter_mut().zip(ways()) {
        *count = solved(&mut system, &how, 1)?.iterations;
    }
    Ok((mesh.n_nodes(), counts))
}

pub(super) fn figure_6(session: &Session) -> Result<Figure, BenchError> {
    let most = if session.settings.small { 1 } else { OF_PAPER + 1 };
    let mut found = Vec::new();
    for refinements in 0..=most {
        found.push(match &session.gpu {
            Some(gpu) => iterations(&gpu.device, refinements)?,
            None => iterations(&session.cpu, refinements)?,
        });
    }
    let mut table = Table::new(found.iter().map(|(n_nodes, _)| n_nodes.to_string()).collect());
    for (k, (name, _)) in ways().into_iter().enumerate() {
        table = table.drawn(name, found.iter().map(|(_, counts)| Cell::Count(counts[k])).collect());
    }
    let [patch, .., cg] = MESHES[0].solves;
    for (name, count) in [("patch, theirs", patch.1), ("CG, theirs", cg.1)] {
        let at = |refinements| if refinements == OF_PAPER { Cell::Count(count) } else { Cell::Nothing };
        table = table.drawn(name, (0..=most).map(at).collect());
    }
    let growth = |k: usize, from: usize, to: usize| {
        Some(times(found.get(to)?.1[k] as f64 / found.get(from)?.1[k] as f64))
    };
    let claim = |what: &str, ours| Claim {
        what: what.into(),
        place: "Figure 6, section 6.2.2",
        theirs: "plot only".into(),
        ours,
    };
    let claims = vec![
        claim("multigrid, 274,625 nodes over 4,913", growth(0, 1, OF_PAPER)),
        claim("multigrid, 2,146,689 nodes over 274,625", growth(0, OF_PAPER, OF_PAPER + 1)),
        claim("CG, 274,625 nodes over 4,913", growth(2, 1, OF_PAPER)),
    ];
    let device = if session.gpu.is_some() { "Solved on the GPU." } else { "Solved on the CPU." };
    let what = ("figure-6", "Iterations against nodes, Regular", Quantity::Iterations, "nodes");
    Ok(Figure { claims, notes: vec![device.into()], ..figure(session, what, table) })
}
