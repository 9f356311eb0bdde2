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
use femtile_device::{Cpu, Device, Scalar, parallel};
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble};
use femtile_fem::{Constraints, FemError, Form};
use femtile_linalg::precondition::{ByComponent, Diagonal};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_matrix_free::{CellRule, MetricEvaluation};
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;
use femtile_sparse::csr::Csr;
use femtile_sum_factorization::SumFactorization;

use super::data::on_part;
use super::degrees;
use super::device::{RankCells, RankDevice};
use super::mesh_on_ranks::WholeSpace;
use super::numbering::{Numbering, owned_of_problem};
use super::rows::{Fixed, agreed, balance, nothing};
use super::system::{DistributedSystem, RankUnknowns, without_constants};
use crate::discretization::Discretization;
use crate::preconditioner::Preconditioning;
use crate::right_side::interleaved;
use crate::system::SystemSummary;
use crate::tensor::{self, Boxes, geometric};
use crate::{PreconditionerConfig, SolveError, SolverConfig, Stage, Stages};

/// Unknowns per parallel task.
const DOFS: usize = 1 << 14;
/// Fewest rows that a thread sorts.
const ROWS: usize = 256;

/// A part, a space on it, and the form of a component.
pub(super) type PartForm<'a> = (&'a MeshPart, &'a TensorSpace<'a>, Form<'a>);

