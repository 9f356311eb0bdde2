//! Residual and tangent of a form at functions on the device of a rank.

use std::borrow::Cow;

use femtile_device::{Buffer, Cuda};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_operator::{CpuOperator, CudaForm, CudaFormMatrix, CudaState, OperatorError, State};
use femtile_space::LinearConstraints;
use femtile_sparse::csr::Csr;
use femtile_sparse::{ProductMatrix, SparseDevice};

use super::approximation::Approximation;
use super::rank_form::{CellMatrix, RankForm};
use crate::preconditioner::Preconditioning;
use crate::ranks::RankDevice;
use crate::{SolveError, SolverConfig};

/// A function with its rate in a stage of a run in time.
pub(super) struct At<'u, D: RankDevice> {
    pub u: &'u Buffer<f64, D>,
    /// None if it is zero.
    pub rate: Option<&'u Buffer<f64, D>>,
    /// The derivative of the rate by u.
    pub shift: f64,
}

/// Residual $r(u)$ and tangent $A(u)$ of a form on the cells of a rank, at a time with its Dirichlet values.
///
/// Vectors hold the owned unknowns. Functions are collective.
pub(super) trait Evaluation<D: RankDevice> {
    /// Takes a time and the Dirichlet values at it, those of the unknowns of the cells.
    fn bring_time(&mut self, time: f64, given: &LinearConstraints) -> Result<(), SolveError>;

