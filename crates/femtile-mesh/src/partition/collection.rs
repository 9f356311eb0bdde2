//! A whole mesh, put together from the cells of ranks.

use std::collections::BTreeMap;

use femtile_device::parallel;

use super::part::{curved_of, fields_of};
use super::{CELLS, DistributedMesh};
use crate::check::BoundaryFacets;
use crate::{Curved, Facets, Field, Mesh, MeshError};

/// The share of a rank in a whole mesh: the nodes that it owns and its own cells, by their numbers there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnedMesh {
    /// The nodes.
    pub nodes: Vec<u32>,
    /// Their coordinates.
    pub points: Vec<[f64; 3]>,
    /// The cells.
    pub cells: Vec<u32>,
    /// The nodes of each cell, one cell after another.
    pub corners: Vec<u32>,
    /// Shapes of curved cells.
    pub curved: Option<Curved>,
    /// The tag of each cell, or nothing.
    pub cell_tags: Vec<i32>,
    /// The cells of facets on the boundary.
    pub side_cells: Vec<u32>,
    /// The number of each of these facets in its cell.
    pub side_numbers: Vec<u8>,
    /// Tagged facets.
    pub facets: Facets,
    /// Fields of the cells.
    pub cell_fields: BTreeMap<String, Field>,
    /// Fields at the nodes.
    pub node_fields: BTreeMap<String, Field>,
}

impl DistributedMesh {
    /// Returns what this rank adds to the whole mesh. The shares of all ranks together contain each entity
    /// once.
    pub fn owned_mesh(&self) -> OwnedMesh {
        let (part, own) = (&self.part, &self.own().cells);
        let mesh = &part.mesh;
        let nodes = &part.nodes[..part.n_owned];
        let sides = || (0..part.boundary.len()).filter(|&facet| self.owns_cell(part.boundary.cells[facet]));
        let owned: Vec<u32> = (0..part.n_owned as u32).collect();
        let n = mesh.kind.n_nodes();
        let mut corners = vec![0; n * own.len()];
        parallel::for_chunks_mut(&mut corners, CELLS * n, |begin, corners| {
            let of_cells = own[begin / n..].iter().flat_map(|&cell| mesh.cell(cell as usize));
            corners.iter_mut().zip(of_cells).for_each(|(to, &node)| *to = part.nodes[node as usize]);
        });
        let tags = &mesh.cell_tags;
        let tag = |&cell: &u32| tags[cell as usize];
        OwnedMesh {
            nodes: nodes.to_vec(),
            points: mesh.points[..part.n_owned].to_vec(),
            cells: own.iter().map(|&cell| part.cells[cell as usize]).collect(),
            corners,
            curved: mesh.curved.as_ref().map(|curved| curved_of(curved, own, mesh.dimension())),
            cell_tags: if tags.is_empty() { Vec::new() } else { own.iter().map(tag).collect() },
            side_cells: sides().map(|facet| part.cells[part.boundary.cells[facet] as usize]).collect(),
            side_numbers: sides().map(|facet| part.boundary.local[facet]).collect(),
            facets: self.own_tagged_facets(),
            cell_fields: fields_of(&mesh.cell_fields, own),
            node_fields: fields_of(&mesh.node_fields, &owned),
        }
    }

    /// The tagged facets of which this rank is the lowest owner of a node, by global node numbers.
    fn own_tagged_facets(&self) -> Facets {
        let (part, rank) = (&self.part, self.rank().0 as u32);
        let mut facets = Facets::default();
        for (facet, &tag) in part.mesh.facets.tags.iter().enumerate() {
            let nodes = part.mesh.facet(facet);
            if nodes.iter().map(|&node| part.owner(node, rank)).min() == Some(rank) {
                facets.nodes.extend(nodes.iter().map(|&node| part.nodes[node as usize]));
                facets.tags.push(tag);
            }
        }
        facets
    }
}

/// A whole mesh to which the shares of ranks are added.
#[derive(Debug)]
pub struct GatheredMesh {
    mesh: Mesh,
    sides: Vec<(u32, u8)>,
    n_nodes: usize,
    n_cells: usize,
}

