use std::ops::Range;
use std::sync::Arc;

use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_sum_factorization::{Factor, contract_reference};

use crate::MultigridError;
use crate::mapped::{CellGeometry, CellMap};

/// The highest polynomial degree.
pub(crate) const MAX_DEGREE: usize = 10;

/// Dirichlet values on all sides.
const NONE_FREE: [[bool; 2]; 3] = [[false; 2]; 3];

/// Largest number of cells times degree along an axis of the coarsest level; its solve costs the fourth power.
pub(crate) const MAX_COARSE_NODES: usize = 32;

/// Semicoarsening: an axis whose cells are wider than those of another axis by this ratio is not coarsened. Bilinear
/// elements are the most sensitive: three more iterations at 1.9.
const STRETCH: f64 = 1.5;

/// A box of n_x × n_y × n_z cells with elements of degree k and Gauss–Lobatto nodes: rectangles, or deformed cells with a
/// coefficient each.
///
/// Nodes are numbered along x, then y, then z, boundary included. Vectors have one entry per node, zero on
/// the boundary except on [free sides](BoxGrid::with_free_sides).
#[derive(Debug, Clone, PartialEq)]
pub struct BoxGrid {
    degree: usize,
    /// Widths of cells; empty for an absent axis.
    widths: [Vec<f64>; 3],
    /// Whether the lower and the upper side across each axis are free.
    free: [[bool; 2]; 3],
    /// Corners and coefficients of mapped cells.
    geometry: Option<Arc<CellGeometry>>,
    /// The grid that these are [layers](BoxGrid::layers) of.
    whole: Option<Arc<BoxGrid>>,
}

