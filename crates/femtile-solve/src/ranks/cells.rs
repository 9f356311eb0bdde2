//! The linear system of a rank on quadrilaterals and hexahedra of any degree, assembled or matrix-free.
//!
//! A rank makes the space, the problem and the operator of its part as if it were a mesh. It gets the Dirichlet
//! values of ghosts from their owners and keeps its own rows. Cells between ranks are multiplied by both ranks, and
//! no value is sent twice. Matrix-free operators are made in the numbers of the rank: rows that others need come
//! last, then ghosts (`MatrixFree::local`, `CudaMatrixFree::local`). They take ghosts from a vector of their
//! own (`GhostedOperator`), so vectors keep their order. Transfers of p-multigrid change the order
//! (`DistributedTransfer`).
//!
//! On GPUs x·Ax is a sum over the cells whose inner unknowns the rank owns, if all ranks can compute it so. A rank
//! that sums rows beside one that sums cells would count some unknowns twice.

use std::sync::Arc;

use femtile_comm::{Comm, DistributedOperator, GhostedProduct, LocalUnknowns, OwnedRows};
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Cpu, Scalar, parallel};
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble};
use femtile_fem::{Constraints, FemError, Form};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_matrix_free::{CellRule, MetricEvaluation};
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;
use femtile_sparse::csr::Csr;
use femtile_sum_factorization::SumFactorization;

use super::degrees;
use super::device::{RankCells, RankDevice};
use super::mesh_on_ranks::WholeSpace;
use super::numbering::{Numbering, owned_of_problem};
use super::rows::{Fixed, agreed, balance, nothing};
use super::system::{DistributedSystem, RankUnknowns, without_constants};
use crate::discretization::Discretization;
use crate::preconditioner::Preconditioning;
use crate::system::SystemSummary;
use crate::tensor::{self, Boxes, geometric};
use crate::{PreconditionerConfig, SolveError, SolverConfig, Stage, Stages};

/// Unknowns per parallel task.
const DOFS: usize = 1 << 14;
/// Fewest rows that a thread sorts.
const ROWS: usize = 256;

/// A problem on the part of a rank, and which of its unknowns the rank owns.
pub(super) struct PartProblem<'a> {
    /// The problem with all Dirichlet values on the part; none if the rank owns no node.
    pub problem: Option<TensorProblem<'a>>,
    part: Option<&'a MeshPart>,
    /// Whether a boundary condition or a reaction of the part fixes the constant at each node.
    is_held: Vec<bool>,
    pub unknowns: Arc<LocalUnknowns>,
    /// The number of each owned unknown in the space of the problem.
    pub owned: Vec<u32>,
}

impl<'a> PartProblem<'a> {
    /// Evaluates a form on the space of the part, which has the same degree as `whole`. Collective.
    pub fn new(
        comm: &Comm,
        whole: WholeSpace<'_>,
        own: Option<(&'a MeshPart, &'a TensorSpace<'a>, Form<'a>)>,
    ) -> Result<Self, SolveError> {
        let of_rank = own.map(|(part, space, _)| (part, space));
        let numbering =
            of_rank.map_or_else(Numbering::none, |(part, space)| Numbering::new(part, space, comm.rank()));
        let owned = owned_of_problem(&numbering, whole, of_rank);
        let unknowns = Arc::new(numbering.joined(comm, of_rank)?);
        let evaluated = own.map(|(part, space, form)| {
            TensorProblem::local(space, &form)
                .map_err(|error| error.in_global_numbers(&part.cells, &part.nodes))
        });
        let evaluated = agreed(comm, evaluated.transpose().map_err(SolveError::from))?;
        let (problem, is_held) =
            evaluated.map_or((None, Vec::new()), |(problem, held)| (Some(problem), held));
        let constraints = of_all_ranks(&unknowns, problem.as_ref())?;
        let problem = problem.map(|problem| problem.with_constraints(constraints)).transpose()?;
        Ok(Self { problem, part: own.map(|(part, ..)| part), is_held, unknowns, owned })
    }