impl GatheredMesh {
    /// Begins the mesh of which a rank has a part.
    pub fn new(of: &DistributedMesh) -> Self {
        let (part, counts) = (&of.part.mesh, of.counts);
        let [n_nodes, n_cells] = [counts.n_nodes, counts.n_cells].map(|n| n as usize);
        let curved = part.curved.as_ref().map(|curved| Curved {
            order: curved.order,
            points: Vec::new(),
            cells: vec![0; n_cells * curved.n_points(part.dimension())],
        });
        let empty = |fields: &BTreeMap<String, Field>, n: usize| {
            let of = |field: &Field| Field {
                n_components: field.n_components,
                values: vec![0.0; n * field.n_components],
            };
            fields.iter().map(|(name, field)| (name.clone(), of(field))).collect()
        };
        let mesh = Mesh {
            points: vec![[0.0; 3]; n_nodes],
            kind: part.kind,
            is_surface: part.is_surface,
            cells: vec![0; n_cells * part.kind.n_nodes()],
            curved,
            cell_tags: vec![0; if part.cell_tags.is_empty() { 0 } else { n_cells }],
            facets: Facets::default(),
            tag_names: part.tag_names.clone(),
            cell_fields: empty(&part.cell_fields, n_cells),
            node_fields: empty(&part.node_fields, n_nodes),
            division: None,
            notes: Vec::new(),
        };
        Self { mesh, sides: Vec::new(), n_nodes: 0, n_cells: 0 }
    }

    /// Adds the share of a rank.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] if it is one of another mesh.
    pub fn add(&mut self, share: &OwnedMesh) -> Result<(), MeshError> {
        let mesh = &mut self.mesh;
        let lacking = || MeshError::Invalid { field: "share", message: "it is one of another mesh".into() };
        let fits = |here: Option<()>| here.ok_or_else(lacking);
        if share.side_cells.len() != share.side_numbers.len() {
            return Err(lacking());
        }
        fits(put(&mut mesh.points, &share.nodes, &share.points, 1))?;
        fits(put(&mut mesh.cells, &share.cells, &share.corners, mesh.kind.n_nodes()))?;
        if !mesh.cell_tags.is_empty() {
            fits(put(&mut mesh.cell_tags, &share.cells, &share.cell_tags, 1))?;
        }
        let dimension = mesh.kind.dimension();
        match (&mut mesh.curved, &share.curved) {
            (Some(whole), Some(curved)) if whole.order == curved.order => {
                let before = u32::try_from(whole.points.len()).map_err(|_| lacking())?;
                let cells = curved.cells.iter().map(|&point| before.checked_add(point));
                let cells = cells.collect::<Option<Vec<u32>>>().ok_or_else(lacking)?;
                let n = whole.n_points(dimension);
                fits(put(&mut whole.cells, &share.cells, &cells, n))?;
                whole.points.extend_from_slice(&curved.points);
            }
            (None, None) => {}
            _ => return Err(lacking()),
        }
        for (whole, fields, at) in [
            (&mut mesh.cell_fields, &share.cell_fields, &share.cells),
            (&mut mesh.node_fields, &share.node_fields, &share.nodes),
        ] {
            for (name, field) in whole {
                let given = fields.get(name).filter(|given| given.n_components == field.n_components);
                let given = given.ok_or_else(lacking)?;
                fits(put(&mut field.values, at, &given.values, field.n_components))?;
            }
        }
        mesh.facets.nodes.extend_from_slice(&share.facets.nodes);
        mesh.facets.tags.extend_from_slice(&share.facets.tags);
        self.sides.extend(share.side_cells.iter().copied().zip(share.side_numbers.iter().copied()));
        self.n_nodes += share.nodes.len();
        self.n_cells += share.cells.len();
        Ok(())
    }

    /// Returns the mesh with the facets on its boundary.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] if shares are missing or there are too many.
    pub fn finish(self) -> Result<(Mesh, BoundaryFacets), MeshError> {
        let Self { mesh, sides, n_nodes, n_cells } = self;
        let n_facets = mesh.kind.facets().len();
        let is_side =
            |&(cell, local): &(u32, u8)| (cell as usize) < mesh.n_cells() && usize::from(local) < n_facets;
        if (n_nodes, n_cells) != (mesh.n_nodes(), mesh.n_cells()) || !sides.iter().all(is_side) {
            let message = format!(
                "they have {n_nodes} nodes and {n_cells} cells of {} and {}",
                mesh.n_nodes(),
                mesh.n_cells()
            );
            return Err(MeshError::Invalid { field: "shares", message });
        }
        mesh.validate()?;
        let boundary = BoundaryFacets::collect(&mesh, sides);
        Ok((mesh, boundary))
    }
}

/// Puts rows of `n` values at their places; none if a place is beyond the end, or there are more or fewer
/// rows than places.
fn put<T: Copy>(whole: &mut [T], at: &[u32], rows: &[T], n: usize) -> Option<()> {
    if rows.len() != n * at.len() {
        return None;
    }
    for (&at, row) in at.iter().zip(rows.chunks_exact(n.max(1))) {
        let begin = at as usize * n;
        whole.get_mut(begin..begin + n)?.copy_from_slice(row);
    }
    Some(())
}