impl BoxGrid {
    /// A box with cells of these widths along each of its two or three axes, one corner at the origin.
    ///
    /// # Errors
    /// [`MultigridError::Dimension`], [`MultigridError::Degree`] or [`MultigridError::Width`] for values out of range.
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
        Ok(Self { degree, widths, free: NONE_FREE, geometry: None, whole: None })
    }

    /// A box of mapped cells for −∇·(c∇u) = f with one coefficient c per cell. There are `cells` along each
    /// of two or three axes. Each cell is the image of a square or cube under the multilinear map of its
    /// corners.
    ///
    /// Axis-parallel rectangles with c = 1 are treated as in [`BoxGrid::new`]. For other cells [`BoxGrid::widths`] are
    /// mean widths.
    ///
    /// # Shapes
    /// `corners: [n_z + 1][n_y + 1][n_x + 1]`, a single layer in two dimensions; `coefficients: [n_z][n_y][n_x]`.
    /// # Errors
    /// As [`BoxGrid::new`], and [`MultigridError::Entries`], [`MultigridError::Coefficient`] and [`MultigridError::Inverted`].
    pub fn mapped(
        degree: usize,
        cells: &[usize],
        corners: Vec<[f64; 3]>,
        coefficients: Vec<f64>,
    ) -> Result<Self, MultigridError> {
        Self::new(degree, &cells.iter().map(|&n| vec![1.0; n]).collect::<Vec<_>>())?;
        Ok(Self::of_geometry(degree, NONE_FREE, CellGeometry::new(cells, corners, coefficients)?))
    }

    fn of_geometry(degree: usize, free: [[bool; 2]; 3], geometry: CellGeometry) -> Self {
        let widths = [0, 1, 2].map(|axis| geometry.widths(axis));
        Self { degree, widths, free, geometry: Some(Arc::new(geometry)), whole: None }
    }

    /// Sets free sides, the lower and the upper one across each axis: c ∂u/∂n = 0 instead of u = 0.
    ///
    /// # Errors
    /// [`MultigridError::Free`] if all sides are free: the solution is then unique only up to a constant.
    pub fn with_free_sides(mut self, free: [[bool; 2]; 3]) -> Result<Self, MultigridError> {
        if free[..self.dimension()].as_flattened().iter().all(|is_free| *is_free) {
            return Err(MultigridError::Free);
        }
        self.free = std::array::from_fn(|axis| if axis < self.dimension() { free[axis] } else { [false; 2] });
        Ok(self)
    }

    /// Returns whether the lower and the upper side across each axis are free.
    pub fn free_sides(&self) -> [[bool; 2]; 3] {
        self.free
    }

    /// Returns whether cells have corners and coefficients of their own.
    pub fn is_mapped(&self) -> bool {
        self.mapping().is_some()
    }

    /// Returns corners and coefficients of mapped cells; none for rectangles with coefficient one.
    pub(crate) fn mapping(&self) -> Option<&CellGeometry> {
        self.geometry.as_deref().filter(|geometry| !geometry.is_plain())
    }

    /// Returns corners and coefficients of all cells, rectangles with coefficient one included.
    pub(crate) fn geometry(&self) -> Arc<CellGeometry> {
        self.geometry.clone().unwrap_or_else(|| Arc::new(CellGeometry::of_widths(&self.widths)))
    }

    /// The unit square or cube with `cells` cells per axis.
    ///
    /// # Errors
    /// As [`BoxGrid::new`].
    pub fn unit(dimension: usize, degree: usize, cells: usize) -> Result<Self, MultigridError> {
        Self::new(degree, &vec![vec![1.0 / cells.max(1) as f64; cells]; dimension])
    }

    /// Refines: halves every cell along every axis. A coarsened grid returns the grid it came from.
    #[must_use]
    pub fn refined(&self) -> Self {
        if let Some(geometry) = &self.geometry {
            let halves = || Self::of_geometry(self.degree, self.free, geometry.refined());
            return geometry.finer().cloned().unwrap_or_else(halves);
        }
        let halve = |widths: &Vec<f64>| widths.iter().flat_map(|width| [0.5 * width; 2]).collect();
        self.with_widths(self.widths.each_ref().map(halve))
    }

    /// Coarsens by joining pairs of cells, with semicoarsening on stretched cells. An axis can be coarsened
    /// if it has an even number of cells above two and both cells of each pair are equally wide. It is
    /// coarsened if its narrowest cell is less than 3/2 as wide as that of any other such axis.
    ///
    /// Unknowns are coupled most strongly along the narrow axis, so only there is the error smooth after
    /// smoothing; coarser levels of stretched boxes become less and less stretched. For mapped cells mean
    /// widths count. A joined cell has the outer corners of its parts and the mean coefficient, and keeps a
    /// reference to the finer grid. Returns none if no axis can be coarsened or a joined cell would be
    /// inverted.
    pub fn coarsened(&self) -> Option<Self> {
        let narrowest = |widths: &Vec<f64>| is_joinable(widths).then(|| least(widths));
        let widths = self.widths.each_ref().map(narrowest);
        let least = least(widths.iter().flatten());
        let is_narrow = |width: f64| width < STRETCH * least;
        let join = |axis: usize| match widths[axis] {
            Some(width) if is_narrow(width) => joined(&self.widths[axis]),
            _ => self.widths[axis].clone(),
        };
        if !least.is_finite() {
            return None;
        }
        if let Some(geometry) = &self.geometry {
            let factors = widths.map(|width| if width.is_some_and(is_narrow) { 2 } else { 1 });
            return Some(Self::of_geometry(self.degree, self.free, geometry.coarsened(self, factors)?));
        }
        Some(self.with_widths([0, 1, 2].map(join)))
    }

    /// Returns the grid of some layers of cells across the last axis; the first layer has an even index.
    /// Properties of the whole grid are kept: thin axes, widths for estimates, whether cells are mapped, and
    /// the colours of patches. For the colours, a lower side inside the box is free if the lower side of the
    /// whole grid is. An upper side inside the box is a Dirichlet side.
    ///
    /// Vectors of layers may have values on sides inside: those of other layers, which products and patches read.
    pub(crate) fn layers(&self, cells: Range<usize>) -> Self {
        let last = self.dimension() - 1;
        let is_end = cells.end == self.widths[last].len();
        let mut part = self.clone();
        part.widths[last] = self.widths[last][cells.clone()].to_vec();
        part.free[last][1] &= is_end;
        part.geometry = self.geometry.as_ref().map(|geometry| Arc::new(geometry.layers(cells)));
        part.whole = Some(Arc::new(self.clone()));
        part
    }

    /// Returns the grid that these are layers of, or this one.
    pub(crate) fn whole(&self) -> &Self {
        self.whole.as_deref().unwrap_or(self)
    }

    /// Returns the thin axes, along which a patch has all cells: they can no longer be [coarsened](Self::coarsened) while
    /// others can, and their cells are the narrowest by 3/2.
    ///
    /// Coupling is strongest along a thin axis, and no coarser level removes the error that is smooth along it, which is
    /// nearly constant between free sides.
    pub(crate) fn thin_axes(&self) -> [bool; 3] {
        if let Some(whole) = &self.whole {
            return whole.thin_axes();
        }
        let [stuck, joinable]: [Vec<usize>; 2] = [false, true]
            .map(|is| (0..self.dimension()).filter(|&a| is_joinable(&self.widths[a]) == is).collect());
        let narrowest = least(joinable.iter().flat_map(|&axis| &self.widths[axis]));
        let is_thin = |axis: usize| {
            let is_small = self.degree * self.widths[axis].len() <= MAX_COARSE_NODES;
            is_small && narrowest.is_finite() && STRETCH * least(&self.widths[axis]) <= narrowest
        };
        [0, 1, 2].map(|axis| stuck.contains(&axis) && is_thin(axis))
    }

    /// Returns a box of rectangles with other widths.
    fn with_widths(&self, widths: [Vec<f64>; 3]) -> Self {
        Self { degree: self.degree, widths, free: self.free, geometry: None, whole: None }
    }

    /// Returns the dimension, 2 or 3.
    pub fn dimension(&self) -> usize {
        self.widths.iter().filter(|widths| !widths.is_empty()).count()
    }

    /// Returns the polynomial degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the widths of the cells along an axis; empty for an absent axis.
    pub fn widths(&self, axis: usize) -> &[f64] {
        &self.widths[axis]
    }

    /// Returns the number of nodes along each axis; 1 for an absent axis.
    pub fn nodes(&self) -> [usize; 3] {
        self.widths.each_ref().map(|widths| self.degree * widths.len() + 1)
    }

    /// Returns the distance in node numbers between neighbours along each axis.
    pub(crate) fn strides(&self) -> [usize; 3] {
        let [n, m, _] = self.nodes();
        [1, n, n * m]
    }

    /// Returns the number of nodes, boundary included.
    pub fn n_nodes(&self) -> usize {
        self.nodes().iter().product()
    }

    /// Returns the number of unknowns along each axis: nodes without Dirichlet ends; 1 for an absent axis.
    pub(crate) fn unknowns(&self) -> [usize; 3] {
        let n_given = |axis: usize| self.free[axis].iter().filter(|is_free| !**is_free).count();
        let nodes = self.nodes();
        std::array::from_fn(|axis| if axis < self.dimension() { nodes[axis] - n_given(axis) } else { 1 })
    }

    /// Returns the number of unknowns: nodes in the interior and on free sides.
    pub fn n_unknowns(&self) -> usize {
        self.unknowns().iter().product()
    }

    /// Returns whether a node, given by its index along each axis, is a Dirichlet node.
    pub(crate) fn is_given(&self, at: [usize; 3]) -> bool {
        let nodes = self.nodes();
        (0..self.dimension()).any(|axis| {
            let [low, high] = self.free[axis];
            (at[axis] == 0 && !low) || (at[axis] + 1 == nodes[axis] && !high)
        })
    }

    /// Sets entries of Dirichlet nodes to zero.
    pub(crate) fn clear_given<T: Copy + Default>(&self, x: &mut [T]) {
        let [n, m, _] = self.nodes();
        for (row, x) in x.chunks_exact_mut(n).enumerate() {
            let at = |x: usize| [x, row % m, row / m];
            if n > 2 && self.is_given(at(1)) {
                x.fill(T::default());
                continue;
            }
            for end in [0, n - 1] {
                if self.is_given(at(end)) {
                    x[end] = T::default();
                }
            }
        }
    }

    /// Returns the load vector $b_i = \int f \varphi_i$ by k + 1 Gauss points per axis and cell; zero at Dirichlet nodes.
    pub fn load(&self, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        let mut b = vec![0.0; self.n_nodes()];
        let rule = CellRule::new(self, self.degree + 1);
        for cell in all(rule.n_cells) {
            let values = rule.points(cell).map(|(point, weight)| weight * f(point)).collect();
            for (node, value) in self.nodes_of(cell).zip(through(&rule.to_nodes, values)) {
                b[node] += value;
            }
        }
        self.clear_given(&mut b);
        b
    }

    /// Returns the load vector of a product $f = f_x f_y f_z$; `f` takes the axis and the coordinate. For rectangles it
    /// is a tensor product of 1-D load vectors, one multiplication per node.
    pub fn load_of_product(&self, f: impl Fn(usize, f64) -> f64) -> Vec<f64> {
        if self.geometry.is_some() {
            return self.load(|at| (0..self.dimension()).map(|axis| f(axis, at[axis])).product());
        }
        let rule = CellRule::new(self, self.degree + 1);
        let [x, y, z] = [0, 1, 2].map(|axis| self.load_of_line(&rule, axis, &f));
        let of_rows = z.iter().flat_map(|z| y.iter().map(move |y| z * y));
        of_rows.flat_map(|row| x.iter().map(move |x| row * x)).collect()
    }

    /// Returns 1-D load integrals along an axis; 1 for an absent axis.
    fn load_of_line(&self, rule: &CellRule<'_>, axis: usize, f: &impl Fn(usize, f64) -> f64) -> Vec<f64> {
        if self.widths[axis].is_empty() {
            return vec![1.0];
        }
        let mut b = vec![0.0; self.nodes()[axis]];
        for (cell, (begin, width)) in rule.begins[axis].iter().zip(&self.widths[axis]).enumerate() {
            let points = rule.points[axis].iter().zip(&rule.weights[axis]);
            let values: Vec<f64> =
                points.map(|(point, weight)| width * weight * f(axis, begin + width * point)).collect();
            let mut of_nodes = vec![0.0; self.degree + 1];
            contract_reference(&rule.to_nodes[axis], (1, 1), &values, &mut of_nodes);
            for (b, value) in b[self.degree * cell..].iter_mut().zip(of_nodes) {
                *b += value;
            }
        }
        let last = b.len() - 1;
        for (end, is_free) in [0, last].into_iter().zip(self.free[axis]) {
            b[end] *= f64::from(u8::from(is_free));
        }
        b
    }

    /// Returns $\|u - u_\text{exact}\|_{L_2}$ by `n_points` Gauss points per axis and cell.
    ///
    /// # Panics
    /// When `u` does not have one value per node.
    pub fn error_l2(&self, u: &[f64], exact: impl Fn([f64; 3]) -> f64, n_points: usize) -> f64 {
        assert_eq!(u.len(), self.n_nodes(), "values of the nodes");
        let rule = CellRule::new(self, n_points);
        let of_cell = |cell| {
            let values = through(&rule.to_points, self.nodes_of(cell).map(|node| u[node]).collect());
            let terms =
                rule.points(cell).zip(values).map(|((at, weight), u)| weight * (u - exact(at)).powi(2));
            terms.sum::<f64>()
        };
        all(rule.n_cells).map(of_cell).sum::<f64>().sqrt()
    }

    /// Returns the node numbers of a cell.
    fn nodes_of(&self, cell: [usize; 3]) -> impl Iterator<Item = usize> {
        let [n, m, _] = self.nodes();
        let first = cell.map(|cell| self.degree * cell);
        let along = self.widths.each_ref().map(|widths| if widths.is_empty() { 1 } else { self.degree + 1 });
        all(along).map(move |at| ((first[2] + at[2]) * m + first[1] + at[1]) * n + first[0] + at[0])
    }
}

