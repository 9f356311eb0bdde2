/// A simplex of dimension two or three as the image of the reference simplex: its measure and the
/// gradients of its linear shape functions.
///
/// With edges $e_k = p_k - p_0$, $J = \det(e_1, …, e_d)$ and the area vectors $g_a$ of the sides opposite
/// to corner $a$ (for tetrahedra $g_1 = e_2 × e_3$ and so on, $g_0 = -\sum g_k$),
///
/// $$ \nabla\varphi_a = g_a / J, \qquad |T| = |J| / d!\,. $$
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// Gradients of the shape functions; unused entries are zero.
    pub gradients: [[f64; 3]; 4],
    /// Length, area or volume, never negative.
    pub measure: f64,
    /// Determinant of the map; negative when the corners are numbered the other way round.
    pub determinant: f64,
}

impl Affine {
    /// Returns the triangle with these corners, in the plane of the first two coordinates.
    pub fn triangle(p: [[f64; 3]; 3]) -> Self {
        let [a, b] = [difference(p[1], p[0]), difference(p[2], p[0])];
        let determinant = a[0] * b[1] - a[1] * b[0];
        let (g1, g2) = ([b[1], -b[0], 0.0], [-a[1], a[0], 0.0]);
        Self::from_areas([opposite(&[g1, g2]), g1, g2, [0.0; 3]], determinant, 2.0)
    }

    /// Returns the tetrahedron with these corners.
    pub fn tetrahedron(p: [[f64; 3]; 4]) -> Self {
        let [a, b, c] = [difference(p[1], p[0]), difference(p[2], p[0]), difference(p[3], p[0])];
        let [g1, g2, g3] = [cross(b, c), cross(c, a), cross(a, b)];
        let determinant = a[0] * g1[0] + a[1] * g1[1] + a[2] * g1[2];
        Self::from_areas([opposite(&[g1, g2, g3]), g1, g2, g3], determinant, 6.0)
    }

    /// Returns the simplex with the given corners: three for a triangle, four for a tetrahedron.
    ///
    /// # Panics
    /// If there are neither three nor four corners.
    pub fn simplex(corners: &[[f64; 3]]) -> Self {
        match *corners {
            [a, b, c] => Self::triangle([a, b, c]),
            [a, b, c, d] => Self::tetrahedron([a, b, c, d]),
            _ => panic!("a simplex of {} corners is neither a triangle nor a tetrahedron", corners.len()),
        }
    }

    fn from_areas(areas: [[f64; 3]; 4], determinant: f64, factorial: f64) -> Self {
        let gradients = areas.map(|g| g.map(|x| x / determinant));
        Self { gradients, measure: determinant.abs() / factorial, determinant }
    }

    /// Returns the gradient of the linear function with these values at the corners.
    pub fn gradient(&self, values: &[f64]) -> [f64; 3] {
        let mut gradient = [0.0; 3];
        for (value, shape) in values.iter().zip(&self.gradients) {
            for (sum, g) in gradient.iter_mut().zip(shape) {
                *sum += value * g;
            }
        }
        gradient
    }
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn opposite(areas: &[[f64; 3]]) -> [f64; 3] {
    std::array::from_fn(|axis| -areas.iter().map(|g| g[axis]).sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_simplices_have_the_reference_gradients() {
        let corners = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let (triangle, tetrahedron) = (Affine::simplex(&corners[..3]), Affine::simplex(&corners));
        assert_eq!(triangle.gradients, crate::P1 { dimension: 2 }.reference_gradients());
        assert_eq!(tetrahedron.gradients, crate::P1 { dimension: 3 }.reference_gradients());
        assert_eq!((triangle.measure, tetrahedron.measure), (0.5, 1.0 / 6.0));
    }

    #[test]
    fn gradient_of_a_linear_function_is_exact_in_any_numbering() {
        let corners = [[0.1, 0.2, 0.3], [1.3, 0.1, -0.2], [0.2, 1.4, 0.5], [0.3, -0.2, 1.7]];
        let u = |p: [f64; 3]| 2.0 * p[0] - 3.0 * p[1] + 0.5 * p[2] + 7.0;
        for order in [[0, 1, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let cell = order.map(|i| corners[i]);
            let map = Affine::tetrahedron(cell);
            let found = map.gradient(&cell.map(u));
            for (found, expected) in found.iter().zip([2.0, -3.0, 0.5]) {
                assert!((found - expected).abs() < 1e-13);
            }
            assert!(map.measure > 0.0);
        }
    }
}
