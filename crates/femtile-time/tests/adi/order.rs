//! Orders of convergence, measured.

use femtile_time::adi::{AdiConfig, Scheme};

use super::manufactured::{Kind, Manufactured, distance, sampled, solve};

const WAVE: &str = "exp(-t)*sin(2*x + 0.3)*cos(1.5*y - 0.2) + t^2*x*y";
const WAVE_3D: &str = "cos(2*t)*sin(2*x + 0.3)*cos(1.5*y - 0.2)*(1 + sin(z + 0.5))";
const RING: &str = "(1 + t^2)*sin(2*pi*x)*cos(2*pi*y) + exp(-t)";

fn config(scheme: Scheme, steps: usize) -> AdiConfig {
    AdiConfig { scheme, end: 0.5, steps, ..AdiConfig::default() }
}

/// Order in time on one grid, from three runs of n, 2n and 4n steps.
fn order_in_time(problem: &Manufactured, scheme: Scheme, nodes: &[usize], steps: usize) -> f64 {
    let (on_grid, initial) = (problem.problem(nodes), &problem.exact);
    let [a, b, c] = [1, 2, 4].map(|k| solve(&on_grid, &config(scheme, k * steps), initial));
    (distance(&a, &b) / distance(&b, &c)).log2()
}

/// Order in space and time when both are refined together.
fn order_in_space(problem: &Manufactured, scheme: Scheme, nodes: [[usize; 3]; 2], steps: usize) -> f64 {
    let error = |k: usize| {
        let on_grid = problem.problem(&nodes[k]);
        let found = solve(&on_grid, &config(scheme, steps << k), &problem.exact);
        distance(&found, &sampled(&on_grid, &problem.exact, 0.5))
    };
    (error(0) / error(1)).log2()
}

fn check(name: &str, problem: &Manufactured, schemes: &[Scheme], time: f64) {
    check_with(name, problem, schemes, time, 1);
}

/// `refined` times as many steps: with mixed derivatives the first pass of Craig–Sneyd leaves layers of width √Δt at
/// Dirichlet sides, and the order shows only when these are thin.
fn check_with(name: &str, problem: &Manufactured, schemes: &[Scheme], time: f64, refined: usize) {
    let three = problem.sides.len() == 3;
    let periodic = |axis: usize| problem.sides.get(axis).is_some_and(|s| s[0] == Kind::Periodic);
    let intervals = if three { 12 } else { 20 };
    let nodes =
        [1, 2].map(|k| std::array::from_fn(|axis| k * (intervals + 2 * axis) + usize::from(!periodic(axis))));
    for &scheme in schemes {
        let in_time = order_in_time(problem, scheme, &nodes[0], refined * if three { 8 } else { 16 });
        assert!((in_time - time).abs() < 0.1, "{name}, {scheme}: order {in_time} in time");
        if time == 2.0 {
            let in_space = order_in_space(problem, scheme, nodes, refined.min(4) * intervals / 2);
            assert!((in_space - 2.0).abs() < 0.1, "{name}, {scheme}: order {in_space} in space");
        }
    }
}

const PLANE: [Scheme; 3] = [Scheme::PeacemanRachford, Scheme::Douglas, Scheme::CraigSneyd];
const ANY: [Scheme; 2] = [Scheme::DouglasGunn, Scheme::CraigSneyd];

#[test]
fn values_on_sides_that_depend_on_time_keep_the_second_order_in_two_dimensions() {
    check("heat", &Manufactured::heat(WAVE, 2).diffusion(1, 1, "0.3"), &PLANE, 2.0);
}

#[test]
fn values_on_sides_that_depend_on_time_keep_the_second_order_in_three_dimensions() {
    check("heat", &Manufactured::heat(WAVE_3D, 3).diffusion(1, 1, "0.3"), &ANY, 2.0);
}

#[test]
fn fluxes_that_depend_on_time_keep_the_second_order() {
    let plane = Manufactured::heat(WAVE, 2).sides(0, Kind::Neumann, Kind::Neumann);
    check("flux in x", &plane.clone().sides(1, Kind::Dirichlet, Kind::Neumann), &PLANE, 2.0);
    check("flux all round", &plane.sides(1, Kind::Neumann, Kind::Neumann).reaction("-1"), &PLANE, 2.0);
    let box_ = Manufactured::heat(WAVE_3D, 3).sides(1, Kind::Neumann, Kind::Dirichlet);
    check("flux in 3-D", &box_.sides(2, Kind::Neumann, Kind::Neumann), &ANY, 2.0);
}

