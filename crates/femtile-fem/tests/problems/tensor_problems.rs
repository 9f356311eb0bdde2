//! Problems on spaces of any degree: conditions, lifting, functionals.

use crate::common;

use common::curved::{bent, blocks, solve, waves};
use common::manufactured::{CONSTANT, manufactured, parse};
use common::{Problem, constant, expression};
use femtile_device::{Buffer, Cpu};
use femtile_fem::tensor::CellMatrices;
use femtile_fem::tensor::{TensorProblem, assemble};
use femtile_fem::{Condition, FemError, functionals};
use femtile_linalg::LinearOperator;
use femtile_matrix_free::CellRule;
use femtile_space::{Space, TensorSpace};

const PI: f64 = std::f64::consts::PI;

fn cpu() -> Cpu {
    Cpu::new(2).unwrap()
}

/// Returns a quarter of a ring between radii 1 and 2, or of a pipe.
fn ring(dimension: usize, n: usize, order: usize) -> femtile_mesh::Mesh {
    bent(blocks(dimension, n), order, |[x, y, z]| {
        let (radius, angle) = (1.0 + x, 0.5 * PI * y);
        [radius * angle.cos(), radius * angle.sin(), z]
    })
}

#[test]
fn fluxes_and_robin_conditions_on_curved_sides_are_met() {
    for (dimension, n, degree, tolerance) in [(2, 3, 6, 1e-7), (3, 2, 4, 1e-4)] {
        let mut problem = Problem::new(ring(dimension, n, degree));
        problem.source = constant(0.0);
        // u = log r has the flux 1/2 outside and -1 = 3 (w - 0) inside.
        let radius = |p: [f64; 3]| p[0].hypot(p[1]);
        problem.on(|p| radius(p) > 2.0 - 1e-9, Condition::Neumann(constant(0.5)));
        let robin = Condition::Robin { coefficient: constant(3.0), value: constant(-1.0 / 3.0) };
        problem.on(|p| radius(p) < 1.0 + 1e-9, robin);
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let u = solve(&problem, &space, &cpu());
        let error = functionals::error_l2(&Space::from(&space), &u, &parse("log(hypot(x, y))")).unwrap();
        assert!(error < tolerance, "{dimension}-D: {error}");
    }
}

#[test]
fn linear_solutions_are_met_exactly_on_bent_cells() {
    for (dimension, u) in [(2, "1 + 2*x - 3*y"), (3, "1 + 2*x - 3*y + 0.5*z")] {
        for degree in 1..=3 {
            // Linear functions lie in the space if the map does.
            let problem = manufactured(waves(dimension, 3, degree), u, &CONSTANT, "0", true);
            let space = TensorSpace::new(&problem.mesh, degree).unwrap();
            let found = solve(&problem, &space, &cpu());
            assert!(functionals::error_l2(&Space::from(&space), &found, &parse(u)).unwrap() < 1e-10);
            assert!(functionals::error_h1(&Space::from(&space), &found, &parse(u)).unwrap() < 1e-9);
        }
    }
}

