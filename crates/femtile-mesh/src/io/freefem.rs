//! `.msh`, the own text format of FreeFEM for meshes of triangles; it shares the extension with Gmsh.

use std::path::Path;

use super::collect::Collector;
use super::scanner::Scanner;
use crate::{CellKind, Mesh, MeshError};

/// Reads the bytes of a mesh file of FreeFEM; `path` is used in messages only.
///
/// The region of a triangle is its tag, the label of an edge the tag of a facet unless it is 0.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes).by_lines();
    scanner.next_line();
    let n_vertices = scanner.count("vertices", 6)?;
    let n_triangles = scanner.count("triangles", 8)?;
    let n_edges = scanner.count("edges", 6)?;
    scanner.end_of_line("the number of edges")?;
    let mut points = Vec::with_capacity(n_vertices);
    for _ in 0..n_vertices {
        scanner.next_line();
        points.push([scanner.coordinate()?, scanner.coordinate()?, 0.0]);
        scanner.integer::<i64>("the label of a vertex")?;
        scanner.end_of_line("a vertex of a plane mesh")?;
    }
    let mut collector = Collector::default();
    for (kind, n) in [(CellKind::Triangle, n_triangles), (CellKind::Segment, n_edges)] {
        for _ in 0..n {
            scanner.next_line();
            let mut nodes = [0; 3];
            for node in &mut nodes[..kind.n_nodes()] {
                *node = vertex(&mut scanner, n_vertices)?;
            }
            let tag = scanner.integer("a label")?;
            scanner.end_of_line(&format!("a {kind}"))?;
            collector.push(kind, nodes[..kind.n_nodes()].iter().copied(), tag);
        }
    }
    Ok(collector.into_mesh(path, points, true)?.mesh)
}

fn vertex(scanner: &mut Scanner<'_>, n_vertices: usize) -> Result<u32, MeshError> {
    let number: usize = scanner.integer("a vertex")?;
    if number == 0 || number > n_vertices {
        return Err(scanner.error(format!("vertex {number}, but vertices are numbered 1 to {n_vertices}")));
    }
    Ok((number - 1) as u32)
}

/// Returns whether a file is one of FreeFEM, by its first word, a number.
pub(super) fn is_freefem(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
}
