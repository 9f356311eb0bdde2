//! A form on the cells of a rank, and its tangent as a matrix.

use std::borrow::Cow;
use std::sync::Arc;

use femtile_amg::AmgError;
use femtile_comm::{Comm, DistributedMatrix, OwnedRows};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_operator::{CpuOperator, Pattern, State};
use femtile_space::LinearConstraints;
use femtile_sparse::csr::Csr;
use femtile_sparse::{ProductMatrix, SparseDevice, StoredMatrix};
use femtile_time::implicit::Checkpoint;

use super::approximation::{Approximation, is_of_definiteness};
use super::part::FormPart;
use super::totals::Loads;
use crate::matrix_preconditioner::{MatrixPreconditioner, of_magnitudes};
use crate::preconditioner::{Preconditioning, RowsOfProblem, preconditioning};
use crate::ranks::rows::nothing;
use crate::ranks::unknowns::RankUnknowns;
use crate::ranks::{RankDevice, owned_rows};
use crate::saddle_point::{Approximated, BlockTriangular, Complement};
use crate::{Method, PreconditionerConfig, SolveError, SolverConfig};

/// A form on the cells of a rank, its device, and the unknowns that it owns: all of them if it is alone.
///
/// Vectors on the device hold the owned unknowns, vectors of the form those of the cells. What exchanges ghosts, sums or agrees
/// is collective.
pub(super) struct RankForm<'a, D: RankDevice> {
    pub device: &'a D,
    pub comm: Comm,
    pub cpu: &'a Cpu,
    /// None if the rank has no cells.
    pub operator: Option<CpuOperator<'a>>,
    /// None if the rank is alone.
    pub part: Option<Part<'a>>,
    /// Rigid motions or others on which the tangent is small, all of an unknown together; none if multigrid takes constants.
    pub near_nullspace: Option<Vec<f64>>,
    /// The right side of sources at points.
    pub loads: Loads,
}

/// The part of the mesh of a rank.
#[derive(Clone)]
pub(super) struct Part<'a> {
    /// None if the rank has no cells.
    pub own: Option<&'a FormPart<'a>>,
    pub unknowns: RankUnknowns,
}

