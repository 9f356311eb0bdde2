//! The conformance suite on CPUs but for linear algebra, and files read and written.

mod adi;
mod assembly;
mod conditions;
mod error_study;
mod fluxes;
mod fuzz_readers;
mod fuzz_structure;
mod ionic;
mod meshio;
mod mixed;
mod multigrid;
mod paraview;
mod readers;
