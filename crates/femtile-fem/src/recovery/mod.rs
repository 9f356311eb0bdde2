//! Gradient recovery with one order more than the solution's gradient, and the error estimate from it.

mod elements;
mod fit;
mod limit;
mod patches;
mod regions;

use std::convert::Infallible;
use std::ops::Range;

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::Space;

use crate::FemError;
use crate::evaluation::Evaluation;
use crate::forms::{Compiled, Form, PointCoefficients, Points};
use elements::Elements;
use limit::CellVectors;
use patches::{ByRegion, Fit, Incidence};
use regions::Regions;

/// Returns whether to stop early; called from any thread.
pub type IsInterrupted<'a> = &'a (dyn Fn() -> bool + Sync);

/// An estimate of the discretization error in the energy seminorm.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorEstimate {
    /// $\eta_K$ of each cell of the mesh: `[n_cells]`.
    pub cells: Vec<f64>,
    /// $\eta = \sqrt{\sum_K \eta_K^2}$.
    pub total: f64,
    /// The energy seminorm of u, $(\int_\Omega \sigma\nabla u\cdot\nabla u)^{1/2}$.
    pub norm: f64,
    /// The share, from 0 to 1, of fits with too few values for a polynomial of one degree more than the
    /// elements. Their gradient is hardly better than that of the elements, and their error estimate is too
    /// small.
    pub lowered: f64,
}

impl ErrorEstimate {
    /// Computes the estimate from the squares of the estimate and of the energy seminorm of all cells.
    fn of_squares(squares: Vec<[f64; 2]>, lowered: f64) -> Self {
        let root = |which: usize| squares.iter().map(|square| square[which]).sum::<f64>().sqrt();
        let (total, norm) = (root(0), root(1));
        Self { cells: squares.into_iter().map(|[square, _]| square.sqrt()).collect(), total, norm, lowered }
    }
}

/// The gradient of a function of a space at its nodes, by polynomial-preserving recovery.
///
/// For each vertex of the mesh, a polynomial $q_z$ of total degree p + 1 is fitted to values at nodes by least squares,
/// from the cells around the vertex and further rings of cells until the polynomial and its gradient are well determined, as at
/// the boundary. With the linear or multilinear functions $\lambda_z$ of the vertices of a cell, the recovered gradient at its
/// nodes x is
///
/// $$ Gu(x) = \sum_z \lambda_z(x)\,\nabla q_z(x), $$
///
/// and a polynomial of degree p between them. A polynomial is rejected if its gradient at a node with $\lambda_z > 0$ exceeds by
/// half the largest one of the cells around z. It is replaced by that of a fit with more cells, then of lower degree, and
/// finally by the mean of the cells weighted by volume. Within this limit $Gu$ is exact for polynomials of total degree p + 1 at
/// the nodes. It converges with order p + 1 on regular meshes; the gradient of the elements has order p.
///
/// If σ jumps, the gradient jumps: patches end at cells with another coefficient, by tag or by cell field
/// with at most 64 distinct values. Nodes there have one gradient per side. A σ given by a formula is taken
/// to be smooth.
///
/// # Source
/// `[zhang2005]`, `[naga2005]`, for elements of any degree. Differs: patches grow by rings of cells, and coordinates are scaled by
/// the covariance of the points, so that the recovery does not depend on affine maps of the mesh; polynomials are combined with
/// linear weights in the whole cell; for high degrees, only the number of nodes per axis that polynomials need is fitted.
#[derive(Debug)]
pub struct RecoveredGradient<'a> {
    form: Form<'a>,
    elements: Elements<'a>,
    regions: Regions,
    fits: ByRegion,
}

/// Vectors at the nodes of a cell, each with those of the function that limit it.
type CellNodes = Vec<([f64; 3], CellVectors)>;

impl<'a> RecoveredGradient<'a> {
    /// Recovers the gradient of the function with degrees of freedom `u: [n_dofs]`.
    ///
    /// # Cost
    /// One least-squares problem per vertex, $O(p^{3d})$; with 10 unknowns and some 30 equations on tetrahedra of degree 1, with 20
    /// and 125 on hexahedra of degree 2, 56 and 343 of degree 4.
    /// # Errors
    /// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell.
    pub fn new(space: Space<'a>, form: &Form<'a>, u: &'a [f64]) -> Result<Self, FemError> {
        Self::new_interruptible(space, form, u, &|| false)
    }

