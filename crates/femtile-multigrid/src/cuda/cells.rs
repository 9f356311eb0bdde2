use femtile_device::cuda::{Header, Structure};

use crate::axis::unknowns;
use crate::grid::{BoxGrid, all};

pub(super) const CELLS_HEADER: Header = Header { name: "cells.cuh", text: include_str!("cells.cuh") };

/// The cells of a launch.
pub(super) struct Cells {
    pub n: usize,
    words: Vec<u64>,
}

impl Cells {
    /// Returns all cells of a grid.
    pub fn all(grid: &BoxGrid) -> Self {
        Self::every(grid, [1; 3], [0; 3])
    }

    /// Returns the cells of each colour; cells of a colour share no node.
    pub fn colours(grid: &BoxGrid) -> impl Iterator<Item = Self> {
        all([2; 3]).map(|places| Self::every(grid, [2; 3], places)).filter(|cells| cells.n > 0)
    }

    /// Returns the first of every `length` cells along x, coloured along the other axes.
    pub fn rows(grid: &BoxGrid, length: usize) -> impl Iterator<Item = Self> {
        all([1, 2, 2])
            .map(move |places| Self::every(grid, [length, 2, 2], places))
            .filter(|cells| cells.n > 0)
    }

    /// Returns the first cell of each tile of these numbers of cells along each axis.
    pub fn tiles(grid: &BoxGrid, cells: [usize; 3]) -> Self {
        Self::every(grid, cells, [0; 3])
    }

    fn every(grid: &BoxGrid, steps: [usize; 3], places: [usize; 3]) -> Self {
        // One along an absent axis.
        let cells = [0, 1, 2].map(|axis| grid.widths(axis).len().max(1));
        let counts = [0, 1, 2].map(|axis| (cells[axis] - places[axis]).div_ceil(steps[axis]));
        let nodes = [0, 1, 2].map(|axis| unknowns(grid.nodes()[axis], grid.free_sides()[axis]));
        let (lowest, highest) = (nodes.each_ref().map(|n| n.start), nodes.each_ref().map(|n| n.end - 1));
        let words = [counts, places, steps, cells, lowest, highest].into_iter().flatten();
        Self { n: counts.iter().product(), words: words.map(|word| word as u64).collect() }
    }

    /// Returns `struct Cells` of the kernels.
    pub fn structure(&self) -> Structure {
        Structure(self.words.clone())
    }
}
