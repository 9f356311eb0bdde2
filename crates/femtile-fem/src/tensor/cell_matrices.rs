//! Cell matrices by plain loops over dense shape functions: the reference of matrix-free operators.

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellRule, product_table};

use crate::FemError;
use crate::evaluation::{CellPoints, TensorBasis, dot};
use crate::forms::{Coefficient, PointCoefficients, Points};

/// Cell matrices of $-\nabla\cdot(\sigma\nabla u) + \lambda u$ on a space.
///
/// $$ K_{ij} = \sum_q w_q |\det J_q| \left( J_q^{-\mathsf{T}}\nabla\varphi_i \cdot \sigma_q J_q^{-\mathsf{T}}\nabla\varphi_j
///    + \lambda_q \varphi_i\varphi_j \right) $$
pub struct CellMatrices<'a> {
    basis: TensorBasis<'a>,
    coefficients: PointCoefficients<'a>,
    shapes: DenseShapes,
}

/// The shape functions of a space at the points of a rule.
pub(super) struct DenseShapes {
    n: usize,
    /// $\varphi_i$ at the points: `[n_q][n]`.
    values: Vec<f64>,
    /// Their gradients on the reference cell: `[n_q][n]`.
    gradients: Vec<[f64; 3]>,
}

impl DenseShapes {
    pub fn new(space: &TensorSpace<'_>, rule: CellRule) -> Self {
        let (d, line) = (space.dimension(), space.shapes());
        let (points, _) = rule.rule(space.degree());
        let (values, slopes) = (line.values(&points), line.slopes(&points));
        let tables = (0..d).map(|axis| product_table(&values, &slopes, d, Some(axis))).collect::<Vec<_>>();
        let values = product_table(&values, &slopes, d, None);
        let gradient = |at| std::array::from_fn(|axis| tables.get(axis).map_or(0.0, |table| table[at]));
        Self { n: space.dofs_per_cell(), gradients: (0..values.len()).map(gradient).collect(), values }
    }

    /// Returns the values at a point: `[n]`.
    pub fn values(&self, q: usize) -> &[f64] {
        &self.values[q * self.n..][..self.n]
    }

    /// Returns the gradients on the reference cell at a point: `[n]`.
    pub fn gradients(&self, q: usize) -> &[[f64; 3]] {
        &self.gradients[q * self.n..][..self.n]
    }

    /// Adds the terms of a point to a matrix `[n][n]`.
    pub fn add_point(&self, matrix: &mut [f64], q: usize, terms: &PointTerms, fluxes: &mut Vec<[f64; 3]>) {
        let (shapes, gradients) = (self.values(q), self.gradients(q));
        fluxes.clear();
        fluxes.extend(gradients.iter().map(|&gradient| terms.flux(gradient)));
        for (i, row) in matrix.chunks_exact_mut(self.n).enumerate() {
            let with_value = terms.reaction * shapes[i] + dot(terms.drift, gradients[i]);
            for ((entry, gradient), shape) in row.iter_mut().zip(gradients).zip(shapes) {
                *entry += dot(fluxes[i], *gradient) + with_value * shape;
            }
        }
    }
}

/// Terms of a linear form at a point of a cell, with its weight and volume, on the reference cell.
pub(super) struct PointTerms {
    metric: [[f64; 3]; 3],
    pub reaction: f64,
    /// $d$ in $\int u\,d\cdot\nabla v$.
    pub drift: [f64; 3],
}

impl PointTerms {
    /// Returns $w J^{-1} \sigma J^{-\mathsf{T}}$ and $w \lambda$, without a drift.
    pub fn new(weight: f64, inverse: &[[f64; 3]; 3], sigma: &[[f64; 3]; 3], lambda: f64) -> Self {
        let metric = inverse.map(|row| {
            let flux = sigma.map(|sigma| dot(sigma, row));
            inverse.map(|other| weight * dot(flux, other))
        });
        Self { metric, reaction: weight * lambda, drift: [0.0; 3] }
    }

    /// Returns the flux of a gradient.
    fn flux(&self, gradient: [f64; 3]) -> [f64; 3] {
        self.metric.map(|row| dot(row, gradient))
    }
}

