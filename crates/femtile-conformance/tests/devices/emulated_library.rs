//! User-defined coefficients (closures) and kernels on emulated CUDA.

use std::sync::Arc;

use femtile::device::cuda::{Kernel, Launch, Program, Read, Write};
use femtile::device::{Buffer, Cuda};
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};
use femtile::solve::{Silent, Stages};
use femtile::{Cpu, Poisson, SolverConfig, Value};
use femtile_conformance::emulator::Emulator;

/// An emulated GPU, or a message that the test is skipped.
fn gpu(test: &str) -> Option<Cuda> {
    match Emulator::new() {
        Ok(emulator) => Some(Cuda::with_driver(Arc::new(emulator))),
        Err(error) => {
            eprintln!("SKIPPED: {test}: {error}");
            None
        }
    }
}

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
    let Some(gpu) = gpu("closures_give_on_a_gpu_what_expressions_give") else { return };
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

#[test]
fn the_kernel_of_the_page_for_programs_does_what_the_page_says() {
    let Some(device) = gpu("the_kernel_of_the_page_for_programs") else { return };
    let page = include_str!("../../../../docs/library.md");
    let source = page.split("source: r#\"").nth(1).and_then(|rest| rest.split("\"#").next());
    let source = source.expect("the page has a kernel");
    let program: &'static Program = Box::leak(Box::new(Program { name: "scale", source, headers: &[] }));
    let x = Buffer::from_vec(&device, (0..1000).map(f64::from).collect()).unwrap();
    let mut y = Buffer::from_vec(&device, vec![f64::NAN; 1000]).unwrap();
    let kernel = Kernel::<(Write<f64>, Read<f64>, f64, u32)>::new("scale");
    let arguments = (y.write(), x.read(), 2.0, 1000);
    // SAFETY: the emulator checks what the kernel touches before it does.
    unsafe { device.launch(&program.of::<f64>(), &kernel, Launch::over(1000, 256), arguments) }.unwrap();
    assert!(y.to_host().unwrap().into_iter().eq((0..1000).map(|i| 2.0 * f64::from(i))));
}
