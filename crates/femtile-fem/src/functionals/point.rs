use femtile_device::parallel;
use femtile_element::Affine;
use femtile_mesh::Mesh;
use femtile_space::LinearSpace;
use rayon::prelude::*;

use super::box_tree::{Bounds, BoxTree};
use super::{Line, check_length, corners};
use crate::FemError;

/// Tolerance of points outside a cell, in barycentric coordinates.
const TOLERANCE: f64 = 1e-9;

/// Returns the value of `u` at a point, from the first cell that contains it.
///
/// # Cost
/// One visit of every cell.
/// # Errors
/// [`FemError::Outside`] with the nearest cell and its distance, [`FemError::Length`] unless `u` has one entry per
/// node.
pub fn value_at(mesh: &Mesh, u: &[f64], point: [f64; 3]) -> Result<f64, FemError> {
    check_length(mesh, u)?;
    let cells = 0..mesh.n_cells() as u32;
    let found = cells.clone().into_par_iter().find_map_first(|cell| value_inside(mesh, u, cell, point));
    found.ok_or_else(|| {
        let nearest = cells.into_par_iter().map(|cell| (distance_to_cell(mesh, cell, point), cell));
        let none = || (f64::INFINITY, 0);
        let nearer = |a: (f64, u32), b: (f64, u32)| if b.0 < a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a };
        let (distance, cell) = nearest.reduce(none, nearer);
        FemError::Outside { point, distance, cell: cell as usize }
    })
}

/// Returns the values of `u` at points, each from the first cell that contains it; none outside the mesh.
///
/// # Cost
/// A bounding-box tree over the cells, then a few cells per point.
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node, [`FemError::Space`] for cells that are not
/// simplices.
pub fn values_at(mesh: &Mesh, u: &[f64], points: &[[f64; 3]]) -> Result<Vec<Option<f64>>, FemError> {
    LinearSpace::new(mesh)?;
    check_length(mesh, u)?;
    let boxes = parallel::map(mesh.n_cells(), 1, |cell| around(mesh, cell as u32));
    let tree = BoxTree::new(&boxes);
    let value = |point: [f64; 3]| {
        let found = tree.first(point, |cell| value_inside(mesh, u, cell, point));
        found.map(|(_, value)| value)
    };
    Ok(parallel::map(points.len(), 1, |i| value(points[i])))
}

/// Returns the values of `u` at `n` evenly spaced points from one point to another, both included.
///
/// # Errors
/// Errors of [`values_at`].
pub fn along(mesh: &Mesh, u: &[f64], from: [f64; 3], to: [f64; 3], n: usize) -> Result<Line, FemError> {
    let line = Line::new(from, to, n);
    Ok(Line { values: values_at(mesh, u, &line.points)?, ..line })
}

/// Returns the value at a point if it lies in the cell.
fn value_inside(mesh: &Mesh, u: &[f64], cell: u32, point: [f64; 3]) -> Option<f64> {
    let barycentric = barycentric_inside(mesh, cell, point)?;
    let (_, values, _) = corners(mesh, u, cell);
    Some(values.iter().zip(barycentric).map(|(value, shape)| value * shape).sum())
}

/// Returns a box around all points that count as inside the cell.
fn around(mesh: &Mesh, cell: u32) -> Bounds {
    let bounds = Bounds::around(mesh.cell(cell as usize).iter().map(|&node| mesh.points[node as usize]));
    let least = if mesh.dimension() == 2 { 1.0 } else { 0.0 };
    bounds.widened(bounds.size().map(|size| TOLERANCE * size.max(least)))
}

/// Returns the barycentric coordinates of a point if it lies in the cell.
fn barycentric_inside(mesh: &Mesh, cell: u32, point: [f64; 3]) -> Option<[f64; 4]> {
    let nodes = mesh.cell(cell as usize);
    if !around(mesh, cell).contains(point) {
        return None;
    }
    let corners: Vec<[f64; 3]> = nodes.iter().map(|&node| mesh.points[node as usize]).collect();
    let map = Affine::simplex(&corners);
    let offset = difference(point, corners[0]);
    let mut barycentric = [0.0; 4];
    for (shape, gradient) in barycentric.iter_mut().zip(&map.gradients).skip(1) {
        *shape = dot(*gradient, offset);
    }
    barycentric[0] = 1.0 - barycentric.iter().sum::<f64>();
    let inside = barycentric[..corners.len()].iter().all(|&shape| shape >= -TOLERANCE);
    inside.then_some(barycentric)
}

/// Returns the distance from a point outside a cell to its boundary.
fn distance_to_cell(mesh: &Mesh, cell: u32, point: [f64; 3]) -> f64 {
    let nodes = mesh.cell(cell as usize);
    let corner = |i: usize| mesh.points[nodes[i] as usize];
    let facets = mesh.kind.facets().iter().map(|facet| match **facet {
        [a, b] => distance_to_segment(point, corner(a), corner(b)),
        [a, b, c] => distance_to_triangle(point, [corner(a), corner(b), corner(c)]),
        _ => f64::INFINITY,
    });
    facets.fold(f64::INFINITY, f64::min)
}

fn distance_to_segment(p: [f64; 3], a: [f64; 3], b: [f64; 3]) -> f64 {
    let (edge, offset) = (difference(b, a), difference(p, a));
    let length = dot(edge, edge);
    let t = if length > 0.0 { (dot(offset, edge) / length).clamp(0.0, 1.0) } else { 0.0 };
    let gap: [f64; 3] = std::array::from_fn(|axis| offset[axis] - t * edge[axis]);
    dot(gap, gap).sqrt()
}

/// Returns the distance to the plane if the point projects into the triangle, else to the nearest side.
fn distance_to_triangle(p: [f64; 3], [a, b, c]: [[f64; 3]; 3]) -> f64 {
    let (e1, e2, offset) = (difference(b, a), difference(c, a), difference(p, a));
    let (d11, d12, d22) = (dot(e1, e1), dot(e1, e2), dot(e2, e2));
    let (d1, d2) = (dot(offset, e1), dot(offset, e2));
    let determinant = d11 * d22 - d12 * d12;
    let (s, t) = ((d22 * d1 - d12 * d2) / determinant, (d11 * d2 - d12 * d1) / determinant);
    if s >= 0.0 && t >= 0.0 && s + t <= 1.0 {
        let gap: [f64; 3] = std::array::from_fn(|axis| offset[axis] - s * e1[axis] - t * e2[axis]);
        return dot(gap, gap).sqrt();
    }
    let sides = [distance_to_segment(p, a, b), distance_to_segment(p, b, c), distance_to_segment(p, c, a)];
    sides.into_iter().fold(f64::INFINITY, f64::min)
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