#[test]
fn lifting_with_an_operator_gives_what_assembly_gives() {
    let problem = manufactured(waves(3, 2, 2), "x*y + z^2", &CONSTANT, "1", true);
    let space = TensorSpace::new(&problem.mesh, 3).unwrap();
    let form = problem.form();
    let cells = CellMatrices::new(&space, form.sigma, form.lambda, CellRule::default()).unwrap();
    let tensor_problem = TensorProblem::new(&space, &form).unwrap();
    assert!(!tensor_problem.facet_matrices().is_empty());
    let (matrix, assembled) = assemble(&cpu(), &tensor_problem, &cells, &|_| ()).unwrap().into_parts();
    let lifted = tensor_problem.lift(&cpu(), &mut |y, x| cells.apply(y, x)).unwrap();
    let (a, b) = (assembled.rhs.as_slice(), lifted.rhs.as_slice());
    let size = a.iter().map(|x| x.abs()).fold(0.0, f64::max);
    assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13 * size));

    let constraints = &assembled.constraints;
    let x: Vec<f64> = (0..space.n_dofs()).map(|i| ((3 * i) as f64).sin()).collect();
    let mut free = x.clone();
    constraints.dofs().iter().for_each(|&dof| free[dof as usize] = 0.0);
    let mut expected = vec![0.0; x.len()];
    cells.apply(&mut expected, &free).unwrap();
    tensor_problem.add_facets(&mut expected, &free);
    constraints.dofs().iter().for_each(|&dof| expected[dof as usize] = x[dof as usize]);
    let mut found = Buffer::zeros(&cpu(), x.len()).unwrap();
    matrix.apply(&mut found, &Buffer::from_vec(&cpu(), x).unwrap()).unwrap();
    assert!(found.as_slice().iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn lengths_of_curved_sides_and_areas_are_those_of_a_ring() {
    let mut problem = Problem::new(ring(2, 2, 6));
    problem.on(|_| true, Condition::Neumann(constant(1.0)));
    let space = TensorSpace::new(&problem.mesh, 6).unwrap();
    assert!((functionals::measure(&Space::from(&space)).unwrap() - 0.75 * PI).abs() < 1e-8);
    let form = problem.form();
    let cells = CellMatrices::new(&space, form.sigma, form.lambda, CellRule::default()).unwrap();
    let unbalanced = TensorProblem::new(&space, &form).unwrap();
    let error = unbalanced.lift(&cpu(), &mut |y, x| cells.apply(y, x)).unwrap_err();
    let FemError::Incompatible { source_integral, flux_integral } = error else { panic!("{error}") };
    assert!((flux_integral - 2.0 - 1.5 * PI).abs() < 1e-8, "{flux_integral}");
    assert!((source_integral - 0.75 * PI).abs() < 1e-8);
}

#[test]
fn dirichlet_values_hold_at_all_nodes_of_closed_facets_and_the_last_condition_wins() {
    let mut problem = Problem::new(waves(3, 2, 2));
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(expression("1 + y")));
    problem.on(|p| p[1] < 1e-9, Condition::Dirichlet(expression("5")));
    let space = TensorSpace::new(&problem.mesh, 3).unwrap();
    let form = problem.form();
    let tensor_problem = TensorProblem::new(&space, &form).unwrap();
    let constraints = tensor_problem.constraints();
    // Two sides of 7 × 7 nodes share an edge.
    assert_eq!(constraints.len(), 49 + 49 - 7);
    assert_eq!(constraints.values().iter().filter(|&&value| value == 5.0).count(), 49);
    assert!(constraints.values().iter().all(|&value| value == 5.0 || (value > 1.0 && value <= 2.0)));
}

#[test]
fn pure_neumann_problems_have_mean_zero_and_say_what_was_out_of_balance() {
    let u = "cos(pi*x)*cos(2*pi*y)";
    let mut problem = manufactured(waves(2, 4, 3), u, &common::manufactured::IDENTITY, "0", false);
    problem.conditions.clear();
    let space = TensorSpace::new(&problem.mesh, 5).unwrap();
    let found = solve(&problem, &space, &cpu());
    assert!(functionals::integral(&Space::from(&space), &found).unwrap().abs() < 1e-13);
    assert!(functionals::error_l2(&Space::from(&space), &found, &parse(u)).unwrap() < 1e-4);
}

