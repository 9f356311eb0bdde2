//! Distribution of the first rank's mesh to all ranks.

use femtile_comm::Comm;
use femtile_device::part;
use femtile_fem::FemError;
use femtile_linalg::LinalgError;
use femtile_mesh::check::{BoundaryFacets, components};
use femtile_mesh::generate::Counts;
use femtile_mesh::partition::{
    DistributedMesh, GlobalMeshSize, MeshPart, Partitioner, Scatter, n_owned_edges,
};
use femtile_mesh::{CellKind, Curved, Facets, Mesh};

use super::rows::agreed;
use super::wire::{From, To, truncated};
use crate::SolveError;

/// Header of a part: numbers of cells, order of curved cells, numbers of owned and shared nodes.
const NUMBERS: usize = 5;
const KINDS: [CellKind; 5] = [
    CellKind::Segment,
    CellKind::Triangle,
    CellKind::Tetrahedron,
    CellKind::Quadrilateral,
    CellKind::Hexahedron,
];

/// Partitions the mesh of the first rank and sends each rank its part. Returns none if there are fewer cells
/// than parts need, if the mesh is not connected, if the automatic name of a tag is taken, or if the first
/// rank has no mesh. Collective.
///
/// Parts include the tags, the tagged facets and the fields of the mesh.
///
/// # Cost
/// The first rank holds the whole mesh and one part at a time, the others hold their parts.
/// # Errors
/// [`SolveError::Mesh`] if an array of the mesh is invalid or the boundary is that of another mesh,
/// [`FemError::OrphanNode`], [`SolveError::Linalg`] if another rank failed.
pub fn scatter(
    comm: &Comm,
    whole: Option<(&Mesh, &BoundaryFacets)>,
    partitioner: Partitioner,
) -> Result<Option<DistributedMesh>, SolveError> {
    let (rank, n_ranks) = (comm.rank(), comm.n_ranks());
    let divided = whole.filter(|_| rank == 0).map(|whole| prepared(whole, partitioner, n_ranks));
    let mut divided = agreed(comm, divided.transpose())?.flatten();
    if !comm.any([divided.is_some()])?[0] {
        return Ok(None);
    }
    let (of_rank, n_shared) = part("parts of ranks", || match &mut divided {
        Some(scatter) => dealt(comm, scatter),
        None => received(comm),
    })?;
    let mut n_edges = [n_owned_edges(&of_rank, rank) as f64];
    comm.sum_values(&mut n_edges)?;
    let whole = divided.map(|scatter| scatter.whole(n_edges[0] as u64));
    let whole = whole_of_all(comm, whole, &of_rank.mesh)?;
    Ok(Some(DistributedMesh::new(of_rank, (rank, n_ranks), n_shared, whole, partitioner.name())))
}

/// Partitions a mesh; none if a rank would have no part or the mesh is not connected. In a mesh of several
/// components, ranks could not tell which ones lack a Dirichlet value.
fn prepared<'m>(
    (mesh, boundary): (&'m Mesh, &'m BoundaryFacets),
    partitioner: Partitioner,
    n_ranks: usize,
) -> Result<Option<Scatter<'m>>, SolveError> {
    mesh.validate()?;
    boundary.belong_to(mesh)?;
    let components = part("pieces of the mesh", || components(mesh));
    if let Some(node) = components.of_node.iter().position(|&component| component == u32::MAX) {
        return Err(FemError::OrphanNode { node, point: mesh.points[node] }.into());
    }
    if components.count > 1 {
        return Ok(None);
    }
    drop(components);
    let partition = part("division", || partitioner.divide(mesh, n_ranks));
    let scatter = part("cells of ranks", || Scatter::new(mesh, boundary, &partition));
    Ok(Some(scatter).filter(|scatter| scatter.serves_all(n_ranks)))
}

/// Sends the parts of the other ranks; returns the part of the first.
fn dealt(comm: &Comm, scatter: &mut Scatter<'_>) -> Result<(MeshPart, usize), LinalgError> {
    let lacking = |rank: usize| LinalgError::Rank { rank, message: "has no part of the mesh".into() };
    for rank in 1..comm.n_ranks() {
        let (part, n_shared) = scatter.part(rank).ok_or_else(|| lacking(rank))?;
        send(To { comm, rank }, &part, n_shared)?;
    }
    scatter.part(0).ok_or_else(|| lacking(0))
}