/// Returns whether the cells of an axis form more than one pair of equal width each.
fn is_joinable(widths: &[f64]) -> bool {
    let (pairs, rest) = widths.as_chunks::<2>();
    widths.len() > 2 && rest.is_empty() && pairs.iter().all(|[first, second]| first == second)
}

/// Joins every two cells of an axis.
fn joined(widths: &[f64]) -> Vec<f64> {
    widths.as_chunks::<2>().0.iter().map(|[width, _]| 2.0 * width).collect()
}

/// Returns the smallest width; infinity for none.
fn least<'a>(widths: impl IntoIterator<Item = &'a f64>) -> f64 {
    widths.into_iter().copied().fold(f64::INFINITY, f64::min)
}

/// Gauss points of the cells of a grid.
struct CellRule<'a> {
    geometry: Option<&'a CellGeometry>,
    n_cells: [usize; 3],
    /// Start coordinates and widths of cells; one cell of width one for an absent axis.
    begins: [Vec<f64>; 3],
    widths: [Vec<f64>; 3],
    /// Points along each axis in [0, 1], and their weights.
    points: [Vec<f64>; 3],
    weights: [Vec<f64>; 3],
    /// Shape functions at the points, and their transpose.
    to_points: [Factor<f64>; 3],
    to_nodes: [Factor<f64>; 3],
}

