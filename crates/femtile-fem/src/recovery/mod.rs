//! Gradient recovery with one order more than the solution's gradient, and the error estimate from it.

mod fit;
mod limit;
mod patches;
mod regions;

use femtile_device::parallel;
use femtile_element::Affine;
use femtile_expression::TapeScratch;
use femtile_mesh::Mesh;
use femtile_space::LinearSpace;
use rayon::prelude::*;

use crate::FemError;
use crate::forms::{
    CHUNK, CellCoefficients, ChunkCoefficients, ChunkScratch, Compiled, Form, Points, State, VOIGT,
};
use crate::functionals::check_length;
pub(crate) use fit::Polynomial;
pub(crate) use limit::CellVectors;
pub(crate) use patches::{ByRegion, Elements, Incidence};
pub(crate) use regions::Regions;

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
    pub(crate) fn of_squares(squares: Vec<[f64; 2]>, lowered: f64) -> Self {
        let root = |which: usize| squares.iter().map(|square| square[which]).sum::<f64>().sqrt();
        let (total, norm) = (root(0), root(1));
        Self { cells: squares.into_iter().map(|[square, _]| square.sqrt()).collect(), total, norm, lowered }
    }
}

/// The gradient of linear elements at nodes, by polynomial-preserving recovery.
///
/// For each node, a quadratic polynomial is fitted to the nodal values by least squares; its gradient at the
/// node is the recovered gradient $Gu$. The fit uses the cells around the node. Further rings of cells are
/// added until the polynomial and its gradient are well determined, as at the boundary. A gradient that
/// exceeds those of the cells around the node by half is rejected. It is replaced by that of a fit with more
/// cells, then of a linear fit, and finally by the mean of the cells weighted by volume. So $Gu$ is exact for
/// quadratic functions within that limit. On regular meshes it converges with order 2; the gradient of the
/// elements has order 1.
///
/// If σ jumps, the gradient jumps: patches end at cells with another coefficient, by tag or by cell field
/// with at most 64 distinct values. Nodes there have one gradient per side. A σ given by a formula is taken
/// to be smooth.
///
/// # Source
/// `[zhang2005]`. Differs: patches grow by rings of cells, and coordinates are scaled by the covariance of the points,
/// so that the recovery does not depend on affine maps of the mesh.
#[derive(Debug)]
pub struct RecoveredGradient<'a> {
    form: Form<'a>,
    u: &'a [f64],
    regions: Regions,
    incidence: Incidence,
    /// With whether the fit has the degree of the elements.
    gradients: ByRegion<([f64; 3], bool)>,
}

struct Simplices<'a> {
    mesh: &'a Mesh,
    u: &'a [f64],
}

impl Elements for Simplices<'_> {
    fn n_cells(&self) -> usize {
        self.mesh.n_cells()
    }

    fn n_vertices(&self) -> usize {
        self.mesh.n_nodes()
    }

    fn corners(&self, cell: u32) -> &[u32] {
        self.mesh.cell(cell as usize)
    }

    fn cell_of_mesh(&self, cell: u32) -> u32 {
        cell
    }

    fn add_samples(&self, cell: u32, samples: &mut Vec<u32>) {
        samples.extend(self.corners(cell));
    }

    fn add_weighted(&self, _: u32, vertex: u32, dofs: &mut Vec<u32>) {
        dofs.push(vertex);
    }

    fn own_gradient(&self, cell: u32) -> CellVectors {
        let (gradient, volume) = own_gradient(self.mesh, self.u, cell);
        CellVectors::new(gradient, volume)
    }

    fn vertex_point(&self, vertex: u32) -> [f64; 3] {
        self.mesh.points[vertex as usize]
    }

    fn point(&self, dof: u32) -> [f64; 3] {
        self.vertex_point(dof)
    }

    fn dimension(&self) -> usize {
        self.mesh.dimension()
    }

    fn degree(&self) -> usize {
        1
    }
}

impl<'a> RecoveredGradient<'a> {
    /// Recovers the gradient of the function with nodal values `u: [n_nodes]`.
    ///
    /// # Cost
    /// One least-squares problem per node of 6 (10 in three dimensions) unknowns and some 7 to 30 equations, more near
    /// the boundary.
    /// # Errors
    /// [`FemError::Space`] for cells that are not simplices, [`FemError::Length`] unless `u` has one entry
    /// per node.
    pub fn new(form: &Form<'a>, u: &'a [f64]) -> Result<Self, FemError> {
        Self::new_interruptible(form, u, &|| false)
    }

