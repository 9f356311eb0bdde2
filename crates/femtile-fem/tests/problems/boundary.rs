//! Precedence of boundary conditions, and errors of bad data.

use crate::common;

use std::collections::BTreeMap;

use common::{Problem, constant, expression, unit_mesh};
use femtile_device::{Cpu, Reference};
use femtile_expression::Expression;
use femtile_fem::functionals::{energy, integral, max, min, value_at};
use femtile_fem::{
    AssembledSystem, AssemblyKernels, BoundaryCondition, Coefficient, Condition, FemError, assemble,
};
use femtile_form::FormError;
use femtile_mesh::{CellKind, Field, Mesh};
use femtile_space::{Space, SpaceError};

fn failure(problem: &Problem) -> FemError {
    fn of<D: AssemblyKernels<f64>>(problem: &Problem, device: &D) -> FemError {
        assemble::<f64, D>(device, &problem.form(), &|_| ()).unwrap_err()
    }
    let (cpu, reference) = (of(problem, &Cpu::new(2).unwrap()), of(problem, &Reference));
    assert_eq!(cpu.to_string(), reference.to_string());
    cpu
}

fn value(system: &AssembledSystem<f64, Reference>, node: usize) -> Option<f64> {
    system.constraints.value(node)
}

#[test]
fn later_conditions_win_on_a_facet_and_dirichlet_wins_on_shared_nodes() {
    let mut problem = Problem::new(unit_mesh(2, 4));
    problem.on(|_| true, Condition::Dirichlet(constant(1.0)));
    problem.on(|p| p[1] > 1.0 - 1e-9, Condition::Neumann(constant(5.0)));
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(constant(2.0)));
    let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
    for (node, p) in problem.mesh.points.iter().enumerate() {
        let on_boundary = p[..2].iter().any(|&x| !(1e-9..=1.0 - 1e-9).contains(&x));
        let expected = match *p {
            [x, _, _] if x < 1e-9 => Some(2.0),
            [x, y, _] if y > 1.0 - 1e-9 && x < 1.0 - 1e-9 => None,
            _ if on_boundary => Some(1.0),
            _ => None,
        };
        assert_eq!(value(&system, node), expected, "at {p:?}");
    }
}

#[test]
fn a_later_dirichlet_condition_replaces_an_earlier_flux() {
    let mut problem = Problem::new(unit_mesh(2, 3));
    problem.on(|p| p[0] < 1e-9, Condition::Neumann(constant(7.0)));
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(constant(0.0)));
    let with_both = problem.solve(&Cpu::new(1).unwrap());
    problem.conditions.remove(0);
    assert_eq!(with_both, problem.solve(&Cpu::new(1).unwrap()));
}

#[test]
fn constrained_rows_and_columns_are_those_of_the_identity() {
    let mut problem = Problem::new(unit_mesh(3, 3));
    problem.on(|p| p[2] < 1e-9, Condition::Dirichlet(expression("x - y")));
    let system: AssembledSystem<f64, Cpu> = problem.assemble(&Cpu::new(2).unwrap());
    assert!(!system.is_pure_neumann);
    for (i, j, entry) in common::entries(&system.matrix) {
        if system.constraints.contains(i) || system.constraints.contains(j) {
            assert_eq!(entry, if i == j { 1.0 } else { 0.0 });
        }
    }
    let u = problem.solve(&Cpu::new(2).unwrap());
    for (&dof, &value) in system.constraints.dofs().iter().zip(system.constraints.values()) {
        let p = problem.mesh.points[dof as usize];
        assert_eq!(value, p[0] - p[1]);
        assert_eq!(u[dof as usize], value);
        assert_eq!(system.rhs.as_slice()[dof as usize], 0.0);
    }
}

#[test]
fn a_robin_condition_with_a_large_coefficient_approaches_dirichlet() {
    let device = Cpu::new(2).unwrap();
    let solve = |condition| {
        let mut problem = Problem::new(unit_mesh(2, 8));
        problem.on(|_| true, condition);
        problem.solve(&device)
    };
    let dirichlet = solve(Condition::Dirichlet(expression("x")));
    let robin = solve(Condition::Robin { coefficient: constant(1e6), value: expression("x") });
    assert!(dirichlet.iter().zip(&robin).all(|(d, r)| (d - r).abs() < 1e-5));
}

