//! Quadrilaterals into four, hexahedra into eight.

use super::lattice::Lattice;
use super::{inherited, repeated};
use crate::interrupt::Interrupt;
use crate::tensor::{apply, corner_places, evenly_spaced, ticks};
use crate::{CellKind, Curved, Facets, Field, Mesh, MeshError};

/// Splits the cells of a mesh of quadrilaterals or hexahedra, which is valid.
pub(super) fn split(mesh: &Mesh, interrupt: Interrupt<'_>) -> Result<Mesh, MeshError> {
    let (kind, dimension) = (mesh.kind, mesh.dimension());
    let n_children = 1 << dimension;
    let too_many = |what: &str| MeshError::Invalid {
        field: "cells",
        message: format!("{what} after refinement; at most {} can be numbered", u32::MAX),
    };
    let n_new = mesh.n_cells() * 3usize.pow(dimension as u32);
    if n_children * mesh.n_cells() > u32::MAX as usize || mesh.n_nodes() + n_new > u32::MAX as usize {
        return Err(too_many(&format!("{} cells and their nodes", n_children * mesh.n_cells())));
    }
    let nodes = Lattice::new(dimension, 1, &lexicographic(mesh), mesh.n_nodes(), interrupt);
    interrupt.go_on()?;
    let flat = nodes.interpolate(3, mesh.points.as_flattened());
    let mut points = flat.as_chunks::<3>().0.to_vec();
    let curved = match &mesh.curved {
        Some(curved) => {
            let n = (2 * curved.order + 1).pow(dimension as u32);
            if mesh.n_cells() * n + curved.points.len() > u32::MAX as usize {
                return Err(too_many("points of curved cells"));
            }
            let lattice =
                Lattice::new(dimension, curved.order, &curved.cells, curved.points.len(), interrupt);
            interrupt.go_on()?;
            Some(split_curved(dimension, curved, (&nodes, &lattice), &mut points))
        }
        None => None,
    };
    let node_field = |field: &Field| Field {
        n_components: field.n_components,
        values: nodes.interpolate(field.n_components, &field.values),
    };
    let corners: Vec<usize> = corner_places(kind, 1).collect();
    let cell_fields =
        mesh.cell_fields.iter().map(|(name, field)| (name.clone(), inherited(field, n_children)));
    Ok(Mesh {
        facets: split_facets(mesh, &nodes)?,
        kind,
        is_surface: mesh.is_surface,
        cells: children(dimension, 1, &nodes.cells, &corners),
        curved,
        cell_tags: repeated(&mesh.cell_tags, n_children),
        tag_names: mesh.tag_names.clone(),
        cell_fields: cell_fields.collect(),
        node_fields: mesh.node_fields.iter().map(|(name, field)| (name.clone(), node_field(field))).collect(),
        points,
        division: None,
        notes: mesh.notes.clone(),
    })
}

/// Corners of all cells in lexicographic order.
fn lexicographic(mesh: &Mesh) -> Vec<u32> {
    let n = mesh.kind.n_nodes();
    let mut cells = vec![0; mesh.cells.len()];
    for (to, from) in cells.chunks_exact_mut(n).zip(mesh.cells.chunks_exact(n)) {
        corner_places(mesh.kind, 1).zip(from).for_each(|(place, &node)| to[place] = node);
    }
    cells
}

/// The same polynomials on the children; new corners move to their points on the curved cell.
fn split_curved(
    dimension: usize,
    curved: &Curved,
    (nodes, lattice): (&Lattice, &Lattice),
    corners: &mut [[f64; 3]],
) -> Curved {
    let order = curved.order;
    let table = evenly_spaced(order).values(&ticks(2 * order));
    let tables = vec![&table; dimension];
    let n_fine = (2 * order + 1).pow(dimension as u32);
    let mut points = curved.points.clone();
    points.resize(lattice.len(), [f64::NAN; 3]);
    let mut of_cell = Vec::new();
    for (coarse, fine) in
        curved.cells.chunks_exact(curved.n_points(dimension)).zip(lattice.cells.chunks_exact(n_fine))
    {
        of_cell.clear();
        of_cell.extend(coarse.iter().map(|&point| curved.points[point as usize]));
        for (&point, image) in fine.iter().zip(apply(&tables, &of_cell)) {
            // The first cell that meets a point says where it is.
            if points[point as usize][0].is_nan() {
                points[point as usize] = image;
            }
        }
    }
    let n_old = nodes.len() - nodes.parents.len();
    let mut is_placed = vec![false; nodes.len()];
    is_placed[..n_old].fill(true);
    let middles = nodes.cells.chunks_exact(3usize.pow(dimension as u32));
    for (middles, fine) in middles.zip(lattice.cells.chunks_exact(n_fine)) {
        for (place, &node) in middles.iter().enumerate() {
            let [i, j, k] = [place % 3, place / 3 % 3, place / 9].map(|i| i * order);
            if !std::mem::replace(&mut is_placed[node as usize], true) {
                let row = 2 * order + 1;
                corners[node as usize] = points[fine[i + row * (j + row * k)] as usize];
            }
        }
    }
    let all: Vec<usize> = (0..curved.n_points(dimension)).collect();
    Curved { order, points, cells: children(dimension, order, &lattice.cells, &all) }
}

/// Points of all children out of refined lattices, at `places` of each child's own lattice.
fn children(dimension: usize, order: usize, lattices: &[u32], places: &[usize]) -> Vec<u32> {
    let (row, fine) = (order + 1, 2 * order + 1);
    let n_children = 1 << dimension;
    let n_fine = fine.pow(dimension as u32);
    let mut cells = Vec::with_capacity(lattices.len() / n_fine * n_children * places.len());
    for lattice in lattices.chunks_exact(n_fine) {
        for child in 0..n_children {
            let origin = [child & 1, child >> 1 & 1, child >> 2].map(|i| i * order);
            cells.extend(places.iter().map(|place| {
                let at = [place % row, place / row % row, place / (row * row)];
                let [i, j, k] = std::array::from_fn(|d| origin[d] + at[d]);
                lattice[i + fine * (j + fine * k)]
            }));
        }
    }
    cells
}

fn split_facets(mesh: &Mesh, nodes: &Lattice) -> Result<Facets, MeshError> {
    let n_children = if mesh.kind == CellKind::Quadrilateral { 2 } else { 4 };
    let mut split = Vec::with_capacity(n_children * mesh.facets.nodes.len());
    for facet in 0..mesh.facets.tags.len() {
        let corners = mesh.facet(facet);
        let middle = |of: &[u32]| {
            nodes.middle(of).ok_or_else(|| MeshError::Invalid {
                field: "facets",
                message: format!("tagged facet {facet} has the side {of:?}, which no cell has"),
            })
        };
        match *corners {
            [a, b] => {
                let ab = middle(&[a, b])?;
                split.extend([a, ab, ab, b]);
            }
            [a, b, c, d] => {
                let (ab, bc) = (middle(&[a, b])?, middle(&[b, c])?);
                let (cd, da) = (middle(&[c, d])?, middle(&[d, a])?);
                let m = middle(corners)?;
                split.extend([[a, ab, m, da], [ab, b, bc, m], [m, bc, c, cd], [da, m, cd, d]].as_flattened());
            }
            _ => {}
        }
    }
    Ok(Facets { nodes: split, tags: repeated(&mesh.facets.tags, n_children) })
}
