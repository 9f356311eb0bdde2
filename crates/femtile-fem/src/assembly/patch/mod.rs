//! Assembly by patches on a GPU, `[fu2014]`, section 4: elements once each, rows summed in shared memory.

#[allow(unsafe_code)]
mod cuda;
mod lists;

use femtile_device::{Buffer, Cpu, Cuda, Scalar};
use femtile_mesh::{Mesh, Patches};
use femtile_sparse::StoredMatrix;
use femtile_sparse::csr::Csr;

use super::cuda::refuse;
use super::identity::MeshIdentity;
use super::kernels::{Assembled, AssemblyKernels, AssemblyProblem, to_the_end};
use super::sparsity::pattern;
use crate::FemError;
use crate::dofs::LinearSpace;
use crate::forms::Form;
pub(super) use cuda::specialisations;
use cuda::{OnGpu, fits};
use lists::Lists;

/// Nodes of a patch: as many as fit a block with all its elements, a thread each.
const SIZES: [usize; 7] = [128, 96, 64, 48, 32, 24, 16];

/// The matrix of a form inside the domain, assembled patch by patch on a GPU: its upper half, in a numbering
/// of its own.
///
/// $$ A_{ij} = \sum_T |T| \left( \nabla\varphi_i\cdot\bar\sigma\nabla\varphi_j +
/// \overline{\lambda\varphi_i\varphi_j} \right), \qquad i \le j, \qquad b_i = \sum_T |T|\,\overline{f\varphi_i} $$
///
/// There are no conditions on the boundary: neither terms of facets nor constraints. Atomic operations add
/// the terms in any order, so that two runs differ in the last bits; [`super::Assembly`] gives the same bits
/// each time, and whole systems. Sums are in f64, rounded when a patch writes them and again where another
/// patch adds to them.
///
/// # Shapes
/// `upper: [n_nodes × n_nodes]`, diagonal included; `rhs, order: [n_nodes]`.
/// # Cost
/// Each element is worked out once. Reads 4 bytes a corner, 24 a node and 4 a non-zero of the upper half,
/// writes its values; rows that patches share are read and written once more, with another 16 bytes a
/// non-zero. Keeps 8 bytes a non-zero for them.
/// # Source
/// `[fu2014]`, section 4, steps 1–6. Differs: patches by bisection of the coordinates, and a patch with more
/// elements than a block has threads is made smaller.
pub struct PatchAssembly<T: Scalar> {
    device: Cuda,
    mesh: MeshIdentity,
    /// The number of the problem that was prepared last.
    prepared: u64,
    order: Vec<u32>,
    upper: Csr<T, Cuda>,
    rhs: Buffer<T, Cuda>,
    /// None where a node has more elements than a block has threads, or too many neighbours.
    patches: Option<OnGpu>,
    /// Whether the form that was loaded is the GPU's, and not left to the host.
    is_on_gpu: bool,
}

impl<T: Scalar> PatchAssembly<T> {
    /// Prepares for matrices on a mesh of triangles or tetrahedra.
    ///
    /// # Errors
    /// Cells of another kind, a node without a cell; what the device reports.
    pub fn new(device: &Cuda, mesh: &Mesh) -> Result<Self, FemError> {
        LinearSpace::new(mesh)?;
        let pattern = pattern(mesh)?.1;
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

    /// The upper half of the matrix that was assembled last, diagonal included.
    pub fn upper(&self) -> &Csr<T, Cuda> {
        &self.upper
    }

    /// The right side that was assembled last, in the numbering of the matrix.
    pub fn rhs(&self) -> &Buffer<T, Cuda> {
        &self.rhs
    }

    /// The node of the mesh at each number of a row.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Assembles a form on the mesh that this was made with.
    ///
    /// # Errors
    /// [`FemError::HasConditions`] when something holds on the boundary; a mesh of another size, a degenerate
    /// cell, a coefficient out of its range, and then the values are undefined, but can be assembled again.
    pub fn assemble(&mut self, form: &Form<'_>) -> Result<(), FemError> {
        let problem = self.prepare(form)?;
        self.queue(&problem)?;
        self.check(&problem)
    }

    /// What [`PatchAssembly::assemble`] does first: compiles coefficients and brings them to the device.
    ///
    /// # Errors
    /// Those of [`PatchAssembly::assemble`] that need no look at the cells.
    pub fn prepare<'a>(&mut self, form: &Form<'a>) -> Result<AssemblyProblem<'a>, FemError> {
        if !form.conditions.is_empty() {
            return Err(FemError::HasConditions { n_conditions: form.conditions.len() });
        }
        self.mesh.check(form.mesh)?;
        let problem = AssemblyProblem::new(form, &to_the_end)?;
        self.is_on_gpu = match &mut self.patches {
            Some(patches) => patches.load(&self.device, form)?,
            None => false,
        };
        self.prepared = problem.number;
        Ok(problem)
    }

    /// Begins to assemble the problem that was prepared last, without waiting; [`PatchAssembly::check`] ends
    /// it.
    ///
    /// # Errors
    /// Those of [`PatchAssembly::assemble`] that are known at once.
    pub fn queue(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        self.check_problem(problem)?;
        match &mut self.patches {
            Some(patches) if self.is_on_gpu => patches.queue(&mut self.upper, &mut self.rhs),
            _ => self.fill_on_host(problem),
        }
    }

    /// Waits for what was queued last and looks at what came of it.
    ///
    /// # Errors
    /// A degenerate cell, a coefficient out of its range.
    pub fn check(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        self.check_problem(problem)?;
        let bad = match &mut self.patches {
            Some(patches) if self.is_on_gpu => patches.first_bad()?,
            _ => None,
        };
        // Where the GPU sees a fault that the host does not, the host's numbers hold.
        bad.map_or(Ok(()), |cell| {
            refuse(problem, cell)?;
            self.fill_on_host(problem)
        })
    }

    /// Refuses a problem that is not the one prepared last.
    fn check_problem(&self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        if problem.number == self.prepared {
            return Ok(());
        }
        let advice = "prepare it with this assembly, and assemble it before the next one is prepared";
        Err(FemError::OtherAssembly { field: "problem", advice })
    }

    /// What the GPU cannot do: assembles the whole matrix on the host, and brings its upper half to the
    /// device.
    fn fill_on_host(&mut self, problem: &AssemblyProblem<'_>) -> Result<(), FemError> {
        let system: Assembled<f64, Cpu> = Cpu::new(0)?.assemble_system(problem)?;
        let values = values_of_upper(&system.matrix, &self.order);
        self.upper.values_mut().upload(&values.into_iter().map(T::from_f64).collect::<Vec<_>>())?;
        let rhs = self.order.iter().map(|&node| T::from_f64(system.rhs[node as usize]));
        Ok(self.rhs.upload(&rhs.collect::<Vec<_>>())?)
    }
}

/// The values of the upper half of a matrix whose rows and columns are put in another order.
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