impl<'a> CellRule<'a> {
    fn new(grid: &'a BoxGrid, n_points: usize) -> Self {
        let (points, weights) = gauss_legendre(n_points);
        let shapes = Lagrange::gauss_lobatto(grid.degree).values(&points);
        let one = || vec![1.0];
        let single = Table { n_points: 1, n_shapes: 1, entries: one() };
        let has = grid.widths.each_ref().map(|widths| !widths.is_empty());
        let widths = [0, 1, 2].map(|axis| if has[axis] { grid.widths[axis].clone() } else { one() });
        let tables = has.map(|has| if has { &shapes } else { &single });
        Self {
            geometry: grid.geometry.as_deref(),
            n_cells: widths.each_ref().map(Vec::len),
            begins: widths.each_ref().map(|widths| begins(widths)),
            widths,
            points: has.map(|has| if has { points.clone() } else { vec![0.0] }),
            weights: has.map(|has| if has { weights.clone() } else { one() }),
            to_points: tables.map(Factor::new),
            to_nodes: tables.map(|table| Factor::new(&table.transpose())),
        }
    }

    /// Returns the points of a cell with their weights.
    fn points(&self, cell: [usize; 3]) -> impl Iterator<Item = ([f64; 3], f64)> + '_ {
        let of_axis = move |axis: usize, q: usize| {
            let width = self.widths[axis][cell[axis]];
            (self.begins[axis][cell[axis]] + width * self.points[axis][q], width * self.weights[axis][q])
        };
        let map = self.geometry.map(|geometry| geometry.map(cell));
        all(self.points.each_ref().map(Vec::len)).map(move |q| {
            if let Some(map) = map {
                return self.mapped(&map, q);
            }
            let [x, y, z] = [0, 1, 2].map(|axis| of_axis(axis, q[axis]));
            ([x.0, y.0, z.0], x.1 * y.1 * z.1)
        })
    }
}

