//! Linearizations of forms whose coefficients depend on t and u: exact derivatives, one answer on every device.

use std::collections::BTreeMap;

use femtile_device::{Buffer, Cpu, HostDevice, Reference};
use femtile_expression::{Expression, Names};
use femtile_fem::tensor::TensorAssembly;
use femtile_fem::{
    Assembly, AssemblyKernels, Coefficient, Condition, Constraints, DeviceState, FemError, Form, Slopes,
    State,
};
use femtile_form::FormError;
use femtile_linalg::LinearOperator;
use femtile_matrix_free::CellRule;
use femtile_mesh::Mesh;
use femtile_space::{Space, TensorSpace};
use femtile_sparse::csr::CsrKernels;
use femtile_sparse::{Csr, StoredMatrix};

use crate::common::curved::waves;
use crate::common::{Problem, Random, constant, disturbed, expression, unit_mesh};

const TIME: f64 = 0.7;

fn in_state(text: &str) -> Coefficient {
    Expression::parse_with(text, &Names { time: true, others: &["u"] }).unwrap().into()
}

fn tensor(rows: [[&str; 3]; 3]) -> Coefficient {
    let entry = |text| Expression::parse_with(text, &Names { time: true, others: &["u"] }).unwrap();
    Coefficient::TensorExpression(Box::new(rows.map(|row| row.map(entry))))
}

/// A problem with every kind of condition and the given coefficients.
fn problem(mesh: Mesh, [sigma, lambda, source]: [Coefficient; 3]) -> Problem {
    let mut problem = Problem::new(mesh);
    (problem.sigma, problem.lambda, problem.source) = (sigma, lambda, source);
    problem.on(|p| p[0] < 1e-9, Condition::Dirichlet(expression("1 + y")));
    problem.on(|p| p[0] > 1.0 - 1e-9, Condition::Neumann(constant(0.5)));
    let (coefficient, value) = (expression("1 + x"), constant(2.0));
    problem.on(|p| p[1] < 1e-9, Condition::Robin { coefficient, value });
    problem
}

/// Coefficients that depend on u in every way.
fn coefficients() -> Vec<[Coefficient; 3]> {
    let by_tag = |of: &[(i32, Coefficient)]| Coefficient::ByTag(BTreeMap::from_iter(of.iter().cloned()));
    let full = tensor([
        ["2 + u^2", "0.3*sin(u)", "0.1*t"],
        ["0.3*sin(u)", "3 + x*u", "0.2"],
        ["0.1*t", "0.2", "2 + exp(-u)"],
    ]);
    vec![
        [in_state("1 + x*u^2"), in_state("-1 + t*u"), in_state("x*t - u^3")],
        [full, in_state("u"), constant(1.0)],
        [constant(2.0), constant(-1.0), in_state("exp(u)")],
        [
            by_tag(&[(0, in_state("1 + u^2")), (1, constant(3.0))]),
            by_tag(&[(0, constant(1.0)), (1, in_state("u^2"))]),
            in_state("t"),
        ],
        [in_state("1 + t*x"), in_state("t"), in_state("sin(t)*y")],
    ]
}

/// A function that takes the given values, and a direction that vanishes where they are.
fn at_and_along(n: usize, given: &[u32], values: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random(7);
    let mut u: Vec<f64> = (0..n).map(|_| 0.3 + random.unit()).collect();
    let mut v: Vec<f64> = (0..n).map(|_| random.unit() - 0.5).collect();
    for (&dof, &value) in given.iter().zip(values) {
        (u[dof as usize], v[dof as usize]) = (value, 0.0);
    }
    (u, v)
}

/// The matrix and the right side at a state.
type Linearize<'a> = dyn FnMut(&[f64], &Slopes) -> (Csr<f64, Cpu>, Vec<f64>) + 'a;