#[test]
fn a_component_that_nothing_holds_is_named() {
    let mut mesh = blocks(2, 1);
    let shifted: Vec<[f64; 3]> = mesh.points.iter().map(|p| [p[0] + 3.0, p[1], 0.0]).collect();
    mesh.cells.extend(mesh.cells.clone().iter().map(|node| node + 4));
    mesh.points.extend(shifted);
    let mut problem = Problem::new(mesh);
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(constant(0.0)));
    let form = problem.form();
    let space = TensorSpace::new(&problem.mesh, 2).unwrap();
    let error = TensorProblem::new(&space, &form).unwrap_err();
    assert!(matches!(error, FemError::Floating { n_components: 2, n_nodes: 4, .. }), "{error}");
    // A λ that is positive only in the other component fixes it.
    problem.lambda = expression("max(x - 2, 0)");
    let form = problem.form();
    assert!(!TensorProblem::new(&space, &form).unwrap().is_pure_neumann());
}

#[test]
fn functionals_of_polynomials_are_exact() {
    let problem = manufactured(waves(2, 2, 2), "1 + x - 2*y", &CONSTANT, "1", true);
    let space = TensorSpace::new(&problem.mesh, 4).unwrap();
    let form = problem.form();
    let u = solve(&problem, &space, &cpu());
    // The domain is the unit square.
    assert!((functionals::measure(&Space::from(&space)).unwrap() - 1.0).abs() < 1e-13);
    assert!((functionals::integral(&Space::from(&space), &u).unwrap() - 0.5).abs() < 1e-9);
    // ∫ (1 + x − 2y)² = Var + mean² = 1/12 + 4/12 + 1/4.
    assert!((functionals::l2_norm(&Space::from(&space), &u).unwrap() - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
    assert!((functionals::max(&u) - 2.0).abs() < 1e-8 && (functionals::min(&u) + 1.0).abs() < 1e-8);
    let cells = CellMatrices::new(&space, form.sigma, form.lambda, CellRule::default()).unwrap();
    let mut product = vec![0.0; u.len()];
    cells.apply(&mut product, &u).unwrap();
    let expected: f64 = product.iter().zip(&u).map(|(a, b)| a * b).sum();
    let energy = functionals::energy(&Space::from(&space), &form, &u).unwrap();
    assert!((energy - expected).abs() < 1e-11 * expected, "{energy} {expected}");
    assert!(matches!(functionals::integral(&Space::from(&space), &u[1..]), Err(FemError::Length { .. })));
}

#[test]
fn values_are_found_in_bent_cells_and_points_outside_are_refused() {
    for dimension in [2, 3] {
        let u = if dimension == 2 { "1 + x - 2*y" } else { "1 + x - 2*y + z" };
        let problem = manufactured(waves(dimension, 3, 2), u, &CONSTANT, "0", true);
        let space = TensorSpace::new(&problem.mesh, 2).unwrap();
        let found = solve(&problem, &space, &cpu());
        let exact = parse(u);
        for k in 0..40 {
            let coordinate = |a: usize| ((k * [7, 11, 13][a]) % 41) as f64 / 40.0;
            let point = [coordinate(0), coordinate(1), if dimension == 3 { coordinate(2) } else { 0.0 }];
            let value = functionals::value_at(&Space::from(&space), &found, point).unwrap();
            assert!((value - exact.eval(point)).abs() < 1e-8, "{point:?}: {value}");
        }
        let error = functionals::value_at(&Space::from(&space), &found, [1.5, 0.5, 0.0]).unwrap_err();
        let FemError::Outside { distance, .. } = error else { panic!("{error}") };
        assert!((distance - 0.5).abs() < 1e-6, "{distance}");
    }
    let ring = ring(2, 2, 4);
    let space = TensorSpace::new(&ring, 1).unwrap();
    let u = vec![1.0; space.n_dofs()];
    let inside = [1.5 * (0.3f64).cos(), 1.5 * (0.3f64).sin(), 0.0];
    assert!((functionals::value_at(&Space::from(&space), &u, inside).unwrap() - 1.0).abs() < 1e-12);
    let error = functionals::value_at(&Space::from(&space), &u, [0.5, 0.5, 0.0]).unwrap_err();
    let FemError::Outside { distance, .. } = error else { panic!("{error}") };
    assert!((distance - (1.0 - 0.5f64.sqrt())).abs() < 1e-4, "{distance}");
}
