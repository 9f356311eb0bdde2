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
use femtile_device::{Buffer, Cpu, Device, Scalar, parallel};
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
use super::device::{RankCells, RankDevice, RankDevices};
use super::mesh_on_ranks::WholeSpace;
use super::rows::{RankProblem, agreed, balance, nothing};
use super::unknowns::{RankSystem, RankUnknowns, given_at_owned, given_on_part};
use crate::preconditioner::{Preconditioning, RowsOfProblem, without_constants};
use crate::right_side::{RightSide, interleaved};
use crate::system::{LinearSystem, Prepared, SystemSummary};
use crate::tensor::{self, Boxes, geometric};
use crate::{PreconditionerConfig, SolveError, SolverConfig, Stage, Stages};

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
    pub unknowns: RankUnknowns,
}

impl<'a> PartProblem<'a> {
    /// Evaluates a form on the space of the part, which has the same degree as `whole`. Collective.
    pub fn new(comm: &Comm, whole: WholeSpace<'_>, own: Option<PartForm<'a>>) -> Result<Self, SolveError> {
        let unknowns = RankUnknowns::in_space(comm, whole, own.map(|(part, space, _)| (part, space)))?;
        Self::on(comm, unknowns, own)
    }

    /// As [`PartProblem::new`], for another component on the same unknowns. Collective.
    fn of_component(&self, comm: &Comm, own: Option<PartForm<'a>>) -> Result<Self, SolveError> {
        Self::on(comm, self.unknowns.clone(), own)
    }

    fn on(comm: &Comm, unknowns: RankUnknowns, own: Option<PartForm<'a>>) -> Result<Self, SolveError> {
        let evaluated = own.map(|(part, space, form)| {
            TensorProblem::local(space, &form)
                .map_err(|error| error.in_global_numbers(&part.cells, &part.nodes))
        });
        let evaluated = agreed(comm, evaluated.transpose().map_err(SolveError::from))?;
        let (problem, is_held) =
            evaluated.map_or((None, Vec::new()), |(problem, held)| (Some(problem), held));
        let none = Constraints::none(0);
        let evaluated = problem.as_ref().map_or(&none, TensorProblem::constraints);
        let constraints = given_on_part(&unknowns.local, evaluated)?;
        let problem = problem.map(|problem| problem.with_constraints(constraints)).transpose()?;
        Ok(Self { problem, part: own.map(|(part, ..)| part), is_held, unknowns })
    }

    /// Returns the Dirichlet values at the owned unknowns.
    fn given(&self) -> Constraints {
        match &self.problem {
            Some(problem) => given_at_owned(self.unknowns.local.owned(), problem.constraints()),
            None => Constraints::none(0),
        }
    }

    /// Returns the right side of the owned unknowns, with Dirichlet values lifted. Collective.
    fn rhs<D: Device>(&self, device: &D, rule: CellRule) -> Result<Vec<f64>, SolveError> {
        let lifted = self.problem.as_ref().map(|problem| problem.lift_by_cells(device, rule)).transpose();
        let lifted = agreed(self.unknowns.halo().comm(), lifted.map_err(SolveError::from))?;
        match lifted {
            Some(system) => Ok(self.unknowns.local.restrict_to_owned(&system.rhs.host_view()?)),
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
        let unknowns = &self.unknowns.local;
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
            None => Ok(vec![T::ZERO; self.unknowns.owned.len()]),
        }
    }

