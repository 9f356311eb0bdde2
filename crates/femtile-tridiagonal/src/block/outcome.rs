/// The outcome of solving a batch of block tridiagonal systems.
///
/// Every entry of the solution of a system that failed is NaN; all other systems are solved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a system whose pivot vanished is filled with NaN"]
pub struct BlockOutcome {
    /// Systems that failed.
    pub n_failed: u64,
    /// The first of them.
    pub first: Option<BlockFailure>,
}

/// Where a system could not be solved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFailure {
    /// The system.
    pub system: usize,
    /// The block row with a pivot that is zero, lost to rounding or not a number, as the algorithm met it.
    pub row: usize,
}

impl BlockOutcome {
    /// Returns whether all systems were solved.
    pub fn is_solved(&self) -> bool {
        self.n_failed == 0
    }
}

impl std::fmt::Display for BlockOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.first {
            None => f.write_str("all systems were solved"),
            Some(first) => write!(
                f,
                "{} of the systems could not be solved, first block row {} of system {}: a pivot there is zero or \
                 lost to rounding, or an entry is not finite; check that row, or solve with partial pivoting",
                self.n_failed, first.row, first.system
            ),
        }
    }
}
