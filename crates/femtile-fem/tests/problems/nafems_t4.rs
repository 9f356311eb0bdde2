//! NAFEMS test T4 `[nafems1990]`: two-dimensional conduction with convection.
//!
//! A plate of 0.6 m × 1.0 m with conductivity 52 W/(m °C): its lower side is held at 100 °C, the left one is
//! insulated, the right and upper ones lose heat to surroundings of 0 °C with 750 W/(m² °C). At (0.6, 0.2) the
//! temperature is 18.25 °C.

use crate::common;

use common::{Problem, constant};
use femtile_device::Cpu;
use femtile_fem::Condition;
use femtile_fem::functionals::value_at;
use femtile_mesh::generate::{SquareConfig, square};

const TARGET: f64 = 18.25;

fn temperature(n: usize) -> f64 {
    let config = SquareConfig { upper: [0.6, 1.0], cells: [3 * n, 5 * n], ..SquareConfig::default() };
    let mut problem = Problem::new(square(&config).unwrap());
    (problem.sigma, problem.source) = (constant(52.0), constant(0.0));
    let convection = || Condition::Robin { coefficient: constant(750.0), value: constant(0.0) };
    problem.on(|p| p[0] > 0.6 - 1e-9, convection());
    problem.on(|p| p[1] > 1.0 - 1e-9, convection());
    problem.on(|p| p[1] < 1e-9, Condition::Dirichlet(constant(100.0)));
    let u = problem.solve(&Cpu::new(2).unwrap());
    value_at(&problem.space(), &u, [0.6, 0.2, 0.0]).unwrap()
}

#[test]
fn the_target_temperature_is_met_within_half_a_percent_and_approached() {
    let found: Vec<f64> = [2, 4, 8, 16, 32].map(temperature).to_vec();
    let errors: Vec<f64> = found.iter().map(|t| (t - TARGET).abs() / TARGET).collect();
    assert!(errors[4] < 0.005, "{found:?}");
    assert!(errors.windows(2).all(|pair| pair[1] < pair[0]), "{found:?}");
    // The steps shrink as for a convergent method.
    let steps: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    assert!(steps.windows(2).all(|pair| pair[1] < 0.5 * pair[0]), "{found:?}");
}
