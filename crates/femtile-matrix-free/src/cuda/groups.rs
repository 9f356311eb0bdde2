//! Groups of cells, and their order within them.

use femtile_device::parallel;
use femtile_space::TensorSpace;

use super::batches::NONE;

/// Returns the ends of groups of `size` cells.
pub(super) fn every(n_cells: usize, size: usize) -> Vec<usize> {
    (0..n_cells).step_by(size).chain([n_cells]).collect()
}

/// Returns the ends of groups of at most `most` cells, and at least half as many. Groups are cut at the
/// largest jump of the space-filling curve, at which it leaves a cube or square. So groups share few
/// unknowns.
pub(super) fn cuts(space: &TensorSpace<'_>, most: usize) -> Vec<usize> {
    let n_cells = space.n_cells();
    let centre = |position: usize| -> [f64; 3] {
        let corners = space.corners(position);
        std::array::from_fn(|i| corners.iter().map(|&node| space.mesh().points[node as usize][i]).sum())
    };
    let leap = |position: usize| -> f64 {
        let (a, b) = (centre(position - 1), centre(position));
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum()
    };
    let leaps = parallel::map(n_cells, 1, |at| if at == 0 { 0.0 } else { leap(at) });
    let mut cuts = vec![0];
    let mut begin = 0;
    while begin + most < n_cells {
        let candidates = begin + most.div_ceil(2)..=begin + most;
        // Leaps within one percent count as equal; the last of these is taken.
        let farthest = candidates.clone().map(|at| leaps[at]).fold(0.0, f64::max);
        begin = candidates.rev().find(|&at| leaps[at] >= 0.99 * farthest).unwrap_or(begin + most);
        cuts.push(begin);
    }
    cuts.push(n_cells);
    cuts
}

/// Returns one batch of neighbours.
pub(super) fn alone(positions: std::ops::Range<usize>, cells: usize) -> Vec<u32> {
    let mut batch: Vec<u32> = positions.map(|position| position as u32).collect();
    batch.resize(cells, NONE);
    batch
}

/// Returns batches of cells without a common entity; each cell goes to the first batch with a free place.
pub(super) fn apart(space: &TensorSpace<'_>, positions: std::ops::Range<usize>, cells: usize) -> Vec<u32> {
    let mut batches: Vec<Vec<u32>> = Vec::new();
    // Corners suffice: cells with a common edge or face have common corners.
    let mut corners: Vec<Vec<u32>> = Vec::new();
    for position in positions {
        let own = space.corners(position);
        let fits = |b: usize| batches[b].len() < cells && !own.iter().any(|node| corners[b].contains(node));
        let batch = (0..batches.len()).find(|&b| fits(b)).unwrap_or(batches.len());
        if batch == batches.len() {
            batches.push(Vec::new());
            corners.push(Vec::new());
        }
        batches[batch].push(position as u32);
        corners[batch].extend_from_slice(own);
    }
    batches.iter_mut().for_each(|batch| batch.resize(cells, NONE));
    batches.concat()
}
