use std::ops::ControlFlow;
use std::sync::Arc;

use femtile_device::{Buffer, BufferMut, Device, HostDevice, Scalar};
use femtile_mesh::Mesh;
use femtile_space::Space;
use femtile_sparse::EntryPositions;
use femtile_sparse::csr::Csr;

use super::mesh_identity;
use super::sparsity::Sparsity;
use crate::FemError;
use crate::constraints::Constraints;
use crate::forms::{
    BoundaryCondition, CellCoefficients, Conditions, FacetTerm, Form, Slopes, State, facet_terms,
};

/// Receives the fraction done, from any thread, and returns whether to continue.
type Progress<'a> = &'a (dyn Fn(f64) -> ControlFlow<()> + Sync);

/// Never stops.
pub(super) fn to_the_end(_fraction: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A form prepared for assembly: compiled coefficients, facet terms and constraints.
pub struct AssemblyProblem<'a> {
    pub(crate) coefficients: CellCoefficients<'a>,
    pub(crate) facet_terms: Vec<FacetTerm>,
    pub(crate) constraints: Constraints,
    progress: Progress<'a>,
    /// The derivatives of a linearization. For it, the check whether the solution is determined is skipped.
    pub(super) slopes: Option<&'a Slopes>,
    /// Whether a coefficient depends on u.
    pub(super) uses_unknown: bool,
    /// Unique in the process.
    pub(super) number: u64,
}

/// The time and the function u at which a linearized problem is assembled.
///
/// # Shapes
/// The unknown function, `[n_nodes]`; none if no coefficient depends on u.
#[derive(Debug)]
pub struct DeviceState<'a, D: Device> {
    /// The time; NaN if no coefficient depends on it.
    pub time: f64,
    /// The function.
    pub unknown: Option<&'a Buffer<f64, D>>,
}

impl<D: Device> Clone for DeviceState<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for DeviceState<'_, D> {}

impl<D: Device> Default for DeviceState<'_, D> {
    fn default() -> Self {
        Self { time: f64::NAN, unknown: None }
    }
}

impl<'a, D: HostDevice> DeviceState<'a, D> {
    /// Returns the state in the memory of the host.
    pub fn on_host(&self) -> State<'a> {
        State { time: self.time, unknown: self.unknown.map_or(&[], |u| u.as_slice()) }
    }
}

impl<'a> AssemblyProblem<'a> {
    /// Prepares a form for assembly without progress reports.
    ///
    /// # Errors
    /// Errors of the form.
    #[doc(hidden)]
    pub fn of_form(form: &Form<'a>) -> Result<Self, FemError> {
        Self::new(form, &to_the_end)
    }

    /// Returns a number unique in the process.
    #[doc(hidden)]
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn new(form: &Form<'a>, progress: Progress<'a>) -> Result<Self, FemError> {
        let (space, conditions) = (Space::new(form.mesh, 1)?, form.holding_conditions()?);
        Ok(Self {
            coefficients: CellCoefficients::new(form)?,
            facet_terms: facet_terms(&space, &conditions)?,
            constraints: Constraints::new(&space, &conditions)?,
            progress,
            slopes: None,
            uses_unknown: false,
            number: mesh_identity::fresh(),
        })
    }

    /// Replaces the constraints of the Dirichlet conditions.
    pub(super) fn with_constraints(self, constraints: Constraints) -> Self {
        Self { constraints, ..self }
    }

    /// Prepares the linearization of a form, with derivatives of its coefficients and these conditions.
    pub(super) fn linearized(
        form: &Form<'a>,
        slopes: &'a Slopes,
        conditions: &[BoundaryCondition],
    ) -> Result<Self, FemError> {
        let form = Form { conditions: &[], ..*form };
        let coefficients = CellCoefficients::linearized(&form, slopes)?;
        let given = [form.sigma, form.lambda, form.source];
        let mut problem = Self {
            coefficients,
            facet_terms: Vec::new(),
            constraints: Constraints::none(0),
            progress: &to_the_end,
            slopes: Some(slopes),
            uses_unknown: slopes.is_any() || given.iter().any(|coefficient| coefficient.uses_unknown()),
            number: mesh_identity::fresh(),
        };
        problem.replace_conditions(conditions)?;
        Ok(problem)
    }

    /// Evaluates other conditions.
    pub(super) fn replace_conditions(&mut self, conditions: &[BoundaryCondition]) -> Result<(), FemError> {
        let Form { mesh, boundary, .. } = self.coefficients.form;
        let (space, conditions) = (Space::new(mesh, 1)?, Conditions::new(mesh, boundary, conditions)?);
        self.facet_terms = facet_terms(&space, &conditions)?;
        self.constraints = Constraints::new(&space, &conditions)?;
        Ok(())
    }

    /// Returns the constrained degrees of freedom and their values.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// Reports the fraction done; fails if the work is to stop.
    pub(crate) fn go_on(&self, fraction: f64) -> Result<(), FemError> {
        match (self.progress)(fraction) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FemError::Interrupted),
        }
    }
}

