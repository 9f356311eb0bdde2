//! Assembly: from a form to a linear system with a matrix in CSR, a right side, and constraints eliminated.
//!
//! # Pure Neumann problems
//!
//! Without λ and without Dirichlet or Robin conditions the solution is determined up to a constant. The right side
//! is checked for compatibility and projected onto mean-free vectors. Conjugate gradients stay in that space,
//! because the mean is removed from each preconditioned residual. The mean of the solution is removed at the end.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
mod drift;
mod element;
mod facet_rows;
pub(crate) mod floating;
#[doc(hidden)]
pub mod kernel_support;
mod kernels;
mod mesh_identity;
mod nonzero;
mod pattern;
mod reference;
mod refill;
mod row_blocks;
mod sparsity;

use std::ops::ControlFlow;

use femtile_device::{Buffer, Device, Scalar};
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_space::{LinearSpace, Space, SpaceError};
use femtile_sparse::csr::Csr;

use crate::constraints::Constraints;
use crate::forms::{Conditions, FacetTerm, Form, facet_terms};
use crate::{FemError, functionals};
pub use cuda::{programs as cuda_programs, specialisations as cuda_specialisations};
pub use floating::{BALANCE_TOLERANCE, has_floating};
use floating::{Flux, Reaction, balance, floats, held_by_conditions, held_nodes};
pub use kernels::{Assembled, AssemblyKernels, AssemblyProblem, DeviceState};
pub use refill::Assembly;

/// A linear system $A w = b$, and the map from $w$ to the solution $u$.
#[derive(Debug)]
pub struct AssembledSystem<T: Scalar, D: Device, M = Csr<T, D>> {
    /// The matrix, symmetric; unit rows and columns for constrained degrees of freedom.
    pub matrix: M,
    /// The right side with Dirichlet values lifted, zero in constrained rows.
    pub rhs: Buffer<T, D>,
    /// The constrained degrees of freedom and their values.
    pub constraints: Constraints,
    /// Whether the solution is determined up to a constant only; it then has mean zero.
    pub is_pure_neumann: bool,
    /// In a pure Neumann problem, the part of the right side that was projected away, relative to its size.
    pub imbalance: f64,
    /// The number of the assembly that made it, 0 for [`assemble`].
    made_by: u64,
}

