//! Meshes of curved quadrilaterals and hexahedra, and solves on them.

use femtile_device::{Buffer, Cpu};
use femtile_fem::AssembledSystem;
use femtile_fem::tensor::{CellMatrices, TensorProblem, assemble};
use femtile_linalg::comm::SingleRank;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile_linalg::precondition::{Diagonal, Jacobi};
use femtile_linalg::{LinearOperator, Preconditioner};
use femtile_matrix_free::{CellRule, MatrixFree, MatrixFreeConfig, Terms};
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{Curved, Mesh};
use femtile_space::{Space, TensorSpace};

use super::Problem;

/// Returns `n^d` squares or cubes of the unit square or cube.
pub fn blocks(dimension: usize, n: usize) -> Mesh {
    if dimension == 3 {
        let config = BoxConfig { cells: [n; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        return box_mesh(&config).unwrap();
    }
    let config = SquareConfig { cells: [n; 2], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    square(&config).unwrap()
}

/// Bends the straight, axis-parallel cells of a mesh by a map that is interpolated in each of them.
pub fn bent(mut mesh: Mesh, order: usize, map: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    let d = mesh.dimension();
    let (mut points, mut cells) = (Vec::new(), Vec::new());
    for cell in 0..mesh.n_cells() {
        let corner = |i: usize| mesh.points[mesh.cell(cell)[i] as usize];
        let (low, high) = (corner(0), corner(if d == 2 { 2 } else { 6 }));
        for at in 0..(order + 1).pow(d as u32) {
            let t = |a: usize| (at / (order + 1).pow(a as u32) % (order + 1)) as f64 / order as f64;
            cells.push(points.len() as u32);
            points.push(map(std::array::from_fn(|a| low[a] + t(a) * (high[a] - low[a]))));
        }
    }
    mesh.points.iter_mut().for_each(|point| *point = map(*point));
    mesh.curved = Some(Curved { order, points, cells });
    mesh.validate().unwrap();
    mesh
}

/// Returns the unit square or cube bent inside: $x_d \mathrel{+}= 0.1 \prod_e \sin \pi x_e$.
pub fn waves(dimension: usize, n: usize, order: usize) -> Mesh {
    bent(blocks(dimension, n), order, |mut p| {
        let wave = p[..dimension].iter().map(|x| (std::f64::consts::PI * x).sin()).product::<f64>();
        p[..dimension].iter_mut().for_each(|x| *x += 0.1 * wave);
        p
    })
}

/// Solves with a matrix-free operator by conjugate gradients to 1e-12.
pub fn solve_without_matrix(problem: &Problem, space: &TensorSpace<'_>, device: &Cpu) -> Vec<f64> {
    device.install(|| {
        let form = problem.form();
        let tensor_problem = TensorProblem::new(space, &form).unwrap();
        let terms = Terms { sigma: Some(form.sigma), lambda: Some(form.lambda) };
        let constrained = tensor_problem.constraints().dofs();
        let facets = tensor_problem.facet_matrices();
        let config = MatrixFreeConfig { constrained, facets, ..MatrixFreeConfig::default() };
        let a = MatrixFree::<f64>::new(device, space, terms, config).unwrap();
        let system = tensor_problem
            .lift(device, &mut |y, x| {
                a.apply_to_given(y, x);
                Ok(())
            })
            .unwrap();
        let inverse: Vec<f64> = a.diagonal().into_iter().map(f64::recip).collect();
        let preconditioner = Diagonal::from_inverse(Buffer::from_vec(device, inverse).unwrap());
        converged(space, &a, &preconditioner, &system)
    })
}

/// Solves with the assembled matrix by conjugate gradients to 1e-12.
pub fn solve(problem: &Problem, space: &TensorSpace<'_>, device: &Cpu) -> Vec<f64> {
    device.install(|| {
        let form = problem.form();
        let cells = CellMatrices::new(space, form.sigma, form.lambda, CellRule::default()).unwrap();
        let tensor_problem = TensorProblem::new(space, &form).unwrap();
        let (matrix, system) = assemble(device, &tensor_problem, &cells, &|_| ()).unwrap().into_parts();
        let preconditioner = Jacobi::new(&matrix).unwrap();
        converged(space, &matrix, &preconditioner, &system)
    })
}

fn converged(
    space: &TensorSpace<'_>,
    a: &dyn LinearOperator<f64, Cpu>,
    preconditioner: &dyn Preconditioner<f64, Cpu>,
    system: &AssembledSystem<f64, Cpu, ()>,
) -> Vec<f64> {
    let mut w = Buffer::zeros(system.rhs.device(), system.rhs.len()).unwrap();
    let outcome = ConjugateGradient::new(KrylovConfig { tolerance: 1e-12, ..KrylovConfig::default() })
        .solve(&mut w, a, preconditioner, &system.rhs, &SingleRank, &mut ())
        .unwrap();
    assert_eq!(outcome.stop, Stop::Converged, "{outcome:?}");
    system.solution(&Space::from(space), &w).unwrap()
}