/// One component of a problem on the part of a rank, and which of its unknowns the rank owns.
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
    pub fn new(comm: &Comm, whole: WholeSpace<'_>, own: Option<PartForm<'a>>) -> Result<Self, SolveError> {
        let of_rank = own.map(|(part, space, _)| (part, space));
        let numbering =
            of_rank.map_or_else(Numbering::none, |(part, space)| Numbering::new(part, space, comm.rank()));
        let owned = owned_of_problem(&numbering, whole, of_rank);
        Self::on(comm, Arc::new(numbering.joined(comm, of_rank)?), owned, own)
    }

    /// As [`PartProblem::new`], for another component on the same unknowns. Collective.
    fn of_component(&self, comm: &Comm, own: Option<PartForm<'a>>) -> Result<Self, SolveError> {
        Self::on(comm, Arc::clone(&self.unknowns), self.owned.clone(), own)
    }

    fn on(
        comm: &Comm,
        unknowns: Arc<LocalUnknowns>,
        owned: Vec<u32>,
        own: Option<PartForm<'a>>,
    ) -> Result<Self, SolveError> {
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

    /// Returns the right side of the owned unknowns, with Dirichlet values lifted. Collective.
    fn rhs<D: Device>(&self, device: &D, rule: CellRule) -> Result<Vec<f64>, SolveError> {
        let lifted = self.problem.as_ref().map(|problem| problem.lift_by_cells(device, rule)).transpose();
        let lifted = agreed(self.unknowns.halo().comm(), lifted.map_err(SolveError::from))?;
        match lifted {
            Some(system) => Ok(self.unknowns.restrict_to_owned(&system.rhs.host_view()?)),
            None => Ok(Vec::new()),
        }
    }

    /// Makes the matrix-free operator of the part for several components; none if the rank owns nothing.
    pub fn operator<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        (cpu, device): (&Cpu, &D),
        components: usize,
        rule: CellRule,
        metric: Option<MetricEvaluation>,
    ) -> Result<Option<D::Operator>, SolveError> {
        let Some(problem) = &self.problem else { return Ok(None) };
        // Vectors are in the order of owned unknowns, so they need no permutation.
        let unknowns = &self.unknowns;
        let numbers = (unknowns.positions(), [unknowns.halo().first_export(), unknowns.owned().len()]);
        let made = device.local_matrix_free(cpu, problem, components, (rule, metric), numbers);
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

    /// Returns the owned rows of the part's operator for several components. Collective.
    pub fn rows<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        device: &D,
        components: usize,
        operator: Option<D::Operator>,
    ) -> Result<Box<dyn LinearOperator<T, D>>, LinalgError> {
        let unknowns = Arc::clone(&self.unknowns);
        // A cell is counted once if all ranks sum by cells, a row if none does.
        let sums_rows = operator.as_ref().is_some_and(|operator| !D::can_sum_cells(operator));
        let [sums_rows] = unknowns.halo().comm().any([sums_rows])?;
        match operator {
            Some(operator) => {
                let rows = D::into_rows(operator, !sums_rows)?;
                let halo = match components {
                    1 => Arc::clone(unknowns.halo()),
                    n => Arc::new(unknowns.halo().of_components(n)),
                };
                Ok(Box::new(GhostedProduct::new(rows, halo)?))
            }
            None => Ok(Box::new(DistributedOperator::new(Box::new(nothing::<T, D>(device)?), unknowns)?)),
        }
    }

    /// Makes the Jacobi preconditioner of the owned rows, of some components for each unknown. Errors name the
    /// unknown by its number in the space of the problem.
    pub fn inverse_diagonal<T: Scalar, D: VectorKernels<T>>(
        &self,
        device: &D,
        diagonal: Vec<T>,
    ) -> Result<Diagonal<T, D>, SolveError> {
        let components = diagonal.len() / self.owned.len().max(1);
        Diagonal::of_entries(device, diagonal).map_err(|error| match error {
            LinalgError::Diagonal { row, value } => {
                LinalgError::Diagonal { row: self.owned[row / components] as usize, value }.into()
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
    let components = problem.n_components();
    let of_part = on_part(comm, (problem, &fixed.winners), part)?;
    let own = |component: usize| {
        let of_part = of_part.as_ref()?;
        Some((part?, of_part.space()?, of_part.form(component)))
    };
    let first = PartProblem::new(comm, whole, own(0))?;
    let nodes = part.map_or(&[][..], |part| &part.nodes[..part.n_owned]);
    let held = nodes.iter().copied().zip(first.is_held.iter().copied());
    let is_pure_neumann = fixed.leaves_a_constant(comm, problem.mesh, held)?;
    let rule = tensor::rule(problem.config.quadrature);
    let mut unknowns = RankUnknowns {
        components,
        given: given(&first, 0, components),
        is_pure_neumann,
        ..RankUnknowns::new(first.owned.clone(), Arc::clone(&first.unknowns))
    };
    let n = whole.n_dofs();
    let balanced = |mut rhs: Vec<f64>, unknowns: &mut RankUnknowns| -> Result<Vec<f64>, SolveError> {
        if is_pure_neumann {
            unknowns.imbalance = balance(comm, &mut rhs, n)?.max(unknowns.imbalance);
        }
        Ok(rhs)
    };
    if config.is_assembled() {
        let made = stages.with_fractions(|progress| first.assembled(cpu, rule, progress));
        let (matrix, rhs) = agreed(comm, made)?;
        let rhs = balanced(rhs, &mut unknowns)?;
        stages.begin(Stage::Setup)?;
        return DistributedSystem::of_matrix(device, config, (device.rows(matrix)?, rhs), unknowns, n);
    }
    let cells = agreed(comm, first.operator::<f64, D>((cpu, device), components, rule, config.metric))?;
    let mut parts = vec![balanced(first.rhs(device, rule)?, &mut unknowns)?];
    for component in 1..components {
        let of_component = first.of_component(comm, own(component))?;
        unknowns.given.extend(given(&of_component, component, components));
        parts.push(balanced(of_component.rhs(device, rule)?, &mut unknowns)?);
    }
    let rhs = interleaved(parts);
    stages.begin(Stage::Setup)?;
    let n_owned = first.owned.len();
    let of_all = |one: Preconditioning<D>| -> Result<Preconditioning<D>, LinalgError> {
        match components {
            1 => Ok(one),
            _ => Ok((Box::new(ByComponent::new(device, one.0, (n_owned, components))?), one.1)),
        }
    };
    let mut warnings = Vec::new();
    let (preconditioner, levels): Preconditioning<D> = match (&config.preconditioner, spaces.boxes) {
        (PreconditionerConfig::None, _) => (Box::new(Diagonal::identity(device, rhs.len())?), Vec::new()),
        (PreconditionerConfig::Gmg(options), Some(boxes)) => {
            of_all(geometric::of_ranks((device, comm), (options, config.method), boxes, &first.owned)?)?
        }
        (PreconditionerConfig::Gmg(_), None) => {
            return Err(geometric::refuse("needs a mesh that is divided by layers of its cells"));
        }
        (PreconditionerConfig::Pmg(options), _) => {
            let below = &spaces.below;
            let levels = degrees::Problems { finest: &first, own: own(0), below, rule };
            let made = degrees::preconditioner((cpu, device, comm), options, &levels, &mut warnings)?;
            of_all(without_constants(device, made, comm, (n, is_pure_neumann), n_owned)?)?
        }
        _ => {
            let diagonal = first.diagonal::<f64, D>(cells.as_ref())?;
            (Box::new(agreed(comm, first.inverse_diagonal(device, diagonal))?), Vec::new())
        }
    };
    let summary = SystemSummary {
        format: "matrix-free".into(),
        format_reason: None,
        levels,
        citations: vec!["kronbichler2022"],
        geometries: Vec::new(),
        has_full_start: false,
    };
    let operator = first.rows::<f64, D>(device, components, cells)?;
    Ok(DistributedSystem { operator, preconditioner, rhs, parts: summary, warnings, unknowns })
}

/// Returns the entries of vectors with Dirichlet values of a component of several, and these values.
fn given(on_part: &PartProblem<'_>, component: usize, components: usize) -> Vec<(u32, f64)> {
    let Some(problem) = &on_part.problem else { return Vec::new() };
    let owned = on_part.unknowns.owned();
    let pieces = parallel::map(owned.len().div_ceil(DOFS), 1, |piece| {
        let rows = piece * DOFS..owned.len().min((piece + 1) * DOFS);
        let entry = |row: usize| (row * components + component) as u32;
        let value = |row: usize| Some((entry(row), problem.constraints().value(owned[row] as usize)?));
        rows.filter_map(value).collect::<Vec<_>>()
    });
    pieces.concat()
}
