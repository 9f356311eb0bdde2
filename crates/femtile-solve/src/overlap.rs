//! Overlap of boundary conditions.

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
    let mut winners = vec![0; n_parts];
    for (condition, parts) in holds.iter().enumerate() {
        parts.iter().for_each(|&part| winners[part as usize] = condition);
    }
    let mut found = Vec::new();
    for (loser, parts) in holds.iter().enumerate() {
        let mut lost = vec![0; holds.len()];
        parts.iter().for_each(|&part| lost[winners[part as usize]] += 1);
        let n_kept = std::mem::take(&mut lost[loser]);
        let is_default = is_all(loser) && n_kept > 0;
        let takers = lost.iter().enumerate().filter(|&(_, &n)| n > 0 && !is_default);
        found.extend(takers.map(|(taker, &n_taken)| Overlap {
            loser,
            taker,
            n_taken,
            n_named: parts.len(),
            n_kept,
        }));
    }
    found
}
