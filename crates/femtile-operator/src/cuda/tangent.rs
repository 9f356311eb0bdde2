//! The tangent of a form on a GPU: the text of its action between the gradient and the transposed gradient of the column
//! kernels, for quadrilaterals and hexahedra, and of those of patches, for triangles and tetrahedra.

use std::collections::BTreeMap;

use femtile_device::{Buffer, Cuda, Scalar, parallel};
use femtile_fem::FemError;
use femtile_fem::tensor::FacetMatrix;
use femtile_form::{Dependence, Integrand};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_matrix_free::{
    CudaMatrixFree, CudaMatrixFreeConfig, CudaMatrixFreeData, CudaSimplices, CudaSimplicesData, PointMetric,
    PointTangent,
};
use femtile_space::Space;

use super::numbers::PointText;
use crate::cpu::{CellScratch, CpuOperator, Job, LANES, Lanes, Product};
use crate::discrete_form::State;
use crate::error::OperatorError;

/// Entries of a facet's matrix below this part of the largest are rounding.
const ROUNDING: f64 = 1e-14;

/// Differences of an inverse Jacobian within a cell that are rounding, relative to its largest entry.
const AFFINE: f64 = 1e-13;

/// The tangent of a form at a state on a GPU, $y = R'(u; x, \cdot)$, without a stored matrix.
///
/// Scalar diffusion and reaction have the kernels of their class, with the metric at the points; on simplices, if it is constant in
/// each cell. For every other form the numbers that no direction changes are computed once, and the kernel is compiled with the text
/// of the tangent.
///
/// # Cost
/// Reads x, $d^2 + 1$ numbers of geometry per point (per cell, if all cells are affine) and those of the tangent, writes y;
/// $4 d (p + 1)$ multiplications and additions per point and component, and the action of the tangent. For simplices see
/// [`CudaSimplices`](femtile_matrix_free::CudaSimplices).
/// # Source
/// `[brown2021]`: the action at the points between basis operations; the kernel is that of `[kronbichler2022]`, section 2.
pub struct CudaTangent<T: Scalar> {
    product: TangentProduct<T>,
}

/// The operator by the kind of the cells.
enum TangentProduct<T: Scalar> {
    Tensor(CudaMatrixFree<T>),
    Simplices(CudaSimplices<T>),
}

/// The data of a [`CudaTangent`], which the host computes without a GPU.
pub struct CudaTangentData<T: Scalar> {
    cells: Cells<T>,
    facets: Vec<FacetMatrix>,
}

/// The data of the cells by their kind.
enum Cells<T: Scalar> {
    Tensor(CudaMatrixFreeData<T>),
    Simplices(CudaSimplicesData<T>),
}

impl<T: Scalar> Cells<T> {
    fn of_metric(
        space: &Space<'_>,
        metric: &PointMetric<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        Ok(match space.tensor() {
            Some(space) => Self::Tensor(CudaMatrixFreeData::of_metric(space, metric, constrained, config)?),
            None => Self::Simplices(CudaSimplicesData::of_metric(space, metric, constrained, config)?),
        })
    }

