//! Curved meshes and solutions of higher order in VTU files, written and read back.

use femtile_mesh::generate::{
    DeformConfig, HexahedralBallConfig, ShellConfig, SquareConfig, SquareSplit, deform, hexahedral_ball,
    shell, square,
};
use femtile_mesh::io::vtu::{
    Compression, LagrangeCells, WriteOptions, lattice, read, write_lagrange, write_with,
};
use femtile_mesh::{CellKind, Curved, Field, Mesh, io};

fn meshes() -> Vec<Mesh> {
    let split = SquareSplit::Quadrilateral;
    let mut plane = square(&SquareConfig { cells: [3, 2], split, ..SquareConfig::default() }).unwrap();
    deform(&mut plane, &DeformConfig { amplitude: 0.1, order: 5 }).unwrap();
    let ball = |order| {
        let config = HexahedralBallConfig { cells: 1, layers: 1, order, ..HexahedralBallConfig::default() };
        hexahedral_ball(&config).unwrap()
    };
    let shell = shell(&ShellConfig { cells: 2, layers: 1, order: 3, ..ShellConfig::default() }).unwrap();
    vec![plane, ball(2), ball(4), ball(9), shell]
}

/// Points of each cell by their coordinates, whatever their numbers.
fn shapes(curved: &Curved) -> Vec<[f64; 3]> {
    curved.cells.iter().map(|&point| curved.points[point as usize]).collect()
}

#[test]
fn curved_meshes_come_back_with_their_shapes_facets_tags_and_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("curved.vtu");
    for mut mesh in meshes() {
        mesh.cell_tags = (0..mesh.n_cells() as i32).collect();
        let values: Vec<f64> = mesh.points.iter().flat_map(|p| [p[0], p[1] - 2.0 * p[2]]).collect();
        let field = Field { n_components: 2, values };
        for compression in [Compression::None, Compression::Lz4] {
            let options = WriteOptions { compression, facets: true, ..WriteOptions::default() };
            write_with(&path, &mesh, &[("u", &field)], &[], options).unwrap();
            let found = read(&path).unwrap();
            let (before, after) = (mesh.curved.as_ref().unwrap(), found.curved.as_ref().unwrap());
            assert_eq!((after.order, after.points.len()), (before.order, before.points.len()));
            assert_eq!(shapes(before), shapes(after));
            assert_eq!((found.n_nodes(), &found.cell_tags), (mesh.n_nodes(), &mesh.cell_tags));
            assert_eq!(found.facets.tags, mesh.facets.tags);
            for (a, b) in mesh.facets.nodes.iter().zip(&found.facets.nodes) {
                let (a, b) = (mesh.points[*a as usize], found.points[*b as usize]);
                assert!((0..3).all(|d| (a[d] - b[d]).abs() < 1e-14));
            }
            for (p, u) in found.points.iter().zip(found.node_fields["u"].values.chunks(2)) {
                assert!((u[0] - p[0]).abs() < 1e-14 && (u[1] - p[1] + 2.0 * p[2]).abs() < 1e-14);
            }
        }
        let error = io::write(&folder.path().join("curved.msh"), &mesh).unwrap_err().to_string();
        assert!(error.contains("curved cells"), "{error}");
    }
}

#[test]
fn solutions_of_higher_order_are_written_as_lagrange_cells() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("solution.vtu");
    for (order, number) in [(1, 12), (2, 72), (4, 72)] {
        let row = order + 1;
        let at = |i: usize| [i % row, i / row % row, i / (row * row)].map(|i| i as f64 / order as f64);
        let points: Vec<_> = (0..row.pow(3)).map(at).collect();
        let numbers: Vec<u32> = (0..points.len() as u32).collect();
        let cells = LagrangeCells { kind: CellKind::Hexahedron, order, points: &points, cells: &numbers };
        let u = Field { n_components: 1, values: points.iter().map(|p| p[0] * p[1] + p[2]).collect() };
        write_lagrange(&path, &cells, &[("u", &u)], &[], WriteOptions::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.contains(&number));
        let found = read(&path).unwrap();
        assert_eq!(found.curved.as_ref().map_or(1, |curved| curved.order), order);
        for (p, u) in found.points.iter().zip(&found.node_fields["u"].values) {
            assert_eq!(*u, p[0] * p[1] + p[2]);
        }
        let short = Field { n_components: 1, values: vec![0.0] };
        let wrong = write_lagrange(&path, &cells, &[("u", &short)], &[], WriteOptions::default());
        assert!(wrong.unwrap_err().to_string().contains("`u` has 1 values"));
        let wrong = LagrangeCells { cells: &[9999; 8], order: 1, ..cells };
        let wrong = write_lagrange(&path, &wrong, &[], &[], WriteOptions::default());
        assert!(wrong.unwrap_err().to_string().contains("point 9999"));
    }
}

#[test]
fn simplices_of_higher_order_come_back_straight_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("simplex.vtu");
    for (kind, number) in [(CellKind::Triangle, 69), (CellKind::Tetrahedron, 71)] {
        for (order, shift) in [(2, 0.0), (3, 0.0), (5, 0.0), (3, 0.1)] {
            let mut lattice = lattice(kind, order).unwrap();
            lattice.sort_by_key(|&[i, j, k]| [k, j, i]);
            let mut points: Vec<_> = lattice.iter().map(|at| at.map(|i| i as f64 / order as f64)).collect();
            points[1][1] += shift;
            let numbers: Vec<u32> = (0..points.len() as u32).collect();
            let cells = LagrangeCells { kind, order, points: &points, cells: &numbers };
            let u =
                Field { n_components: 1, values: points.iter().map(|p| p[0] - p[1] + 3.0 * p[2]).collect() };
            write_lagrange(&path, &cells, &[("u", &u)], &[], WriteOptions::default()).unwrap();
            assert!(std::fs::read(&path).unwrap().contains(&number));
            let found = read(&path).unwrap();
            assert_eq!((found.n_cells(), found.n_nodes()), (1, kind.n_nodes()));
            for (p, u) in found.points.iter().zip(&found.node_fields["u"].values) {
                assert_eq!(*u, p[0] - p[1] + 3.0 * p[2]);
            }
            let note = &found.notes[0];
            assert!(note.starts_with(&format!("a {kind} of order {order} is read as straight")), "{note}");
            assert_eq!(note.contains("curved shape is lost"), shift > 0.0, "{note}");
        }
    }
}
