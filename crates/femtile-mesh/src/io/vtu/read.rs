use std::collections::BTreeMap;
use std::path::Path;

use super::array::{Arrays, Values};
use super::document::{DataArray, Group, Piece, Problem, document};
use crate::io::collect::{is_tag_name, pick_in_place};
use crate::io::file::bytes_of;
use crate::io::vtk_cell::{VtkCells, vtk_cell};
use crate::{Field, Mesh, MeshError, Place};

/// Reads a VTU file: ASCII, base64 or appended, plain or compressed with zlib, of one or several pieces.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a VTU file; `path` is used in messages only.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the byte at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
    let document = document(bytes).map_err(at)?;
    let mut grid = Grid::default();
    let mut arrays = Arrays::new(&document);
    for piece in &document.pieces {
        grid.append(path, &mut arrays, piece)?;
    }
    grid.into_mesh(path, document.version < (2, 1))
}

/// All pieces, one after another.
#[derive(Default)]
struct Grid {
    points: Vec<[f64; 3]>,
    types: Vec<u8>,
    ends: Vec<usize>,
    connectivity: Vec<u32>,
    point_data: BTreeMap<String, Field>,
    cell_data: BTreeMap<String, Field>,
    /// Integer cell arrays that may tell regions apart.
    tags: Option<Vec<i32>>,
}

impl Grid {
    fn append(&mut self, path: &Path, arrays: &mut Arrays<'_>, piece: &Piece<'_>) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let (points_before, cells_before) = (self.points.len(), self.types.len());
        let points = find(piece, Group::Points, None).map_err(at)?;
        if points.n_components != 3 {
            let message = format!("points have {} components, not three", points.n_components);
            return Err(at((points.place, message)));
        }
        let coordinates = arrays.values(points, piece.n_points).map_err(at)?.reals();
        self.points.extend(coordinates.as_chunks::<3>().0);
        self.append_cells(path, arrays, piece, points_before)?;
        for array in &piece.arrays {
            let (n, before) = match array.group {
                Group::PointData => (piece.n_points, points_before),
                Group::CellData => (piece.n_cells, cells_before),
                Group::Points | Group::Cells => continue,
            };
            let values = arrays.values(array, n).map_err(at)?;
            self.append_data(array, values, before).map_err(at)?;
        }
        Ok(())
    }

    /// Adds the values of one piece to a field, or to the tags, which have `before` entries so far.
    fn append_data(&mut self, array: &DataArray<'_>, values: Values, before: usize) -> Result<(), Problem> {
        let of_cells = array.group == Group::CellData;
        if let (Values::Integers(tags), true, 1, true) =
            (&values, of_cells, array.n_components, is_tag_name(&array.name))
        {
            let all = self.tags.get_or_insert_default();
            // Of several such arrays the last one counts.
            all.resize(before, 0);
            all.extend(tags.iter().map(|&tag| i32::try_from(tag).unwrap_or(0)));
            return Ok(());
        }
        let target = if of_cells { &mut self.cell_data } else { &mut self.point_data };
        let n_components = array.n_components;
        let field = target.entry(array.name.clone()).or_insert(Field { n_components, values: Vec::new() });
        if field.n_components != n_components || field.values.len() != before * n_components {
            return Err((array.place, format!("array `{}` is not the same in all pieces", array.name)));
        }
        match before {
            0 => field.values = values.reals(),
            _ => field.values.extend(values.reals()),
        }
        Ok(())
    }

    fn append_cells(
        &mut self,
        path: &Path,
        arrays: &mut Arrays<'_>,
        piece: &Piece<'_>,
        first_point: usize,
    ) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let mut whole = |name, n| {
            let array = find(piece, Group::Cells, Some(name)).map_err(at)?;
            if array.n_components != 1 {
                let message = format!("array `{name}` has {} components, not one", array.n_components);
                return Err(at((array.place, message)));
            }
            match arrays.values(array, n).map_err(at)? {
                Values::Integers(values) => Ok((array.place, values)),
                Values::Reals(_) => Err(at((array.place, format!("array `{name}` must hold whole numbers")))),
            }
        };
        let begin = self.connectivity.len();
        let (place, ends) = whole("offsets", piece.n_cells)?;
        let mut last = 0;
        for end in ends {
            if end < last {
                return Err(at((place, format!("offset {end} follows {last}"))));
            }
            last = end;
            self.ends.push(begin.saturating_add(end as usize));
        }
        let (place, types) = whole("types", piece.n_cells)?;
        for vtk_type in types {
            vtk_cell(path, Place::Byte(place), vtk_type)?;
            self.types.push(vtk_type as u8);
        }
        let (place, nodes) = whole("connectivity", last as usize)?;
        for node in nodes {
            if node < 0 || node as usize >= piece.n_points {
                let message =
                    format!("a cell uses point {node}, but the piece has {} points", piece.n_points);
                return Err(at((place, message)));
            }
            self.connectivity.push((first_point + node as usize) as u32);
        }
        Ok(())
    }

    /// `is_old` is true if Lagrange hexahedra are numbered as before VTK 9.
    fn into_mesh(self, path: &Path, is_old: bool) -> Result<Mesh, MeshError> {
        let mut found = VtkCells::new(is_old);
        let mut begin = 0;
        for (cell, (&vtk_type, &end)) in self.types.iter().zip(&self.ends).enumerate() {
            let nodes = &self.connectivity[begin..end];
            begin = end;
            match vtk_cell(path, Place::Whole, i64::from(vtk_type))? {
                None => found.collector.skip(),
                Some(kind) => {
                    let tag = self.tags.as_ref().and_then(|tags| tags.get(cell)).copied().unwrap_or(0);
                    let pushed = found.push(cell, kind, nodes, &self.points, tag);
                    pushed.map_err(|message| MeshError::Parse {
                        path: path.into(),
                        place: Place::Whole,
                        message,
                    })?;
                }
            }
        }
        let (n_entries, n_points) = (found.collector.len(), self.points.len());
        let collected = found.collector.into_mesh(path, self.points, self.tags.is_some())?;
        let mut mesh = collected.mesh;
        // What a later piece lacks is left out.
        let is_complete = |field: &Field, n: usize| field.values.len() == n * field.n_components;
        for (name, mut field) in self.cell_data.into_iter().filter(|(_, field)| is_complete(field, n_entries))
        {
            pick_in_place(&collected.entries, &mut field);
            mesh.cell_fields.insert(name, field);
        }
        for (name, mut field) in self.point_data.into_iter().filter(|(_, field)| is_complete(field, n_points))
        {
            if let Some(nodes) = &collected.nodes {
                pick_in_place(nodes, &mut field);
            }
            mesh.node_fields.insert(name, field);
        }
        Ok(mesh)
    }
}

fn find<'p, 'a>(
    piece: &'p Piece<'a>,
    group: Group,
    name: Option<&str>,
) -> Result<&'p DataArray<'a>, Problem> {
    let mut arrays = piece.arrays.iter();
    let found = arrays.find(|array| array.group == group && name.is_none_or(|name| array.name == name));
    found.ok_or_else(|| (0, format!("a piece has no array {}", name.unwrap_or("of points"))))
}
