//! The gradient of a function at the nodes of its space.

use std::borrow::Cow;
use std::convert::Infallible;

use femtile_device::parallel;
use femtile_space::Space;

use super::IsInterrupted;
use super::elements::Elements;
use super::limit::CellVectors;
use super::patches::ByRegion;
use super::regions::Regions;
use crate::FemError;
use crate::evaluation::Rule;
use crate::incidence::Incidence;
use crate::tensor::SOURCE_RULE;

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
/// On a surface in space the function and the surface are fitted over the plane at the vertex (`[dong2020]`), and $Gu$ is the
/// gradient along the fitted surface. Patches end at folds of more than 45 degrees, and where more than two cells meet.
///
/// # Source
/// `[zhang2005]`, `[naga2005]`, for elements of any degree. Differs: patches grow by rings of cells, and coordinates are scaled by
/// the covariance of the points, so that the recovery does not depend on affine maps of the mesh; polynomials are combined with
/// linear weights in the whole cell; for high degrees, only the number of nodes per axis that polynomials need is fitted.
#[derive(Debug)]
pub struct NodalGradient<'a> {
    pub(super) elements: Elements<'a>,
    regions: Regions,
    fits: ByRegion,
    /// The cells around each degree of freedom.
    around: Incidence,
}

/// Vectors at some nodes, one for each cell around a node.
#[derive(Default)]
pub(super) struct AtNodes {
    pub dofs: Vec<u32>,
    /// Positions of cells.
    pub cells: Vec<u32>,
    pub recovered: Vec<[f64; 3]>,
    /// Those of the function, which limit the recovered ones.
    pub own: Vec<CellVectors>,
}

impl<'a> NodalGradient<'a> {
    /// Recovers the gradient of the function with degrees of freedom `u: [n_dofs]`, with a query per vertex whether to stop.
    ///
    /// # Cost
    /// One least-squares problem per vertex, $O(p^{3d})$; with 10 unknowns and some 30 equations on tetrahedra of degree 1, with 20
    /// and 125 on hexahedra of degree 2, 56 and 343 of degree 4; two on a surface. Keeps 40 bytes per cell and 4 per node of a cell,
    /// and per node of linear elements 80.
    /// # Errors
    /// [`FemError::Length`] unless `u` has one entry per degree of freedom, [`FemError::Space`] for a folded cell,
    /// [`FemError::Interrupted`].
    pub fn new(
        space: Space<'a>,
        regions: Regions,
        u: impl Into<Cow<'a, [f64]>>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let rule = Rule { tensor: SOURCE_RULE, simplex: 2 * space.element().degree() };
        Self::with_rule((space, rule), regions, u.into(), is_interrupted)
    }

    /// As [`Self::new`], with the points where gradients are compared.
    pub(super) fn with_rule(
        (space, rule): (Space<'a>, Rule),
        regions: Regions,
        u: Cow<'a, [f64]>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        let elements = Elements::new(space, rule, u)?;
        let regions = match elements.space.mesh().is_surface {
            true => regions.at_folds(&elements.space),
            false => regions,
        };
        let around = elements.around_vertices();
        let fits = ByRegion::new(&elements, &around, &regions, is_interrupted)?;
        let around = if elements.space.is_linear() { around } else { elements.around_dofs() };
        Ok(Self { elements, regions, fits, around })
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

    /// Returns the share, from 0 to 1, of fits with too few values for a polynomial of one degree more than the elements.
    pub fn lowered(&self) -> f64 {
        let degree = self.elements.space.element().degree();
        self.fits.share(|fit| fit.degree() <= degree)
    }

    /// Returns $Gu$ in the cell at a position of the order of visits, at one of its nodes, by its number in the cell and as a degree of
    /// freedom: that of the region of the cell.
    pub fn in_cell(&self, cell: u32, local: usize, dof: u32) -> [f64; 3] {
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
    pub(super) fn limited<E: Send>(
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
