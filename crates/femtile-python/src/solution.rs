//! Solutions given back by their arrays: values at any points, files.

use std::path::PathBuf;

use femtile::mesh::CellKind;
use femtile::solve::{Interpolation, SolutionData};
use numpy::{PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::arrays::rows;
use crate::errors::{Raise, of_argument};
use crate::interrupt::{Stop, interruptible};
use crate::mesh::{FieldArrays, KINDS, fields};

/// Kind and order of the cells, coordinates of the points, points of each cell.
type Cells<'py> = (String, usize, PyReadonlyArray2<'py, f64>, PyReadonlyArray2<'py, u32>);

/// Returns the values of a field at points, as rows.
#[pyfunction]
pub fn values_at<'py>(
    py: Python<'py>,
    cells: Cells<'_>,
    field: PyReadonlyArray2<'_, f64>,
    at: PyReadonlyArray2<'_, f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let (kind, order, points, cells) = cells;
    let kind = kind_of(&kind);
    let (points, cells) = (points.as_slice()?.as_chunks::<3>().0, cells.as_slice()?);
    let (n, values) = (field.shape()[1], field.as_slice()?);
    let at = at.as_slice()?.as_chunks::<3>().0;
    let find = || {
        let interpolation = Interpolation::new(kind, order, points, cells)?;
        let mut found = Vec::with_capacity(at.len() * n);
        for &point in at {
            match interpolation.value_at(values, n, point) {
                Some(value) => found.extend(value),
                None => return Ok(Err(point)),
            }
        }
        Ok(Ok(found))
    };
    match py.detach(find).map_err(|error: femtile::solve::SolveError| error.raise(py))? {
        Ok(found) => rows(py, found, n),
        Err([x, y, z]) => {
            let message = format!("({x}, {y}, {z}) lies in no cell of the mesh");
            Err(of_argument(py, "point", &message))
        }
    }
}

/// Writes a solution as a VTU file.
#[pyfunction]
pub fn write_vtu(
    py: Python<'_>,
    path: PathBuf,
    cells: Cells<'_>,
    cell_tags: PyReadonlyArray1<'_, i32>,
    own_fields: (FieldArrays<'_>, FieldArrays<'_>),
) -> PyResult<()> {
    let (kind, order, points, cells) = cells;
    let data = SolutionData {
        kind: kind_of(&kind),
        order,
        points: points.as_slice()?.as_chunks().0.to_vec(),
        cells: cells.as_slice()?.to_vec(),
        cell_tags: cell_tags.as_slice()?.to_vec(),
        point_fields: fields(&own_fields.0)?,
        cell_fields: fields(&own_fields.1)?,
    };
    let written = interruptible(py, &Stop::default(), || data.write_vtu(&path))?;
    written.map_err(|error| error.raise(py))
}

/// Returns a kind of cells of solutions by its name.
fn kind_of(name: &str) -> CellKind {
    KINDS.into_iter().find(|kind| kind.name() == name).unwrap_or(CellKind::Segment)
}