    /// Returns a function with the Dirichlet values.
    fn with_dirichlet_values(&self, u: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError>;

    /// Returns a direction with zeros at Dirichlet unknowns.
    fn free(&self, direction: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError>;

    /// Returns $r(u)$, zero at Dirichlet unknowns; none if it has no value on the cells of the rank.
    fn residual(&self, at: &At<'_, D>) -> Result<Option<Buffer<f64, D>>, SolveError>;

    /// Returns the product of $A(u)$ with a direction, zero at Dirichlet unknowns.
    fn product(&self, at: &At<'_, D>, direction: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError>;

    /// Returns both; none as [`Self::residual`].
    fn products(
        &self,
        at: &At<'_, D>,
        direction: &Buffer<f64, D>,
    ) -> Result<Option<[Buffer<f64, D>; 2]>, SolveError>;

    /// Assembles $A(u)$, with rows and columns of the identity at Dirichlet unknowns, which are always the same.
    fn assemble(&mut self, at: &At<'_, D>) -> Result<(), SolveError>;

    /// Returns the product with the matrix that was assembled.
    fn operator(&self) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError>;

    /// Makes the preconditioner of the settings from the matrix that was assembled, on one rank multigrid from its approximation.
    fn preconditioning(
        &mut self,
        approximation: &Approximation,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError>;
}

/// A way to evaluate a form.
pub(super) type Evaluate<D> =
    for<'f> fn(&'f RankForm<'_, D>) -> Result<Box<dyn Evaluation<D> + 'f>, SolveError>;

/// Evaluates on the processor, with the ghosts of the rank.
pub(super) fn on_host<'f, D: RankDevice>(
    form: &'f RankForm<'_, D>,
) -> Result<Box<dyn Evaluation<D> + 'f>, SolveError> {
    let cells = CellMatrix::new(form.cpu)?;
    Ok(Box::new(OnHost { form, time: f64::NAN, given: LinearConstraints::none(0), cells }))
}

/// Evaluates on the GPU of a rank that is alone; on the processor where a cell has too many unknowns for it.
pub(super) fn on_gpu<'f>(form: &'f RankForm<'_, Cuda>) -> Result<Box<dyn Evaluation<Cuda> + 'f>, SolveError> {
    let Some(operator) = form.operator.as_ref().filter(|_| form.part.is_none()) else { return on_host(form) };
    let cells = CudaForm::new(form.device, operator)?;
    if !cells.fits() {
        return on_host(form);
    }
    let nothing = || Buffer::zeros(form.device, 0).map_err(LinalgError::from);
    Ok(Box::new(OnGpu {
        form,
        operator,
        cells,
        time: f64::NAN,
        given: LinearConstraints::none(0),
        free: nothing()?,
        values: nothing()?,
        matrix: None,
    }))
}

impl<'u, D: RankDevice> At<'u, D> {
    /// Returns u and its rate, empty if it is zero, at the unknowns of the cells. Collective.
    pub fn of_cells(&self, form: &RankForm<'_, D>) -> Result<[Cow<'u, [f64]>; 2], LinalgError> {
        let of_cells = |v: &'u Buffer<f64, D>| form.with_ghosts(v.host_view()?);
        Ok([of_cells(self.u)?, self.rate.map(of_cells).transpose()?.unwrap_or_default()])
    }
}

struct OnHost<'f, 'a, D: RankDevice> {
    form: &'f RankForm<'a, D>,
    time: f64,
    given: LinearConstraints,
    cells: CellMatrix,
}

impl<D: RankDevice> OnHost<'_, '_, D> {
    /// Returns a vector on the unknowns of the cells after a change there.
    fn changed(
        &self,
        v: &Buffer<f64, D>,
        change: impl FnOnce(&mut [f64]),
    ) -> Result<Buffer<f64, D>, SolveError> {
        let mut v = self.form.with_ghosts(v.host_view().map_err(LinalgError::from)?)?.into_owned();
        change(&mut v);
        Ok(self.form.owned(&v)?)
    }

    /// Returns the residual at a state with ghosts, without messages; none if it has no value.
    fn residual_at(&self, state: &State<'_>) -> Result<Option<Buffer<f64, D>>, SolveError> {
        let mut r = vec![0.0; state.u.len()];
        if let Some(operator) = &self.form.operator {
            if !operator.residual_is_finite(state, &mut r)? {
                return Ok(None);
            }
            self.given.distribute_transpose(&mut r);
        }
        Ok(Some(self.form.owned(&r)?))
    }

    /// Returns the product of the tangent with a direction, both with ghosts, without messages.
    fn product_at(&self, state: &State<'_>, direction: &[f64]) -> Result<Buffer<f64, D>, SolveError> {
        let mut product = vec![0.0; state.u.len()];
        if let Some(operator) = &self.form.operator {
            operator.apply(state, direction, &mut product)?;
            self.given.distribute_transpose(&mut product);
        }
        Ok(self.form.owned(&product)?)
    }
}

impl<D: RankDevice> Evaluation<D> for OnHost<'_, '_, D> {
    fn bring_time(&mut self, time: f64, given: &LinearConstraints) -> Result<(), SolveError> {
        (self.time, self.given) = (time, given.clone());
        Ok(())
    }

    fn with_dirichlet_values(&self, u: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        self.changed(u, |u| self.given.impose(u))
    }

    fn free(&self, direction: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        self.changed(direction, |direction| self.given.distribute(direction))
    }

    fn residual(&self, at: &At<'_, D>) -> Result<Option<Buffer<f64, D>>, SolveError> {
        let [u, rate] = at.of_cells(self.form)?;
        self.residual_at(&State { u: &u, rate: &rate, time: self.time, shift: at.shift })
    }

    fn product(&self, at: &At<'_, D>, direction: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        let [u, rate] = at.of_cells(self.form)?;
        let direction = self.form.with_ghosts(direction.host_view().map_err(LinalgError::from)?)?;
        self.product_at(&State { u: &u, rate: &rate, time: self.time, shift: at.shift }, &direction)
    }

    fn products(
        &self,
        at: &At<'_, D>,
        direction: &Buffer<f64, D>,
    ) -> Result<Option<[Buffer<f64, D>; 2]>, SolveError> {
        // All ranks exchange both, also those without a residual.
        let [u, rate] = at.of_cells(self.form)?;
        let direction = self.form.with_ghosts(direction.host_view().map_err(LinalgError::from)?)?;
        let state = State { u: &u, rate: &rate, time: self.time, shift: at.shift };
        let r = self.residual_at(&state)?;
        r.map(|r| Ok([r, self.product_at(&state, &direction)?])).transpose()
    }

    fn assemble(&mut self, at: &At<'_, D>) -> Result<(), SolveError> {
        let [u, rate] = at.of_cells(self.form)?;
        let state = State { u: &u, rate: &rate, time: self.time, shift: at.shift };
        self.cells.fill(self.form, &state, &self.given)
    }

    fn operator(&self) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
        Ok(self.cells.operator(self.form)?)
    }

    fn preconditioning(
        &mut self,
        approximation: &Approximation,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        self.cells.preconditioning(self.form, approximation, config, warnings)
    }
}

/// Evaluates on the GPU all integrals except those over facets that depend on u.
struct OnGpu<'f, 'a> {
    form: &'f RankForm<'a, Cuda>,
    operator: &'f CpuOperator<'a>,
    cells: CudaForm<'f, 'a>,
    time: f64,
    given: LinearConstraints,
    /// 1 at free unknowns, 0 at Dirichlet unknowns.
    free: Buffer<f64, Cuda>,
    /// The Dirichlet values, zero at free unknowns.
    values: Buffer<f64, Cuda>,
    matrix: Option<CudaFormMatrix>,
}

impl OnGpu<'_, '_> {
    fn state<'u>(&self, at: &At<'u, Cuda>) -> CudaState<'u> {
        let At { u, rate, shift } = *at;
        CudaState { u, rate, time: self.time, shift }
    }

    /// Returns residual and product, and whether the residual is finite.
    fn both(
        &self,
        at: &At<'_, Cuda>,
        direction: &Buffer<f64, Cuda>,
    ) -> Result<([Buffer<f64, Cuda>; 2], bool), SolveError> {
        let zeros = || Buffer::zeros(self.form.device, at.u.len()).map_err(LinalgError::from);
        let (mut r, mut product) = (zeros()?, zeros()?);
        let is_finite = self.cells.products(&self.state(at), direction, [&mut r, &mut product])?;
        Ok(([r, product], is_finite))
    }

    fn assembled(&self) -> Result<&Csr<f64, Cuda>, SolveError> {
        let missing = || OperatorError::Mismatch("a matrix is used before it is assembled".into());
        Ok(self.matrix.as_ref().ok_or_else(missing)?.matrix())
    }
}

impl Evaluation<Cuda> for OnGpu<'_, '_> {
    fn bring_time(&mut self, time: f64, given: &LinearConstraints) -> Result<(), SolveError> {
        let n = self.operator.discrete().n_unknowns();
        let (mut free, mut values) = (vec![1.0; n], vec![0.0; n]);
        given.distribute(&mut free);
        given.impose(&mut values);
        self.free = Buffer::from_vec(self.form.device, free).map_err(LinalgError::from)?;
        self.values = Buffer::from_vec(self.form.device, values).map_err(LinalgError::from)?;
        self.cells.constrain(given)?;
        (self.time, self.given) = (time, given.clone());
        Ok(())
    }

