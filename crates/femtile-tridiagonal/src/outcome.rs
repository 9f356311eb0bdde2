/// The outcome of solving a batch.
///
/// Along lines that failed every entry of the solution is NaN; all other lines are solved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a line whose pivot vanished is filled with NaN"]
pub struct TridiagonalOutcome {
    /// Lines that failed.
    pub n_failed: u64,
    /// The first of them.
    pub first: Option<LineFailure>,
}

/// Where a system could not be solved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineFailure {
    /// The line, in the order of [`super::Lines`].
    pub line: usize,
    /// The row whose pivot is zero, lost to rounding or not a number, as the algorithm met it.
    pub row: usize,
    /// The same row as an index of the array.
    pub index: Vec<usize>,
}

impl TridiagonalOutcome {
    /// Returns whether all lines were solved.
    pub fn is_solved(&self) -> bool {
        self.n_failed == 0
    }
}

impl std::fmt::Display for TridiagonalOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.first {
            None => f.write_str("all systems were solved"),
            Some(first) => write!(
                f,
                "{} of the systems could not be solved, first row {} of system {} (index {:?}): the pivot there is \
                 zero or lost to rounding, or an entry is not finite; check that row, or solve with partial pivoting",
                self.n_failed, first.row, first.line, first.index
            ),
        }
    }
}
