//! Every sample mesh of quadrilaterals and hexahedra: matrix-free operators against dense quadrature, and orders of
//! convergence.

use crate::common;

use std::path::{Path, PathBuf};

use common::Problem;
use common::curved::solve_without_matrix;
use common::manufactured::{VARYING, manufactured, parse};
use femtile_device::{Buffer, Cpu};
use femtile_fem::functionals::{error_h1, error_l2};
use femtile_fem::tensor::CellMatrices;
use femtile_linalg::LinearOperator;
use femtile_matrix_free::{CellRule, MatrixFree, MatrixFreeConfig, Terms};
use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::{Mesh, io, refine};
use femtile_space::{Space, TensorSpace};

const SAMPLES: [&str; 13] = [
    "arcane_3x3x3_cube_hexa27.msh",
    "arcane_sphere_in_sphere.hexa.msh",
    "arcane_unit_cube.hexa-non-cartesian.msh",
    "fichera-q2.mesh",
    "fichera-q3.mesh",
    "fichera.mesh",
    "multidomain-hex.mesh",
    "sfepy_hsphere8.vtk",
    "spiral_3D_p9.mesh",
    "star-q2.mesh",
    "star-q3.mesh",
    "stretched3D.mesh",
    "toroid-hex.mesh",
];

/// Returns the folder of samples, if it exists.
fn samples() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("FEMTILE_SAMPLES").map_or_else(beside, PathBuf::from).join("meshes/hex");
    if !folder.is_dir() {
        eprintln!("skipped: no sample meshes in {}", folder.display());
    }
    folder.is_dir().then_some(folder)
}

fn sample(folder: &Path, name: &str) -> Mesh {
    let mut mesh = io::read(&folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    check(&mut mesh, &CheckConfig::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    mesh
}

fn product(a: &MatrixFree<f64>, x: &[f64]) -> Vec<f64> {
    let device = a.device().clone();
    let mut y = Buffer::from_vec(&device, vec![f64::NAN; x.len()]).unwrap();
    a.apply(&mut y, &Buffer::from_vec(&device, x.to_vec()).unwrap()).unwrap();
    y.to_host().unwrap()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Compares with cell matrices; checks constants, symmetry, sign.
fn operators_agree(name: &str, mesh: &Mesh, degree: usize) {
    let space = TensorSpace::new(mesh, degree).unwrap();
    let problem = manufactured(mesh.clone(), "x", &VARYING, "0", false);
    let (one, tensor) = (common::constant(1.0), &problem.sigma);
    // The varying tensor may be indefinite far from the unit cube.
    let sigma = if mesh.points.iter().flatten().all(|x| x.abs() < 1.3) { tensor } else { &one };
    let cpu = Cpu::new(2).unwrap();
    let rule = CellRule::default();
    let mut random = common::Random(degree as u64);
    let [x, z]: [Vec<f64>; 2] =
        std::array::from_fn(|_| (0..space.n_dofs()).map(|_| random.unit() - 0.5).collect());
    let terms = Terms { sigma: Some(sigma), lambda: Some(&one) };
    let a =
        MatrixFree::<f64>::new(&cpu, &space, terms, MatrixFreeConfig { rule, ..MatrixFreeConfig::default() })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    let found = product(&a, &x);
    let mut expected = vec![0.0; x.len()];
    CellMatrices::new(&space, sigma, &one, rule).unwrap().apply(&mut expected, &x).unwrap();
    let size = expected.iter().fold(0.0_f64, |size, y| size.max(y.abs()));
    for (i, (y, e)) in found.iter().zip(&expected).enumerate() {
        let error = (y - e).abs() / size;
        assert!(error <= 1e-12, "{name}, degree {degree}: entry {i} off by {error:e}");
    }
    let (zy, xz) = (dot(&z, &found), dot(&x, &product(&a, &z)));
    assert!(
        (zy - xz).abs() <= 1e-12 * (dot(&x, &found) * dot(&z, &product(&a, &z))).sqrt(),
        "{name}: not symmetric"
    );
    assert!(dot(&x, &found) > 0.0, "{name}: not positive");
    let stiffness = MatrixFree::<f64>::new(
        &cpu,
        &space,
        Terms { sigma: Some(sigma), lambda: None },
        MatrixFreeConfig { rule, ..MatrixFreeConfig::default() },
    )
    .unwrap();
    let slope = product(&stiffness, &vec![1.0; x.len()]);
    let largest = stiffness.diagonal().into_iter().fold(0.0, f64::max);
    assert!(slope.iter().all(|y| y.abs() <= 1e-11 * largest), "{name}: constants have a slope");
}

#[test]
fn operators_without_a_matrix_are_those_of_dense_quadrature() {
    let Some(folder) = samples() else { return };
    for name in SAMPLES {
        let mesh = sample(&folder, name);
        let degrees = if mesh.n_cells() > 500 { 1..=2 } else { 1..=4 };
        for degree in degrees {
            operators_agree(name, &mesh, degree);
        }
    }
}

/// Returns the errors in L2 and H1 of a solution with Dirichlet values everywhere.
fn errors(mesh: &Mesh, degree: usize) -> [f64; 2] {
    let u = if mesh.dimension() == 2 { "sin(x)*exp(y/2)" } else { "sin(x)*exp(y/2)*cos(z)" };
    let identity = common::manufactured::IDENTITY;
    let problem: Problem = manufactured(mesh.clone(), u, &identity, "1", false);
    let device = Cpu::new(2).unwrap();
    let space = TensorSpace::new(&problem.mesh, degree).unwrap();
    let found = solve_without_matrix(&problem, &space, &device);
    [
        error_l2(&Space::from(&space), &found, &parse(u)).unwrap(),
        error_h1(&Space::from(&space), &found, &parse(u)).unwrap(),
    ]
}

fn converges(folder: &Path, name: &str, refinements: usize, degrees: std::ops::RangeInclusive<usize>) {
    let mut coarse = sample(folder, name);
    for _ in 0..refinements {
        coarse = refine::uniform(&coarse).unwrap();
    }
    let fine = refine::uniform(&coarse).unwrap();
    for degree in degrees {
        let (before, after) = (errors(&coarse, degree), errors(&fine, degree));
        let orders = [0, 1].map(|norm| (before[norm] / after[norm]).log2());
        let reached = [(orders[0], degree + 1), (orders[1], degree)];
        assert!(
            reached.iter().all(|(order, expected)| *order > *expected as f64 - 0.2),
            "{name}, degree {degree}: orders {orders:?}, errors {before:?} and {after:?}"
        );
    }
}

#[test]
fn solutions_on_curved_samples_converge() {
    let Some(folder) = samples() else { return };
    converges(&folder, "fichera-q3.mesh", 2, 1..=3);
    converges(&folder, "toroid-hex.mesh", 2, 1..=3);
    converges(&folder, "star-q3.mesh", 2, 1..=4);
    converges(&folder, "multidomain-hex.mesh", 1, 1..=2);
}

#[test]
#[ignore = "a minute: 47,440 cells"]
fn solutions_on_a_sphere_in_a_sphere_converge() {
    let Some(folder) = samples() else { return };
    converges(&folder, "arcane_sphere_in_sphere.hexa.msh", 0, 1..=2);
}

#[test]
#[ignore = "a minute"]
fn high_degrees_on_curved_samples_converge() {
    let Some(folder) = samples() else { return };
    converges(&folder, "fichera-q3.mesh", 2, 4..=6);
    converges(&folder, "toroid-hex.mesh", 1, 4..=6);
}