fn apply(matrix: &Csr<f64, Cpu>, x: &[f64]) -> Vec<f64> {
    let x = Buffer::from_host(&Cpu::new(1).unwrap(), x).unwrap();
    let mut y = Buffer::zeros(x.device(), x.len()).unwrap();
    matrix.apply(&mut y, &x).unwrap();
    y.to_host().unwrap()
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Checks that the matrix is the derivative of the residual, and that the residual needs no derivatives.
fn check(linearize: &mut Linearize<'_>, form: &Form<'_>, given: (&[u32], &[f64]), n: usize) {
    let (u, v) = at_and_along(n, given.0, given.1);
    let slopes = Slopes::of(form);
    let mut residual = |u: &[f64], slopes: &Slopes| -> Vec<f64> {
        let (matrix, rhs) = linearize(u, slopes);
        // The values of constrained unknowns are lifted already.
        let mut free = u.to_vec();
        given.0.iter().for_each(|&dof| free[dof as usize] = 0.0);
        apply(&matrix, &free).iter().zip(rhs).map(|(product, b)| b - product).collect()
    };
    let h = 1e-5;
    let shifted = |sign: f64| -> Vec<f64> { u.iter().zip(&v).map(|(u, v)| u + sign * h * v).collect() };
    let (after, before) = (residual(&shifted(1.0), &slopes), residual(&shifted(-1.0), &slopes));
    let (newton, picard) = (residual(&u, &slopes), residual(&u, &Slopes::default()));
    let distance: Vec<f64> = newton.iter().zip(&picard).map(|(a, b)| a - b).collect();
    assert!(norm(&distance) < 1e-13 * norm(&newton), "{} of {}", norm(&distance), norm(&newton));
    let (matrix, _) = linearize(&u, &slopes);
    let slope = apply(&matrix, &v);
    let difference = after.iter().zip(&before).map(|(a, b)| (b - a) / (2.0 * h));
    let error: Vec<f64> = difference.zip(&slope).map(|(a, b)| a - b).collect();
    assert!(norm(&error) < 1e-8 * norm(&slope), "{} of {}", norm(&error), norm(&slope));
}

fn tagged(mut mesh: Mesh) -> Mesh {
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| (cell % 3 == 0).into()).collect();
    mesh
}

fn assembled<D: HostDevice + AssemblyKernels<f64> + CsrKernels<f64>>(
    device: &D,
    form: &Form<'_>,
    slopes: &Slopes,
    u: &[f64],
) -> Result<(Vec<f64>, Vec<f64>), FemError> {
    let mut assembly = Assembly::<f64, D>::new(device, form.mesh)?;
    let mut system = assembly.zero_system()?;
    let u = Buffer::from_host(device, u)?;
    let problem = assembly.prepare_linearized(form, slopes, form.conditions)?;
    assembly.fill(&mut system, &problem, DeviceState { time: TIME, unknown: Some(&u) })?;
    Ok((system.matrix.values().as_slice().to_vec(), system.rhs.as_slice().to_vec()))
}

#[test]
fn matrices_of_linear_elements_are_derivatives_of_the_residual() {
    let cpu = Cpu::new(2).unwrap();
    for mesh in [unit_mesh(2, 5), unit_mesh(3, 3)] {
        for coefficients in coefficients() {
            let mesh = tagged(disturbed(mesh.clone(), 5, 0.2, &mut Random(3)));
            let problem = problem(mesh, coefficients);
            let form = problem.form();
            let mut assembly = Assembly::<f64, Cpu>::new(&cpu, form.mesh).unwrap();
            let given = problem_constraints(&form);
            let mut linearize = |u: &[f64], slopes: &Slopes| {
                let mut system = assembly.zero_system().unwrap();
                let u = Buffer::from_host(&cpu, u).unwrap();
                let prepared = assembly.prepare_linearized(&form, slopes, form.conditions).unwrap();
                let state = DeviceState { time: TIME, unknown: Some(&u) };
                assembly.fill(&mut system, &prepared, state).unwrap();
                let rhs = system.rhs.to_host().unwrap();
                (system.matrix, rhs)
            };
            check(&mut linearize, &form, (&given.0, &given.1), form.mesh.n_nodes());
        }
    }
}

fn problem_constraints(form: &Form<'_>) -> (Vec<u32>, Vec<f64>) {
    let constraints = Constraints::of_form(&Space::new(form.mesh, 1).unwrap(), form).unwrap();
    (constraints.dofs().to_vec(), constraints.values().to_vec())
}

