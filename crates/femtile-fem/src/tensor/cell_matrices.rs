//! Cell matrices by plain loops over dense shape functions: the reference of matrix-free operators.

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{CellMap, CellMaps, CellRule, determinant, inverse};

use crate::FemError;
use crate::forms::{Coefficient, PointCoefficients, Points};

/// Cell matrices of $-\nabla\cdot(\sigma\nabla u) + \lambda u$ on a space.
///
/// $$ K_{ij} = \sum_q w_q |\det J_q| \left( J_q^{-\mathsf{T}}\nabla\varphi_i \cdot \sigma_q J_q^{-\mathsf{T}}\nabla\varphi_j
///    + \lambda_q \varphi_i\varphi_j \right) $$
pub struct CellMatrices<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    coefficients: PointCoefficients<'a>,
    /// `[n_q]`.
    weights: Vec<f64>,
    tables: ShapeTables,
}

/// The shape functions of a space at the points of a rule.
pub(super) struct ShapeTables {
    /// $\varphi_i$ at the points: `[n_q][n]`.
    pub values: Vec<f64>,
    /// Their gradients on the reference cell: `[n_q][n]`.
    pub gradients: Vec<[f64; 3]>,
}

impl ShapeTables {
    pub fn new(space: &TensorSpace<'_>, rule: CellRule) -> Self {
        let (d, line) = (space.dimension(), space.shapes());
        let (points, _) = rule.rule(space.degree());
        let (values, slopes) = (line.values(&points), line.slopes(&points));
        let (n_q, n) = (points.len(), space.degree() + 1);
        let digit = |at: usize, a: usize, n: usize| at / n.pow(a as u32) % n;
        // Returns the product along all axes, with the slope along one of them.
        let product = |q: usize, i: usize, sloped: Option<usize>| -> f64 {
            let factor = |a: usize| {
                let table = if sloped == Some(a) { &slopes } else { &values };
                table.row(digit(q, a, n_q))[digit(i, a, n)]
            };
            (0..d).map(factor).product()
        };
        let pairs = || (0..n_q.pow(d as u32)).flat_map(|q| (0..space.dofs_per_cell()).map(move |i| (q, i)));
        let gradient = |q, i| std::array::from_fn(|a| if a < d { product(q, i, Some(a)) } else { 0.0 });
        Self {
            values: pairs().map(|(q, i)| product(q, i, None)).collect(),
            gradients: pairs().map(|(q, i)| gradient(q, i)).collect(),
        }
    }
}

/// Workspace for the matrix of a cell.
#[derive(Debug, Default)]
pub struct CellScratch {
    map: CellMap,
    points: Points,
    tape: TapeScratch,
    /// σ and λ at the points.
    sigma: Vec<[[f64; 3]; 3]>,
    lambda: Vec<f64>,
    /// Gradients in space at a point: `[n]`.
    gradients: Vec<[f64; 3]>,
}

/// Values at a quadrature point.
struct AtPoint<'a> {
    /// σ and λ, times weight and volume.
    conduction: [[f64; 3]; 3],
    reaction: f64,
    /// Shape functions and their gradients in space: `[n]`.
    shapes: &'a [f64],
    gradients: &'a [[f64; 3]],
}

