//! Parts of a mesh that the first rank has, sent to all.

use std::collections::BTreeMap;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use femtile_comm::{Comm, Incoming, Outgoing};
use femtile_linalg::LinalgError;
use femtile_mesh::check::BoundaryFacets;
use femtile_mesh::generate::Counts;
use femtile_mesh::partition::{DividedMesh, Part, Partitioner, Scatter, WholeMesh, n_own_edges};
use femtile_mesh::{CellKind, Curved, Facets, Field, Mesh};

use super::rows::agreed;
use crate::SolveError;

/// The most bytes of a message.
const MOST_BYTES: usize = 1 << 30;
/// Numbers before the arrays of a part: cells, the order of curved ones, owned and shared nodes.
const NUMBERS: usize = 4;
const KINDS: [CellKind; 5] = [
    CellKind::Segment,
    CellKind::Triangle,
    CellKind::Tetrahedron,
    CellKind::Quadrilateral,
    CellKind::Hexahedron,
];

/// Divides the mesh of the first rank, which has it with its boundary, and sends each rank its part; none where there are too few
/// cells for a part each, or the first rank gives no mesh. All ranks call it.
///
/// The tags, the tagged facets and the fields of the mesh are sent with its parts.
///
/// # Cost
/// The first rank holds the whole mesh and one part at a time, the others hold their parts.
/// # Errors
/// [`SolveError::Linalg`] where another rank ended.
pub fn scatter(
    comm: &Comm,
    whole: Option<(&Mesh, &BoundaryFacets)>,
    partitioner: Partitioner,
) -> Result<Option<DividedMesh>, SolveError> {
    let (rank, n_ranks) = (comm.rank(), comm.n_ranks());
    let divided = whole
        .filter(|_| rank == 0)
        .map(|(mesh, boundary)| Scatter::new(mesh, boundary, &partitioner.divide(mesh, n_ranks)));
    let divided = divided.filter(|scatter| scatter.serves_all(n_ranks));
    if !comm.any([divided.is_some()])?[0] {
        return Ok(None);
    }
    let (part, n_shared) = match &divided {
        Some(scatter) => dealt(comm, scatter)?,
        None => received(comm)?,
    };
    let mut n_edges = [n_own_edges(&part, rank) as f64];
    comm.sum_values(&mut n_edges)?;
    let whole = whole_of_all(comm, divided.map(|scatter| scatter.whole(n_edges[0] as u64)))?;
    let valid = part.mesh.validate().map_err(SolveError::from);
    agreed(comm, valid)?;
    Ok(Some(DividedMesh::new(part, (rank, n_ranks), n_shared, whole, partitioner.name())))
}

/// Sends the parts of the other ranks, and returns that of the first.
fn dealt(comm: &Comm, scatter: &Scatter<'_>) -> Result<(Part, usize), LinalgError> {
    let lacking = |rank: usize| LinalgError::Rank { rank, message: "has no part of the mesh".into() };
    for rank in 1..comm.n_ranks() {
        let (part, n_shared) = scatter.part(rank).ok_or_else(|| lacking(rank))?;
        Sending { comm, to: rank }.part(&part, n_shared)?;
    }
    scatter.part(0).ok_or_else(|| lacking(0))
}

/// The description of the whole mesh, which the first rank has.
fn whole_of_all(comm: &Comm, own: Option<WholeMesh>) -> Result<WholeMesh, LinalgError> {
    let sent = own.map(|WholeMesh { counts, entities, extents }| {
        let kind = KINDS.iter().position(|&kind| kind == counts.kind).unwrap_or(0) as u64;
        let bits = extents.as_flattened().iter().map(|x| x.to_bits());
        let mut numbers = vec![kind, counts.order as u64, counts.n_nodes as u64, counts.n_cells as u64];
        numbers.extend(entities);
        numbers.extend(bits);
        numbers
    });
    let all = comm.all_gather(&sent.unwrap_or_default())?;
    let numbers = all.first().filter(|numbers| numbers.len() == 14).ok_or_else(truncated)?;
    let kind = *usize::try_from(numbers[0]).ok().and_then(|at| KINDS.get(at)).ok_or_else(truncated)?;
    let [order, n_nodes, n_cells] = [numbers[1], numbers[2], numbers[3]];
    let entities = [numbers[4], numbers[5], numbers[6], numbers[7]];
    let x = |at: usize| f64::from_bits(numbers[8 + at]);
    let extents = [[x(0), x(1), x(2)], [x(3), x(4), x(5)]];
    let counts = Counts { kind, n_nodes: n_nodes as f64, n_cells: n_cells as f64, order: order as usize };
    Ok(WholeMesh { counts, entities, extents })
}

fn truncated() -> LinalgError {
    LinalgError::Rank { rank: 0, message: "sent a part of a mesh that is not whole".into() }
}

/// The arrays of a part on their way to another rank, in the order of [`Receiving`].
struct Sending<'a> {
    comm: &'a Comm,
    to: usize,
}

