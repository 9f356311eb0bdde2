//! Values and gradients of functions at the quadrature points of a cell, for several cells at once.

use femtile_device::Cpu;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_mesh::CellKind;
use femtile_space::{Element, ReferenceRule};
use femtile_sum_factorization::{Factor, Metric, Parity, contract, gradient, lanes};

use super::bernstein::Bernstein;
use crate::sites::cell_rule;

/// Cells that are evaluated together: their numbers lie beside each other, as SIMD lanes.
pub(crate) const LANES: usize = 8;

/// One number for each cell of a batch.
pub(crate) type Lanes = [f64; LANES];

/// The shape functions of an element at the points of the cell rule.
///
/// Slots are the value and the derivatives along the axes of the reference cell; on a surface a third one along its normal, which is
/// zero.
#[derive(Debug)]
pub(crate) struct Basis {
    /// That of space: the number of derivatives.
    pub dimension: usize,
    /// That of the cells.
    pub of_cells: usize,
    /// Number of shape functions.
    pub n: usize,
    /// Number of points.
    pub n_q: usize,
    /// The quadrature rule of the cells.
    pub rule: ReferenceRule,
    /// Slots of each shape function at each point: `[1 + dimension][n_q][n]`.
    pub tables: Vec<f64>,
    tensor: Option<TensorTables>,
    /// Of elements on simplices.
    pub bernstein: Option<Bernstein>,
    /// The tables and their transpose, of elements on simplices.
    dense: Option<[Factor<f64>; 2]>,
}

/// Tables along an axis.
#[derive(Debug)]
struct TensorTables {
    /// Values of the polynomials along an axis at its points: `[n][n]`, and its transpose.
    values: [Factor<f64>; 2],
    /// Derivatives at the points of a function given there: `[n][n]`, and its transpose.
    slopes: [Factor<f64>; 2],
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
    /// Tabulates an element whose cells lie in a space of a dimension.
    pub fn new(element: &Element, d: usize) -> Self {
        let rule = cell_rule(element);
        let (of_cells, n, n_q) = (element.dimension(), element.n_dofs(), rule.n_q());
        let table = element.tabulate(&rule.points);
        let mut tables = table.values.clone();
        for axis in 0..d {
            tables.extend(table.gradients.iter().map(|gradient| gradient[axis]));
        }
        let is_tensor = matches!(element.kind(), CellKind::Quadrilateral | CellKind::Hexahedron);
        let tensor = is_tensor.then(|| TensorTables::new(element.degree()));
        let dense = (!is_tensor).then(|| {
            let table = Table { n_points: (1 + d) * n_q, n_shapes: n, entries: tables.clone() };
            [&table, &table.transpose()].map(|table| Factor::with_parity(table, Parity::None))
        });
        Self {
            dimension: d,
            of_cells,
            n,
            n_q,
            rule,
            tables,
            tensor,
            bernstein: Bernstein::new(element),
            dense,
        }
    }

    /// Returns whether shape functions are products of polynomials along the axes.
    pub fn is_tensor(&self) -> bool {
        self.tensor.is_some()
    }

    /// Evaluates functions given by their coefficients.
    ///
    /// # Shapes
    /// `u: [n]`, `out: [1 + dimension][n_q]`
    /// # Cost
    /// On tensor cells $O(n\,(p + 1))$ operations per cell (sum factorization), on simplices $(1 + d)\,n\,n_q$.
    pub fn evaluate(&self, cpu: &Cpu, u: &[Lanes], out: &mut [Lanes], scratch: &mut BasisScratch) {
        match (&self.tensor, &self.dense) {
            (Some(tables), _) => {
                let (own, normal) = out.split_at_mut((1 + self.of_cells) * self.n_q);
                tables.evaluate(cpu, self.of_cells, u, own, scratch);
                normal.fill([0.0; LANES]);
            }
            (_, Some([table, _])) if has_vectors(cpu) => {
                contract(cpu, table, LANES / lanes::<f64>(cpu), u.as_flattened(), out.as_flattened_mut());
            }
            _ => cpu.simd().vectorize(
                #[inline(always)]
                || {
                    for (row, out) in self.tables.chunks_exact(self.n).zip(out) {
                        *out = [0.0; LANES];
                        for (&factor, u) in row.iter().zip(u) {
                            add_product(out, factor, u);
                        }
                    }
                },
            ),
        }
    }

