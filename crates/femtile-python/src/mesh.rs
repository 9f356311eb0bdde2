//! Meshes as a class: made, read, checked, and as arrays.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use femtile::mesh::check::{CheckConfig, CheckError, CheckReport, Finding, check_interruptible};
use femtile::mesh::{CellKind, Division, Facets, Field, MeshError, io};
use femtile_case::file::Generator;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{array, rows};
use crate::errors::{Raise, of_argument};
use crate::interrupt::{Stop, interruptible};
use crate::threads::cpu;

/// A mesh of one kind of cell.
#[pyclass(frozen, module = "femtile._femtile")]
pub struct Mesh(pub Arc<femtile::Mesh>);

/// Kinds of cells of meshes.
pub const KINDS: [CellKind; 4] =
    [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Tetrahedron, CellKind::Hexahedron];

/// Facets with tags, the name of a tag by dimension and number.
type Tags<'py> = (
    Option<PyReadonlyArray1<'py, i32>>,
    Option<(PyReadonlyArray2<'py, u32>, PyReadonlyArray1<'py, i32>)>,
    BTreeMap<(usize, i32), String>,
);

/// Fields by name: entries as rows.
pub type FieldArrays<'py> = BTreeMap<String, PyReadonlyArray2<'py, f64>>;

#[pymethods]
impl Mesh {
    /// Makes a mesh from its arrays.
    #[new]
    fn new(
        py: Python<'_>,
        shape: (PyReadonlyArray2<'_, f64>, String, PyReadonlyArray2<'_, u32>),
        tags: Tags<'_>,
        own_fields: (FieldArrays<'_>, FieldArrays<'_>),
    ) -> PyResult<Self> {
        let ((points, kind, cells), (cell_tags, facets, tag_names)) = (shape, tags);
        let (node_fields, cell_fields) = own_fields;
        let Some(kind) = KINDS.into_iter().find(|known| known.name() == kind) else {
            let names = KINDS.map(CellKind::name).join(", ");
            return Err(of_argument(py, "kind", &format!("`{kind}` is none of: {names}")));
        };
        let points = points.as_slice()?.as_chunks().0.to_vec();
        let (cpu, cells) = (cpu(py, 0)?, cells.as_slice()?.to_vec());
        let made = py.detach(|| cpu.install(|| femtile::Mesh::new(points, kind, cells)));
        let mut mesh = made.map_err(|error| error.raise(py))?;
        mesh.tag_names = tag_names;
        if let Some(tags) = cell_tags {
            mesh.cell_tags = tags.as_slice()?.to_vec();
        }
        if let Some((nodes, tags)) = facets {
            mesh.facets = Facets { nodes: nodes.as_slice()?.to_vec(), tags: tags.as_slice()?.to_vec() };
        }
        mesh.node_fields = fields(&node_fields)?;
        mesh.cell_fields = fields(&cell_fields)?;
        py.detach(|| cpu.install(|| mesh.validate())).map_err(|error| error.raise(py))?;
        Ok(Self(Arc::new(mesh)))
    }

    /// Kind of the cells, and the number of nodes and of cells.
    fn counts(&self) -> (&'static str, usize, usize) {
        (self.0.kind.name(), self.0.n_nodes(), self.0.n_cells())
    }

    /// Coordinates of the nodes, three of each.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        rows(py, self.0.points.as_flattened().to_vec(), 3)
    }

    /// Nodes of each cell.
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        rows(py, self.0.cells.clone(), self.0.kind.n_nodes())
    }

    /// Tags of cells; nodes and tags of tagged facets; names of tags.
    #[allow(clippy::type_complexity)]
    fn tags<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>, Bound<'py, PyAny>), BTreeMap<(usize, i32), String>)>
    {
        let Facets { nodes, tags } = &self.0.facets;
        let per_facet = self.0.kind.facet_kind().map_or(1, CellKind::n_nodes);
        let facets = (rows(py, nodes.clone(), per_facet)?, array(py, tags.clone()).into_any());
        Ok((array(py, self.0.cell_tags.clone()).into_any(), facets, self.0.tag_names.clone()))
    }

    /// Fields at nodes and of cells.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<[Bound<'py, PyDict>; 2]> {
        Ok([dictionary(py, self.0.node_fields.clone())?, dictionary(py, self.0.cell_fields.clone())?])
    }

    /// Polynomial order of curved cells, 1 of straight ones; points and points of each cell in the order of VTK.
    fn notes(&self) -> (usize, Vec<String>) {
        (self.0.curved.as_ref().map_or(1, |curved| curved.order), self.0.notes.clone())
    }

    /// The cells of the file that a reader has divided into simplices, in words.
    fn division(&self) -> Option<String> {
        self.0.division.as_ref().map(Division::note)
    }

    /// Writes the mesh; the ending of the name is the format.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let cpu = cpu(py, 0)?;
        py.detach(|| cpu.install(|| io::write(&path, &self.0))).map_err(|error| error.raise(py))
    }

    /// Checks a copy: the repaired mesh with the report, or the finding that refuses the mesh with its message.
    fn check<'py>(
        &self,
        py: Python<'py>,
        accept: Vec<String>,
        merge: bool,
    ) -> PyResult<(Option<Self>, Bound<'py, PyDict>)> {
        let accept = accept.iter().map(|name| finding(py, name)).collect::<PyResult<_>>()?;
        let config = CheckConfig { merge_duplicates: merge, accept, ..CheckConfig::default() };
        let (stop, mut mesh) = (Stop::default(), femtile::Mesh::clone(&self.0));
        let cpu = cpu(py, 0)?;
        let check = || check_interruptible(&mut mesh, &config, Some(&|| stop.is_asked()));
        let found = interruptible(py, &stop, || cpu.install(check))?;
        match found {
            Ok(report) => Ok((Some(Self(Arc::new(mesh))), report_of(py, &report)?)),
            Err(error @ (CheckError::Setting { .. } | CheckError::Interrupted)) => Err(error.raise(py)),
            Err(error) => {
                let refusal = PyDict::new(py);
                refusal.set_item("refusal", error.to_string())?;
                refusal.set_item("finding", error.finding().map(Finding::name))?;
                Ok((None, refusal))
            }
        }
    }
}

