//! Models of the membrane: their action potentials, orders of the schemes, derivatives, bad descriptions.

mod action_potentials;
mod beat;
mod descriptions;
mod documentation;
mod easyml;
mod implicit;
mod orders;
