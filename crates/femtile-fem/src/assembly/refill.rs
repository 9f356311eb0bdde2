//! Systems whose values are filled in again and again on the pattern that they have.

use std::sync::Arc;

use femtile_device::{Buffer, Scalar};
use femtile_linalg::need;
use femtile_mesh::Mesh;
use femtile_mesh::check::{Components, components};
use femtile_sparse::{Csr, StoredMatrix};

use super::identity::{self, MeshIdentity};
use super::kernels::to_the_end;
use super::sparsity::{Sparsity, pattern};
use super::{AssemblyKernels, AssemblyProblem, System, balance, is_pure_neumann};
use crate::FemError;
use crate::dofs::LinearSpace;
use crate::forms::Form;

/// Assembly on a fixed mesh: the pattern and all that follows from it is found once, then values are filled in as
/// often as the form changes, straight into the format of the matrix.
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
    /// Tells it from all others of the process.
    number: u64,
    mesh: MeshIdentity,
    n_nodes: usize,
    /// Stored values of a matrix.
    n_values: usize,
    /// The number of the problem that was prepared last.
    prepared: u64,
    kept: D::Kept,
    pattern: Arc<Sparsity>,
    components: Components,
    config: M::Config,
    /// The matrix of zeros that the first system takes.
    empty: Option<M>,
}

impl<T: Scalar, D: AssemblyKernels<T>> Assembly<T, D> {
    /// Prepares for systems in CSR on a mesh of triangles or tetrahedra.
    ///
    /// # Errors
    /// Cells of another kind, a node without a cell; what the device reports.
    pub fn new(device: &D, mesh: &Mesh) -> Result<Self, FemError> {
        Self::in_format(device, mesh, ())
    }
}

impl<T: Scalar, D: AssemblyKernels<T>, M: StoredMatrix<D>> Assembly<T, D, M> {
    /// Prepares for systems whose matrix is laid out as `config` says; right sides keep the numbering of the nodes.
    ///
    /// # Errors
    /// As [`Assembly::new`], and a layout that cannot be.
    pub fn in_format(device: &D, mesh: &Mesh, config: M::Config) -> Result<Self, FemError> {
        LinearSpace::new(mesh)?;
        let pattern = Arc::new(pattern(mesh)?.1);
        let mut empty = M::zeros(device, &pattern.offsets, &pattern.columns, &config)?;
        Ok(Self {
            device: device.clone(),
            number: identity::fresh(),
            mesh: MeshIdentity::of(mesh),
            n_nodes: mesh.n_nodes(),
            n_values: empty.values_mut().len(),
            prepared: 0,
            kept: device.keep(mesh, &pattern, empty.places()?)?,
            components: components(mesh),
            pattern,
            config,
            empty: Some(empty),
        })
    }

    /// The system of a form, in memory of its own.
    ///
    /// # Errors
    /// As [`super::assemble`].
    pub fn system(&mut self, form: &Form<'_>) -> Result<System<T, D, M>, FemError> {
        let matrix = match self.empty.take() {
            Some(matrix) => matrix,
            None => M::zeros(&self.device, &self.pattern.offsets, &self.pattern.columns, &self.config)?,
        };
        let mut system = System {
            matrix,
            rhs: Buffer::zeros(&self.device, self.n_nodes)?,
            constraints: crate::Constraints::none(self.n_nodes),
            is_pure_neumann: false,
            imbalance: 0.0,
            made_by: self.number,
        };
        self.refill(&mut system, form)?;
        Ok(system)
    }

    /// Fills the values of a form into a system that [`Assembly::system`] made.
    ///
    /// The form is on the mesh that this was made with; its coefficients and what holds on the boundary may be others.
    ///
    /// # Cost
    /// No work on the pattern, and no memory that grows with the mesh, but what the conditions on the boundary take.
    /// # Errors
    /// [`FemError::OtherMesh`], [`FemError::ChangedMesh`] or [`FemError::OtherAssembly`] where the mesh or the system is not
    /// this assembly's; as [`super::assemble`], and the system is then undefined, but can be filled in again.
    pub fn refill(&mut self, system: &mut System<T, D, M>, form: &Form<'_>) -> Result<(), FemError> {
        self.check_system(system)?;
        let problem = self.prepare(form)?;
        self.fill(system, &problem)?;
        system.constraints = problem.constraints;
        Ok(())
    }