    /// Makes the matrix-free operator of the part; none if the rank owns nothing.
    pub fn operator<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        (cpu, device): (&Cpu, &D),
        rule: CellRule,
        metric: Option<MetricEvaluation>,
    ) -> Result<Option<D::Operator>, SolveError> {
        let Some(problem) = &self.problem else { return Ok(None) };
        // Vectors are in the order of owned unknowns, so they need no permutation.
        let unknowns = &self.unknowns;
        let numbers = (unknowns.positions(), [unknowns.halo().first_export(), unknowns.owned().len()]);
        let made = device.local_matrix_free(cpu, problem, (rule, metric), numbers);
        Ok(Some(made.map_err(|error| tensor::of_metric(self.in_global_numbers(error)))?))
    }

    /// Returns the diagonal of the owned rows.
    pub fn diagonal<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        operator: Option<&D::Operator>,
    ) -> Result<Vec<T>, LinalgError> {
        match operator {
            Some(operator) => D::diagonal(operator),
            None => Ok(vec![T::ZERO; self.owned.len()]),
        }
    }

    /// Returns the owned rows of the part's operator. Collective.
    pub fn rows<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        device: &D,
        operator: Option<D::Operator>,
    ) -> Result<Box<dyn LinearOperator<T, D>>, LinalgError> {
        let unknowns = Arc::clone(&self.unknowns);
        // A cell is counted once if all ranks sum by cells, a row if none does.
        let sums_rows = operator.as_ref().is_some_and(|operator| !D::can_sum_cells(operator));
        let [sums_rows] = unknowns.halo().comm().any([sums_rows])?;
        match operator {
            Some(operator) => {
                let rows = D::into_rows(operator, !sums_rows)?;
                Ok(Box::new(GhostedProduct::new(rows, Arc::clone(unknowns.halo()))?))
            }
            None => Ok(Box::new(DistributedOperator::new(Box::new(nothing::<T, D>(device)?), unknowns)?)),
        }
    }

    /// Makes the Jacobi preconditioner of the owned rows. Errors name the unknown by its number in the space
    /// of the problem.
    pub fn inverse_diagonal<T: Scalar, D: VectorKernels<T>>(
        &self,
        device: &D,
        diagonal: Vec<T>,
    ) -> Result<Diagonal<T, D>, SolveError> {
        Diagonal::of_entries(device, diagonal).map_err(|error| match error {
            LinalgError::Diagonal { row, value } => {
                LinalgError::Diagonal { row: self.owned[row] as usize, value }.into()
            }
            other => other.into(),
        })
    }

    fn in_global_numbers(&self, error: FemError) -> FemError {
        match self.part {
            Some(part) => error.in_global_numbers(&part.cells, &part.nodes),
            None => error,
        }
    }

    /// Assembles the matrix and the right side of the part.
    pub fn assembled(
        &self,
        cpu: &Cpu,
        rule: CellRule,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<(OwnedRows<f64>, Vec<f64>), SolveError> {
        let Some(problem) = &self.problem else {
            return Ok((OwnedRows::new(cpu, [0, 0], |_| std::iter::empty())?, Vec::new()));
        };
        let form = problem.form();
        let assembled = || {
            let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, rule)?;
            assemble(cpu, problem, &cells, progress)
        };
        let (matrix, system) = assembled().map_err(|error| self.in_global_numbers(error))?.into_parts();
        let rows = owned_rows(cpu, &self.unknowns, &matrix)?;
        Ok((rows, self.unknowns.restrict_to_owned(system.rhs.as_slice())))
    }
}

/// Returns the owned rows of a matrix of the part.
pub(crate) fn owned_rows(
    cpu: &Cpu,
    unknowns: &LocalUnknowns,
    matrix: &Csr<f64, Cpu>,
) -> Result<OwnedRows<f64>, LinalgError> {
    let (owned, numbers) = (unknowns.owned(), unknowns.positions());
    let rows: Vec<Vec<(usize, f64)>> = parallel::map(owned.len(), ROWS, |row| {
        let of_part = matrix.row(owned[row] as usize);
        let mut entries: Vec<_> = of_part.map(|(column, value)| (numbers[column] as usize, value)).collect();
        entries.sort_unstable_by_key(|(column, _)| *column);
        entries
    });
    let n_ghosts = unknowns.n() - owned.len();
    OwnedRows::new(cpu, [owned.len(), n_ghosts], |row| rows[row].iter().copied())
}

/// The Dirichlet values on a part. Each rank evaluates those of its owned unknowns, because its part has all
/// facets around them; ghosts get them from their owners.
fn of_all_ranks(
    unknowns: &LocalUnknowns,
    problem: Option<&TensorProblem<'_>>,
) -> Result<Constraints, SolveError> {
    let value =
        |row: usize| problem.and_then(|problem| problem.constraints().value(unknowns.owned()[row] as usize));
    let n_owned = unknowns.owned().len();
    let values = parallel::map(n_owned, DOFS, |row| value(row).unwrap_or(0.0));
    let flags = parallel::map(n_owned, DOFS, |row| f32::from(u8::from(value(row).is_some())));
    let values = unknowns.with_ghosts(&values)?;
    let flags = unknowns.with_ghosts(&flags)?;
    Ok(Constraints::of_values(unknowns.n(), |unknown| (flags[unknown] != 0.0).then(|| values[unknown])))
}

/// The spaces of all ranks.
pub(super) struct Spaces<'a> {
    pub whole: WholeSpace<'a>,
    /// The spaces of lower degree for p-multigrid, the highest first.
    pub below: Vec<WholeSpace<'a>>,
    /// For geometric multigrid.
    pub boxes: Option<&'a Boxes>,
}