impl Sending<'_> {
    fn part(&self, part: &Part, n_shared: usize) -> Result<(), LinalgError> {
        let Part { mesh, boundary, nodes, cells, facets, n_owned, owners } = part;
        let kind = KINDS.iter().position(|&kind| kind == mesh.kind).unwrap_or(0);
        let order = mesh.curved.as_ref().map_or(0, |curved| curved.order);
        self.array(&[kind, order, *n_owned, n_shared].map(|number| number as u64))?;
        self.array(&mesh.points)?;
        self.array(&mesh.cells)?;
        if let Some(curved) = &mesh.curved {
            self.array(&curved.points)?;
            self.array(&curved.cells)?;
        }
        self.array(&mesh.cell_tags)?;
        self.array(&mesh.facets.nodes)?;
        self.array(&mesh.facets.tags)?;
        let tags: Vec<i64> =
            mesh.tag_names.keys().flat_map(|(dimension, tag)| [*dimension as i64, i64::from(*tag)]).collect();
        self.array(&tags)?;
        self.texts(mesh.tag_names.values())?;
        for fields in [&mesh.cell_fields, &mesh.node_fields] {
            self.fields(fields)?;
        }
        self.array(&boundary.nodes)?;
        self.array(&boundary.cells)?;
        self.array(&boundary.local)?;
        [nodes, cells, facets, owners].into_iter().try_for_each(|numbers| self.array(numbers))
    }

    fn fields(&self, fields: &BTreeMap<String, Field>) -> Result<(), LinalgError> {
        self.texts(fields.keys())?;
        for field in fields.values() {
            self.array(&[field.n_components as u64])?;
            self.array(&field.values)?;
        }
        Ok(())
    }

    fn texts<'t>(&self, texts: impl Iterator<Item = &'t String> + Clone) -> Result<(), LinalgError> {
        let lengths: Vec<u64> = texts.clone().map(|text| text.len() as u64).collect();
        self.array(&lengths)?;
        self.array(texts.map(String::as_str).collect::<String>().as_bytes())
    }

    /// Sends the length of an array, then its numbers.
    fn array<T: Pod>(&self, values: &[T]) -> Result<(), LinalgError> {
        self.bytes(cast_slice(&[values.len() as u64]))?;
        cast_slice(values).chunks(MOST_BYTES).try_for_each(|bytes| self.bytes(bytes))
    }

    fn bytes(&self, bytes: &[u8]) -> Result<(), LinalgError> {
        self.comm.exchange(&[Outgoing { to: self.to, bytes }], &mut [], &mut || ())
    }
}

/// Receives the part of this rank from the first one.
fn received(comm: &Comm) -> Result<(Part, usize), LinalgError> {
    let from = Receiving { comm };
    let numbers: [u64; NUMBERS] = from.array()?.try_into().map_err(|_| truncated())?;
    let [kind, order, n_owned, n_shared] = numbers.map(|number| number as usize);
    let kind = *KINDS.get(kind).ok_or_else(truncated)?;
    let (points, cells) = (from.points()?, from.array()?);
    let curved = match order {
        0 => None,
        order => Some(Curved { order, points: from.points()?, cells: from.array()? }),
    };
    let cell_tags = from.array()?;
    let facets = Facets { nodes: from.array()?, tags: from.array()? };
    let tags: Vec<i64> = from.array()?;
    let tags = tags.chunks_exact(2).map(|tag| (tag[0] as usize, tag[1] as i32));
    let tag_names = tags.zip(from.texts()?).collect();
    let (cell_fields, node_fields) = (from.fields()?, from.fields()?);
    let notes = Vec::new();
    let mesh =
        Mesh { points, kind, cells, curved, cell_tags, facets, tag_names, cell_fields, node_fields, notes };
    let boundary = BoundaryFacets { nodes: from.array()?, cells: from.array()?, local: from.array()? };
    let (nodes, cells, facets, owners) = (from.array()?, from.array()?, from.array()?, from.array()?);
    Ok((Part { mesh, boundary, nodes, cells, facets, n_owned, owners }, n_shared))
}

/// The arrays of a part on their way from the first rank.
struct Receiving<'a> {
    comm: &'a Comm,
}

impl Receiving<'_> {
    fn array<T: Pod>(&self) -> Result<Vec<T>, LinalgError> {
        let mut n = [0_u64];
        self.bytes(cast_slice_mut(&mut n))?;
        let mut values = vec![T::zeroed(); n[0] as usize];
        cast_slice_mut(&mut values).chunks_mut(MOST_BYTES).try_for_each(|bytes| self.bytes(bytes))?;
        Ok(values)
    }

    fn points(&self) -> Result<Vec<[f64; 3]>, LinalgError> {
        self.array()
    }

    fn texts(&self) -> Result<Vec<String>, LinalgError> {
        let lengths: Vec<u64> = self.array()?;
        let bytes: Vec<u8> = self.array()?;
        let mut begin = 0;
        let text = |length: &u64| {
            let text = bytes.get(begin..begin + *length as usize);
            begin += *length as usize;
            text.map(|text| String::from_utf8_lossy(text).into_owned()).ok_or_else(truncated)
        };
        lengths.iter().map(text).collect()
    }

    fn fields(&self) -> Result<BTreeMap<String, Field>, LinalgError> {
        let field = |name| {
            let [n_components]: [u64; 1] = self.array()?.try_into().map_err(|_| truncated())?;
            Ok((name, Field { n_components: n_components as usize, values: self.array()? }))
        };
        self.texts()?.into_iter().map(field).collect()
    }

    fn bytes(&self, bytes: &mut [u8]) -> Result<(), LinalgError> {
        self.comm.exchange(&[], &mut [Incoming { from: 0, bytes }], &mut || ())
    }
}
