//! Aggregates that a device makes, by the iterations of solves with them.

use femtile::amg::{AmgConfig, AmgSolver, Grouping, Nodes};
use femtile::device::{Buffer, Reference};
use femtile::linalg::krylov::Stop;
use femtile::linalg::sparse::csr::Csr;
use femtile::mesh::Mesh;
use femtile::mesh::generate::{BallConfig, BoxConfig, BoxSplit, VentricleConfig, ball, box_mesh, ventricle};

use super::Scope;
use super::amg::AmgDevice;
use super::forms::{Problem, formula};
use super::problems::CsrArrays;

const HEXAHEDRA: &str = "flat hexahedra";

/// A solve with groups made on the device takes one iteration more at most than one with those of the host: on boxes,
/// flattened or not, with jumps, and on meshes that follow curves; two more where groups are short pieces of lines.
pub fn groups_made_on_the_device_are_as_good_as_those_of_the_host<D: AmgDevice>(device: &D, scope: &Scope) {
    for (name, a) in problems(scope.side - 5) {
        let expected = iterations(&Reference, &a, &name);
        let found = iterations(device, &a.copy_to(device).unwrap(), &name);
        println!("{name}, {} rows: {found} iterations, {expected} with groups of the host", a.n_rows());
        let more = if name == HEXAHEDRA { 2 } else { 1 };
        assert!(found <= expected + more, "{name}: {found} iterations where {expected} are expected");
    }
}

/// On flat hexahedra, whose positive entries hide it, groups that a device makes lie along the axis of strong coupling, on a
/// level of the next one too; the host makes those of a matrix with slivers.
pub fn groups_follow_hidden_directions<D: AmgDevice>(device: &D, scope: &Scope) {
    let n = scope.side - 5;
    let config = AmgConfig::default();
    let coarsen = |a: &Csr<f64, D>, nodes: Option<&Nodes<D>>| {
        device.amg_coarsen(a, nodes, [0.08, 0.008], &config, Grouping::Connections).unwrap()
    };
    let a = hexahedra(n, 0.1).copy_to(device).unwrap();
    let Some(made) = coarsen(&a, None) else { return };
    let columns_of = |groups: &[u32]| {
        let mut columns = vec![std::collections::BTreeSet::new(); made.parts.n()];
        for (node, &group) in groups.iter().enumerate().filter(|(_, group)| **group != u32::MAX) {
            columns[group as usize].insert(node % (n * n));
        }
        columns
    };
    let columns = columns_of(&made.parts.of_node().to_host().unwrap());
    assert!(columns.iter().all(|columns| columns.len() == 1), "{columns:?}");
    assert!(made.parts.n() < n * n * n / 2, "{} groups", made.parts.n());
    let marks = made.nodes.from_doubtful.as_ref().expect("all rows are doubtful").to_host().unwrap();
    assert_eq!(marks, vec![1; made.parts.n()]);
    let next = coarsen(&made.coarse, Some(&made.nodes)).expect("the device makes the next level");
    assert!(next.parts.n() < made.parts.n(), "{} groups of {}", next.parts.n(), made.parts.n());
    assert!(coarsen(&with_sliver(&a, n), None).is_none(), "modes of slivers are left to the host");
}

/// A matrix on n³ points with $K s s^\mathsf{T}$, s = (1, −1, −1, 1), on four of them.
fn with_sliver<D: AmgDevice>(a: &Csr<f64, D>, n: usize) -> Csr<f64, D> {
    let host = a.copy_to(&Reference).unwrap();
    let signs = [(0, 1.0), (1, -1.0), (n, -1.0), (n + 1, 1.0)];
    let sign = |row: usize| signs.iter().find(|(at, _)| *at == row).map_or(0.0, |(_, sign)| *sign);
    let row = |row: usize| -> Vec<(usize, f64)> {
        host.row(row).map(|(column, value)| (column, value + 1e6 * sign(row) * sign(column))).collect()
    };
    CsrArrays::from_rows(host.n_rows(), (0..host.n_rows()).map(row).collect()).on(a.values().device())
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
    cases.into_iter().map(matrix).chain([(HEXAHEDRA.to_owned(), hexahedra(n, 0.1))]).collect()
}

/// $K \otimes M \otimes M + M \otimes K \otimes M + h^{-2} M \otimes M \otimes K$ and a small share of the diagonal, on `n`
/// points an axis: trilinear hexahedra whose third side is h times the others. Positive entries hide that the third axis is
/// that of strong coupling.
fn hexahedra(n: usize, h: f64) -> Csr<f64, Reference> {
    let is_end = |i: usize| i == 0 || i + 1 == n;
    let stiffness = |i: usize, j: usize| if i == j { if is_end(i) { 1.0 } else { 2.0 } } else { -1.0 };
    let mass = |i: usize, j: usize| if i == j { if is_end(i) { 2.0 } else { 4.0 } } else { 1.0 };
    let near = |i: usize| i.saturating_sub(1)..n.min(i + 2);
    let entry = |at: [usize; 3], to: [usize; 3]| {
        let along = |axis: usize| -> f64 {
            (0..3).map(|d| if d == axis { stiffness(at[d], to[d]) } else { mass(at[d], to[d]) }).product()
        };
        let own = if at == to { 1e-2 } else { 0.0 };
        along(0) + along(1) + along(2) / (h * h) + own
    };
    let row = |row: usize| -> Vec<(usize, f64)> {
        let at = [row % n, row / n % n, row / (n * n)];
        let others =
            near(at[2]).flat_map(|z| near(at[1]).flat_map(move |y| near(at[0]).map(move |x| [x, y, z])));
        others.map(|to| ((to[2] * n + to[1]) * n + to[0], entry(at, to))).collect()
    };
    CsrArrays::from_rows(n * n * n, (0..n * n * n).map(row).collect()).on(&Reference)
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