fn finding(py: Python<'_>, name: &str) -> PyResult<Finding> {
    Finding::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| {
        let names = Finding::ALL.map(Finding::name).join(", ");
        of_argument(py, "accept", &format!("`{name}` is none of: {names}"))
    })
}

fn report_of<'py>(py: Python<'py>, report: &CheckReport) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    let counts = [
        ("n_nodes", report.n_nodes),
        ("n_cells", report.n_cells),
        ("n_orphans", report.n_orphans),
        ("n_flipped", report.n_flipped),
        ("n_merged", report.n_merged),
        ("n_duplicate_nodes", report.n_duplicate_nodes),
        ("n_crack_facets", report.n_crack_facets),
        ("n_components", report.n_components),
        ("n_boundary_components", report.n_boundary_components),
        ("n_gaps", report.n_gaps),
        ("n_pinched", report.n_pinched),
        ("n_tagged_inside", report.n_tagged_inside),
        ("worst_cell", report.worst_cell),
    ];
    counts.into_iter().try_for_each(|(name, count)| found.set_item(name, count))?;
    found.set_item("kind", report.kind.name())?;
    found.set_item("worst_quality", report.worst_quality)?;
    found.set_item("worst_at", report.worst_at)?;
    found.set_item("volume", report.volume)?;
    found.set_item("division", &report.division)?;
    found.set_item("warnings", &report.warnings)?;
    Ok(found)
}

/// Returns arrays by name as fields.
pub fn fields(arrays: &FieldArrays<'_>) -> PyResult<BTreeMap<String, Field>> {
    let field = |(name, array): (&String, &PyReadonlyArray2<'_, f64>)| {
        let values = array.as_slice()?.to_vec();
        let n_components = numpy::PyUntypedArrayMethods::shape(&**array)[1];
        Ok((name.clone(), Field { n_components, values }))
    };
    arrays.iter().map(field).collect()
}

/// Returns fields as arrays by name.
pub fn dictionary(py: Python<'_>, fields: BTreeMap<String, Field>) -> PyResult<Bound<'_, PyDict>> {
    let arrays = PyDict::new(py);
    for (name, Field { n_components, values }) in fields {
        arrays.set_item(name, rows(py, values, n_components)?)?;
    }
    Ok(arrays)
}

/// Makes a mesh by formula, from the settings of `mesh.generate` as JSON.
#[pyfunction]
pub fn generate(py: Python<'_>, settings: &str) -> PyResult<Mesh> {
    let generator =
        Generator::from_json(settings).map_err(|message| of_argument(py, "generate", &message))?;
    let cpu = cpu(py, 0)?;
    let generate = || cpu.install(|| femtile_case::generate(&generator));
    let made = interruptible(py, &Stop::default(), generate)?;
    Ok(Mesh(Arc::new(made.map_err(|error| error.raise(py))?)))
}

/// Reads a mesh file as it is, unchecked.
#[pyfunction]
pub fn read(py: Python<'_>, path: PathBuf) -> PyResult<Mesh> {
    let cpu = cpu(py, 0)?;
    let read = || cpu.install(|| io::read(&path));
    let found: Result<_, MeshError> = interruptible(py, &Stop::default(), read)?;
    Ok(Mesh(Arc::new(found.map_err(|error| error.raise(py))?)))
}