impl CellRule<'_> {
    /// Returns a point of a mapped cell and its weight.
    fn mapped(&self, map: &CellMap, q: [usize; 3]) -> ([f64; 3], f64) {
        let at = [0, 1, 2].map(|axis| self.points[axis][q[axis]]);
        let weight: f64 = (0..3).map(|axis| self.weights[axis][q[axis]]).product();
        (map.point(at), weight * map.determinant(at))
    }
}

/// Applies a table along every axis.
fn through(factors: &[Factor<f64>; 3], mut values: Vec<f64>) -> Vec<f64> {
    let mut inner = 1;
    for factor in factors {
        let mut next = vec![0.0; values.len() / factor.n_cols() * factor.n_rows()];
        contract_reference(factor, (inner, 1), &values, &mut next);
        inner *= factor.n_rows();
        values = next;
    }
    values
}

/// Returns the start coordinates of cells.
fn begins(widths: &[f64]) -> Vec<f64> {
    let begin = |at: &mut f64, width: &f64| Some(std::mem::replace(at, *at + width));
    widths.iter().scan(0.0, begin).collect()
}

/// Returns all index triples below the bounds, the first index fastest.
pub(crate) fn all(bounds: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..bounds.iter().product()).map(move |at| place(bounds, at))
}

/// Returns the index triple at a place among all below the bounds.
pub(crate) fn place([n, m, _]: [usize; 3], at: usize) -> [usize; 3] {
    [at % n, at / n % m, at / (n * m)]
}
