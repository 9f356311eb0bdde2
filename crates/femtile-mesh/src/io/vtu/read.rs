use std::collections::BTreeMap;
use std::path::Path;

use super::array::{Values, is_numeric, values};
use super::document::{DataArray, Document, Piece, Problem, document};
use crate::io::collect::{is_tag_name, pick, pick_in_place};
use crate::io::file::bytes_of;
use crate::io::vtk_cell::{VtkCells, vtk_cell};
use crate::{Field, Mesh, MeshError, Place};

/// Reads a VTU file: ASCII, base64 or appended, plain or compressed with zlib, of one piece or several.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a VTU file; `path` serves messages only.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the byte at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
    let document = document(bytes).map_err(at)?;
    let mut grid = Grid::default();
    for piece in &document.pieces {
        grid.append(path, &document, piece)?;
    }
    grid.into_mesh(path, document.version < (2, 1))
}

/// All pieces, one after another.
#[derive(Default)]
struct Grid {
    points: Vec<[f64; 3]>,
    types: Vec<i64>,
    ends: Vec<usize>,
    connectivity: Vec<u32>,
    point_data: BTreeMap<String, Field>,
    cell_data: BTreeMap<String, Field>,
    /// Integer cell arrays that may tell regions apart.
    tags: Option<Vec<i32>>,
}

impl Grid {
    fn append(&mut self, path: &Path, document: &Document<'_>, piece: &Piece<'_>) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let first_point = self.points.len();
        let (points_before, cells_before) = (self.points.len(), self.types.len());
        let points = find(piece, "Points", None).map_err(at)?;
        let coordinates = values(document, points).map_err(at)?.reals();
        if coordinates.len() / 3 != piece.n_points || points.n_components != 3 || coordinates.len() % 3 != 0 {
            let message = format!("{} coordinates for {} points of three", coordinates.len(), piece.n_points);
            return Err(at((points.place, message)));
        }
        self.points.extend(coordinates.as_chunks::<3>().0);
        self.append_cells(path, document, piece, first_point)?;
        for array in &piece.arrays {
            let (target, n, before) = match array.group.as_str() {
                "PointData" => (&mut self.point_data, piece.n_points, points_before),
                "CellData" => (&mut self.cell_data, piece.n_cells, cells_before),
                _ => continue,
            };
            if !is_numeric(array) {
                continue;
            }
            let values = values(document, array).map_err(at)?;
            if array.n_components == 0
                || values.len() / array.n_components != n
                || values.len() % array.n_components != 0
            {
                let message = format!("array `{}` has {} values for {n} entries", array.name, values.len());
                return Err(at((array.place, message)));
            }
            if let (Values::Integers(tags), "CellData", 1, true) =
                (&values, array.group.as_str(), array.n_components, is_tag_name(&array.name))
            {
                let all = self.tags.get_or_insert_default();
                all.resize(before, 0);
                all.extend(tags.iter().map(|&tag| i32::try_from(tag).unwrap_or(0)));
                continue;
            }
            let n_components = array.n_components;
            let field =
                target.entry(array.name.clone()).or_insert(Field { n_components, values: Vec::new() });
            if field.n_components != n_components || field.values.len() != before * n_components {
                let message = format!("array `{}` is not the same in all pieces", array.name);
                return Err(at((array.place, message)));
            }
            field.values.extend(values.reals());
        }
        Ok(())
    }

    fn append_cells(
        &mut self,
        path: &Path,
        document: &Document<'_>,
        piece: &Piece<'_>,
        first_point: usize,
    ) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let whole = |name| {
            let array = find(piece, "Cells", Some(name)).map_err(at)?;
            match values(document, array).map_err(at)? {
                Values::Integers(values) => Ok((array.place, values)),
                Values::Reals(_) => Err(at((array.place, format!("array `{name}` must hold whole numbers")))),
            }
        };
        let (place, nodes) = whole("connectivity")?;
        let begin = self.connectivity.len();
        for &node in &nodes {
            if node < 0 || node as usize >= piece.n_points {
                let message =
                    format!("a cell uses point {node}, but the piece has {} points", piece.n_points);
                return Err(at((place, message)));
            }
            self.connectivity.push((first_point + node as usize) as u32);
        }
        let (place, ends) = whole("offsets")?;
        let (types_place, types) = whole("types")?;
        if ends.len() != piece.n_cells || types.len() != piece.n_cells {
            let message =
                format!("{} offsets and {} types for {} cells", ends.len(), types.len(), piece.n_cells);
            return Err(at((place.max(types_place), message)));
        }
        let mut last = 0;
        for end in ends {
            if end < last || end as usize > nodes.len() {
                return Err(at((place, format!("offset {end} follows {last} in {} indices", nodes.len()))));
            }
            last = end;
            self.ends.push(begin + end as usize);
        }
        self.types.extend(types);
        Ok(())
    }

    /// `is_old` says that Lagrange hexahedra are numbered as before VTK 9.
    fn into_mesh(self, path: &Path, is_old: bool) -> Result<Mesh, MeshError> {
        let mut found = VtkCells::new(is_old);
        let mut begin = 0;
        for (cell, (&vtk_type, &end)) in self.types.iter().zip(&self.ends).enumerate() {
            let nodes = &self.connectivity[begin..end];
            begin = end;
            match vtk_cell(path, Place::Whole, vtk_type)? {
                None => found.collector.skip(),
                Some(kind) => {
                    let tag = self.tags.as_ref().and_then(|tags| tags.get(cell)).copied().unwrap_or(0);
                    let pushed = found.push(cell, kind, nodes, tag);
                    pushed.map_err(|message| MeshError::Parse {
                        path: path.into(),
                        place: Place::Whole,
                        message,
                    })?;
                }
            }
        }
        let n_entries = found.collector.len();
        let n_points = self.points.len();
        let collected = found.collector.into_mesh(path, self.points, self.tags.is_some())?;
        let mut mesh = collected.mesh;
        for (name, field) in &self.cell_data {
            if field.values.len() == n_entries * field.n_components {
                mesh.cell_fields.insert(name.clone(), pick(&collected.entries, field));
            }
        }
        for (name, mut field) in self.point_data {
            if field.values.len() != n_points * field.n_components {
                continue;
            }
            if let Some(nodes) = &collected.nodes {
                pick_in_place(nodes, &mut field);
            }
            mesh.node_fields.insert(name, field);
        }
        Ok(mesh)
    }
}

fn find<'p, 'a>(piece: &'p Piece<'a>, group: &str, name: Option<&str>) -> Result<&'p DataArray<'a>, Problem> {
    let mut arrays = piece.arrays.iter();
    let found = arrays.find(|array| array.group == group && name.is_none_or(|name| array.name == name));
    found.ok_or_else(|| (0, format!("a piece has no array {}", name.unwrap_or("of points"))))
}
