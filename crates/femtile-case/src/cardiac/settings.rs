//! From the sections of a case file to the problem that the library solves.

use std::collections::BTreeMap;
use std::time::Duration;

use femtile_cardiac::ionic::{GatePrecision, LocalScheme, Model};
use femtile_cardiac::monodomain::{
    AdaptiveSteps, Checkpoint, CheckpointInterval, Monodomain, Scheme, Splitting,
};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{ActivationConfig, CardiacError, Stimulus};
use femtile_mesh::Mesh;
use femtile_solve::{Key, PreconditionerConfig, SolverConfig, below};

use crate::file::{GatesName, IntegrationName, MembraneSection, SolverSection, StimulusSection, TimeMethod};
use crate::{Case, CaseError, restart};

/// Membrane of a volume of ventricular tissue, in 1/mm, and capacitance of a surface of membrane, in µF/mm²,
/// `[niederer2011]`, Table 3.
const SURFACE_TO_VOLUME: f64 = 140.0;
const CAPACITANCE: f64 = 0.01;

/// Returns the scheme of a case.
pub(super) fn scheme(case: &Case) -> Scheme {
    match case.file.time.as_ref().map(|time| time.method) {
        Some(TimeMethod::Strang) => Scheme::Splitting(Splitting::Strang),
        Some(TimeMethod::ImplicitEuler) => Scheme::Implicit,
        _ => Scheme::Splitting(Splitting::Godunov),
    }
}

/// Makes the problem that `begin` starts on the mesh of a case, except its frames and checkpoints.
pub(super) fn monodomain<'m>(
    case: &Case,
    begin: impl FnOnce(Model) -> Monodomain<'m>,
) -> Result<Monodomain<'m>, CaseError> {
    let Some(membrane) = &case.file.membrane else {
        return Err(case.wrong(&["membrane".into()], "the section is missing"));
    };
    let path: Vec<Key> = vec!["membrane".into()];
    let model = model(case, (&membrane.model, &membrane.constants), &path)?;
    let activation = activation(case, &model);
    let mut problem = tissue(begin(model.clone()), membrane, &model);
    let tolerance = case.file.solver.tolerance;
    if tolerance != SolverSection::default().tolerance {
        let range = problem.amplitude();
        problem = problem.solve_error(tolerance * range);
    }
    problem = problem.conductivity(&case.file.equation.sigma).activation(activation);
    for (i, region) in membrane.region.iter().enumerate() {
        let path = below(&below(&path, "region"), i);
        let model = self::model(case, (&region.model, &region.constants), &path)?;
        problem = problem.tissue(region.cells.clone(), model);
    }
    for (i, section) in case.file.stimulus.iter().enumerate() {
        problem = problem.stimulus(stimulus(case, section, i)?);
    }
    if let Some(ecg) = &case.file.ecg {
        problem = problem.bath_conductivity(ecg.conductivity);
        for (name, position) in &ecg.electrodes {
            problem = problem.electrode(name.clone(), *position);
        }
    }
    Ok(in_time(problem, case))
}

/// Adds checkpoints to a problem, and a restart from one.
pub(super) fn with_checkpoints<'m>(
    mut problem: Monodomain<'m>,
    case: &Case,
    fingerprint: [u8; 32],
    resumed: Option<Checkpoint>,
) -> Monodomain<'m> {
    if let Some(section) = case.file.time.as_ref().and_then(|time| time.checkpoint.as_ref()) {
        let interval = match (section.steps, section.minutes) {
            (Some(steps), _) => CheckpointInterval::Steps(steps),
            (None, minutes) => {
                CheckpointInterval::Time(Duration::from_secs_f64(60.0 * minutes.unwrap_or(1.0)))
            }
        };
        problem = problem.checkpoints(interval, fingerprint);
    }
    match resumed {
        Some(checkpoint) => problem.resume(checkpoint),
        None => problem,
    }
}

