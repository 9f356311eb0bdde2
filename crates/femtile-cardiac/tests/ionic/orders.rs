//! Orders of the schemes.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile_cardiac::ionic::{GatePrecision, Ionic, LocalScheme, Model, Points};

use crate::beat::{Pacing, pace};

/// Voltage and states.
type Variables = Vec<f64>;

/// Runs from a state with constant steps and returns all variables at the end.
fn run(model: &Model, scheme: LocalScheme, start: &Variables, steps: usize, time: f64) -> Variables {
    let cpu = Cpu::new(1).unwrap();
    let mut cell = Ionic::new(&cpu, model, scheme, Points::all(1)).unwrap();
    let stride = cell.points().stride();
    let mut states = cell.states().to_host().unwrap();
    for (i, &value) in start[1..].iter().enumerate() {
        states[i * stride] = value;
    }
    cell.set_states(&states).unwrap();
    let mut v = Buffer::from_vec(&cpu, vec![start[0]]).unwrap();
    for _ in 0..steps {
        cell.advance(&mut v, None, time / steps as f64).unwrap();
    }
    let states = cell.states().parts().1.as_slice();
    [v.as_slice()[0]].into_iter().chain((0..model.n_states()).map(|i| states[i * stride])).collect()
}

/// Largest difference of a variable, relative to its size.
fn difference(a: &Variables, b: &Variables) -> f64 {
    let largest = a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs());
    largest.fold(0.0, f64::max)
}

/// The order that halving the step shows.
fn order(model: &Model, scheme: LocalScheme, start: &Variables, steps: usize, time: f64) -> f64 {
    let exact = run(model, LocalScheme::RushLarsen2, start, 64 * steps, time);
    let [coarse, fine] = [1, 2].map(|k| difference(&run(model, scheme, start, k * steps, time), &exact));
    (coarse / fine).log2()
}

#[test]
fn steps_have_their_orders() {
    let epi = Model::named("ten-tusscher-panfilov-2006").unwrap();
    // The plateau of an action potential, where no formula has a kink.
    let pacing = Pacing {
        scheme: LocalScheme::RushLarsen,
        gates: GatePrecision::Double,
        dt: 0.02,
        stimulus: 52.0,
        duration: 1.0,
        cycle: 30.0,
        beats: 1,
    };
    let beat = pace(&epi, pacing, |_| ());
    let stride = beat.cell.points().stride();
    let states = beat.cell.states().parts().1.as_slice().chunks(stride).map(|row| row[0]);
    let plateau = [*beat.voltages.last().unwrap()].into_iter().chain(states).collect();
    let small = |name: &str, start: &[f64]| (Model::named(name).unwrap(), start.to_vec(), 64, 4.0);
    let cases = [
        (epi, plateau, 100, 10.0),
        small("aliev-panfilov", &[0.4, 0.1]),
        small("fitzhugh-nagumo", &[0.5, -0.3]),
        small("mitchell-schaeffer", &[0.6, 0.8]),
    ];
    for (model, start, steps, time) in cases {
        for (scheme, expected) in
            [(LocalScheme::RushLarsen, 1.0), (LocalScheme::RushLarsen2, 2.0), (LocalScheme::Explicit, 1.0)]
        {
            let found = order(&model, scheme, &start, steps, time);
            assert!((found - expected).abs() < 0.12, "{}, {scheme:?}: {found}", model.name());
        }
    }
}

#[test]
fn gates_are_exact_at_a_fixed_voltage() {
    // Without currents the voltage stays, and a step of any length takes a gate to its exact value.
    let text = "
name = 'gates'
[voltage]
name = 'V'
initial = 0.3
current = '0*V'
[gates.a]
initial = 0.1
steady = 'V'
time_constant = '2 + V'
[gates.b]
initial = 0.9
alpha = '0.3*V'
beta = '1'
";
    let model = Model::from_toml(text).unwrap();
    for scheme in [LocalScheme::RushLarsen, LocalScheme::RushLarsen2] {
        let found = run(&model, scheme, &vec![0.3, 0.1, 0.9], 3, 3.0);
        let steady = 0.09 / 1.09;
        let expected =
            [0.3, 0.3 - 0.2 * (-3.0_f64 / 2.3).exp(), steady + (0.9 - steady) * (-3.0_f64 * 1.09).exp()];
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }
}