/// A matrix with its right side, constraints eliminated.
#[derive(Debug)]
pub struct Assembled<T: Scalar, D: Device> {
    /// The matrix $A$, symmetric, with unit rows for constrained degrees of freedom.
    pub matrix: Csr<T, D>,
    /// The right side with Dirichlet values lifted, zero in constrained rows.
    pub rhs: Vec<f64>,
}

/// Assembly kernels of a device.
pub trait AssemblyKernels<T: Scalar>: Device {
    /// Data of a mesh and a matrix kept for refills.
    type RefillData: Send;

    /// Assembles the matrix and right side of linear elements,
    ///
    /// $$ A_{ij} = \sum_T |T| \left( \nabla\varphi_i\cdot\bar\sigma\nabla\varphi_j +
    /// \overline{\lambda\varphi_i\varphi_j} \right) + \sum_F \int_F c\,\varphi_i\varphi_j, $$
    /// $$ b_i = \sum_T |T|\,\overline{f\varphi_i} + \sum_F \int_F (g + c\,w)\,\varphi_i, $$
    ///
    /// with bars for means over a cell, then eliminates constraints as described in [`crate::constraints`].
    ///
    /// The pattern is that of the mesh; entries of constrained rows and columns are kept as zeros. Terms are added in
    /// f64 by ascending cell, then by ascending facet, and rounded once.
    ///
    /// # Shapes
    /// `matrix: [n_nodes × n_nodes]`, `rhs: [n_nodes]`.
    /// # Cost
    /// Reads at least 16 bytes per cell and 24 per node; writes 12 bytes per non-zero and 12 per row in f64.
    /// # Errors
    /// A degenerate cell, an orphan node, a coefficient out of its range. Of several bad cells one is named, the same
    /// for any number of threads.
    fn assemble_system(&self, problem: &AssemblyProblem<'_>) -> Result<Assembled<T, Self>, FemError>;

    /// Prepares refills of a matrix with the pattern of a mesh, stored at `places`.
    ///
    /// # Errors
    /// Errors of the device.
    fn prepare_refill(
        &self,
        mesh: &Mesh,
        pattern: &Arc<Sparsity>,
        places: EntryPositions,
    ) -> Result<Self::RefillData, FemError>;

    /// Loads a problem to the memory that [`AssemblyKernels::queue`] reads, if it is not that of the host.
    ///
    /// # Errors
    /// Errors of the device.
    fn load(&self, _: &mut Self::RefillData, _: &AssemblyProblem<'_>) -> Result<(), FemError> {
        Ok(())
    }

    /// Loads the conditions of a problem whose coefficients are loaded, as [`AssemblyKernels::load`].
    ///
    /// # Errors
    /// Errors of the device.
    fn load_conditions(&self, _: &mut Self::RefillData, _: &AssemblyProblem<'_>) -> Result<(), FemError> {
        Ok(())
    }

    /// Computes the values of the loaded problem in a state, or queues the computation; padding stays unchanged.
    ///
    /// The matrix and right side of a linearization at u are those whose solution is the next iterate:
    ///
    /// $$ A_{ij} = \int \sigma\nabla\varphi_j\cdot\nabla\varphi_i + \sigma_u\varphi_j\nabla u\cdot\nabla\varphi_i
    ///    + (\lambda + g)\varphi_j\varphi_i, \qquad g = \lambda_u u - f_u, $$
    ///
    /// $$ b_i = \int \sigma_u u\nabla u\cdot\nabla\varphi_i + (f + g u)\varphi_i $$
    ///
    /// with the derivatives that the problem has, so that $b - A u$ is the residual of the form at u.
    ///
    /// The sums are those of [`AssemblyKernels::assemble_system`]. A device may add the terms of the diagonal
    /// in another order, which depends only on the mesh.
    ///
    /// # Shapes
    /// `values`: as stored; `rhs: [n_nodes]`.
    /// # Cost
    /// As [`AssemblyKernels::assemble_system`] without the pattern, plus [`AssemblyKernels::refill_bytes`] read;
    /// allocates no memory that grows with the mesh.
    /// # Errors
    /// Errors of [`AssemblyKernels::check`] that are known without waiting.
    fn queue<V: Scalar>(
        &self,
        refill_data: &mut Self::RefillData,
        at: (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError>;

    /// Waits for work that [`AssemblyKernels::queue`] has not done.
    ///
    /// # Errors
    /// A degenerate cell, a coefficient out of its range; the values are then undefined.
    fn check<V: Scalar>(
        &self,
        _: &mut Self::RefillData,
        _: (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        _: &mut BufferMut<'_, V, Self>,
        _: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        Ok(())
    }

    /// Returns the bytes that a refill reads of the mesh and of lists, besides data of coefficients.
    fn refill_bytes(&self, refill_data: &Self::RefillData) -> usize;

    /// Returns the right side of the last refill before rounding.
    ///
    /// # Errors
    /// Errors of the device.
    fn unrounded(&self, refill_data: &Self::RefillData, rhs: &Buffer<T, Self>) -> Result<Vec<f64>, FemError>;
}
