//! Fluxes through parts of the boundary.

use crate::common;

use common::curved::{bent, blocks, solve_without_matrix, waves};
use common::manufactured::{CONSTANT, IDENTITY, Tensor, VARYING, flux as flux_of, manufactured, parse};
use common::{Problem, Random, constant, disturbed, expression, facets_where, unit_mesh};
use femtile_device::Cpu;
use femtile_element::quadrature::gauss_legendre;
use femtile_fem::{Condition, FemError, functionals};
use femtile_matrix_free::CellRule;
use femtile_mesh::generate::{SquareConfig, square};
use femtile_space::{Space, TensorSpace};

const U2: &str = "sin(2*x + 1)*exp(y/2) + x*y^2";
const U3: &str = "sin(2*x + 1)*exp(y/2)*cos(z) + x*y*z";

fn cpu() -> Cpu {
    Cpu::new(2).unwrap()
}

/// Returns the flux into the unit square or cube through the side where `axis` is 0 or 1, by quadrature of the exact
/// solution.
fn exact_flux(dimension: usize, u: &str, sigma: &Tensor, axis: usize, is_upper: bool) -> f64 {
    let along = flux_of(&parse(u), sigma, dimension).swap_remove(axis);
    let (points, weights) = gauss_legendre(12);
    let others: Vec<usize> = (0..dimension).filter(|&a| a != axis).collect();
    let sum: f64 = (0..12usize.pow(others.len() as u32))
        .map(|q| {
            let (mut point, mut weight) = ([0.0; 3], 1.0);
            point[axis] = f64::from(u8::from(is_upper));
            for (k, &a) in others.iter().enumerate() {
                let i = q / 12usize.pow(k as u32) % 12;
                (point[a], weight) = (points[i], weight * weights[i]);
            }
            weight * along.eval(point)
        })
        .sum();
    if is_upper { sum } else { -sum }
}

fn side(problem: &Problem, axis: usize, is_upper: bool) -> Vec<u32> {
    let place = f64::from(u8::from(is_upper));
    facets_where(&problem.mesh, &problem.boundary, |p| (p[axis] - place).abs() < 1e-9)
}

/// Returns the errors of the flux through every side.
fn side_errors(problem: &Problem, fluxes: &[f64], u: &str, sigma: &Tensor) -> Vec<f64> {
    let dimension = problem.mesh.dimension();
    let sides = (0..dimension).flat_map(|axis| [false, true].map(|is_upper| (axis, is_upper)));
    sides
        .map(|(axis, is_upper)| {
            let found: f64 = side(problem, axis, is_upper).iter().map(|&facet| fluxes[facet as usize]).sum();
            (found - exact_flux(dimension, u, sigma, axis, is_upper)).abs()
        })
        .collect()
}

/// Asserts that every side reaches an order, or is exact where its flux is given.
fn sides_converge(name: &str, order: f64, errors: &[Vec<f64>]) {
    for side in 0..errors[0].len() {
        let of_side: Vec<f64> = errors.iter().map(|errors| errors[side]).collect();
        let [.., coarse, fine] = of_side[..] else { panic!() };
        let found = (coarse / fine).log2();
        assert!(fine < 1e-10 || found > order, "{name}, side {side}: order {found}, errors {of_side:?}");
    }
}

#[test]
fn fluxes_through_sides_of_linear_elements_converge_with_order_two() {
    for (dimension, u, levels) in [(2, U2, [16, 32, 64]), (3, U3, [4, 8, 16])] {
        for (sigma, lambda, mixed) in [
            (&IDENTITY, "0", false),
            (&VARYING, "1 + x", false),
            (&CONSTANT, "0", true),
            (&VARYING, "2", true),
        ] {
            let errors = levels.map(|n| {
                let problem = manufactured(unit_mesh(dimension, n), u, sigma, lambda, mixed);
                let found = problem.solve(&cpu());
                let fluxes =
                    functionals::facet_fluxes(&problem.space(), &problem.form(), CellRule::default(), &found)
                        .unwrap();
                side_errors(&problem, &fluxes, u, sigma)
            });
            sides_converge(&format!("{dimension}-D, mixed: {mixed}"), 1.75, &errors);
        }
    }
}

#[test]
fn fluxes_through_sides_converge_with_order_p_plus_one() {
    for (dimension, u, degree, levels) in [
        (2, U2, 1, [16, 32]),
        (2, U2, 2, [8, 16]),
        (2, U2, 3, [8, 16]),
        (2, U2, 5, [3, 6]),
        (3, U3, 2, [3, 6]),
    ] {
        for (sigma, mixed) in [(&IDENTITY, false), (&VARYING, true)] {
            let errors = levels.map(|n| {
                let problem = manufactured(waves(dimension, n, degree), u, sigma, "1 + x", mixed);
                let space = TensorSpace::new(&problem.mesh, degree).unwrap();
                let found = solve_without_matrix(&problem, &space, &cpu());
                let rule = CellRule::default();
                let fluxes =
                    functionals::facet_fluxes(&Space::from(&space), &problem.form(), rule, &found).unwrap();
                side_errors(&problem, &fluxes, u, sigma)
            });
            sides_converge(&format!("degree {degree} in {dimension}-D"), degree as f64 + 0.7, &errors);
        }
    }
}

