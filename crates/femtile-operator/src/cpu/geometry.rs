//! Geometry of the cells, by batches.

use femtile_device::parallel;
use femtile_mesh::CellKind;
use femtile_space::{PointMap, Space};

use super::basis::{Basis, LANES, Lanes, add_products};
use crate::error::OperatorError;
use crate::sites::inverse;

/// Inverse Jacobians, weights and points of all cells.
#[derive(Debug)]
pub(crate) struct Geometry {
    dimension: usize,
    /// Points with a Jacobian of their own: one for affine cells.
    n_points: usize,
    n_q: usize,
    /// Inverse Jacobians by rows, $\partial\xi_a/\partial x_i$: `[n_batches][n_points][d][d]`.
    inverses: Vec<Lanes>,
    /// Weights times the absolute determinants: `[n_batches][n_q]`; zero for lanes without a cell.
    weights: Vec<Lanes>,
    /// Points, if an integrand needs them: `[n_batches][3][n_q]`.
    points: Vec<Lanes>,
}

/// The geometry of a batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchGeometry<'a> {
    /// `[n_points][d][d]`
    pub inverses: &'a [Lanes],
    /// `[n_q]`
    pub weights: &'a [Lanes],
    /// `[3][n_q]` or empty
    pub points: &'a [Lanes],
    pub is_affine: bool,
}

impl Geometry {
    pub fn new(space: &Space<'_>, basis: &Basis, needs_points: bool) -> Result<Self, OperatorError> {
        let d = basis.dimension;
        let is_affine = matches!(space.mesh().kind, CellKind::Triangle | CellKind::Tetrahedron);
        let (n_q, n_batches) = (basis.n_q, space.n_cells().div_ceil(LANES));
        let n_points = if is_affine { 1 } else { n_q };
        // All points of an affine cell have the same Jacobian.
        let n_mapped = if needs_points { n_q } else { n_points };
        let mapping = space.mapping(&basis.rule.points[..n_mapped]);
        let mut all = Self {
            dimension: d,
            n_points,
            n_q,
            inverses: vec![[0.0; LANES]; n_batches * n_points * d * d],
            weights: vec![[0.0; LANES]; n_batches * n_q],
            points: vec![[0.0; LANES]; if needs_points { n_batches * 3 * n_q } else { 0 }],
        };
        let mut points = all.points.chunks_exact_mut(3 * n_q);
        let batches = all.inverses.chunks_exact_mut(n_points * d * d).zip(all.weights.chunks_exact_mut(n_q));
        let batches: Vec<_> = batches.map(|of| (of, points.next().unwrap_or_default())).enumerate().collect();
        parallel::try_for_each_item_with(batches, PointMap::default, |map, (batch, of_batch)| {
            let ((inverses, weights), points) = of_batch;
            for lane in 0..LANES {
                // Lanes without a cell repeat the last one with weight zero.
                let position = (batch * LANES + lane).min(space.n_cells() - 1);
                let is_cell = batch * LANES + lane < space.n_cells();
                mapping.of_cell(position, map)?;
                for q in 0..n_q {
                    let det = map.determinants[q.min(n_mapped - 1)];
                    if is_cell {
                        weights[q][lane] = basis.rule.weights[q] * det.abs();
                    }
                    if q < n_points {
                        let inverse = inverse(&map.jacobians[q], det);
                        for a in 0..d {
                            for i in 0..d {
                                inverses[(q * d + a) * d + i][lane] = inverse[a][i];
                            }
                        }
                    }
                    if needs_points {
                        (0..3).for_each(|axis| points[axis * n_q + q][lane] = map.points[q][axis]);
                    }
                }
            }
            Ok::<_, OperatorError>(())
        })?;
        Ok(all)
    }

    /// Returns whether each cell has one Jacobian.
    pub fn is_affine(&self) -> bool {
        self.n_points == 1
    }

    /// Returns its size.
    pub fn bytes(&self) -> usize {
        [&self.inverses, &self.weights, &self.points].into_iter().map(|values| size_of_val(&values[..])).sum()
    }

    /// Returns inverse Jacobian by rows and weight of a cell at its points, with the weights of the points:
    /// `[d² + 1][n_q]`.
    pub fn of_cell(&self, batch: usize, lane: usize) -> Vec<f64> {
        let (of_batch, n_entries) = (self.batch(batch), self.dimension * self.dimension);
        let at = |q: usize| if self.n_points == 1 { 0 } else { q * n_entries };
        let inverses = (0..n_entries).flat_map(|e| (0..self.n_q).map(move |q| (e, q)));
        let inverses = inverses.map(|(e, q)| of_batch.inverses[at(q) + e][lane]);
        inverses.chain(of_batch.weights.iter().map(|weight| weight[lane])).collect()
    }

    pub fn batch(&self, batch: usize) -> BatchGeometry<'_> {
        let of = |all: &'_ [Lanes], n: usize| -> std::ops::Range<usize> {
            if all.is_empty() { 0..0 } else { batch * n..(batch + 1) * n }
        };
        BatchGeometry {
            inverses: &self.inverses[of(&self.inverses, self.n_points * self.dimension * self.dimension)],
            weights: &self.weights[of(&self.weights, self.n_q)],
            points: &self.points[of(&self.points, 3 * self.n_q)],
            is_affine: self.n_points == 1,
        }
    }
}

