//! Repeated assembly on a fixed pattern.
//!
//! `Assembly` keeps the data that a device needs to compute values again (`AssemblyKernels::Kept`): the pattern on
//! a CPU, patch lists on a GPU. `EntryPositions` of `femtile-sparse` maps entries of the pattern to positions in storage,
//! so assembly is independent of the format. More: `docs/developers/assembly.md`.

use std::sync::Arc;

use femtile_device::{Buffer, Scalar};
use femtile_linalg::need;
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_space::LinearSpace;
use femtile_sparse::{Csr, StoredMatrix};

use super::floating::{Flux, balance};
use super::kernels::to_the_end;
use super::mesh_identity::{self, MeshIdentity};
use super::sparsity::{Sparsity, pattern};
use super::{AssembledSystem, AssemblyKernels, AssemblyProblem, DeviceState, is_pure_neumann};
use crate::FemError;
use crate::forms::{BoundaryCondition, Form, Slopes};

/// Assembly on a fixed mesh: the pattern and lists are computed once, then values are refilled for each form, directly
/// in the format of the matrix.
///
/// ```
/// use femtile_device::Cpu;
/// use femtile_fem::{Assembly, Coefficient, Form};
/// use femtile_mesh::check::BoundaryFacets;
/// use femtile_mesh::generate::{BoxConfig, box_mesh};
///
/// let mesh = box_mesh(&BoxConfig::default())?;
/// let (boundary, one) = (BoundaryFacets::default(), Coefficient::Constant(1.0));
/// let form = |sigma| Form { mesh: &mesh, boundary: &boundary, sigma, lambda: &one, source: &one, conditions: &[] };
///
/// let mut assembly = Assembly::<f64, _>::new(&Cpu::new(0)?, &mesh)?;
/// let mut system = assembly.system(&form(&one))?;
/// assembly.refill(&mut system, &form(&Coefficient::Constant(2.0)))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Assembly<T: Scalar, D: AssemblyKernels<T>, M: StoredMatrix<D> = Csr<T, D>> {
    device: D,
    /// Unique in the process.
    number: u64,
    mesh: MeshIdentity,
    n_nodes: usize,
    /// Stored values of a matrix.
    n_values: usize,
    /// The number of the last prepared problem.
    prepared: u64,
    refill_data: D::RefillData,
    pattern: Arc<Sparsity>,
    components: Components,
    config: M::Config,
    /// The zero matrix for the first system.
    empty: Option<M>,
}

impl<T: Scalar, D: AssemblyKernels<T>> Assembly<T, D> {
    /// Prepares systems in CSR on a mesh of triangles or tetrahedra.
    ///
    /// # Errors
    /// Cells of another kind, a node without a cell; errors of the device.
    pub fn new(device: &D, mesh: &Mesh) -> Result<Self, FemError> {
        Self::in_format(device, mesh, ())
    }
}

impl<T: Scalar, D: AssemblyKernels<T>, M: StoredMatrix<D>> Assembly<T, D, M> {
    /// Prepares systems in the matrix format of `config`; right sides keep the numbering of the nodes.
    ///
    /// # Errors
    /// Errors of [`Assembly::new`], and an impossible format.
    pub fn in_format(device: &D, mesh: &Mesh, config: M::Config) -> Result<Self, FemError> {
        LinearSpace::new(mesh)?;
        let pattern = Arc::new(pattern(mesh)?.1);
        let mut empty = M::zeros(device, &pattern.offsets, &pattern.columns, &config)?;
        Ok(Self {
            device: device.clone(),
            number: mesh_identity::fresh(),
            mesh: MeshIdentity::of(mesh),
            n_nodes: mesh.n_nodes(),
            n_values: empty.values_mut().len(),
            prepared: 0,
            refill_data: device.prepare_refill(mesh, &pattern, empty.entry_positions()?)?,
            components: components(mesh),
            pattern,
            config,
            empty: Some(empty),
        })
    }

    /// Assembles the system of a form, in new memory.
    ///
    /// # Errors
    /// As [`super::assemble`].
    pub fn system(&mut self, form: &Form<'_>) -> Result<AssembledSystem<T, D, M>, FemError> {
        let mut system = self.zero_system()?;
        self.refill(&mut system, form)?;
        Ok(system)
    }

