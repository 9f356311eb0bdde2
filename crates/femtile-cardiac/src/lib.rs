//! Electrophysiology of the heart: the monodomain equation with models of the membrane, on triangles and tetrahedra.
//!
//! $$ \chi C_m \frac{\partial V}{\partial t} = \nabla\cdot(D \nabla V) - \chi I_{ion}(V, w) + I_{stim}, \qquad
//!    \frac{\partial w}{\partial t} = g(V, w) $$
//!
//! `ionic/`: descriptions of models and their integration at points; `monodomain/`: operator splitting with
//! implicit diffusion; `implicit/`: the fully implicit scheme of `[wong2015]`, Table 1; `stimulus/`: applied
//! currents; `activation/`: recorded times; `fibres/`: directions of muscle fibres from the shape of
//! ventricles.
//!
//! This crate uses only the facade. A `Stepper` advances potential and states by a step: `Split` or `Implicit`.
//! Times of activation are found within a step by a kernel over the nodes.
#![deny(unsafe_code)]

pub mod activation;
mod device;
mod error;
pub mod fibres;
pub mod implicit;
pub mod ionic;
pub mod monodomain;
pub mod stimulus;

pub use activation::{ActivationConfig, ActivationTimes};
pub use device::CardiacDevice;
pub use error::CardiacError;
pub use fibres::RuleBasedFibres;
pub use monodomain::{Monodomain, MonodomainSolution};
pub use stimulus::Stimulus;

use femtile::device::cuda::Specialisation;

/// Returns the GPU programs of this crate, for compile checks.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    [activation::cuda::specialisations(), ionic::cuda::specialisations(), implicit::cuda_specialisations()]
        .concat()
}
