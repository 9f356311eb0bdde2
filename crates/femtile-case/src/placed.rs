//! Finds the place in the case file of errors of the library and the system.

use femtile_amg::AmgError;
use femtile_device::DeviceError;
use femtile_expression::Expression;
use femtile_fem::FemError;
use femtile_form::FormError;
use femtile_linalg::LinalgError;
use femtile_mesh::MeshError;
use femtile_solve::{Key, SolveError, below};

use crate::file::{BoundarySection, Entry, Value};
use crate::{Case, CaseError};

/// Returns the error with its place in the case file, where it has one.
pub(crate) fn placed(case: &Case, error: CaseError) -> CaseError {
    if let CaseError::Setting { path, within, message } = error {
        let path = as_in_time(case, path);
        return match within {
            Some(inner) => case.wrong_inside(&path, &inner, message),
            None => case.wrong(&path, message),
        };
    }
    match place(case, &error) {
        Some((path, message)) => case.wrong(&path, message).because_of(error),
        None => error,
    }
}

/// Returns the path with the keys of an equation in time, if it is one on a mesh.
fn as_in_time(case: &Case, mut path: Vec<Key>) -> Vec<Key> {
    if case.is_transient_on_mesh()
        && let [section, key, ..] = &mut path[..]
        && *section == Key::from("equation")
        && let Key::Name(name) = key
    {
        *name = name_in_time(name).into();
    }
    path
}

/// Returns the name of a coefficient of the library in equations in time.
fn name_in_time(name: &str) -> &str {
    match name {
        "sigma" => "diffusion",
        "lambda" => "reaction",
        other => other,
    }
}

/// Returns the key of an error, and its message.
fn place(case: &Case, error: &CaseError) -> Option<(Vec<Key>, String)> {
    let message = error.to_string();
    match error {
        CaseError::Mesh(MeshError::Io { path, action: "read", .. }) => mesh_file(case, path, message),
        CaseError::Io { path, .. } if *path == case.file.output.directory => {
            let is_written = case.is_as_written(|file| &file.output.directory);
            is_written.then(|| (keys(&["output", "directory"]), message))
        }
        CaseError::Device(DeviceError::Absent { .. }) => {
            let is_written = case.is_as_written(|file| &file.solver.device);
            is_written.then(|| (keys(&["solver", "device"]), message))
        }
        CaseError::Device(DeviceError::Threads { .. }) => {
            let is_written = case.is_as_written(|file| &file.solver.threads);
            is_written.then(|| (keys(&["solver", "threads"]), message))
        }
        CaseError::Fem(error) | CaseError::Other(SolveError::AtTime { source: error, .. }) => {
            Some((of_problem(case, error)?, message))
        }
        CaseError::Amg(AmgError::Linalg(LinalgError::Device(_))) => None,
        CaseError::Amg(_) => Some((keys(&["solver", "preconditioner"]), message)),
        _ => None,
    }
}

fn keys(names: &[&str]) -> Vec<Key> {
    names.iter().map(|&name| name.into()).collect()
}

fn mesh_file(case: &Case, found: &std::path::Path, message: String) -> Option<(Vec<Key>, String)> {
    let file = case.file.mesh.file.as_ref()?;
    let path = keys(&["mesh", "file"]);
    if found.is_dir() {
        return Some((path, format!("{} is a folder; a mesh file is needed", found.display())));
    }
    let folder = match case.folder().to_str() {
        Some("") => "the current folder".into(),
        _ => case.folder().display().to_string(),
    };
    let advice = match file.is_relative() {
        true => format!("; a relative path begins in the folder of the case file, here {folder}"),
        false => String::new(),
    };
    Some((path, message + &advice))
}

/// The key of the coefficient or condition that an error of the discretisation is about.
fn of_problem(case: &Case, error: &FemError) -> Option<Vec<Key>> {
    match error {
        FemError::Incompatible { .. } => Some(unbalanced(case)),
        FemError::Form(error) => match error {
            FormError::NotFinite { field, point, value, .. }
            | FormError::Negative { field, point, value, .. } => {
                of_field(case, field, Some((*point, *value)))
            }
            FormError::Indefinite { field, .. }
            | FormError::MissingTag { field, .. }
            | FormError::Shape { field, .. } => of_field(case, field, None),
            _ => None,
        },
        _ => None,
    }
}

/// The first flux, else the source.
fn unbalanced(case: &Case) -> Vec<Key> {
    match case.file.boundary.iter().position(|section| section.neumann.is_some()) {
        Some(i) => vec!["boundary".into(), i.into(), "neumann".into()],
        None => keys(&["equation", "source"]),
    }
}

/// The key of a coefficient by the name that the discretisation gives it; of several conditions the one that has `value`
/// at `point`.
fn of_field(case: &Case, field: &str, found: Option<([f64; 3], f64)>) -> Option<Vec<Key>> {
    // Derivatives are those of their coefficient.
    let field = field.trim_start_matches('∂').trim_end_matches("/∂u");
    let key = if case.is_transient_on_mesh() { name_in_time(field) } else { field };
    if ["sigma", "lambda", "source", "initial", "diffusion", "reaction"].contains(&key) {
        return Some(keys(&["equation", key]));
    }
    let names: Vec<Key> = field.split('.').map(Key::from).collect();
    let candidates = case.file.boundary.iter().enumerate();
    let mut candidates = candidates.filter_map(|(i, section)| Some((i, value_called(section, field)?)));
    let (i, _) = match (candidates.clone().count(), found) {
        (1, _) => candidates.next()?,
        (_, Some((point, value))) => candidates.find(|(_, given)| has_value(given, point, value))?,
        _ => return None,
    };
    let condition: Vec<Key> = vec!["boundary".into(), i.into()];
    Some(names.into_iter().fold(condition, |path, name| below(&path, name)))
}

fn value_called<'a>(section: &'a BoundarySection, field: &str) -> Option<&'a Value> {
    match field {
        "dirichlet" => section.dirichlet(),
        "neumann" => section.neumann.as_ref(),
        "robin.coefficient" => section.robin.as_ref().map(|robin| &robin.coefficient),
        "robin.value" => section.robin.as_ref().map(|robin| &robin.value),
        _ => None,
    }
}

/// Returns `true` if a coefficient, or a part of it, equals `expected` at a point; NaN equals NaN.
fn has_value(given: &Value, point: [f64; 3], expected: f64) -> bool {
    let is = |value: f64| value == expected || (value.is_nan() && expected.is_nan());
    let of_text = |text: &str| Expression::parse(text).is_ok_and(|formula| is(formula.eval(point)));
    match given {
        Value::Number(value) => is(*value),
        Value::Text(text) => of_text(text),
        Value::Components(entries) => entries.iter().any(|entry| match entry {
            Entry::Number(value) => is(*value),
            Entry::Text(text) => of_text(text),
        }),
        Value::ByTag { by_tag, default } => {
            let mut values = by_tag.values().chain(default.as_deref());
            values.any(|value| has_value(value, point, expected))
        }
        Value::Tensor(_)
        | Value::Field { .. }
        | Value::Fibres { .. }
        | Value::Sheets { .. }
        | Value::Bidomain { .. } => false,
    }
}
