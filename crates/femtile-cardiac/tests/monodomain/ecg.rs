//! Potentials at electrodes.

use femtile::mesh::generate::{BoxConfig, box_mesh};
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{Frame, Observer};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{CardiacError, Monodomain, Stimulus};

use crate::on_cpu;

#[derive(Default)]
struct Leads(Vec<(f64, Vec<f64>)>);

impl Observer for Leads {
    fn frame(&mut self, frame: &Frame<'_>) -> Result<(), CardiacError> {
        self.0.push((frame.time, frame.electrodes.clone()));
        Ok(())
    }
}

#[test]
fn a_front_is_positive_ahead_and_negative_behind() {
    let mesh =
        box_mesh(&BoxConfig { cells: [20, 2, 2], upper: [10.0, 1.0, 1.0], ..BoxConfig::default() }).unwrap();
    let stimulus =
        Stimulus { place: Place::Where("x < 1.1".into()), strength: 1.0, pulses: Pulses::single(0.0, 1.0) };
    let problem = Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .electrode("ahead", [30.0, 0.5, 0.5])
        .electrode("behind", [-20.0, 0.5, 0.5])
        .frames([0.0, 4.0])
        .times(0.0, 4.0, 0.05);
    let mut leads = Leads::default();
    let _ = problem.solve_with(&on_cpu(1), &mut leads, &mut femtile::solve::Silent).unwrap();
    let [(_, at_rest), (_, on_its_way)] = leads.0.as_slice() else { panic!("two frames") };
    assert!(at_rest.iter().all(|value| value.abs() < 1e-14), "{at_rest:?}");
    assert!(on_its_way[0] > 1e-6 && on_its_way[1] < -1e-6, "{on_its_way:?}");
}
