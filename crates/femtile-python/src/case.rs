//! Cases: from their text, or a file, to a report and a solution in memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use std::collections::BTreeMap;

use femtile::solve::{Functional, SolutionData};
use femtile_case::file::Value;
use femtile_case::{
    Array, ByConstant, Case, CaseError, Embedding, FormState, Receiver, Report, Study, Vary, run,
};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{array, rows};
use crate::errors::{Raise, of_argument};
use crate::interrupt::{Stop, interruptible};
use crate::mesh::{Mesh, dictionary};

/// A case as Python gives it: JSON of a dictionary, or the path of a file.
#[derive(FromPyObject)]
pub struct Given {
    #[pyo3(item("json"))]
    json: Option<String>,
    #[pyo3(item("path"))]
    path: Option<String>,
}

impl Given {
    /// Reads the case, with a mesh in memory and a receiver of results; files are written only where the case names their
    /// folder.
    pub fn case(&self, py: Python<'_>, mesh: Option<&Mesh>, receiver: Arc<dyn Receiver>) -> PyResult<Case> {
        let (name, text) = self.text(py)?;
        let embedding = Embedding {
            mesh: mesh.map(|mesh| mesh.0.clone()),
            receiver: Some(receiver),
            ..Embedding::default()
        };
        let case = Case::parse_embedded(Path::new(name), text, Vec::new(), embedding);
        let mut case = case.map_err(|error| error.raise(py))?;
        case.embedding.writes_files = case.names_directory();
        Ok(case)
    }

    /// Returns the name and the text of the case.
    fn text(&self, py: Python<'_>) -> PyResult<(&str, String)> {
        Ok(match (&self.json, &self.path) {
            (Some(json), _) => ("case", text_of(json).map_err(|message| of_argument(py, "case", &message))?),
            (None, Some(path)) => (path.as_str(), read(path).map_err(|error| error.raise(py))?),
            (None, None) => return Err(of_argument(py, "case", "a dictionary or a path is needed")),
        })
    }
}

/// Returns the text of a case file with the content of a dictionary.
fn text_of(json: &str) -> Result<String, String> {
    let value: toml::Table = serde_json::from_str(json).map_err(|error| error.to_string())?;
    toml::to_string(&value).map_err(|error| error.to_string())
}

fn read(path: &str) -> Result<String, CaseError> {
    let io = |source| CaseError::Io { path: path.into(), action: "read", source };
    std::fs::read_to_string(path).map_err(io)
}

/// Keeps the solution at the end, of forms also the unknowns.
#[derive(Default)]
struct End {
    data: Mutex<Option<SolutionData>>,
    form: Mutex<Option<FormState>>,
}

impl Receiver for End {
    fn solution(&self, data: SolutionData) {
        *self.data.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
    }

    fn form(&self, state: FormState) {
        *self.form.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}

/// The unknowns of a form and its load factor.
type State<'py> = (Bound<'py, PyArray1<f64>>, f64);

/// Solves a case; returns its report as JSON, the solution, and of forms the unknowns.
#[pyfunction]
pub fn solve<'py>(
    py: Python<'py>,
    given: Given,
    mesh: Option<PyRef<'py, Mesh>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>, Option<State<'py>>)> {
    let end = Arc::new(End::default());
    let case = given.case(py, mesh.as_deref(), end.clone())?;
    let stop = Stop::default();
    let done: Result<Report, CaseError> = interruptible(py, &stop, || run(&case, &mut &stop))?;
    let report = done.map_err(|error| error.raise(py))?;
    let data = end.data.lock().unwrap_or_else(PoisonError::into_inner).take();
    let form = end.form.lock().unwrap_or_else(PoisonError::into_inner).take();
    let form = form.map(|FormState { u, time }| (array(py, u), time));
    Ok((report.to_json(), data.map(|data| solution(py, data)).transpose()?, form))
}