    /// As [`Self::new`], with a query per vertex whether to stop.
    ///
    /// # Errors
    /// Errors of [`Self::new`]; [`FemError::Interrupted`].
    pub fn new_interruptible(
        space: Space<'a>,
        form: &Form<'a>,
        u: &'a [f64],
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let elements = Elements::new(space, form, u)?;
        let (regions, incidence) = (Regions::new(form.mesh, form.sigma), Incidence::new(&elements));
        let fits = ByRegion::new(&elements, &incidence, &regions, is_interrupted)?;
        Ok(Self { form: *form, elements, regions, fits })
    }

    /// Returns $Gu$ at the nodes of the elements: `[n_dofs × 3]`, the components of a node one after another, zero
    /// along z in two dimensions.
    ///
    /// At interfaces between regions, the mean over the cells around the node; NaN at a node without a cell. If it exceeds by
    /// half the largest gradient of these cells, on quadrilaterals and hexahedra at p + 2 Gauss points along each axis, it is
    /// their mean weighted by volume.
    pub fn at_nodes(&self) -> Vec<f64> {
        let of_cells = |cells: Range<usize>| {
            let of_cell = |i: usize| {
                let (position, own) = (cells.start + i, self.elements.gradient((cells.start + i) as u32));
                self.in_cell(position).into_iter().map(|vector| (vector, own)).collect()
            };
            Ok::<_, Infallible>(parallel::map(cells.len(), 1, of_cell))
        };
        self.limited(of_cells).unwrap_or_else(|never| match never {})
    }

    /// Returns the flux density $-\sigma\,Gu$ at the nodes: `[n_dofs × 3]`, as [`Self::at_nodes`], positive in the
    /// direction of heat flow.
    ///
    /// It is limited by the flux densities $-\sigma\nabla u$ of the cells around the node, of linear elements on simplices with σ at
    /// the node.
    ///
    /// # Errors
    /// A σ that is not finite at a node.
    pub fn flux_density(&self) -> Result<Vec<f64>, FemError> {
        let (elements, d) = (&self.elements, self.form.mesh.dimension());
        let sigma = Compiled::tensor("sigma", self.form.sigma, self.form.mesh)?;
        let sigma_at = |points: &Points, tape: &mut TapeScratch| {
            let mut tensors = vec![[[0.0; 3]; 3]; points.len()];
            sigma.eval_tensor(&mut tensors, points, d, tape)?;
            Ok::<_, FemError>(tensors)
        };
        let minus_product = |sigma: &[[f64; 3]; 3], g: [f64; 3]| sigma.map(|row| -dot(row, g));
        let evaluation = Evaluation::new(&elements.space, elements.rule);
        self.limited(|cells| {
            let positions: Vec<usize> = cells.collect();
            evaluation.map_at(&positions, |found, points, position| {
                let mut at_nodes = Points::default();
                let nodes: Vec<[f64; 3]> = points.dofs.iter().map(|&dof| elements.point(dof)).collect();
                at_nodes.extend(points.cell, &nodes);
                at_nodes.unknown.extend(points.dofs.iter().map(|&dof| elements.u[dof as usize]));
                let sigma = sigma_at(&at_nodes, &mut found.tape)?;
                let recovered = self.in_cell(position).into_iter().zip(&sigma);
                let recovered = recovered.map(|(gradient, sigma)| minus_product(sigma, gradient));
                if elements.space.is_linear() {
                    let (gradient, volume) = elements.linear_gradient(position);
                    let own = |sigma| CellVectors::new(minus_product(sigma, gradient), volume);
                    return Ok(recovered.zip(sigma.iter().map(own)).collect());
                }
                evaluation.gradients(found, points, elements.u);
                points.write_points_with_values(found);
                let sigma = sigma_at(&found.points, &mut found.tape)?;
                let own = sigma.iter().zip(&found.gradients).map(|(sigma, &g)| minus_product(sigma, g));
                let own = CellVectors::together(&own.collect::<Vec<_>>(), &points.weights);
                Ok(recovered.map(|vector| (vector, own)).collect())
            })
        })
    }

