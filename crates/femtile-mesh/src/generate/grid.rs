//! Parts shared by all generators: valid settings, names of sides, points along an edge.

use crate::check::boundary_facets;
use crate::{CellKind, Mesh, MeshError};

/// Splits of a cube into positively oriented tetrahedra; corner `x + 2y + 4z` lies at (x, y, z).
pub(super) mod cube {
    /// Six tetrahedra around the diagonal from corner 0 to corner 7; every cube alike.
    pub const KUHN: [[usize; 4]; 6] =
        [[0, 1, 3, 7], [0, 5, 1, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 6, 4, 7]];
    /// Four corners and a middle, by the parity of the cube: neighbours must differ.
    pub const FIVE: [[[usize; 4]; 5]; 2] = [
        [[0, 3, 6, 5], [1, 3, 0, 5], [2, 0, 3, 6], [4, 5, 0, 6], [7, 3, 5, 6]],
        [[1, 2, 4, 7], [0, 1, 2, 4], [3, 2, 1, 7], [5, 4, 7, 1], [6, 2, 7, 4]],
    ];
    /// One hexahedron, its corners as VTK orders them.
    pub const HEXAHEDRON: [usize; 8] = [0, 1, 3, 2, 4, 5, 7, 6];
}

/// Fails unless each number of cells is at least one.
pub(super) fn cells_are_positive(cells: &[usize]) -> Result<(), MeshError> {
    match cells.contains(&0) {
        true => Err(MeshError::Invalid {
            field: "cells",
            message: format!("{cells:?} cells: at least one in each direction is needed"),
        }),
        false => Ok(()),
    }
}

/// Fails unless both corners are finite and the upper lies beyond the lower in every coordinate.
pub(super) fn corners_are_ordered(lower: &[f64], upper: &[f64]) -> Result<(), MeshError> {
    let wrong = |field, message| Err(MeshError::Invalid { field, message });
    for (field, corner) in [("lower", lower), ("upper", upper)] {
        if let Some(x) = corner.iter().find(|x| !x.is_finite()) {
            return wrong(field, format!("coordinate {x} of corner {corner:?} is not finite"));
        }
    }
    match lower.iter().zip(upper).find(|(low, high)| low >= high) {
        Some((low, high)) => {
            wrong("upper", format!("{high} does not lie beyond {low} of the lower corner {lower:?}"))
        }
        None => Ok(()),
    }
}

/// Fails unless a length is positive and finite.
pub(super) fn length_is_positive(field: &'static str, length: f64) -> Result<(), MeshError> {
    match length > 0.0 && length.is_finite() {
        true => Ok(()),
        false => {
            Err(MeshError::Invalid { field, message: format!("{length} is not a positive, finite length") })
        }
    }
}

/// `n + 1` points from `lower` to `upper`, with both ends exact.
pub(super) fn ticks(lower: f64, upper: f64, n: usize) -> Vec<f64> {
    (0..=n)
        .map(|i| {
            let t = i as f64 / n as f64;
            (1.0 - t) * lower + t * upper
        })
        .collect()
}

/// The even number of cells, at least two, next to or above `count`.
pub(super) fn even_count(count: f64) -> f64 {
    // A hair of slack, so that lengths that divide evenly in decimals do so in binary.
    2.0 * (count * (0.5 - 1e-12)).ceil().max(1.0)
}

/// Adds named boundary parts, numbered from 1, to a mesh of tetrahedra.
pub(super) fn tag_facets<const N: usize>(mesh: &mut Mesh, parts: [(&str, Vec<u32>); N]) {
    for (tag, (name, nodes)) in (1..).zip(parts) {
        mesh.facets.tags.resize(mesh.facets.tags.len() + nodes.len() / 3, tag);
        mesh.facets.nodes.extend(nodes);
        mesh.tag_names.insert((2, tag), name.to_owned());
    }
}

/// Tags every boundary facet by a choice among names, numbered from 1, from the mean of its nodes; one part follows
/// another.
pub(super) fn tag_boundary(mesh: &mut Mesh, names: &[&str], choose: impl Fn([f64; 3]) -> usize) {
    let boundary = boundary_facets(mesh);
    let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
    let mean = |nodes: &[u32]| -> [f64; 3] {
        std::array::from_fn(|d| {
            nodes.iter().map(|&node| mesh.points[node as usize][d]).sum::<f64>() / n as f64
        })
    };
    let chosen: Vec<usize> = boundary.nodes.chunks_exact(n).map(|nodes| choose(mean(nodes))).collect();
    let facet_dimension = mesh.dimension() - 1;
    for (part, name) in names.iter().enumerate() {
        let tag = part as i32 + 1;
        for (facet, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen == part) {
            mesh.facets.nodes.extend_from_slice(&boundary.nodes[facet * n..(facet + 1) * n]);
            mesh.facets.tags.push(tag);
        }
        mesh.tag_names.insert((facet_dimension, tag), (*name).to_owned());
    }
}
