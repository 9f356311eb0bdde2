//! Sorts the cells of a file by kind: those of the highest dimension are the mesh, those one below its tagged facets.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::{CellKind, Facets, Field, Mesh, MeshError, Place};

/// Cells of mixed kinds in the order of a file, with their tags.
#[derive(Debug, Default)]
pub(super) struct Collector {
    blocks: BTreeMap<CellKind, Block>,
    n_entries: usize,
}

#[derive(Debug, Default)]
struct Block {
    nodes: Vec<u32>,
    tags: Vec<i32>,
    /// Number of each cell among all entries of the file.
    entries: Vec<u32>,
}

/// The mesh and, for each of its cells, its number among all entries of the file.
pub(super) struct Collected {
    pub mesh: Mesh,
    pub entries: Vec<u32>,
}

impl Collector {
    /// Adds one cell.
    pub(super) fn push(&mut self, kind: CellKind, nodes: impl IntoIterator<Item = u32>, tag: i32) {
        let block = self.blocks.entry(kind).or_default();
        block.nodes.extend(nodes);
        block.tags.push(tag);
        block.entries.push(self.n_entries as u32);
        self.n_entries += 1;
    }

    /// Passes over an entry that is neither cell nor facet, such as a point.
    pub(super) fn skip(&mut self) {
        self.n_entries += 1;
    }

    /// Number of cells of a kind so far.
    pub(super) fn n_cells(&self, kind: CellKind) -> usize {
        self.blocks.get(&kind).map_or(0, |block| block.tags.len())
    }

    /// Highest dimension of a cell so far.
    pub(super) fn top_dimension(&self) -> usize {
        self.blocks.keys().map(|kind| kind.dimension()).max().unwrap_or(0)
    }

    /// Adds cells that are there already once more under a further tag.
    pub(super) fn repeat(&mut self, kind: CellKind, cells: Range<usize>, tag: i32) {
        let Some(block) = self.blocks.get_mut(&kind) else { return };
        let n = kind.n_nodes();
        block.nodes.extend_from_within(cells.start * n..cells.end * n);
        block.tags.resize(block.tags.len() + cells.len(), tag);
        block.entries.extend_from_within(cells);
    }

    /// Number of entries so far.
    pub(super) fn len(&self) -> usize {
        self.n_entries
    }

    /// The mesh. `tagged` says whether the file has tags at all; facets with tag 0 carry none.
    ///
    /// # Errors
    /// [`MeshError::Unsupported`] for cells of two kinds of the highest dimension or curved surfaces,
    /// [`MeshError::Parse`] for a file without cells or with indices out of range.
    pub(super) fn into_mesh(
        mut self,
        path: &Path,
        mut points: Vec<[f64; 3]>,
        tagged: bool,
    ) -> Result<Collected, MeshError> {
        let parse = |message| MeshError::Parse { path: path.into(), place: Place::Whole, message };
        let top = self.blocks.keys().map(|kind| kind.dimension()).max().filter(|&dimension| dimension > 1);
        let top = top.ok_or_else(|| parse("the file has no triangles, tetrahedra or other cells".into()))?;
        let kinds: Vec<_> = self.blocks.keys().copied().filter(|kind| kind.dimension() == top).collect();
        let [kind] = kinds[..] else {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(unsupported(
                path,
                format!("a mesh that mixes {} cells", names.join(" and ")),
                "split it, or mesh it with one kind",
            ));
        };
        if top == 2 {
            flatten(path, &mut points)?;
        }
        let cells = self.blocks.remove(&kind).unwrap_or_default();
        let facets = kind.facet_kind().and_then(|facet| self.blocks.remove(&facet)).unwrap_or_default();
        let mut mesh = Mesh {
            points,
            kind,
            cells: cells.nodes,
            curved: None,
            cell_tags: if tagged { cells.tags } else { Vec::new() },
            facets: Facets::default(),
            tag_names: BTreeMap::new(),
            cell_fields: BTreeMap::new(),
            node_fields: BTreeMap::new(),
        };
        if tagged {
            let per_facet = kind.facet_kind().map_or(1, CellKind::n_nodes);
            for (nodes, tag) in facets.nodes.chunks_exact(per_facet).zip(facets.tags) {
                if tag != 0 {
                    mesh.facets.nodes.extend_from_slice(nodes);
                    mesh.facets.tags.push(tag);
                }
            }
        }
        mesh.validate().map_err(|error| parse(error.to_string()))?;
        Ok(Collected { mesh, entries: cells.entries })
    }
}

