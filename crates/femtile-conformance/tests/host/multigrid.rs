//! Multigrid on sample meshes and matrices: symmetric, positive, a contraction, and few iterations.

use femtile::amg::{Amg, AmgConfig, PatchFormat, Smoother};
use femtile::device::{Buffer, Cpu};
use femtile::linalg::comm::SingleRank;
use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::{ConjugateGradient, KrylovConfig};
use femtile::linalg::precondition::Jacobi;
use femtile::linalg::sparse::{Csr, matrix_market};
use femtile::linalg::{LinearOperator, Preconditioner};
use femtile_case::{Case, Silent};
use femtile_conformance::suite::problems::Random;
use femtile_conformance::suite::samples::{Sample, definite_matrices, tetrahedra};

type Matrix = Csr<f64, Cpu>;

fn apply(m: &dyn Preconditioner<f64, Cpu>, cpu: &Cpu, r: &[f64]) -> Vec<f64> {
    let mut z = Buffer::from_vec(cpu, vec![f64::NAN; r.len()]).unwrap();
    m.apply(&mut z, &Buffer::from_host(cpu, r).unwrap()).unwrap();
    z.to_host().unwrap()
}

fn product(a: &Matrix, cpu: &Cpu, x: &[f64]) -> Vec<f64> {
    let mut y = Buffer::zeros(cpu, x.len()).unwrap();
    a.apply(&mut y, &Buffer::from_host(cpu, x).unwrap()).unwrap();
    y.to_host().unwrap()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Holds the cycle of a matrix to what conjugate gradients need, and gives the iterations of a solve.
fn iterations(name: &str, cpu: &Cpu, a: &Matrix, config: &AmgConfig) -> usize {
    let n = a.n_rows();
    let amg = Amg::<f64, _>::new(a, None, config).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut random = Random::new(5);
    let (x, y) = (random.vector::<f64>(n), random.vector::<f64>(n));
    let (mx, my) = (apply(&amg, cpu, &x), apply(&amg, cpu, &y));
    let size = dot(&mx, &mx).sqrt() * dot(&y, &y).sqrt();
    assert!((dot(&mx, &y) - dot(&x, &my)).abs() <= 1e-9 * size, "{name}: not symmetric");
    assert!(dot(&mx, &x) > 0.0 && dot(&my, &y) > 0.0, "{name}: not positive");
    let mut e = random.vector::<f64>(n);
    for _ in 0..5 {
        let before = dot(&e, &product(a, cpu, &e)).sqrt();
        let correction = apply(&amg, cpu, &product(a, cpu, &e));
        e.iter_mut().zip(correction).for_each(|(e, c)| *e = (*e - c) / before);
        let after = dot(&e, &product(a, cpu, &e)).sqrt();
        assert!(after < 1.0, "{name}: an error becomes {after} of what it was");
    }
    solve(cpu, a, &amg).unwrap_or_else(|stop| panic!("{name}: {stop}"))
}

/// Iterations with Jacobi's preconditioner; as many as there may be where it does not converge.
fn of_jacobi(cpu: &Cpu, a: &Matrix) -> usize {
    solve(cpu, a, &Jacobi::new(a).unwrap()).unwrap_or(MOST_ITERATIONS)
}

const MOST_ITERATIONS: usize = 5_000;

fn solve(cpu: &Cpu, a: &Matrix, m: &dyn Preconditioner<f64, Cpu>) -> Result<usize, Stop> {
    let config = KrylovConfig { tolerance: 1e-8, max_iterations: MOST_ITERATIONS, ..KrylovConfig::default() };
    let mut u = Buffer::zeros(cpu, a.n_rows()).unwrap();
    let b = Buffer::from_vec(cpu, vec![1.0; a.n_rows()]).unwrap();
    let outcome = ConjugateGradient::new(config).solve(&mut u, a, m, &b, &SingleRank, &mut ()).unwrap();
    if outcome.stop == Stop::Converged { Ok(outcome.iterations) } else { Err(outcome.stop) }
}

#[test]
fn sample_meshes_of_tetrahedra_are_solved_in_few_iterations() {
    let cpu = Cpu::new(2).unwrap();
    for file in tetrahedra("sample_meshes_of_tetrahedra_are_solved_in_few_iterations") {
        let sample = Sample::read(&file);
        let Ok(system) = sample.problem.assemble::<f64, _>(&cpu) else { continue };
        let found = iterations(&sample.name, &cpu, &system.matrix, &AmgConfig::default());
        println!("{}: {} rows, {found} iterations", sample.name, system.matrix.n_rows());
        // One of the meshes has cells so flat that little helps with them.
        assert!(
            found <= 60 || 2 * found <= of_jacobi(&cpu, &system.matrix),
            "{}: {found} iterations",
            sample.name
        );
    }
}

const PATCHES: Smoother = Smoother::Patch { inner: 3, format: PatchFormat::FullRowEll };

#[test]
fn patches_smooth_on_sample_meshes_of_tetrahedra() {
    let cpu = Cpu::new(2).unwrap();
    for file in tetrahedra("patches_smooth_on_sample_meshes_of_tetrahedra") {
        let sample = Sample::read(&file);
        let Ok(system) = sample.problem.assemble::<f64, _>(&cpu) else { continue };
        let config = AmgConfig { smoother: PATCHES, ..AmgConfig::default() };
        let found = iterations(&sample.name, &cpu, &system.matrix, &config);
        println!("{}: {} rows, {found} iterations", sample.name, system.matrix.n_rows());
        assert!(
            found <= 70 || 2 * found <= of_jacobi(&cpu, &system.matrix),
            "{}: {found} iterations",
            sample.name
        );
    }
}

#[test]
fn sample_matrices_that_are_definite_are_solved() {
    let cpu = Cpu::new(2).unwrap();
    for (file, block_size) in definite_matrices("sample_matrices_that_are_definite_are_solved") {
        let name = file.file_name().unwrap().to_string_lossy();
        let a = matrix_market::read::<f64>(&file).unwrap().matrix.copy_to(&cpu).unwrap();
        for smoother in [AmgConfig::default().smoother, PATCHES] {
            let config = AmgConfig { block_size, smoother, ..AmgConfig::default() };
            let found = iterations(&name, &cpu, &a, &config);
            println!("{name}, {smoother:?}: {} rows, {found} iterations", a.n_rows());
        }
    }
}

#[test]
fn options_of_case_files_give_the_same_solution() {
    let folder = tempfile::tempdir().unwrap();
    let energy = |name: &str, solver: &str| {
        let path = folder.path().join(format!("{name}.toml"));
        let text = format!(
            r#"
            [mesh]
            generate = {{ kind = "box", cells = [14, 13, 12] }}
            [equation]
            sigma = "1 + 100*x*y"
            source = "sin(3*x) + z"
            [[boundary]]
            where = "x < 1e-9"
            dirichlet = "y"
            [solver]
            tolerance = 1e-12
            device = "cpu"
            {solver}
            [output]
            functionals = [{{ name = "energy", kind = "energy" }}]
            "#
        );
        std::fs::write(&path, text).unwrap();
        let mut case = Case::load(&path).unwrap();
        case.file.output.directory = folder.path().join(name);
        let report = femtile_case::run(&case, &mut Silent).unwrap();
        (report.functionals["energy"], report.solve.iterations, report.citations)
    };
    let (expected, _, _) = energy("jacobi", "");
    let with = |name: &str, options: &str| {
        let (found, iterations, citations) =
            energy(name, &format!("preconditioner = \"amg\"\namg = {{ {options} }}"));
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{name}: {found} {expected}");
        assert!(iterations <= 30, "{name}: {iterations} iterations");
        citations
    };
    with("single", "precision = \"f32\"");
    with("double", "precision = \"f64\"");
    with("w", "cycle = \"w\"");
    assert!(with("k", "cycle = \"k\"").iter().any(|key| key == "notay2010"));
}
