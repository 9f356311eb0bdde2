//! Solution files in pieces, one per rank.
//!
//! With `[output] vtu = "pieces"` each process writes the cells of its rank into the staging folder of the first
//! process. The first one tells the name of this folder and moves all files together.

use std::borrow::Cow;
use std::path::Path;

use femtile_comm::Comm;
use femtile_mesh::io::Staging;
use femtile_mesh::io::vtu::Pieces;
use femtile_mesh::partition::Partition;
use femtile_solve::{Solution, SolveError};

use crate::file_names::MESH_PIECES;
use crate::{Case, CaseError};

/// Returns the cells of each rank; a single rank has all of them.
pub(crate) fn partition<'s>(solution: &'s Solution<'_>) -> Cow<'s, Partition> {
    let alone = || Partition::one(solution.discretization().mesh().n_cells());
    solution.partition().map_or_else(|| Cow::Owned(alone()), Cow::Borrowed)
}

/// Returns the names of the files of a solution, if its case wants it in pieces.
pub(crate) fn names(case: &Case, solution: &Solution<'_>) -> Vec<String> {
    if !case.file.output.vtu.has_pieces() {
        return Vec::new();
    }
    if solution.is_distributed() {
        return possible_names(case);
    }
    let partition = partition(solution);
    let ranks = Pieces { partition: &partition, only: None }.ranks();
    ranks.into_iter().map(|rank| Pieces::name(MESH_PIECES, rank)).collect()
}

/// The communicator, if each of several ranks writes its piece.
fn ranks(case: &Case) -> Option<&Comm> {
    let comm = case.embedding.comm.as_ref().filter(|comm| comm.n_ranks() > 1);
    comm.filter(|_| case.file.output.vtu.has_pieces())
}

/// Returns the rank whose piece this process writes; none if it writes the whole solution.
pub(crate) fn own(case: &Case) -> Option<usize> {
    ranks(case).map(Comm::rank)
}

/// Sends the other ranks the folder for their pieces, or that none are needed. Called by the first rank.
pub(crate) fn tell_other_ranks(case: &Case, staging: Option<&Staging>) -> Result<(), CaseError> {
    let name = staging.and_then(|staging| staging.folder().file_name());
    message_of_first_rank(case, name.map(|name| name.to_string_lossy()).unwrap_or_default().as_bytes())
        .map(drop)
}

/// Writes the piece of a rank other than the first, if pieces are needed; `write` gets the folder.
pub(crate) fn of_other_ranks<R>(
    case: &Case,
    write: impl FnOnce(&Path) -> Result<R, CaseError>,
) -> Result<(), CaseError> {
    let name = message_of_first_rank(case, &[])?;
    if name.is_empty() {
        return Ok(());
    }
    write(&case.file.output.directory.join(String::from_utf8_lossy(&name).as_ref()))?;
    wait_for_all(case)
}

/// Returns after all ranks have written their pieces.
pub(crate) fn wait_for_all(case: &Case) -> Result<(), CaseError> {
    message_of_first_rank(case, &[]).map(drop)
}

/// Returns the message of the first rank; empty if there is only one rank.
fn message_of_first_rank(case: &Case, said: &[u8]) -> Result<Vec<u8>, CaseError> {
    let Some(comm) = ranks(case) else { return Ok(Vec::new()) };
    let all = comm.all_gather(said).map_err(SolveError::from)?;
    Ok(all.into_iter().next().unwrap_or_default())
}

/// Returns the names of files that a run on the ranks of its case may write.
pub(crate) fn possible_names(case: &Case) -> Vec<String> {
    let n_ranks = if case.file.output.vtu.has_pieces() { case.ranks().n() } else { 0 };
    (0..n_ranks).map(|rank| Pieces::name(MESH_PIECES, rank)).collect()
}

/// Returns the pieces of an earlier run in a folder that a new run does not overwrite.
pub(crate) fn earlier(folder: &Path, pieces: &[String]) -> Vec<String> {
    let mut found = if pieces.is_empty() { Vec::new() } else { in_folder(folder).unwrap_or_default() };
    found.retain(|name| !pieces.contains(name));
    found
}

/// Returns the names of pieces in a folder, ascending.
pub(crate) fn in_folder(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("solution_").and_then(|name| name.strip_suffix(".vtu"));
        if number
            .and_then(|number| number.parse().ok())
            .is_some_and(|rank| name == Pieces::name(MESH_PIECES, rank))
        {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether any rank was interrupted, so that fields are left out: all pieces must have the same
/// fields. None if this process writes alone.
pub(crate) fn agreed_interrupt(case: &Case, is_interrupted: bool) -> Result<Option<bool>, CaseError> {
    let Some(comm) = ranks(case) else { return Ok(None) };
    let [is_interrupted] = comm.any([is_interrupted]).map_err(SolveError::from)?;
    Ok(Some(is_interrupted))
}
