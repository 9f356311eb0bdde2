//! A paced cable of Aliev–Panfilov tissue.

use femtile_cardiac::ionic::{LocalScheme, Model};
use femtile_cardiac::monodomain::{AdaptiveSteps, Frame, Observer, Scheme, Splitting, Stop};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{ActivationConfig, CardiacError, Monodomain, Stimulus};

use crate::{on_cpu, strip};

/// The largest potential in the middle of the cable from a time on.
struct Peak {
    from: f64,
    node: usize,
    largest: f64,
}

impl Observer for Peak {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), CardiacError> {
        if frame.time >= self.from {
            self.largest = self.largest.max(frame.potential[self.node]);
        }
        Ok(())
    }
}

/// Returns the duration of the fourth action potential in the middle of the cable at the threshold 0.1, and its peak.
fn fourth_beat(scheme: Scheme, step: f64, adaptive: Option<AdaptiveSteps>) -> [f64; 2] {
    let mesh = strip(97, 0.1);
    let stimulus = Stimulus {
        place: Place::Where("x < 0.45".into()),
        strength: 1.0,
        pulses: Pulses::train(0.0, 1.0, 60.0, 4),
    };
    let levels = ActivationConfig { threshold: 0.1, rest: 0.0, repolarised: 0.9 };
    let mut problem = Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .activation(levels)
        .scheme(scheme)
        .local_scheme(LocalScheme::RushLarsen)
        .frames((0..=480).map(|i| 0.5 * f64::from(i)))
        .times(0.0, 240.0, step);
    if let Some(steps) = adaptive {
        problem = problem.adaptive(steps);
    }
    let node = mesh.points.iter().position(|p| (p[0] - 4.8).abs() < 1e-9 && p[1] == 0.0).unwrap();
    let mut peak = Peak { from: 180.0, node, largest: 0.0 };
    let solution = problem.solve_with(&on_cpu(1), &mut peak, &mut femtile::solve::Silent).unwrap();
    assert_eq!(solution.outcome.stop, Stop::Finished);
    assert!(solution.activation.last[node] > 180.0, "the fourth beat has arrived");
    [solution.activation.duration[node], peak.largest]
}

#[test]
fn the_fourth_action_potential_of_a_paced_cable_lasts_22_units() {
    let steps = AdaptiveSteps { tolerance: 1e-3, shortest: 1e-6, longest: 1.0 };
    let splitting = Scheme::Splitting(Splitting::Godunov);
    for (scheme, step, adaptive) in
        [(splitting, 0.02, None), (Scheme::Implicit, 0.05, None), (Scheme::Implicit, 0.05, Some(steps))]
    {
        let [duration, peak] = fourth_beat(scheme, step, adaptive);
        assert!((21.0..23.0).contains(&duration), "{scheme:?} {adaptive:?}: {duration}");
        assert!((peak - 1.0).abs() < 0.02, "{scheme:?} {adaptive:?}: {peak}");
    }
}
