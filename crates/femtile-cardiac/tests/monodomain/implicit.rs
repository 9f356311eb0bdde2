//! The fully implicit scheme: formats of its tangent and times of its parts.

use femtile::solve::{MatrixFormat, SolverConfig};
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::Scheme;
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, MonodomainSolution, Stimulus};

use crate::{on_cpu, strip};

/// A front that travels along a strip.
fn front(config: &SolverConfig, timed: bool) -> MonodomainSolution {
    let mesh = strip(53, 0.5);
    let stimulus =
        Stimulus { place: Place::Where("x < 1.1".into()), strength: 1.0, pulses: Pulses::single(0.0, 1.0) };
    Monodomain::new(&mesh, Model::named("aliev-panfilov").unwrap())
        .stimulus(stimulus)
        .scheme(Scheme::Implicit)
        .times(0.0, 8.0, 0.1)
        .timed(timed)
        .solve(config)
        .unwrap()
}

#[test]
fn slices_of_rows_change_implicit_steps_by_rounding_only() {
    let [rows, slices] = [MatrixFormat::Csr, MatrixFormat::EllWarp]
        .map(|format| front(&SolverConfig { format, ..on_cpu(1) }, false));
    assert_eq!(rows.format, "CSR");
    assert!(slices.format.starts_with("K1"), "{}", slices.format);
    assert_eq!(rows.outcome.newton, slices.outcome.newton);
    let difference = rows.potential.iter().zip(&slices.potential).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f64::max) < 1e-9);
    assert!(rows.potential.iter().any(|v| *v > 0.5) && rows.potential.iter().any(|v| *v < 0.1));
}

#[test]
fn measuring_parts_of_steps_leaves_the_solution_as_it_is() {
    let [plain, timed] = [false, true].map(|timed| front(&on_cpu(1), timed));
    assert_eq!(plain.potential, timed.potential);
    assert!(plain.outcome.parts.is_none());
    let (parts, whole) = (timed.outcome.parts.unwrap(), timed.outcome.seconds);
    let all = [parts.membrane, parts.assembly_products, parts.assembly_rest, parts.solver];
    assert!(all.iter().all(|seconds| *seconds > 0.0), "{parts:?}");
    assert!(all.iter().sum::<f64>() <= whole, "{parts:?} {whole}");
    assert!((parts.assembly() + parts.solver - all.iter().sum::<f64>()).abs() < 1e-12);
}
