//! Refinement: every cell into similar smaller ones.

mod boxes;
mod edges;
mod lattice;

use femtile_device::parallel;

use crate::interrupt::Interrupt;
use crate::{CellKind, Facets, Field, IsInterrupted, Mesh, MeshError};
use edges::Edges;

/// Cells that a thread splits at a time.
const CELLS_PER_BLOCK: usize = 1 << 8;

/// Lengths whose squares differ by less than this factor count as equal: rounding decides nothing.
const CLEARLY_SHORTER: f64 = 1.0 - 1e-9;

/// Splits every triangle and quadrilateral into four and every tetrahedron and hexahedron into eight, by the midpoints of
/// their edges.
///
/// The octahedron inside a tetrahedron is cut along its shortest diagonal; among equals along one that
/// does not start at the longest edge, which keeps Kuhn's tetrahedra similar. Old nodes keep their numbers, midpoints follow by their edge's nodes; the children of cell `c` are
/// `4c…` or `8c…`, with its orientation. Tags and cell fields are inherited, tagged facets split, node
/// fields interpolated. Midpoints of simplices stay on straight edges: a curved boundary is not followed.
///
/// Child $i + 2j + 4k$ of a quadrilateral or hexahedron is the half $i$ of the first coordinate, $j$ of the
/// second, $k$ of the third. New nodes are numbered in the order of the cells. The children of a curved cell
/// have its order and are together the same image of the unit square or cube.
///
/// # Cost
/// The new mesh, twelve bytes per edge, and 64 MiB.
/// # Errors
/// [`MeshError::Invalid`] for segments, when the nodes or cells
/// become too many to number, and when a tagged facet has an edge that no cell has.
/// # Source
/// `[bey1995]` for tetrahedra. Differs: the shortest diagonal instead of a fixed one.
pub fn uniform(mesh: &Mesh) -> Result<Mesh, MeshError> {
    uniform_interruptible(mesh, None)
}

/// Refines as [`uniform`] does, and asks `is_interrupted` repeatedly whether to end.
///
/// # Errors
/// Those of [`uniform`]; [`MeshError::Interrupted`].
pub fn uniform_interruptible(mesh: &Mesh, is_interrupted: IsInterrupted<'_>) -> Result<Mesh, MeshError> {
    let interrupt = Interrupt(is_interrupted);
    if mesh.kind == CellKind::Segment {
        let message = "segment cells cannot be refined".into();
        return Err(MeshError::Invalid { field: "kind", message });
    }
    mesh.validate()?;
    if matches!(mesh.kind, CellKind::Quadrilateral | CellKind::Hexahedron) {
        return boxes::split(mesh, interrupt);
    }
    let n_children = if mesh.kind == CellKind::Triangle { 4 } else { 8 };
    let edges = Edges::of(mesh, interrupt);
    interrupt.go_on()?;
    let (n_nodes, n_cells) = (mesh.n_nodes() + edges.len(), n_children * mesh.n_cells());
    if n_nodes.max(n_cells) > u32::MAX as usize {
        let message = format!("{n_nodes} nodes and {n_cells} cells after refinement; at most {}", u32::MAX);
        return Err(MeshError::Invalid { field: "cells", message });
    }
    let mut points = Vec::with_capacity(n_nodes);
    points.extend_from_slice(&mesh.points);
    points.extend(edges.iter().map(|nodes| {
        let [a, b] = nodes.map(|node| mesh.points[node as usize]);
        std::array::from_fn(|d| 0.5 * a[d] + 0.5 * b[d])
    }));
    interrupt.go_on()?;
    let cells = children(mesh, &edges, &points, n_children);
    interrupt.go_on()?;
    let inherit = |field: &Field| inherited(field, n_children);
    Ok(Mesh {
        facets: split_facets(mesh, &edges)?,
        kind: mesh.kind,
        is_surface: mesh.is_surface,
        cells,
        curved: None,
        points,
        cell_tags: repeated(&mesh.cell_tags, n_children),
        tag_names: mesh.tag_names.clone(),
        cell_fields: mesh.cell_fields.iter().map(|(name, field)| (name.clone(), inherit(field))).collect(),
        node_fields: mesh
            .node_fields
            .iter()
            .map(|(name, field)| (name.clone(), interpolated(field, &edges)))
            .collect(),
        division: mesh.division.clone(),
        notes: mesh.notes.clone(),
    })
}

