//! Triangles with a value at each corner.

use crate::cut::Plane;
use crate::vector::{self, Vector, cross, difference, dot, unit};

/// A point of a surface between two points of the body that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Source {
    /// Numbers of the points of the body.
    pub ends: [u32; 2],
    /// Share of the way from the first to the second.
    pub share: f64,
}

impl Source {
    /// Returns the value of a field of the body.
    pub fn value(&self, field: &[f64]) -> f64 {
        let [a, b] = self.ends.map(|end| field[end as usize]);
        if self.share == 0.0 { a } else { a + self.share * (b - a) }
    }
}

/// Triangles with a value at each corner; each point belongs to a triangle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surface {
    /// Coordinates of the points.
    pub points: Vec<[f64; 3]>,
    /// A value for each point; NaN where there is none.
    pub values: Vec<f64>,
    /// Points of each triangle.
    pub triangles: Vec<[u32; 3]>,
    /// The source of each point, for values of other fields; empty for surfaces that are put together.
    pub sources: Vec<Source>,
}

/// Splits triangles or quadrilaterals into triangles.
pub(crate) fn triangles_of(facets: &[u32], n: usize) -> Vec<[u32; 3]> {
    let facets = facets.chunks_exact(n);
    let split = |facet: &[u32]| (2..n).map(|i| [facet[0], facet[i - 1], facet[i]]).collect::<Vec<_>>();
    facets.flat_map(split).collect()
}

impl Surface {
    /// Takes the points that triangles use.
    pub(crate) fn of_facets(points: &[Vector], triangles: &[[u32; 3]], values: &[f64]) -> Self {
        let mut used: Vec<u32> = triangles.as_flattened().to_vec();
        used.sort_unstable();
        used.dedup();
        let mut place_of = vec![0; points.len()];
        used.iter().zip(0..).for_each(|(&point, place)| place_of[point as usize] = place);
        Self {
            points: used.iter().map(|&point| points[point as usize]).collect(),
            values: used.iter().map(|&point| values[point as usize]).collect(),
            triangles: triangles.iter().map(|nodes| nodes.map(|node| place_of[node as usize])).collect(),
            sources: used.iter().map(|&point| Source { ends: [point; 2], share: 0.0 }).collect(),
        }
    }

    /// Draws segments on a line as a ribbon with a tenth of its length.
    pub(crate) fn ribbon(points: &[Vector], segments: &[u32], values: &[f64]) -> Self {
        let [low, high] = vector::bounds(points);
        let (n, height) = (points.len() as u32, 0.1 * vector::length(difference(high, low)));
        let raised = points.iter().map(|&[x, y, z]| [x, y + height, z]);
        let strips = segments.chunks_exact(2).flat_map(|ends| {
            let [a, b] = [ends[0], ends[1]];
            [[a, b, b + n], [a, b + n, a + n]]
        });
        Self {
            points: points.iter().copied().chain(raised).collect(),
            values: [values, values].concat(),
            triangles: strips.collect(),
            sources: (0..n).chain(0..n).map(|point| Source { ends: [point; 2], share: 0.0 }).collect(),
        }
    }

    /// Returns the total area.
    pub fn area(&self) -> f64 {
        self.triangles.iter().map(|triangle| 0.5 * vector::length(self.normal(triangle))).sum()
    }

    /// Returns the least and the largest coordinates.
    pub fn bounds(&self) -> [[f64; 3]; 2] {
        vector::bounds(&self.points)
    }

    /// Returns the least and the largest finite value; none where no value is finite.
    pub fn range(&self) -> Option<[f64; 2]> {
        let finite = || self.values.iter().copied().filter(|value| value.is_finite());
        let range = [finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max)];
        (range[0] <= range[1]).then_some(range)
    }

    /// Returns the vector along the normal of a triangle with twice its area as length.
    pub(crate) fn normal(&self, triangle: &[u32; 3]) -> Vector {
        let [a, b, c] = triangle.map(|node| self.points[node as usize]);
        cross(difference(b, a), difference(c, a))
    }

    /// Returns the mean normal at each point, weighted by areas.
    pub(crate) fn normals(&self) -> Vec<Vector> {
        let mut normals = vec![[0.0; 3]; self.points.len()];
        for triangle in &self.triangles {
            let normal = self.normal(triangle);
            for node in triangle {
                let sum = &mut normals[*node as usize];
                *sum = std::array::from_fn(|i| sum[i] + normal[i]);
            }
        }
        normals.into_iter().map(unit).collect()
    }

    /// Returns the part below a plane, without a lid.
    pub fn below(&self, plane: &Plane) -> Self {
        let heights: Vec<f64> = self.points.iter().map(|&point| plane.height(point)).collect();
        let mut kept = Self { points: self.points.clone(), values: self.values.clone(), ..Self::default() };
        for triangle in &self.triangles {
            let mut corners: Vec<u32> = Vec::new();
            for (i, &from) in triangle.iter().enumerate() {
                let to = triangle[(i + 1) % 3];
                let [h_from, h_to] = [from, to].map(|node| heights[node as usize]);
                if h_from <= 0.0 {
                    corners.push(from);
                }
                if (h_from <= 0.0) != (h_to <= 0.0) {
                    corners.push(kept.points.len() as u32);
                    let share = h_from / (h_from - h_to);
                    let [a, b] = [from as usize, to as usize];
                    kept.points.push(vector::between(self.points[a], self.points[b], share));
                    kept.values.push(self.values[a] + share * (self.values[b] - self.values[a]));
                }
            }
            if corners.len() > 2 {
                kept.triangles.extend(triangles_of(&corners, corners.len()));
            }
        }
        kept
    }

    /// Adds the triangles of another surface.
    pub fn extend(&mut self, other: &Self) {
        let first = self.points.len() as u32;
        self.points.extend_from_slice(&other.points);
        self.values.extend_from_slice(&other.values);
        self.triangles.extend(other.triangles.iter().map(|nodes| nodes.map(|node| node + first)));
        self.sources.clear();
    }

    /// Returns whether a normal at a point is that of a smooth surface for a triangle with another normal.
    pub(crate) fn is_smooth(of_point: Vector, of_triangle: Vector) -> bool {
        dot(of_point, of_triangle) > 0.8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square() -> Surface {
        let points = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]];
        Surface::of_facets(&points, &triangles_of(&[0, 1, 2, 3], 4), &[0.0, 1.0, 1.0, 0.0])
    }

    #[test]
    fn both_sides_of_a_plane_make_up_the_whole() {
        let plane = Plane { origin: [0.3, 0.0, 0.0], normal: [1.0, 0.0, 0.0] };
        let other = Plane { normal: [-1.0, 0.0, 0.0], ..plane };
        let (left, right) = (square().below(&plane), square().below(&other));
        assert!((left.area() - 0.3).abs() < 1e-14 && (right.area() - 0.7).abs() < 1e-14);
        assert!(left.triangles.as_flattened().iter().all(|&node| left.values[node as usize] <= 0.3 + 1e-14));
    }

    #[test]
    fn values_that_are_no_numbers_do_not_change_the_range() {
        let mut surface = square();
        surface.values[0] = f64::NAN;
        assert_eq!(surface.range(), Some([0.0, 1.0]));
        surface.values.fill(f64::NAN);
        assert_eq!(surface.range(), None);
    }
}
