//! The rows of a rank.

use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_comm::{Comm, GhostedMatrix};
use femtile_device::{Cpu, parallel};
use femtile_fem::assembly::{BALANCE_TOLERANCE, NaturalRows, assemble_rows, has_floating};
use femtile_fem::forms::winners;
use femtile_fem::{Constraints, FemError, Form};
use femtile_linalg::LinalgError;
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_mesh::partition::Part;
use femtile_sparse::csr::Csr;

use super::data::PartData;
use crate::discretization::Discretization;
use crate::{SolveError, Stages};

/// Rows of a parallel task.
const ROWS: usize = 1 << 12;

/// Winning conditions and components of the whole problem, found before its parts are assembled.
#[derive(Clone)]
pub(crate) struct Fixed {
    /// The given values of linear elements.
    pub constraints: Constraints,
    /// The condition that holds on each boundary facet.
    pub winners: Vec<Option<u32>>,
    components: Arc<Components>,
}

impl Fixed {
    pub fn new(problem: &Discretization<'_>) -> Result<Self, FemError> {
        let components = components(problem.mesh);
        let is_unused = |&component: &u32| component == u32::MAX;
        // Of any degree, a node without cells has no unknown.
        if problem.space().is_none()
            && let Some(node) = components.of_node.iter().position(is_unused)
        {
            return Err(FemError::OrphanNode { node, point: problem.mesh.points[node] });
        }
        Self::with(problem, Arc::new(components))
    }

    /// Finds those of another problem on the same mesh.
    pub fn of(&self, problem: &Discretization<'_>) -> Result<Self, FemError> {
        Self::with(problem, Arc::clone(&self.components))
    }

    fn with(problem: &Discretization<'_>, components: Arc<Components>) -> Result<Self, FemError> {
        let form = problem.form(0);
        let constraints = match problem.space() {
            None => Constraints::of_form(&form)?,
            // Each rank finds those of its part.
            Some(_) => Constraints::none(0),
        };
        Ok(Self { constraints, winners: winners(&form)?, components })
    }

    /// Returns whether the solution of all ranks is determined up to a constant only, from the nodes of this one and whether
    /// each of them is held. All ranks call it.
    pub fn leaves_a_constant(
        &self,
        comm: &Comm,
        mesh: &Mesh,
        nodes: impl Iterator<Item = (u32, bool)>,
    ) -> Result<bool, SolveError> {
        let mut counts = vec![0.0; self.components.count];
        nodes
            .filter(|(_, is_held)| *is_held)
            .filter_map(|(node, _)| usize::try_from(self.components.of_node[node as usize]).ok())
            .for_each(|component| counts[component] += 1.0);
        comm.sum_values(&mut counts)?;
        let is_held: Vec<bool> = counts.into_iter().map(|count| count > 0.0).collect();
        Ok(has_floating(mesh, &self.components, &is_held)?)
    }
}

/// The part of a linear system of linear elements that a rank has.
pub(super) struct RankRows {
    /// With given values of u eliminated.
    pub matrix: GhostedMatrix<f64>,
    /// With given values lifted.
    pub rhs: Vec<f64>,
    /// The node of each row.
    pub owned: Vec<u32>,
    /// Owner and node of each ghost.
    pub ghosts: Vec<(u32, u64)>,
    /// Whether the solution of all ranks is determined up to a constant only.
    pub is_pure_neumann: bool,
    /// As in `femtile_fem::System`.
    pub imbalance: f64,
}

