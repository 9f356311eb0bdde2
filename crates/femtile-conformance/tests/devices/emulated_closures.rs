//! Coefficients that a program gives as closures, on emulated CUDA.

use std::sync::Arc;

use femtile::device::Cuda;
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::{Silent, Stages};
use femtile::{Cpu, Poisson, SolverConfig, Value};
use femtile_conformance::emulator::Emulator;

/// A problem with data from `value`, which gets a formula and the same as a closure.
fn problem(mesh: &Mesh, value: impl Fn(&'static str, fn([f64; 3]) -> f64) -> Value) -> Poisson<'_> {
    Poisson::new(mesh)
        .sigma(value("1 + x*y", |[x, y, _]| 1.0 + x * y))
        .lambda(value("0.5 + z", |[_, _, z]| 0.5 + z))
        .source(value("x*x - y", |[x, y, _]| x * x - y))
        .robin("ymin", value("2 + x", |[x, _, _]| 2.0 + x), value("1 - x", |[x, _, _]| 1.0 - x))
        .unwrap()
        .dirichlet("xmin", value("y*z", |[_, y, z]| y * z))
        .unwrap()
}

/// The solution on the GPU, or on the CPU where there is none.
fn values(problem: &Poisson<'_>, gpu: Option<&Cuda>) -> Vec<f64> {
    let config = SolverConfig { tolerance: 1e-12, ..SolverConfig::default() };
    let cpu = Cpu::new(1).unwrap();
    let mut progress = Silent;
    let solved =
        problem.discretize().unwrap().solve(&cpu, &config, gpu.cloned(), &mut Stages::new(&mut progress));
    let solution = solved.unwrap();
    assert!(solution.has_converged());
    assert_eq!(solution.device().contains("emulator"), gpu.is_some(), "{}", solution.device());
    assert_eq!(solution.kernel_launches() > 0, gpu.is_some());
    solution.values().to_vec()
}

#[test]
fn closures_give_on_a_gpu_what_expressions_give_there_and_on_a_cpu() {
    let gpu = match Emulator::new() {
        Ok(emulator) => Cuda::with_driver(Arc::new(emulator)),
        Err(error) => return eprintln!("SKIPPED: closures on an emulated GPU: {error}"),
    };
    for split in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
        let mesh = box_mesh(&BoxConfig { cells: [3, 3, 2], split, ..BoxConfig::default() }).unwrap();
        let expected = values(&problem(&mesh, |text, _| text.into()), None);
        let size = expected.iter().fold(0.0_f64, |most, value| value.abs().max(most));
        assert!(size > 0.1);
        let closures = problem(&mesh, |_, closure| closure.into());
        let formulas = problem(&mesh, |text, _| text.into());
        for found in [values(&closures, Some(&gpu)), values(&formulas, Some(&gpu))] {
            let largest = found.iter().zip(&expected).map(|(f, e)| (f - e).abs()).fold(0.0, f64::max);
            assert!(largest <= 1e-10 * size, "{largest:e} of {size}");
        }
    }
}