/// The description of the whole mesh, sent from the first rank. Cell kinds are those of the part.
fn whole_of_all(
    comm: &Comm,
    own: Option<GlobalMeshSize>,
    part: &Mesh,
) -> Result<GlobalMeshSize, LinalgError> {
    let sent = own.map(|GlobalMeshSize { counts, entities, extents }| {
        let mut numbers = vec![counts.n_nodes, counts.n_cells];
        numbers.extend(entities.map(|n| n as f64));
        numbers.extend(extents.as_flattened());
        numbers
    });
    let all = comm.all_gather(&sent.unwrap_or_default())?;
    let numbers: Option<[f64; 12]> = all.first().and_then(|numbers| numbers[..].try_into().ok());
    let [n_nodes, n_cells, rest @ ..] = numbers.ok_or_else(|| truncated(0))?;
    let entities = [0, 1, 2, 3].map(|dimension| rest[dimension] as u64);
    let extents = [4, 7].map(|begin| [rest[begin], rest[begin + 1], rest[begin + 2]]);
    Ok(GlobalMeshSize { counts: Counts { n_nodes, n_cells, ..Counts::from(part) }, entities, extents })
}

/// Sends a part to its rank.
fn send(to: To<'_>, part: &MeshPart, n_shared: usize) -> Result<(), LinalgError> {
    let MeshPart { mesh, boundary, nodes, cells, facets, n_owned, owners } = part;
    let kind = KINDS.iter().position(|&kind| kind == mesh.kind).unwrap_or(0);
    let order = mesh.curved.as_ref().map_or(0, |curved| curved.order);
    let is_surface = usize::from(mesh.is_surface);
    to.array(&[kind, is_surface, order, *n_owned, n_shared].map(|number| number as u64))?;
    to.array(&mesh.points)?;
    to.array(&mesh.cells)?;
    if let Some(curved) = &mesh.curved {
        to.array(&curved.points)?;
        to.array(&curved.cells)?;
    }
    to.array(&mesh.cell_tags)?;
    to.array(&mesh.facets.nodes)?;
    to.array(&mesh.facets.tags)?;
    let tags: Vec<i64> =
        mesh.tag_names.keys().flat_map(|(dimension, tag)| [*dimension as i64, i64::from(*tag)]).collect();
    to.array(&tags)?;
    to.texts(mesh.tag_names.values())?;
    [&mesh.cell_fields, &mesh.node_fields].into_iter().try_for_each(|fields| to.fields(fields))?;
    to.array(&boundary.nodes)?;
    to.array(&boundary.cells)?;
    to.array(&boundary.local)?;
    [nodes, cells, facets, owners].into_iter().try_for_each(|numbers| to.array(numbers))
}

/// Receives the part of this rank from the first one, in the order of [`send`].
fn received(comm: &Comm) -> Result<(MeshPart, usize), LinalgError> {
    let from = From { comm, rank: 0 };
    let numbers: [u64; NUMBERS] = from.array()?.try_into().map_err(|_| truncated(0))?;
    let [kind, is_surface, order, n_owned, n_shared] = numbers.map(|number| number as usize);
    let kind = *KINDS.get(kind).ok_or_else(|| truncated(0))?;
    let (points, cells) = (from.array()?, from.array()?);
    let curved = match order {
        0 => None,
        order => Some(Curved { order, points: from.array()?, cells: from.array()? }),
    };
    let cell_tags = from.array()?;
    let facets = Facets { nodes: from.array()?, tags: from.array()? };
    let tags: Vec<i64> = from.array()?;
    let tags = tags.chunks_exact(2).map(|tag| (tag[0] as usize, tag[1] as i32));
    let tag_names = tags.zip(from.texts()?).collect();
    let (cell_fields, node_fields) = (from.fields()?, from.fields()?);
    let notes = Vec::new();
    let mesh = Mesh {
        points,
        kind,
        is_surface: is_surface != 0,
        cells,
        curved,
        cell_tags,
        facets,
        tag_names,
        cell_fields,
        node_fields,
        division: None,
        notes,
    };
    let boundary = BoundaryFacets { nodes: from.array()?, cells: from.array()?, local: from.array()? };
    let (nodes, cells, facets, owners) = (from.array()?, from.array()?, from.array()?, from.array()?);
    Ok((MeshPart { mesh, boundary, nodes, cells, facets, n_owned, owners }, n_shared))
}
