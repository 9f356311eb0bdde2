//! User-defined coefficients (closures) and kernels on emulated CUDA.

use std::sync::Arc;

use femtile::device::cuda::{Kernel, Launch, Opening, Program, Read, Write};
use femtile::device::{Buffer, Cuda, Device};
use femtile::expression::{Expression, Names};
use femtile::fem::{Assembly, Coefficient, DeviceState, Form, Slopes};
use femtile::form::Equation;
use femtile::mesh::Mesh;
use femtile::mesh::check::boundary_facets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
use femtile::solve::{
    AmgOptions, FormProblem, FormSolution, NonlinearConfig, Observer, PreconditionerConfig, Silent, Stages,
    Transient,
};
use femtile::time::implicit::Steps;
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
    let solved = problem.discretize().unwrap().solve(
        &cpu,
        &config,
        gpu.cloned().map(Opening::from),
        &mut Stages::new(&mut progress),
    );
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

#[test]
fn linearizations_are_filled_by_kernels_alone() {
    let Some(gpu) = gpu("linearizations_are_filled_by_kernels_alone") else { return };
    let mesh = box_mesh(&BoxConfig { cells: [3, 3, 2], ..BoxConfig::default() }).unwrap();
    let boundary = boundary_facets(&mesh);
    let formula = |text| -> Coefficient {
        Expression::parse_with(text, &Names { time: true, others: &["u"] }).unwrap().into()
    };
    let (sigma, lambda, source) = (formula("1 + u^2"), formula("t*u"), formula("x - u^3"));
    let (mesh, boundary, conditions) = (&mesh, &boundary, &[]);
    let form = Form { mesh, boundary, sigma: &sigma, lambda: &lambda, source: &source, conditions };
    let u = Buffer::from_vec(&gpu, vec![0.5; mesh.n_nodes()]).unwrap();
    for (slopes, n_kernels) in [(Slopes::of(&form), 2), (Slopes::default(), 1)] {
        let mut assembly = Assembly::<f64, Cuda>::new(&gpu, mesh).unwrap();
        let mut system = assembly.zero_system().unwrap();
        let prepared = assembly.prepare_linearized(&form, &slopes, &[]).unwrap();
        let before = gpu.kernel_launches();
        for time in [0.5, 1.0, 1.5] {
            assembly.fill(&mut system, &prepared, DeviceState { time, unknown: Some(&u) }).unwrap();
        }
        assert_eq!(gpu.kernel_launches() - before, 3 * n_kernels);
    }
}

#[test]
fn nonlinear_forms_have_on_a_gpu_the_solution_of_a_cpu() {
    let Some(gpu) = gpu("nonlinear_forms_have_on_a_gpu_the_solution_of_a_cpu") else { return };
    // One whose tangent is not symmetric, and an energy with rigid motions.
    let texts = [
        "unknown = { u = {} }\ncells = { flux = \"(1 + u^2)*grad(u)\", source = \"4*x\" }",
        "unknown = { u = { components = \"dimension\" } }\n\
         cells = { energy = \"2*sym(grad(u)):sym(grad(u)) + div(u)^4\" }",
    ];
    let mesh = square(&SquareConfig { cells: [5, 5], ..SquareConfig::default() }).unwrap();
    for (text, n) in texts.into_iter().zip([1, 2]) {
        let equation = Equation::from_toml("test", &format!("description = \"\"\n{text}")).unwrap();
        let mut problem = FormProblem::new(&mesh, Arc::new(boundary_facets(&mesh)), equation).degree(2);
        for (side, value) in [("xmin", "0"), ("xmax", "0.5 + y")] {
            problem.dirichlet(side, &vec![Some(Value::from(value)); n]).unwrap();
        }
        let nonlinear = NonlinearConfig { tolerance: 1e-12, ..NonlinearConfig::default() };
        let config = SolverConfig { nonlinear, tolerance: 1e-13, ..SolverConfig::default() };
        let solve = |gpu: Option<&Cuda>| {
            let opening = gpu.cloned().map(Opening::from);
            problem.solve(&Cpu::new(1).unwrap(), &config, opening, &mut Stages::new(&mut Silent)).unwrap()
        };
        let [expected, found] = [None, Some(&gpu)].map(solve);
        assert!(found.device().contains("emulator") && found.kernel_launches() > 0, "{}", found.device());
        assert_eq!((found.preconditioner(), expected.preconditioner()), ("amg", "amg"));
        let iterations = |of: &FormSolution<'_>| of.nonlinear().map(|report| report.iterations);
        assert!(iterations(&found) == iterations(&expected) && iterations(&found) > Some(2));
        let differences = found.u().iter().zip(expected.u()).map(|(f, e)| (f - e).abs());
        assert!(differences.fold(0.0, f64::max) < 1e-10);
    }
}

#[test]
fn nonlinear_equations_have_on_a_gpu_the_solution_of_a_cpu() {
    let Some(gpu) = gpu("nonlinear_equations_have_on_a_gpu_the_solution_of_a_cpu") else { return };
    let nonlinear = NonlinearConfig { tolerance: 1e-12, ..NonlinearConfig::default() };
    let config = SolverConfig { nonlinear, tolerance: 1e-13, ..SolverConfig::default() };
    let cpu = Cpu::new(1).unwrap();
    for (split, preconditioner) in [
        (BoxSplit::Kuhn, PreconditionerConfig::Jacobi),
        (BoxSplit::Kuhn, PreconditionerConfig::Amg(AmgOptions::default())),
        (BoxSplit::Hexahedron, PreconditionerConfig::Jacobi),
    ] {
        let config = SolverConfig { preconditioner, ..config.clone() };
        let mesh = box_mesh(&BoxConfig { cells: [3, 3, 2], split, ..BoxConfig::default() }).unwrap();
        for (sigma, source) in [("1 + u^2", "2"), ("1", "4*exp(u/4)")] {
            let problem = Poisson::new(&mesh).sigma(sigma).lambda("u").source(source);
            let problem = problem.dirichlet("xmin", "y").unwrap();
            let steady = |gpu: Option<&Cuda>| {
                let mut progress = Silent;
                let discretization = problem.discretize().unwrap();
                let solved = discretization.solve(
                    &cpu,
                    &config,
                    gpu.cloned().map(Opening::from),
                    &mut Stages::new(&mut progress),
                );
                let solution = solved.unwrap();
                assert!(solution.has_converged(), "{:?}", solution.nonlinear());
                assert_eq!(solution.device().contains("emulator"), gpu.is_some());
                solution.values().to_vec()
            };
            let run = Transient::new(problem.clone(), 0.5).times(0.0, 0.3).steps(Steps::Fixed(3));
            let in_time = |gpu: Option<&Cuda>| {
                let (mut progress, mut observer) = (Silent, Nobody);
                let discretization = run.discretize().unwrap();
                let mut stages = Stages::new(&mut progress);
                let solution = run
                    .run(discretization, (&cpu, gpu.cloned()), &config, &mut observer, &mut stages)
                    .unwrap();
                assert!(solution.at_end().has_converged());
                solution.at_end().values().to_vec()
            };
            for (found, expected) in
                [(steady(Some(&gpu)), steady(None)), (in_time(Some(&gpu)), in_time(None))]
            {
                let distance = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(distance < 1e-9, "{split:?} {sigma}: {distance:e}");
            }
        }
    }
}

/// Observes nothing.
struct Nobody;

impl Observer for Nobody {}