    /// Computes the sums over the points of slots times those of each shape function: the transpose of
    /// [`Self::evaluate`].
    ///
    /// # Shapes
    /// `f: [1 + dimension][n_q]`, which is overwritten, `r: [n]`
    pub fn integrate(&self, cpu: &Cpu, f: &mut [Lanes], r: &mut [Lanes], scratch: &mut BasisScratch) {
        match (&self.tensor, &self.dense) {
            (Some(tables), _) => {
                let own = &mut f[..(1 + self.of_cells) * self.n_q];
                tables.integrate(cpu, self.of_cells, own, r, scratch);
            }
            (_, Some([_, transposed])) if has_vectors(cpu) => {
                contract(cpu, transposed, LANES / lanes::<f64>(cpu), f.as_flattened(), r.as_flattened_mut());
            }
            _ => cpu.simd().vectorize(
                #[inline(always)]
                || {
                    r.fill([0.0; LANES]);
                    for (row, f) in self.tables.chunks_exact(self.n).zip(f.iter()) {
                        for (&factor, r) in row.iter().zip(&mut *r) {
                            add_product(r, factor, f);
                        }
                    }
                },
            ),
        }
    }

    /// Computes $u \leftarrow B^\mathsf{T} G B u$ on hexahedra for a metric G at the points.
    ///
    /// # Shapes
    /// `u: [n][lanes]` with the lanes of the SIMD level, `scratch: [3][n][lanes]`
    /// # Cost
    /// Twelve contractions along an axis, and the metric.
    pub fn multiply_metric(&self, cpu: &Cpu, metric: Metric<'_, f64>, u: &mut [f64], scratch: &mut [f64]) {
        if let Some(tables) = &self.tensor {
            tables.multiply_metric(cpu, metric, u, scratch);
        }
    }
}

/// Returns whether products with tables have SIMD vectors; without, the loops here keep the bits of fused multiply-adds.
fn has_vectors(cpu: &Cpu) -> bool {
    lanes::<f64>(cpu) > 1
}

/// Adds a multiple of values, by fused multiply-adds: compiled for a SIMD level, which has them as instructions.
///
/// Loops here and in the callers have no closures: one that is not inlined is compiled for no level, and calls a function for
/// each fused multiply-add.
#[inline(always)]
pub(super) fn add_product(sum: &mut Lanes, factor: f64, values: &Lanes) {
    for lane in 0..LANES {
        sum[lane] = factor.mul_add(values[lane], sum[lane]);
    }
}

/// Adds products lane by lane.
#[inline(always)]
pub(super) fn add_products(sum: &mut Lanes, a: &Lanes, b: &Lanes) {
    for lane in 0..LANES {
        sum[lane] = a[lane].mul_add(b[lane], sum[lane]);
    }
}

impl TensorTables {
    fn new(degree: usize) -> Self {
        let n = degree + 1;
        let (points, _) = gauss_legendre(n);
        let values = Lagrange::gauss_lobatto(degree).values(&points);
        // A polynomial of degree p is known by its values at p + 1 points.
        let slopes = Lagrange::new(points.clone()).slopes(&points);
        let both = |table: &Table| [Factor::new(table), Factor::new(&table.transpose())];
        Self { values: both(&values), slopes: both(&slopes), n }
    }

    /// Values by a contraction along each axis, then derivatives of the values at the points.
    fn evaluate(&self, cpu: &Cpu, d: usize, u: &[Lanes], out: &mut [Lanes], scratch: &mut BasisScratch) {
        let (values, slopes) = out.split_at_mut(u.len());
        self.contract_all(cpu, &self.values[0], d, u, values, scratch);
        for (axis, slopes) in slopes.chunks_exact_mut(u.len()).enumerate() {
            self.contract(cpu, &self.slopes[0], axis, values, slopes);
        }
    }

