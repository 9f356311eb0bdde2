//! Seconds that assembly takes on a box: `cargo run --release --example assembly_time -- [nodes a side] [threads]`.

use std::time::Instant;

use femtile_device::Cpu;
use femtile_fem::{Coefficient, Form, System, assemble};
use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxConfig, box_mesh};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let side = arguments.first().copied().unwrap_or(65);
    let threads = arguments.get(1).copied().unwrap_or(1);
    let mesh = box_mesh(&BoxConfig { cells: [side - 1; 3], upper: [4.0; 3], ..BoxConfig::default() })?;
    let boundary = boundary_facets(&mesh);
    let one = Coefficient::Constant(1.0);
    let form =
        Form { mesh: &mesh, boundary: &boundary, sigma: &one, lambda: &one, source: &one, conditions: &[] };
    let device = Cpu::new(threads)?;
    let mut seconds = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        let system: System<f64, Cpu> = assemble(&device, &form, &|_| ())?;
        seconds.push(start.elapsed().as_secs_f64());
        drop(system);
    }
    seconds.sort_by(f64::total_cmp);
    println!(
        "{} nodes, {} cells: median {:.3} s, fastest {:.3} s",
        mesh.n_nodes(),
        mesh.n_cells(),
        seconds[10],
        seconds[0]
    );
    Ok(())
}
