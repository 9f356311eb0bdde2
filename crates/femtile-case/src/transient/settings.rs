//! From the sections of a case file to the run that the library carries out.

use std::sync::Arc;
use std::time::Duration;

use femtile_mesh::Mesh;
use femtile_solve::{CheckpointInterval, MassMatrix, Poisson, TimeStepping, Transient};
use femtile_time::implicit::{Checkpoint, Scheme, Steps, Tolerance};

use crate::file::{OfUnknowns, TimeMethod, TimeSection, Value};
use crate::{Case, CaseError, restart};

/// Returns the scheme of a case.
pub(crate) fn scheme(case: &Case) -> Scheme {
    match case.file.time.as_ref().map(|time| time.method) {
        Some(TimeMethod::ImplicitEuler) => Scheme::ImplicitEuler,
        Some(TimeMethod::Sdirk2) => Scheme::Sdirk2,
        Some(TimeMethod::CrankNicolson) => Scheme::CrankNicolson,
        _ => Scheme::Bdf2,
    }
}

/// Makes the run of a case from the problem on its mesh, except its frames.
pub(super) fn transient<'m>(
    case: &Case,
    begun: Poisson<'m>,
    fingerprint: [u8; 32],
    resumed: Option<Checkpoint>,
) -> Result<Transient<'m>, CaseError> {
    let equation = &case.file.equation;
    let [diffusion, lambda] = case.conduction_and_reaction();
    let problem = case.stated(begun, [&diffusion, &lambda])?;
    let capacity =
        equation.capacity.as_ref().and_then(OfUnknowns::one).cloned().unwrap_or(Value::Number(1.0));
    let mass = case.file.time.as_ref().map_or_else(MassMatrix::default, |time| time.mass.into());
    let transient = Transient::new(problem, &case.initial()).capacity(&capacity).mass(mass);
    Ok(transient.stepping(stepping(case, fingerprint, resumed)))
}

/// Returns how the time of a case is divided, except its frames.
pub(crate) fn stepping(case: &Case, fingerprint: [u8; 32], resumed: Option<Checkpoint>) -> TimeStepping {
    let stepping =
        TimeStepping { scheme: scheme(case), resume: resumed.map(Arc::new), ..TimeStepping::default() };
    let Some(time) = &case.file.time else { return stepping };
    let checkpoints = time.checkpoint.as_ref().map(|section| {
        let interval = match (section.steps, section.minutes) {
            (Some(steps), _) => CheckpointInterval::Steps(steps),
            (None, minutes) => {
                CheckpointInterval::Time(Duration::from_secs_f64(60.0 * minutes.unwrap_or(1.0)))
            }
        };
        (interval, fingerprint)
    });
    TimeStepping { start: time.start, end: time.end, steps: steps(time), checkpoints, ..stepping }
}

/// Returns what to say of a diffusion that differs between tags without a capacity, which of heat is the diffusivity by mistake.
pub(super) fn warning_of_diffusivities(case: &Case) -> Option<String> {
    let equation = &case.file.equation;
    let Some(Value::ByTag { by_tag, default }) = &equation.diffusion else { return None };
    let mut values = by_tag.values().chain(default.as_deref());
    let first = values.next()?;
    let differs = values.any(|value| value != first);
    (equation.capacity.is_none() && differs).then(|| {
        "`diffusion` differs between tags, and `capacity` is 1: right where `diffusion` times the gradient is the flux, as of a \
         concentration (write `capacity = 1`); of heat give the conductivity k as `diffusion` and ρc as `capacity`, as k/(ρc) is \
         wrong between materials"
            .into()
    })
}

fn steps(time: &TimeSection) -> Steps {
    let length = time.end - time.start;
    match (time.steps, time.tolerance) {
        (Some(steps), _) => Steps::Fixed(steps),
        (None, tolerance) => Steps::Adaptive {
            tolerance: Tolerance {
                relative: tolerance.unwrap_or(1e-3),
                absolute: time.absolute_tolerance.unwrap_or(0.0),
            },
            first: time.first_step,
            shortest: time.shortest_step.unwrap_or(1e-9 * length),
            longest: time.longest_step.unwrap_or(0.1 * length),
        },
    }
}

/// Returns hashes of all that a checkpoint depends on: all of the case but its end, its output and the device.
pub(crate) fn fingerprint(case: &Case, mesh: &Mesh) -> [u8; 32] {
    let (file, solver) = (&case.file, &case.file.solver);
    let conditions = (&file.boundary, &file.source, &file.periodic, &file.tie, &file.interface);
    let problem = (&file.unknown, &file.equation, conditions, &file.space, &file.region);
    let in_time = file.time.as_ref().map(|time| {
        let tolerances = (time.tolerance, time.absolute_tolerance);
        (time.method, time.start, tolerances, time.mass)
    });
    let nonlinear = (solver.nonlinear, solver.nonlinear_tolerance, solver.nonlinear_iterations);
    restart::fingerprint(mesh, &problem, &(solver.method, solver.tolerance, nonlinear, in_time))
}

/// Reads the checkpoint of a restarted case.
pub(crate) fn checkpoint(case: &Case, fingerprint: [u8; 32]) -> Result<Option<Checkpoint>, CaseError> {
    let others = [
        "another equation, boundary or space",
        "another method, start or tolerance in time or of the solver",
    ];
    restart::checkpoint(case, fingerprint, others, |from| {
        let state = Checkpoint::read(from)?;
        let fingerprint = state.fingerprint;
        Ok((state, fingerprint))
    })
}