#[test]
fn a_pure_neumann_problem_has_a_solution_of_mean_zero_and_a_balanced_right_side() {
    let mut problem = Problem::new(unit_mesh(3, 6));
    problem.source = constant(3.0);
    problem.on(|_| true, Condition::Neumann(constant(-0.5)));
    let device = Cpu::new(2).unwrap();
    let system: AssembledSystem<f64, Cpu> = problem.assemble(&device);
    assert!(system.is_pure_neumann && system.imbalance < 1e-14);
    let sum: f64 = system.rhs.as_slice().iter().sum();
    assert!(sum.abs() < 1e-14, "{sum:e}");
    let u = problem.solve(&device);
    assert!(integral(&problem.space(), &u).unwrap().abs() < 1e-14);
    assert!(max(&u) > 0.0 && min(&u) < 0.0);
}

#[test]
fn a_pure_neumann_problem_that_does_not_balance_is_refused_with_both_numbers() {
    let mut problem = Problem::new(unit_mesh(2, 5));
    problem.source = constant(3.0);
    problem.on(|p| p[0] < 1e-9, Condition::Neumann(constant(-1.0)));
    match failure(&problem) {
        FemError::Incompatible { source_integral, flux_integral } => {
            assert!((source_integral - 3.0).abs() < 1e-12 && (flux_integral + 1.0).abs() < 1e-12);
        }
        other => panic!("{other}"),
    }
    // A Robin condition with zero coefficient fixes nothing.
    problem.on(|p| p[0] > 0.5, Condition::Robin { coefficient: constant(0.0), value: constant(1.0) });
    assert!(matches!(failure(&problem), FemError::Incompatible { .. }));
    problem.on(|p| p[0] > 0.5, Condition::Robin { coefficient: constant(1.0), value: constant(1.0) });
    let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
    assert!(!system.is_pure_neumann);
}

#[test]
fn reaction_anywhere_holds_the_solution() {
    let mut problem = Problem::new(unit_mesh(2, 4));
    problem.lambda = expression("max(0, x - 0.9)");
    for device in common::cpus() {
        let system: AssembledSystem<f64, Cpu> = problem.assemble(&device);
        assert!(!system.is_pure_neumann);
    }
    problem.lambda = expression("0*x");
    problem.source = constant(0.0);
    let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
    assert!(system.is_pure_neumann);
    problem.lambda = expression("max(0, x - 2)");
    let system: AssembledSystem<f64, Cpu> = problem.assemble(&Cpu::new(2).unwrap());
    assert!(system.is_pure_neumann);
}

/// Two copies of a mesh, far apart.
fn twice(mesh: &Mesh) -> Mesh {
    let n = mesh.n_nodes() as u32;
    let far = mesh.points.iter().map(|p| [p[0] + 5.0, p[1], p[2]]);
    let points = mesh.points.iter().copied().chain(far).collect();
    let cells = mesh.cells.iter().copied().chain(mesh.cells.iter().map(|&node| node + n)).collect();
    let mut both = Mesh::new(points, mesh.kind, cells).unwrap();
    both.cell_tags = (0..both.n_cells()).map(|cell| i32::from(cell >= mesh.n_cells())).collect();
    both
}

#[test]
fn a_component_that_nothing_holds_is_refused_by_name() {
    let mesh = unit_mesh(2, 3);
    let n = mesh.n_nodes();
    let mut problem = Problem::new(twice(&mesh));
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(constant(0.0)));
    match failure(&problem) {
        FemError::Floating { n_components: 2, node, n_nodes, .. } => assert_eq!((node, n_nodes), (n, n)),
        other => panic!("{other}"),
    }
    problem.lambda = Coefficient::ByTag(BTreeMap::from([(0, constant(0.0)), (1, constant(1.0))]));
    let system: AssembledSystem<f64, Cpu> = problem.assemble(&Cpu::new(2).unwrap());
    assert!(!system.is_pure_neumann);
    problem.lambda = constant(0.0);
    problem.on(|p| p[0] > 6.0 - 1e-9, Condition::Robin { coefficient: constant(2.0), value: constant(1.0) });
    problem.assemble::<f64, Cpu>(&Cpu::new(2).unwrap());
}

