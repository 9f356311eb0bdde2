//! Convex polygons in the plane of a facet, and segments on its chord.

use super::SMOOTH;

/// The plane of the corners of a facet, or the line through them, with axes of length 1.
pub(super) struct Polygon {
    corners: Vec<[f64; 3]>,
    axes: [[f64; 3]; 2],
}

/// Corners in the plane, against the clock; two ends on the first axis of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Convex(pub Vec<[f64; 2]>);

impl Polygon {
    /// Returns the plane of the corners of a facet in their order around it, or the line through two corners.
    pub fn of(corners: Vec<[f64; 3]>) -> Self {
        let n = corners.len();
        let first = unit(minus(corners[1], corners[0]));
        if n == 2 {
            return Self { corners, axes: [first, [0.0; 3]] };
        }
        let [a, b] = match n {
            3 => [minus(corners[1], corners[0]), minus(corners[2], corners[0])],
            _ => [minus(corners[2], corners[0]), minus(corners[3], corners[1])],
        };
        let normal = unit(cross(a, b));
        let along = dot(first, normal);
        let first = unit(std::array::from_fn(|i| first[i] - along * normal[i]));
        Self { corners, axes: [first, cross(normal, first)] }
    }

    /// Returns the axes; the second one of a line is zero.
    pub fn axes(&self) -> [[f64; 3]; 2] {
        self.axes
    }

    /// Returns whether the planes, or the lines, are at an angle of at most 45°.
    pub fn is_along(&self, other: &Self) -> bool {
        let direction = |polygon: &Self| match polygon.corners.len() {
            2 => polygon.axes[0],
            _ => cross(polygon.axes[0], polygon.axes[1]),
        };
        dot(direction(self), direction(other)).abs() >= SMOOTH
    }

    /// Returns the polygon itself.
    pub fn whole(&self) -> Convex {
        self.flat(&self.corners)
    }

    /// Returns the polygon of another one in this plane, along the normal.
    pub fn project(&self, other: &Self) -> Convex {
        self.flat(&other.corners)
    }

    fn flat(&self, points: &[[f64; 3]]) -> Convex {
        let flat = |&point: &[f64; 3]| self.axes.map(|axis| dot(axis, minus(point, self.corners[0])));
        let mut flat: Vec<[f64; 2]> = points.iter().map(flat).collect();
        let is_reversed = match flat[..] {
            [from, to] => to[0] < from[0],
            _ => area(&flat) < 0.0,
        };
        if is_reversed {
            flat.reverse();
        }
        Convex(flat)
    }

    /// Returns the point of space for one of the plane.
    pub fn point(&self, at: [f64; 2]) -> [f64; 3] {
        let [a, b] = self.axes;
        std::array::from_fn(|i| self.corners[0][i] + at[0] * a[i] + at[1] * b[i])
    }
}

impl Convex {
    /// Returns the length or area.
    pub fn measure(&self) -> f64 {
        match self.0[..] {
            [from, to] => to[0] - from[0],
            _ => area(&self.0),
        }
    }

    /// Returns the mean of the corners.
    pub fn middle(&self) -> [f64; 2] {
        [0, 1].map(|i| self.0.iter().map(|corner| corner[i]).sum::<f64>() / self.0.len() as f64)
    }

    /// Returns segments or triangles that make up the polygon.
    pub fn simplices(&self) -> Vec<Vec<[f64; 2]>> {
        match self.0[..] {
            [_, _] => vec![self.0.clone()],
            _ => (1..self.0.len().saturating_sub(1))
                .map(|i| vec![self.0[0], self.0[i], self.0[i + 1]])
                .collect(),
        }
    }
}

/// Returns the part of a convex polygon that lies in another one, `[sutherland1974]`.
pub(super) fn clipped(subject: &Convex, by: &Convex) -> Convex {
    if let ([a, b], [c, d]) = (&subject.0[..], &by.0[..]) {
        let lower = a[0].max(c[0]);
        return Convex(vec![[lower, 0.0], [b[0].min(d[0]).max(lower), 0.0]]);
    }
    let mut left = subject.0.clone();
    for (start, end) in by.0.iter().zip(by.0.iter().cycle().skip(1)) {
        let along = [end[0] - start[0], end[1] - start[1]];
        let height = |x: &[f64; 2]| along[0] * (x[1] - start[1]) - along[1] * (x[0] - start[0]);
        let before = std::mem::take(&mut left);
        for (a, b) in before.iter().zip(before.iter().cycle().skip(1)) {
            let (of_a, of_b) = (height(a), height(b));
            if of_a >= 0.0 {
                left.push(*a);
            }
            if (of_a > 0.0 && of_b < 0.0) || (of_a < 0.0 && of_b > 0.0) {
                let share = of_a / (of_a - of_b);
                left.push([0, 1].map(|i| a[i] + share * (b[i] - a[i])));
            }
        }
    }
    // Polygons that only touch leave one or two corners.
    Convex(if left.len() < 3 { Vec::new() } else { left })
}

