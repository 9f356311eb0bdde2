//! Gradient recovery with one order more than the solution's gradient, and the error estimate from it.

mod elements;
mod fit;
mod limit;
mod patches;
mod regions;

use std::convert::Infallible;

use femtile_device::parallel;
use femtile_expression::TapeScratch;
use femtile_space::Space;

use crate::FemError;
use crate::evaluation::{Evaluation, Wanted, dot, times};
use crate::forms::{Compiled, Form, PointCoefficients, Points};
use crate::incidence::Incidence;
use elements::Elements;
use limit::CellVectors;
use patches::ByRegion;
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
    /// The cells around each degree of freedom.
    around: Incidence,
}

/// Vectors at some nodes, one for each cell around a node.
#[derive(Default)]
struct AtNodes {
    dofs: Vec<u32>,
    /// Positions of cells.
    cells: Vec<u32>,
    recovered: Vec<[f64; 3]>,
    /// Those of the function, which limit the recovered ones.
    own: Vec<CellVectors>,
}

impl<'a> RecoveredGradient<'a> {
    /// Recovers the gradient of the function with degrees of freedom `u: [n_dofs]`.
    ///
    /// # Cost
    /// One least-squares problem per vertex, $O(p^{3d})$; with 10 unknowns and some 30 equations on tetrahedra of degree 1, with 20
    /// and 125 on hexahedra of degree 2, 56 and 343 of degree 4. Keeps 40 bytes per cell and 4 per node of a cell, and per node of
    /// linear elements 80.
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
        let (regions, around) = (Regions::new(&elements.space, form.sigma), elements.around_vertices());
        let fits = ByRegion::new(&elements, &around, &regions, is_interrupted)?;
        let around = if elements.space.is_linear() { around } else { elements.around_dofs() };
        Ok(Self { form: *form, elements, regions, fits, around })
    }

    /// Returns $Gu$ at the nodes of the elements: `[n_dofs × 3]`, the components of a node one after another, zero
    /// along z in two dimensions.
    ///
    /// At interfaces between regions, the mean over the cells around the node; NaN at a node without a cell. If it exceeds by
    /// half the largest gradient of these cells, on quadrilaterals and hexahedra at p + 2 Gauss points along each axis, it is
    /// their mean weighted by volume.
    pub fn at_nodes(&self) -> Vec<f64> {
        self.limited(|_| Ok::<_, Infallible>(())).unwrap_or_else(|never| match never {})
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
        let minus_product = |sigma: &[[f64; 3]; 3], g: [f64; 3]| times(sigma, g).map(|x| -x);
        let mut of_cells = Vec::new();
        if !elements.space.is_linear() {
            let evaluation = Evaluation::new(&elements.space, elements.rule);
            of_cells = evaluation.blocks(None, self.wanted(), |samples| {
                let sigma = sigma_at(&samples.points, &mut samples.tape)?;
                samples.gradients.iter_mut().zip(&sigma).for_each(|(g, sigma)| *g = minus_product(sigma, *g));
                Ok(CellVectors::of_cells(&samples.gradients, &samples.weights, samples.positions.len()))
            })?;
        }
        let of_cells = of_cells.concat();
        self.limited(|found| {
            let AtNodes { dofs, cells, recovered, own } = found;
            let mut points = Points::default();
            for (&dof, &cell) in dofs.iter().zip(&*cells) {
                points.push(elements.space.cell(cell as usize) as u32, elements.point(dof));
                points.unknown.push(elements.u[dof as usize]);
            }
            let sigma = sigma_at(&points, &mut TapeScratch::default())?;
            for (((recovered, own), cell), sigma) in recovered.iter_mut().zip(own).zip(cells).zip(&sigma) {
                *recovered = minus_product(sigma, *recovered);
                *own = match of_cells.get(*cell as usize) {
                    Some(flux) => *flux,
                    None => own.replaced(minus_product(sigma, own.mean())),
                };
            }
            Ok(())
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
        let of_blocks = evaluation.blocks(None, self.wanted(), |samples| {
            let mut sigma = vec![[[0.0; 3]; 3]; samples.points.len()];
            coefficients.sigma(&mut sigma, &samples.points, &mut samples.tape)?;
            let (mut recovered, mut nodal) = (Vec::with_capacity(sigma.len()), Vec::new());
            let mut dofs = vec![0; elements.space.element().n_dofs()];
            for &position in &samples.positions {
                elements.space.cell_dofs(position, &mut dofs);
                nodal.clear();
                nodal.extend((0..dofs.len()).map(|local| self.in_cell(position as u32, local, dofs[local])));
                evaluation.interpolate(&mut recovered, &nodal);
            }
            let terms = recovered.iter().zip(&samples.gradients).zip(&sigma).zip(&samples.weights);
            let squares = terms.map(|(((recovered, own), sigma), weight)| {
                let e: [f64; 3] = std::array::from_fn(|a| recovered[a] - own[a]);
                [e, *own].map(|v| weight * dot(times(sigma, v), v))
            });
            let squares: Vec<[f64; 2]> = squares.collect();
            let add = |sum: [f64; 2], term: &[f64; 2]| [sum[0] + term[0], sum[1] + term[1]];
            let of_cell = |own: &[[f64; 2]]| own.iter().fold([0.0; 2], add);
            Ok(squares.chunks_exact(evaluation.n_q()).map(of_cell).collect::<Vec<_>>())
        })?;
        let mut squares = vec![[0.0; 2]; elements.space.n_cells()];
        for (position, square) in of_blocks.into_iter().flatten().enumerate() {
            squares[elements.space.cell(position)] = square;
        }
        let degree = elements.space.element().degree();
        Ok(ErrorEstimate::of_squares(squares, self.fits.share(|fit| fit.degree() <= degree)))
    }

    /// Samples with u, its gradients and the points, at which coefficients are evaluated.
    fn wanted(&self) -> Wanted<'_> {
        Wanted { u: self.elements.u, gradients: true, points: true, unknown: true, revolved: false }
    }

    /// Returns $Gu$ in a cell at one of its nodes.
    fn in_cell(&self, cell: u32, local: usize, dof: u32) -> [f64; 3] {
        let (region, corners) = (self.regions.of(cell), self.elements.space.corners(cell as usize));
        let weights = &self.elements.weights[local * corners.len()..(local + 1) * corners.len()];
        let mut sum = [0.0; 3];
        for (weight, &vertex) in weights.iter().zip(corners).filter(|(weight, _)| **weight != 0.0) {
            let fit = self.fits.get(vertex, region);
            let g = fit.map_or([f64::NAN; 3], |fit| fit.gradient(self.elements.point(dof)));
            (0..3).for_each(|a| sum[a] += weight * g[a]);
        }
        sum
    }

    /// Averages vectors at nodes over the cells around each node, and limits them by those that cells have. `replace` may replace
    /// gradients by other vectors.
    fn limited<E: Send>(
        &self,
        replace: impl Fn(&mut AtNodes) -> Result<(), E> + Sync,
    ) -> Result<Vec<f64>, E> {
        let n_dofs = self.elements.space.n_dofs();
        let of_block = |block: usize| {
            let dofs = (block * NODES) as u32..n_dofs.min((block + 1) * NODES) as u32;
            let mut found = AtNodes::default();
            dofs.clone().for_each(|dof| self.add_node(&mut found, dof));
            replace(&mut found)?;
            let mut vectors = found.recovered.iter().zip(&found.own);
            let limited = |dof: u32| {
                let (n, mut sum, mut cells) =
                    (self.around.around(dof).len(), [0.0; 3], CellVectors::default());
                for (vector, &own) in vectors.by_ref().take(n) {
                    (0..3).for_each(|a| sum[a] += vector[a]);
                    cells = cells + own;
                }
                cells.limited(sum.map(|x| x / n as f64))
            };
            Ok(dofs.map(limited).collect::<Vec<[f64; 3]>>())
        };
        let found = parallel::map(n_dofs.div_ceil(NODES), 1, of_block);
        Ok(found.into_iter().collect::<Result<Vec<_>, E>>()?.concat().into_flattened())
    }

    /// Adds the gradients at a node.
    fn add_node(&self, found: &mut AtNodes, dof: u32) {
        let mut last = None;
        for &cell in self.around.around(dof) {
            // Cells of a region have the same gradient at a node.
            let region = self.regions.of(cell);
            let (_, vector) = last.filter(|&(other, _)| other == region).unwrap_or_else(|| {
                let local = self.elements.dofs(cell).iter().position(|&other| other == dof).unwrap_or(0);
                (region, self.in_cell(cell, local, dof))
            });
            last = Some((region, vector));
            found.dofs.push(dof);
            found.cells.push(cell);
            found.recovered.push(vector);
            found.own.push(self.elements.gradient(cell));
        }
    }
}

/// Nodes per task of a thread.
const NODES: usize = 64;
