//! Orders of convergence for manufactured solutions.

use crate::common;

use common::manufactured::{CONSTANT, IDENTITY, Tensor, VARYING, manufactured as on_mesh, parse};
use common::{Problem, unit_mesh};
use femtile_device::Cpu;
use femtile_fem::functionals::{error_h1, error_l2};

fn manufactured(dimension: usize, n: usize, u: &str, sigma: &Tensor, lambda: &str, mixed: bool) -> Problem {
    on_mesh(unit_mesh(dimension, n), u, sigma, lambda, mixed)
}

/// Asserts the orders over four refinements, judged on the last two.
fn converges(name: &str, exact: &str, coarsest: usize, problem: impl Fn(usize) -> Problem) {
    let device = Cpu::new(2).unwrap();
    let exact = parse(exact);
    let errors: Vec<(f64, f64)> = (0..5)
        .map(|level| {
            let problem = problem(coarsest << level);
            let u = problem.solve(&device);
            (error_l2(&problem.space(), &u, &exact).unwrap(), error_h1(&problem.space(), &u, &exact).unwrap())
        })
        .collect();
    for pair in errors[2..].windows(2) {
        let (l2, h1) = ((pair[0].0 / pair[1].0).log2(), (pair[0].1 / pair[1].1).log2());
        assert!((l2 - 2.0).abs() < 0.1, "{name}: order {l2} in L2, errors {errors:?}");
        assert!((h1 - 1.0).abs() < 0.1, "{name}: order {h1} in H1, errors {errors:?}");
    }
}

const U2: &str = "sin(2*x + 1)*exp(y/2) + x*y^2";
const U3: &str = "sin(2*x + 1)*exp(y/2)*cos(z) + x*y*z";

#[test]
fn dirichlet_problems_converge_with_orders_two_and_one() {
    converges("2-D", U2, 4, |n| manufactured(2, n, U2, &IDENTITY, "0", false));
    converges("3-D", U3, 2, |n| manufactured(3, n, U3, &IDENTITY, "0", false));
}

#[test]
fn mixed_problems_with_reaction_converge_with_orders_two_and_one() {
    converges("2-D", U2, 4, |n| manufactured(2, n, U2, &IDENTITY, "1 + x", true));
    converges("3-D", U3, 2, |n| manufactured(3, n, U3, &IDENTITY, "2", true));
}

#[test]
fn constant_tensors_converge_with_orders_two_and_one() {
    converges("2-D", U2, 4, |n| manufactured(2, n, U2, &CONSTANT, "0", true));
    converges("3-D", U3, 2, |n| manufactured(3, n, U3, &CONSTANT, "0", true));
}

#[test]
fn varying_tensors_converge_with_orders_two_and_one() {
    converges("2-D", U2, 4, |n| manufactured(2, n, U2, &VARYING, "0.5", true));
    converges("3-D", U3, 2, |n| manufactured(3, n, U3, &VARYING, "0.5", true));
}

#[test]
fn pure_neumann_problems_converge_to_the_solution_of_mean_zero() {
    let (u2, u3) = ("cos(pi*x)*cos(2*pi*y)", "cos(pi*x)*cos(pi*y) + cos(pi*z)");
    for (name, u, dimension, coarsest) in [("2-D", u2, 2, 4), ("3-D", u3, 3, 2)] {
        converges(name, u, coarsest, |n| {
            let mut problem = manufactured(dimension, n, u, &IDENTITY, "0", false);
            problem.conditions.clear();
            problem
        });
    }
}

#[test]
fn linear_solutions_are_met_exactly() {
    let device = Cpu::new(2).unwrap();
    for dimension in [2, 3] {
        let u = if dimension == 2 { "1 + 2*x - 3*y" } else { "1 + 2*x - 3*y + 0.5*z" };
        let problem = manufactured(dimension, 5, u, &CONSTANT, "0", true);
        let found = problem.solve(&device);
        assert!(error_l2(&problem.space(), &found, &parse(u)).unwrap() < 1e-10);
        assert!(error_h1(&problem.space(), &found, &parse(u)).unwrap() < 1e-10);
    }
}