fn area(corners: &[[f64; 2]]) -> f64 {
    let next = corners.iter().cycle().skip(1);
    let Some(origin) = corners.first() else { return 0.0 };
    let from = |x: &[f64; 2]| [x[0] - origin[0], x[1] - origin[1]];
    corners
        .iter()
        .zip(next)
        .map(|(a, b)| [from(a), from(b)])
        .map(|[a, b]| 0.5 * (a[0] * b[1] - a[1] * b[0]))
        .sum()
}

pub(super) fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i] - b[i])
}

pub(super) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: [f64; 3]) -> [f64; 3] {
    let length = dot(a, a).sqrt();
    a.map(|x| x / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_square_add_up_and_have_the_areas_of_geometry() {
        let square = Convex(vec![[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]);
        let triangle = Convex(vec![[0.5, -1.0], [2.0, 0.5], [0.5, 2.0]]);
        let part = clipped(&square, &triangle);
        assert!((part.measure() - 0.5).abs() < 1e-15, "{part:?}");
        // The diamond |x - 1/2| + |y - 1/2| <= 3/4 leaves four corners of the square, each of them 1/32.
        let diamond = Convex(vec![[1.25, 0.5], [0.5, 1.25], [-0.25, 0.5], [0.5, -0.25]]);
        let part = clipped(&square, &diamond);
        assert_eq!(part.0.len(), 8);
        assert!((part.measure() - 0.875).abs() < 1e-15, "{part:?}");
        let sum: f64 = part.simplices().into_iter().map(|piece| Convex(piece).measure()).sum();
        assert!((sum - 0.875).abs() < 1e-15);
        assert_eq!(clipped(&square, &square), square);
        let beside = Convex(square.0.iter().map(|[x, y]| [x + 1.0, *y]).collect());
        assert_eq!(clipped(&square, &beside).measure(), 0.0);
        let away = Convex(square.0.iter().map(|[x, y]| [x + 2.0, *y]).collect());
        assert_eq!(clipped(&square, &away).measure(), 0.0);
        let touching = Convex(vec![[0.0, 0.0], [0.0, -1.0], [1.0, 0.0]]);
        assert_eq!(clipped(&square, &touching).measure(), 0.0);
    }

    #[test]
    fn facets_are_projected_onto_the_plane_of_another_one_either_way_round() {
        let corners = [[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [1.0, 2.0, 3.0], [1.0, 0.0, 3.0]];
        let polygon = Polygon::of(corners.to_vec());
        assert!((polygon.whole().measure() - 6.0).abs() < 1e-14);
        let lifted = corners.map(|[x, y, z]| [x + 0.1, y + 1.0, z]);
        for turned in [lifted, [lifted[3], lifted[2], lifted[1], lifted[0]]] {
            let part = clipped(&polygon.whole(), &polygon.project(&Polygon::of(turned.to_vec())));
            assert!((part.measure() - 3.0).abs() < 1e-14);
            for at in part.0.iter().map(|&at| polygon.point(at)) {
                assert!((at[0] - 1.0).abs() < 1e-14 && at[1] > 1.0 - 1e-14 && at[1] < 2.0 + 1e-14, "{at:?}");
            }
        }
        let line = Polygon::of(vec![[0.0, 1.0, 0.0], [0.0, 3.0, 0.0]]);
        let part = clipped(&line.whole(), &line.flat(&[[0.5, 2.5, 0.0], [0.5, 0.0, 0.0]]));
        assert!((part.measure() - 1.5).abs() < 1e-15, "{part:?}");
        for (degrees, is_along) in
            [(0.0_f64, true), (40.0, true), (85.0, false), (140.0, true), (180.0, true)]
        {
            let (s, c) = degrees.to_radians().sin_cos();
            assert_eq!(line.is_along(&Polygon::of(vec![[0.0; 3], [s, c, 0.0]])), is_along);
            let turned = corners.map(|[_, y, z]| [1.0 + s * y, c * y, z]);
            assert_eq!(polygon.is_along(&Polygon::of(turned.to_vec())), is_along);
        }
    }
}