    fn of_tangent(
        space: &Space<'_>,
        tangent: &PointTangent<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, FemError> {
        Ok(match space.tensor() {
            Some(space) => Self::Tensor(CudaMatrixFreeData::of_tangent(space, tangent, constrained, config)?),
            None => Self::Simplices(CudaSimplicesData::of_tangent(space, tangent, constrained, config)?),
        })
    }
}

impl<T: Scalar> CudaTangentData<T> {
    /// Computes the data of the tangent at a state.
    ///
    /// Degrees of freedom in `constrained`, whole entities in ascending order, have rows and columns of the identity, in all
    /// components.
    ///
    /// # Errors
    /// [`OperatorError::Mismatch`] for surfaces in space, and forms with several integrals over the cells;
    /// [`OperatorError::Fem`] for too many components or unknowns.
    pub fn new(
        operator: &CpuOperator<'_>,
        state: &State<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, OperatorError> {
        operator.cpu.install(|| Self::compute(operator, state, constrained, config, true))
    }

    /// As [`CudaTangentData::new`], by the text of the tangent, also where its class has kernels of its own.
    ///
    /// # Errors
    /// As [`CudaTangentData::new`].
    pub fn general(
        operator: &CpuOperator<'_>,
        state: &State<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
    ) -> Result<Self, OperatorError> {
        operator.cpu.install(|| Self::compute(operator, state, constrained, config, false))
    }

    fn compute(
        operator: &CpuOperator<'_>,
        state: &State<'_>,
        constrained: &[u32],
        config: CudaMatrixFreeConfig,
        by_class: bool,
    ) -> Result<Self, OperatorError> {
        let discrete = operator.discrete();
        discrete.check_state(state)?;
        let space = discrete.space();
        if space.mesh().is_surface {
            let message = "products without a matrix on a GPU are for solids, and cells in the plane: assemble the matrix";
            return Err(OperatorError::Mismatch(message.into()));
        }
        let [integrand] = operator.cells[..] else {
            let n = operator.cells.len();
            let message = format!(
                "a form with {n} integrals over the cells: a GPU takes one, so add them up in the equation"
            );
            return Err(OperatorError::Mismatch(message));
        };
        let n_cells = space.n_cells();
        let is_affine = operator.geometry.is_affine()
            || parallel::all(n_cells, 1, |cell| has_one_jacobian(operator, cell));
        let facets = facet_matrices(operator, state)?;
        let class = integrand.class();
        let has_terms = [class.diffusion, class.reaction].map(|term| term != Dependence::Zero);
        let is_of_class = class.is_diffusion_reaction() && discrete.form().n_components() == 1;
        let is_constant = is_affine && class.dependence() <= Dependence::ByCell;
        let has_kernels = is_constant || space.tensor().is_some();
        if by_class && is_of_class && has_terms != [false; 2] && has_kernels {
            let n_points = if is_constant { 1 } else { operator.basis.n_q };
            let metrics = Metrics::new(operator, integrand, state, n_points);
            let metric = PointMetric {
                has_terms,
                is_isotropic: class.isotropic,
                is_constant,
                write: &|position, to| metrics.write(position, is_constant, to),
            };
            let cells = Cells::of_metric(space, &metric, constrained, config)?;
            return Ok(Self { cells, facets });
        }
        let text = PointText::of(integrand, integrand.linearization());
        let numbers = text.evaluate(operator, integrand, state);
        let n_q = operator.basis.n_q;
        let write = |position: usize, to: &mut [f64]| {
            let geometry = operator.geometry.of_cell(position / LANES, position % LANES);
            let to = match is_affine {
                true => {
                    let (to, rest) = to.split_at_mut(geometry.len() / n_q);
                    to.iter_mut().zip(geometry.iter().step_by(n_q)).for_each(|(to, &entry)| *to = entry);
                    // The kernel multiplies by the weights of the points.
                    to[to.len() - 1] /= operator.basis.rule.weights[0];
                    rest
                }
                false => to,
            };
            let (of_cell, to) = to.split_at_mut(text.n_of_cell);
            let (of_geometry, at_points) = to.split_at_mut(if is_affine { 0 } else { geometry.len() });
            of_geometry.copy_from_slice(&geometry[..of_geometry.len()]);
            numbers.write(position, of_cell, at_points);
        };
        let text = text.tangent(discrete.form().n_components());
        let tangent = PointTangent { text, is_affine, write: &write };
        let cells = Cells::of_tangent(space, &tangent, constrained, config)?;
        Ok(Self { cells, facets })
    }
}

/// The metric of a scalar form of diffusion and reaction.
struct Metrics<'o, 'a> {
    operator: &'o CpuOperator<'a>,
    /// Of all cells at the first points: `[n_batches][n_points]`.
    batches: Vec<Vec<[Lanes; 7]>>,
}

impl<'o, 'a> Metrics<'o, 'a> {
    fn new(
        operator: &'o CpuOperator<'a>,
        integrand: &'a Integrand,
        state: &State<'_>,
        n_points: usize,
    ) -> Self {
        let mut job = Job::new(operator, integrand, Product::Derivative, state, &[]);
        job.n_points = n_points;
        let n_batches = operator.discrete().space().n_cells().div_ceil(LANES);
        let batches = parallel::map_with(n_batches, 1, CellScratch::default, |scratch, batch| {
            let mut metrics = vec![[[f64::NAN; LANES]; 7]; n_points];
            job.metrics(batch, &mut metrics, scratch);
            metrics
        });
        Self { operator, batches }
    }