/// Workspace for the matrix of a cell.
#[derive(Debug, Default)]
pub struct CellScratch {
    cell: CellPoints,
    points: Points,
    tape: TapeScratch,
    /// σ and λ at the points.
    sigma: Vec<[[f64; 3]; 3]>,
    lambda: Vec<f64>,
    fluxes: Vec<[f64; 3]>,
}

impl<'a> CellMatrices<'a> {
    /// Prepares evaluation with a rule along each axis.
    ///
    /// # Errors
    /// [`femtile_form::FormError::Shape`] for a coefficient of the wrong shape.
    pub fn new(
        space: &'a TensorSpace<'a>,
        sigma: &'a Coefficient,
        lambda: &'a Coefficient,
        rule: CellRule,
    ) -> Result<Self, FemError> {
        Ok(Self {
            basis: TensorBasis::new(space, rule),
            coefficients: PointCoefficients::new(space.mesh(), sigma, lambda)?,
            shapes: DenseShapes::new(space, rule),
        })
    }

    /// Returns the space.
    pub fn space(&self) -> &'a TensorSpace<'a> {
        self.basis.space
    }

    /// Returns the matrix of the cell at a position: `[n][n]` with n degrees of freedom in the order of
    /// [`TensorSpace::cell_dofs`].
    ///
    /// # Cost
    /// $O(n_q n^2)$, which is $O(p^{3d})$.
    /// # Errors
    /// A folded cell, a coefficient that is not finite, a σ that is not symmetric positive definite, a negative λ.
    pub fn matrix(&self, position: usize) -> Result<Vec<f64>, FemError> {
        let mut matrix = vec![0.0; self.shapes.n * self.shapes.n];
        self.write_matrix(position, &mut CellScratch::default(), &mut matrix)?;
        Ok(matrix)
    }

    /// Writes [`Self::matrix`].
    ///
    /// # Errors
    /// Those of [`Self::matrix`].
    /// # Panics
    /// Unless there is room for `[n][n]`.
    pub fn write_matrix(
        &self,
        position: usize,
        scratch: &mut CellScratch,
        matrix: &mut [f64],
    ) -> Result<(), FemError> {
        assert_eq!(matrix.len(), self.shapes.n * self.shapes.n, "room for the matrix of a cell");
        matrix.fill(0.0);
        self.for_points(position, scratch, |q, terms, fluxes| {
            self.shapes.add_point(matrix, q, terms, fluxes);
        })
    }

    /// Returns the product of the cell matrix and values at the nodes of the cell, without assembling the matrix.
    ///
    /// # Cost
    /// $O(n_q n)$, which is $O(p^{2d})$.
    /// # Errors
    /// Errors of [`Self::matrix`].
    /// # Panics
    /// Unless there is one value per degree of freedom of the cell.
    pub fn product(&self, position: usize, x: &[f64]) -> Result<Vec<f64>, FemError> {
        assert_eq!(x.len(), self.shapes.n, "values of a cell");
        let mut y = vec![0.0; x.len()];
        self.for_points(position, &mut CellScratch::default(), |q, terms, _| {
            let (shapes, gradients) = (self.shapes.values(q), self.shapes.gradients(q));
            let value: f64 = shapes.iter().zip(x).map(|(shape, x)| shape * x).sum();
            let slopes = gradients.iter().zip(x);
            let slope = slopes.fold([0.0; 3], |sum, (g, x)| std::array::from_fn(|a| sum[a] + g[a] * x));
            let (flux, reaction) = (terms.flux(slope), terms.reaction * value);
            for (i, y) in y.iter_mut().enumerate() {
                *y += dot(flux, gradients[i]) + reaction * shapes[i];
            }
        })?;
        Ok(y)
    }

