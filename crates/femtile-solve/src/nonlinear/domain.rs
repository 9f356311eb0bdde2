//! The mesh of an equation on a rank, with the unknowns that the rank owns: the whole mesh and all of them on one rank.
//!
//! A part has all cells around the unknowns that its rank owns. So their rows are assembled without messages, from a function
//! with its ghosts. Dirichlet values of ghosts come from their owners: the part may lack the facets that give them.

use std::sync::Arc;

use femtile_comm::{Comm, LocalUnknowns, OwnedRows, RankKernels};
use femtile_device::{Buffer, Cpu};
use femtile_fem::{Constraints, FemError};
use femtile_form::FormError;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_mesh::partition::MeshPart;
use femtile_sparse::{Csr, ProductMatrix, SparseDevice, StoredMatrix};

use super::place_of;
use super::report::Worst;
use crate::preconditioner::{Preconditioning, RowsOfProblem, preconditioning};
use crate::ranks::device::RankDevices;
use crate::ranks::rows::{agreed, nothing};
use crate::ranks::unknowns::{RankUnknowns, given_at_owned, given_on_part};
use crate::ranks::{RankDevice, owned_rows};
use crate::system::over_ranks;
use crate::{Discretization, SolveError, SolverConfig};

/// The mesh of an equation on a rank, its device, and the unknowns that it owns.
///
/// Vectors hold the owned unknowns; matrices are those of the mesh of the rank. What exchanges ghosts, sums or agrees is
/// collective.
pub(crate) struct Domain<'a, D: RankDevice> {
    pub device: &'a D,
    pub comm: Comm,
    /// The problem on the mesh of the rank.
    pub problem: &'a Discretization<'a>,
    /// None if the rank is alone and owns all unknowns of the problem.
    part: Option<Part<'a, D>>,
}

/// The part of a rank.
struct Part<'a, D: RankDevice> {
    cpu: &'a Cpu,
    mesh: &'a MeshPart,
    unknowns: &'a RankUnknowns,
    local: Arc<LocalUnknowns>,
    link: <D as RankKernels<f64>>::Link,
    positions: <D as RankKernels<f64>>::Positions,
}

/// Dirichlet values of ghosts.
pub(super) struct GivenGhosts<D: RankDevice> {
    /// Of each ghost.
    is_given: Vec<bool>,
    /// On the part, zero elsewhere.
    values: Buffer<f64, D>,
}

impl<'a, D: RankDevice> Domain<'a, D> {
    /// The whole mesh on one rank.
    pub fn whole(device: &'a D, problem: &'a Discretization<'a>) -> Self {
        Self { device, comm: Comm::alone(), problem, part: None }
    }

    /// The part of a rank, with the problem on it.
    pub fn on_part(
        RankDevices { cpu, device, comm }: RankDevices<'a, D>,
        problem: &'a Discretization<'a>,
        mesh: &'a MeshPart,
        unknowns: &'a RankUnknowns,
    ) -> Result<Self, LinalgError> {
        let local = Arc::clone(&unknowns.local);
        let link = RankKernels::<f64>::link(device, local.halo())?;
        let positions = RankKernels::<f64>::positions(device, &local)?;
        let part = Part { cpu, mesh, unknowns, local, link, positions };
        Ok(Self { device, comm: comm.clone(), problem, part: Some(part) })
    }

    /// Returns whether the rank is alone.
    pub fn is_whole(&self) -> bool {
        self.part.is_none()
    }