/// Picks the entries of the mesh's cells out of a field over all entries of the file.
pub(super) fn pick(entries: &[u32], field: &Field) -> Field {
    let n = field.n_components;
    let values = entries.iter().flat_map(|&entry| {
        let begin = entry as usize * n;
        field.values[begin..begin + n].iter().copied()
    });
    Field { n_components: n, values: values.collect() }
}

/// As [`pick`], without a second array; `entries` ascend.
pub(super) fn pick_in_place(entries: &[u32], field: &mut Field) {
    let n = field.n_components;
    for (cell, &entry) in entries.iter().enumerate() {
        let begin = entry as usize * n;
        field.values.copy_within(begin..begin + n, cell * n);
    }
    field.values.truncate(entries.len() * n);
}

/// Whether an integer cell array of this name says which region a cell belongs to.
pub(super) fn is_tag_name(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "tag",
        "tags",
        "region",
        "regions",
        "gmsh:physical",
        "medit:ref",
        "cell_tags",
        "cellentityids",
        "material",
        "mat_id",
    ];
    NAMES.contains(&name.to_ascii_lowercase().as_str())
}

/// Puts a planar mesh at z = 0; a surface in space is refused.
fn flatten(path: &Path, points: &mut [[f64; 3]]) -> Result<(), MeshError> {
    let Some(&[_, _, height]) = points.first() else { return Ok(()) };
    let size = points.iter().flatten().fold(0.0f64, |size, x| size.max(x.abs()));
    if let Some(node) = points.iter().position(|p| (p[2] - height).abs() > 1e-12 * size) {
        return Err(unsupported(
            path,
            format!("a surface in space (node {node} leaves the plane z = {height})"),
            "a mesh of triangles or quadrilaterals lies in a plane z = constant",
        ));
    }
    points.iter_mut().for_each(|p| p[2] = 0.0);
    Ok(())
}

fn unsupported(path: &Path, what: String, advice: &str) -> MeshError {
    MeshError::Unsupported { path: path.into(), place: Place::Whole, what, advice: advice.into() }
}

/// The cell kind of a VTK type number; none for points and lines of points, which meshes leave out.
///
/// # Errors
/// [`MeshError::Unsupported`] with the name of the type.
pub(super) fn vtk_kind(path: &Path, place: Place, vtk_type: i64) -> Result<Option<CellKind>, MeshError> {
    let name = match vtk_type {
        1 | 2 | 4 => return Ok(None),
        3 => return Ok(Some(CellKind::Segment)),
        5 => return Ok(Some(CellKind::Triangle)),
        9 => return Ok(Some(CellKind::Quadrilateral)),
        10 => return Ok(Some(CellKind::Tetrahedron)),
        12 => return Ok(Some(CellKind::Hexahedron)),
        6 => "triangle strip",
        7 => "polygon",
        8 => "pixel",
        11 => "voxel",
        13 => "wedge",
        14 => "pyramid",
        21 => "quadratic edge",
        22 => "quadratic triangle",
        23 => "quadratic quadrilateral",
        24 => "quadratic tetrahedron",
        25 => "quadratic hexahedron",
        26 => "quadratic wedge",
        27 => "quadratic pyramid",
        28 => "biquadratic quadrilateral",
        29 => "triquadratic hexahedron",
        42 => "polyhedron",
        68..=75 => "Lagrange cell",
        _ => "unknown cell",
    };
    Err(MeshError::Unsupported {
        path: path.into(),
        place,
        what: format!("VTK cell type {vtk_type} ({name})"),
        advice: "linear triangles, quadrilaterals, tetrahedra and hexahedra can be read".into(),
    })
}
