//! Assembly by patches on a GPU, `[fu2014]`, section 4: elements computed once each, rows summed in shared memory.

#[allow(unsafe_code)]
mod cuda;
mod lists;

use femtile::device::{Buffer, Cpu, Cuda, Scalar};
use femtile::fem::assembly::Assembled;
use femtile::fem::assembly::kernel_support::{MeshIdentity, Sparsity, first_error};
use femtile::fem::{AssemblyKernels, AssemblyProblem, FemError, Form, State};
use femtile::linalg::sparse::StoredMatrix;
use femtile::linalg::sparse::csr::Csr;
use femtile::mesh::{Mesh, Patches};
use femtile::space::LinearSpace;

pub use cuda::specialisations as cuda_specialisations;
use cuda::{OnGpu, fits};
use lists::Lists;

/// Candidates for nodes per patch; the largest is taken whose elements fit a block, one thread each.
const SIZES: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// The matrix of a form inside the domain, assembled patch by patch on a GPU: its upper half, in a numbering of its
/// own.
///
/// $$ A_{ij} = \sum_T |T| \left( \nabla\varphi_i\cdot\bar\sigma\nabla\varphi_j +
/// \overline{\lambda\varphi_i\varphi_j} \right), \qquad i \le j, \qquad b_i = \sum_T |T|\,\overline{f\varphi_i} $$
///
/// Boundary conditions are not supported: neither facet terms nor constraints. Atomic operations add the terms in any
/// order, so that two runs differ in the last bits; [`femtile::fem::Assembly`] gives the same bits each time, and whole
/// systems. Sums are in f64, rounded when a patch writes them and again where another patch adds to them.
///
/// # Shapes
/// `upper: [n_nodes × n_nodes]`, diagonal included; `rhs, order: [n_nodes]`.
/// # Cost
/// Each element is computed once. Reads 4 bytes per corner, 24 per node and 4 per non-zero of the upper half, writes
/// its values; rows that patches share are read and written once more, with another 16 bytes per non-zero. Keeps 8
/// bytes per non-zero for them.
/// # Source
/// `[fu2014]`, section 4, steps 1–6. Differs: patches by recursive coordinate bisection, and a patch with more elements
/// than a block has threads is made smaller.
pub struct PatchAssembly<T: Scalar> {
    device: Cuda,
    mesh: MeshIdentity,
    /// The number of the last prepared problem.
    prepared: u64,
    order: Vec<u32>,
    upper: Csr<T, Cuda>,
    rhs: Buffer<T, Cuda>,
    /// None if a node has more elements than a block has threads, or too many neighbours.
    patches: Option<OnGpu>,
    /// Whether the GPU assembles the loaded form; else the host does.
    is_on_gpu: bool,
}

impl<T: Scalar> PatchAssembly<T> {
    /// Prepares assembly on a mesh of triangles or tetrahedra.
    ///
    /// # Errors
    /// Cells of another kind, a node without a cell; errors of the device.
    pub fn new(device: &Cuda, mesh: &Mesh) -> Result<Self, FemError> {
        LinearSpace::new(mesh)?;
        let pattern = Sparsity::of(mesh)?;
        let of_size = |&size: &usize| Lists::new(mesh, &pattern, &Patches::by_bisection(mesh, size));
        let fitting = SIZES.iter().map(of_size).find(|lists| fits(device, lists));
        let patches = fitting.as_ref().map(|lists| OnGpu::new(device, mesh, lists)).transpose()?;
        let lists = fitting.unwrap_or_else(|| of_size(&SIZES[0]));
        Ok(Self {
            device: device.clone(),
            mesh: MeshIdentity::of(mesh),
            prepared: 0,
            upper: Csr::zeros(device, &lists.offsets, &lists.columns, &())?,
            rhs: Buffer::zeros(device, mesh.n_nodes())?,
            order: lists.order,
            patches,
            is_on_gpu: false,
        })
    }

    /// Returns the upper half of the last assembled matrix, diagonal included.
    pub fn upper(&self) -> &Csr<T, Cuda> {
        &self.upper
    }

