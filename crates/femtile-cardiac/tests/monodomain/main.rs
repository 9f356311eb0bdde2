//! The monodomain equation on small meshes.

mod cable;
mod ecg;
mod implicit;
mod orders;
mod parts;
mod ranks;
mod refusals;
mod restart;
mod variants;

use femtile::Mesh;
use femtile::mesh::generate::{SquareConfig, square};
use femtile::{DeviceChoice, SolverConfig};

/// A strip of tissue, two rows of nodes along x.
fn strip(n_cells: usize, spacing: f64) -> Mesh {
    let upper = [n_cells as f64 * spacing, spacing];
    square(&SquareConfig { cells: [n_cells, 1], upper, ..SquareConfig::default() }).unwrap()
}

fn on_cpu(threads: usize) -> SolverConfig {
    SolverConfig { device: DeviceChoice::Cpu, threads, ..SolverConfig::default() }
}