impl<D: RankDevice> RankForm<'_, D> {
    /// Returns values of the unknowns of the cells from those of the owned ones.
    pub fn with_ghosts<'v>(&self, owned: Cow<'v, [f64]>) -> Result<Cow<'v, [f64]>, LinalgError> {
        Ok(match &self.part {
            None => owned,
            Some(part) => part.unknowns.local.with_ghosts(&owned)?.into(),
        })
    }

    /// Brings the owned entries of a vector on the cells to the device.
    pub fn owned(&self, v: &[f64]) -> Result<Buffer<f64, D>, LinalgError> {
        Ok(match &self.part {
            None => Buffer::from_host(self.device, v)?,
            Some(part) => Buffer::from_vec(self.device, part.unknowns.local.restrict_to_owned(v))?,
        })
    }

    /// Returns the constraints of the unknowns of the cells from those on the whole mesh.
    pub fn constraints(&self, whole: &LinearConstraints) -> Result<LinearConstraints, SolveError> {
        match &self.part {
            None => Ok(whole.clone()),
            Some(part) => {
                part.own.map_or_else(|| Ok(LinearConstraints::none(0)), |own| own.constraints(whole))
            }
        }
    }

    /// Returns the norm of a vector over all ranks.
    pub fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, LinalgError> {
        let mut sum = [self.device.dot(v, v)?];
        self.comm.sum_values(&mut sum)?;
        Ok(sum[0].sqrt())
    }

    /// Returns the number of an owned unknown on the whole mesh.
    pub fn in_whole(&self, owned: usize) -> usize {
        self.part.as_ref().map_or(owned, |part| part.unknowns.owned[owned] as usize)
    }

    /// Returns the number of unknowns of the cells.
    pub fn n_of_cells(&self) -> usize {
        self.operator.as_ref().map_or(0, |operator| operator.discrete().n_unknowns())
    }

    /// Brings values of all unknowns of the mesh to the device, those that the rank owns.
    pub fn of_whole(&self, values: &[f64]) -> Result<Buffer<f64, D>, LinalgError> {
        Ok(match &self.part {
            None => Buffer::from_host(self.device, values)?,
            Some(part) => Buffer::from_vec(self.device, part.unknowns.of_problem(values))?,
        })
    }

    /// Returns the state that a run of the rank continues from: of that of all unknowns the owned ones. Ranks have states of the same
    /// problem.
    pub fn resumed<'s>(&self, state: &'s Checkpoint) -> Result<Cow<'s, Checkpoint>, LinalgError> {
        let Some(Part { unknowns, .. }) = &self.part else { return Ok(Cow::Borrowed(state)) };
        let own = |(time, all): &(f64, Vec<f64>)| match all.len() == unknowns.n {
            true => Ok((*time, unknowns.of_problem(all))),
            false => Err(LinalgError::Length { field: "checkpoint", expected: unknowns.n, found: all.len() }),
        };
        let history = state.history.iter().map(own).collect::<Result<_, LinalgError>>()?;
        Ok(Cow::Owned(Checkpoint { history, ..state.without_values() }))
    }

    /// Returns whether the tangent depends on neither u nor its rate.
    pub fn is_linear(&self) -> Result<bool, LinalgError> {
        let own = self.operator.as_ref().is_none_or(|operator| operator.discrete().form().is_linear());
        Ok(!self.comm.any([!own])?[0])
    }

    /// Returns whether entries of the tangent depend on t.
    pub fn is_tangent_in_time(&self) -> Result<bool, LinalgError> {
        let own =
            self.operator.as_ref().is_some_and(|operator| operator.discrete().form().is_tangent_in_time());
        Ok(self.comm.any([own])?[0])
    }

    /// Makes the preconditioner of the settings of a matrix with all rows, on one rank.
    pub fn preconditioning_of(
        &self,
        matrix: &mut Csr<f64, D>,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        if takes_magnitudes(config) {
            return Ok((Box::new(of_magnitudes(matrix)?), Vec::new()));
        }
        let near_nullspace = self.near_nullspace.as_deref();
        let made = MatrixPreconditioner::new(matrix, near_nullspace, &config.preconditioner, warnings)?;
        Ok(made.into_preconditioning())
    }

    /// Makes multigrid of the settings from what it takes of a matrix with a product, on one rank.
    pub fn approximated(
        &self,
        (own, of): (&Csr<f64, Cpu>, &Approximated),
        product: &dyn Fn() -> Result<Box<dyn LinearOperator<f64, D>>, SolveError>,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        let Approximated { matrix, is_symmetric, complement } = of;
        let matrix = matrix.as_ref().unwrap_or(own);
        let (inner, levels): Preconditioning<D> = match is_symmetric {
            true => self.preconditioning_of(&mut matrix.copy_to(self.device)?, config, warnings)?,
            false => MatrixPreconditioner::by_aggregation(matrix)?.into_preconditioning(),
        };
        let Some(complement) = complement else { return Ok((inner, levels)) };
        let complement = Arc::new(Complement::new(self.device, complement)?);
        Ok((Box::new(BlockTriangular { inner, product: product()?, complement }), levels))
    }

    /// Returns whether a matrix is not positive definite enough for a preconditioner. On several ranks these are the errors that
    /// all of them have.
    pub fn is_of_definiteness(&self, error: &SolveError) -> bool {
        match error {
            SolveError::Linalg(LinalgError::Diagonal { .. })
            | SolveError::Amg(AmgError::Indefinite { .. }) => true,
            other => self.part.is_none() && is_of_definiteness(other),
        }
    }

    /// Returns an error with the numbers of cells and nodes of the whole mesh.
    pub fn in_global_numbers(&self, error: SolveError) -> SolveError {
        match self.part.as_ref().and_then(|part| part.own) {
            Some(own) => own.in_global_numbers(error),
            None => error,
        }
    }
}