fn tissue<'m>(problem: Monodomain<'m>, section: &MembraneSection, model: &Model) -> Monodomain<'m> {
    let (surface_to_volume, capacitance) = match model.units().is_physical() {
        true => (SURFACE_TO_VOLUME, CAPACITANCE),
        false => (1.0, 1.0),
    };
    let (surface_to_volume, capacitance) =
        (section.surface_to_volume.unwrap_or(surface_to_volume), section.capacitance.unwrap_or(capacitance));
    let gates = match section.gates {
        GatesName::Double => GatePrecision::Double,
        GatesName::Single => GatePrecision::Single,
    };
    problem.membrane(surface_to_volume, capacitance).gates(gates).local_scheme(match section.integration {
        IntegrationName::RushLarsen => LocalScheme::RushLarsen,
        IntegrationName::RushLarsen2 => LocalScheme::RushLarsen2,
        IntegrationName::Explicit => LocalScheme::Explicit,
    })
}

fn in_time<'m>(problem: Monodomain<'m>, case: &Case) -> Monodomain<'m> {
    let Some(time) = &case.file.time else { return problem };
    let length = time.end - time.start;
    let step = match (time.step, time.steps, time.first_step) {
        (Some(step), ..) => step,
        (None, Some(steps), _) => length / steps.max(1) as f64,
        (None, None, first) => first.unwrap_or(1e-4 * length),
    };
    let mut problem = problem.times(time.start, time.end, step).scheme(scheme(case)).mass(time.mass.into());
    if let Some(tolerance) = time.tolerance {
        let shortest = time.shortest_step.unwrap_or(1e-9 * length);
        let longest = time.longest_step.unwrap_or(0.1 * length);
        problem = problem.adaptive(AdaptiveSteps { tolerance, shortest, longest });
    }
    if let Some(theta) = time.theta {
        problem = problem.theta(theta);
    }
    problem
}

/// Returns whether a model is the file of this name: TOML, or EasyML.
fn is_file(name: &str) -> bool {
    [".toml", ".model"].iter().any(|ending| name.ends_with(ending))
}

/// Reads a model: a built-in one, or a file.
fn model(
    case: &Case,
    (name, constants): (&str, &BTreeMap<String, f64>),
    path: &[Key],
) -> Result<Model, CaseError> {
    let wrong = |key: &str, error: CardiacError| match error {
        CardiacError::Setting { message, .. } => case.wrong(&below(path, key), message),
        other => case.wrong(&below(path, key), other.to_string()),
    };
    let (file, variant) = match name.rsplit_once(':') {
        Some((file, variant)) if is_file(file) => (file, Some(variant)),
        _ => (name, None),
    };
    let found = match is_file(file) {
        true => Model::read(&case.folder().join(file), variant),
        false => Model::named(name),
    };
    let mut model = found.map_err(|error| wrong("model", error))?;
    for (name, &value) in constants {
        model = model.with_constant(name, value).map_err(|error| wrong("constants", error))?;
    }
    Ok(model)
}

fn activation(case: &Case, model: &Model) -> ActivationConfig {
    let own = ActivationConfig::of_model(model);
    match &case.file.activation {
        None => own,
        Some(section) => ActivationConfig {
            threshold: section.threshold.unwrap_or(own.threshold),
            repolarised: section.repolarised,
            ..own
        },
    }
}

