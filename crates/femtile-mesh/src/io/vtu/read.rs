use std::collections::BTreeMap;
use std::path::Path;

use femtile_device::parallel;

use super::array::{Arrays, Kind, Values};
use super::document::{DataArray, Group, Piece, Problem, document};
use crate::first_where::first_where;
use crate::io::collect::{append, insert_fields, pick};
use crate::io::file::bytes_of;
use crate::io::vtk_arrays::{
    Ghosts, TagArray, no_tag, note_of_ghosts, note_of_two, several_components, tag_of,
};
use crate::io::vtk_cell::{VtkCell, VtkCells, vtk_cell};
use crate::{CellShape, Field, Mesh, MeshError, Place};

/// Reads a VTU file: ASCII, base64 or appended, plain or compressed with zlib or LZ4, of one or several pieces.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a VTU file; `path` is used in messages only.
///
/// Cells that `vtkGhostType` marks as those of another piece or as hidden are left out.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the byte at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    parse_with(path, bytes, TagArray(None))
}

/// Reads as [`parse`] does, with the tags of cells from the cell array of this name.
///
/// # Errors
/// [`MeshError::Invalid`] about `tags` if there is no such array; else those of [`parse`].
pub fn parse_tagged(path: &Path, bytes: &[u8], array: &str) -> Result<Mesh, MeshError> {
    parse_with(path, bytes, TagArray(Some(array)))
}

fn parse_with(path: &Path, bytes: &[u8], tag_array: TagArray<'_>) -> Result<Mesh, MeshError> {
    let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
    let document = document(bytes).map_err(at)?;
    let mut grid = Grid::new(tag_array);
    let mut arrays = Arrays::new(&document);
    for piece in &document.pieces {
        grid.append(path, &mut arrays, piece)?;
    }
    let mut mesh = grid.into_mesh(path, document.version < (2, 1))?;
    mesh.notes.extend(document.has_later_steps.then(note_of_later_steps));
    Ok(mesh)
}

/// The note that arrays of later time steps are left out.
pub(super) fn note_of_later_steps() -> String {
    "arrays of time steps after the first one (`TimeStep`) are left out".into()
}

/// All pieces, one after another.
#[derive(Default)]
pub(super) struct Grid<'t> {
    tag_array: TagArray<'t>,
    /// First points and cells of pieces that share points; none if they do not.
    pub begins: Vec<[usize; 2]>,
    pub points: Vec<[f64; 3]>,
    pub types: Vec<u8>,
    pub ends: Vec<usize>,
    pub connectivity: Vec<u32>,
    pub point_data: BTreeMap<String, Field>,
    cell_data: BTreeMap<String, Field>,
    tags: Option<Vec<i32>>,
    /// The array of the tags, and one that it replaced.
    tag_names: [Option<String>; 2],
}

impl<'t> Grid<'t> {
    /// A grid without pieces.
    pub(super) fn new(tag_array: TagArray<'t>) -> Self {
        Self { tag_array, ..Self::default() }
    }

