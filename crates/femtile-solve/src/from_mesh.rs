use femtile_amg::{AmgConfig, AmgError, AmgKernels, AmgSolver, Graph};
use femtile_device::Scalar;
use femtile_mesh::Mesh;
use femtile_sparse::Csr;

/// Returns a multigrid solver for a matrix of linear elements on a mesh, whose first aggregates follow the cells of the mesh
/// instead of the entries of the matrix; a node of the mesh has the rows that `config` says.
///
/// ```
/// use femtile_amg::AmgConfig;
/// use femtile_device::{Buffer, Cpu};
/// use femtile_fem::{Coefficient, Form, assemble};
/// use femtile_mesh::check::BoundaryFacets;
/// use femtile_mesh::generate::{BoxConfig, box_mesh};
///
/// let (cpu, mesh) = (Cpu::new(0)?, box_mesh(&BoxConfig::default())?);
/// let (one, boundary) = (Coefficient::Constant(1.0), BoundaryFacets::default());
/// let form =
///     Form { mesh: &mesh, boundary: &boundary, sigma: &one, lambda: &one, source: &one, conditions: &[] };
/// let system = assemble::<f64, _>(&cpu, &form, &|_| ())?;
/// let solver = femtile_solve::amg_from_mesh::<_, f32, _>(&mesh, &system.matrix, None, &AmgConfig::default())?;
///
/// let mut u = Buffer::zeros(&cpu, mesh.n_nodes())?;
/// let outcome = solver.solve(&mut u, &system.matrix, &system.rhs)?;
/// assert!(outcome.iterations < 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`AmgSolver::from_graph`].
pub fn amg_from_mesh<T: Scalar, H: Scalar, D: AmgKernels<H>>(
    mesh: &Mesh,
    a: &Csr<T, D>,
    near_nullspace: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<AmgSolver<H, D>, AmgError> {
    AmgSolver::from_graph(a, &graph_of(mesh)?, near_nullspace, config)
}

/// Returns the graph of the nodes of a mesh; nodes of one cell are neighbours.
pub(crate) fn graph_of(mesh: &Mesh) -> Result<Graph, AmgError> {
    Graph::from_cells(mesh.n_nodes(), mesh.kind.n_nodes(), &mesh.cells)
}
