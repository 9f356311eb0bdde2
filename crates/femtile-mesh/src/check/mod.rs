//! What a mesh must satisfy before anything is solved on it, and its boundary.

mod boundary;
mod half_facets;

pub use boundary::{BoundaryFacets, boundary_facets};