/// Assembles the system of a form on a device.
///
/// `progress` receives the fraction done, from any thread.
///
/// # Errors
/// An unusable mesh, a coefficient out of its range, unbalanced data of a pure Neumann problem, a component of the mesh
/// without any condition; see [`FemError`].
pub fn assemble<T: Scalar, D: AssemblyKernels<T>>(
    device: &D,
    form: &Form<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<AssembledSystem<T, D>, FemError> {
    let go_on = |fraction| {
        progress(fraction);
        ControlFlow::Continue(())
    };
    assemble_interruptible(device, form, &go_on)
}

/// As [`assemble`], and stops once `progress` breaks.
///
/// # Errors
/// Those of [`assemble`]; [`FemError::Interrupted`].
pub fn assemble_interruptible<T: Scalar, D: AssemblyKernels<T>>(
    device: &D,
    form: &Form<'_>,
    progress: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<AssembledSystem<T, D>, FemError> {
    LinearSpace::new(form.mesh)?;
    let problem = AssemblyProblem::new(form, progress)?;
    let Assembled { matrix, mut rhs } = device.assemble_system(&problem)?;
    let is_pure_neumann = is_pure_neumann(&problem, || components(form.mesh))?;
    let imbalance = if is_pure_neumann { balance(&mut rhs, Flux::of(&problem.facet_terms))? } else { 0.0 };
    let rhs: Vec<T> = rhs.into_iter().map(T::from_f64).collect();
    let rhs = Buffer::from_vec(device, rhs)?;
    let constraints = problem.constraints;
    Ok(AssembledSystem { matrix, rhs, constraints, is_pure_neumann, imbalance, made_by: 0 })
}

/// A system whose matrix is elsewhere, or that has none.
pub type WithoutMatrix<T, D> = AssembledSystem<T, D, ()>;

impl<T: Scalar, D: Device> WithoutMatrix<T, D> {
    /// Returns a system whose matrix is elsewhere.
    pub(crate) fn without_matrix(
        rhs: Buffer<T, D>,
        constraints: Constraints,
        is_pure_neumann: bool,
        imbalance: f64,
    ) -> Self {
        Self { matrix: (), rhs, constraints, is_pure_neumann, imbalance, made_by: 0 }
    }

    /// Joins the system with its matrix.
    pub(crate) fn with_matrix<M>(self, matrix: M) -> AssembledSystem<T, D, M> {
        let Self { rhs, constraints, is_pure_neumann, imbalance, made_by, .. } = self;
        AssembledSystem { matrix, rhs, constraints, is_pure_neumann, imbalance, made_by }
    }
}

impl<T: Scalar, D: Device, M> AssembledSystem<T, D, M> {
    /// Separates the matrix from the rest.
    pub fn into_parts(self) -> (M, WithoutMatrix<T, D>) {
        let Self { matrix, rhs, constraints, is_pure_neumann, imbalance, .. } = self;
        (matrix, AssembledSystem::without_matrix(rhs, constraints, is_pure_neumann, imbalance))
    }

    /// Returns the solution $u$ on a space for the solution $w$ of the system: inserts boundary values, subtracts the mean of
    /// a pure Neumann problem.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not match the space.
    pub fn solution(&self, space: &Space<'_>, w: &Buffer<T, D>) -> Result<Vec<f64>, FemError> {
        let u = w.to_host()?.into_iter().map(T::to_f64).collect();
        completed(space, u, &self.constraints, self.is_pure_neumann)
    }
}

/// Returns u from the solution of its system: inserts boundary values, subtracts the mean of a pure Neumann problem.
///
/// # Errors
/// [`FemError::Length`] if `w` does not match the space.
pub fn completed(
    space: &Space<'_>,
    w: Vec<f64>,
    constraints: &Constraints,
    is_pure_neumann: bool,
) -> Result<Vec<f64>, FemError> {
    let mut u = w;
    functionals::check_length(&u, space.n_dofs())?;
    constraints.impose(&mut u);
    if is_pure_neumann {
        let mean = functionals::mean(space, &u)?;
        u.iter_mut().for_each(|u| *u -= mean);
    }
    Ok(u)
}

/// Rows of a system on a mesh that may be a part of another.
#[derive(Debug)]
pub struct PartRows<T: Scalar, D: Device> {
    /// The matrix of all nodes, with unit rows and columns for constrained ones.
    pub matrix: Csr<T, D>,
    /// The right side with Dirichlet values lifted, zero in constrained rows.
    pub rhs: Vec<f64>,
    /// Whether a reaction or an exchange at each node determines the solution there.
    pub is_held: Vec<bool>,
}

/// Assembles the rows of a form with these constraints instead of its Dirichlet conditions, whether or not a
/// solution is determined. The rows of a node are those of the whole mesh if all cells of the node are in
/// this mesh.
///
/// # Errors
/// As [`assemble`], except those about an undetermined solution.
pub fn assemble_rows<T: Scalar, D: AssemblyKernels<T>>(
    device: &D,
    form: &Form<'_>,
    constraints: Constraints,
    progress: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<PartRows<T, D>, FemError> {
    LinearSpace::new(form.mesh)?;
    let problem = AssemblyProblem::new(form, progress)?.with_constraints(constraints);
    let Assembled { matrix, rhs } = device.assemble_system(&problem)?;
    let is_held = held_nodes(&Space::new(form.mesh, 1)?, form, reacting_nodes(&problem.facet_terms))?;
    Ok(PartRows { matrix, rhs, is_held })
}

/// Assembles the matrix of the terms of a form alone: Dirichlet values are not eliminated, and a solution need not be determined.
///
/// # Errors
/// As [`assemble`], except those about the solution.
pub fn assemble_matrix<T: Scalar, D: AssemblyKernels<T>>(
    device: &D,
    form: &Form<'_>,
) -> Result<Csr<T, D>, FemError> {
    LinearSpace::new(form.mesh)?;
    let none = Constraints::none(form.mesh.n_nodes());
    let problem = AssemblyProblem::of_form(form)?.with_constraints(none);
    Ok(device.assemble_system(&problem)?.matrix)
}

/// Iterates over the nodes of linear elements where an exchange holds the solution.
fn reacting_nodes(terms: &[FacetTerm]) -> impl Iterator<Item = u32> {
    terms.iter().filter(|term| term.reacts()).flat_map(|term| term.matrix.dofs.iter().copied())
}

/// Returns whether nothing holds the solution of a problem; `components` are those of its mesh.
fn is_pure_neumann<C: std::borrow::Borrow<Components>>(
    problem: &AssemblyProblem<'_>,
    components: impl FnOnce() -> C,
) -> Result<bool, FemError> {
    if problem.coefficients.reacts_everywhere() {
        return Ok(false);
    }
    let form = &problem.coefficients.form;
    let held = problem.constraints.dofs().iter().copied().chain(reacting_nodes(&problem.facet_terms));
    let space = Space::new(form.mesh, 1)?;
    let reaction = Reaction::new(&space, form)?;
    let reacting = |cells| reaction.as_ref().map_or(Ok(Vec::new()), |reaction| reaction.cells(cells));
    floats(form.mesh, components().borrow(), held, reacting)
}

/// Returns whether conditions determine the solution of an equation without a reaction on a space only up to a constant.
///
/// # Errors
/// [`FemError::Floating`] if this is true of one of several components of the mesh; errors of the conditions.
pub fn conditions_leave_a_constant(space: &Space<'_>, conditions: &Conditions<'_>) -> Result<bool, FemError> {
    let terms = facet_terms(space, conditions)?;
    let held = held_by_conditions(conditions, &terms);
    floats(conditions.mesh, &components(conditions.mesh), held, |_| Ok(Vec::new()))
}

/// Returns whether conditions hold the solution at a node of a mesh at least, which may be a part of another.
///
/// # Errors
/// Errors of the conditions.
pub fn conditions_hold_a_node(space: &Space<'_>, conditions: &Conditions<'_>) -> Result<bool, FemError> {
    let terms = facet_terms(space, conditions)?;
    Ok(held_by_conditions(conditions, &terms).next().is_some())
}

/// Returns whether a cell of this measure has a finite stiffness.
fn measure_is_sound(measure: f64) -> bool {
    measure.is_normal() && (1.0 / measure).is_finite()
}

fn degenerate(mesh: &Mesh, cell: usize, measure: f64) -> FemError {
    let centre = crate::forms::centroid(mesh, cell as u32).point(0);
    SpaceError::Degenerate { cell, measure, centre }.into()
}