/// Makes the system of a rank. Collective.
pub(super) fn system<D: RankDevice>(
    (cpu, device, comm): (&Cpu, &D, &Comm),
    (problem, fixed): (&Discretization<'_>, &Fixed),
    spaces: &Spaces<'_>,
    part: Option<&MeshPart>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<DistributedSystem<D>, SolveError> {
    let whole = spaces.whole;
    let made = match whole {
        // The space of the problem is that of the part.
        WholeSpace::Divided(..) => None,
        WholeSpace::Kept(_) => part.map(|part| TensorSpace::new(&part.mesh, whole.degree())),
    };
    let made = agreed(comm, made.transpose().map_err(SolveError::from))?;
    let space = made.as_ref().or_else(|| problem.space().filter(|_| problem.divided.is_some()));
    let data = part.map(|part| fixed.data(problem, part));
    let own = match (part, space, &data) {
        (Some(part), Some(space), Some(data)) => Some((part, space, data.form(part))),
        _ => None,
    };
    let on_part = PartProblem::new(comm, whole, own)?;
    let nodes = part.map_or(&[][..], |part| &part.nodes[..part.n_owned]);
    let held = nodes.iter().copied().zip(on_part.is_held.iter().copied());
    let is_pure_neumann = fixed.leaves_a_constant(comm, problem.mesh, held)?;
    let rule = tensor::rule(problem.config.quadrature);
    let mut unknowns = RankUnknowns {
        given: given(&on_part),
        part: Some(Arc::clone(&on_part.unknowns)),
        is_pure_neumann,
        ..RankUnknowns::new(on_part.owned.clone(), Arc::clone(on_part.unknowns.halo()))
    };
    let n = whole.n_dofs();
    let mut balanced = |rhs: &mut Vec<f64>| -> Result<(), SolveError> {
        if is_pure_neumann {
            unknowns.imbalance = balance(comm, rhs, n)?;
        }
        Ok(())
    };
    if config.is_assembled() {
        let made = stages.with_fractions(|progress| on_part.assembled(cpu, rule, progress));
        let (matrix, mut rhs) = agreed(comm, made)?;
        balanced(&mut rhs)?;
        stages.begin(Stage::Setup)?;
        return DistributedSystem::of_matrix(device, config, (device.rows(matrix)?, rhs), unknowns, n);
    }
    let cells = agreed(comm, on_part.operator::<f64, D>((cpu, device), rule, config.metric))?;
    let lifted = match (&cells, &on_part.problem) {
        (Some(_), Some(problem)) => Some(problem.lift_by_cells(device, rule)),
        _ => None,
    };
    let lifted = agreed(comm, lifted.transpose().map_err(SolveError::from))?;
    let mut rhs = match lifted {
        Some(system) => on_part.unknowns.restrict_to_owned(&system.rhs.host_view()?),
        None => Vec::new(),
    };
    balanced(&mut rhs)?;
    stages.begin(Stage::Setup)?;
    let mut warnings = Vec::new();
    let (preconditioner, levels): Preconditioning<D> = match (&config.preconditioner, spaces.boxes) {
        (PreconditionerConfig::None, _) => (Box::new(Diagonal::identity(device, rhs.len())?), Vec::new()),
        (PreconditionerConfig::Gmg(options), Some(boxes)) => {
            geometric::of_ranks((device, comm), (options, config.method), boxes, &on_part.owned)?
        }
        (PreconditionerConfig::Gmg(_), None) => {
            return Err(geometric::refuse("needs a mesh that is divided by layers of its cells"));
        }
        (PreconditionerConfig::Pmg(options), _) => {
            let below = &spaces.below;
            let levels = degrees::Problems { finest: &on_part, own, below, rule };
            let made = degrees::preconditioner((cpu, device, comm), options, &levels, &mut warnings)?;
            without_constants(device, made, comm, (n, is_pure_neumann), rhs.len())?
        }
        _ => {
            let diagonal = on_part.diagonal::<f64, D>(cells.as_ref())?;
            (Box::new(agreed(comm, on_part.inverse_diagonal(device, diagonal))?), Vec::new())
        }
    };
    let parts = SystemSummary {
        format: "matrix-free".into(),
        format_reason: None,
        levels,
        citations: vec!["kronbichler2022"],
        geometries: Vec::new(),
        has_full_start: false,
    };
    let operator = on_part.rows::<f64, D>(device, cells)?;
    Ok(DistributedSystem { operator, preconditioner, rhs, parts, warnings, unknowns })
}

/// Rows with Dirichlet values, and these values.
fn given(on_part: &PartProblem<'_>) -> Vec<(u32, f64)> {
    let Some(problem) = &on_part.problem else { return Vec::new() };
    let owned = on_part.unknowns.owned();
    let pieces = parallel::map(owned.len().div_ceil(DOFS), 1, |piece| {
        let rows = piece * DOFS..owned.len().min((piece + 1) * DOFS);
        let value = |row: usize| Some((row as u32, problem.constraints().value(owned[row] as usize)?));
        rows.filter_map(value).collect::<Vec<_>>()
    });
    pieces.concat()
}
