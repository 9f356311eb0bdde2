//! Models of the membrane, held to the reference.

use femtile::device::{Buffer, Reference};
use femtile_cardiac::implicit::{ImplicitKernels, LocalStates};
use femtile_cardiac::ionic::{GatePrecision, Ionic, IonicKernels, LocalScheme, Model, Points};

use super::Scope;
use super::problems::Random;

/// Steps of a comparison.
const STEPS: usize = 3;

/// Voltages between rest and upstroke of the built-in models.
fn voltages(model: &Model, n: usize) -> Vec<f64> {
    let [scale, offset] = match model.units().voltage_mv {
        Some([scale, offset]) => [1.0 / scale, -offset / scale],
        None => [0.03, 1.0],
    };
    let random: Vec<f64> = Random::new(n as u64).vector(n);
    random.into_iter().map(|random| scale * (-30.0 + 55.0 * random) + offset).collect()
}

/// Voltages after some steps from states that differ from point to point, and the states.
pub fn run<D: IonicKernels>(
    device: &D,
    model: &Model,
    (scheme, gates): (LocalScheme, GatePrecision),
    list: Option<&[u32]>,
    n_nodes: usize,
) -> (Vec<f64>, Vec<Vec<f64>>) {
    let points = match list {
        None => Points::all(n_nodes),
        Some(list) => Points::listed(device, n_nodes, list).unwrap(),
    };
    let mut cells = Ionic::with_gates(device, model, scheme, gates, points).unwrap();
    let mut states = cells.states().to_host().unwrap();
    let random: Vec<f64> = Random::new(7).vector(states.len());
    states.iter_mut().zip(random).for_each(|(state, random)| *state *= 1.0 + 0.1 * random);
    cells.set_states(&states).unwrap();
    let mut v = Buffer::from_vec(device, voltages(model, n_nodes)).unwrap();
    let stimulus: Vec<f64> = Random::new(3).vector(n_nodes);
    let stimulus = Buffer::from_vec(device, stimulus).unwrap();
    for step in 0..STEPS {
        cells.advance(&mut v, (step > 0).then_some(&stimulus), 0.01).unwrap();
    }
    cells.check(&v).unwrap();
    let states = model.states().iter().map(|state| cells.state(state.name()).unwrap().unwrap());
    (v.to_host().unwrap(), states.collect())
}

fn near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * largest, "{what}, point {i}: {found} {expected}");
    }
}

/// Every second node, backwards.
fn backwards(n_nodes: usize) -> Vec<u32> {
    (0..n_nodes as u32).filter(|node| node % 2 == 1).rev().collect()
}

fn agree<D: IonicKernels>(
    device: &D,
    model: &Model,
    form: (LocalScheme, GatePrecision),
    list: Option<&[u32]>,
    n: usize,
) {
    let tolerance = if form.1 == GatePrecision::Single { 1e-6 } else { 1e-11 };
    let (v, states) = run(device, model, form, list, n);
    let (expected_v, expected_states) = run(&Reference, model, form, list, n);
    let what = format!("{}, {form:?}, {n}, list {}", model.name(), list.is_some());
    near(&v, &expected_v, tolerance, &what);
    for (found, expected) in states.iter().zip(&expected_states) {
        near(found, expected, tolerance, &what);
    }
}

/// Steps of all models and schemes are those of plain loops, at all nodes and at lists of them.
pub fn steps_agree_with_the_reference<D: IonicKernels>(device: &D, scope: &Scope) {
    for model in Model::names().map(|name| Model::named(name).unwrap()) {
        for scheme in [LocalScheme::RushLarsen, LocalScheme::RushLarsen2] {
            for &n in scope.sizes.iter().filter(|&&n| n < 1100) {
                agree(device, &model, (scheme, GatePrecision::Double), None, n);
                if n < 2 || n % 3 == 1 {
                    agree(device, &model, (scheme, GatePrecision::Double), Some(&backwards(n)), n);
                }
            }
        }
    }
}

/// Steps with gates of single precision agree within that precision.
pub fn single_gates_agree_with_the_reference<D: IonicKernels>(device: &D, _: &Scope) {
    for name in ["mitchell-schaeffer", "ten-tusscher-panfilov-2006", "courtemanche-ramirez-nattel-1998"] {
        let model = Model::named(name).unwrap();
        agree(device, &model, (LocalScheme::RushLarsen, GatePrecision::Single), None, 257);
        agree(device, &model, (LocalScheme::RushLarsen2, GatePrecision::Single), Some(&backwards(67)), 67);
    }
}

/// Implicit states, currents and tangents are those of plain loops.
pub fn implicit_states_agree_with_the_reference<D: ImplicitKernels>(device: &D, scope: &Scope) {
    for name in ["aliev-panfilov", "mitchell-schaeffer", "fitzhugh-nagumo"] {
        let model = Model::named(name).unwrap();
        for &n in scope.sizes.iter().filter(|&&n| n < 1100) {
            let (found, expected) = (implicit(device, &model, n), implicit(&Reference, &model, n));
            for (found, expected) in found.iter().zip(&expected) {
                near(found, expected, 1e-11, &format!("{name}, {n}"));
            }
        }
    }
}

/// Currents, tangents and states of two steps.
fn implicit<D: ImplicitKernels>(device: &D, model: &Model, n: usize) -> [Vec<f64>; 3] {
    let mut cells = LocalStates::new(device, model, n, false).unwrap();
    let v = Buffer::from_vec(device, voltages(model, n)).unwrap();
    let [mut current, mut tangent] = [(); 2].map(|()| Buffer::zeros(device, n).unwrap());
    for _ in 0..2 {
        assert_eq!(cells.solve(&v, [&mut current, &mut tangent], 0.2).unwrap(), 0);
        cells.accept();
    }
    [current.to_host().unwrap(), tangent.to_host().unwrap(), cells.to_host().unwrap()]
}

/// A point without a solution is counted, on every device.
pub fn points_without_a_solution_are_counted<D: ImplicitKernels>(device: &D, _: &Scope) {
    let text = "
name = 'quadratic'
[voltage]
name = 'V'
initial = 0
current = 'V + w'
[states.w]
initial = 0
rate = '1 + V*w^2'
";
    let model = Model::from_toml(text).unwrap();
    let mut cells = LocalStates::new(device, &model, 67, false).unwrap();
    // With dt = 1 there is a solution for V up to a quarter.
    let voltages: Vec<f64> = (0..67).map(|i| if i % 5 == 2 { 0.5 } else { 0.2 }).collect();
    let v = Buffer::from_vec(device, voltages).unwrap();
    let [mut current, mut tangent] = [(); 2].map(|()| Buffer::zeros(device, 67).unwrap());
    assert_eq!(cells.solve(&v, [&mut current, &mut tangent], 1.0).unwrap(), 13);
}
