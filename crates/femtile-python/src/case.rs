//! Cases: from their text, or a file, to a report and a solution in memory.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use femtile::solve::SolutionData;
use femtile_case::{Case, CaseError, Embedding, Receiver, Report, run};
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
        let (name, text) = match (&self.json, &self.path) {
            (Some(json), _) => ("case", text_of(json).map_err(|message| of_argument(py, "case", &message))?),
            (None, Some(path)) => (path.as_str(), read(path).map_err(|error| error.raise(py))?),
            (None, None) => return Err(of_argument(py, "case", "a dictionary or a path is needed")),
        };
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

/// Keeps the solution at the end.
#[derive(Default)]
struct End(Mutex<Option<SolutionData>>);

impl Receiver for End {
    fn solution(&self, data: SolutionData) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(data);
    }
}

/// Solves a case; returns its report as JSON and the solution.
#[pyfunction]
pub fn solve<'py>(
    py: Python<'py>,
    given: Given,
    mesh: Option<PyRef<'py, Mesh>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let end = Arc::new(End::default());
    let case = given.case(py, mesh.as_deref(), end.clone())?;
    let stop = Stop::default();
    let done: Result<Report, CaseError> = interruptible(py, &stop, || run(&case, &mut &stop))?;
    let report = done.map_err(|error| error.raise(py))?;
    let data = end.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    Ok((report.to_json(), data.map(|data| solution(py, data)).transpose()?))
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