    /// Returns the owned rows of the part's operator for several components. Collective.
    pub fn rows<T: SumFactorization + Lanes, D: RankCells<T>>(
        &self,
        device: &D,
        components: usize,
        operator: Option<D::Operator>,
    ) -> Result<Box<dyn LinearOperator<T, D>>, LinalgError> {
        let unknowns = Arc::clone(&self.unknowns.local);
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
        let components = diagonal.len() / self.unknowns.owned.len().max(1);
        Diagonal::of_entries(device, diagonal).map_err(|error| match error {
            LinalgError::Diagonal { row, value } => {
                LinalgError::Diagonal { row: self.unknowns.owned[row / components] as usize, value }.into()
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
            return Ok((OwnedRows::whole(nothing(cpu)?)?, Vec::new()));
        };
        let form = problem.form();
        let assembled = || {
            let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, rule)?;
            assemble(cpu, problem, &cells, progress)
        };
        let (matrix, system) = assembled().map_err(|error| self.in_global_numbers(error))?.into_parts();
        let rows = owned_rows(cpu, &self.unknowns.local, &matrix)?;
        Ok((rows, self.unknowns.local.restrict_to_owned(system.rhs.as_slice())))
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
    on: RankDevices<'_, D>,
    RankProblem { problem, fixed, part }: RankProblem<'_, '_>,
    spaces: &Spaces<'_>,
    config: &SolverConfig,
    stages: &mut Stages<'_>,
) -> Result<RankSystem<D>, SolveError> {
    let RankDevices { cpu, device, comm } = on;
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
    let mut imbalance = 0.0_f64;
    let mut balanced = |mut rhs: Vec<f64>| -> Result<Vec<f64>, SolveError> {
        if is_pure_neumann {
            imbalance = balance(comm, &mut rhs, whole.n_dofs())?.max(imbalance);
        }
        Ok(rhs)
    };
    let right = |parts: Vec<Vec<f64>>, constraints: Vec<Constraints>, imbalance: f64| {
        let values = Buffer::from_vec(device, interleaved(parts)).map_err(LinalgError::from)?;
        Ok::<_, LinalgError>(RightSide { values, constraints, is_pure_neumann, imbalance, space: None })
    };
    let rows = RowsOfProblem { is_pure_neumann, ..first.unknowns.rows() };
    if config.is_assembled() {
        let made = stages.with_fractions(|progress| first.assembled(cpu, rule, progress));
        let (matrix, rhs) = agreed(comm, made)?;
        let parts = vec![balanced(rhs)?];
        stages.begin(Stage::Setup)?;
        let right = right(parts, vec![first.given()], imbalance)?;
        let system = LinearSystem::of_matrix(config, device.rows(matrix)?, &rows, right)?;
        return Ok(RankSystem { system, unknowns: first.unknowns.clone() });
    }
    let cells = agreed(comm, first.operator::<f64, D>((cpu, device), components, rule, config.metric))?;
    let (mut parts, mut constraints) = (vec![balanced(first.rhs(device, rule)?)?], vec![first.given()]);
    for component in 1..components {
        let of_component = first.of_component(comm, own(component))?;
        constraints.push(of_component.given());
        parts.push(balanced(of_component.rhs(device, rule)?)?);
    }
    let right = right(parts, constraints, imbalance)?;
    stages.begin(Stage::Setup)?;
    let n_owned = first.unknowns.owned.len();
    let of_all = |one: Preconditioning<D>| -> Result<Preconditioning<D>, LinalgError> {
        match components {
            1 => Ok(one),
            _ => Ok((Box::new(ByComponent::new(device, one.0, (n_owned, components))?), one.1)),
        }
    };
    let mut warnings = Vec::new();
    let (preconditioner, levels): Preconditioning<D> = match (&config.preconditioner, spaces.boxes) {
        (PreconditionerConfig::None, _) => {
            (Box::new(Diagonal::identity(device, right.values.len())?), Vec::new())
        }
        (PreconditionerConfig::Gmg(options), Some(boxes)) => {
            of_all(geometric::of_ranks(on, (options, config.method), boxes, &first.unknowns.owned)?)?
        }
        (PreconditionerConfig::Gmg(_), None) => {
            return Err(geometric::refuse("needs a mesh that is divided by layers of its cells"));
        }
        (PreconditionerConfig::Pmg(options), _) => {
            let below = &spaces.below;
            let levels = degrees::Problems { finest: &first, own: own(0), below, rule };
            let made = degrees::preconditioner(on, options, &levels, &mut warnings)?;
            of_all(without_constants(device, made, &rows)?)?
        }
        _ => {
            let diagonal = first.diagonal::<f64, D>(cells.as_ref())?;
            (Box::new(agreed(comm, first.inverse_diagonal(device, diagonal))?), Vec::new())
        }
    };
    let summary = SystemSummary::without_matrix(levels, Vec::new());
    let operator = first.rows::<f64, D>(device, components, cells)?;
    let prepared = Prepared { operator, preconditioner, summary, warnings };
    let system = LinearSystem { prepared, right, start: None, comm: comm.clone() };
    Ok(RankSystem { system, unknowns: first.unknowns })
}
