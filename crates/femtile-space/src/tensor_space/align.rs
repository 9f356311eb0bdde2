//! Alignment of the axes of cells, so that neighbours have the same order of shared unknowns.
//!
//! Opposite edges of a square belong to one class, and a class has one direction. The axes of a cell follow
//! the order of their classes. A class that returns reversed, or that has two axes of one cell, leaves
//! irregular cells.

use super::entities;
use super::orientation::Orientation;
use crate::shared_entities::SharedEntities;

/// Classes of edges; each edge runs with or against the direction of its class.
struct Classes {
    /// The parent of each edge in its tree, itself at the root, and whether it runs against the parent.
    above: Vec<(u32, bool)>,
}

impl Classes {
    fn new(n_edges: usize) -> Self {
        Self { above: (0..n_edges as u32).map(|edge| (edge, false)).collect() }
    }

    /// Returns the root edge and whether this edge runs against it.
    fn find(&mut self, edge: u32) -> (u32, bool) {
        let (mut top, mut against) = self.above[edge as usize];
        while self.above[top as usize].0 != top {
            let (next, turn) = self.above[top as usize];
            (top, against) = (next, against ^ turn);
        }
        self.above[edge as usize] = (top, against);
        (top, against)
    }

    /// Merges the classes of two edges; edges of one class stay as they are.
    fn join(&mut self, a: u32, b: u32, against: bool) {
        let ((a, of_a), (b, of_b)) = (self.find(a), self.find(b));
        if a != b {
            self.above[b as usize] = (a, of_a ^ of_b ^ against);
        }
    }
}

/// Returns axes for each cell, in the order of the cells.
pub(super) fn align(cell_corners: &[u32], edges: &SharedEntities, d: usize) -> Vec<Orientation> {
    let (n_cells, n_locals, across) = (cell_corners.len() >> d, edges.n_locals(), 1 << (d - 1));
    // Edges along each axis, by their place in `locals`.
    let locals = entities::of_dimension(1, d);
    let along: Vec<Vec<usize>> = (0..d)
        .map(|axis| {
            let is_along = |&local: &usize| entities::digits(locals[local])[axis] == 1;
            (0..n_locals).filter(is_along).collect()
        })
        .collect();
    let descends = |place: usize| {
        let mut nodes = edges.nodes(cell_corners, place);
        nodes.next() > nodes.next()
    };
    let mut classes = Classes::new(edges.len());
    for cell in 0..n_cells {
        for along in &along {
            let first = cell * n_locals + along[0];
            for &local in &along[1..across] {
                let other = cell * n_locals + local;
                let against = descends(first) ^ descends(other);
                classes.join(edges.numbers[first], edges.numbers[other], against);
            }
        }
    }
    // A class takes the direction, and the rank, of its first occurrence.
    let mut met: Vec<Option<(u32, bool)>> = vec![None; edges.len()];
    let mut n_met = 0;
    let mut orientations = Vec::with_capacity(n_cells);
    for cell in 0..n_cells {
        let mut axes = [(u32::MAX, false, 2u8); 3];
        for (axis, along) in along.iter().enumerate() {
            let place = cell * n_locals + along[0];
            let (top, against) = classes.find(edges.numbers[place]);
            let runs = against ^ descends(place);
            let (rank, direction) = *met[top as usize].get_or_insert_with(|| {
                n_met += 1;
                (n_met - 1, runs)
            });
            axes[axis] = (rank, runs ^ direction, axis as u8);
        }
        axes[..d].sort_by_key(|axis| axis.0);
        orientations.push(Orientation { axes: axes.map(|axis| axis.2), flips: axes.map(|axis| axis.1) });
    }
    orientations
}