    /// As [`Self::new`], with a query per node whether to stop.
    ///
    /// # Errors
    /// Errors of [`Self::new`]; [`FemError::Interrupted`].
    pub fn new_interruptible(
        form: &Form<'a>,
        u: &'a [f64],
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Self, FemError> {
        LinearSpace::new(form.mesh)?;
        check_length(u, form.mesh.n_nodes())?;
        let elements = Simplices { mesh: form.mesh, u };
        let (regions, incidence) = (Regions::new(form.mesh, form.sigma), Incidence::new(&elements));
        let gradient = |node: u32, q: Polynomial| (q.gradient(elements.point(node)), q.degree() <= 1);
        let gradients = ByRegion::new(&elements, &incidence, &regions, u, is_interrupted, gradient)?;
        Ok(Self { form: *form, u, regions, incidence, gradients })
    }

    /// Returns $Gu$ at the nodes: `[n_nodes × 3]`, the components of a node one after another, zero along z in two
    /// dimensions.
    ///
    /// At interfaces between regions, the mean over the cells around the node; NaN at a node without a cell.
    pub fn at_nodes(&self) -> Vec<f64> {
        let of_node = |node: u32| {
            let cells = self.incidence.around(node);
            mean(cells.iter().map(|&cell| self.at_corner(cell, node)))
        };
        (0..self.form.mesh.n_nodes() as u32).into_par_iter().flat_map_iter(of_node).collect()
    }

    /// Returns the flux density $-\sigma\,Gu$ at the nodes: `[n_nodes × 3]`, as [`Self::at_nodes`], positive in the
    /// direction of heat flow.
    ///
    /// If it exceeds the flux densities $-\sigma\nabla u$ of all cells around the node by half, with σ at the
    /// node, it is their mean weighted by volume.
    ///
    /// # Errors
    /// A σ that is not finite at a node.
    pub fn flux_density(&self) -> Result<Vec<f64>, FemError> {
        let mesh = self.form.mesh;
        let sigma = Compiled::tensor("sigma", self.form.sigma, mesh)?;
        let of_node = |node: u32| -> Result<[f64; 3], FemError> {
            let cells = self.incidence.around(node);
            let mut points = Points::default();
            cells.iter().for_each(|&cell| points.push(cell, mesh.points[node as usize]));
            points.unknown.resize(cells.len(), self.u[node as usize]);
            let mut tensors = vec![[[0.0; 3]; 3]; cells.len()];
            sigma.eval_tensor(&mut tensors, &points, mesh.dimension(), &mut TapeScratch::default())?;
            let cells = || cells.iter().copied().zip(&tensors);
            let own = cells().map(|(cell, sigma)| {
                let (gradient, volume) = own_gradient(mesh, self.u, cell);
                CellVectors::new(minus_product(sigma, gradient), volume)
            });
            let fluxes = cells().map(|(cell, sigma)| minus_product(sigma, self.at_corner(cell, node)));
            Ok(own.sum::<CellVectors>().limited(mean(fluxes)))
        };
        let fluxes = parallel::try_map_with(mesh.n_nodes(), || (), |(), node| of_node(node as u32))?;
        Ok(fluxes.into_flattened())
    }

    /// Returns the error estimate
    ///
    /// $$ \eta_K^2 = \int_K \sigma\,(Gu - \nabla u)\cdot(Gu - \nabla u) \approx \int_K \sigma\,\nabla e\cdot\nabla e $$
    ///
    /// with $Gu$ linear on cells and σ averaged as in assembly. On regular meshes and for smooth solutions its ratio to
    /// the error tends to one.
    ///
    /// # Errors
    /// A coefficient out of its range.
    /// # Source
    /// `[zienkiewicz1987]`, with the recovered gradient of `[zhang2005]`.
    pub fn error_estimate(&self) -> Result<ErrorEstimate, FemError> {
        let mesh = self.form.mesh;
        let coefficients = CellCoefficients::of_any_sign(&self.form)?;
        let of_block = |block: usize| {
            let cells: Vec<u32> =
                (block * BLOCK..((block + 1) * BLOCK).min(mesh.n_cells())).map(|c| c as u32).collect();
            let mut squares = Vec::with_capacity(cells.len());
            for_cells(&coefficients, &cells, self.u, |cell, c, lane| {
                let (own, volume) = own_gradient(mesh, self.u, cell);
                let product = |e: [f64; 3]| dot(times_sigma(c, lane, e), e);
                let (mut sum, mut squares_of_corners) = ([0.0; 3], 0.0);
                let energy = volume * product(own);
                let nodes = mesh.cell(cell as usize);
                for &node in nodes {
                    let found = self.at_corner(cell, node);
                    let e: [f64; 3] = std::array::from_fn(|a| found[a] - own[a]);
                    (0..3).for_each(|a| sum[a] += e[a]);
                    squares_of_corners += product(e);
                }
                // The mean of a product of linear functions, by their corner values.
                let n = nodes.len();
                let square = volume * (squares_of_corners + product(sum)) / (n * (n + 1)) as f64;
                squares.push([square, energy]);
            })?;
            Ok(squares)
        };
        let squares = parallel::map(mesh.n_cells().div_ceil(BLOCK), 1, of_block);
        let squares = squares.into_iter().collect::<Result<Vec<Vec<[f64; 2]>>, FemError>>()?;
        let lowered = self.gradients.share(|(_, is_lowered)| *is_lowered);
        Ok(ErrorEstimate::of_squares(squares.into_iter().flatten().collect(), lowered))
    }

    /// Returns $Gu$ at a node in the region of a cell.
    fn at_corner(&self, cell: u32, node: u32) -> [f64; 3] {
        self.gradients.get(node, self.regions.of(cell)).map_or([f64::NAN; 3], |(gradient, _)| *gradient)
    }
}

/// Returns the gradient of a linear function in a simplex, and its volume.
fn own_gradient(mesh: &Mesh, u: &[f64], cell: u32) -> ([f64; 3], f64) {
    let (points, values, n) = corners(mesh, u, cell);
    let map = Affine::simplex(&points[..n]);
    (map.gradient(&values), map.measure)
}

/// Returns the corners of a cell and the values there.
fn corners(mesh: &Mesh, u: &[f64], cell: u32) -> ([[f64; 3]; 4], [f64; 4], usize) {
    let nodes = mesh.cell(cell as usize);
    let (mut points, mut values) = ([[0.0; 3]; 4], [0.0; 4]);
    for (a, &node) in nodes.iter().enumerate() {
        points[a] = mesh.points[node as usize];
        values[a] = u[node as usize];
    }
    (points, values, nodes.len())
}

/// Calls `visit` with each cell, the coefficients of its chunk at a function and its lane there.
fn for_cells(
    coefficients: &CellCoefficients<'_>,
    cells: &[u32],
    u: &[f64],
    mut visit: impl FnMut(u32, &ChunkCoefficients, usize),
) -> Result<(), FemError> {
    let (mut chunk, mut scratch) = (coefficients.start_chunk(), ChunkScratch::default());
    for cells in cells.chunks(CHUNK) {
        coefficients.eval(&mut chunk, cells, State::of(u), &mut scratch)?;
        cells.iter().enumerate().for_each(|(lane, &cell)| visit(cell, &chunk, lane));
    }
    Ok(())
}

/// Returns $\bar\sigma g$.
fn times_sigma(c: &ChunkCoefficients, lane: usize, g: [f64; 3]) -> [f64; 3] {
    if c.sigma_is_scalar {
        return g.map(|g| c.sigma[0][lane] * g);
    }
    let mut product = [0.0; 3];
    for (entry, (i, j)) in VOIGT.into_iter().enumerate() {
        product[i] += c.sigma[entry][lane] * g[j];
        if i != j {
            product[j] += c.sigma[entry][lane] * g[i];
        }
    }
    product
}

/// Cells whose shares of an estimate are computed together.
const BLOCK: usize = 4096;

/// Returns the mean of vectors; NaN without vectors.
fn mean(vectors: impl ExactSizeIterator<Item = [f64; 3]>) -> [f64; 3] {
    let n = vectors.len() as f64;
    vectors.fold([0.0; 3], |sum, v| std::array::from_fn(|a| sum[a] + v[a])).map(|sum: f64| sum / n)
}

/// Returns $-\sigma g$.
pub(crate) fn minus_product(sigma: &[[f64; 3]; 3], g: [f64; 3]) -> [f64; 3] {
    sigma.map(|row| -dot(row, g))
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
