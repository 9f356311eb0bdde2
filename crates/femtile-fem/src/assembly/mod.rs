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
mod load;
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
use crate::forms::Form;
use crate::{FemError, functionals};
pub use cuda::{programs as cuda_programs, specialisations as cuda_specialisations};
pub use floating::{BALANCE_TOLERANCE, has_floating};
pub use kernels::{Assembled, AssemblyKernels, AssemblyProblem, DeviceState};
pub use load::load;
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
    let Assembled { matrix, mut rhs, reacts } = device.assemble_system(&problem)?;
    let is_pure_neumann = match problem.coefficients.reacts_everywhere() {
        true => false,
        false => is_pure_neumann(&problem, &components(form.mesh), &reacts)?,
    };
    let imbalance = if is_pure_neumann { balance(&problem, &mut rhs)? } else { 0.0 };
    let rhs: Vec<T> = rhs.into_iter().map(T::from_f64).collect();
    let rhs = Buffer::from_vec(device, rhs)?;
    let constraints = problem.constraints;
    Ok(AssembledSystem { matrix, rhs, constraints, is_pure_neumann, imbalance, made_by: 0 })
}

impl<T: Scalar, D: Device, M> AssembledSystem<T, D, M> {
    /// Separates the matrix from the rest.
    pub fn into_parts(self) -> (M, AssembledSystem<T, D, ()>) {
        let Self { matrix, rhs, constraints, is_pure_neumann, imbalance, .. } = self;
        (matrix, AssembledSystem { matrix: (), rhs, constraints, is_pure_neumann, imbalance, made_by: 0 })
    }

    /// Returns the solution $u$ for the solution $w$ of the system: inserts boundary values, subtracts the mean of a
    /// pure Neumann problem.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not match the mesh.
    pub fn solution(&self, mesh: &Mesh, w: &Buffer<T, D>) -> Result<Vec<f64>, FemError> {
        let u = w.to_host()?.into_iter().map(T::to_f64).collect();
        completed(mesh, u, &self.constraints, self.is_pure_neumann)
    }
}

/// Returns u from the solution of its system: inserts boundary values, subtracts the mean of a pure Neumann problem.
///
/// # Errors
/// [`FemError::Length`] if `w` does not match the mesh.
pub fn completed(
    mesh: &Mesh,
    w: Vec<f64>,
    constraints: &Constraints,
    is_pure_neumann: bool,
) -> Result<Vec<f64>, FemError> {
    let mut u = w;
    functionals::check_length(&u, mesh.n_nodes())?;
    constraints.impose(&mut u);
    if is_pure_neumann {
        let mean = functionals::mean(&Space::new(mesh, 1)?, &u)?;
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
    let Assembled { matrix, rhs, reacts } = device.assemble_system(&problem)?;
    let n = form.mesh.n_nodes();
    let mut is_held = match problem.coefficients.reacts_everywhere() {
        true => vec![true; n],
        false if reacts.is_empty() => vec![false; n],
        false => reacts,
    };
    for term in problem.facet_terms.iter().filter(|term| term.reacts) {
        term.nodes.iter().for_each(|&node| is_held[node as usize] = true);
    }
    Ok(PartRows { matrix, rhs, is_held })
}

fn is_pure_neumann(
    problem: &AssemblyProblem<'_>,
    components: &Components,
    reacts: &[bool],
) -> Result<bool, FemError> {
    if problem.coefficients.reacts_everywhere() {
        return Ok(false);
    }
    let mesh = problem.coefficients.mesh;
    let reacting_terms = || problem.facet_terms.iter().filter(|term| term.reacts);
    if components.count == 1 {
        let held =
            !problem.constraints.is_empty() || reacts.contains(&true) || reacting_terms().next().is_some();
        return Ok(!held);
    }
    let mut robin = Constraints::none(mesh.n_nodes()).into_mask();
    for node in reacting_terms().flat_map(|term| term.nodes) {
        robin[node as usize / 64] |= 1 << (node % 64);
    }
    floating::floats(mesh, components, |node| {
        problem.constraints.contains(node)
            || robin[node / 64] >> (node % 64) & 1 == 1
            || reacts.get(node).copied().unwrap_or(false)
    })
}

/// Returns whether the conditions determine the solution of a form of linear elements only up to a constant.
/// The reaction of the form is ignored.
///
/// # Errors
/// [`FemError::Floating`] if this is true of one of several components of the mesh; errors of the conditions.
pub fn conditions_leave_a_constant(form: &Form<'_>) -> Result<bool, FemError> {
    LinearSpace::new(form.mesh)?;
    let [zero, one] = [0.0, 1.0].map(crate::Coefficient::Constant);
    let plain = Form { sigma: &one, lambda: &zero, source: &zero, ..*form };
    is_pure_neumann(&AssemblyProblem::of_form(&plain)?, &components(form.mesh), &[])
}

/// Calls [`floating::balance`].
fn balance(problem: &AssemblyProblem<'_>, rhs: &mut [f64]) -> Result<f64, FemError> {
    let loads = || problem.facet_terms.iter().flat_map(|term| term.load);
    floating::balance(rhs, loads().sum::<f64>() + 0.0, loads().map(f64::abs).sum())
}

/// Returns whether a cell of this measure has a finite stiffness.
fn measure_is_sound(measure: f64) -> bool {
    measure.is_normal() && (1.0 / measure).is_finite()
}

fn degenerate(mesh: &Mesh, cell: usize, measure: f64) -> FemError {
    let centre = crate::forms::centroid(mesh, cell as u32).point(0);
    SpaceError::Degenerate { cell, measure, centre }.into()
}
