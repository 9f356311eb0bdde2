//! A beat of the idealised left ventricle with the model of Aliev and Panfilov, the simulation of `[wong2015]`, sections 2 and 8,
//! on our meshes: example 24 with edges of any length.

use femtile::Mesh;
use femtile::Value;
use femtile::mesh::generate::{VentricleConfig, ventricle};
use femtile_cardiac::ionic::Model;
use femtile_cardiac::monodomain::{AdaptiveSteps, Scheme};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{Monodomain, Stimulus};

use crate::BenchError;

/// The end of the beat, in units of time of the model, 12.9 ms each.
pub const END: f64 = 50.0;
/// The length of the first step.
const FIRST_STEP: f64 = 0.05;

/// The ventricle in tetrahedra with edges of about a length.
///
/// # Errors
/// [`BenchError::Mesh`] for a length that is not positive or too small.
pub fn mesh(h_mm: f64) -> Result<Mesh, BenchError> {
    Ok(ventricle(&VentricleConfig { h_mm })?)
}

/// A beat up to a time by the implicit scheme with adaptive steps, stimulated at the apex.
///
/// # Errors
/// [`BenchError::Cardiac`] when the model cannot be read.
pub fn beat(mesh: &Mesh, end: f64) -> Result<Monodomain<'_>, BenchError> {
    let conductivity = Value::Fibres {
        fibre: "fibre".into(),
        along: Box::new(Value::Number(3.0)),
        across: Box::new(Value::Number(0.8)),
        sheets: None,
    };
    let stimulus =
        Stimulus { place: Place::Where("z < -15".into()), strength: 0.6, pulses: Pulses::single(0.0, 1.0) };
    let steps = AdaptiveSteps { tolerance: 2e-3, shortest: 1e-6, longest: 5.0 };
    Ok(Monodomain::new(mesh, Model::named("aliev-panfilov")?)
        .conductivity(conductivity)
        .stimulus(stimulus)
        .scheme(Scheme::Implicit)
        .adaptive(steps)
        .times(0.0, end, FIRST_STEP))
}
