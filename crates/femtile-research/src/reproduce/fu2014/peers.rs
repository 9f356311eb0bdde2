use femtile::device::Cpu;

use super::{Absent, Session};
use femtile_bench::BenchError;
use femtile_bench::multigrid::{PeerSolves, Peers};
use femtile_bench::problems::EllipticSystem;

/// Solves a system with other libraries; none if they were left out.
pub(super) fn solve(
    session: &Session,
    system: &EllipticSystem<Cpu>,
    repeats: usize,
) -> Result<Vec<PeerSolves>, BenchError> {
    if !session.settings.peers {
        return Ok(Vec::new());
    }
    let mut peers = session.fu2014.peers.borrow_mut();
    let peers = match &mut *peers {
        Some(peers) => peers,
        none => none.insert(Peers::new()?),
    };
    peers.take(&system.a, &system.b)?;
    Ok(peers.solve(session.cpu.threads(), repeats))
}

/// Those that did not run.
pub(super) fn absent(session: &Session) -> Vec<Absent> {
    session.fu2014.peers.borrow().as_ref().map_or_else(Vec::new, |peers| peers.absent.clone())
}

/// The methods that were measured, in their order.
pub(super) fn methods<'a>(all: impl Iterator<Item = &'a PeerSolves>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in all.map(PeerSolves::name) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
