//! Aggregates that a device makes, by the iterations of solves with them.

use femtile::amg::{AmgConfig, AmgSolver};
use femtile::device::{Buffer, Reference};
use femtile::linalg::krylov::Stop;
use femtile::linalg::sparse::csr::Csr;
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BallConfig, BoxConfig, BoxSplit, VentricleConfig, ball, box_mesh, ventricle};

use super::Scope;
use super::amg::AmgDevice;
use super::forms::{Problem, formula};

/// A solve with groups made on the device takes one iteration more at most than one with those of the host: on boxes,
/// flattened or not, with jumps, and on meshes that follow curves.
pub fn groups_made_on_the_device_are_as_good_as_those_of_the_host<D: AmgDevice>(device: &D, scope: &Scope) {
    for (name, a) in problems(scope.side - 5) {
        let expected = iterations(&Reference, &a, &name);
        let found = iterations(device, &a.copy_to(device).unwrap(), &name);
        println!("{name}, {} rows: {found} iterations, {expected} with groups of the host", a.n_rows());
        assert!(found <= expected + 1, "{name}: {found} iterations where {expected} are expected");
    }
}

/// Problems with about `n` cells in each direction.
fn problems(n: usize) -> Vec<(String, Csr<f64, Reference>)> {
    let cubes = BoxConfig { cells: [n; 3], ..BoxConfig::default() };
    let kuhn = || box_mesh(&cubes).unwrap();
    let five = box_mesh(&BoxConfig { split: BoxSplit::Five, ..cubes.clone() }).unwrap();
    let flat = box_mesh(&BoxConfig { upper: [1.0, 1.0, 0.3], ..cubes.clone() }).unwrap();
    let round = ball(&BallConfig { radius: 1.0, h: 2.0 / n as f64 }).unwrap();
    let wall = ventricle(&VentricleConfig { h_mm: 19.2 / n as f64 }).unwrap();
    let in_balls = "if(sin(12 * x) * sin(12 * y) * sin(12 * z) > 0.3, 10, 1)";
    let cases: [(&str, Mesh, &str); 6] = [
        ("box", kuhn(), "1"),
        ("five tetrahedra a cube", five, "1"),
        ("flat box", flat, "1"),
        ("stiff balls", kuhn(), in_balls),
        ("ball", round, "1"),
        ("ventricle", wall, "1"),
    ];
    let matrix = |(name, mesh, sigma): (&str, Mesh, &str)| {
        let problem = Problem { sigma: formula(sigma), lambda: 0.1.into(), ..Problem::new(mesh) };
        (name.to_owned(), problem.assemble::<f64, _>(&Reference).unwrap().matrix)
    };
    cases.into_iter().map(matrix).collect()
}

fn iterations<D: AmgDevice>(device: &D, a: &Csr<f64, D>, name: &str) -> usize {
    let n = a.n_rows();
    let solver = AmgSolver::<f32, D>::from_matrix(a, None, &AmgConfig::default()).unwrap();
    let shapes = solver.hierarchy().shapes();
    assert!(shapes[0].n_rows > 1_500 && shapes.len() > 1, "{name}: the host makes all groups");
    let b = Buffer::from_vec(device, vec![1.0; n]).unwrap();
    let mut x = Buffer::zeros(device, n).unwrap();
    let outcome = solver.solve(&mut x, a, &b).unwrap();
    assert_eq!(outcome.stop, Stop::Converged, "{name}");
    outcome.iterations
}