    /// Calls `visit` with the number and the terms of each point of the rule in a cell.
    fn for_points(
        &self,
        position: usize,
        scratch: &mut CellScratch,
        mut visit: impl FnMut(usize, &PointTerms, &mut Vec<[f64; 3]>),
    ) -> Result<(), FemError> {
        let CellScratch { cell, points, tape, sigma, lambda, fluxes } = scratch;
        self.basis.write_points(cell, position)?;
        points.clear();
        points.extend(cell.cell, &cell.map.points);
        sigma.resize(points.len(), [[0.0; 3]; 3]);
        lambda.resize(points.len(), 0.0);
        self.coefficients.sigma(sigma, points, tape)?;
        self.coefficients.lambda(lambda, points, tape)?;
        for (q, inverse) in cell.inverse_jacobians().enumerate() {
            visit(q, &PointTerms::new(cell.weights[q], &inverse, &sigma[q], lambda[q]), fluxes);
        }
        Ok(())
    }

    /// Computes $y = A x$ without constraints and facet terms.
    ///
    /// # Cost
    /// [`Self::product`] for each cell.
    /// # Errors
    /// Errors of [`Self::matrix`]; [`FemError::Length`] if a length does not match.
    pub fn apply(&self, y: &mut [f64], x: &[f64]) -> Result<(), FemError> {
        let space = self.basis.space;
        for (field, found) in [("y", y.len()), ("x", x.len())] {
            if found != space.n_dofs() {
                return Err(FemError::Length { field, found, expected: space.n_dofs() });
            }
        }
        let of_cell = |position: usize| {
            let mut dofs = vec![0; self.shapes.n];
            space.cell_dofs(position, &mut dofs);
            let values: Vec<f64> = dofs.iter().map(|&dof| x[dof as usize]).collect();
            Ok((dofs, self.product(position, &values)?))
        };
        let parts: Vec<Result<_, FemError>> = parallel::map(space.n_cells(), 1, of_cell);
        y.fill(0.0);
        for part in parts {
            let (dofs, products) = part?;
            dofs.iter().zip(products).for_each(|(&dof, product)| y[dof as usize] += product);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_expression::Expression;
    use femtile_form::FormError;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
    use femtile_mesh::{CellKind, Mesh};
    use femtile_space::Space;

    fn formula(text: &str) -> Coefficient {
        Coefficient::Expression(Expression::parse(text).unwrap())
    }

    /// A box of hexahedra, sheared.
    fn sheared() -> Mesh {
        let config = BoxConfig { cells: [2, 1, 2], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        mesh.points.iter_mut().for_each(|p| *p = [p[0] + 0.3 * p[1], p[1] - 0.2 * p[2], p[2]]);
        mesh
    }

    fn square() -> Mesh {
        let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [1.2, 1.0, 0.0], [0.1, 0.9, 0.0]];
        Mesh::new(points, CellKind::Quadrilateral, vec![0, 1, 2, 3]).unwrap()
    }

    fn rules() -> [CellRule; 3] {
        [CellRule::default(), CellRule::Gauss { extra: 1 }, CellRule::GaussLobatto]
    }

    /// Values of a function at the nodes.
    fn nodal<'a>(space: &'a TensorSpace<'a>, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        Space::from(space).node_points().into_iter().map(f).collect()
    }

    #[test]
    fn the_stiffness_of_the_unit_cube_is_the_textbook_one() {
        let config = BoxConfig { cells: [1, 1, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mesh = box_mesh(&config).unwrap();
        let space = TensorSpace::new(&mesh, 1).unwrap();
        let (one, zero) = (Coefficient::Constant(1.0), Coefficient::Constant(0.0));
        let matrix = CellMatrices::new(&space, &one, &zero, CellRule::default()).unwrap().matrix(0).unwrap();
        for (at, entry) in matrix.iter().enumerate() {
            // Indexed by the number of coordinates in which two corners differ.
            let expected = [1.0 / 3.0, 0.0, -1.0 / 12.0, -1.0 / 12.0];
            let differing = ((at / 8) ^ (at % 8)).count_ones();
            assert!((entry - expected[differing as usize]).abs() < 1e-15, "{at}: {entry}");
        }
    }

    #[test]
    fn cell_matrices_are_symmetric_positive_and_free_of_constants() {
        let (sigma, zero, lambda) = (formula("1 + x^2 + y"), Coefficient::Constant(0.0), formula("1 + y*y"));
        for mesh in [sheared(), square()] {
            for (degree, rule) in (1..=3).flat_map(|degree| rules().map(|rule| (degree, rule))) {
                let space = TensorSpace::new(&mesh, degree).unwrap();
                let n = space.dofs_per_cell();
                let stiff = CellMatrices::new(&space, &sigma, &zero, rule).unwrap().matrix(0).unwrap();
                let cells = CellMatrices::new(&space, &sigma, &lambda, rule).unwrap();
                let full = cells.matrix(0).unwrap();
                for i in 0..n {
                    assert!(stiff[i * n..][..n].iter().sum::<f64>().abs() < 1e-12);
                    (0..n).for_each(|j| assert!((full[i * n + j] - full[j * n + i]).abs() < 1e-13));
                }
                let energy = |m: &[f64], x: &[f64]| -> f64 {
                    (0..n * n).map(|at| m[at] * x[at / n] * x[at % n]).sum()
                };
                for seed in 1..6 {
                    let x: Vec<f64> = (0..n).map(|i| ((i * i * seed + 3 * i) as f64).sin()).collect();
                    assert!(energy(&stiff, &x) > 0.0 && energy(&full, &x) > energy(&stiff, &x));
                }
                assert!(energy(&full, &vec![1.0; n]) > 0.0);
                let x: Vec<f64> = (0..n).map(|i| ((i * i + 2) as f64).cos()).collect();
                for (row, product) in full.chunks_exact(n).zip(cells.product(0, &x).unwrap()) {
                    let expected: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
                    assert!((product - expected).abs() < 1e-12, "{product} instead of {expected}");
                }
            }
        }
    }

    #[test]
    fn linear_functions_have_their_energy_and_no_residual_inside() {
        let mesh = sheared();
        let sigma = Coefficient::Tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]]);
        let zero = Coefficient::Constant(0.0);
        for (degree, rule) in (1..=4).flat_map(|degree| rules().map(|rule| (degree, rule))) {
            let space = TensorSpace::new(&mesh, degree).unwrap();
            let u = nodal(&space, |[x, y, z]| 1.0 + 2.0 * x - y + 0.5 * z);
            let mut residual = vec![f64::NAN; u.len()];
            CellMatrices::new(&space, &sigma, &zero, rule).unwrap().apply(&mut residual, &u).unwrap();
            let energy: f64 = residual.iter().zip(&u).map(|(r, u)| r * u).sum();
            // g·σg for g = (2, −1, ½) on a volume of one.
            assert!((energy - 7.55).abs() < 1e-11, "{energy}");
            let near_side = nodal(&space, |[x, y, z]| {
                let (y, x) = (y + 0.2 * z, x - 0.3 * (y + 0.2 * z));
                f64::from(u8::from([x, y, z].iter().any(|&t| !(1e-9..=1.0 - 1e-9).contains(&t))))
            });
            let inside = residual.iter().zip(&near_side).filter(|(_, side)| **side == 0.0);
            assert!(inside.map(|(r, _)| r.abs()).fold(0.0, f64::max) < 1e-12);
        }
    }

    #[test]
    fn coefficients_out_of_range_are_named_with_their_cell() {
        let mesh = sheared();
        let space = TensorSpace::new(&mesh, 2).unwrap();
        let (one, bad) = (Coefficient::Constant(1.0), formula("0.5 - z"));
        let of = |sigma: &Coefficient, lambda: &Coefficient| {
            let cells = CellMatrices::new(&space, sigma, lambda, CellRule::default()).unwrap();
            (0..4).filter_map(|position| cells.matrix(position).err()).next().unwrap()
        };
        assert!(matches!(of(&bad, &one), FemError::Form(FormError::Indefinite { field: "sigma", .. })));
        assert!(matches!(of(&one, &bad), FemError::Form(FormError::Negative { field: "lambda", .. })));
        let infinite = formula("log(x - 10)");
        assert!(matches!(of(&one, &infinite), FemError::Form(FormError::NotFinite { field: "lambda", .. })));
    }
}