#[test]
fn coefficients_out_of_range_are_refused_with_cell_and_place() {
    let square = || Problem::new(unit_mesh(2, 4));
    let mut problem = square();
    problem.sigma = expression("x - 0.6");
    match failure(&problem) {
        FemError::Form(FormError::Indefinite { field: "sigma", cell, point, tensor, unknown: None }) => {
            assert_eq!(cell, 0);
            assert_eq!(tensor[0][0], point[0] - 0.6);
        }
        other => panic!("{other}"),
    }
    let mut problem = square();
    let mut values = vec![1.0; problem.mesh.n_cells()];
    values[17] = -2.0;
    problem.sigma = Coefficient::CellField(Field { n_components: 1, values: values.clone() });
    assert!(matches!(failure(&problem), FemError::Form(FormError::Indefinite { cell: 17, .. })));
    (problem.sigma, problem.lambda) =
        (constant(1.0), Coefficient::CellField(Field { n_components: 1, values: values.clone() }));
    assert!(matches!(
        failure(&problem),
        FemError::Form(FormError::Negative { field: "lambda", cell: 17, value: -2.0, .. })
    ));
    problem.lambda = constant(-1.0);
    assert!(matches!(
        failure(&problem),
        FemError::Form(FormError::Negative { field: "lambda", cell: 0, .. })
    ));
    problem.lambda = constant(1.0);
    problem.source = expression("log(x - 0.5)");
    assert!(matches!(
        failure(&problem),
        FemError::Form(FormError::NotFinite { field: "source", cell: 0, .. })
    ));
    problem.source = constant(f64::NAN);
    assert!(matches!(failure(&problem), FemError::Form(FormError::NotFinite { field: "source", .. })));
    problem.source = constant(1.0);
    problem.sigma = Coefficient::Tensor([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    assert!(failure(&problem).to_string().contains("not symmetric positive definite"));
    problem.sigma = Coefficient::Tensor([[1.0, 0.2, 0.0], [0.1, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    assert!(matches!(failure(&problem), FemError::Form(FormError::Indefinite { .. })));
    problem.sigma = constant(0.0);
    problem.assemble::<f64, Cpu>(&Cpu::new(2).unwrap());
    problem.lambda = constant(0.0);
    assert!(matches!(failure(&problem), FemError::Form(FormError::Indefinite { .. })));
}

#[test]
fn wrong_shapes_and_missing_tags_are_refused() {
    let mut problem = Problem::new(unit_mesh(2, 3));
    problem.lambda = Coefficient::Tensor([[1.0; 3]; 3]);
    assert!(failure(&problem).to_string().starts_with("lambda: it is a tensor, but must be a scalar"));
    problem.lambda = constant(1.0);
    problem.sigma = Coefficient::CellField(Field { n_components: 2, values: vec![1.0; 36] });
    assert!(failure(&problem).to_string().contains("2 components"));
    problem.sigma = Coefficient::CellField(Field { n_components: 1, values: vec![1.0; 5] });
    assert!(failure(&problem).to_string().contains("18 cells need 18"));
    problem.sigma = Coefficient::ByTag(BTreeMap::from([(1, constant(1.0)), (2, constant(1.0))]));
    problem.mesh.cell_tags = (0..18).map(|cell| if cell == 13 { 7 } else { 1 + cell % 2 }).collect();
    assert!(
        matches!(&failure(&problem), FemError::Form(FormError::MissingTag { cell: 13, tag: 7, known, .. }) if known == "1, 2")
    );
}

#[test]
fn bad_boundary_data_are_refused() {
    let mut problem = Problem::new(unit_mesh(2, 3));
    problem.conditions =
        vec![BoundaryCondition { facets: vec![99], condition: Condition::Neumann(constant(1.0)) }];
    assert!(matches!(failure(&problem), FemError::NoSuchFacet { condition: 0, facet: 99, n_facets: 12 }));
    problem.conditions.clear();
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(expression("1/y")));
    assert!(matches!(failure(&problem), FemError::Form(FormError::NotFinite { field: "dirichlet", .. })));
    problem.conditions.clear();
    problem.on(|p| p[0] < 1e-9, Condition::Robin { coefficient: constant(-1.0), value: constant(0.0) });
    assert!(matches!(
        failure(&problem),
        FemError::Form(FormError::Negative { field: "robin.coefficient", .. })
    ));
}

#[test]
fn unusable_meshes_are_refused() {
    let flat = Mesh::new(
        vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [2.0, 0.0, 0.0]],
        CellKind::Triangle,
        vec![0, 1, 2, 0, 1, 3],
    );
    assert!(matches!(
        failure(&Problem::new(flat.unwrap())),
        FemError::Space(SpaceError::Degenerate { cell: 1, .. })
    ));
    let orphan = Mesh::new(
        vec![[0.0; 3], [1.0, 0.0, 0.0], [5.0, 5.0, 0.0], [0.0, 1.0, 0.0]],
        CellKind::Triangle,
        vec![0, 1, 3],
    );
    assert!(matches!(failure(&Problem::new(orphan.unwrap())), FemError::OrphanNode { node: 2, .. }));
    let segments = Mesh::new(vec![[0.0; 3], [1.0, 0.0, 0.0]], CellKind::Segment, vec![0, 1]).unwrap();
    assert!(matches!(failure(&Problem::new(segments)), FemError::Space(SpaceError::UnsupportedCells { .. })));
}

#[test]
fn energy_is_the_quadratic_form_of_the_matrix() {
    let mut random = common::Random(23);
    for dimension in [2, 3] {
        let mut problem = Problem::new(common::disturbed(unit_mesh(dimension, 4), 4, 0.3, &mut random));
        problem.sigma = Coefficient::TensorExpression(Box::new(
            [["2+x", "0.3*y", "0"], ["0.3*y", "1+x*x", "0.1"], ["0", "0.1", "3"]]
                .map(|row| row.map(|text| Expression::parse(text).unwrap())),
        ));
        problem.lambda = expression("x + y");
        let system: AssembledSystem<f64, Reference> = problem.assemble(&Reference);
        let u: Vec<f64> = (0..problem.mesh.n_nodes()).map(|_| random.unit()).collect();
        let form: f64 = common::entries(&system.matrix).iter().map(|&(i, j, a)| u[i] * a * u[j]).sum();
        let found = energy(&problem.space(), &problem.form(), &u).unwrap();
        assert!((found - form).abs() < 1e-12 * form);
    }
}

#[test]
fn values_at_points_are_those_of_the_linear_interpolant() {
    let mut random = common::Random(29);
    for dimension in [2, 3] {
        let mesh = common::disturbed(unit_mesh(dimension, 4), 4, 0.3, &mut random);
        let space = Space::new(&mesh, 1).unwrap();
        let linear = |p: [f64; 3]| 1.0 + 2.0 * p[0] - p[1] + 0.5 * p[2];
        let u: Vec<f64> = mesh.points.iter().map(|&p| linear(p)).collect();
        for _ in 0..100 {
            let mut p = [0.0; 3];
            p[..dimension].iter_mut().for_each(|x| *x = random.unit());
            assert!((value_at(&space, &u, p).unwrap() - linear(p)).abs() < 1e-13);
        }
        for (node, &p) in mesh.points.iter().enumerate() {
            assert!((value_at(&space, &u, p).unwrap() - u[node]).abs() < 1e-8);
        }
        match value_at(&space, &u, [1.25, 0.5, 0.0]) {
            Err(FemError::Outside { distance, .. }) => assert!((distance - 0.25).abs() < 1e-12),
            other => panic!("{other:?}"),
        }
        match value_at(&space, &u, [-3.0, -4.0, 0.0]) {
            Err(FemError::Outside { distance, .. }) => assert!((distance - 5.0).abs() < 1e-12),
            other => panic!("{other:?}"),
        }
    }
}