    /// What [`Assembly::refill`] does first: evaluates conditions, compiles coefficients, brings them to the device.
    ///
    /// # Errors
    /// [`FemError::OtherMesh`] or [`FemError::ChangedMesh`] for another mesh; what the form is to blame for.
    pub fn prepare<'a>(&mut self, form: &Form<'a>) -> Result<AssemblyProblem<'a>, FemError> {
        self.mesh.check(form.mesh)?;
        let problem = AssemblyProblem::new(form, &to_the_end)?;
        self.prepared = 0;
        self.device.load(&mut self.kept, &problem)?;
        self.prepared = problem.number;
        Ok(problem)
    }

    /// What [`Assembly::refill`] does then: computes the values of the problem that was prepared last.
    ///
    /// The constraints of the system are those of its last refill.
    ///
    /// # Errors
    /// As [`Assembly::refill`].
    pub fn fill(
        &mut self,
        system: &mut System<T, D, M>,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        self.queue(system, problem)?;
        self.check(system, problem)
    }

    /// Begins what [`Assembly::fill`] does without waiting for it; [`Assembly::check`] ends it.
    ///
    /// # Errors
    /// Those of [`Assembly::refill`] that are known at once.
    pub fn queue(
        &mut self,
        system: &mut System<T, D, M>,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        self.check_problem(problem)?;
        self.check_system(system)?;
        self.device.queue(&mut self.kept, problem, &mut system.matrix.values_mut(), &mut system.rhs)
    }

    /// Waits for what was queued last and looks at what came of it; a pure Neumann problem is balanced.
    ///
    /// # Errors
    /// As [`Assembly::refill`].
    pub fn check(
        &mut self,
        system: &mut System<T, D, M>,
        problem: &AssemblyProblem<'_>,
    ) -> Result<(), FemError> {
        self.check_problem(problem)?;
        self.check_system(system)?;
        let System { matrix, rhs, .. } = system;
        let reacts = self.device.check(&mut self.kept, problem, &mut matrix.values_mut(), rhs)?;
        system.is_pure_neumann = is_pure_neumann(problem, &self.components, &reacts)?;
        system.imbalance = 0.0;
        if system.is_pure_neumann {
            let mut unrounded = self.device.unrounded(&self.kept, rhs)?;
            system.imbalance = balance(problem, &mut unrounded)?;
            let rounded: Vec<T> = unrounded.into_iter().map(T::from_f64).collect();
            rhs.upload(&rounded)?;
        }
        Ok(())
    }

    /// Refuses a problem that is not the one prepared last.
    fn check_problem(&self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        if problem.number == self.prepared {
            return Ok(());
        }
        let advice = "prepare it with this assembly, and fill it in before the next one is prepared";
        Err(FemError::OtherAssembly { field: "problem", advice })
    }

    /// Refuses a system that another assembly made, or whose arrays were replaced by others of another length.
    fn check_system(&self, system: &mut System<T, D, M>) -> Result<(), FemError> {
        if system.made_by != self.number {
            let advice = "fill in one that this assembly made";
            return Err(FemError::OtherAssembly { field: "system", advice });
        }
        need("rhs", self.n_nodes, system.rhs.len())?;
        Ok(need("values", self.n_values, system.matrix.values_mut().len())?)
    }

    /// Bytes that a filling must move: what it reads of the mesh and of lists, the right side and `values` once.
    pub fn fill_bytes(&self, values: &Buffer<M::Value, D>) -> usize {
        let written = values.len() * size_of::<M::Value>() + self.n_nodes * size_of::<T>();
        self.device.kept_bytes(&self.kept) + written
    }
}