    fn with_dirichlet_values(&self, u: &Buffer<f64, Cuda>) -> Result<Buffer<f64, Cuda>, SolveError> {
        let mut with = self.free(u)?;
        self.form.device.axpby(&mut with, 1.0, &self.values, 1.0)?;
        Ok(with)
    }

    fn free(&self, direction: &Buffer<f64, Cuda>) -> Result<Buffer<f64, Cuda>, SolveError> {
        let mut free = Buffer::zeros(self.form.device, direction.len()).map_err(LinalgError::from)?;
        self.form.device.scale_by(&mut free, &self.free, direction)?;
        Ok(free)
    }

    fn residual(&self, at: &At<'_, Cuda>) -> Result<Option<Buffer<f64, Cuda>>, SolveError> {
        Ok(self.products(at, at.u)?.map(|[r, _]| r))
    }

    fn product(
        &self,
        at: &At<'_, Cuda>,
        direction: &Buffer<f64, Cuda>,
    ) -> Result<Buffer<f64, Cuda>, SolveError> {
        let ([_, product], _) = self.both(at, direction)?;
        Ok(product)
    }

    fn products(
        &self,
        at: &At<'_, Cuda>,
        direction: &Buffer<f64, Cuda>,
    ) -> Result<Option<[Buffer<f64, Cuda>; 2]>, SolveError> {
        let ([r, product], is_finite) = self.both(at, direction)?;
        Ok(is_finite.then_some([r, product]))
    }

    fn assemble(&mut self, at: &At<'_, Cuda>) -> Result<(), SolveError> {
        let state = self.state(at);
        let matrix = match &mut self.matrix {
            Some(matrix) => matrix,
            none => none.insert(self.cells.matrix(&self.operator.pattern(&self.given)?)?),
        };
        Ok(self.cells.refill(&state, matrix)?)
    }

    fn operator(&self) -> Result<Box<dyn LinearOperator<f64, Cuda>>, SolveError> {
        Ok(<Cuda as SparseDevice>::into_operator(ProductMatrix::Rows(copy_of(self.assembled()?)?)))
    }

    fn preconditioning(
        &mut self,
        approximation: &Approximation,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<Cuda>, SolveError> {
        let (form, matrix) = (self.form, self.assembled()?);
        if !approximation.is_needed(config) {
            return form.preconditioning_of(&mut copy_of(matrix)?, config, warnings);
        }
        let on_host = matrix.copy_to(form.cpu)?;
        match approximation.of(&on_host, config)? {
            Some(of) => form.approximated((&on_host, &of), &|| self.operator(), config, warnings),
            None => form.preconditioning_of(&mut copy_of(matrix)?, config, warnings),
        }
    }
}

/// Returns a matrix with the same pattern and a copy of the values.
fn copy_of(matrix: &Csr<f64, Cuda>) -> Result<Csr<f64, Cuda>, LinalgError> {
    let (device, values) = (matrix.values().device(), matrix.values());
    let mut copy = Buffer::zeros(device, values.len())?;
    device.copy(&mut copy, values)?;
    matrix.with_values(copy)
}
