//! Fluxes through parts of the boundary.

use crate::common;

use common::curved::{bent, blocks, solve_without_matrix, waves};
use common::manufactured::{CONSTANT, IDENTITY, Tensor, VARYING, flux as flux_of, manufactured, parse};
use common::{Problem, Random, constant, disturbed, expression, facets_where, unit_mesh};
use femtile_device::Cpu;
use femtile_element::quadrature::gauss_legendre;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::matrix_free::CellRule;
use femtile_fem::tensor::functionals as tensor;
use femtile_fem::{Coefficient, Condition, FemError, functionals};
use femtile_mesh::generate::{SquareConfig, square};

const U2: &str = "sin(2*x + 1)*exp(y/2) + x*y^2";
const U3: &str = "sin(2*x + 1)*exp(y/2)*cos(z) + x*y*z";

fn cpu() -> Cpu {
    Cpu::new(2).unwrap()
}

/// Flux into the unit square or cube through the side where `axis` is 0 or 1, by quadrature of the exact solution.
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

/// Errors of the flux through every side.
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

/// Every side reaches an order, or is exact where its flux is given.
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
                let fluxes = functionals::facet_fluxes(&problem.form(), &found).unwrap();
                side_errors(&problem, &fluxes, u, sigma)
            });
            eprintln!("{dimension} {lambda} {mixed} {errors:?}");
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
                let fluxes = tensor::facet_fluxes(&space, &problem.form(), rule, &found).unwrap();
                side_errors(&problem, &fluxes, u, sigma)
            });
            eprintln!("{dimension} {degree} {mixed} {errors:?}");
            sides_converge(&format!("degree {degree} in {dimension}-D"), degree as f64 + 0.7, &errors);
        }
    }
}
