//! `nodes`: the shapes of cells as a function of a finite element space.

use super::space::Space;
use crate::io::scanner::Scanner;
use crate::numbering::number;
use crate::tensor::{apply, corner_places, evenly_spaced, ticks};
use crate::{CellKind, Curved, MeshError};
use femtile_element::tensor::Lagrange;

/// Points of cells given by the section `nodes`.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Coordinates of the vertices.
    pub points: Vec<[f64; 3]>,
    /// Shapes of curved cells.
    pub curved: Option<Curved>,
    /// True if nodes on edges of simplices were left out.
    pub is_straightened: bool,
}

/// Reads nodes.
///
/// # Errors
/// [`MeshError::Unsupported`] for simplices of higher order and spaces that are not read, [`MeshError::Parse`] for
/// missing numbers.
pub(super) fn read_nodes(
    scanner: &mut Scanner<'_>,
    kind: CellKind,
    cells: &[u32],
    n_vertices: usize,
) -> Result<Nodes, MeshError> {
    let space = Space::read(scanner)?;
    if space.order == 1 && space.is_continuous {
        return Ok(Nodes { points: read_values(scanner, &space, n_vertices)?, ..Nodes::default() });
    }
    if kind.is_simplex() && space.order == 2 && space.is_continuous {
        // Vertices come first.
        let mut points = read_values(scanner, &space, n_vertices + n_edges(kind, cells))?;
        points.truncate(n_vertices);
        return Ok(Nodes { points, curved: None, is_straightened: true });
    }
    if kind.is_simplex() {
        let what = format!("a mesh of {kind} cells with nodes of order {} or discontinuous", space.order);
        return Err(scanner.unsupported(
            what,
            "quadrilaterals and hexahedra may be curved, and simplices of order 2 are read as straight",
        ));
    }
    let n_cells = cells.len() / kind.n_nodes();
    let n_points = |along: usize| n_cells.saturating_mul(along.pow(kind.dimension() as u32));
    let numbered = if space.is_continuous {
        // What is inside of cells alone bounds what numbering takes.
        let n_inside = n_points(space.order - 1);
        scanner.announce(n_inside.saturating_mul(space.n_components), "coordinates of nodes", 2)?;
        number(kind, cells, n_vertices, space.order, space.goes_around)
            .map(|found| (found.cells, found.n_points))
    } else {
        let n = n_points(space.order + 1);
        // The file must hold them before they are numbered.
        scanner.announce(n.saturating_mul(space.n_components), "coordinates of nodes", 2)?;
        u32::try_from(n).ok().map(|count| ((0..count).collect(), n))
    };
    let too_many = || scanner.error(format!("more than {} nodes", u32::MAX));
    let (numbers, n_values) = numbered.ok_or_else(too_many)?;
    let values = read_values(scanner, &space, n_values)?;
    let curved = bend(kind, &space, numbers, values);
    let points = corners(kind, cells, n_vertices, &curved);
    Ok(Nodes { points, curved: Some(curved), is_straightened: false })
}

fn read_values(scanner: &mut Scanner<'_>, space: &Space, n: usize) -> Result<Vec<[f64; 3]>, MeshError> {
    let n_components = space.n_components;
    scanner.announce(n.saturating_mul(n_components), "coordinates of nodes", 2)?;
    let mut values = vec![[0.0; 3]; n];
    for i in 0..n * n_components {
        let (value, d) =
            if space.is_interleaved { (i / n_components, i % n_components) } else { (i % n, i / n) };
        values[value][d] = scanner.coordinate()?;
    }
    Ok(values)
}

/// Number of edges of simplices.
fn n_edges(kind: CellKind, cells: &[u32]) -> usize {
    let n = kind.n_nodes();
    let pairs = |cell: &[u32]| -> Vec<[u32; 2]> {
        let pair = |i: usize, j: usize| [cell[i].min(cell[j]), cell[i].max(cell[j])];
        (0..n).flat_map(|i| (0..i).map(move |j| pair(i, j))).collect()
    };
    let mut edges: Vec<[u32; 2]> = cells.chunks_exact(n).flat_map(pairs).collect();
    edges.sort_unstable();
    edges.dedup();
    edges.len()
}

/// The same shapes by evenly spaced points; each point comes from the first cell that contains it.
fn bend(kind: CellKind, space: &Space, cells: Vec<u32>, values: Vec<[f64; 3]>) -> Curved {
    let table = Lagrange::new(space.points.clone()).values(&ticks(space.order));
    let tables = vec![&table; kind.dimension()];
    let mut points = vec![[f64::NAN; 3]; values.len()];
    if space.points == evenly_spaced(space.order).nodes() {
        return Curved { order: space.order, points: values, cells };
    }
    let mut of_cell = Vec::new();
    for cell in cells.chunks_exact((space.order + 1).pow(kind.dimension() as u32)) {
        of_cell.clear();
        of_cell.extend(cell.iter().map(|&value| values[value as usize]));
        for (&point, found) in cell.iter().zip(apply(&tables, &of_cell)) {
            if points[point as usize][0].is_nan() {
                points[point as usize] = found;
            }
        }
    }
    // Vertices of boundary elements that no cell has.
    points
        .iter_mut()
        .zip(values)
        .filter(|(point, _)| point[0].is_nan())
        .for_each(|(point, value)| *point = value);
    Curved { order: space.order, points, cells }
}

/// Returns the vertices, each with the coordinates in its first cell.
fn corners(kind: CellKind, cells: &[u32], n_vertices: usize, curved: &Curved) -> Vec<[f64; 3]> {
    let places: Vec<usize> = corner_places(kind, curved.order).collect();
    let mut found = vec![None; n_vertices];
    let shapes = curved.cells.chunks_exact(curved.n_points(kind.dimension()));
    for (cell, shape) in cells.chunks_exact(kind.n_nodes()).zip(shapes) {
        for (&vertex, &place) in cell.iter().zip(&places) {
            found[vertex as usize].get_or_insert(curved.points[shape[place] as usize]);
        }
    }
    found.into_iter().map(Option::unwrap_or_default).collect()
}