impl AtPoint<'_> {
    /// Returns σ times a gradient.
    fn flux(&self, gradient: [f64; 3]) -> [f64; 3] {
        self.conduction.map(|row| dot(row, gradient))
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
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
        let coefficients = PointCoefficients::new(space.mesh(), sigma, lambda)?;
        let (points, _) = rule.rule(space.degree());
        let tables = ShapeTables::new(space, rule);
        Ok(Self {
            space,
            maps: CellMaps::new(space, &points),
            coefficients,
            weights: rule.product_weights(space.degree(), space.dimension()),
            tables,
        })
    }

    /// Returns the space.
    pub fn space(&self) -> &'a TensorSpace<'a> {
        self.space
    }

    /// Returns the matrix of the cell at a position: `[n][n]` with n degrees of freedom in the order of
    /// [`TensorSpace::cell_dofs`].
    ///
    /// # Cost
    /// $O(n_q n^2)$, which is $O(p^{3d})$.
    /// # Errors
    /// A folded cell, a coefficient that is not finite, a σ that is not symmetric positive definite, a negative λ.
    pub fn matrix(&self, position: usize) -> Result<Vec<f64>, FemError> {
        let n = self.space.dofs_per_cell();
        let mut matrix = vec![0.0; n * n];
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
        let n = self.space.dofs_per_cell();
        assert_eq!(matrix.len(), n * n, "room for the matrix of a cell");
        matrix.fill(0.0);
        self.for_points(position, scratch, |point| {
            for (i, row) in matrix.chunks_exact_mut(n).enumerate() {
                let (flux, reaction) = (point.flux(point.gradients[i]), point.reaction * point.shapes[i]);
                for (j, entry) in row.iter_mut().enumerate() {
                    *entry += dot(flux, point.gradients[j]) + reaction * point.shapes[j];
                }
            }
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
        assert_eq!(x.len(), self.space.dofs_per_cell(), "values of a cell");
        let mut y = vec![0.0; x.len()];
        self.for_points(position, &mut CellScratch::default(), |point| {
            let value: f64 = point.shapes.iter().zip(x).map(|(shape, x)| shape * x).sum();
            let slopes = point.gradients.iter().zip(x);
            let slope = slopes.fold([0.0; 3], |sum, (g, x)| std::array::from_fn(|a| sum[a] + g[a] * x));
            let (flux, reaction) = (point.flux(slope), point.reaction * value);
            for (i, y) in y.iter_mut().enumerate() {
                *y += dot(flux, point.gradients[i]) + reaction * point.shapes[i];
            }
        })?;
        Ok(y)
    }

    /// Calls `visit` for each point of the rule in a cell.
    fn for_points(
        &self,
        position: usize,
        scratch: &mut CellScratch,
        mut visit: impl FnMut(&AtPoint<'_>),
    ) -> Result<(), FemError> {
        self.maps.of_sound_cell(position, &mut scratch.map)?;
        self.take_coefficients(position, scratch)?;
        let CellScratch { map, sigma, lambda, gradients, .. } = scratch;
        let n = self.space.dofs_per_cell();
        for (q, jacobian) in map.jacobians.iter().enumerate() {
            let volume = self.weights[q] * determinant(jacobian).abs();
            let inverse = inverse(jacobian);
            let physical = |g: &[f64; 3]| -> [f64; 3] {
                std::array::from_fn(|i| (0..3).map(|a| inverse[a][i] * g[a]).sum())
            };
            gradients.clear();
            gradients.extend(self.tables.gradients[q * n..][..n].iter().map(physical));
            visit(&AtPoint {
                conduction: sigma[q].map(|row| row.map(|entry| volume * entry)),
                reaction: volume * lambda[q],
                shapes: &self.tables.values[q * n..][..n],
                gradients,
            });
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
        let n_dofs = self.space.n_dofs();
        for (field, found) in [("y", y.len()), ("x", x.len())] {
            if found != n_dofs {
                return Err(FemError::Length { field, found, expected: n_dofs });
            }
        }
        let n = self.space.dofs_per_cell();
        let of_cell = |position: usize| {
            let mut dofs = vec![0; n];
            self.space.cell_dofs(position, &mut dofs);
            let values: Vec<f64> = dofs.iter().map(|&dof| x[dof as usize]).collect();
            Ok((dofs, self.product(position, &values)?))
        };
        let parts: Vec<Result<_, FemError>> = parallel::map(self.space.n_cells(), 1, of_cell);
        y.fill(0.0);
        for part in parts {
            let (dofs, products) = part?;
            dofs.iter().zip(products).for_each(|(&dof, product)| y[dof as usize] += product);
        }
        Ok(())
    }

    /// Evaluates σ and λ at the points of the map.
    fn take_coefficients(&self, position: usize, scratch: &mut CellScratch) -> Result<(), FemError> {
        let CellScratch { map, points, tape, sigma, lambda, .. } = scratch;
        points.clear();
        points.extend(self.space.order()[position], &map.points);
        sigma.resize(points.len(), [[0.0; 3]; 3]);
        lambda.resize(points.len(), 0.0);
        self.coefficients.sigma(sigma, points, tape)?;
        self.coefficients.lambda(lambda, points, tape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_expression::Expression;
    use femtile_form::FormError;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};
    use femtile_mesh::{CellKind, Mesh};

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
    fn nodal(space: &TensorSpace<'_>, f: impl Fn([f64; 3]) -> f64) -> Vec<f64> {
        let maps = CellMaps::new(space, space.shapes().nodes());
        let (mut map, mut dofs) = (CellMap::default(), vec![0; space.dofs_per_cell()]);
        let mut values = vec![f64::NAN; space.n_dofs()];
        for position in 0..space.n_cells() {
            maps.of_cell(position, &mut map);
            space.cell_dofs(position, &mut dofs);
            map.points.iter().zip(&dofs).for_each(|(&point, &dof)| values[dof as usize] = f(point));
        }
        values
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
