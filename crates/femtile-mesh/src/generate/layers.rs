//! Layers of tetrahedra over a triangulated surface.

use super::tabulate::tabulate;
use crate::MeshError;
use crate::interrupt::Interrupt;

/// Nodes that carry a layered mesh: node `i` of the surface becomes `i + layer × n_surface`.
pub(super) struct Layers<'a> {
    /// Triangles of the surface, counter-clockwise seen from the layers above.
    pub triangles: &'a [[u32; 3]],
    /// Number of nodes of the surface.
    pub n_surface: usize,
    /// Number of layers of cells.
    pub n_layers: usize,
}

impl Layers<'_> {
    /// Three tetrahedra for each triangle and layer.
    ///
    /// Each prism is cut by the numbers of its nodes: with the corners of the triangle in ascending order, a
    /// path climbs from the bottom to the top one corner after another, as Kuhn's split does. The wall
    /// between two prisms is cut from the smaller node below to the larger node above, so both prisms cut it
    /// alike.
    pub fn tetrahedra(&self, interrupt: Interrupt<'_>) -> Result<Vec<u32>, MeshError> {
        let n = self.n_surface as u32;
        let n_triangles = self.triangles.len();
        tabulate((n_triangles * self.n_layers, 12), interrupt, |prism, cells: &mut [u32]| {
            let (triangle, layer) = (self.triangles[prism % n_triangles], (prism / n_triangles) as u32);
            let mut sorted = triangle;
            sorted.sort_unstable();
            let [a, b, c] = sorted.map(|node| node + layer * n);
            // An odd permutation turns every tetrahedron over; two exchanged nodes turn it back.
            let is_even = (0..3).any(|i| (0..3).all(|j| triangle[(i + j) % 3] == sorted[j]));
            let tetrahedra = [[a, b, c, c + n], [a, b + n, b, c + n], [a, a + n, b + n, c + n]];
            for (cell, [p, q, r, s]) in cells.as_chunks_mut().0.iter_mut().zip(tetrahedra) {
                *cell = if is_even { [p, q, r, s] } else { [p, r, q, s] };
            }
        })
    }

    /// The triangles on the walls over directed edges of the rim, outwards if the surface lies on the left of
    /// the edge.
    pub fn walls(&self, rim: &[[u32; 2]]) -> Vec<u32> {
        let n = self.n_surface as u32;
        let mut facets = Vec::with_capacity(6 * rim.len() * self.n_layers);
        for layer in 0..self.n_layers as u32 {
            for edge in rim {
                let [p, q] = edge.map(|node| node + layer * n);
                facets.extend(match p < q {
                    true => [p, q, q + n, p, q + n, p + n],
                    false => [p, q, p + n, q, q + n, p + n],
                });
            }
        }
        facets
    }

    /// The triangles below the first layer and above the last one, both outwards.
    pub fn lids(&self) -> [Vec<u32>; 2] {
        let top = (self.n_surface * self.n_layers) as u32;
        [
            self.triangles.iter().flat_map(|&[a, b, c]| [a, c, b]).collect(),
            self.triangles.iter().flat_map(|triangle| triangle.map(|node| node + top)).collect(),
        ]
    }
}
