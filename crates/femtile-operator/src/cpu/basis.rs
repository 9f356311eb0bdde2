//! Values and gradients of functions at the quadrature points of a cell, for several cells at once.

use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::Lagrange;
use femtile_mesh::CellKind;
use femtile_space::{Element, ReferenceRule};

use crate::sites::cell_rule;

/// Cells that are evaluated together: their numbers lie beside each other, as SIMD lanes.
pub(crate) const LANES: usize = 8;

/// One number for each cell of a batch.
pub(crate) type Lanes = [f64; LANES];

/// The shape functions of an element at the points of the cell rule.
///
/// Slots are the value and the derivatives along the axes of the reference cell.
#[derive(Debug)]
pub(crate) struct Basis {
    pub dimension: usize,
    /// Number of shape functions.
    pub n: usize,
    /// Number of points.
    pub n_q: usize,
    /// The quadrature rule of the cells.
    pub rule: ReferenceRule,
    /// Slots of each shape function at each point: `[1 + dimension][n_q][n]`.
    pub tables: Vec<f64>,
    tensor: Option<TensorTables>,
}

/// Tables along an axis.
#[derive(Debug)]
struct TensorTables {
    /// Values of the polynomials along an axis at its points: `[n][n]`, and its transpose.
    values: [Vec<f64>; 2],
    /// Derivatives at the points of a function given there: `[n][n]`, and its transpose.
    slopes: [Vec<f64>; 2],
    /// Points along an axis.
    n: usize,
}

/// Workspace of a basis.
#[derive(Debug, Default)]
pub(crate) struct BasisScratch {
    one: Vec<Lanes>,
    two: Vec<Lanes>,
}

impl Basis {
    pub fn new(element: &Element) -> Self {
        let rule = cell_rule(element);
        let (d, n, n_q) = (element.dimension(), element.n_dofs(), rule.n_q());
        let table = element.tabulate(&rule.points);
        let mut tables = table.values.clone();
        for axis in 0..d {
            tables.extend(table.gradients.iter().map(|gradient| gradient[axis]));
        }
        let is_tensor = matches!(element.kind(), CellKind::Quadrilateral | CellKind::Hexahedron);
        let tensor = is_tensor.then(|| TensorTables::new(element.degree()));
        Self { dimension: d, n, n_q, rule, tables, tensor }
    }

    /// Returns the table of a slot: `[n_q][n]`.
    pub fn table(&self, slot: usize) -> &[f64] {
        &self.tables[slot * self.n_q * self.n..][..self.n_q * self.n]
    }

    /// Evaluates functions given by their coefficients.
    ///
    /// # Shapes
    /// `u: [n]`, `out: [1 + dimension][n_q]`
    /// # Cost
    /// On tensor cells $O(n\,(p + 1))$ operations per cell (sum factorization), on simplices $(1 + d)\,n\,n_q$.
    #[inline(always)]
    pub fn evaluate(&self, u: &[Lanes], out: &mut [Lanes], scratch: &mut BasisScratch) {
        match &self.tensor {
            Some(tables) => tables.evaluate(self.dimension, u, out, scratch),
            None => {
                for (row, out) in self.tables.chunks_exact(self.n).zip(out) {
                    *out = [0.0; LANES];
                    for (&factor, u) in row.iter().zip(u) {
                        add_product(out, factor, u);
                    }
                }
            }
        }
    }

    /// Computes the sums over the points of slots times those of each shape function: the transpose of
    /// [`Self::evaluate`].
    ///
    /// # Shapes
    /// `f: [1 + dimension][n_q]`, which is overwritten, `r: [n]`
    #[inline(always)]
    pub fn integrate(&self, f: &mut [Lanes], r: &mut [Lanes], scratch: &mut BasisScratch) {
        match &self.tensor {
            Some(tables) => tables.integrate(self.dimension, f, r, scratch),
            None => {
                r.fill([0.0; LANES]);
                for (row, f) in self.tables.chunks_exact(self.n).zip(f.iter()) {
                    for (&factor, r) in row.iter().zip(&mut *r) {
                        add_product(r, factor, f);
                    }
                }
            }
        }
    }
}

/// Adds a multiple of values, by fused multiply-adds: compiled for a SIMD level, which has them as instructions.
#[inline(always)]
pub(super) fn add_product(sum: &mut Lanes, factor: f64, values: &Lanes) {
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum = factor.mul_add(*value, *sum));
}