/// Returns a problem with overlapping random conditions on the sides of a disturbed unit square or cube.
fn random_problem(mesh: femtile_mesh::Mesh, random: &mut Random) -> Problem {
    let mut problem = Problem::new(mesh);
    let n = problem.boundary.len();
    problem.sigma = expression("1 + x*y + 0.5*sin(3*y)");
    problem.lambda = if random.next().is_multiple_of(2) { constant(0.0) } else { expression("x + z") };
    problem.source = expression("exp(x) - 3*y + z");
    for k in 0..5 {
        let condition = match k % 3 {
            0 => Condition::Dirichlet(expression(["cos(2*x) + y", "1 - x*z"][k / 3])),
            1 => Condition::Neumann(expression("x - y^2")),
            _ => Condition::Robin { coefficient: expression("1 + x"), value: expression("y") },
        };
        let (axis, is_upper) =
            (random.next() as usize % problem.mesh.dimension(), random.next().is_multiple_of(2));
        let mut facets = side(&problem, axis, is_upper);
        facets.extend((0..n / 8).map(|_| random.next() as u32 % n as u32));
        problem.conditions.push(femtile_fem::BoundaryCondition { facets, condition });
    }
    problem
}

/// Returns $\sum|q_F|$ and $|\sum q_F + \int f - \int\lambda u|$ relative to it.
fn imbalance(fluxes: &[f64], source: f64, reaction: f64) -> f64 {
    let size: f64 = fluxes.iter().map(|flux| flux.abs()).sum();
    (fluxes.iter().sum::<f64>() + source - reaction).abs() / size
}

#[test]
fn fluxes_balance_source_and_reaction_for_random_overlapping_conditions() {
    let mut random = Random(5);
    for trial in 0..8 {
        let (dimension, n) = if trial % 2 == 0 { (2, 12) } else { (3, 5) };
        let mesh = disturbed(unit_mesh(dimension, n), n, 0.3, &mut random);
        let problem = random_problem(mesh, &mut random);
        let (form, u) = (problem.form(), problem.solve_to(1e-14, &cpu()));
        let fluxes = functionals::facet_fluxes(&problem.space(), &form, CellRule::default(), &u).unwrap();
        let source = functionals::source_integral(&problem.space(), &form, CellRule::default(), &u).unwrap();
        let reaction =
            functionals::reaction_integral(&problem.space(), &form, CellRule::default(), &u).unwrap();
        let found = imbalance(&fluxes, source, reaction);
        assert!(found < 1e-12, "trial {trial}: {found:e}");
        // Parts add up to the whole for any conditions, and for facets named several times.
        let (mut left, mut right): (Vec<u32>, Vec<u32>) =
            (0..fluxes.len() as u32).partition(|facet| facet % 3 == 0);
        left.extend(left.clone());
        right.reverse();
        let parts = functionals::flux(&problem.space(), &form, CellRule::default(), &u, &left).unwrap()
            + functionals::flux(&problem.space(), &form, CellRule::default(), &u, &right).unwrap();
        let size: f64 = fluxes.iter().map(|flux| flux.abs()).sum();
        assert!((parts - fluxes.iter().sum::<f64>()).abs() < 1e-13 * size);
    }
}

#[test]
fn fluxes_of_any_degree_balance_source_and_reaction_with_the_rule_of_the_operator() {
    let mut random = Random(9);
    for (dimension, n, degree) in [(2, 4, 1), (2, 3, 4), (3, 2, 1), (3, 2, 3)] {
        let problem = random_problem(waves(dimension, n, 2), &mut random);
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let (form, rule) = (problem.form(), CellRule::default());
        let u = solve_without_matrix(&problem, &space, &cpu());
        let fluxes = functionals::facet_fluxes(&Space::from(&space), &form, rule, &u).unwrap();
        let source = functionals::source_integral(&Space::from(&space), &form, rule, &u).unwrap();
        let reaction = functionals::reaction_integral(&Space::from(&space), &form, rule, &u).unwrap();
        let found = imbalance(&fluxes, source, reaction);
        // The tolerance of the solve is 1e-12.
        assert!(found < 1e-11, "degree {degree} in {dimension} dimensions: {found:e}");
        let all: Vec<u32> = (0..fluxes.len() as u32).collect();
        let sum = functionals::flux(&Space::from(&space), &form, rule, &u, &all).unwrap();
        assert!(
            (sum - fluxes.iter().sum::<f64>()).abs() < 1e-12 * fluxes.iter().map(|q| q.abs()).sum::<f64>()
        );
    }
}