#[test]
fn matrices_of_any_degree_are_derivatives_of_the_residual() {
    let cpu = Cpu::new(2).unwrap();
    for (mesh, degree) in [(waves(2, 3, 2), 1), (waves(2, 2, 2), 3), (waves(3, 2, 1), 2)] {
        for (rule, coefficients) in
            [CellRule::default(), CellRule::GaussLobatto].into_iter().cycle().zip(coefficients())
        {
            let problem = problem(tagged(mesh.clone()), coefficients);
            let form = problem.form();
            let space = TensorSpace::new(form.mesh, degree).unwrap();
            let assembly = TensorAssembly::new(&space, &form, rule).unwrap();
            let constraints =
                assembly.prepare(&form, &Slopes::default(), form.conditions).unwrap().constraints().clone();
            let mut linearize = |u: &[f64], slopes: &Slopes| {
                let mut matrix = assembly.matrix(&cpu).unwrap();
                let mut rhs = vec![f64::NAN; space.n_dofs()];
                let prepared = assembly.prepare(&form, slopes, form.conditions).unwrap();
                let state = State { time: TIME, unknown: u };
                let mut values = matrix.values_mut();
                values.as_mut_slice().fill(f64::NAN);
                assembly.fill(values.as_mut_slice(), &mut rhs, &prepared, state).unwrap();
                (matrix, rhs)
            };
            let given = (constraints.dofs(), constraints.values());
            check(&mut linearize, &form, given, space.n_dofs());
        }
    }
}

#[test]
fn linearizations_have_the_values_of_plain_loops_and_the_same_bits_for_any_number_of_threads() {
    for mesh in [unit_mesh(2, 7), unit_mesh(3, 4)] {
        for coefficients in coefficients() {
            let problem = problem(tagged(mesh.clone()), coefficients);
            let form = problem.form();
            let slopes = Slopes::of(&form);
            let (u, _) = at_and_along(form.mesh.n_nodes(), &[], &[]);
            let expected = assembled(&Reference, &form, &slopes, &u).unwrap();
            let found = assembled(&Cpu::new(2).unwrap(), &form, &slopes, &u).unwrap();
            for (found, expected) in [(&found.0, &expected.0), (&found.1, &expected.1)] {
                let error: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
                assert!(norm(&error) < 1e-13 * norm(expected), "{}", norm(&error));
            }
            assert_eq!(found, assembled(&Cpu::new(1).unwrap(), &form, &slopes, &u).unwrap());
        }
    }
}

#[test]
fn a_conductivity_that_is_negative_at_some_u_is_named_with_the_cell_the_point_and_u() {
    let cpu = Cpu::new(2).unwrap();
    let given = [in_state("1 - u"), constant(0.0), constant(1.0)];
    let simplices = problem(unit_mesh(2, 4), given.clone());
    let form = simplices.form();
    let mut u = vec![0.0; form.mesh.n_nodes()];
    u[7] = 9.0;
    let slopes = Slopes::of(&form);
    let of_cells = assembled(&cpu, &form, &slopes, &u).unwrap_err();
    assert_eq!(of_cells.to_string(), assembled(&Reference, &form, &slopes, &u).unwrap_err().to_string());
    assert!(form.mesh.cell(of_cells.cell().unwrap()).contains(&7), "{of_cells}");
    let tensor = problem(waves(2, 4, 1), given);
    let space = TensorSpace::new(&tensor.mesh, 1).unwrap();
    let form = tensor.form();
    let assembly = TensorAssembly::new(&space, &form, CellRule::default()).unwrap();
    let (mut values, mut rhs) = (vec![0.0; assembly.matrix(&cpu).unwrap().n_nonzeros()], vec![0.0; u.len()]);
    let prepared = assembly.prepare(&form, &slopes, form.conditions).unwrap();
    let state = State { time: TIME, unknown: &u };
    let of_any_degree = assembly.fill(&mut values, &mut rhs, &prepared, state).unwrap_err();
    for error in [of_cells, of_any_degree] {
        let FemError::Form(FormError::Indefinite { unknown: Some(u), tensor, .. }) = &error else {
            panic!("{error}")
        };
        assert!((tensor[0][0] - (1.0 - u)).abs() < 1e-14 && *u > 1.0);
        assert!(error.to_string().contains(&format!("where u is {u}")), "{error}");
    }
}

#[test]
fn states_that_lack_the_function_or_fit_another_mesh_are_refused() {
    let cpu = Cpu::new(1).unwrap();
    let problem = problem(unit_mesh(2, 3), [in_state("1 + u^2"), constant(0.0), constant(1.0)]);
    let form = problem.form();
    let slopes = Slopes::of(&form);
    for u in [vec![], vec![1.0; 15]] {
        let error = assembled(&cpu, &form, &slopes, &u).unwrap_err();
        assert!(matches!(error, FemError::Length { field: "u", expected: 16, .. }), "{error}");
    }
    // Without a state, formulas have no value.
    let error = femtile_fem::assemble::<f64, Cpu>(&cpu, &form, &|_| ()).unwrap_err();
    assert!(matches!(error, FemError::Form(FormError::NotFinite { field: "sigma", .. })), "{error}");
}