fn children(mesh: &Mesh, edges: &Edges, points: &[[f64; 3]], n_children: usize) -> Vec<u32> {
    let n = mesh.kind.n_nodes();
    let mut cells = vec![0; n_children * mesh.cells.len()];
    let write = |children: &mut [u32], cell: &[u32]| {
        // Every edge of a cell has been collected.
        let middle =
            |i: usize, j: usize| mesh.n_nodes() as u32 + edges.find(cell[i], cell[j]).unwrap_or_default();
        match *cell {
            [a, b, c] => {
                let (ab, bc, ca) = (middle(0, 1), middle(1, 2), middle(2, 0));
                children.copy_from_slice(four_triangles([a, b, c], [ab, bc, ca]).as_flattened());
            }
            [a, b, c, d] => {
                let middles = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)].map(|(i, j)| middle(i, j));
                children.copy_from_slice(eight_tetrahedra([a, b, c, d], middles, points).as_flattened());
            }
            _ => {}
        }
    };
    parallel::for_chunks_mut(&mut cells, CELLS_PER_BLOCK * n_children * n, |begin, cells| {
        let parents = mesh.cells[begin / n_children..].chunks_exact(n);
        cells
            .chunks_exact_mut(n_children * n)
            .zip(parents)
            .for_each(|(children, cell)| write(children, cell));
    });
    cells
}

fn four_triangles([a, b, c]: [u32; 3], [ab, bc, ca]: [u32; 3]) -> [[u32; 3]; 4] {
    [[a, ab, ca], [ab, b, bc], [ca, bc, c], [ab, bc, ca]]
}

fn eight_tetrahedra(
    [a, b, c, d]: [u32; 4],
    [ab, ac, ad, bc, bd, cd]: [u32; 6],
    points: &[[f64; 3]],
) -> [[u32; 4]; 8] {
    let square_of = |[p, q]: [u32; 2]| {
        let (p, q) = (points[p as usize], points[q as usize]);
        (0..3).map(|i| (p[i] - q[i]) * (p[i] - q[i])).sum::<f64>()
    };
    // A diagonal of the octahedron, the two edges it joins, and the nodes around it, right-handed.
    let choices = [
        ([ac, bd], [[a, c], [b, d]], [ab, bc, cd, ad]),
        ([ad, bc], [[a, d], [b, c]], [ac, cd, bd, ab]),
        ([ab, cd], [[a, b], [c, d]], [ad, bd, bc, ac]),
    ];
    let size = |(diagonal, [e, f], _): &([u32; 2], [[u32; 2]; 2], _)| {
        (square_of(*diagonal), square_of(*e).max(square_of(*f)))
    };
    let mut best = (&choices[0], size(&choices[0]));
    for choice in &choices[1..] {
        let (diagonal, edge) = size(choice);
        let (best_diagonal, best_edge) = best.1;
        let is_shorter = diagonal < CLEARLY_SHORTER * best_diagonal;
        let is_equal = CLEARLY_SHORTER * diagonal <= best_diagonal;
        if is_shorter || is_equal && edge < CLEARLY_SHORTER * best_edge {
            best = (choice, (diagonal, edge));
        }
    }
    let ([p, q], _, [r, s, t, u]) = *best.0;
    [
        [a, ab, ac, ad],
        [ab, b, bc, bd],
        [ac, bc, c, cd],
        [ad, bd, cd, d],
        [p, q, r, s],
        [p, q, s, t],
        [p, q, t, u],
        [p, q, u, r],
    ]
}

fn split_facets(mesh: &Mesh, edges: &Edges) -> Result<Facets, MeshError> {
    let per_facet = if mesh.kind == CellKind::Triangle { 2 } else { 4 };
    let mut nodes = Vec::with_capacity(per_facet * mesh.facets.nodes.len());
    for facet in 0..mesh.facets.tags.len() {
        let corners = mesh.facet(facet);
        let middle = |a: u32, b: u32| match edges.find(a, b) {
            Some(edge) => Ok(mesh.n_nodes() as u32 + edge),
            None => Err(MeshError::Invalid {
                field: "facets",
                message: format!("tagged facet {facet} has the edge {a}–{b}, which no cell has"),
            }),
        };
        match *corners {
            [a, b] => {
                let ab = middle(a, b)?;
                nodes.extend([a, ab, ab, b]);
            }
            [a, b, c] => {
                let middles = [middle(a, b)?, middle(b, c)?, middle(c, a)?];
                nodes.extend(four_triangles([a, b, c], middles).as_flattened());
            }
            _ => {}
        }
    }
    Ok(Facets { nodes, tags: repeated(&mesh.facets.tags, per_facet) })
}

fn repeated<T: Copy>(values: &[T], times: usize) -> Vec<T> {
    values.iter().flat_map(|&value| std::iter::repeat_n(value, times)).collect()
}

fn inherited(field: &Field, n_children: usize) -> Field {
    let n = field.n_components;
    let mut values = Vec::with_capacity(n_children * field.values.len());
    for of_cell in field.values.chunks_exact(n.max(1)) {
        (0..n_children).for_each(|_| values.extend_from_slice(of_cell));
    }
    Field { n_components: n, values }
}

fn interpolated(field: &Field, edges: &Edges) -> Field {
    let n = field.n_components;
    let mut values = Vec::with_capacity(field.values.len() + n * edges.len());
    values.extend_from_slice(&field.values);
    for nodes in edges.iter() {
        let [a, b] = nodes.map(|node| &field.values[node as usize * n..(node as usize + 1) * n]);
        values.extend(a.iter().zip(b).map(|(a, b)| 0.5 * a + 0.5 * b));
    }
    Field { n_components: n, values }
}