    /// Adds a piece of the file at `path`.
    pub(super) fn append<'a>(
        &mut self,
        path: &Path,
        arrays: &mut Arrays<'a>,
        piece: &Piece<'a>,
    ) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let (points_before, cells_before) = (self.points.len(), self.types.len());
        let points = find(piece, Group::Points, None).map_err(at)?;
        if points.n_components != 3 {
            let message = format!("points have {} components, not three", points.n_components);
            return Err(at((points.place, message)));
        }
        append(&mut self.points, arrays.values(points, piece.n_points).map_err(at)?.triples());
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
    fn append_data(
        &mut self,
        array: &DataArray<'_>,
        values: Values<'_>,
        before: usize,
    ) -> Result<(), Problem> {
        let of_cells = array.group == Group::CellData;
        let is_integer = !matches!(array.kind, Kind::Float(_));
        if of_cells && self.tag_array.is(&array.name, array.n_components, is_integer) {
            return self.append_tags(array, values, before);
        }
        let target = if of_cells { &mut self.cell_data } else { &mut self.point_data };
        let n_components = array.n_components;
        let field = target.entry(array.name.clone()).or_insert(Field { n_components, values: Vec::new() });
        if field.n_components != n_components {
            return Err((array.place, format!("array `{}` is not the same in all pieces", array.name)));
        }
        // An array takes the place of one before it with the same name.
        field.values.truncate(before * n_components);
        if field.values.len() < before * n_components {
            // A piece before lacks it: without marks no cell is a ghost, and a field is left out.
            if !Ghosts::is_array(&array.name) {
                return Ok(());
            }
            field.values.resize(before * n_components, 0.0);
        }
        match before {
            0 => field.values = values.reals(),
            _ => field.values.extend(values.reals()),
        }
        Ok(())
    }

    fn append_tags(
        &mut self,
        array: &DataArray<'_>,
        values: Values<'_>,
        before: usize,
    ) -> Result<(), Problem> {
        if array.n_components != 1 {
            return Err((array.place, several_components(&array.name, array.n_components)));
        }
        let whole = values.integers(|tag| i32::try_from(tag).unwrap_or(NO_TAG));
        let of_reals =
            || values.clone().reals().into_iter().map(|tag| tag_of(tag).unwrap_or(NO_TAG)).collect();
        let tags = whole.unwrap_or_else(of_reals);
        if let Some(cell) = first_where(&tags, |&tag| tag == NO_TAG) {
            let message = match values.integers(|value| value) {
                Some(values) => no_tag(&array.name, before + cell, values[cell]),
                None => no_tag(&array.name, before + cell, values.reals()[cell]),
            };
            return Err((array.place, message));
        }
        let all = self.tags.get_or_insert_default();
        // Of several such arrays the last one counts.
        all.resize(before, 0);
        append(all, tags);
        let [name, replaced] = &mut self.tag_names;
        if name.as_ref().is_some_and(|name| *name != array.name) {
            *replaced = name.take();
        }
        *name = Some(array.name.clone());
        Ok(())
    }

    /// Turns cells that VTK leaves out into points, which meshes leave out, and returns their number.
    fn leave_out_ghosts(&mut self) -> usize {
        let ghosts = Ghosts::take(&mut self.cell_data, &mut self.point_data);
        if ghosts.is_empty() {
            return 0;
        }
        let (mut begin, mut n_ghosts) = (0, 0);
        for (cell, (vtk_type, &end)) in self.types.iter_mut().zip(&self.ends).enumerate() {
            if ghosts.has(cell, self.connectivity[begin..end].iter().map(|&point| point as usize)) {
                *vtk_type = POINT;
                n_ghosts += 1;
            }
            begin = end;
        }
        n_ghosts
    }

    fn append_cells<'a>(
        &mut self,
        path: &Path,
        arrays: &mut Arrays<'a>,
        piece: &Piece<'a>,
        first_point: usize,
    ) -> Result<(), MeshError> {
        let at = |(byte, message)| MeshError::Parse { path: path.into(), place: Place::Byte(byte), message };
        let mut whole = |name, n| {
            let array = find(piece, Group::Cells, Some(name)).map_err(at)?;
            if array.n_components != 1 {
                let message = format!("array `{name}` has {} components, not one", array.n_components);
                return Err(at((array.place, message)));
            }
            Ok((array.place, arrays.values(array, n).map_err(at)?))
        };
        let no_integers = |name, place| at((place, format!("array `{name}` must hold whole numbers")));
        let begin = self.connectivity.len();
        let (place, ends) = whole("offsets", piece.n_cells)?;
        let ends = ends.integers(|end| end).ok_or_else(|| no_integers("offsets", place))?;
        let fall = match ends.first() {
            Some(&first) if first < 0 => Some((first, 0)),
            _ => parallel::first(ends.len().saturating_sub(1), parallel::CHEAP, |i| ends[i + 1] < ends[i])
                .map(|i| (ends[i + 1], ends[i])),
        };
        if let Some((end, last)) = fall {
            return Err(at((place, format!("offset {end} follows {last}"))));
        }
        let last = ends.last().map_or(0, |&last| last as usize);
        let end = |i: usize| begin.saturating_add(ends[i] as usize);
        append(&mut self.ends, parallel::map(ends.len(), parallel::CHEAP, end));
        drop(ends);
        let (place, values) = whole("types", piece.n_cells)?;
        // 0 is no cell.
        let types = values.integers(|vtk_type| u8::try_from(vtk_type).unwrap_or(0));
        let types = types.ok_or_else(|| no_integers("types", place))?;
        let is_known: Vec<bool> =
            (0..256).map(|vtk_type| vtk_cell(path, Place::Byte(place), vtk_type).is_ok()).collect();
        if let Some(cell) = first_where(&types, |&vtk_type| !is_known[vtk_type as usize]) {
            let vtk_type = values.integer(cell);
            vtk_cell(path, Place::Byte(place), vtk_type)?;
        }
        append(&mut self.types, types);
        let (place, values) = whole("connectivity", last)?;
        let point = |node: i64| match node >= 0 && (node as usize) < piece.n_points {
            true => (first_point + node as usize) as u32,
            false => UNKNOWN,
        };
        let nodes = values.integers(point).ok_or_else(|| no_integers("connectivity", place))?;
        if let Some(i) = first_where(&nodes, |&node| node == UNKNOWN) {
            let node = values.integer(i);
            let message = format!("a cell uses point {node}, but the piece has {} points", piece.n_points);
            return Err(at((place, message)));
        }
        append(&mut self.connectivity, nodes);
        Ok(())
    }

    /// Returns the shape and number of the next cells that are alike, straight and with their corners only.
    fn alike(&self, path: &Path, cell: usize, begin: usize) -> Option<(CellShape, usize)> {
        let vtk_type = self.types[cell];
        let found = vtk_cell(path, Place::Whole, i64::from(vtk_type)).ok()?;
        let Some(VtkCell::Linear(shape)) = found else { return None };
        let ends = (1..).map(|n| begin + n * shape.n_nodes());
        let next = self.types[cell..].iter().zip(&self.ends[cell..]).zip(ends);
        let n = next.take_while(|&((&found, &end), expected)| found == vtk_type && end == expected).count();
        (n > 0).then_some((shape, n))
    }

    /// `is_old` is true if Lagrange hexahedra are numbered as before VTK 9.
    pub(super) fn into_mesh(mut self, path: &Path, is_old: bool) -> Result<Mesh, MeshError> {
        self.tag_array.refuse_missing(self.tags.is_some(), &self.cell_data)?;
        let n_ghosts = self.leave_out_ghosts();
        let n_repeated = if self.begins.len() > 1 { self.merge() } else { 0 };
        let mut found = VtkCells::new(is_old);
        let (mut cell, mut begin) = (0, 0);
        while cell < self.types.len() {
            if let Some((shape, n)) = self.alike(path, cell, begin) {
                let nodes = begin..begin + n * shape.n_nodes();
                (cell, begin) = (cell + n, nodes.end);
                let tags = self.tags.as_deref().unwrap_or_default();
                let tags = &tags[(cell - n).min(tags.len())..cell.min(tags.len())];
                let nodes = match nodes.len() == self.connectivity.len() {
                    true => std::mem::take(&mut self.connectivity),
                    false => self.connectivity[nodes].to_vec(),
                };
                found.collector.push_all(shape, nodes, tags, 0);
                continue;
            }
            let nodes = &self.connectivity[begin..self.ends[cell]];
            begin = self.ends[cell];
            match vtk_cell(path, Place::Whole, i64::from(self.types[cell]))? {
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
            cell += 1;
        }
        let (n_entries, n_points) = (found.collector.len(), self.points.len());
        let collected = found.collector.into_mesh(path, self.points, self.tags.is_some())?;
        let mut mesh = collected.mesh;
        mesh.notes.extend(note_of_ghosts(n_ghosts));
        if n_repeated > 0 {
            mesh.notes
                .push(format!("several pieces have the same cells, {n_repeated} in all: each is read once"));
        }
        if let [Some(used), Some(other)] = &self.tag_names {
            mesh.notes.push(note_of_two(used, other));
        }
        // What a piece lacks is left out.
        let is_complete = |field: &Field, n: usize| field.values.len() == n * field.n_components;
        self.cell_data.retain(|_, field| is_complete(field, n_entries));
        insert_fields(&mut mesh, &collected.entries, self.cell_data);
        for (name, mut field) in self.point_data.into_iter().filter(|(_, field)| is_complete(field, n_points))
        {
            if let Some(nodes) = &collected.nodes {
                pick(nodes, &mut field);
            }
            mesh.node_fields.insert(name, field);
        }
        Ok(mesh)
    }
}

/// VTK's type of a point.
pub(super) const POINT: u8 = 1;

/// Stands for a point that the piece does not have.
const UNKNOWN: u32 = u32::MAX;

/// Stands for a value that is not a tag.
const NO_TAG: i32 = i32::MIN;

fn find<'p, 'a>(
    piece: &'p Piece<'a>,
    group: Group,
    name: Option<&str>,
) -> Result<&'p DataArray<'a>, Problem> {
    let mut arrays = piece.arrays.iter();
    let found = arrays.find(|array| array.group == group && name.is_none_or(|name| array.name == name));
    found.ok_or_else(|| (0, format!("a piece has no array {}", name.unwrap_or("of points"))))
}
