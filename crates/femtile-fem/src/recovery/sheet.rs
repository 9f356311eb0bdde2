//! Polynomials fitted in a flat body, or along a surface in space.

use super::fit::Polynomial;
use crate::evaluation::dot;

/// A function fitted around a vertex.
#[derive(Debug, Clone)]
pub(super) struct Fitted {
    /// Of coordinates in space, or of those along a surface.
    u: Polynomial,
    surface: Option<Surface>,
}

/// A surface as a graph over the plane at a vertex, fitted as the function is.
///
/// # Source
/// `[dong2020]`, parametric polynomial-preserving recovery: it needs neither the exact surface nor its normals.
#[derive(Debug, Clone)]
struct Surface {
    vertex: [f64; 3],
    /// Two orthonormal vectors in the plane, and its normal.
    axes: [[f64; 3]; 3],
    height: Polynomial,
}

impl Fitted {
    /// Fits a polynomial in the coordinates of space, as [`Polynomial::fit`] does.
    pub fn flat(size: (usize, usize), points: &[[f64; 3]], values: &[f64], place: [f64; 3]) -> Option<Self> {
        Some(Self { u: Polynomial::fit(size, points, values, place)?, surface: None })
    }

    /// Fits a polynomial along a surface, and the surface itself, over the plane through a vertex with a normal of any length.
    pub fn on_surface(
        size: (usize, usize),
        points: &[[f64; 3]],
        values: &[f64],
        (vertex, normal): ([f64; 3], [f64; 3]),
    ) -> Option<Self> {
        let axes = plane(normal)?;
        let (mut along, mut heights) = (Vec::with_capacity(points.len()), Vec::with_capacity(points.len()));
        for &point in points {
            let [s, t, height] = local(&axes, vertex, point);
            along.push([s, t, 0.0]);
            heights.push(height);
        }
        let fit = |values: &[f64]| Polynomial::fit(size, &along, values, [0.0; 3]);
        Some(Self { u: fit(values)?, surface: Some(Surface { vertex, axes, height: fit(&heights)? }) })
    }

    /// Returns the linear function with a gradient.
    pub fn linear(gradient: [f64; 3]) -> Self {
        Self { u: Polynomial::linear(gradient), surface: None }
    }

    /// Returns the total degree of the polynomial.
    pub fn degree(&self) -> usize {
        self.u.degree()
    }

    /// Returns the gradient at a point, of a surface that along it:
    ///
    /// $$ \nabla_\Gamma u = \sum_{ab} g^{ab}\,\partial_b u\,t_a, \qquad t_a = e_a + \partial_a h\,n, \quad g_{ab} = t_a \cdot t_b . $$
    pub fn gradient(&self, point: [f64; 3]) -> [f64; 3] {
        let Some(Surface { vertex, axes, height }) = &self.surface else { return self.u.gradient(point) };
        let [s, t, _] = local(axes, *vertex, point);
        let ([us, ut, _], [hs, ht, _]) = (self.u.gradient([s, t, 0.0]), height.gradient([s, t, 0.0]));
        let determinant = 1.0 + hs * hs + ht * ht;
        let first = ((1.0 + ht * ht) * us - hs * ht * ut) / determinant;
        let second = ((1.0 + hs * hs) * ut - hs * ht * us) / determinant;
        let along = first * hs + second * ht;
        std::array::from_fn(|a| first * axes[0][a] + second * axes[1][a] + along * axes[2][a])
    }
}

/// Returns the coordinates of a point from a vertex along axes.
fn local(axes: &[[f64; 3]; 3], vertex: [f64; 3], point: [f64; 3]) -> [f64; 3] {
    let offset = std::array::from_fn(|a| point[a] - vertex[a]);
    axes.map(|axis| dot(axis, offset))
}

/// Returns two orthonormal vectors across a normal of any length, and the unit normal; none of zero.
fn plane(normal: [f64; 3]) -> Option<[[f64; 3]; 3]> {
    let unit = |v: [f64; 3]| {
        let length = dot(v, v).sqrt();
        (length > 0.0).then(|| v.map(|x| x / length))
    };
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let n = unit(normal)?;
    let flattest = (0..3).min_by(|&a, &b| n[a].abs().total_cmp(&n[b].abs()))?;
    let axis = std::array::from_fn(|a| f64::from(u8::from(a == flattest)));
    let first = unit(cross(n, axis))?;
    Some([first, cross(n, first), n])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error of the gradient in the middle of 25 points of a tilted parabola, of a fit over the plane with a normal.
    fn error(step: f64, normal: [f64; 3]) -> f64 {
        let points: Vec<[f64; 3]> = (0..25)
            .map(|i| {
                let [x, y] = [i % 5, i / 5].map(|i| 0.2 + step * (f64::from(i) - 2.0));
                [x, y, 0.3 * x - 0.2 * y + x * x - 0.5 * x * y]
            })
            .collect();
        let values: Vec<f64> = points.iter().map(|[x, y, _]| 1.0 + x - y + x * y + 2.0 * y * y).collect();
        let at = points[12];
        let found = Fitted::on_surface((2, 2), &points, &values, (at, normal)).unwrap().gradient(at);
        // The gradient of any extension, without its part along the normal.
        let [x, y, _] = at;
        let g = [1.0 + y, -1.0 + x + 4.0 * y, 0.0];
        let n = [-(0.3 + 2.0 * x - 0.5 * y), 0.2 + 0.5 * x, 1.0];
        let across = dot(g, n) / dot(n, n);
        (0..3).map(|a| (found[a] - g[a] + across * n[a]).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_gradient_of_a_fit_of_degree_two_is_exact_over_its_plane_and_has_order_two_over_another() {
        assert!(error(0.1, [0.0, 0.0, 2.0]) < 1e-11);
        // Over a plane that is not that of the parabola surface and function are no polynomials.
        let [coarse, fine] = [0.1, 0.05].map(|step| error(step, [-0.4, 0.5, 1.0]));
        let order = (coarse / fine).log2();
        assert!(coarse > 1e-4 && order > 1.7, "{order} of {coarse:e}");
    }
}