/// The matrix of the tangent on the cells of a rank, refilled on its pattern, which is symmetric.
pub(super) struct CellMatrix {
    /// None before the first state, and if the rank has no cells.
    pattern: Option<Pattern>,
    /// Whether the pattern keeps places, which pay from the second state on.
    keeps_places: bool,
    matrix: Csr<f64, Cpu>,
}

impl CellMatrix {
    /// Begins without a state.
    pub fn new(cpu: &Cpu) -> Result<Self, LinalgError> {
        Ok(Self { pattern: None, keeps_places: false, matrix: nothing(cpu)? })
    }

    /// Assembles at a state, with rows and columns of the identity at constrained unknowns, which are always the same.
    pub fn fill<D: RankDevice>(
        &mut self,
        form: &RankForm<'_, D>,
        state: &State<'_>,
        constraints: &LinearConstraints,
    ) -> Result<(), SolveError> {
        let Some(operator) = &form.operator else { return Ok(()) };
        let pattern = match &mut self.pattern {
            Some(pattern) => {
                if !self.keeps_places {
                    operator.keep_places(pattern);
                    self.keeps_places = true;
                }
                pattern
            }
            none => {
                let pattern = operator.pattern(constraints)?;
                self.matrix = operator.zero_matrix(&pattern)?;
                none.insert(pattern)
            }
        };
        operator.refill(state, pattern, self.matrix.values_mut().as_mut_slice())?;
        Ok(())
    }

    /// Returns the product with the owned rows, on the device.
    pub fn operator<D: RankDevice>(
        &self,
        form: &RankForm<'_, D>,
    ) -> Result<Box<dyn LinearOperator<f64, D>>, LinalgError> {
        let operator = |matrix| <D as SparseDevice>::into_operator(ProductMatrix::Rows(matrix));
        let Some(part) = &form.part else { return Ok(operator(self.matrix.copy_to(form.device)?)) };
        let OwnedRows { own, border } = self.rows(form, part)?;
        Ok(Box::new(DistributedMatrix::new(operator(own), border, Arc::clone(part.unknowns.halo()))?))
    }

    /// Makes the preconditioner of the settings: on one rank multigrid from its approximation.
    /// Collective.
    pub fn preconditioning<D: RankDevice>(
        &self,
        form: &RankForm<'_, D>,
        approximation: &Approximation,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        if let Some(part) = &form.part {
            let mut rows = self.rows(form, part)?;
            let near_nullspace = form.near_nullspace.as_deref();
            let of_rank = RowsOfProblem { near_nullspace, ..part.unknowns.rows() };
            return match takes_magnitudes(config) {
                true => Ok((Box::new(of_magnitudes(&rows.own)?), Vec::new())),
                false => preconditioning(&config.preconditioner, &mut rows, &of_rank, warnings),
            };
        }
        match approximation.of(&self.matrix, config)? {
            Some(of) => {
                form.approximated((&self.matrix, &of), &|| Ok(self.operator(form)?), config, warnings)
            }
            None => form.preconditioning_of(&mut self.matrix.copy_to(form.device)?, config, warnings),
        }
    }

    /// Returns the owned rows of a rank on its device.
    fn rows<D: RankDevice>(
        &self,
        form: &RankForm<'_, D>,
        part: &Part<'_>,
    ) -> Result<OwnedRows<f64, D>, LinalgError> {
        form.device.rows(owned_rows(form.cpu, &part.unknowns.local, &self.matrix)?)
    }
}

/// Returns whether the preconditioner is a diagonal for a matrix that need not be definite.
fn takes_magnitudes(config: &SolverConfig) -> bool {
    config.preconditioner == PreconditionerConfig::Jacobi && matches!(config.method, Method::Gmres { .. })
}
