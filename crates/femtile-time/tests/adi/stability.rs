//! Long steps and rough data.

use femtile_time::adi::{AdiConfig, Scheme};

use super::manufactured::{Kind, Manufactured, formula, solve};

fn norm(u: &[f64]) -> f64 {
    (u.iter().map(|u| u * u).sum::<f64>() / u.len() as f64).sqrt()
}

/// Steps of 100 times the explicit limit $1 / (2 Σ D_a / h_a²)$.
#[test]
fn no_scheme_grows_at_a_hundred_times_the_explicit_limit() {
    let plane = Manufactured::heat("0", 2).diffusion(0, 0, "3");
    let rough = "sin(40*x*x)*cos(31*y) + sign(x - 0.4)*sign(y - 0.6)";
    let neumann =
        plane.clone().sides(0, Kind::Neumann, Kind::Neumann).sides(1, Kind::Neumann, Kind::Dirichlet);
    let ring = plane.clone().sides(0, Kind::Periodic, Kind::Periodic);
    let box_ = Manufactured::heat("0", 3).diffusion(2, 2, "0.2");
    let mixed = plane.clone().diffusion(0, 1, "1.6");
    let mixed_box = box_.clone().diffusion(0, 1, "0.9").diffusion(1, 2, "-0.1");
    let all = Scheme::ALL;
    for (name, problem, schemes) in [
        ("plane", plane, &all[..]),
        ("neumann", neumann, &all[..]),
        ("ring", ring, &all[..]),
        ("box", box_, &all[1..]),
        ("mixed", mixed, &all[1..]),
        ("mixed box", mixed_box, &all[3..]),
    ] {
        let nodes = if problem.sides.len() == 3 { [14, 15, 13] } else { [33, 30, 1] };
        let on_grid = problem.problem(&nodes);
        let h = on_grid.grid().unwrap().spacing();
        let rates = (0..problem.sides.len())
            .map(|axis| problem.diffusion[axis][axis].as_constant().unwrap() / (h[axis] * h[axis]));
        let step = 100.0 / (2.0 * rates.sum::<f64>());
        for &scheme in schemes {
            let at = |steps: usize| {
                let config = AdiConfig { scheme, end: steps as f64 * step, steps, ..AdiConfig::default() };
                norm(&solve(&on_grid, &config, &formula(rough)))
            };
            let norms = [1, 10, 100, 300].map(at);
            let start = 2.0;
            assert!(norms.iter().all(|&norm| norm <= start), "{name}, {scheme}: {norms:?}");
            assert!(norms[3] <= norms[1] * (1.0 + 1e-12), "{name}, {scheme}: {norms:?}");
        }
    }
}

#[test]
fn a_rannacher_start_damps_what_long_steps_leave_of_a_jump() {
    let problem = Manufactured::heat("0", 2).problem(&[41, 41]);
    let jump = formula("if(abs(x - 0.5) < 0.2 and abs(y - 0.5) < 0.3, 1, 0)");
    let roughness = |rannacher_steps: usize, scheme: Scheme| {
        let config = AdiConfig { scheme, end: 0.1, steps: 10, rannacher_steps, ..AdiConfig::default() };
        let u = solve(&problem, &config, &jump);
        let second = |i: usize| u[i - 1] - 2.0 * u[i] + u[i + 1];
        (41 * 20 + 1..41 * 21 - 1).map(|i| second(i).abs()).fold(0.0, f64::max)
    };
    for scheme in Scheme::ALL {
        let (without, with) = (roughness(0, scheme), roughness(2, scheme));
        assert!(with < 0.1 * without, "{scheme}: {without} {with}");
    }
}
