use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::TensorSpace;
use femtile_space::geometry::{AtPoints, CellMap, CellMaps};

use super::SOURCE_RULE;
use crate::FemError;
use crate::evaluation::{Evaluation, TensorBasis};
use crate::forms::{Compiled, Form, PointCoefficients, Points};
use crate::functionals::check_length;
use crate::recovery::{
    ByRegion, CellVectors, Elements, ErrorEstimate, Incidence, IsInterrupted, Polynomial, Regions, dot,
    minus_product,
};

/// The recovered gradient of elements of degree p, by polynomial-preserving recovery.
///
/// For each vertex of the mesh, a polynomial $q_z$ of total degree p + 1 is fitted to values at nodes by least squares,
/// from the cells around the vertex and further rings of cells until it is determined. With the multilinear functions
/// $\lambda_z$ of the vertices of a cell, the recovered gradient at its nodes x is
///
/// $$ Gu(x) = \sum_z \lambda_z(x)\,\nabla q_z(x), $$
///
/// and a polynomial of degree p between them. As in [`crate::recovery::RecoveredGradient`], a polynomial is
/// rejected if its gradient at a node with $\lambda_z > 0$ exceeds by half the largest one of the cells
/// around z, at the Gauss points of the cells. Within this limit $Gu$ is exact for polynomials of total
/// degree p + 1 at the nodes. It converges with order p + 1 on regular meshes; the gradient of the elements
/// has order p. If σ jumps, each region has its own gradient.
///
/// # Source
/// `[naga2005]`, for elements of any degree. Differs: polynomials are combined with multilinear weights in
/// the whole cell; for high degrees, only the number of nodes per axis that polynomials need is fitted.
#[derive(Debug)]
pub struct RecoveredGradient<'a> {
    space: &'a TensorSpace<'a>,
    form: Form<'a>,
    u: &'a [f64],
    regions: Regions,
    points: Vec<[f64; 3]>,
    /// The gradient of u in the cells, by position.
    own: Vec<CellVectors>,
    polynomials: ByRegion<Polynomial>,
    /// Multilinear functions at the nodes of a cell: `[(p + 1)^d][2^d]`.
    weights: Vec<f64>,
}

struct TensorElements<'a> {
    space: &'a TensorSpace<'a>,
    points: &'a [[f64; 3]],
    /// Fitted nodes of a cell.
    sampled: Vec<usize>,
    weights: &'a [f64],
    own: &'a [CellVectors],
}

impl Elements for TensorElements<'_> {
    fn n_cells(&self) -> usize {
        self.space.n_cells()
    }

    fn n_vertices(&self) -> usize {
        self.space.mesh().n_nodes()
    }

    fn corners(&self, cell: u32) -> &[u32] {
        self.space.corners(cell as usize)
    }

    fn cell_of_mesh(&self, cell: u32) -> u32 {
        self.space.order()[cell as usize]
    }

    fn add_samples(&self, cell: u32, samples: &mut Vec<u32>) {
        let mut dofs = vec![0; self.space.dofs_per_cell()];
        self.space.cell_dofs(cell as usize, &mut dofs);
        samples.extend(self.sampled.iter().map(|&at| dofs[at]));
    }

    fn add_weighted(&self, cell: u32, vertex: u32, dofs: &mut Vec<u32>) {
        let mut all = vec![0; self.space.dofs_per_cell()];
        self.space.cell_dofs(cell as usize, &mut all);
        let corners = self.corners(cell);
        let own = |weights: &[f64]| {
            corners.iter().zip(weights).any(|(&other, weight)| other == vertex && *weight != 0.0)
        };
        let weighted = all.iter().zip(self.weights.chunks_exact(corners.len()));
        dofs.extend(weighted.filter(|(_, weights)| own(weights)).map(|(dof, _)| dof));
    }

    fn own_gradient(&self, cell: u32) -> CellVectors {
        self.own[cell as usize]
    }

    fn vertex_point(&self, vertex: u32) -> [f64; 3] {
        self.space.mesh().points[vertex as usize]
    }

    fn point(&self, dof: u32) -> [f64; 3] {
        self.points[dof as usize]
    }

    fn dimension(&self) -> usize {
        self.space.dimension()
    }

    fn degree(&self) -> usize {
        self.space.degree()
    }
}