/// Adds products lane by lane.
#[inline(always)]
pub(super) fn add_products(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    (0..LANES).for_each(|lane| sum[lane] = a[lane].mul_add(b[lane], sum[lane]));
}

impl TensorTables {
    fn new(degree: usize) -> Self {
        let n = degree + 1;
        let (points, _) = gauss_legendre(n);
        let values = Lagrange::gauss_lobatto(degree).values(&points);
        // A polynomial of degree p is known by its values at p + 1 points.
        let slopes = Lagrange::new(points.clone()).slopes(&points);
        Self {
            values: [values.entries.clone(), values.transpose().entries],
            slopes: [slopes.entries.clone(), slopes.transpose().entries],
            n,
        }
    }

    /// Values by a contraction along each axis, then derivatives of the values at the points.
    #[inline(always)]
    fn evaluate(&self, d: usize, u: &[Lanes], out: &mut [Lanes], scratch: &mut BasisScratch) {
        let n_q = self.n.pow(d as u32);
        let BasisScratch { one, two } = scratch;
        one.resize(n_q, [0.0; LANES]);
        two.resize(n_q, [0.0; LANES]);
        let (values, slopes) = out.split_at_mut(n_q);
        self.contract::<false>(&self.values[0], 0, u, one);
        match d {
            2 => self.contract::<false>(&self.values[0], 1, one, values),
            _ => {
                self.contract::<false>(&self.values[0], 1, one, two);
                self.contract::<false>(&self.values[0], 2, two, values);
            }
        }
        for (axis, slopes) in slopes.chunks_exact_mut(n_q).enumerate() {
            self.contract::<false>(&self.slopes[0], axis, values, slopes);
        }
    }

    #[inline(always)]
    fn integrate(&self, d: usize, f: &mut [Lanes], r: &mut [Lanes], scratch: &mut BasisScratch) {
        let n_q = self.n.pow(d as u32);
        let BasisScratch { one, two } = scratch;
        one.resize(n_q, [0.0; LANES]);
        two.resize(n_q, [0.0; LANES]);
        let (values, slopes) = f.split_at_mut(n_q);
        for (axis, slopes) in slopes.chunks_exact(n_q).enumerate() {
            self.contract::<true>(&self.slopes[1], axis, slopes, values);
        }
        self.contract::<false>(&self.values[1], 0, values, one);
        match d {
            2 => self.contract::<false>(&self.values[1], 1, one, r),
            _ => {
                self.contract::<false>(&self.values[1], 1, one, two);
                self.contract::<false>(&self.values[1], 2, two, r);
            }
        }
    }

    /// Contracts an axis with a square matrix, and writes or adds the result.
    #[inline(always)]
    fn contract<const ADD: bool>(&self, matrix: &[f64], axis: usize, from: &[Lanes], to: &mut [Lanes]) {
        let n = self.n;
        let stride = n.pow(axis as u32);
        for (from, to) in from.chunks_exact(stride * n).zip(to.chunks_exact_mut(stride * n)) {
            for inner in 0..stride {
                let line = Line { n, stride, inner };
                let mut row = 0;
                while row + 4 <= n {
                    line.contract::<4, ADD>(matrix, row, from, to);
                    row += 4;
                }
                if row + 2 <= n {
                    line.contract::<2, ADD>(matrix, row, from, to);
                    row += 2;
                }
                if row < n {
                    line.contract::<1, ADD>(matrix, row, from, to);
                }
            }
        }
    }
}

/// A line of points along an axis.
#[derive(Clone, Copy)]
struct Line {
    n: usize,
    stride: usize,
    inner: usize,
}

impl Line {
    /// Computes some rows of the product of a square matrix with the line, whose sums stay in registers.
    #[inline(always)]
    fn contract<const ROWS: usize, const ADD: bool>(
        self,
        matrix: &[f64],
        row: usize,
        from: &[Lanes],
        to: &mut [Lanes],
    ) {
        let Self { n, stride, inner } = self;
        let mut sums = [[0.0; LANES]; ROWS];
        if ADD {
            sums = std::array::from_fn(|i| to[inner + (row + i) * stride]);
        }
        for column in 0..n {
            let values = &from[inner + column * stride];
            for (i, sum) in sums.iter_mut().enumerate() {
                add_product(sum, matrix[(row + i) * n + column], values);
            }
        }
        sums.iter().enumerate().for_each(|(i, sum)| to[inner + (row + i) * stride] = *sum);
    }
}
