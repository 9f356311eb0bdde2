use std::path::Path;

use super::encode::{Array, Head, source, stored, write_document};
use super::options::{Extent, WriteOptions};
use super::selected_cells::{SelectedCells, boundary_of};
use super::spread::{node_points, spread};
use crate::check::{BoundaryFacets, boundary_facets};
use crate::first_where::first_where;
use crate::io::atomic::write_atomically;
use crate::io::lagrange::{Numbering, n_points};
use crate::io::sum::{FileSum, Sum, Summed};
use crate::{CellKind, Field, Mesh, MeshError};

/// Cells of some order, as solutions of higher order are written.
#[derive(Debug, Clone, Copy)]
pub struct LagrangeCells<'a> {
    /// Triangle, tetrahedron, quadrilateral or hexahedron.
    pub kind: CellKind,
    /// Degree, in each coordinate of quadrilaterals and hexahedra; VTK 9 shows at most 10.
    pub order: usize,
    /// Points of all cells.
    pub points: &'a [[f64; 3]],
    /// Points of each cell, evenly spaced on the reference cell, the first coordinate running fastest:
    /// `[n_cells × points of a cell]`.
    pub cells: &'a [u32],
}

impl LagrangeCells<'_> {
    /// Returns the number of points of a cell.
    pub fn points_per_cell(&self) -> usize {
        n_points(self.kind, self.order)
    }

    /// Returns the points of each cell in the order of VTK: corners, edges, faces, the inside.
    ///
    /// # Panics
    /// The indices do not divide into cells.
    pub fn in_vtk_order(&self) -> Vec<u32> {
        let grid = Grid::of_lagrange(self);
        let cells = self.cells.chunks(self.points_per_cell());
        cells.flat_map(|cell| grid.places.iter().map(|&place| cell[place])).collect()
    }

    pub(super) fn validate(&self) -> Result<(), MeshError> {
        let invalid = |field, message| Err(MeshError::Invalid { field, message });
        let n = self.points_per_cell();
        if self.kind == CellKind::Segment || self.order == 0 {
            let message = format!(
                "{} cells of order {}; cells of two or three dimensions from order 1",
                self.kind, self.order
            );
            return invalid("kind", message);
        }
        if !self.cells.len().is_multiple_of(n) {
            return invalid("cells", format!("{} indices do not divide into {n} a cell", self.cells.len()));
        }
        match first_where(self.cells, |&point| point as usize >= self.points.len()) {
            Some(i) => {
                let (cell, point, n_points) = (i / n, self.cells[i], self.points.len());
                invalid("cells", format!("cell {cell} uses point {point}, but there are {n_points}"))
            }
            None => Ok(()),
        }
    }
}

/// Returns the coordinates of each point of a Lagrange cell in VTK's order, in units of `1 / order` of the reference cell.
///
/// # Errors
/// [`MeshError::Invalid`] for segments, and for order 0.
pub fn lattice(kind: CellKind, order: usize) -> Result<Vec<[usize; 3]>, MeshError> {
    LagrangeCells { kind, order, points: &[], cells: &[] }.validate()?;
    Ok(Numbering::vtk(kind, order, false).points().to_vec())
}

/// Writes the mesh with its own fields and tags and further fields, uncompressed, for ParaView.
///
/// Cell tags go into the cell array `tag`. Curved cells become Lagrange cells, and fields at nodes are interpolated to
/// their points linearly in each coordinate of a cell. The file appears under its name only when it is complete.
///
/// # Errors
/// [`MeshError::Invalid`] when a field has not one entry for each node or cell, [`MeshError::Io`] when
/// the file cannot be written.
pub fn write(
    path: &Path,
    mesh: &Mesh,
    point_data: &[(&str, &Field)],
    cell_data: &[(&str, &Field)],
) -> Result<(), MeshError> {
    write_with(path, mesh, point_data, cell_data, WriteOptions::default()).map(drop)
}