/// Returns the value of a functional of the unknowns of a form and its derivatives by constants. Constants of the functional are
/// JSON.
#[pyfunction]
pub fn functional<'py>(
    py: Python<'py>,
    given: Given,
    mesh: Option<PyRef<'py, Mesh>>,
    state: (PyReadonlyArray1<'py, f64>, f64),
    formula: (String, String),
    constants: Vec<String>,
) -> PyResult<(f64, Vec<Bound<'py, PyAny>>)> {
    let case = given.case(py, mesh.as_deref(), Arc::new(End::default()))?;
    let (state, (formula, own)) = (FormState { u: state.0.as_slice()?.to_vec(), time: state.1 }, formula);
    let own: Result<BTreeMap<String, Value>, _> = serde_json::from_str(&own);
    let own = own.map_err(|error| of_argument(py, "constants", &error.to_string()))?;
    let functional = own.iter().fold(Functional::new(formula), |of, (name, value)| of.with(name, value));
    let constants: Vec<&str> = constants.iter().map(String::as_str).collect();
    let stop = Stop::default();
    let found = interruptible(py, &stop, || case.functional(&state, &functional, &constants, &mut &stop))?;
    let (value, slopes) = found.map_err(|error| error.raise(py))?;
    let slopes = slopes.into_iter().map(|slope| match slope {
        ByConstant::Whole(numbers) => shaped(py, numbers),
        ByConstant::ByTag(parts) => {
            let found = PyDict::new(py);
            parts.into_iter().try_for_each(|(name, part)| found.set_item(name, shaped(py, part)?))?;
            Ok(found.into_any())
        }
    });
    Ok((value, slopes.collect::<PyResult<_>>()?))
}

/// Runs a study of a case; returns its table as JSON. `vary` is JSON of pairs of a key and a list of values, or a text as the
/// program takes it.
#[pyfunction]
pub fn study(
    py: Python<'_>,
    given: Given,
    vary: &str,
    folder: Option<PathBuf>,
    is_again: bool,
    jobs: usize,
    page: Option<PathBuf>,
) -> PyResult<String> {
    let (path, text) = given.text(py)?;
    let pairs: Result<Vec<(String, toml::Value)>, _> = serde_json::from_str(vary);
    let pairs = pairs.map_err(|error| of_argument(py, "vary", &error.to_string()))?;
    let vary = pairs.into_iter().map(|(key, values)| match values {
        toml::Value::String(text) => Vary::parse("vary", &format!("{key}={text}")),
        toml::Value::Array(values) => Vary::new("vary", &key, values),
        value => Vary::new("vary", &key, vec![value]),
    });
    let vary = vary.collect::<Result<Vec<_>, CaseError>>().map_err(|error| error.raise(py))?;
    let study = Study { folder, is_again, jobs, page, ..Study::new(Path::new(path), text, vary) };
    let stop = Stop::default();
    let done = interruptible(py, &stop, || study.run(&mut &stop, &mut |_| {}))?;
    let report = done.map_err(|error| error.raise(py))?;
    serde_json::to_string(&report.table).map_err(|error| of_argument(py, "case", &error.to_string()))
}

/// Returns a number, or an array.
fn shaped(py: Python<'_>, Array { shape, values }: Array) -> PyResult<Bound<'_, PyAny>> {
    match (shape.len(), values.first()) {
        (0, Some(&number)) => Ok(number.into_pyobject(py)?.into_any()),
        _ => Ok(array(py, values).reshape(shape)?.into_any()),
    }
}

/// Returns the arrays of a solution by name.
pub fn solution(py: Python<'_>, data: SolutionData) -> PyResult<Bound<'_, PyDict>> {
    let per_cell = data.points_per_cell();
    let SolutionData { kind, order, points, cells, cell_tags, point_fields, cell_fields } = data;
    let found = PyDict::new(py);
    found.set_item("kind", kind.name())?;
    found.set_item("order", order)?;
    found.set_item("points", rows(py, points.into_flattened(), 3)?)?;
    found.set_item("cells", rows(py, cells, per_cell)?)?;
    found.set_item("cell_tags", array(py, cell_tags))?;
    found.set_item("point_fields", dictionary(py, point_fields)?)?;
    found.set_item("cell_fields", dictionary(py, cell_fields)?)?;
    Ok(found)
}

/// Returns the JSON schema of cases.
#[pyfunction]
pub fn schema() -> String {
    femtile_case::schema().to_string()
}