impl<'a> RecoveredGradient<'a> {
    /// Recovers the gradient of the function with degrees of freedom `u: [n_dofs]`.
    ///
    /// # Cost
    /// One least-squares problem per vertex, $O(p^{3d})$; in three dimensions with 20 unknowns and 125 equations for p
    /// = 2, 56 and 343 for p = 4.
    /// # Errors
    /// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell.
    pub fn new(space: &'a TensorSpace<'a>, form: &Form<'a>, u: &'a [f64]) -> Result<Self, FemError> {
        Self::new_interruptible(space, form, u, &|| false)
    }

    /// As [`Self::new`], with a query per vertex whether to stop.
    ///
    /// # Errors
    /// Errors of [`Self::new`]; [`FemError::Interrupted`].
    pub fn new_interruptible(
        space: &'a TensorSpace<'a>,
        form: &Form<'a>,
        u: &'a [f64],
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        check_length(u, space.n_dofs())?;
        let (nodes, d) = (space.shapes().nodes().to_vec(), space.dimension());
        let points = node_points(space, &nodes);
        let weights: Vec<f64> = (0..space.dofs_per_cell())
            .flat_map(|at| {
                let coordinate = |a: usize| nodes[at / nodes.len().pow(a as u32) % nodes.len()];
                let factor = |corner: usize, a: usize| {
                    if corner >> a & 1 == 1 { coordinate(a) } else { 1.0 - coordinate(a) }
                };
                (0..1 << d).map(|corner| (0..d).map(|a| factor(corner, a)).product()).collect::<Vec<f64>>()
            })
            .collect();
        let evaluation = Evaluation::on_tensor_cells(space, SOURCE_RULE);
        let own = evaluation.map(|found, points| {
            evaluation.gradients(found, points, u);
            Ok(together(&found.gradients, &points.weights))
        })?;
        let sampled = sampled(space.degree(), d);
        let elements = TensorElements { space, points: &points, sampled, weights: &weights, own: &own };
        let (regions, incidence) = (Regions::new(space.mesh(), form.sigma), Incidence::new(&elements));
        let polynomials = ByRegion::new(&elements, &incidence, &regions, u, is_interrupted, |_, q| q)?;
        Ok(Self { space, form: *form, u, regions, points, own, polynomials, weights })
    }

    /// Returns $Gu$ at the nodes of the elements: `[n_dofs × 3]`, the components of a node one after another, zero
    /// along z in two dimensions.
    ///
    /// At interfaces between regions, the mean over the cells around the node. If it exceeds by half the
    /// largest gradient at the Gauss points of these cells, p + 2 along each axis, it is the mean of these
    /// cells weighted by volume.
    pub fn at_nodes(&self) -> Vec<f64> {
        let found: Result<Vec<f64>, std::convert::Infallible> =
            self.limited(&self.own, |position| Ok(self.in_cell(position)));
        found.unwrap_or_else(|never| match never {})
    }