/// Writes as [`write()`] does, with options; returns the sum of the file if they ask for it.
///
/// # Errors
/// Those of [`write()`].
pub fn write_with(
    path: &Path,
    mesh: &Mesh,
    point_data: &[(&str, &Field)],
    cell_data: &[(&str, &Field)],
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, MeshError> {
    let boundary = options.is_surface().then(|| boundary_facets(mesh));
    let cells = cell_arrays(mesh, cell_data, options)?;
    let Some(curved) = &mesh.curved else {
        let given = fields("point_data", point_data.iter().copied(), mesh.n_nodes(), 0)?;
        return straight(mesh, options).write(path, point_arrays(mesh, given)?, cells, boundary, options);
    };
    mesh.validate()?;
    let own = mesh.node_fields.iter().map(|(name, field)| (name.as_str(), field));
    let checked: Vec<_> = own.chain(point_data.iter().copied()).collect();
    fields("point_data", checked.iter().copied(), mesh.n_nodes(), 0)?;
    let spread: Vec<_> = checked.iter().map(|(name, field)| (*name, spread(mesh, curved, field))).collect();
    let of_points = spread.iter().map(|(name, field)| (*name, field));
    let facet = facet_kind(mesh, options);
    let facets = node_points(mesh, curved, facets_of(mesh, facet))?;
    let lagrange =
        LagrangeCells { kind: mesh.kind, order: curved.order, points: &curved.points, cells: &curved.cells };
    let grid = Grid { facet, facets: &facets, ..Grid::of_lagrange(&lagrange) };
    let point_data = fields("point_data", of_points, curved.points.len(), 0)?;
    grid.write(path, point_data, cells, boundary, options)
}

/// The kind of facets that are written beside cells, if there are any.
fn facet_kind(mesh: &Mesh, options: WriteOptions<'_>) -> Option<CellKind> {
    let has_facets = options.facets && options.extent == Extent::Whole && !mesh.facets.tags.is_empty();
    mesh.kind.facet_kind().filter(|_| has_facets)
}

/// Nodes of the facets that are written, of this kind.
fn facets_of(mesh: &Mesh, facet: Option<CellKind>) -> &[u32] {
    if facet.is_some() { &mesh.facets.nodes } else { &[] }
}

/// The cells of a mesh as straight ones, with facets if the options ask for them.
pub(super) fn straight<'a>(mesh: &'a Mesh, options: WriteOptions<'_>) -> Grid<'a> {
    let facet = facet_kind(mesh, options);
    let facets = facets_of(mesh, facet);
    Grid { facet, facets, ..Grid::new((&mesh.points, mesh.kind), None, &mesh.cells) }
}

/// Fields of a mesh at its nodes, and those that are given, which replace others of the same name.
pub(super) fn point_arrays<'a>(mesh: &'a Mesh, given: Vec<Array<'a>>) -> Result<Vec<Array<'a>>, MeshError> {
    let own = mesh.node_fields.iter().map(|(name, field)| (name.as_str(), field));
    Ok(joined(fields("point_data", own, mesh.n_nodes(), 0)?, given))
}

/// Fields of cells, those that are given, and tags.
pub(super) fn cell_arrays<'a>(
    mesh: &'a Mesh,
    given: &[(&'a str, &'a Field)],
    options: WriteOptions<'_>,
) -> Result<Vec<Array<'a>>, MeshError> {
    let n_facets = facet_kind(mesh, options).map_or(0, |_| mesh.facets.tags.len());
    let of_mesh = mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field));
    let given = fields("cell_data", given.iter().copied(), mesh.n_cells(), n_facets)?;
    let mut arrays = joined(fields("cell_data", of_mesh, mesh.n_cells(), n_facets)?, given);
    if !mesh.cell_tags.is_empty() || n_facets > 0 {
        arrays.push(tags(mesh, n_facets));
    }
    Ok(arrays)
}

/// Arrays of the mesh, written early, and given ones.
fn joined<'a>(mut own: Vec<Array<'a>>, given: Vec<Array<'a>>) -> Vec<Array<'a>> {
    own.retain(|array| given.iter().all(|other| other.name != array.name));
    own.iter_mut().for_each(|array| array.is_late = false);
    own.extend(given);
    own
}

