//! Overlap of boundary conditions.

use femtile_comm::Comm;
use femtile_linalg::LinalgError;

/// Parts of the boundary where one condition overrides an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The number of the overridden condition.
    pub loser: usize,
    /// The number of the overriding condition.
    pub taker: usize,
    /// Number of overridden parts.
    pub n_taken: usize,
    /// Number of parts that the overridden condition names.
    pub n_named: usize,
    /// Number of parts that it keeps.
    pub n_kept: usize,
}

impl Overlap {
    /// Returns the warning, with the names of both conditions and of the parts.
    pub fn warning(&self, name: impl Fn(usize) -> String, noun: &str) -> String {
        let left = if self.n_kept == 0 { ", which then holds nowhere" } else { "" };
        format!(
            "{} takes {} of the {} {noun} of {}{left}: where entries overlap, the last one holds; put the one that shall \
             hold last, or narrow the `where` of the other",
            name(self.taker),
            self.n_taken,
            self.n_named,
            name(self.loser)
        )
    }
}

/// Returns the overlaps of conditions with later ones, where `holds[condition]` lists the parts of a condition among `n_parts`.
///
/// A condition on `all` that keeps some of its parts is a default and not reported.
pub fn overlaps(holds: &[Vec<u32>], n_parts: usize, is_all: impl Fn(usize) -> bool) -> Vec<Overlap> {
    of_counts(&counts(holds, n_parts, |_| true), is_all)
}

/// As [`overlaps`], for conditions on the parts of all ranks; each rank counts only what it owns. Collective.
pub(crate) fn overlaps_of_ranks(
    comm: &Comm,
    (holds, n_parts): (&[Vec<u32>], usize),
    is_own: impl Fn(u32) -> bool,
    is_all: impl Fn(usize) -> bool,
) -> Result<Vec<Overlap>, LinalgError> {
    let held = counts(holds, n_parts, is_own);
    let mut all: Vec<f64> = held.iter().flatten().map(|&n| n as f64).collect();
    comm.sum_values(&mut all)?;
    let rows = all.chunks(holds.len().max(1));
    let held: Vec<Vec<usize>> = rows.map(|row| row.iter().map(|&n| n as usize).collect()).collect();
    Ok(of_counts(&held, is_all))
}

/// How many parts of each condition, in a row, each one holds.
fn counts(holds: &[Vec<u32>], n_parts: usize, counts: impl Fn(u32) -> bool) -> Vec<Vec<usize>> {
    let winners = winners(holds, n_parts);
    let of_condition = |parts: &Vec<u32>| {
        let mut held = vec![0; holds.len()];
        parts.iter().filter(|&&part| counts(part)).for_each(|&part| held[winners[part as usize]] += 1);
        held
    };
    holds.iter().map(of_condition).collect()
}

/// The last condition that names each part.
fn winners(holds: &[Vec<u32>], n_parts: usize) -> Vec<usize> {
    let mut winners = vec![0; n_parts];
    for (condition, parts) in holds.iter().enumerate() {
        parts.iter().for_each(|&part| winners[part as usize] = condition);
    }
    winners
}

/// The overlaps, from how many parts of each condition, in a row, each holds.
fn of_counts(held: &[Vec<usize>], is_all: impl Fn(usize) -> bool) -> Vec<Overlap> {
    let mut found = Vec::new();
    for (loser, held) in held.iter().enumerate() {
        let (n_kept, n_named) = (held[loser], held.iter().sum());
        let is_default = is_all(loser) && n_kept > 0;
        let takers = held.iter().enumerate().filter(|&(taker, &n)| n > 0 && taker != loser && !is_default);
        found.extend(takers.map(|(taker, &n_taken)| Overlap { loser, taker, n_taken, n_named, n_kept }));
    }
    found
}
