//! Files of the pieces of a mesh.

use std::path::Path;

use super::encode::{Array, write_index};
use super::options::{Extent, Piece, Pieces, WriteOptions};
use super::selected_cells::SelectedCells;
use super::write::Grid;
use crate::io::atomic::write_atomically;
use crate::io::sum::{FileSum, Sum, Summed};
use crate::{CellKind, MeshError};

impl Grid<'_> {
    /// Writes some cells, or facets, with the points that they use.
    pub(super) fn write_part(
        &self,
        path: &Path,
        (part, kind): (&SelectedCells, CellKind),
        (point_data, cell_data): (&[Array<'_>], &[Array<'_>]),
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, MeshError> {
        let picked = |arrays: &[Array<'_>], n: usize, entries: &[u32]| {
            arrays.iter().map(|array| array.picked(n, entries)).collect()
        };
        let point_data = picked(point_data, self.points.len(), &part.points);
        let cell_data = picked(cell_data, self.n_cells(), &part.owners);
        let grid = Grid::new((&part.coordinates, kind), self.order, &part.cells);
        let options = WriteOptions { extent: Extent::Whole, ..options };
        grid.write(path, point_data, cell_data, None, options)
    }

    /// Writes a file for each rank with cells, or for one, and the `.pvtu` that names them.
    pub(super) fn write_pieces(
        &self,
        path: &Path,
        pieces: Pieces<'_>,
        (point_data, cell_data): (&[Array<'_>], &[Array<'_>]),
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, MeshError> {
        let (n_given, n_cells) = (pieces.partition.ranks().len(), self.n_cells());
        if n_given != n_cells {
            let message = format!("ranks of {n_given} cells, but there are {n_cells}");
            return Err(MeshError::Invalid { field: "partition", message });
        }
        let pvtu = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (rank, cells) in pieces.cells().into_iter().enumerate().filter(|(_, cells)| !cells.is_empty()) {
            let part = SelectedCells::cells(self, cells);
            let path = path.with_file_name(Pieces::name(&pvtu, rank));
            let options = WriteOptions { sum: false, ..options };
            self.write_part(&path, (&part, self.kind), (point_data, cell_data), options)?;
        }
        if pieces.only.is_some_and(|only| only > 0) {
            return Ok(None);
        }
        self.write_index_of(path, &pieces.ranks(), (point_data, cell_data), options)
    }

    /// Writes the file of a rank with all cells. The first rank also writes the `.pvtu` that names all files.
    pub(super) fn write_piece(
        &self,
        path: &Path,
        Piece { rank, n_ranks }: Piece,
        (point_data, cell_data): (Vec<Array<'_>>, Vec<Array<'_>>),
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, MeshError> {
        let ranks: Vec<usize> = (0..n_ranks).collect();
        let sum = match rank {
            0 => self.write_index_of(path, &ranks, (&point_data, &cell_data), options)?,
            _ => None,
        };
        let pvtu = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let options = WriteOptions { sum: false, extent: Extent::Whole, ..options };
        self.write(&path.with_file_name(Pieces::name(&pvtu, rank)), point_data, cell_data, None, options)?;
        Ok(sum)
    }

    /// Writes the `.pvtu` that names the files of ranks.
    fn write_index_of(
        &self,
        path: &Path,
        ranks: &[usize],
        (point_data, cell_data): (&[Array<'_>], &[Array<'_>]),
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, MeshError> {
        let pvtu = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let names: Vec<String> = ranks.iter().map(|&rank| Pieces::name(&pvtu, rank)).collect();
        write_atomically(path, |out| {
            let mut out = Summed::new(out, options.sum.then(Sum::default));
            write_index(
                &mut out,
                self.version(),
                [("PPointData", point_data), ("PCellData", cell_data)],
                &names,
            )?;
            Ok(out.into_sum().map(Sum::finish))
        })
    }
}