#[test]
fn periodic_sides_keep_the_second_order() {
    let ring = Manufactured::heat(RING, 2).sides(0, Kind::Periodic, Kind::Periodic).diffusion(0, 0, "0.1");
    check("one ring", &ring, &PLANE, 2.0);
    let torus = ring.sides(1, Kind::Periodic, Kind::Periodic).diffusion(1, 1, "0.1 + 0.05*sin(2*pi*x)");
    check("torus", &torus.convection(["0.5", "cos(2*pi*y)", "0"]), &PLANE, 2.0);
}

#[test]
fn varying_coefficients_keep_the_second_order() {
    let plane = Manufactured::heat(WAVE, 2)
        .diffusion(0, 0, "1 + x*y")
        .diffusion(1, 1, "0.5 + sin(x)^2")
        .convection(["y", "-2*x", "0"])
        .reaction("x - 1");
    check("plane", &plane, &PLANE, 2.0);
    let fluxes = plane.sides(0, Kind::Neumann, Kind::Neumann).sides(1, Kind::Neumann, Kind::Dirichlet);
    check("plane with fluxes", &fluxes, &PLANE, 2.0);
    let box_ = Manufactured::heat(WAVE_3D, 3)
        .diffusion(0, 0, "1 + x*z")
        .diffusion(2, 2, "1 + y")
        .convection(["z", "1", "-x"])
        .reaction("-y");
    check("box", &box_, &ANY, 2.0);
}

#[test]
fn mixed_derivatives_are_of_second_order_with_craig_sneyd_and_of_first_with_douglas() {
    let plane = Manufactured::heat(WAVE, 2).diffusion(0, 1, "0.4").diffusion(1, 1, "0.5");
    check_with("constant", &plane, &[Scheme::CraigSneyd], 2.0, 16);
    check("constant", &plane, &[Scheme::Douglas, Scheme::DouglasGunn], 1.0);
    let varying = plane.diffusion(0, 1, "0.3 + 0.2*x*y").diffusion(0, 0, "1 + y").convection(["1", "x", "0"]);
    check_with("varying", &varying, &[Scheme::CraigSneyd], 2.0, 16);
    let fluxes = varying.diffusion(0, 1, "0.8*x*(1 - x)*(1 - y)");
    let fluxes = fluxes.sides(0, Kind::Neumann, Kind::Neumann).sides(1, Kind::Dirichlet, Kind::Neumann);
    check_with("with fluxes", &fluxes, &[Scheme::CraigSneyd], 2.0, 16);
    let torus = Manufactured::heat(RING, 2)
        .sides(0, Kind::Periodic, Kind::Periodic)
        .sides(1, Kind::Periodic, Kind::Periodic)
        .diffusion(0, 0, "0.2")
        .diffusion(1, 1, "0.2")
        .diffusion(0, 1, "0.1 + 0.05*cos(2*pi*x)");
    check_with("torus", &torus, &[Scheme::CraigSneyd], 2.0, 4);
}

#[test]
fn mixed_derivatives_of_all_pairs_of_axes_are_of_second_order_with_craig_sneyd() {
    let box_ = Manufactured::heat(WAVE_3D, 3)
        .diffusion(0, 1, "0.3")
        .diffusion(0, 2, "0.2*x*z")
        .diffusion(1, 2, "-0.3*z")
        .sides(2, Kind::Neumann, Kind::Dirichlet);
    check_with("box", &box_, &[Scheme::CraigSneyd], 2.0, 8);
    let order = order_in_time(&box_, Scheme::Douglas, &[6, 7, 8], 512);
    assert!((order - 1.0).abs() < 0.1, "{order}");
}

/// The tangential part of the flux is explicit: at a fixed step length the layer that it leaves is as thick as √Δt.
#[test]
fn mixed_derivatives_across_a_side_with_a_flux_are_of_order_one_and_a_half_at_least() {
    let plane = Manufactured::heat(WAVE, 2).diffusion(0, 1, "0.4").diffusion(1, 1, "0.5");
    let fluxes = plane.sides(0, Kind::Neumann, Kind::Neumann).sides(1, Kind::Dirichlet, Kind::Neumann);
    let order = order_in_time(&fluxes, Scheme::CraigSneyd, &[41, 43], 64);
    assert!((1.45..2.1).contains(&order), "{order}");
}

#[test]
fn a_line_is_solved_as_by_crank_and_nicolson() {
    let line = Manufactured::heat("exp(-t)*sin(3*x)", 1).convection(["x", "0", "0"]);
    check("line", &line.sides(0, Kind::Dirichlet, Kind::Neumann), &[Scheme::Douglas], 2.0);
}
