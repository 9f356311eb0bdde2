//! Parts of assembly on GPUs that other kernels share: headers, coefficients, the sparsity pattern, the identity of a mesh.

pub use super::cuda::{ELEMENT, first_error};
pub use super::mesh_identity::MeshIdentity;
pub use super::sparsity::Sparsity;
pub use crate::forms::{CudaForm, CudaFormData, Evaluated, OPERATIONS, for_every_form};