    /// Returns the last assembled right side, in the numbering of the matrix.
    pub fn rhs(&self) -> &Buffer<T, Cuda> {
        &self.rhs
    }

    /// Returns the node of the mesh for each row.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Assembles a form on the mesh given to [`Self::new`].
    ///
    /// # Errors
    /// [`FemError::HasConditions`] for boundary conditions; a mesh of another size, a degenerate cell, a coefficient
    /// out of its range. The values are then undefined, but can be assembled again.
    pub fn assemble(&mut self, form: &Form<'_>) -> Result<(), FemError> {
        let problem = self.prepare(form)?;
        self.queue(&problem)?;
        self.check(&problem)
    }

    /// The first part of [`PatchAssembly::assemble`]: compiles coefficients and copies them to the device.
    ///
    /// # Errors
    /// Errors of [`PatchAssembly::assemble`] that do not depend on cells.
    pub fn prepare<'a>(&mut self, form: &Form<'a>) -> Result<AssemblyProblem<'a>, FemError> {
        if !form.conditions.is_empty() {
            return Err(FemError::HasConditions { n_conditions: form.conditions.len() });
        }
        self.mesh.check(form.mesh)?;
        let problem = AssemblyProblem::of_form(form)?;
        self.is_on_gpu = match &mut self.patches {
            Some(patches) => patches.load(&self.device, form)?,
            None => false,
        };
        self.prepared = problem.number();
        Ok(problem)
    }

    /// Queues the assembly of the last prepared problem without waiting; [`PatchAssembly::check`] completes it.
    ///
    /// # Errors
    /// Errors of [`PatchAssembly::assemble`] that are known without waiting.
    pub fn queue(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        self.check_problem(problem)?;
        match &mut self.patches {
            Some(patches) if self.is_on_gpu => patches.queue(&mut self.upper, &mut self.rhs),
            _ => self.fill_on_host(problem),
        }
    }

    /// Waits for queued work and checks its result.
    ///
    /// # Errors
    /// A degenerate cell, a coefficient out of its range.
    pub fn check(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        self.check_problem(problem)?;
        let bad = match &mut self.patches {
            Some(patches) if self.is_on_gpu => patches.first_bad()?,
            _ => None,
        };
        // If the GPU reports a bad cell that is sound for the host, the host's values are taken.
        bad.map_or(Ok(()), |cell| {
            first_error(problem, State::default(), cell)?;
            self.fill_on_host(problem)
        })
    }

    /// Checks that a problem is the last prepared one.
    fn check_problem(&self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        if problem.number() == self.prepared {
            return Ok(());
        }
        let advice = "prepare it with this assembly, and assemble it before preparing the next one";
        Err(FemError::OtherAssembly { field: "problem", advice })
    }

    /// Assembles the whole matrix on the host, and copies its upper half to the device.
    fn fill_on_host(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        let system: Assembled<f64, Cpu> = Cpu::new(0)?.assemble_system(problem)?;
        let values = values_of_upper(&system.matrix, &self.order);
        self.upper.values_mut().upload(&values.into_iter().map(T::from_f64).collect::<Vec<_>>())?;
        let rhs = self.order.iter().map(|&node| T::from_f64(system.rhs[node as usize]));
        Ok(self.rhs.upload(&rhs.collect::<Vec<_>>())?)
    }
}

/// Returns the values of the upper half of a matrix after renumbering rows and columns.
fn values_of_upper(matrix: &Csr<f64, Cpu>, order: &[u32]) -> Vec<f64> {
    let mut new_number = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, &node)| new_number[node as usize] = new);
    let mut values = Vec::new();
    let mut entries: Vec<(usize, f64)> = Vec::new();
    for (row, &node) in order.iter().enumerate() {
        entries.clear();
        entries.extend(matrix.row(node as usize).map(|(column, value)| (new_number[column], value)));
        entries.retain(|entry| entry.0 >= row);
        entries.sort_unstable_by_key(|entry| entry.0);
        values.extend(entries.iter().map(|entry| entry.1));
    }
    values
}