    /// Returns the flux density $-\sigma\,Gu$ at the nodes: `[n_dofs × 3]`, as [`Self::at_nodes`], limited by that of the cells.
    ///
    /// # Errors
    /// A σ that is not finite at a node.
    pub fn flux_density(&self) -> Result<Vec<f64>, FemError> {
        let (mesh, d) = (self.form.mesh, self.space.dimension());
        let sigma = Compiled::tensor("sigma", self.form.sigma, mesh)?;
        let fluxes = |gradients: &[[f64; 3]], points: &Points, tape: &mut TapeScratch| {
            let mut tensors = vec![[[0.0; 3]; 3]; gradients.len()];
            sigma.eval_tensor(&mut tensors, points, d, tape)?;
            let pairs = tensors.iter().zip(gradients);
            Ok::<Vec<[f64; 3]>, FemError>(pairs.map(|(sigma, &g)| minus_product(sigma, g)).collect())
        };
        let evaluation = Evaluation::on_tensor_cells(self.space, SOURCE_RULE);
        let own = evaluation.map(|found, points| {
            evaluation.gradients(found, points, self.u);
            points.write_points_with_values(found);
            Ok(together(&fluxes(&found.gradients, &found.points, &mut found.tape)?, &points.weights))
        })?;
        self.limited(&own, |position| {
            let mut dofs = vec![0; self.space.dofs_per_cell()];
            self.space.cell_dofs(position, &mut dofs);
            let mut points = Points::default();
            let nodes: Vec<[f64; 3]> = dofs.iter().map(|&dof| self.points[dof as usize]).collect();
            points.extend(self.space.order()[position], &nodes);
            points.unknown.extend(dofs.iter().map(|&dof| self.u[dof as usize]));
            fluxes(&self.in_cell(position), &points, &mut TapeScratch::default())
        })
    }

    /// Returns the error estimate
    ///
    /// $$ \eta_K^2 = \int_K \sigma\,(Gu - \nabla u)\cdot(Gu - \nabla u) \approx \int_K \sigma\,\nabla e\cdot\nabla e $$
    ///
    /// by Gauss quadrature with p + 2 points along each axis.
    ///
    /// On coarse meshes with high degree, one-sided fits at the boundary make it up to a few times too large.
    ///
    /// # Errors
    /// [`FemError::Space`] for a folded cell; a coefficient out of its range.
    /// # Source
    /// `[zienkiewicz1987]`, with the recovered gradient of `[naga2005]`.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        let coefficients = PointCoefficients::of_any_sign(self.form.mesh, self.form.sigma, self.form.lambda)?;
        let evaluation = Evaluation::on_tensor_cells(self.space, SOURCE_RULE);
        let basis = TensorBasis::new(self.space, SOURCE_RULE);
        let positions: Vec<usize> = (0..self.space.n_cells()).collect();
        let of_cells = evaluation.map_at(&positions, |found, points, position| {
            evaluation.gradients(found, points, self.u);
            points.write_points_with_values(found);
            let mut sigma = vec![[[0.0; 3]; 3]; found.points.len()];
            coefficients.sigma(&mut sigma, &found.points, &mut found.tape)?;
            let mut recovered = AtPoints::default();
            recovered.values = self.in_cell(position).into_flattened();
            basis.interpolate(&mut recovered, 3);
            let terms = recovered
                .values
                .as_chunks::<3>()
                .0
                .iter()
                .zip(&found.gradients)
                .zip(&sigma)
                .zip(&points.weights);
            let squares = terms.map(|(((recovered, own), sigma), weight)| {
                let e: [f64; 3] = std::array::from_fn(|a| recovered[a] - own[a]);
                [e, *own].map(|v| weight * dot(sigma.map(|row| dot(row, v)), v))
            });
            Ok((points.cell, squares.fold([0.0; 2], |sum, term| [sum[0] + term[0], sum[1] + term[1]])))
        })?;
        let mut squares = vec![[0.0; 2]; of_cells.len()];
        of_cells.into_iter().for_each(|(cell, square)| squares[cell as usize] = square);
        let (degree, polynomials) = (self.space.degree(), &self.polynomials);
        let lowered = polynomials.share(|found| found.degree() <= degree);
        Ok(ErrorEstimate::of_squares(squares, lowered))
    }

    /// Returns $Gu$ at the nodes of the cell at a position.
    fn in_cell(&self, position: usize) -> Vec<[f64; 3]> {
        let mut dofs = vec![0; self.space.dofs_per_cell()];
        self.space.cell_dofs(position, &mut dofs);
        let region = self.regions.of(self.space.order()[position]);
        let corners = self.space.corners(position);
        let polynomials: Vec<Option<&Polynomial>> =
            corners.iter().map(|&vertex| self.polynomials.get(vertex, region)).collect();
        let at_node = |(&dof, weights): (&u32, &[f64])| {
            let mut sum = [0.0; 3];
            for (weight, polynomial) in weights.iter().zip(&polynomials).filter(|(weight, _)| **weight != 0.0)
            {
                let g = polynomial.map_or([f64::NAN; 3], |q| q.gradient(self.points[dof as usize]));
                (0..3).for_each(|a| sum[a] += weight * g[a]);
            }
            sum
        };
        dofs.iter().zip(self.weights.chunks_exact(corners.len())).map(at_node).collect()
    }

    /// Averages vectors at the nodes of cells over the cells of each node, and limits them by those that cells have.
    fn limited<E: Send>(
        &self,
        own: &[CellVectors],
        of_cell: impl Fn(usize) -> Result<Vec<[f64; 3]>, E> + Sync,
    ) -> Result<Vec<f64>, E> {
        let (n_cells, n_dofs) = (self.space.n_cells(), self.space.n_dofs());
        let mut around = vec![([0.0; 3], 0u32, CellVectors::default()); n_dofs];
        let mut dofs = vec![0; self.space.dofs_per_cell()];
        for block in (0..n_cells).step_by(BLOCK) {
            let positions = block..(block + BLOCK).min(n_cells);
            let found = parallel::map(positions.len(), 1, |i| of_cell(positions.start + i));
            for (position, vectors) in positions.zip(found) {
                self.space.cell_dofs(position, &mut dofs);
                for (&dof, vector) in dofs.iter().zip(vectors?) {
                    let (sum, count, cells) = &mut around[dof as usize];
                    (0..3).for_each(|a| sum[a] += vector[a]);
                    *count += 1;
                    *cells = *cells + own[position];
                }
            }
        }
        let means = around
            .into_iter()
            .flat_map(|(sum, count, cells)| cells.limited(sum.map(|x| x / f64::from(count))));
        Ok(means.collect())
    }
}

