//! One file of a run, `solution.vtkhdf`: an unstructured grid in VTK's format on HDF5, with the frames of a run in time.
//!
//! The mesh is written once. Fields of frames wait in a nameless file in the folder of results, a frame in memory at a time, and
//! are copied at the end: as many bytes as the file has are written twice. Arrays and their order are those of VTU files.

mod hdf5;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use femtile_mesh::io::write_atomically;
use femtile_mesh::{CellKind, Field, MeshError};
use femtile_solve::SolutionData;

use crate::Case;
use crate::file_names::VTKHDF;
use hdf5::{Attribute, Content, Dataset, Group, Kind};

/// Numbers that are converted to bytes at a time.
const BLOCK: usize = 1 << 14;

/// A field in all frames.
struct Column {
    name: String,
    n_components: usize,
    /// Entries of a frame.
    n_entries: usize,
    /// Bytes before it in a frame.
    begin: u64,
}

impl Column {
    fn n_values(&self) -> usize {
        self.n_entries * self.n_components
    }
}

/// The fields of one frame, of all frames of a run, by their place in a file.
struct Spool {
    file: File,
    at_points: Vec<Column>,
    of_cells: Vec<Column>,
    /// Bytes of a frame.
    stride: u64,
    times: Vec<f64>,
}

/// The frames of a run that are in its file at the end.
#[derive(Default)]
pub(crate) struct Frames {
    spool: Option<Spool>,
}

impl Frames {
    /// Adds a frame.
    ///
    /// # Errors
    /// [`MeshError::Io`] about the file of the case if the disk is full; the frame is then missing.
    pub fn push(
        &mut self,
        case: &Case,
        time: f64,
        data: &SolutionData,
    ) -> std::result::Result<(), MeshError> {
        let folder = &case.file.output.directory;
        let io = |source| MeshError::Io { path: folder.join(VTKHDF), action: "keep a frame for", source };
        if self.spool.is_none() {
            self.spool = Some(Spool::new(folder, data).map_err(io)?);
        }
        match &mut self.spool {
            Some(spool) => spool.push(time, data).map_err(io),
            None => Ok(()),
        }
    }
}

impl Spool {
    fn new(folder: &Path, data: &SolutionData) -> Result<Self> {
        let mut begin = 0;
        let mut columns = |fields: &BTreeMap<String, Field>| -> Vec<Column> {
            let column = |(name, field): (&String, &Field)| {
                let own = begin;
                begin += 8 * field.values.len() as u64;
                let n_entries = field.values.len() / field.n_components.max(1);
                Column { name: name.clone(), n_components: field.n_components, n_entries, begin: own }
            };
            fields.iter().map(column).collect()
        };
        let (at_points, of_cells) = (columns(&data.point_fields), columns(&data.cell_fields));
        let file = tempfile::tempfile_in(folder)?;
        Ok(Self { file, at_points, of_cells, stride: begin, times: Vec::new() })
    }

    fn push(&mut self, time: f64, data: &SolutionData) -> Result<()> {
        let begin = self.times.len() as u64 * self.stride;
        self.file.seek(SeekFrom::Start(begin))?;
        for (columns, fields) in [(&self.at_points, &data.point_fields), (&self.of_cells, &data.cell_fields)]
        {
            for column in columns {
                let field = fields.get(&column.name).filter(|field| field.values.len() == column.n_values());
                let field = field.ok_or_else(|| {
                    std::io::Error::other(format!("field `{}` is not the same in all frames", column.name))
                })?;
                write_numbers(&mut self.file, &field.values, f64::to_le_bytes)?;
            }
        }
        self.times.push(time);
        Ok(())
    }

