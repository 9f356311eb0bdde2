//! Electrophysiology of the heart: the monodomain equation with models of the membrane, on any mesh of simplices.
//!
//! $$ \chi C_m \frac{\partial\varphi}{\partial t} = \nabla\cdot(D \nabla\varphi) - \chi I_{ion}(\varphi, w) + I_{stim}, \qquad
//!    \frac{\partial w}{\partial t} = g(\varphi, w) $$
//!
//! `ionic/`: descriptions of models and their integration at points; `monodomain/`: operator splitting with implicit
//! diffusion; `implicit/`: the fully implicit scheme of `[wong2015]`, Table 1.
#![deny(unsafe_code)]

mod error;
pub mod ionic;

pub use error::CardiacError;