    /// Returns the number of owned unknowns.
    pub fn n_owned(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.problem.n_dofs(), |part| part.local.owned().len())
    }

    /// Returns zeros at the owned unknowns.
    pub fn zeros(&self) -> Result<Buffer<f64, D>, LinalgError> {
        Ok(Buffer::zeros(self.device, self.n_owned())?)
    }

    /// Returns $x \cdot y$ over all ranks.
    pub fn dot(&self, x: &Buffer<f64, D>, y: &Buffer<f64, D>) -> Result<f64, LinalgError> {
        let mut sum = [self.device.dot(x, y)?];
        self.comm.sum_values(&mut sum)?;
        Ok(sum[0])
    }

    /// Returns the norm over all ranks.
    pub fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, LinalgError> {
        Ok(self.dot(v, v)?.sqrt())
    }

    /// Returns an error on every rank if one rank has one; an error about values of coefficients is the same on all of them.
    pub fn agreed<R>(&self, result: Result<R, FemError>) -> Result<R, FemError> {
        let Some(part) = &self.part else { return result };
        let result = result.map_err(|error| error.in_global_numbers(&part.mesh.cells, &part.mesh.nodes));
        let own =
            result.as_ref().err().map_or_else(Vec::new, |error| to_numbers(error).unwrap_or(vec![f64::NAN]));
        let all = self.comm.all_gather(&own)?;
        let is_other = |numbers: &Vec<f64>| numbers.len() == 1;
        match all.iter().find(|numbers| !numbers.is_empty()) {
            Some(first) if !all.iter().any(is_other) => Err(of_numbers(first)),
            // The other errors count, on the ranks that have them.
            Some(_) if result.as_ref().is_err_and(|error| to_numbers(error).is_none()) => {
                agreed(&self.comm, result)
            }
            Some(_) => agreed(&self.comm, Ok::<(), FemError>(())).and(result),
            None => result,
        }
    }

    /// Returns a function with its ghosts, in the numbers of the part; none if there is no part.
    pub fn with_ghosts(&self, u: &Buffer<f64, D>) -> Result<Option<Buffer<f64, D>>, LinalgError> {
        let Some(Part { local, link, positions, .. }) = &self.part else { return Ok(None) };
        let mut ghosts = Buffer::zeros(self.device, local.halo().n_ghosts())?;
        self.device.import((local.halo(), link), &mut ghosts, u, &mut || Ok(()))?;
        let mut on_part = Buffer::zeros(self.device, local.n())?;
        self.device.spread((local, positions), &mut on_part, u, Some(&ghosts))?;
        Ok(Some(on_part))
    }

    /// Returns the owned entries of a vector on the mesh of the rank.
    pub fn owned(&self, v: Buffer<f64, D>) -> Result<Buffer<f64, D>, LinalgError> {
        let Some(Part { local, positions, .. }) = &self.part else { return Ok(v) };
        let mut owned = self.zeros()?;
        self.device.take((local, positions), &mut owned, &v, None)?;
        Ok(owned)
    }

    /// Returns the Dirichlet values at the owned unknowns, from those on the mesh of the rank, and those of ghosts if there are
    /// any.
    pub(super) fn given(
        &self,
        on_mesh: &Constraints,
    ) -> Result<(Constraints, Option<GivenGhosts<D>>), LinalgError> {
        let Some(Part { local, .. }) = &self.part else { return Ok((on_mesh.clone(), None)) };
        let on_part = given_on_part(local, on_mesh)?;
        let (mut is_given, mut values) = (vec![false; local.halo().n_ghosts()], vec![0.0; local.n()]);
        for (&unknown, &value) in on_part.dofs().iter().zip(on_part.values()) {
            let position = local.positions()[unknown as usize] as usize;
            if let Some(ghost) = position.checked_sub(local.owned().len()) {
                (is_given[ghost], values[unknown as usize]) = (true, value);
            }
        }
        let ghosts = match is_given.contains(&true) {
            true => Some(GivenGhosts { is_given, values: Buffer::from_vec(self.device, values)? }),
            false => None,
        };
        Ok((given_at_owned(local.owned(), on_mesh), ghosts))
    }

    /// Subtracts from a right side on the part what the Dirichlet values of ghosts add to its rows.
    pub(super) fn lift(
        &self,
        rhs: &mut Buffer<f64, D>,
        matrix: &Csr<f64, D>,
        ghosts: Option<&GivenGhosts<D>>,
    ) -> Result<(), LinalgError> {
        let Some(ghosts) = ghosts else { return Ok(()) };
        let mut product = Buffer::zeros(self.device, rhs.len())?;
        D::rows_operator(matrix).apply(&mut product, &ghosts.values)?;
        self.device.axpby(rhs, -1.0, &product, 1.0)
    }

    /// Returns the product of a matrix on a part with owned unknowns; ghosts with Dirichlet values have no columns. None if
    /// there is no part.
    pub(super) fn operator(
        &self,
        matrix: &Csr<f64, D>,
        ghosts: Option<&GivenGhosts<D>>,
    ) -> Result<Option<Box<dyn LinearOperator<f64, D>>>, LinalgError> {
        let Some(part) = &self.part else { return Ok(None) };
        let OwnedRows { own, border } = self.rows(part, matrix, ghosts)?;
        let own = <D as SparseDevice>::into_operator(ProductMatrix::Rows(own));
        Ok(Some(over_ranks(own, border, part.local.halo())?))
    }

    /// Returns a matrix on the mesh of the rank for products with owned unknowns.
    pub(super) fn operator_of(
        &self,
        matrix: Csr<f64, D>,
    ) -> Result<Box<dyn LinearOperator<f64, D>>, LinalgError> {
        let on_part = self.operator(&matrix, None)?;
        Ok(on_part.unwrap_or_else(|| <D as SparseDevice>::into_operator(ProductMatrix::Rows(matrix))))
    }

    /// Returns the owned rows of a matrix on a part.
    fn rows(
        &self,
        part: &Part<'_, D>,
        matrix: &Csr<f64, D>,
        ghosts: Option<&GivenGhosts<D>>,
    ) -> Result<OwnedRows<f64, D>, LinalgError> {
        let mut rows = match self.problem.space() {
            // Nodes that the rank owns come first.
            None => self.device.divide(matrix.copy_to(self.device)?, part.local.owned().len())?,
            Some(_) => self.device.rows(owned_rows(part.cpu, &part.local, &matrix.copy_to(part.cpu)?)?)?,
        };
        if let Some(GivenGhosts { is_given, .. }) = ghosts {
            let columns = rows.border.columns().to_host()?;
            let mut values = rows.border.values().to_host()?;
            let given = values.iter_mut().zip(&columns).filter(|(_, column)| is_given[**column as usize]);
            given.for_each(|(value, _)| *value = 0.0);
            rows.border.values_mut().upload(&values)?;
        }
        Ok(rows)
    }

    /// Makes the preconditioner of the settings for a matrix on the mesh of the rank.
    ///
    /// # Errors
    /// [`LinalgError::Diagonal`] on all ranks if one of them has such an entry.
    pub(super) fn preconditioning(
        &self,
        config: &SolverConfig,
        matrix: &mut Csr<f64, D>,
        ghosts: Option<&GivenGhosts<D>>,
        warnings: &mut Vec<String>,
    ) -> Result<Preconditioning<D>, SolveError> {
        let config = &config.preconditioner;
        if let Some(part) = &self.part {
            let of_rank = part.unknowns.rows();
            return preconditioning(config, &mut self.rows(part, matrix, ghosts)?, &of_rank, warnings);
        }
        let mesh = self.problem.space().is_none().then_some(self.problem.mesh);
        let all = RowsOfProblem { mesh, ..RowsOfProblem::all(matrix.n_rows()) };
        let mut rows = OwnedRows::whole(std::mem::replace(matrix, nothing(self.device)?))?;
        let made = preconditioning(config, &mut rows, &all, warnings);
        *matrix = rows.own;
        made
    }

    /// Returns the unknown of all ranks with the largest residual, where u has some values.
    pub fn worst(&self, residual: &Buffer<f64, D>, u: &Buffer<f64, D>) -> Result<Option<Worst>, SolveError> {
        let (residual, u) = (residual.to_host()?, u.to_host()?);
        let largest = (0..residual.len()).max_by(|&a, &b| residual[a].abs().total_cmp(&residual[b].abs()));
        let own = largest.map_or_else(Vec::new, |row| {
            let (here, unknown) = match &self.part {
                Some(part) => (part.local.owned()[row] as usize, part.unknowns.owned[row] as usize),
                None => (row, row),
            };
            let [x, y, z] = place_of(self.problem, here);
            vec![residual[row], unknown as f64, x, y, z, u[row]]
        });
        let all = self.comm.all_gather(&own)?;
        let found = all.iter().filter(|of_rank| !of_rank.is_empty());
        let worst = found.max_by(|a, b| a[0].abs().total_cmp(&b[0].abs()));
        Ok(worst.map(|of_rank| Worst {
            residual: of_rank[0],
            unknown: of_rank[1] as usize,
            point: [of_rank[2], of_rank[3], of_rank[4]],
            value: of_rank[5],
        }))
    }
}

