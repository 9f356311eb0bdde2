//! Statistics of row lengths.

use serde::Serialize;

/// Statistics of the row lengths of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowLengths {
    /// Shortest row; 0 where there are no rows.
    pub shortest: u32,
    /// Median; the lower one of an even number of rows.
    pub median: u32,
    /// Mean: entries over rows.
    pub mean: f64,
    /// Longest row.
    pub longest: u32,
    /// Number of rows without entries.
    pub n_empty: usize,
    /// Number of rows by length.
    pub histogram: Vec<Bin>,
}

/// A bin of a histogram of row lengths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Smallest length of the bin.
    pub from: u32,
    /// Largest length of the bin.
    pub to: u32,
    /// Number of rows.
    pub n_rows: usize,
}

/// Largest number of bins.
const MOST_BINS: usize = 12;

impl RowLengths {
    /// Computes the statistics of `lengths`.
    pub fn of(lengths: &[u32]) -> Self {
        let mut sorted = lengths.to_vec();
        sorted.sort_unstable();
        let total: u64 = sorted.iter().map(|&length| u64::from(length)).sum();
        Self {
            shortest: sorted.first().copied().unwrap_or(0),
            median: sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0),
            mean: total as f64 / sorted.len().max(1) as f64,
            longest: sorted.last().copied().unwrap_or(0),
            n_empty: sorted.partition_point(|&length| length == 0),
            histogram: histogram(&sorted),
        }
    }
}

/// Returns at most twelve bins: of equal width, or of doubling width where a few rows are far longer than the rest.
fn histogram(sorted: &[u32]) -> Vec<Bin> {
    let (Some(&shortest), Some(&longest)) = (sorted.first(), sorted.last()) else { return Vec::new() };
    let quartile = sorted[3 * (sorted.len() - 1) / 4];
    let mut bins = match longest > quartile.max(4).saturating_mul(4) {
        true => doubling_bins(longest),
        false => even_bins(shortest, longest, MOST_BINS),
    };
    fill(&mut bins, sorted);
    let first = bins.iter().position(|bin| bin.n_rows > 0).unwrap_or(0);
    bins.split_off(first)
}

/// Returns at most `most` empty bins of equal width.
pub(super) fn even_bins(shortest: u32, longest: u32, most: usize) -> Vec<Bin> {
    let n_lengths = u64::from(longest - shortest) + 1;
    let width = n_lengths.div_ceil(most as u64);
    let starts = (u64::from(shortest)..=u64::from(longest)).step_by(width as usize);
    starts
        .map(|from| Bin {
            from: from as u32,
            to: (from + width - 1).min(u64::from(longest)) as u32,
            n_rows: 0,
        })
        .collect()
}

/// Returns empty bins 0, 1, 2–3, 4–7, …; the last one reaches `longest`.
fn doubling_bins(longest: u32) -> Vec<Bin> {
    let mut bins = vec![Bin { from: 0, to: 0, n_rows: 0 }];
    while bins.last().is_some_and(|bin| bin.to < longest) {
        let from = bins.last().map_or(0, |bin| bin.to + 1);
        let is_last = bins.len() + 1 == MOST_BINS;
        let to = if is_last { longest } else { (2 * from - 1).min(longest) };
        bins.push(Bin { from, to, n_rows: 0 });
    }
    bins
}

/// Fills consecutive bins with the numbers of rows, whose lengths are sorted.
pub(super) fn fill(bins: &mut [Bin], sorted: &[u32]) {
    for bin in bins {
        let end = sorted.partition_point(|&length| length <= bin.to);
        bin.n_rows = end - sorted.partition_point(|&length| length < bin.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(lengths: &RowLengths) -> usize {
        lengths.histogram.iter().map(|bin| bin.n_rows).sum()
    }

    #[test]
    fn the_median_of_an_even_number_of_rows_is_the_shorter_one_in_the_middle() {
        let found = RowLengths::of(&[5, 0, 3, 2]);
        assert_eq!((found.shortest, found.median, found.longest, found.n_empty), (0, 2, 5, 1));
        assert_eq!(found.mean, 2.5);
    }

    #[test]
    fn a_matrix_without_rows_has_no_bins() {
        let found = RowLengths::of(&[]);
        assert_eq!((found.longest, found.mean, found.histogram.len()), (0, 0.0, 0));
    }

    #[test]
    fn every_row_is_in_one_of_at_most_twelve_bins() {
        for longest in [0, 1, 11, 12, 13, 100, 5000, 1 << 31, u32::MAX] {
            for most in [0, 1, 3, longest / 2, longest] {
                let mut lengths: Vec<u32> = (0..50).map(|k| k % most.saturating_add(1).max(1)).collect();
                lengths.push(longest);
                let found = RowLengths::of(&lengths);
                assert!(found.histogram.len() <= MOST_BINS, "{:?}", found.histogram);
                assert_eq!(counted(&found), lengths.len(), "{:?}", found.histogram);
            }
        }
    }

    #[test]
    fn a_few_rows_that_are_far_longer_leave_the_others_told_apart() {
        let mut lengths: Vec<u32> = (0..1000).map(|k| 2 + k % 3).collect();
        lengths.push(4700);
        let found = RowLengths::of(&lengths);
        assert!(found.histogram.iter().filter(|bin| bin.n_rows > 100).count() == 2, "{:?}", found.histogram);
        assert_eq!(found.histogram.last().map(|bin| bin.n_rows), Some(1));
    }
}
