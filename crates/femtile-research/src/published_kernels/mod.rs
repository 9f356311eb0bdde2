//! GPU kernels of the vertex-patch smoother as `[cui2024]` publishes them, for comparison with
//! [`PatchKernel`](femtile::multigrid::PatchKernel).
//!
//! | file | content |
//! |---|---|
//! | `kernel.rs` | the variants: passes over vectors × layout of threads and values |
//! | `program.rs` | their CUDA programs |
//! | `cuda.rs` | one smoothing step with a variant |
//! | `bank_conflicts.rs` | conflicts of shared-memory banks, counted |

mod bank_conflicts;
#[allow(unsafe_code)]
mod cuda;
mod kernel;
mod program;

pub use cuda::PublishedPatches;
pub use kernel::{Layout, Passes, PatchPass, PublishedKernel};
pub use program::specialisations as cuda_specialisations;
