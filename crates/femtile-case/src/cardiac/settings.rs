//! From the sections of a case file to the problem that the library solves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::time::Duration;

use femtile_cardiac::ionic::{GatePrecision, LocalScheme, Model};
use femtile_cardiac::monodomain::{
    AdaptiveSteps, Checkpoint, CheckpointInterval, Monodomain, Scheme, Splitting,
};
use femtile_cardiac::stimulus::{Place, Pulses};
use femtile_cardiac::{ActivationConfig, CardiacError, Stimulus};
use femtile_mesh::Mesh;
use femtile_solve::{Key, PreconditionerConfig, SolverConfig, below};
use femtile_time::implicit::CheckpointError;
use sha2::{Digest, Sha256};

use crate::file::{GatesName, IntegrationName, MembraneSection, StimulusSection, TimeMethod};
use crate::series::checkpoint_path;
use crate::{Case, CaseError};

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

/// Makes the problem of a case, but for its frames.
pub(super) fn monodomain<'m>(
    case: &Case,
    mesh: &'m Mesh,
    fingerprint: [u8; 32],
    resumed: Option<Checkpoint>,
) -> Result<Monodomain<'m>, CaseError> {
    let Some(membrane) = &case.file.membrane else {
        return Err(case.wrong(&["membrane".into()], "the section is missing"));
    };
    let path: Vec<Key> = vec!["membrane".into()];
    let model = model(case, (&membrane.model, &membrane.constants), &path)?;
    let activation = activation(case, &model);
    let mut problem = tissue(Monodomain::new(mesh, model.clone()), membrane, &model);
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
    problem = in_time(problem, case, fingerprint);
    Ok(match resumed {
        Some(checkpoint) => problem.resume(checkpoint),
        None => problem,
    })
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

fn in_time<'m>(problem: Monodomain<'m>, case: &Case, fingerprint: [u8; 32]) -> Monodomain<'m> {
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
    if let Some(section) = &time.checkpoint {
        let interval = match (section.steps, section.minutes) {
            (Some(steps), _) => CheckpointInterval::Steps(steps),
            (None, minutes) => {
                CheckpointInterval::Time(Duration::from_secs_f64(60.0 * minutes.unwrap_or(1.0)))
            }
        };
        problem = problem.checkpoints(interval, fingerprint);
    }
    problem
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
    let found = match name.ends_with(".toml") || name.contains(".toml:") {
        false => Model::named(name),
        true => {
            let (file, variant) = match name.split_once(".toml:") {
                Some((stem, variant)) => (format!("{stem}.toml"), Some(variant)),
                None => (name.to_owned(), None),
            };
            Model::read(&case.folder().join(file), variant)
        }
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

/// Returns the settings of the solve; the few iterations of a step pay for no set-up, so Jacobi replaces `auto`.
pub(super) fn solver(config: &SolverConfig) -> SolverConfig {
    let preconditioner = match &config.preconditioner {
        PreconditionerConfig::Auto => PreconditionerConfig::Jacobi,
        other => other.clone(),
    };
    SolverConfig { preconditioner, ..config.clone() }
}

/// Returns the keys of a setting of the library.
pub(super) fn path_of(field: &str) -> Vec<Key> {
    let keys: &[&str] = match field {
        "surface_to_volume" => &["membrane", "surface_to_volume"],
        "capacitance" => &["membrane", "capacitance"],
        "tissue" => &["membrane", "region"],
        "threshold" => &["activation", "threshold"],
        "repolarised" => &["activation", "repolarised"],
        "electrode" => &["ecg", "electrodes"],
        "bath_conductivity" => &["ecg", "conductivity"],
        "stimulus" | "strength" | "duration" | "count" | "period" => &["stimulus"],
        "tolerance" => &["time", "tolerance"],
        "shortest_step" => &["time", "shortest_step"],
        "end" => &["time", "end"],
        "step" => &["time", "step"],
        "theta" => &["time", "theta"],
        "restart" => &["time", "restart"],
        "solve_error" => &["solver", "tolerance"],
        _ => &["membrane"],
    };
    keys.iter().map(|&key| key.into()).collect()
}

/// Returns a hash of all that a checkpoint depends on: the version, the mesh, and the case but for its end, its output and
/// the device.
pub(super) fn fingerprint(case: &Case, mesh: &Mesh) -> [u8; 32] {
    let mut sum = Sha256::new();
    sum.update(env!("CARGO_PKG_VERSION"));
    let file = &case.file;
    let numerics = (&file.equation, &file.membrane, &file.stimulus, &file.activation, &file.region);
    sum.update(serde_json::to_vec(&numerics).unwrap_or_default());
    sum.update(serde_json::to_vec(&file.solver.preconditioner).unwrap_or_default());
    if let Some(time) = &file.time {
        let numerics = (time.method, time.start, time.step, time.theta, time.tolerance);
        sum.update(serde_json::to_vec(&numerics).unwrap_or_default());
    }
    mesh.points.iter().flatten().for_each(|x| sum.update(x.to_le_bytes()));
    mesh.cells.iter().for_each(|node| sum.update(node.to_le_bytes()));
    sum.finalize().into()
}

/// Reads the checkpoint of a case that is to go on from one.
pub(super) fn checkpoint(case: &Case, fingerprint: [u8; 32]) -> Result<Option<Checkpoint>, CaseError> {
    if !case.file.time.as_ref().is_some_and(|time| time.restart) {
        return Ok(None);
    }
    let path = checkpoint_path(case);
    let wrong = |message: String| {
        case.wrong(&["time".into(), "restart".into()], format!("{}: {message}", path.display()))
    };
    let file =
        File::open(&path).map_err(|error| wrong(format!("{error}; run the case without `restart` first")))?;
    let checkpoint = Checkpoint::read(&mut BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
    match checkpoint.fingerprint == fingerprint {
        true => Ok(Some(checkpoint)),
        false => Err(wrong(CheckpointError::Other("another mesh or another case").to_string())),
    }
}