    /// Returns a field in all frames.
    fn content<'a>(&'a self, column: &'a Column) -> Content<'a> {
        Box::new(move |out| {
            let mut file = &self.file;
            for frame in 0..self.times.len() as u64 {
                file.seek(SeekFrom::Start(frame * self.stride + column.begin))?;
                let n_bytes = 8 * column.n_values() as u64;
                if std::io::copy(&mut file.take(n_bytes), out)? < n_bytes {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        })
    }
}

/// Writes the file of a run: its frames, or without any the solution at the end.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub(crate) fn write(path: &Path, frames: &Frames, end: &SolutionData) -> std::result::Result<(), MeshError> {
    let mut root = Group::default();
    root.group("VTKHDF", grid(frames.spool.as_ref(), end));
    write_atomically(path, |out| root.write(out))
}

/// The grid with its fields, and with the steps if there are some.
fn grid<'a>(spool: Option<&'a Spool>, end: &'a SolutionData) -> Group<'a> {
    let per_cell = end.points_per_cell();
    let (n_points, n_cells) = (end.points.len(), end.cells.len() / per_cell);
    let mut grid = Group::default();
    // Steps came with version 2.0; later ones have other kinds of data.
    grid.attributes.push(("Version", Attribute::Numbers(vec![2, 0])));
    grid.attributes.push(("Type", Attribute::Text("UnstructuredGrid")));
    grid.dataset("NumberOfPoints", integers(vec![n_points as i64]));
    grid.dataset("NumberOfCells", integers(vec![n_cells as i64]));
    grid.dataset("NumberOfConnectivityIds", integers(vec![end.cells.len() as i64]));
    grid.dataset("Points", reals(end.points.as_flattened(), 3));
    grid.dataset(
        "Connectivity",
        Dataset {
            kind: Kind::I64,
            shape: vec![end.cells.len() as u64],
            content: Box::new(|out| write_numbers(out, &end.cells, |node| i64::from(node).to_le_bytes())),
        },
    );
    grid.dataset(
        "Offsets",
        Dataset {
            kind: Kind::I64,
            shape: vec![n_cells as u64 + 1],
            content: Box::new(move |out| {
                (0..=n_cells).try_for_each(|cell| out.write_all(&((cell * per_cell) as i64).to_le_bytes()))
            }),
        },
    );
    let cell_type = vtk_type(end.kind, end.order);
    grid.dataset(
        "Types",
        Dataset {
            kind: Kind::U8,
            shape: vec![n_cells as u64],
            content: Box::new(move |out| {
                std::io::copy(&mut std::io::repeat(cell_type).take(n_cells as u64), out).map(drop)
            }),
        },
    );
    let (mut at_points, mut of_cells) = (Names::default(), Names::default());
    if let Some(spool) = spool {
        let column =
            |column| Dataset { kind: Kind::F64, shape: shape(spool, column), content: spool.content(column) };
        spool.at_points.iter().for_each(|own| at_points.add(&own.name, column(own)));
        spool.of_cells.iter().for_each(|own| of_cells.add(&own.name, column(own)));
    } else {
        let whole = |field: &'a Field| reals(&field.values, field.n_components);
        end.point_fields.iter().for_each(|(name, field)| at_points.add(name, whole(field)));
        end.cell_fields.iter().for_each(|(name, field)| of_cells.add(name, whole(field)));
    }
    let moving = [at_points.taken.clone(), of_cells.taken.clone()];
    if !end.cell_tags.is_empty() {
        of_cells.add(
            "tag",
            Dataset {
                kind: Kind::I32,
                shape: vec![n_cells as u64],
                content: Box::new(|out| write_numbers(out, &end.cell_tags, i32::to_le_bytes)),
            },
        );
    }
    if let Some(spool) = spool {
        grid.group("Steps", steps(&spool.times, [n_points, n_cells], moving, &of_cells.taken));
    }
    grid.group("PointData", at_points.group);
    grid.group("CellData", of_cells.group);
    grid
}

/// The frames: all of the one mesh, each with its part of the fields.
fn steps<'a>(
    times: &'a [f64],
    [n_points, n_cells]: [usize; 2],
    [at_points, of_cells]: [Vec<String>; 2],
    all_of_cells: &[String],
) -> Group<'a> {
    let n = times.len();
    let same = |value: i64| integers(vec![value; n]);
    let mut steps = Group::default();
    steps.attributes.push(("NSteps", Attribute::Number(n as i64)));
    steps.dataset("Values", reals(times, 1));
    steps.dataset("PartOffsets", same(0));
    steps.dataset("NumberOfParts", same(1));
    steps.dataset("PointOffsets", same(0));
    for name in ["CellOffsets", "ConnectivityIdOffsets"] {
        // One column, for the one kind of topology of an unstructured grid.
        steps.dataset(name, Dataset { shape: vec![n as u64, 1], ..same(0) });
    }
    let parts = |names: &[String], moving: &[String], n_entries: usize| {
        let mut group = Group::default();
        for name in names {
            let length = if moving.contains(name) { n_entries as i64 } else { 0 };
            group.dataset(name, integers((0..n as i64).map(|frame| frame * length).collect()));
        }
        group
    };
    steps.group("PointDataOffsets", parts(&at_points, &at_points, n_points));
    steps.group("CellDataOffsets", parts(all_of_cells, &of_cells, n_cells));
    steps
}

/// Fields with names that links may have.
#[derive(Default)]
struct Names<'a> {
    group: Group<'a>,
    taken: Vec<String>,
}

impl<'a> Names<'a> {
    /// Adds a field; `/`, which separates groups, becomes `_`, and a name that is taken has `_` at its end.
    fn add(&mut self, name: &str, dataset: Dataset<'a>) {
        let mut name = name.replace('/', "_");
        while self.taken.contains(&name) || name.is_empty() || name == "." {
            name.push('_');
        }
        self.group.dataset(&name, dataset);
        self.taken.push(name);
    }
}

fn shape(spool: &Spool, column: &Column) -> Vec<u64> {
    let n_rows = (spool.times.len() * column.n_entries) as u64;
    if column.n_components == 1 { vec![n_rows] } else { vec![n_rows, column.n_components as u64] }
}

fn reals(values: &[f64], n_components: usize) -> Dataset<'_> {
    let n_rows = (values.len() / n_components.max(1)) as u64;
    Dataset {
        kind: Kind::F64,
        shape: if n_components == 1 { vec![n_rows] } else { vec![n_rows, n_components as u64] },
        content: Box::new(|out| write_numbers(out, values, f64::to_le_bytes)),
    }
}

fn integers<'a>(values: Vec<i64>) -> Dataset<'a> {
    Dataset {
        kind: Kind::I64,
        shape: vec![values.len() as u64],
        content: Box::new(move |out| write_numbers(out, &values, i64::to_le_bytes)),
    }
}

fn write_numbers<T: Copy, const N: usize>(
    out: &mut dyn Write,
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> Result<()> {
    for block in values.chunks(BLOCK) {
        let block: Vec<u8> = block.iter().flat_map(|&value| bytes(value)).collect();
        out.write_all(&block)?;
    }
    Ok(())
}

/// Returns VTK's number of cells of a kind and order: those of straight cells, else of Lagrange cells.
fn vtk_type(kind: CellKind, order: usize) -> u8 {
    match kind {
        _ if order == 1 => kind.vtk_type(),
        CellKind::Segment => 68,
        CellKind::Triangle => 69,
        CellKind::Quadrilateral => 70,
        CellKind::Tetrahedron => 71,
        CellKind::Hexahedron => 72,
    }
}

#[cfg(test)]
mod tests;
