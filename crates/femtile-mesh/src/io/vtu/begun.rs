//! A file whose mesh is written while its fields are still computed.

use std::path::{Path, PathBuf};

use super::encode::{Array, write_begin, write_end};
use super::options::{Compression, Extent, WriteOptions};
use super::write::{Grid, LagrangeCells, cell_arrays, fields, point_arrays, straight};
use crate::interrupt::Interrupt;
use crate::io::atomic::PendingFile;
use crate::io::sum::{FileSum, Sum, Summed};
use crate::{Field, IsInterrupted, Mesh, MeshError};

/// A file of a mesh without the fields that follow from a solution; dropped, it leaves nothing behind.
pub struct BegunFile {
    path: PathBuf,
    file: PendingFile,
    sum: Option<Sum>,
    n_nodes: usize,
    /// Names and components of the fields that are missing.
    missing: Vec<(String, usize)>,
}

impl std::fmt::Debug for BegunFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BegunFile").field("path", &self.path).field("missing", &self.missing).finish()
    }
}

impl BegunFile {
    /// Writes everything except some fields at nodes; only the names and numbers of components of these are
    /// known.
    ///
    /// None if a file cannot be begun: compressed ones, surfaces, pieces, and meshes with curved cells.
    ///
    /// # Errors
    /// Those of [`write()`](super::write()); [`MeshError::Interrupted`], asked for every 4 MiB.
    pub fn begin(
        path: &Path,
        mesh: &Mesh,
        missing: &[(&str, usize)],
        options: WriteOptions<'_>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Option<Self>, MeshError> {
        if !Self::is_for(options) || mesh.curved.is_some() {
            return Ok(None);
        }
        let point_data = point_arrays(mesh, later(missing, mesh.n_nodes()))?;
        let of_cells = cell_arrays(mesh, &[], options)?;
        Self::begin_grid(
            (path, &straight(mesh, options)),
            (point_data, of_cells),
            missing,
            options,
            is_interrupted,
        )
    }

    /// As [`BegunFile::begin`], for cells of any order with fields of cells.
    ///
    /// # Errors
    /// Those of [`write_lagrange()`](super::write_lagrange()); [`MeshError::Interrupted`], asked for every 4 MiB.
    pub fn begin_lagrange(
        path: &Path,
        cells: &LagrangeCells<'_>,
        cell_data: &[(&str, &Field)],
        missing: &[(&str, usize)],
        options: WriteOptions<'_>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Option<Self>, MeshError> {
        if !Self::is_for(options) {
            return Ok(None);
        }
        cells.validate()?;
        let n_cells = cells.cells.len() / cells.points_per_cell();
        let mut of_cells = fields("cell_data", cell_data.iter().copied(), n_cells, 0)?;
        of_cells.iter_mut().for_each(|array| array.is_late = false);
        let point_data = later(missing, cells.points.len());
        let grid = Grid::of_lagrange(cells);
        Self::begin_grid((path, &grid), (point_data, of_cells), missing, options, is_interrupted)
    }

    /// Returns whether a file with such options can be begun.
    pub fn is_for(options: WriteOptions<'_>) -> bool {
        options.compression == Compression::None && options.extent == Extent::Whole
    }

    fn begin_grid(
        (path, grid): (&Path, &Grid<'_>),
        (point_data, cell_data): (Vec<Array<'_>>, Vec<Array<'_>>),
        missing: &[(&str, usize)],
        options: WriteOptions<'_>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Option<Self>, MeshError> {
        let interrupt = Interrupt(is_interrupted);
        let n_nodes = grid.points.len();
        let (head, groups) = grid.document(point_data, cell_data, options);
        let write = || {
            let mut file = PendingFile::create(path)?;
            let sum = options.sum.then(Sum::default);
            let mut out = Summed::new(file.out(), sum).until(interrupt);
            write_begin(&mut out, &head, &groups)?;
            let sum = out.into_sum();
            file.reserve(missing.iter().map(|(_, n_components)| 8 + 8 * n_components * n_nodes).sum())?;
            let missing = missing.iter().map(|&(name, n_components)| (name.into(), n_components)).collect();
            Ok(Some(Self { path: path.into(), file, sum, n_nodes, missing }))
        };
        write().map_err(|source| match interrupt.is_set() {
            true => MeshError::Interrupted,
            false => MeshError::Io { path: path.into(), action: "write", source },
        })
    }

    /// Writes the missing fields, in their order, and gives the file its name; returns its sum if the options
    /// asked for it.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] for other fields than the missing ones, [`MeshError::Io`] when the file cannot be written.
    pub fn finish(self, found: &[(&str, &Field)]) -> Result<Option<FileSum>, MeshError> {
        let Self { path, mut file, sum, n_nodes, missing } = self;
        let names = found.iter().map(|&(name, field)| (name, field.n_components));
        if !names.eq(missing.iter().map(|(name, n_components)| (name.as_str(), *n_components))) {
            let message = format!("fields other than {missing:?}, with which the file was begun");
            return Err(MeshError::Invalid { field: "point_data", message });
        }
        let arrays = fields("point_data", found.iter().copied(), n_nodes, 0)?;
        let write = || {
            let mut out = Summed::new(file.out(), sum);
            write_end(&mut out, arrays.iter())?;
            Ok(out.into_sum().map(Sum::finish))
        };
        let written = write().and_then(|sum| file.commit().map(|()| sum));
        written.map_err(|source| MeshError::Io { path, action: "write", source })
    }
}

/// The arrays of fields at nodes that are missing.
fn later(missing: &[(&str, usize)], n_nodes: usize) -> Vec<Array<'static>> {
    let later = missing.iter().map(|&(name, n_components)| Array {
        name: name.into(),
        kind: "Float64",
        n_components,
        n_bytes: 8 * n_components * n_nodes,
        bytes: Box::new(|_, _| ()),
        is_late: true,
    });
    later.collect()
}
