//! Orders of convergence of elements of any degree on curved quadrilaterals and hexahedra.

use crate::common;

use common::Problem;
use common::curved::{solve, solve_without_matrix, waves};
use common::manufactured::{IDENTITY, Tensor, VARYING, manufactured, parse};
use femtile_device::Cpu;
use femtile_fem::functionals::{error_h1, error_l2};
use femtile_space::{Space, TensorSpace};

const U2: &str = "sin(2*x + 1)*exp(y/2) + x*y^2";
const U3: &str = "sin(2*x + 1)*exp(y/2)*cos(z) + x*y*z";

/// Returns the errors in L2 and H1.
fn errors(problem: &Problem, degree: usize, exact: &str) -> [f64; 2] {
    let device = Cpu::new(2).unwrap();
    let space = TensorSpace::new(&problem.mesh, degree).unwrap();
    let u = solve_without_matrix(problem, &space, &device);
    let exact = parse(exact);
    [error_l2(&Space::from(&space), &u, &exact).unwrap(), error_h1(&Space::from(&space), &u, &exact).unwrap()]
}

/// Asserts the orders p + 1 in L2 and p in H1 between meshes with `n` and `2n` cells along an axis.
fn converges(degree: usize, n: usize, exact: &str, problem: impl Fn(usize) -> Problem) {
    let (coarse, fine) = (errors(&problem(n), degree, exact), errors(&problem(2 * n), degree, exact));
    for (norm, expected) in [(0, degree + 1), (1, degree)] {
        let order = (coarse[norm] / fine[norm]).log2();
        assert!(
            (order - expected as f64).abs() < 0.2,
            "degree {degree}: order {order} instead of {expected}, errors {coarse:?} and {fine:?}"
        );
    }
}

fn mixed(dimension: usize, n: usize, order: usize, sigma: &Tensor, lambda: &str) -> Problem {
    let u = if dimension == 2 { U2 } else { U3 };
    manufactured(waves(dimension, n, order), u, sigma, lambda, true)
}

#[test]
fn quadrilaterals_converge_with_orders_p_plus_one_and_p() {
    for (degree, n) in [(1, 8), (2, 8), (3, 8), (4, 8), (5, 4), (6, 5)] {
        converges(degree, n, U2, |n| mixed(2, n, degree, &IDENTITY, "0"));
    }
}

#[test]
fn varying_tensors_and_reaction_converge_on_quadrilaterals() {
    for degree in [2, 4] {
        converges(degree, 8, U2, |n| mixed(2, n, degree, &VARYING, "1 + x"));
    }
}

#[test]
fn hexahedra_converge_with_orders_p_plus_one_and_p() {
    for (degree, n) in [(1, 6), (2, 4), (3, 4), (4, 4)] {
        converges(degree, n, U3, |n| mixed(3, n, degree, &VARYING, "2"));
    }
}

#[test]
#[ignore = "half a minute"]
fn hexahedra_of_degrees_five_and_six_converge() {
    for degree in [5, 6] {
        converges(degree, 4, U3, |n| mixed(3, n, degree, &VARYING, "2"));
    }
}

#[test]
fn solutions_without_a_matrix_are_those_with_it() {
    let device = Cpu::new(2).unwrap();
    for (dimension, degree) in [(2, 1), (2, 5), (3, 1), (3, 3)] {
        let problem = mixed(dimension, 3, degree, &VARYING, "1 + x");
        let space = TensorSpace::new(&problem.mesh, degree).unwrap();
        let with = solve(&problem, &space, &device);
        let without = solve_without_matrix(&problem, &space, &device);
        let difference = with.iter().zip(&without).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(difference < 1e-10, "degree {degree} in {dimension} dimensions: {difference:e}");
    }
}
