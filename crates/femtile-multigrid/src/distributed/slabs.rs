//! How a box is divided among ranks: each has layers of cells across the last axis.

use std::ops::Range;

/// Layers of cells of each rank, from one cut to the next.
///
/// A rank owns the planes of nodes above its first cut, up to its last cut. The first rank with layers also
/// owns the lowest plane. The owners of nodes, edges and faces of a mesh follow from the owners of its cells
/// by the same rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slabs {
    cuts: Vec<usize>,
}

impl Slabs {
    /// Divides layers among ranks, evenly.
    pub fn new(n_layers: usize, n_ranks: usize) -> Self {
        Self { cuts: (0..=n_ranks).map(|rank| rank * n_layers / n_ranks.max(1)).collect() }
    }

    /// Returns the rank that owns a layer of the divided range.
    pub fn rank_of(&self, layer: usize) -> usize {
        self.cuts.partition_point(|&cut| cut <= layer) - 1
    }

    /// Returns the fewest layers of a rank.
    pub(super) fn fewest(&self) -> usize {
        self.cuts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(0)
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.cuts.len() - 1
    }

    fn n_layers(&self) -> usize {
        self.cuts[self.cuts.len() - 1]
    }

    /// Joins layers in groups of `factor`, 1 or 2.
    pub(super) fn joined(&self, factor: usize) -> Self {
        Self { cuts: self.cuts.iter().map(|cut| cut / factor).collect() }
    }

    /// Returns the planes of nodes that a rank owns.
    pub fn planes(&self, degree: usize, rank: usize) -> Range<usize> {
        let [begin, end] = [self.cuts[rank], self.cuts[rank + 1]];
        let first = if begin == 0 && end > 0 { 0 } else { degree * begin + 1 };
        first..(degree * end + 1).max(first)
    }

    /// Returns the layers of a rank with some below and above; the range begins and ends at even layers.
    pub(super) fn extended(&self, rank: usize, [below, above]: [usize; 2]) -> Range<usize> {
        let [begin, end] = [self.cuts[rank], self.cuts[rank + 1]];
        let begin = begin.saturating_sub(below) / 2 * 2;
        begin..(end + above).next_multiple_of(2).min(self.n_layers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plane_has_one_owner() {
        for n_ranks in 1..7 {
            for n_layers in 0..20 {
                let slabs = Slabs::new(n_layers, n_ranks);
                for degree in [1, 3] {
                    let planes: Vec<usize> =
                        (0..n_ranks).flat_map(|rank| slabs.planes(degree, rank)).collect();
                    let all: Vec<usize> = (0..degree * n_layers + 1).collect();
                    assert_eq!(planes, if n_layers == 0 { vec![] } else { all }, "{n_ranks} {n_layers}");
                }
                (0..n_layers).for_each(|layer| {
                    let rank = slabs.rank_of(layer);
                    assert!(slabs.cuts[rank] <= layer && layer < slabs.cuts[rank + 1]);
                });
            }
        }
    }

    #[test]
    fn joined_layers_lie_in_the_extended_ones() {
        for n_ranks in 1..6 {
            for n_layers in (4..60).step_by(2) {
                let fine = Slabs::new(n_layers, n_ranks);
                let coarse = fine.joined(2);
                for (rank, below) in (0..n_ranks).flat_map(|rank| [(rank, 0), (rank, 2)]) {
                    let [fine, coarse] = [&fine, &coarse].map(|slabs| slabs.extended(rank, [below, 2]));
                    let half = fine.start / 2..fine.end.div_ceil(2);
                    assert!(coarse.start <= half.start && half.end <= coarse.end, "{half:?} {coarse:?}");
                }
            }
        }
    }
}
