//! Solutions that ranks write in pieces, each its own.

use std::borrow::Cow;
use std::path::Path;

use femtile_comm::Comm;
use femtile_mesh::io::Staging;
use femtile_mesh::io::vtu::Pieces;
use femtile_mesh::partition::Partition;
use femtile_solve::{Solution, SolveError};

use crate::file_names::MESH_PIECES;
use crate::{Case, CaseError};

/// Returns the cells of each rank; those of one alone are all of them.
pub(crate) fn partition<'s>(solution: &'s Solution<'_>) -> Cow<'s, Partition> {
    let alone = || Partition::one(solution.discretization().mesh().n_cells());
    solution.partition().map_or_else(|| Cow::Owned(alone()), Cow::Borrowed)
}

/// Returns the names of the files of a solution, where its case wants it in pieces.
pub(crate) fn names(case: &Case, solution: &Solution<'_>) -> Vec<String> {
    if !case.file.output.vtu.has_pieces() {
        return Vec::new();
    }
    let partition = partition(solution);
    let ranks = Pieces { partition: &partition, only: None }.ranks();
    ranks.into_iter().map(|rank| Pieces::name(MESH_PIECES, rank)).collect()
}

/// The ranks of the program, where each of several writes its piece.
fn ranks(case: &Case) -> Option<&Comm> {
    let comm = case.embedding.comm.as_ref().filter(|comm| comm.n_ranks() > 1);
    comm.filter(|_| case.file.output.vtu.has_pieces())
}

/// Returns the one rank whose piece this process writes; none where it writes all.
pub(crate) fn own(case: &Case) -> Option<usize> {
    ranks(case).map(Comm::rank)
}

/// Tells other ranks where to write their pieces, or that they are not wanted. The first rank calls it.
pub(crate) fn tell_other_ranks(case: &Case, staging: Option<&Staging>) -> Result<(), CaseError> {
    let name = staging.and_then(|staging| staging.folder().file_name());
    told(case, name.map(|name| name.to_string_lossy()).unwrap_or_default().as_bytes()).map(drop)
}

/// Writes the piece of a rank after the first with `write`, which takes the folder, where it is wanted.
pub(crate) fn of_other_ranks<R>(
    case: &Case,
    write: impl FnOnce(&Path) -> Result<R, CaseError>,
) -> Result<(), CaseError> {
    let name = told(case, &[])?;
    if name.is_empty() {
        return Ok(());
    }
    write(&case.file.output.directory.join(String::from_utf8_lossy(&name).as_ref()))?;
    wait_for_all(case)
}

/// Returns after all ranks have written their pieces.
pub(crate) fn wait_for_all(case: &Case) -> Result<(), CaseError> {
    told(case, &[]).map(drop)
}

/// Returns what the first rank says; nothing where there are no others.
fn told(case: &Case, said: &[u8]) -> Result<Vec<u8>, CaseError> {
    let Some(comm) = ranks(case) else { return Ok(Vec::new()) };
    let all = comm.all_gather(said).map_err(SolveError::from)?;
    Ok(all.into_iter().next().unwrap_or_default())
}

/// Removes the pieces of an earlier run on more ranks.
pub(crate) fn remove_earlier(case: &Case, pieces: &[String]) {
    if pieces.is_empty() {
        return;
    }
    let names = (0..).map(|rank| Pieces::name(MESH_PIECES, rank)).filter(|name| !pieces.contains(name));
    for name in names {
        if std::fs::remove_file(case.file.output.directory.join(name)).is_err() {
            break;
        }
    }
}
