//! Sections of bodies with planes.

use std::collections::HashMap;

use crate::surface::{Source, Surface};
use crate::vector::{self, Vector, difference, dot};

/// A plane by a point and a normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plane {
    /// A point on it.
    pub origin: [f64; 3],
    /// A normal of any length, which points to the upper side.
    pub normal: [f64; 3],
}

impl Plane {
    /// Returns the distance of a point times the length of the normal, positive on the upper side.
    pub fn height(&self, point: [f64; 3]) -> f64 {
        dot(difference(point, self.origin), self.normal)
    }
}

/// Collects the triangles in which tetrahedra meet a plane.
pub(crate) struct Cutter<'a> {
    points: &'a [Vector],
    values: &'a [f64],
    heights: Vec<f64>,
    /// The point of the cut on each edge that it meets.
    on_edges: HashMap<[u32; 2], u32>,
    cut: Surface,
}

impl<'a> Cutter<'a> {
    pub fn new(plane: &Plane, points: &'a [Vector], values: &'a [f64]) -> Self {
        let heights = points.iter().map(|&point| plane.height(point)).collect();
        Self { points, values, heights, on_edges: HashMap::new(), cut: Surface::default() }
    }

    /// Returns whether corners lie on both sides.
    pub fn meets(&self, corners: &[u32]) -> bool {
        let is_below = |corner: u32| self.heights[corner as usize] <= 0.0;
        corners.iter().any(|&corner| is_below(corner) != is_below(corners[0]))
    }

    /// Adds the section of a tetrahedron: a triangle, or a quadrilateral as two.
    pub fn tetrahedron(&mut self, corners: [u32; 4]) {
        let is_below = |corner: &u32| self.heights[*corner as usize] <= 0.0;
        let (below, above): (Vec<u32>, Vec<u32>) = corners.into_iter().partition(is_below);
        match (below.as_slice(), above.as_slice()) {
            (&[a], others) | (others, &[a]) if others.len() == 3 => {
                let triangle = [0, 1, 2].map(|i| self.on_edge(a, others[i]));
                self.cut.triangles.push(triangle);
            }
            (&[a, b], &[c, d]) => {
                let [p, q, r, s] = [(a, c), (a, d), (b, d), (b, c)].map(|(from, to)| self.on_edge(from, to));
                self.cut.triangles.extend([[p, q, r], [p, r, s]]);
            }
            _ => {}
        }
    }

    fn on_edge(&mut self, a: u32, b: u32) -> u32 {
        let ends = [a.min(b), a.max(b)];
        let cut = &mut self.cut;
        *self.on_edges.entry(ends).or_insert_with(|| {
            let [a, b] = ends.map(|node| node as usize);
            let share = self.heights[a] / (self.heights[a] - self.heights[b]);
            let source = Source { ends, share };
            cut.points.push(vector::between(self.points[a], self.points[b], share));
            cut.values.push(source.value(self.values));
            cut.sources.push(source);
            cut.points.len() as u32 - 1
        })
    }

    pub fn finish(self) -> Surface {
        self.cut
    }
}
