use crate::AmgError;
use crate::config::MOST_COARSE_ROWS;

/// Settings of [`AggregationAmg`](super::AggregationAmg).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregationConfig {
    /// Passes of pairwise aggregation from one level to the next, each of which halves the rows: 2 to 4. Default 2. With 3 the
    /// coarser levels need half the memory, and solves up to two thirds more iterations.
    pub passes: usize,
    /// A level of at most this many rows is solved directly, at most 2,000. Default 200.
    pub coarse_rows: usize,
}

impl Default for AggregationConfig {
    fn default() -> Self {
        Self { passes: 2, coarse_rows: 200 }
    }
}

impl AggregationConfig {
    /// Checks the settings.
    pub(super) fn check(&self) -> Result<(), AmgError> {
        let wrong = |field, message| Err(AmgError::Setting { field, message });
        if !(2..=4).contains(&self.passes) {
            return wrong("passes", format!("{} is not between 2 and 4; 2 is a good choice", self.passes));
        }
        if self.coarse_rows > MOST_COARSE_ROWS {
            let message =
                format!("{} rows are too many to factorize: at most {MOST_COARSE_ROWS}", self.coarse_rows);
            return wrong("coarse_rows", message);
        }
        Ok(())
    }
}
