//! Values on the sides of the box.

use femtile_time::adi::{AdiConfig, Scheme};

use super::manufactured::{Kind, Manufactured, distance, formula, sampled, solve};

/// Where $A_1 A_2 u = 0$ and u is linear in time, the splitting leaves nothing: intermediate values on the sides that
/// are wrong in any way show at once.
#[test]
fn the_splitting_is_exact_where_its_error_term_vanishes() {
    let plane = Manufactured::heat("(1 + t)*(x^2 + 2*y^2 + x^2*y - x*y^2)", 2).diffusion(1, 1, "0.5");
    let flux = plane.clone().sides(0, Kind::Dirichlet, Kind::Neumann);
    let box_ = Manufactured::heat("(1 + t)*(x^2*y + z^2*x - y^2*z + x*y*z)", 3).diffusion(2, 2, "3");
    let mixed_sides = box_.clone().sides(1, Kind::Neumann, Kind::Dirichlet);
    let schemes = [Scheme::PeacemanRachford, Scheme::Douglas, Scheme::CraigSneyd];
    for (name, problem) in [("plane", plane), ("flux", flux), ("box", box_), ("box with a flux", mixed_sides)]
    {
        let dimension = problem.sides.len();
        // Fluxes of these solutions vary in time, which is exact as well: they are linear.
        for scheme in schemes.into_iter().filter(|&s| dimension == 2 || s != Scheme::PeacemanRachford) {
            let config = AdiConfig { scheme, end: 2.0, steps: 3, ..AdiConfig::default() };
            let on_grid = problem.problem(&[9, 12, 7]);
            let found = solve(&on_grid, &config, &problem.exact);
            let error = distance(&found, &sampled(&on_grid, &problem.exact, 2.0));
            let bound = if name.contains("flux") { 0.3 } else { 1e-12 };
            assert!(error < bound, "{name}, {scheme}: {error:e}");
        }
    }
}

#[test]
fn values_that_are_given_are_kept() {
    let problem = Manufactured::heat("exp(-t)*x + y*t", 2).problem(&[7, 6]);
    let config = AdiConfig { steps: 5, scheme: Scheme::CraigSneyd, ..AdiConfig::default() };
    // Initial values that do not fit the sides are replaced there.
    let found = solve(&problem, &config, &formula("7"));
    let exact = sampled(&problem, &formula("exp(-t)*x + y*t"), 1.0);
    let grid = problem.grid().unwrap();
    for node in grid.all().filter(|n| n[0] == 0 || n[1] == 0 || n[0] == 6 || n[1] == 5) {
        let i = grid.index(node);
        assert!((found[i] - exact[i]).abs() < 1e-13, "{node:?}");
    }
}

#[test]
fn without_flux_nothing_is_lost() {
    let closed = Manufactured::heat("0", 2)
        .sides(0, Kind::Neumann, Kind::Neumann)
        .sides(1, Kind::Periodic, Kind::Periodic)
        .diffusion(0, 0, "1 + x")
        .diffusion(0, 1, "0.5*cos(2*pi*y)");
    let problem = closed.problem(&[17, 12]);
    let grid = problem.grid().unwrap();
    let initial = formula("exp(-20*(x - 0.3)^2 - 5*sin(pi*y)^2)");
    let config = AdiConfig { scheme: Scheme::CraigSneyd, steps: 50, ..AdiConfig::default() };
    let before = femtile_time::adi::values::integral(&grid, &sampled(&problem, &initial, 0.0));
    let after = femtile_time::adi::values::integral(&grid, &solve(&problem, &config, &initial));
    assert!((after - before).abs() < 1e-13, "{before} {after}");
}

#[test]
fn a_steady_flux_gives_its_straight_profile() {
    let line = Manufactured::heat("2*x - 1", 2).sides(0, Kind::Neumann, Kind::Dirichlet).problem(&[9, 5]);
    let config = AdiConfig { end: 40.0, steps: 400, rannacher_steps: 2, ..AdiConfig::default() };
    let found = solve(&line, &config, &formula("0"));
    assert!(distance(&found, &sampled(&line, &formula("2*x - 1"), 0.0)) < 1e-10);
}