    /// Returns a system of zeros without constraints, to be filled.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn zero_system(&mut self) -> Result<AssembledSystem<T, D, M>, FemError> {
        let matrix = match self.empty.take() {
            Some(matrix) => matrix,
            None => M::zeros(&self.device, &self.pattern.offsets, &self.pattern.columns, &self.config)?,
        };
        Ok(AssembledSystem {
            matrix,
            rhs: Buffer::zeros(&self.device, self.n_nodes)?,
            constraints: crate::Constraints::none(self.n_nodes),
            is_pure_neumann: false,
            imbalance: 0.0,
            made_by: self.number,
        })
    }

    /// Refills a system of [`Assembly::system`] with the values of a form.
    ///
    /// The form is on the same mesh; coefficients and boundary conditions may differ.
    ///
    /// # Cost
    /// No work on the pattern, and no memory that grows with the mesh, except for boundary conditions.
    /// # Errors
    /// [`FemError::OtherMesh`], [`FemError::ChangedMesh`] or [`FemError::OtherAssembly`] if the mesh or the system does
    /// not belong to this assembly; errors of [`super::assemble`]. The system is then undefined, but can be refilled.
    pub fn refill(&mut self, system: &mut AssembledSystem<T, D, M>, form: &Form<'_>) -> Result<(), FemError> {
        self.check_system(system)?;
        let problem = self.prepare(form)?;
        self.fill(system, &problem, DeviceState::default())?;
        system.constraints = problem.constraints;
        Ok(())
    }

    /// The first part of [`Assembly::refill`]: evaluates conditions, compiles coefficients, copies them to the device.
    ///
    /// # Errors
    /// [`FemError::OtherMesh`] or [`FemError::ChangedMesh`] for another mesh; errors of the form.
    pub fn prepare<'a>(&mut self, form: &Form<'a>) -> Result<AssemblyProblem<'a>, FemError> {
        self.mesh.check(form.mesh)?;
        self.load(AssemblyProblem::new(form, &to_the_end)?)
    }

    /// As [`Assembly::prepare`], for the linearization of a form whose coefficients may depend on the time
    /// and on u. The conditions may differ from those of the form; λ may have any sign.
    ///
    /// # Errors
    /// As [`Assembly::prepare`].
    pub fn prepare_linearized<'a>(
        &mut self,
        form: &Form<'a>,
        slopes: &'a Slopes,
        conditions: &[BoundaryCondition],
    ) -> Result<AssemblyProblem<'a>, FemError> {
        self.mesh.check(form.mesh)?;
        self.load(AssemblyProblem::linearized(form, slopes, conditions)?)
    }

    /// Replaces the conditions of the last prepared problem, whose coefficients stay.
    ///
    /// # Errors
    /// [`FemError::OtherAssembly`] for another problem; errors of the conditions.
    pub fn replace_conditions(
        &mut self,
        problem: &mut AssemblyProblem<'_>,
        conditions: &[BoundaryCondition],
    ) -> Result<(), FemError> {
        self.check_problem(problem)?;
        problem.replace_conditions(conditions)?;
        self.device.load_conditions(&mut self.refill_data, problem)
    }

    fn load<'a>(&mut self, problem: AssemblyProblem<'a>) -> Result<AssemblyProblem<'a>, FemError> {
        self.prepared = 0;
        self.device.load(&mut self.refill_data, &problem)?;
        self.prepared = problem.number;
        Ok(problem)
    }

    /// The second part of [`Assembly::refill`]: computes the values of the last prepared problem, with coefficients evaluated at a
    /// time and a function; see [`AssemblyKernels::queue`] for the matrix and right side of a linearization.
    ///
    /// The constraints of the system are those of its last refill.
    ///
    /// # Errors
    /// As [`Assembly::refill`]; [`FemError::Length`] unless the function has one value per node.
    pub fn fill(
        &mut self,
        system: &mut AssembledSystem<T, D, M>,
        problem: &AssemblyProblem<'_>,
        state: DeviceState<'_, D>,
    ) -> Result<(), FemError> {
        self.queue(system, problem, state)?;
        self.check(system, problem, state)
    }

    /// Queues the work of [`Assembly::fill`] without waiting; [`Assembly::check`] completes it.
    ///
    /// # Errors
    /// Errors of [`Assembly::fill`] that are known without waiting.
    pub fn queue(
        &mut self,
        system: &mut AssembledSystem<T, D, M>,
        problem: &AssemblyProblem<'_>,
        state: DeviceState<'_, D>,
    ) -> Result<(), FemError> {
        self.check_problem(problem)?;
        self.check_system(system)?;
        let found = state.unknown.map(Buffer::len);
        if found.unwrap_or(if problem.uses_unknown { 0 } else { self.n_nodes }) != self.n_nodes {
            let found = found.unwrap_or(0);
            return Err(FemError::Length { field: "u", found, expected: self.n_nodes });
        }
        let at = (problem, state);
        self.device.queue(&mut self.refill_data, at, &mut system.matrix.values_mut(), &mut system.rhs)
    }

    /// Waits for queued work and checks its result; balances a pure Neumann problem.
    ///
    /// # Errors
    /// As [`Assembly::fill`].
    pub fn check(
        &mut self,
        system: &mut AssembledSystem<T, D, M>,
        problem: &AssemblyProblem<'_>,
        state: DeviceState<'_, D>,
    ) -> Result<(), FemError> {
        self.check_problem(problem)?;
        self.check_system(system)?;
        let AssembledSystem { matrix, rhs, .. } = system;
        let at = (problem, state);
        self.device.check(&mut self.refill_data, at, &mut matrix.values_mut(), rhs)?;
        system.is_pure_neumann = problem.slopes.is_none() && is_pure_neumann(problem, || &self.components)?;
        system.imbalance = 0.0;
        if system.is_pure_neumann {
            let mut unrounded = self.device.unrounded(&self.refill_data, rhs)?;
            system.imbalance = balance(&mut unrounded, Flux::of(&problem.facet_terms))?;
            let rounded: Vec<T> = unrounded.into_iter().map(T::from_f64).collect();
            rhs.upload(&rounded)?;
        }
        Ok(())
    }

    /// Checks that a problem is the last prepared one.
    fn check_problem(&self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        if problem.number == self.prepared {
            return Ok(());
        }
        let advice = "prepare it with this assembly, and fill it before preparing the next one";
        Err(FemError::OtherAssembly { field: "problem", advice })
    }

    /// Checks that a system belongs to this assembly and has arrays of the right lengths.
    fn check_system(&self, system: &mut AssembledSystem<T, D, M>) -> Result<(), FemError> {
        if system.made_by != self.number {
            let advice = "pass a system that this assembly created";
            return Err(FemError::OtherAssembly { field: "system", advice });
        }
        need("rhs", self.n_nodes, system.rhs.len())?;
        Ok(need("values", self.n_values, system.matrix.values_mut().len())?)
    }

    /// Returns the bytes that a refill must move: mesh and lists read, right side and `values` once.
    pub fn fill_bytes(&self, values: &Buffer<M::Value, D>) -> usize {
        let written = values.len() * size_of::<M::Value>() + self.n_nodes * size_of::<T>();
        self.device.refill_bytes(&self.refill_data) + written
    }
}
