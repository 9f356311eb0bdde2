//! Implicit equations of points.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile_cardiac::implicit::LocalStates;
use femtile_cardiac::ionic::{Ionic, LocalScheme, Model, Points};

/// Four states with a full Jacobian, whose pivots are not on the diagonal.
const FOUR: &str = "
name = 'four'
[units]
dimensionless = true
[voltage]
name = 'V'
initial = 0.1
current = 'V - a*b + c^2 + sin(d)'
[states.a]
initial = 0.3
rate = '1.9*a + 3*b - V*c + 0.1*d^2'
[states.b]
initial = -0.2
rate = '2*a + 2.1*b + c*d - V^2'
[states.c]
initial = 0.5
rate = 'a*b*c + 2*c + 3*d + V'
[states.d]
initial = 0.4
rate = '-3*c + 2*d - exp(V)*a'
";

fn models() -> Vec<Model> {
    let named =
        ["aliev-panfilov", "mitchell-schaeffer", "fitzhugh-nagumo"].map(|name| Model::named(name).unwrap());
    named.into_iter().chain([Model::from_toml(FOUR).unwrap()]).collect()
}

/// Current, tangent and states of one point.
fn solve(cell: &mut LocalStates<Cpu>, v: f64, dt: f64) -> [f64; 2] {
    let cpu = Cpu::new(1).unwrap();
    let v = Buffer::from_vec(&cpu, vec![v]).unwrap();
    let mut results = [f64::NAN; 2].map(|value| Buffer::from_vec(&cpu, vec![value]).unwrap());
    assert_eq!(cell.solve(&v, results.each_mut(), dt).unwrap(), 0);
    results.map(|result| result.as_slice()[0])
}

fn cell(model: &Model) -> LocalStates<Cpu> {
    LocalStates::new(&Cpu::new(1).unwrap(), model, 1, false).unwrap()
}

/// The states of one point, of rows of one point.
fn first(states: &[f64]) -> Vec<f64> {
    states.chunks(Points::<Cpu>::all(1).stride()).map(|row| row[0]).collect()
}

fn states(cell: &LocalStates<Cpu>) -> Vec<f64> {
    first(&cell.to_host().unwrap())
}

#[test]
fn implicit_states_solve_their_equations() {
    for model in models() {
        for (v, dt) in [(0.05, 0.5), (0.7, 0.5), (0.3, 0.01)] {
            let mut cell = cell(&model);
            let old = states(&cell);
            let [current, _] = solve(&mut cell, v, dt);
            cell.accept();
            let new = states(&cell);
            // An explicit step from the new states adds their rates.
            let cpu = Cpu::new(1).unwrap();
            let mut voltage = Buffer::from_vec(&cpu, vec![v]).unwrap();
            let mut explicit = Ionic::new(&cpu, &model, LocalScheme::Explicit, Points::all(1)).unwrap();
            explicit.set_states(&cell.to_host().unwrap()).unwrap();
            explicit.advance(&mut voltage, None, dt).unwrap();
            assert!((v - dt * current - voltage.as_slice()[0]).abs() < 1e-14);
            let after = first(&explicit.states().to_host().unwrap());
            for ((old, new), after) in old.iter().zip(&new).zip(after) {
                let residual = new - old - (after - new);
                assert!(residual.abs() < 1e-13 * (1.0 + new.abs()), "{}: {residual}", model.name());
            }
        }
    }
}

#[test]
fn tangents_are_derivatives_of_the_current_through_the_states() {
    for model in models() {
        for (v, dt) in [(0.05, 0.5), (0.7, 0.5), (0.3, 0.01)] {
            let mut cell = cell(&model);
            let h = 1e-5;
            let [before, _] = solve(&mut cell, v - h, dt);
            let [after, _] = solve(&mut cell, v + h, dt);
            let [_, tangent] = solve(&mut cell, v, dt);
            let difference = (after - before) / (2.0 * h);
            assert!(
                (tangent - difference).abs() < 1e-7 * (1.0 + tangent.abs()),
                "{}: {tangent} {difference}",
                model.name()
            );
        }
    }
}

#[test]
fn states_are_kept_until_they_are_accepted() {
    let mut cell = cell(&Model::named("aliev-panfilov").unwrap());
    let old = states(&cell);
    let first = solve(&mut cell, 0.6, 0.5);
    assert_eq!(states(&cell), old);
    assert_eq!(solve(&mut cell, 0.6, 0.5), first);
    cell.accept();
    assert_ne!(states(&cell), old);
}

#[test]
fn points_without_a_solution_are_counted() {
    // w - w_old - dt (1 + w^2) = 0 has no solution for dt above a half, w_old = 0.
    let text = FOUR.split("[states.a]").next().unwrap().replace("V - a*b + c^2 + sin(d)", "V + w")
        + "[states.w]\ninitial = 0\nrate = '1 + w^2'\n";
    let model = Model::from_toml(&text).unwrap();
    let cpu = Cpu::new(1).unwrap();
    let mut cells = LocalStates::new(&cpu, &model, 3, false).unwrap();
    let v = Buffer::zeros(&cpu, 3).unwrap();
    let mut results = [(); 2].map(|()| Buffer::zeros(&cpu, 3).unwrap());
    assert_eq!(cells.solve(&v, results.each_mut(), 0.4).unwrap(), 0);
    assert_eq!(cells.solve(&v, results.each_mut(), 0.6).unwrap(), 3);
    let error = cells.solve(&v, results.each_mut(), 0.0).unwrap_err().to_string();
    assert!(error.contains("has to be a positive number"), "{error}");
}

#[test]
fn models_with_many_states_are_refused() {
    let model = Model::named("ten-tusscher-panfilov-2006").unwrap();
    let error = LocalStates::new(&Cpu::new(1).unwrap(), &model, 1, false).unwrap_err().to_string();
    assert!(
        error.contains("18 states") && error.contains("at most 4") && error.contains("splitting"),
        "{error}"
    );
}