impl BatchGeometry<'_> {
    /// Returns the gradients of the shape functions of linear simplices with N corners, which are the barycentric coordinates.
    #[inline(always)]
    pub fn gradients_of_linear<const D: usize, const N: usize>(&self) -> [[Lanes; N]; D] {
        let mut gradients = [[[0.0; LANES]; N]; D];
        for i in 0..D {
            for a in 0..N - 1 {
                let inverse = &self.inverses[a * D + i];
                gradients[i][1 + a] = *inverse;
                for lane in 0..LANES {
                    gradients[i][0][lane] -= inverse[lane];
                }
            }
        }
        gradients
    }

    /// Turns derivatives along the axes of the reference cell into those in space.
    ///
    /// # Shapes
    /// `slots: [1 + d][n_q]`; the first slot, the value, stays as it is.
    #[inline(always)]
    pub fn map_to_space<const D: usize>(&self, slots: &mut [Lanes]) {
        let n_q = self.weights.len();
        for q in 0..n_q {
            let inverse = &self.inverses[if self.is_affine { 0 } else { q * D * D }..][..D * D];
            let along: [Lanes; D] = std::array::from_fn(|a| slots[(1 + a) * n_q + q]);
            for i in 0..D {
                let mut sum = [0.0; LANES];
                for a in 0..D {
                    let (inverse, along) = (&inverse[a * D + i], &along[a]);
                    add_products(&mut sum, inverse, along);
                }
                slots[(1 + i) * n_q + q] = sum;
            }
        }
    }

    /// Multiplies fluxes by the weights and turns them to the axes of the reference cell: the transpose of
    /// [`Self::map_to_space`], with weights.
    #[inline(always)]
    pub fn map_to_reference<const D: usize>(&self, slots: &mut [Lanes]) {
        let n_q = self.weights.len();
        for q in 0..n_q {
            let inverse = &self.inverses[if self.is_affine { 0 } else { q * D * D }..][..D * D];
            let weight = &self.weights[q];
            multiply(&mut slots[q], weight);
            let flux: [Lanes; D] = std::array::from_fn(|i| slots[(1 + i) * n_q + q]);
            for a in 0..D {
                let mut sum = [0.0; LANES];
                for i in 0..D {
                    let (inverse, flux) = (&inverse[a * D + i], &flux[i]);
                    add_products(&mut sum, inverse, flux);
                }
                multiply(&mut sum, weight);
                slots[(1 + a) * n_q + q] = sum;
            }
        }
    }
}

impl BatchGeometry<'_> {
    /// Multiplies a block of D' by the weights and turns both of its sides to the axes of the reference cell: of each row and
    /// column, that of the value or those of the derivatives, only where `has` is true.
    ///
    /// # Shapes
    /// `block: [1 + d][1 + d][n_q]`
    #[inline(always)]
    pub fn map_block_to_reference<const D: usize>(&self, block: &mut [Lanes], has: [[bool; 2]; 2]) {
        let n_q = self.weights.len();
        let at = |row: usize, column: usize, q: usize| (row * (1 + D) + column) * n_q + q;
        let [rows, columns] = [
            [has[0][0] || has[0][1], has[1][0] || has[1][1]],
            [has[0][0] || has[1][0], has[0][1] || has[1][1]],
        ]
        .map(slots::<D>);
        for q in 0..n_q {
            let inverse = &self.inverses[if self.is_affine { 0 } else { q * D * D }..][..D * D];
            if has[1][0] || has[1][1] {
                for column in columns.clone() {
                    let old: [Lanes; D] = std::array::from_fn(|i| block[at(1 + i, column, q)]);
                    for a in 0..D {
                        block[at(1 + a, column, q)] = combined::<D>(inverse, a, &old);
                    }
                }
            }
            for row in rows.clone() {
                if has[row.min(1)][1] {
                    let old: [Lanes; D] = std::array::from_fn(|i| block[at(row, 1 + i, q)]);
                    for a in 0..D {
                        block[at(row, 1 + a, q)] = combined::<D>(inverse, a, &old);
                    }
                }
                for column in columns.clone() {
                    multiply(&mut block[at(row, column, q)], &self.weights[q]);
                }
            }
        }
    }
}

/// Multiplies values lane by lane.
#[inline(always)]
pub(super) fn multiply(values: &mut Lanes, factors: &Lanes) {
    for lane in 0..LANES {
        values[lane] *= factors[lane];
    }
}

/// Returns the range of slots from whether there is a value and whether there are derivatives.
#[inline(always)]
pub(super) fn slots<const D: usize>([has_value, has_derivatives]: [bool; 2]) -> std::ops::Range<usize> {
    usize::from(!has_value)..if has_derivatives { 1 + D } else { 1 }
}

/// Returns $\sum_i (\partial\xi_a/\partial x_i)\, v_i$.
#[inline(always)]
fn combined<const D: usize>(inverse: &[Lanes], a: usize, values: &[Lanes; D]) -> Lanes {
    let mut sum = [0.0; LANES];
    for i in 0..D {
        let (inverse, value) = (&inverse[a * D + i], &values[i]);
        add_products(&mut sum, inverse, value);
    }
    sum
}