fn stimulus(case: &Case, section: &StimulusSection, i: usize) -> Result<Stimulus, CaseError> {
    let StimulusSection { r#box, sphere, tag, r#where, strength, start, duration, period, count } = section;
    let place = match (r#box, sphere, tag, r#where) {
        (Some([lower, upper]), None, None, None) => Place::Box {
            lower: std::array::from_fn(|a| lower[a].min(upper[a])),
            upper: std::array::from_fn(|a| lower[a].max(upper[a])),
        },
        (None, Some(ball), None, None) => Place::Sphere { centre: ball.centre, radius: ball.radius },
        (None, None, Some(tag), None) => Place::Tag(tag.clone()),
        (None, None, None, Some(comparison)) => Place::Where(comparison.clone()),
        _ => {
            let message = "give exactly one of `box`, `sphere`, `tag` and `where`";
            return Err(case.wrong(&["stimulus".into(), i.into()], message));
        }
    };
    let pulses = match count {
        1 => Pulses::single(*start, *duration),
        _ => Pulses::train(*start, *duration, period.unwrap_or(f64::NAN), *count),
    };
    Ok(Stimulus { place, strength: *strength, pulses })
}

/// Returns the settings of the solve. With few iterations per step a setup does not pay, so Jacobi replaces
/// `auto`.
pub(super) fn solver(config: &SolverConfig) -> SolverConfig {
    let preconditioner = match &config.preconditioner {
        PreconditionerConfig::Auto => PreconditionerConfig::Jacobi,
        other => other.clone(),
    };
    SolverConfig { preconditioner, ..config.clone() }
}

/// Returns the keys of a setting of an entry of a list.
pub(super) fn path_of_entry(case: &Case, (list, number, field): (&str, usize, &str)) -> Vec<Key> {
    if list == "tissue" {
        // The first tissue is that of all cells.
        let region = below(&["membrane".into(), "region".into()], number.saturating_sub(1));
        return below(&region, field);
    }
    let place = case.file.stimulus.get(number).map(|section| match section {
        StimulusSection { r#box: Some(_), .. } => "box",
        StimulusSection { sphere: Some(_), .. } => "sphere",
        StimulusSection { tag: Some(_), .. } => "tag",
        _ => "where",
    });
    let key = if field == "place" { place.unwrap_or(field) } else { field };
    below(&below(&["stimulus".into()], number), key)
}

/// Returns the keys of a setting of the library.
pub(super) fn path_of(field: &str) -> Vec<Key> {
    let keys: &[&str] = match field {
        "surface_to_volume" => &["membrane", "surface_to_volume"],
        "conductivity" => &["equation", "sigma"],
        "capacitance" => &["membrane", "capacitance"],
        "tissue" => &["membrane", "region"],
        "threshold" => &["activation", "threshold"],
        "repolarised" => &["activation", "repolarised"],
        "electrode" => &["ecg", "electrodes"],
        "bath_conductivity" => &["ecg", "conductivity"],
        "tolerance" => &["time", "tolerance"],
        "shortest_step" => &["time", "shortest_step"],
        "end" => &["time", "end"],
        "step" => &["time", "step"],
        "theta" => &["time", "theta"],
        "mass" => &["time", "mass"],
        "gates" => &["membrane", "gates"],
        "restart" => &["time", "restart"],
        "solve_error" => &["solver", "tolerance"],
        _ => &["membrane"],
    };
    keys.iter().map(|&key| key.into()).collect()
}

/// Returns hashes of all that a checkpoint depends on: all of the case but its end, its output and the device, and the
/// descriptions of the models.
pub(super) fn fingerprint(case: &Case, mesh: &Mesh, problem: &Monodomain<'_>) -> [u8; 32] {
    let file = &case.file;
    let models: Vec<&str> = problem.tissues().iter().map(|tissue| tissue.model.to_toml()).collect();
    let of_problem = (&file.equation, &file.membrane, models, &file.stimulus, &file.activation, &file.region);
    let in_time = file.time.as_ref().map(|time| {
        let length = (time.step, time.tolerance);
        (time.method, time.start, length, time.theta, time.mass)
    });
    restart::fingerprint(mesh, &of_problem, &(in_time, &file.solver.preconditioner, file.solver.tolerance))
}

/// Reads the checkpoint of a restarted case.
pub(super) fn checkpoint(case: &Case, fingerprint: [u8; 32]) -> Result<Option<Checkpoint>, CaseError> {
    let others = [
        "another equation, model, stimulus or activation",
        "another method, start, step, mass matrix, tolerance or preconditioner",
    ];
    restart::checkpoint(case, fingerprint, others, |from| {
        let state = Checkpoint::read(from)?;
        let fingerprint = state.fingerprint;
        Ok((state, fingerprint))
    })
}