impl RankRows {
    /// Assembles the rows of a part of the mesh; none where the rank owns no node.
    pub fn new(
        cpu: &Cpu,
        comm: &Comm,
        (problem, fixed): (&Discretization<'_>, &Fixed),
        part: Option<&Part>,
        stages: &mut Stages<'_>,
    ) -> Result<Self, SolveError> {
        let made = match part {
            Some(part) => Self::of_part(cpu, (problem, fixed), part, stages),
            None => Self::empty(cpu).map(|rows| (rows, Vec::new())).map_err(SolveError::from),
        };
        let mut rows = agreed(comm, made)?;
        let held = (rows.0.owned.iter().zip(&rows.1))
            .map(|(&node, &is_held)| (node, is_held || fixed.constraints.contains(node as usize)));
        rows.0.is_pure_neumann = fixed.leaves_a_constant(comm, problem.mesh, held)?;
        if rows.0.is_pure_neumann {
            rows.0.imbalance = balance(comm, &mut rows.0.rhs, problem.mesh.n_nodes())?;
        }
        Ok(rows.0)
    }

    /// The rows of no node.
    fn empty(cpu: &Cpu) -> Result<Self, LinalgError> {
        let matrix = GhostedMatrix::new(cpu, [0, 0], |_| std::iter::empty())?;
        Ok(Self {
            matrix,
            rhs: vec![],
            owned: vec![],
            ghosts: vec![],
            is_pure_neumann: false,
            imbalance: 0.0,
        })
    }

    /// The rows of a part, and whether a reaction or an exchange holds each of its nodes.
    fn of_part(
        cpu: &Cpu,
        (problem, fixed): (&Discretization<'_>, &Fixed),
        part: &Part,
        stages: &mut Stages<'_>,
    ) -> Result<(Self, Vec<bool>), SolveError> {
        let constraints = &fixed.constraints;
        let data = PartData::new(problem, &fixed.winners, part).natural();
        let of_whole = |error: FemError| error.in_whole_mesh(&part.cells, &part.nodes);
        let NaturalRows { matrix, mut rhs, is_held } =
            assembled(cpu, &data.form(part), stages).map_err(of_whole)?;
        let values: Vec<Option<f64>> =
            parallel::map(part.nodes.len(), ROWS, |local| constraints.value(part.nodes[local] as usize));
        let given = |local: usize| values[local];
        rhs.truncate(part.n_owned);
        lift(&matrix, &mut rhs, given);
        let entries = |row: usize| {
            let is_given = given(row).is_some();
            matrix.row(row).map(move |(column, value)| {
                let value = match is_given || given(column).is_some() {
                    true => f64::from(u8::from(column == row)),
                    false => value,
                };
                (column, value)
            })
        };
        let n_ghosts = part.nodes.len() - part.n_owned;
        let (owned, ghosts) = part.nodes.split_at(part.n_owned);
        let ghosts = part.owners.iter().zip(ghosts).map(|(&owner, &node)| (owner, u64::from(node))).collect();
        let matrix = GhostedMatrix::new(cpu, [part.n_owned, n_ghosts], entries)?;
        let owned = owned.to_vec();
        Ok((Self { matrix, rhs, owned, ghosts, is_pure_neumann: false, imbalance: 0.0 }, is_held))
    }
}

/// Returns an error on every rank where one has an error: of several that of the lowest, which ends the others.
pub(crate) fn agreed<R>(comm: &Comm, result: Result<R, SolveError>) -> Result<R, SolveError> {
    let message = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let messages = comm.all_gather(message.as_bytes())?;
    match messages.iter().position(|message| !message.is_empty()) {
        Some(rank) if rank != comm.rank() => {
            // That rank fails with its error, which this one waits for; a process does not come back from here.
            comm.sum_values(&mut [0.0])?;
            let message = String::from_utf8_lossy(&messages[rank]).into_owned();
            Err(LinalgError::Rank { rank, message }.into())
        }
        _ => result,
    }
}

fn assembled(cpu: &Cpu, form: &Form<'_>, stages: &mut Stages<'_>) -> Result<NaturalRows<f64, Cpu>, FemError> {
    stages.with_fractions(|progress| {
        assemble_rows(cpu, form, &|fraction| {
            progress(fraction);
            ControlFlow::Continue(())
        })
    })
}

/// Subtracts the columns of given values from the right side, and sets it to zero at them.
fn lift(matrix: &Csr<f64, Cpu>, rhs: &mut [f64], given: impl Fn(usize) -> Option<f64> + Sync) {
    parallel::for_chunks_mut(rhs, ROWS, |first, rhs| {
        for (row, b) in (first..).zip(rhs) {
            *b = match given(row) {
                Some(_) => 0.0,
                None => {
                    let lifted = matrix.row(row).filter_map(|(column, value)| Some(value * given(column)?));
                    *b - lifted.sum::<f64>()
                }
            };
        }
    });
}

/// As assembly does for one rank: checks that the right side sums to zero up to [`BALANCE_TOLERANCE`], and subtracts its mean.
pub(super) fn balance(comm: &Comm, rhs: &mut [f64], n: usize) -> Result<f64, SolveError> {
    let mut sums = [rhs.iter().sum::<f64>(), rhs.iter().map(|b| b.abs()).sum()];
    comm.sum_values(&mut sums)?;
    let [total, size] = sums;
    if total.abs() > BALANCE_TOLERANCE * size {
        return Err(FemError::Incompatible { source_integral: total, flux_integral: 0.0 }.into());
    }
    // The second pass removes rounding errors of the first.
    for _ in 0..2 {
        let mut sum = [rhs.iter().sum::<f64>()];
        comm.sum_values(&mut sum)?;
        rhs.iter_mut().for_each(|b| *b -= sum[0] / n as f64);
    }
    Ok(if size > 0.0 { total.abs() / size } else { 0.0 })
}
