use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};

use crate::MultigridError;

/// The highest degree of elements.
pub(crate) const MAX_DEGREE: usize = 10;

/// A box of rectangular cells with elements of degree k, nodes at Gauss–Lobatto points.
///
/// Nodes are numbered along x first, then y, then z, those on the boundary included: vectors have an entry for each, zero
/// on the boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxGrid {
    degree: usize,
    /// Widths of cells; an axis that there is not has none.
    widths: [Vec<f64>; 3],
}

impl BoxGrid {
    /// A box with cells of these widths along each of its two or three axes, one corner in the origin.
    ///
    /// # Errors
    /// [`MultigridError::Dimension`], [`MultigridError::Degree`] and [`MultigridError::Width`] name what is out of range.
    pub fn new(degree: usize, widths: &[Vec<f64>]) -> Result<Self, MultigridError> {
        if !(2..=3).contains(&widths.len()) {
            return Err(MultigridError::Dimension(widths.len()));
        }
        if !(1..=MAX_DEGREE).contains(&degree) {
            return Err(MultigridError::Degree { degree, highest: MAX_DEGREE });
        }
        for (axis, widths) in widths.iter().enumerate() {
            if widths.is_empty() {
                return Err(MultigridError::Width { axis, cell: 0, width: 0.0 });
            }
            for (cell, &width) in widths.iter().enumerate() {
                if !(width > 0.0 && width.is_finite()) {
                    return Err(MultigridError::Width { axis, cell, width });
                }
            }
        }
        let widths = std::array::from_fn(|axis| widths.get(axis).cloned().unwrap_or_default());
        Ok(Self { degree, widths })
    }

    /// The unit square or cube with so many cells a side.
    ///
    /// # Errors
    /// As [`BoxGrid::new`].
    pub fn unit(dimension: usize, degree: usize, cells: usize) -> Result<Self, MultigridError> {
        Self::new(degree, &vec![vec![1.0 / cells.max(1) as f64; cells]; dimension])
    }

    /// The same box with every cell halved along every axis.
    #[must_use]
    pub fn refined(&self) -> Self {
        let halve = |widths: &Vec<f64>| widths.iter().flat_map(|width| [0.5 * width; 2]).collect();
        Self { degree: self.degree, widths: self.widths.each_ref().map(halve) }
    }

    /// Two or three.
    pub fn dimension(&self) -> usize {
        self.widths.iter().filter(|widths| !widths.is_empty()).count()
    }

    /// The degree of the elements.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Widths of the cells along an axis; none where the box lacks it.
    pub fn widths(&self, axis: usize) -> &[f64] {
        &self.widths[axis]
    }

    /// Nodes along each axis; one where the box lacks it.
    pub fn nodes(&self) -> [usize; 3] {
        self.widths.each_ref().map(|widths| self.degree * widths.len() + 1)
    }

    /// The number of nodes, those on the boundary included.
    pub fn n_nodes(&self) -> usize {
        self.nodes().iter().product()
    }

    /// The number of unknowns: nodes inside.
    pub fn n_unknowns(&self) -> usize {
        (0..self.dimension()).map(|axis| self.nodes()[axis] - 2).product()
    }

    /// Whether a node, by its number along each axis, lies on the boundary.
    pub(crate) fn is_on_boundary(&self, at: [usize; 3]) -> bool {
        let nodes = self.nodes();
        (0..self.dimension()).any(|axis| at[axis] == 0 || at[axis] + 1 == nodes[axis])
    }

    /// Puts zeros on the boundary.
    pub(crate) fn clear_boundary<T: Copy + Default>(&self, x: &mut [T]) {
        let [n, m, _] = self.nodes();
        for (row, x) in x.chunks_exact_mut(n).enumerate() {
            if self.is_on_boundary([1, row % m, row / m]) {
                x.fill(T::default());
            } else {
                (x[0], x[n - 1]) = (T::default(), T::default());
            }
        }
    }

    /// The right side $b_i = \int f \varphi_i$ by Gauss points, k + 1 a cell and axis; zero on the boundary.
    pub fn load(&self, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        let mut b = vec![0.0; self.n_nodes()];
        self.visit_points(self.degree + 1, |nodes, shapes, point, weight| {
            let value = weight * f(point);
            for (&node, shape) in nodes.iter().zip(shapes) {
                b[node] += value * shape;
            }
        });
        self.clear_boundary(&mut b);
        b
    }

    /// $\|u - u_\text{exact}\|_{L_2}$ by Gauss points, so many a cell and axis.
    ///
    /// # Panics
    /// When there is not a value a node.
    pub fn error_l2(&self, u: &[f64], exact: impl Fn([f64; 3]) -> f64, n_points: usize) -> f64 {
        assert_eq!(u.len(), self.n_nodes(), "values of the nodes");
        let mut square = 0.0;
        self.visit_points(n_points, |nodes, shapes, point, weight| {
            let value: f64 = nodes.iter().zip(shapes).map(|(&node, shape)| u[node] * shape).sum();
            square += weight * (value - exact(point)).powi(2);
        });
        square.sqrt()
    }

    /// Calls `visit` with the nodes of a cell, their shape functions at a point of it, the point and its weight.
    fn visit_points(&self, n_points: usize, mut visit: impl FnMut(&[usize], &[f64], [f64; 3], f64)) {
        let lagrange = Lagrange::gauss_lobatto(self.degree);
        let (points, weights) = gauss_legendre(n_points);
        let table = lagrange.values(&points);
        // An axis that there is not: one cell of one node and one point.
        let single = Table { n_points: 1, n_shapes: 1, entries: vec![1.0] };
        let has = self.widths.each_ref().map(|widths| !widths.is_empty());
        let tables = has.map(|has| if has { &table } else { &single });
        let n_cells = self.widths.each_ref().map(|widths| widths.len().max(1));
        let begins = self.widths.each_ref().map(|widths| begins(widths));
        let [n, m, _] = self.nodes();
        let (mut nodes, mut shapes) = (Vec::new(), Vec::new());
        for cell in all(n_cells) {
            nodes.clear();
            let first: [usize; 3] = std::array::from_fn(|axis| self.degree * cell[axis]);
            let numbers = all(tables.map(|table| table.n_shapes));
            nodes
                .extend(numbers.map(|at| ((first[2] + at[2]) * m + first[1] + at[1]) * n + first[0] + at[0]));
            for q in all(tables.map(|table| table.n_points)) {
                let rows: [&[f64]; 3] = std::array::from_fn(|axis| tables[axis].row(q[axis]));
                shapes.clear();
                shapes.extend(
                    all(rows.map(<[f64]>::len)).map(|at| rows[0][at[0]] * rows[1][at[1]] * rows[2][at[2]]),
                );
                let (mut point, mut weight) = ([0.0; 3], 1.0);
                for axis in (0..3).filter(|&axis| has[axis]) {
                    let width = self.widths[axis][cell[axis]];
                    point[axis] = begins[axis][cell[axis]] + width * points[q[axis]];
                    weight *= width * weights[q[axis]];
                }
                visit(&nodes, &shapes, point, weight);
            }
        }
    }
}

/// Where cells begin.
fn begins(widths: &[f64]) -> Vec<f64> {
    let begin = |at: &mut f64, width: &f64| Some(std::mem::replace(at, *at + width));
    widths.iter().scan(0.0, begin).collect()
}

/// All triples below these bounds, the first running fastest.
pub(crate) fn all([n, m, l]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..n * m * l).map(move |at| [at % n, at / n % m, at / (n * m)])
}