/// Writes cells of any order with fields at all their points; curved meshes are written so as well.
///
/// `options.facets` has no meaning here. The file appears under its name only when it is complete. Returns
/// its sum if the options ask for it.
///
/// # Errors
/// [`MeshError::Invalid`] when cells are segments, an index is out of range or a
/// field does not have one entry for each point or cell; [`MeshError::Io`] when the file cannot be written.
pub fn write_lagrange(
    path: &Path,
    cells: &LagrangeCells<'_>,
    point_data: &[(&str, &Field)],
    cell_data: &[(&str, &Field)],
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, MeshError> {
    cells.validate()?;
    let n_cells = cells.cells.len() / cells.points_per_cell();
    let of_points = fields("point_data", point_data.iter().copied(), cells.points.len(), 0)?;
    let of_cells = fields("cell_data", cell_data.iter().copied(), n_cells, 0)?;
    let grid = Grid::of_lagrange(cells);
    let boundary = options.is_surface().then(|| boundary_of(&grid)).transpose()?;
    grid.write(path, of_points, of_cells, boundary, options)
}

/// Content of a file: cells of one type, then facets by their corners.
pub(super) struct Grid<'a> {
    pub points: &'a [[f64; 3]],
    pub kind: CellKind,
    /// Order of cells whose points are in lexicographic order; none if cells have their corners in VTK's.
    pub order: Option<usize>,
    /// Position of each point in VTK's order among the points of a cell; those of the corners come first.
    pub places: Vec<usize>,
    pub cells: &'a [u32],
    facet: Option<CellKind>,
    facets: &'a [u32],
}

impl<'a> Grid<'a> {
    pub(super) fn of_lagrange(cells: &LagrangeCells<'a>) -> Self {
        let LagrangeCells { kind, order, points, cells } = *cells;
        Self::new((points, kind), Some(order), cells)
    }

    /// Cells without facets.
    pub(super) fn new(
        (points, kind): (&'a [[f64; 3]], CellKind),
        order: Option<usize>,
        cells: &'a [u32],
    ) -> Self {
        let places = match order {
            None => (0..kind.n_nodes()).collect(),
            Some(order) => Numbering::vtk(kind, order, false).places().to_vec(),
        };
        Self { points, kind, order, places, cells, facet: None, facets: &[] }
    }

    /// Number of points of a cell.
    pub fn points_per_cell(&self) -> usize {
        self.places.len()
    }

    /// Number of the type of all cells in VTK.
    fn vtk_type(&self) -> u8 {
        match (self.order, self.kind) {
            (None | Some(1), kind) => kind.vtk_type(),
            (_, CellKind::Segment) => 68,
            (_, CellKind::Triangle) => 69,
            (_, CellKind::Quadrilateral) => 70,
            (_, CellKind::Tetrahedron) => 71,
            (_, CellKind::Hexahedron) => 72,
        }
    }

    pub(super) fn n_cells(&self) -> usize {
        self.cells.len() / self.places.len()
    }

    fn n_facets(&self) -> usize {
        self.facet.map_or(0, |kind| self.facets.len() / kind.n_nodes())
    }

    pub(super) fn write(
        &self,
        path: &Path,
        point_data: Vec<Array<'_>>,
        cell_data: Vec<Array<'_>>,
        boundary: Option<BoundaryFacets>,
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, MeshError> {
        if let (Some(boundary), Some(kind)) = (boundary, self.kind.facet_kind()) {
            let surface = SelectedCells::surface(self, boundary);
            return self.write_part(path, (&surface, kind), (&point_data, &cell_data), options);
        }
        if let Extent::Pieces(pieces) = options.extent {
            return self.write_pieces(path, pieces, (&point_data, &cell_data), options);
        }
        if let Extent::Piece(piece) = options.extent {
            return self.write_piece(path, piece, (point_data, cell_data), options);
        }
        let (head, groups) = self.document(point_data, cell_data, options);
        write_atomically(path, |out| {
            let mut out = Summed::new(out, options.sum.then(Sum::default));
            write_document(&mut out, &head, &groups)?;
            Ok(out.into_sum().map(Sum::finish))
        })
    }

    /// The version of the format: from 2.1 on, the vertical edges of Lagrange hexahedra are in the order of VTK 9.
    pub(super) fn version(&self) -> &'static str {
        if self.vtk_type() >= 68 { "2.2" } else { "1.0" }
    }

    /// Returns the head and the arrays of a file, by group.
    pub fn document<'s>(
        &'s self,
        point_data: Vec<Array<'s>>,
        cell_data: Vec<Array<'s>>,
        options: WriteOptions<'_>,
    ) -> (Head, [(&'static str, Vec<Array<'s>>); 4]) {
        let coordinates = Array {
            name: "Points".into(),
            kind: "Float64",
            n_components: 3,
            n_bytes: self.points.len() * 24,
            bytes: stored(self.points.as_flattened(), f64::to_le_bytes, |_| std::iter::empty()),
            is_late: false,
        };
        let groups = [
            ("PointData", point_data),
            ("CellData", cell_data),
            ("Points", vec![coordinates]),
            ("Cells", self.topology()),
        ];
        let head = Head {
            version: self.version(),
            n_points: self.points.len(),
            n_cells: self.n_cells() + self.n_facets(),
            compression: options.compression,
        };
        (head, groups)
    }

