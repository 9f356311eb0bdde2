//! Curved quadrilaterals that neighbours cut along different diagonals.
//!
//! In a plane the two pairs of triangles overlap. Where the four corners are no plane they enclose a
//! thin tetrahedron instead, a gap or an overlap, and edges around it join four boundary facets.

use super::boundary::BoundaryFacets;
use super::geometry::{cross, dot, sub};
use crate::{CellKind, Mesh};

/// The tetrahedron counts as thin below this share of its neighbours' height; one missing cell is no clash.
const THIN: f64 = 0.25;

/// The first pair of facets (smaller, larger) that are halves of a quadrilateral along different diagonals.
///
/// `representative` gives nodes that coincide the same number.
///
/// # Cost
/// $O(n \log n)$ for $n$ boundary facets, about 60 bytes each.
pub(super) fn clashing_facets(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    representative: impl Fn(u32) -> u32,
) -> Option<(usize, usize)> {
    if mesh.kind != CellKind::Tetrahedron {
        return None;
    }
    let nodes_of = |facet: usize| -> [u32; 3] {
        let nodes = boundary.facet(facet);
        std::array::from_fn(|i| representative(nodes[i]))
    };
    let mut edges = Vec::with_capacity(3 * boundary.len());
    let mut faces = Vec::with_capacity(boundary.len());
    for facet in 0..boundary.len() {
        let [a, b, c] = nodes_of(facet);
        edges.extend([(a, b, c), (b, c, a), (c, a, b)].map(|(a, b, c)| ([a.min(b), a.max(b)], facet, c)));
        faces.push(sorted([a, b, c]));
    }
    edges.sort_unstable();
    faces.sort_unstable();
    let is_boundary = |nodes| faces.binary_search(&sorted(nodes)).is_ok();
    let clash = |&(edge, one, c): &([u32; 2], usize, u32), &(_, other, d): &([u32; 2], usize, u32)| {
        c != d
            && boundary.cells[one] != boundary.cells[other]
            && is_boundary([edge[0], c, d])
            && is_boundary([edge[1], c, d])
            && is_thin(mesh, boundary, one, mesh.points[d as usize])
            && is_thin(mesh, boundary, other, mesh.points[c as usize])
    };
    let crowded = edges.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 2);
    let pairs = crowded.flat_map(|group| {
        let clash = &clash;
        (1..group.len()).flat_map(move |i| {
            let partners = group[..i].iter().filter(move |other| clash(&group[i], other));
            partners.map(move |other| (other.1.min(group[i].1), other.1.max(group[i].1)))
        })
    });
    pairs.min()
}

fn sorted(mut nodes: [u32; 3]) -> [u32; 3] {
    nodes.sort_unstable();
    nodes
}

/// Whether a point is much nearer to the plane of a facet than the node opposite in the facet's cell.
fn is_thin(mesh: &Mesh, boundary: &BoundaryFacets, facet: usize, point: [f64; 3]) -> bool {
    let [a, b, c] = std::array::from_fn(|i| mesh.points[boundary.facet(facet)[i] as usize]);
    let normal = cross(sub(b, a), sub(c, a));
    // A facet of a tetrahedron has the number of the node that it leaves out.
    let opposite = mesh.cell(boundary.cells[facet] as usize)[boundary.local[facet] as usize];
    let height = dot(normal, sub(mesh.points[opposite as usize], a)).abs();
    dot(normal, sub(point, a)).abs() < THIN * height
}