    fn integrate(&self, cpu: &Cpu, d: usize, f: &mut [Lanes], r: &mut [Lanes], scratch: &mut BasisScratch) {
        let (values, slopes) = f.split_at_mut(r.len());
        for (axis, slopes) in slopes.chunks_exact(r.len()).enumerate() {
            self.contract(cpu, &self.slopes[1], axis, slopes, r);
            cpu.simd().vectorize(
                #[inline(always)]
                || {
                    for (sum, value) in values.as_flattened_mut().iter_mut().zip(r.as_flattened()) {
                        *sum += value;
                    }
                },
            );
        }
        self.contract_all(cpu, &self.values[1], d, values, r, scratch);
    }

    /// Applies a table along each axis.
    fn contract_all(
        &self,
        cpu: &Cpu,
        table: &Factor<f64>,
        d: usize,
        from: &[Lanes],
        to: &mut [Lanes],
        BasisScratch { one, two }: &mut BasisScratch,
    ) {
        one.resize(from.len(), [0.0; LANES]);
        two.resize(from.len(), [0.0; LANES]);
        self.contract(cpu, table, 0, from, one);
        match d {
            2 => self.contract(cpu, table, 1, one, to),
            _ => {
                self.contract(cpu, table, 1, one, two);
                self.contract(cpu, table, 2, two, to);
            }
        }
    }

    /// Applies a table along an axis of the tensors of a batch.
    fn contract(&self, cpu: &Cpu, table: &Factor<f64>, axis: usize, from: &[Lanes], to: &mut [Lanes]) {
        let inner = self.n.pow(axis as u32) * LANES / lanes::<f64>(cpu);
        contract(cpu, table, inner, from.as_flattened(), to.as_flattened_mut());
    }

    /// As [`Basis::multiply_metric`].
    fn multiply_metric(&self, cpu: &Cpu, metric: Metric<'_, f64>, u: &mut [f64], scratch: &mut [f64]) {
        let ([to_points, from_points], n) = (&self.values, self.n);
        let (one, scratch) = scratch.split_at_mut(u.len());
        contract(cpu, to_points, 1, u, one);
        contract(cpu, to_points, n, one, u);
        contract(cpu, to_points, n * n, u, one);
        let [slopes, transposed] = &self.slopes;
        gradient(cpu, [slopes, transposed], metric, one, scratch);
        contract(cpu, from_points, 1, one, u);
        contract(cpu, from_points, n, u, one);
        contract(cpu, from_points, n * n, one, u);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use femtile_device::cpu::SimdLevel;

    use super::*;

    #[test]
    fn tables_of_simplices_have_the_same_bits_on_every_simd_level() {
        for (kind, d) in [(CellKind::Triangle, 2), (CellKind::Triangle, 3), (CellKind::Tetrahedron, 3)] {
            for degree in 1..=4 {
                let basis = Basis::new(&Element::new(kind, degree).unwrap(), d);
                let number = |i: usize| (i * i % 101) as f64 / 101.0 - 0.4;
                let numbers = |n: usize| -> Vec<Lanes> {
                    (0..n).map(|i| std::array::from_fn(|lane| number(i * LANES + lane))).collect()
                };
                let mut first = None;
                for simd in SimdLevel::available() {
                    let (cpu, mut scratch) = (Cpu::with_simd(1, simd).unwrap(), BasisScratch::default());
                    let n_slots = (1 + d) * basis.n_q;
                    let (mut slots, mut r) =
                        (vec![[f64::NAN; LANES]; n_slots], vec![[f64::NAN; LANES]; basis.n]);
                    basis.evaluate(&cpu, &numbers(basis.n), &mut slots, &mut scratch);
                    basis.integrate(&cpu, &mut numbers(n_slots), &mut r, &mut scratch);
                    let bits: Vec<u64> =
                        slots.iter().chain(&r).flatten().map(|value| value.to_bits()).collect();
                    assert!(*first.get_or_insert_with(|| bits.clone()) == bits, "{kind} {degree}, {simd}");
                }
            }
        }
    }
}