    fn topology(&self) -> Vec<Array<'_>> {
        let (n_cells, n_facets) = (self.n_cells(), self.n_facets());
        let (per_cell, per_facet) = (self.places.len(), self.facet.map_or(0, CellKind::n_nodes));
        let cell_type = self.vtk_type();
        let n_indices = self.cells.len() + self.facets.len();
        let is_narrow = n_indices.max(self.points.len()) <= i32::MAX as usize;
        let permuted = move |first: usize| {
            let begin = first.min(self.cells.len()) / per_cell * per_cell;
            let cells = self.cells[begin..].chunks_exact(per_cell);
            let nodes = cells.flat_map(|cell| self.places.iter().map(|&place| &cell[place]));
            nodes.chain(self.facets).skip(first - begin).map(|&node| u64::from(node))
        };
        let facets = move |first: usize| self.facets[first..].iter().map(|node| node.to_le_bytes());
        let mut connectivity = integers("connectivity", n_indices, is_narrow, permuted);
        if is_narrow && self.places.iter().copied().eq(0..per_cell) {
            connectivity.bytes = stored(self.cells, u32::to_le_bytes, facets);
        }
        let end = move |i: usize| i.min(n_cells) * per_cell + i.saturating_sub(n_cells) * per_facet;
        let ends = move |first: usize| (first + 1..).map(move |i| end(i) as u64);
        let types = Array {
            name: "types".into(),
            kind: "UInt8",
            n_components: 1,
            n_bytes: n_cells + n_facets,
            bytes: source(move |first| {
                let facet_type = self.facet.map_or(0, CellKind::vtk_type);
                (first..).map(move |i| [if i < n_cells { cell_type } else { facet_type }])
            }),
            is_late: false,
        };
        vec![connectivity, integers("offsets", n_cells + n_facets, is_narrow, ends), types]
    }
}

/// An array of `n` integers, of 32 bits if they are narrow; `values` returns them from a given one on.
fn integers<'a, I: Iterator<Item = u64>>(
    name: &str,
    n: usize,
    is_narrow: bool,
    values: impl Fn(usize) -> I + Sync + 'a,
) -> Array<'a> {
    let (kind, n_bytes, bytes) = match is_narrow {
        true => {
            ("Int32", 4 * n, source(move |first| values(first).map(|value| (value as u32).to_le_bytes())))
        }
        false => ("Int64", 8 * n, source(move |first| values(first).map(u64::to_le_bytes))),
    };
    Array { name: name.into(), kind, n_components: 1, n_bytes, bytes, is_late: false }
}

pub(super) fn fields<'a>(
    what: &'static str,
    fields: impl Iterator<Item = (&'a str, &'a Field)>,
    n: usize,
    n_padding: usize,
) -> Result<Vec<Array<'a>>, MeshError> {
    let mut arrays: Vec<Array<'a>> = Vec::new();
    for (name, field) in fields {
        if field.n_components == 0 || field.values.len() != n * field.n_components {
            let (found, wide) = (field.values.len(), field.n_components);
            let message = format!("`{name}` has {found} values for {n} × {wide}");
            return Err(MeshError::Invalid { field: what, message });
        }
        let padding = n_padding * field.n_components;
        arrays.retain(|array| array.name != name);
        arrays.push(Array {
            name: name.into(),
            kind: "Float64",
            n_components: field.n_components,
            n_bytes: 8 * (field.values.len() + padding),
            bytes: stored(&field.values, f64::to_le_bytes, |_| std::iter::repeat(f64::NAN.to_le_bytes())),
            is_late: true,
        });
    }
    Ok(arrays)
}