    /// Writes $w J^{-1} \sigma J^{-\mathsf{T}}$ and $w\lambda$ at the points of a cell, or at the first one without the weight of
    /// the point.
    fn write(&self, position: usize, is_constant: bool, to: &mut [[f64; 7]]) {
        let weight = if is_constant { self.operator.basis.rule.weights[0] } else { 1.0 };
        for (to, metric) in to.iter_mut().zip(&self.batches[position / LANES]) {
            *to = metric.map(|entry| entry[position % LANES] / weight);
        }
    }
}

/// Returns whether the Jacobian of a cell is constant up to rounding.
fn has_one_jacobian(operator: &CpuOperator<'_>, position: usize) -> bool {
    let n_q = operator.basis.n_q;
    let geometry = operator.geometry.of_cell(position / LANES, position % LANES);
    let entries = &geometry[..geometry.len() - n_q];
    let size = entries.iter().fold(0.0f64, |size, entry| size.max(entry.abs()));
    entries.chunks_exact(n_q).all(|at| at.iter().all(|entry| (entry - at[0]).abs() <= AFFINE * size))
}

/// Entries of a facet's matrix by row and column.
type Entries = BTreeMap<(u32, u32), f64>;

/// Returns the matrices of the facets of a form, of one size.
fn facet_matrices(operator: &CpuOperator<'_>, state: &State<'_>) -> Result<Vec<FacetMatrix>, OperatorError> {
    let mut all: Vec<(Vec<u32>, Entries)> = Vec::new();
    for (integrand, domain, sites) in &operator.facets {
        for site in sites {
            let mut entries = Entries::new();
            let integral = operator.on_facets(integrand, domain, state);
            integral.for_entries(std::slice::from_ref(site), &mut |row, column, value| {
                *entries.entry((row, column)).or_insert(0.0) += value;
            })?;
            let size = entries.values().fold(0.0f64, |size, entry| size.max(entry.abs()));
            entries.retain(|_, entry| entry.abs() > ROUNDING * size);
            let mut dofs: Vec<u32> = entries.keys().flat_map(|&(row, column)| [row, column]).collect();
            dofs.sort_unstable();
            dofs.dedup();
            if !dofs.is_empty() {
                all.push((dofs, entries));
            }
        }
    }
    let n = all.iter().map(|(dofs, _)| dofs.len()).max().unwrap_or(0);
    let padded = |(mut dofs, entries): (Vec<u32>, Entries)| {
        let mut matrix = vec![0.0; n * n];
        let place = |dofs: &[u32], dof: u32| dofs.binary_search(&dof).unwrap_or(0);
        for ((row, column), entry) in entries {
            matrix[place(&dofs, row) * n + place(&dofs, column)] = entry;
        }
        // Rows of zeros fill up to the common size.
        dofs.resize(n, dofs[0]);
        FacetMatrix { dofs, entries: matrix }
    };
    Ok(all.into_iter().map(padded).collect())
}

impl<T: Scalar> CudaTangent<T> {
    /// Brings the data of a tangent to a GPU.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &Cuda, data: CudaTangentData<T>) -> Result<Self, OperatorError> {
        let product = match data.cells {
            Cells::Tensor(cells) => {
                let product = CudaMatrixFree::of_data(device, cells)?;
                TangentProduct::Tensor(product.with_coupled_facets(&data.facets)?)
            }
            Cells::Simplices(cells) => {
                TangentProduct::Simplices(CudaSimplices::new(device, cells, &data.facets)?)
            }
        };
        Ok(Self { product })
    }

    fn operator(&self) -> &dyn LinearOperator<T, Cuda> {
        match &self.product {
            TangentProduct::Tensor(product) => product,
            TangentProduct::Simplices(product) => product,
        }
    }

    /// Returns the bytes that a product moves besides reading x and writing y once.
    pub fn bytes(&self) -> usize {
        match &self.product {
            TangentProduct::Tensor(product) => product.bytes(),
            TangentProduct::Simplices(product) => product.bytes(),
        }
    }
}

impl<T: Scalar> LinearOperator<T, Cuda> for CudaTangent<T> {
    fn n_rows(&self) -> usize {
        self.operator().n_rows()
    }

    fn n_cols(&self) -> usize {
        self.operator().n_cols()
    }

    fn device(&self) -> &Cuda {
        self.operator().device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cuda>,
        x: &Buffer<T, Cuda>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.operator().apply_with(y, x, hook)
    }
}