/// Puts vectors at the points of a cell together.
fn together(vectors: &[[f64; 3]], volumes: &[f64]) -> CellVectors {
    vectors.iter().zip(volumes).map(|(&vector, &volume)| CellVectors::new(vector, volume)).sum()
}

/// Cells whose vectors are in memory together.
const BLOCK: usize = 4096;

/// Returns the node of each degree of freedom.
fn node_points(space: &TensorSpace<'_>, nodes: &[f64]) -> Vec<[f64; 3]> {
    let maps = CellMaps::new(space, nodes);
    let (mut map, mut dofs) = (CellMap::default(), vec![0; space.dofs_per_cell()]);
    let mut points = vec![[0.0; 3]; space.n_dofs()];
    for position in 0..space.n_cells() {
        maps.of_cell(position, &mut map);
        space.cell_dofs(position, &mut dofs);
        dofs.iter().zip(&map.points).for_each(|(&dof, &point)| points[dof as usize] = point);
    }
    points
}

/// Returns evenly chosen nodes of a cell along each axis, enough that two neighbouring cells determine polynomials of
/// degree p + 1 along an axis.
fn sampled(degree: usize, d: usize) -> Vec<usize> {
    let n_steps = degree.min((degree + 2) / 2);
    let chosen: Vec<usize> = (0..=n_steps).map(|i| (i * degree + n_steps / 2) / n_steps).collect();
    let n = degree + 1;
    let is_chosen = |at: usize| (0..d).all(|a| chosen.contains(&(at / n.pow(a as u32) % n)));
    (0..n.pow(d as u32)).filter(|&at| is_chosen(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cells_side_by_side_have_enough_samples_along_an_axis() {
        for degree in 1..=10 {
            let line = sampled(degree, 1);
            assert!(line.contains(&0) && line.contains(&degree));
            assert!(2 * line.len() > degree + 2, "degree {degree}: {line:?}");
            assert_eq!(sampled(degree, 3).len(), line.len().pow(3));
        }
    }
}