    /// Returns the error estimate
    ///
    /// $$ \eta_K^2 = \int_K \sigma\,(Gu - \nabla u)\cdot(Gu - \nabla u) \approx \int_K \sigma\,\nabla e\cdot\nabla e $$
    ///
    /// by quadrature, with p + 2 points along each axis of quadrilaterals and hexahedra. On regular meshes and for smooth solutions
    /// its ratio to the error tends to one.
    ///
    /// On coarse meshes with high degree, one-sided fits at the boundary make it up to a few times too large.
    ///
    /// # Errors
    /// [`FemError::Space`] for a folded cell; a coefficient out of its range.
    /// # Source
    /// `[zienkiewicz1987]`, with the recovered gradient of `[naga2005]`.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        let elements = &self.elements;
        let coefficients = PointCoefficients::of_any_sign(self.form.mesh, self.form.sigma, self.form.lambda)?;
        let evaluation = Evaluation::new(&elements.space, elements.rule);
        let positions: Vec<usize> = (0..elements.space.n_cells()).collect();
        let of_cells = evaluation.map_at(&positions, |found, points, position| {
            evaluation.gradients(found, points, elements.u);
            points.write_points_with_values(found);
            let mut sigma = vec![[[0.0; 3]; 3]; found.points.len()];
            coefficients.sigma(&mut sigma, &found.points, &mut found.tape)?;
            let recovered = evaluation.interpolate(self.in_cell(position));
            let terms = recovered.iter().zip(&found.gradients).zip(&sigma).zip(&points.weights);
            let squares = terms.map(|(((recovered, own), sigma), weight)| {
                let e: [f64; 3] = std::array::from_fn(|a| recovered[a] - own[a]);
                [e, *own].map(|v| weight * dot(sigma.map(|row| dot(row, v)), v))
            });
            Ok((points.cell, squares.fold([0.0; 2], |sum, term| [sum[0] + term[0], sum[1] + term[1]])))
        })?;
        let mut squares = vec![[0.0; 2]; of_cells.len()];
        of_cells.into_iter().for_each(|(cell, square)| squares[cell as usize] = square);
        let degree = elements.space.element().degree();
        Ok(ErrorEstimate::of_squares(squares, self.fits.share(|fit| fit.degree() <= degree)))
    }

    /// Returns $Gu$ at the nodes of the cell at a position.
    fn in_cell(&self, position: usize) -> Vec<[f64; 3]> {
        let region = self.regions.of(self.elements.space.cell(position) as u32);
        let corners = self.elements.space.corners(position);
        let fits: Vec<Option<&Fit>> = corners.iter().map(|&vertex| self.fits.get(vertex, region)).collect();
        let at_node = |(dof, weights): (u32, &[f64])| {
            let mut sum = [0.0; 3];
            for (weight, fit) in weights.iter().zip(&fits).filter(|(weight, _)| **weight != 0.0) {
                let g = fit.map_or([f64::NAN; 3], |fit| fit.gradient(self.elements.point(dof)));
                (0..3).for_each(|a| sum[a] += weight * g[a]);
            }
            sum
        };
        let dofs = self.elements.dofs(position as u32);
        dofs.into_iter().zip(self.elements.weights.chunks_exact(corners.len())).map(at_node).collect()
    }

    /// Averages vectors at the nodes of cells over the cells of each node, and limits them by those that cells have.
    fn limited<E: Send>(
        &self,
        of_cells: impl Fn(Range<usize>) -> Result<Vec<CellNodes>, E>,
    ) -> Result<Vec<f64>, E> {
        let space = &self.elements.space;
        let mut around = vec![([0.0; 3], 0u32, CellVectors::default()); space.n_dofs()];
        let mut dofs = vec![0; space.element().n_dofs()];
        for block in (0..space.n_cells()).step_by(BLOCK) {
            let positions = block..(block + BLOCK).min(space.n_cells());
            for (position, vectors) in positions.clone().zip(of_cells(positions)?) {
                space.cell_dofs(position, &mut dofs);
                for (&dof, (vector, own)) in dofs.iter().zip(vectors) {
                    let (sum, count, cells) = &mut around[dof as usize];
                    (0..3).for_each(|a| sum[a] += vector[a]);
                    *count += 1;
                    *cells = *cells + own;
                }
            }
        }
        let means = around
            .into_iter()
            .flat_map(|(sum, count, cells)| cells.limited(sum.map(|x| x / f64::from(count))));
        Ok(means.collect())
    }
}

/// Cells whose vectors are in memory together.
const BLOCK: usize = 4096;

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
