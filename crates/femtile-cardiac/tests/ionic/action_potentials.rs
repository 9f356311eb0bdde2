//! Action potentials of the built-in models.

use femtile::Cpu;
use femtile::device::Buffer;
use femtile_cardiac::ionic::{GatePrecision, Ionic, LocalScheme, Model, Points};

use crate::beat::{Beat, Pacing, pace};

/// Two beats a second apart, each after a stimulus of 52 mV/ms for 1 ms.
const SECOND: Pacing = Pacing {
    scheme: LocalScheme::RushLarsen,
    gates: GatePrecision::Double,
    dt: 0.05,
    stimulus: 52.0,
    duration: 1.0,
    cycle: 1000.0,
    beats: 2,
};

fn beat(name: &str) -> Beat {
    pace(&Model::named(name).unwrap(), SECOND, |_| ())
}

#[track_caller]
fn within(value: f64, [low, high]: [f64; 2]) {
    assert!(low <= value && value <= high, "{value} not in {low}..{high}");
}

#[test]
fn ventricular_cells_have_the_published_action_potentials() {
    // [tentusscher2006]: durations of epicardial and endocardial cells near 300 ms, of midmyocardial cells near 400 ms.
    for (variant, duration) in [("epi", [295.0, 315.0]), ("endo", [290.0, 310.0]), ("m", [380.0, 405.0])] {
        let beat = beat(&format!("ten-tusscher-panfilov-2006:{variant}"));
        println!("{variant}: {:.1} {:.1} {:.1}", beat.rest(), beat.peak(), beat.apd90());
        within(beat.rest(), [-87.0, -85.0]);
        within(beat.peak(), [25.0, 45.0]);
        within(beat.apd90(), duration);
    }
}

#[test]
fn atrial_cells_have_the_published_action_potential() {
    // [courtemanche1998]: rest near -81 mV, duration to 90 % of repolarization near 300 ms.
    let beat = beat("courtemanche-ramirez-nattel-1998");
    println!("atrial: {:.1} {:.1} {:.1}", beat.rest(), beat.peak(), beat.apd90());
    within(beat.rest(), [-82.0, -80.5]);
    within(beat.peak(), [20.0, 35.0]);
    within(beat.apd90(), [285.0, 310.0]);
}

#[test]
fn both_orders_give_the_same_beat() {
    let model = Model::named("ten-tusscher-panfilov-2006").unwrap();
    let of = |scheme| pace(&model, Pacing { scheme, beats: 1, ..SECOND }, |_| ()).apd90();
    let [first, second] = [LocalScheme::RushLarsen, LocalScheme::RushLarsen2].map(of);
    assert!((first - second).abs() < 0.5, "{first} {second}");
}

#[test]
fn gates_of_single_precision_give_nearly_the_same_beat() {
    for name in ["ten-tusscher-panfilov-2006", "courtemanche-ramirez-nattel-1998"] {
        let model = Model::named(name).unwrap();
        let of = |gates| pace(&model, Pacing { gates, beats: 1, ..SECOND }, |_| ());
        let (double, single) = (of(GatePrecision::Double), of(GatePrecision::Single));
        let apd = (double.apd90() - single.apd90()).abs();
        let differences = double.voltages.iter().zip(&single.voltages).map(|(a, b)| (a - b).abs());
        let largest = differences.fold(0.0, f64::max);
        println!("{name}: duration differs by {apd} ms, voltages by up to {largest} mV");
        assert!(0.0 < largest && largest < 0.005 && apd < 0.06, "{name}: {apd} {largest}");
    }
}

#[test]
fn aliev_panfilov_rises_from_zero_to_one() {
    let pacing =
        Pacing { scheme: LocalScheme::RushLarsen2, dt: 0.01, stimulus: 0.2, cycle: 60.0, beats: 4, ..SECOND };
    let beat = pace(&Model::named("aliev-panfilov").unwrap(), pacing, |_| ());
    within(beat.rest(), [0.0, 1e-3]);
    within(beat.peak(), [0.96, 1.02]);
    within(beat.above(0.1), [18.0, 24.0]);
}

#[test]
fn mitchell_schaeffer_has_its_asymptotic_duration_where_its_currents_are_fast() {
    // [mitchell2003]: tau_close log(1/h_min) with h_min = 4 tau_in/tau_out, as both tend to zero.
    let model = Model::named("mitchell-schaeffer").unwrap();
    let expected = 150.0 * 5.0_f64.ln();
    let mut errors = Vec::new();
    for scale in [0.2, 0.04] {
        let model = model.with_constant("tau_in", 0.3 * scale).unwrap();
        let model = model.with_constant("tau_out", 6.0 * scale).unwrap();
        let pacing = Pacing {
            dt: 0.04 * scale,
            stimulus: 0.2 / scale,
            duration: 2.0 * scale,
            cycle: 400.0,
            beats: 1,
            ..SECOND
        };
        errors.push(pace(&model, pacing, |_| ()).above(0.13) - expected);
    }
    assert!(0.0 < errors[1] && errors[1] < 0.5 * errors[0] && errors[1] < 0.05 * expected, "{errors:?}");
}

#[test]
fn fitzhugh_nagumo_rests_and_oscillates_under_a_constant_current() {
    let cpu = Cpu::new(1).unwrap();
    let model = Model::named("fitzhugh-nagumo").unwrap();
    // Between the two Hopf points at currents of 0.33 and 1.42 the state of rest is unstable.
    let spikes = [0.0, 0.5, 1.6].map(|current| {
        let mut cell = Ionic::new(&cpu, &model, LocalScheme::RushLarsen2, Points::all(1)).unwrap();
        let mut v = Buffer::from_vec(&cpu, vec![model.rest_voltage()]).unwrap();
        let stimulus = Buffer::from_vec(&cpu, vec![current]).unwrap();
        let (mut spikes, mut before) = (0, v.as_slice()[0]);
        for step in 0..10_000 {
            cell.advance(&mut v, Some(&stimulus), 0.04).unwrap();
            // The first rise may be that to a new state of rest.
            spikes += usize::from(step > 1000 && before < 1.0 && v.as_slice()[0] >= 1.0);
            before = v.as_slice()[0];
        }
        if current == 0.0 {
            assert!((before - model.rest_voltage()).abs() < 1e-12, "{before}");
        }
        spikes
    });
    assert!(spikes[0] == 0 && spikes[1] > 5 && spikes[2] == 0, "{spikes:?}");
}

#[test]
fn gates_stay_between_zero_and_one_and_concentrations_positive() {
    for name in Model::names() {
        let model = Model::named(name).unwrap();
        let physical = model.units().is_physical();
        let pacing = if physical {
            Pacing { dt: 0.05, beats: 1, ..SECOND }
        } else {
            Pacing { dt: 0.05, stimulus: 0.5, cycle: 60.0, beats: 2, ..SECOND }
        };
        pace(&model, pacing, |cell| {
            for (i, state) in model.states().iter().enumerate() {
                let value = cell.states().parts().1.as_slice()[i * cell.points().stride()];
                let is_sound =
                    if state.is_gate() { (0.0..=1.0).contains(&value) } else { value > 0.0 || !physical };
                assert!(is_sound, "{name}: {} = {value}", state.name());
            }
        });
    }
}
