//! From the sections of a case file to the run that the library carries out.

use std::fs::File;
use std::io::BufReader;
use std::time::Duration;

use femtile_mesh::Mesh;
use femtile_solve::{CheckpointInterval, Transient};
use femtile_time::implicit::{Checkpoint, CheckpointError, Scheme, Steps, Tolerance};
use sha2::{Digest, Sha256};

use crate::file::{Entry, TimeMethod, TimeSection, Value};
use crate::series::checkpoint_path;
use crate::{Case, CaseError};

/// Returns the scheme of a case.
pub(super) fn scheme(case: &Case) -> Scheme {
    match case.file.time.as_ref().map(|time| time.method) {
        Some(TimeMethod::ImplicitEuler) => Scheme::ImplicitEuler,
        Some(TimeMethod::Sdirk2) => Scheme::Sdirk2,
        Some(TimeMethod::CrankNicolson) => Scheme::CrankNicolson,
        _ => Scheme::Bdf2,
    }
}

/// Makes the run of a case, but for its frames.
pub(super) fn transient<'m>(
    case: &Case,
    mesh: &'m Mesh,
    fingerprint: [u8; 32],
    resumed: Option<Checkpoint>,
) -> Result<Transient<'m>, CaseError> {
    let equation = &case.file.equation;
    let diffusion = equation.diffusion.clone().unwrap_or(Value::Number(1.0));
    let lambda = match &equation.reaction {
        None => Value::Number(0.0),
        Some(Entry::Number(number)) => Value::Number(-number),
        Some(Entry::Text(text)) => Value::Text(format!("-({text})")),
    };
    let problem = case.problem_with(mesh, [&diffusion, &lambda])?;
    let mut transient = Transient::new(problem, &case.initial()).scheme(scheme(case));
    if let Some(time) = &case.file.time {
        transient = transient.times(time.start, time.end).steps(steps(time)).mass(time.mass.into());
        if let Some(section) = &time.checkpoint {
            let interval = match (section.steps, section.minutes) {
                (Some(steps), _) => CheckpointInterval::Steps(steps),
                (None, minutes) => {
                    CheckpointInterval::Time(Duration::from_secs_f64(60.0 * minutes.unwrap_or(1.0)))
                }
            };
            transient = transient.checkpoints(interval, fingerprint);
        }
    }
    Ok(match resumed {
        Some(checkpoint) => transient.resume(checkpoint),
        None => transient,
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

/// What the parts of a fingerprint are of, where they are of another one.
const PARTS: [&str; 4] = [
    "another version of femtile",
    "another mesh",
    "another equation, boundary or space",
    "another method, start or tolerance in time or of the solver",
];

/// Returns hashes of all that a checkpoint depends on, in the order of [`PARTS`]: all of the case but its end, its output and
/// the device.
pub(super) fn fingerprint(case: &Case, mesh: &Mesh) -> [u8; 32] {
    let (file, solver) = (&case.file, &case.file.solver);
    let problem = (&file.equation, &file.boundary, &file.space, &file.region);
    let in_time = file.time.as_ref().map(|time| (time.method, time.start, time.tolerance, time.mass));
    let nonlinear = (solver.nonlinear, solver.nonlinear_tolerance, solver.nonlinear_iterations);
    let method = (solver.method, solver.tolerance, nonlinear, in_time);
    let json = |text: Result<Vec<u8>, serde_json::Error>| hash(|sum| sum.update(text.unwrap_or_default()));
    let parts = [
        hash(|sum| sum.update(env!("CARGO_PKG_VERSION"))),
        hash(|sum| add_mesh(sum, mesh)),
        json(serde_json::to_vec(&problem)),
        json(serde_json::to_vec(&method)),
    ];
    std::array::from_fn(|i| parts[i / 8][i % 8])
}

/// Returns the first bytes of a hash.
fn hash(add: impl FnOnce(&mut Sha256)) -> [u8; 8] {
    let mut sum = Sha256::new();
    add(&mut sum);
    let whole = sum.finalize();
    std::array::from_fn(|i| whole[i])
}

fn add_mesh(sum: &mut Sha256, mesh: &Mesh) {
    mesh.points.iter().flatten().for_each(|x| sum.update(x.to_le_bytes()));
    mesh.cells.iter().for_each(|node| sum.update(node.to_le_bytes()));
    mesh.cell_tags.iter().for_each(|tag| sum.update(tag.to_le_bytes()));
    for (name, field) in &mesh.cell_fields {
        sum.update(name);
        field.values.iter().for_each(|value| sum.update(value.to_le_bytes()));
    }
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
    let parts = checkpoint.fingerprint.chunks(8).zip(fingerprint.chunks(8)).zip(PARTS);
    match parts.filter(|((found, expected), _)| found != expected).map(|(_, part)| part).next() {
        None => Ok(Some(checkpoint)),
        Some(part) => Err(wrong(CheckpointError::Other(part).to_string())),
    }
}
