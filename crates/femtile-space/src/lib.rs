//! Finite-element spaces: elements, numbering of the degrees of freedom, geometry of the cells, linear constraints.
//!
//! A [`Space`] is an [`Element`] on each cell of a mesh, of any kind. [`TensorSpace`] and [`geometry`] are what kernels on
//! quadrilaterals and hexahedra use: groups of cells, entities, tables along axes.
#![deny(unsafe_code)]
// Loops over corners and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

mod box_tree;
mod constraints;
mod element;
mod error;
pub mod geometry;
mod linear_space;
mod mortar;
mod shared_entities;
mod space;
mod tensor_space;

pub use box_tree::{Bounds, BoxTree};
pub use constraints::{LinearConstraints, LinearRelation};
pub use element::{Element, ElementFacet, MAX_SIMPLEX_DEGREE, ReferenceRule, Tabulation};
pub use error::SpaceError;
pub use linear_space::LinearSpace;
pub use mortar::{Mortar, SideNode, SidePair};
pub use space::{CellFacet, CellMapping, CellPoint, FacetMap, Foot, PointMap, Space};
pub use tensor_space::{Group, MAX_DEGREE, Orientation, TensorSpace, along_curve};