#[test]
fn linear_solutions_have_their_exact_flux_through_every_facet() {
    for dimension in [2, 3] {
        let u = if dimension == 2 { "1 + 2*x - 3*y" } else { "1 + 2*x - 3*y + 0.5*z" };
        let problem = manufactured(unit_mesh(dimension, 4), u, &CONSTANT, "0", false);
        let found = problem.solve_to(1e-14, &cpu());
        let fluxes =
            functionals::facet_fluxes(&problem.space(), &problem.form(), CellRule::default(), &found)
                .unwrap();
        assert!(side_errors(&problem, &fluxes, u, &CONSTANT).iter().all(|error| *error < 1e-11));
        // Facets of one side have equal size.
        let upper = side(&problem, 0, true);
        let mean = exact_flux(dimension, u, &CONSTANT, 0, true) / upper.len() as f64;
        assert!(upper.iter().all(|&facet| (fluxes[facet as usize] - mean).abs() < 1e-11));
    }
}

#[test]
fn flux_between_cylinders_is_that_of_the_logarithm() {
    // u = log r between radii 1 and 2: the flux through a quarter of either circle is π/2.
    let mesh = bent(blocks(2, 4), 6, |[x, y, z]| {
        let angle = 0.5 * std::f64::consts::PI * y;
        [(1.0 + x) * angle.cos(), (1.0 + x) * angle.sin(), z]
    });
    let mut problem = Problem::new(mesh);
    problem.source = constant(0.0);
    let radius = |p: [f64; 3]| p[0].hypot(p[1]);
    problem.on(|p| radius(p) > 2.0 - 1e-9, Condition::Dirichlet(constant(2f64.ln())));
    problem.on(|p| radius(p) < 1.0 + 1e-9, Condition::Dirichlet(constant(0.0)));
    let space = TensorSpace::new(&problem.mesh, 4).unwrap();
    let u = solve_without_matrix(&problem, &space, &cpu());
    for (condition, sign) in [(0, 1.0), (1, -1.0)] {
        let facets = &problem.conditions[condition].facets;
        let flux = functionals::flux(&Space::from(&space), &problem.form(), CellRule::default(), &u, facets)
            .unwrap();
        assert!((flux - sign * 0.5 * std::f64::consts::PI).abs() < 1e-8, "{flux}");
    }
}

#[test]
fn heat_that_enters_the_plate_of_nafems_t4_leaves_it_by_convection() {
    let found = [4, 8, 16, 32].map(|n| {
        let config = SquareConfig { upper: [0.6, 1.0], cells: [3 * n, 5 * n], ..SquareConfig::default() };
        let mut problem = Problem::new(square(&config).unwrap());
        (problem.sigma, problem.source) = (constant(52.0), constant(0.0));
        let convection = || Condition::Robin { coefficient: constant(750.0), value: constant(0.0) };
        problem.on(|p| p[0] > 0.6 - 1e-9, convection());
        problem.on(|p| p[1] > 1.0 - 1e-9, convection());
        problem.on(|p| p[1] < 1e-9, Condition::Dirichlet(constant(100.0)));
        let (form, u) = (problem.form(), problem.solve_to(1e-14, &cpu()));
        let through = |k: usize| {
            functionals::flux(&problem.space(), &form, CellRule::default(), &u, &problem.conditions[k].facets)
                .unwrap()
        };
        let [right, upper, lower] = [0, 1, 2].map(through);
        assert!(lower > 0.0 && right < 0.0 && upper < 0.0, "{right} {upper} {lower}");
        assert!((right + upper + lower).abs() < 1e-10 * lower);
        let insulated = facets_where(&problem.mesh, &problem.boundary, |p| p[0] < 1e-9);
        assert_eq!(
            functionals::flux(&problem.space(), &form, CellRule::default(), &u, &insulated).unwrap(),
            0.0
        );
        lower
    });
    let steps: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    assert!(steps.windows(2).all(|pair| pair[1] < 0.6 * pair[0]), "{found:?}");
}

#[test]
fn facets_that_do_not_exist_are_refused() {
    let problem = manufactured(unit_mesh(2, 2), "x", &IDENTITY, "0", false);
    let u = vec![0.0; problem.mesh.n_nodes()];
    let error =
        functionals::flux(&problem.space(), &problem.form(), CellRule::default(), &u, &[3, 8]).unwrap_err();
    assert!(matches!(error, FemError::FacetOutOfRange { facet: 8, n_facets: 8 }), "{error}");
    let error = functionals::facet_fluxes(&problem.space(), &problem.form(), CellRule::default(), &u[1..])
        .unwrap_err();
    assert!(matches!(error, FemError::Length { .. }), "{error}");
}