/// The coefficients that errors about values name.
const FIELDS: [&str; 7] = ["sigma", "lambda", "source", "capacity", "∂sigma/∂u", "∂lambda/∂u", "∂source/∂u"];

/// Returns an error about a value of a coefficient as numbers.
fn to_numbers(error: &FemError) -> Option<Vec<f64>> {
    let FemError::Form(error) = error else { return None };
    let (kind, field, cell, point, tensor, unknown) = match error {
        FormError::NotFinite { field, cell, point, value, unknown } => {
            (0.0, field, cell, point, [[*value; 3]; 3], unknown)
        }
        FormError::Negative { field, cell, point, value, unknown } => {
            (1.0, field, cell, point, [[*value; 3]; 3], unknown)
        }
        FormError::Indefinite { field, cell, point, tensor, unknown } => {
            (2.0, field, cell, point, *tensor, unknown)
        }
        _ => return None,
    };
    let field = FIELDS.iter().position(|name| name == field)?;
    let mut numbers = vec![kind, field as f64, *cell as f64];
    numbers.extend(point);
    numbers.extend(tensor.as_flattened());
    numbers.extend(unknown);
    Some(numbers)
}

/// Returns the error of [`to_numbers`].
fn of_numbers(numbers: &[f64]) -> FemError {
    let (field, cell) = (FIELDS[numbers[1] as usize], numbers[2] as usize);
    let (point, unknown) = ([numbers[3], numbers[4], numbers[5]], numbers.get(15).copied());
    let (value, tensor) = (numbers[6], [0, 1, 2].map(|i| [0, 1, 2].map(|j| numbers[6 + 3 * i + j])));
    let error = match numbers[0] {
        0.0 => FormError::NotFinite { field, cell, point, value, unknown },
        1.0 => FormError::Negative { field, cell, point, value, unknown },
        _ => FormError::Indefinite { field, cell, point, tensor, unknown },
    };
    error.into()
}
