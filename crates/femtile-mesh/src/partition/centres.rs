//! Points that are computed if they are needed.

use crate::Mesh;

/// Points by their numbers. Computing a point twice costs less than storing all: centres of cells would need
/// more memory than the cells.
pub(super) trait Places: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// One coordinate of a point.
    fn along(&self, place: usize, axis: usize) -> f64;

    /// All coordinates of a point.
    fn at(&self, place: usize) -> [f64; 3];
}

/// The centres of cells of `N` nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Centres<'a, const N: usize> {
    cells: &'a [[u32; N]],
    points: &'a [[f64; 3]],
}

impl<'a, const N: usize> Centres<'a, N> {
    /// Creates the centres of a mesh whose cells have `N` nodes.
    pub(super) fn of(mesh: &'a Mesh) -> Self {
        debug_assert_eq!(mesh.kind.n_nodes(), N, "nodes of a cell");
        Self { cells: mesh.cells.as_chunks().0, points: &mesh.points }
    }
}

impl<const N: usize> Places for Centres<'_, N> {
    fn len(&self) -> usize {
        self.cells.len()
    }

    #[inline]
    fn along(&self, place: usize, axis: usize) -> f64 {
        let nodes = &self.cells[place];
        let first = self.points[nodes[0] as usize][axis];
        let sum = nodes[1..].iter().fold(first, |sum, &node| sum + self.points[node as usize][axis]);
        sum / N as f64
    }

    #[inline]
    fn at(&self, place: usize) -> [f64; 3] {
        let nodes = &self.cells[place];
        let mut sum = self.points[nodes[0] as usize];
        for &node in &nodes[1..] {
            let point = &self.points[node as usize];
            (0..3).for_each(|axis| sum[axis] += point[axis]);
        }
        (0..3).for_each(|axis| sum[axis] /= N as f64);
        sum
    }
}

impl Places for [[f64; 3]] {
    fn len(&self) -> usize {
        self.len()
    }

    fn along(&self, place: usize, axis: usize) -> f64 {
        self[place][axis]
    }

    fn at(&self, place: usize) -> [f64; 3] {
        self[place]
    }
}