fn tags(mesh: &Mesh, n_facets: usize) -> Array<'_> {
    let untagged = if mesh.cell_tags.is_empty() { mesh.n_cells() } else { 0 };
    let of_facets = &mesh.facets.tags[..n_facets];
    Array {
        name: "tag".into(),
        kind: "Int32",
        n_components: 1,
        n_bytes: 4 * (mesh.n_cells() + n_facets),
        bytes: stored(&mesh.cell_tags, i32::to_le_bytes, move |first| {
            let zeros = std::iter::repeat_n(0, untagged.saturating_sub(first));
            let facets = &of_facets[first.saturating_sub(untagged)..];
            zeros.chain(facets.iter().copied()).map(i32::to_le_bytes)
        }),
        is_late: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of an array, produced in pieces of `size`.
    fn bytes(array: &Array<'_>, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; array.n_bytes];
        bytes.chunks_mut(size).enumerate().for_each(|(i, piece)| (array.bytes)(i * size, piece));
        bytes
    }

    #[test]
    fn pieces_of_arrays_join_across_cells_and_facets() {
        let cells: Vec<u32> = (0..5 * 9).map(|i| i * 31 % 45).collect();
        let facets: Vec<u32> = (0..3 * 2).collect();
        let grid = Grid {
            facet: Some(CellKind::Segment),
            facets: &facets,
            ..Grid::of_lagrange(&LagrangeCells {
                kind: CellKind::Quadrilateral,
                order: 2,
                points: &[],
                cells: &cells,
            })
        };
        let nodes = cells.chunks(9).flat_map(|cell| grid.places.iter().map(|&place| cell[place]));
        let nodes: Vec<u32> = nodes.chain(facets.iter().copied()).collect();
        let ends: Vec<u32> = vec![9, 18, 27, 36, 45, 47, 49, 51];
        let expected =
            [nodes, ends].map(|numbers| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        let field = Field { n_components: 3, values: (0..21).map(f64::from).collect() };
        let padded = fields("cell_data", [("u", &field)].into_iter(), 7, 2).unwrap();
        let numbers = (0..21).map(f64::from).chain([f64::NAN; 6]);
        let numbers: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
        for size in [8, 16, 40, 72, 80, 1000] {
            let [connectivity, offsets, types] = &grid.topology()[..] else { panic!("three arrays") };
            assert_eq!([bytes(connectivity, size), bytes(offsets, size)], expected, "{size}");
            assert_eq!(bytes(types, size), [70, 70, 70, 70, 70, 3, 3, 3]);
            assert_eq!(bytes(&padded[0], size), numbers);
        }
    }

    #[test]
    fn integers_have_64_bits_where_32_are_too_few() {
        let numbers = [0, 1, i32::MAX as u64, u64::from(u32::MAX)];
        for (is_narrow, kind) in [(true, "Int32"), (false, "Int64")] {
            let array = integers("offsets", 4, is_narrow, |first| numbers[first..].iter().copied());
            let width = if is_narrow { 4 } else { 8 };
            let expected: Vec<u8> =
                numbers.iter().flat_map(|number| number.to_le_bytes()[..width].to_vec()).collect();
            assert_eq!((array.kind, bytes(&array, 2 * width)), (kind, expected));
        }
        let points = [[0.0; 3]; 3];
        let (cells, facets) = ([0, 1, 2, 0], [0, 1]);
        let grid = Grid {
            facet: Some(CellKind::Segment),
            facets: &facets,
            ..Grid::new((&points, CellKind::Quadrilateral), None, &cells)
        };
        let kinds: Vec<&str> = grid.topology().iter().map(|array| array.kind).collect();
        assert_eq!(kinds, ["Int32", "Int32", "UInt8"]);
    }
}
