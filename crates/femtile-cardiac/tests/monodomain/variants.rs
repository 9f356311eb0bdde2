//! Options of splitting: the mass matrix, the numbers that gates are stored as.

use femtile::Mesh;
use femtile::solve::MassMatrix;
use femtile_cardiac::ionic::{GatePrecision, Model};
use femtile_cardiac::monodomain::{MonodomainSolution, Scheme};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, Stimulus};

use crate::{on_cpu, strip};

/// A paced strip of ventricular tissue, 5 mm long.
fn problem(mesh: &Mesh) -> Monodomain<'_> {
    let stimulus =
        Stimulus { place: Place::Where("x < 0.6".into()), strength: 50.0, pulses: Pulses::single(0.0, 2.0) };
    Monodomain::new(mesh, Model::named("ten-tusscher-panfilov-2006:epi").unwrap())
        .conductivity(0.1334)
        .membrane(140.0, 0.01)
        .stimulus(stimulus)
        .times(0.0, 15.0, 0.05)
}

fn solved(problem: &Monodomain<'_>) -> MonodomainSolution {
    problem.solve(&on_cpu(1)).unwrap()
}

/// The time at which the far end is activated.
fn arrival(spacing: f64, mass: MassMatrix) -> f64 {
    let mesh = strip((5.0 / spacing).round() as usize, spacing);
    let times = solved(&problem(&mesh).mass(mass)).activation.first;
    times.into_iter().fold(0.0, f64::max)
}

#[test]
fn on_coarse_meshes_fronts_are_fast_with_a_consistent_mass_and_slow_with_a_lumped_one() {
    let exact = arrival(0.05, MassMatrix::Consistent);
    let near = arrival(0.05, MassMatrix::Lumped);
    assert!(near > exact && near < 1.03 * exact, "{near} {exact}");
    let [consistent, lumped] = [MassMatrix::Consistent, MassMatrix::Lumped].map(|mass| arrival(0.25, mass));
    assert!(consistent < 0.99 * exact && lumped > 1.05 * exact, "{consistent} {lumped} {exact}");
}

#[test]
fn gates_of_32_bits_hardly_change_a_front() {
    let mesh = strip(20, 0.25);
    let [double, single] =
        [GatePrecision::Double, GatePrecision::Single].map(|gates| solved(&problem(&mesh).gates(gates)));
    let differences = double.potential.iter().zip(&single.potential).map(|(a, b)| (a - b).abs());
    let largest = differences.fold(0.0, f64::max);
    assert!(largest > 0.0 && largest < 0.01, "{largest} mV");
    let late = |solution: &MonodomainSolution| solution.activation.first.iter().copied().fold(0.0, f64::max);
    assert!((late(&double) - late(&single)).abs() < 1e-3);
}

#[test]
fn the_implicit_scheme_takes_neither() {
    let mesh = strip(4, 1.0);
    let problem = || {
        let model = Model::named("aliev-panfilov").unwrap();
        Monodomain::new(&mesh, model).times(0.0, 1.0, 0.1).scheme(Scheme::Implicit)
    };
    for (problem, word) in
        [(problem().mass(MassMatrix::Lumped), "mass"), (problem().gates(GatePrecision::Single), "gates")]
    {
        let error = problem.solve(&on_cpu(1)).unwrap_err().to_string();
        assert!(error.starts_with(word) && error.contains("take splitting"), "{error}");
    }
}
