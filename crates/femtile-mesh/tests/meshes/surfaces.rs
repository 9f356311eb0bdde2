//! Surfaces in space: the generated sphere, the check, files.

use std::f64::consts::PI;

use femtile_mesh::check::{CheckConfig, CheckError, boundary_facets, check};
use femtile_mesh::generate::{SphereConfig, SquareSplit, sphere};
use femtile_mesh::partition::{MeshPart, Partition};
use femtile_mesh::{CellKind, Mesh, io, refine};

fn of(cells: usize, split: SquareSplit, order: usize) -> Mesh {
    sphere(&SphereConfig { radius: 2.0, cells, split, order }).unwrap()
}

#[test]
fn a_sphere_is_closed_and_its_area_has_the_order_of_its_cells() {
    for (split, order, expected) in [
        (SquareSplit::Triangles, 1, 2.0),
        (SquareSplit::Quadrilateral, 1, 2.0),
        (SquareSplit::Quadrilateral, 2, 3.0),
    ] {
        let error = |cells: usize| {
            let mut mesh = of(cells, split, order);
            assert!(mesh.is_surface && mesh.space_dimension() == 3);
            let report = check(&mut mesh, &CheckConfig::default()).unwrap();
            assert!(report.boundary.is_empty() && report.warnings.is_empty(), "{:?}", report.warnings);
            assert_eq!((report.n_components, report.n_flipped), (1, 0));
            assert!(report.worst_quality > 0.4, "{}", report.worst_quality);
            (report.volume / (16.0 * PI) - 1.0).abs()
        };
        let order = (error(4) / error(8)).log2();
        assert!(order > expected - 0.1, "{split:?}: {order}");
    }
    let split = refine::uniform(&of(2, SquareSplit::Quadrilateral, 3)).unwrap();
    assert!(split.is_surface && split.n_cells() == 96);
}

#[test]
fn sheets_may_have_either_side_up_and_meet_at_an_edge() {
    let points = vec![
        [0.0; 3],
        [0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0],
        [1.0, 0.0, 1.0],
        [0.0, 1.0, 0.0],
        [0.0, 1.0, 1.0],
        [-1.0, 0.0, 0.0],
        [-1.0, 0.0, 1.0],
    ];
    let cells = vec![0, 1, 3, 2, 0, 4, 5, 1, 1, 0, 6, 7];
    let mut mesh = Mesh::new(points, CellKind::Quadrilateral, cells).unwrap();
    let report = check(&mut mesh, &CheckConfig::default()).unwrap();
    // The edge of three cells is none of the boundary.
    assert_eq!((report.boundary.len(), report.n_flipped, report.n_pinched), (9, 0, 0));
    assert!((report.volume - 3.0).abs() < 1e-14 && report.warnings.is_empty(), "{:?}", report.warnings);
}

#[test]
fn degenerate_folded_and_double_cells_of_a_surface_are_refused() {
    let refused = |points: Vec<[f64; 3]>, kind, cells: Vec<u32>| {
        let mut mesh = Mesh::new(points, kind, cells).unwrap();
        check(&mut mesh, &CheckConfig::default()).unwrap_err()
    };
    let line = vec![[0.0; 3], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0, 1.0, 0.5]];
    let error = refused(line, CellKind::Triangle, vec![0, 1, 3, 0, 1, 2]);
    assert!(matches!(error, CheckError::Degenerate { cell: 1, .. }), "{error}");
    // A corner far beyond the opposite diagonal.
    let folded = [[0.0; 3], [1.0, 0.0, 0.1], [0.1, 0.1, 0.02], [0.0, 1.0, 0.1]];
    let moved = [folded[0], folded[1], [-0.5, -0.5, -0.1], folded[3]].to_vec();
    let error = refused(moved, CellKind::Quadrilateral, vec![0, 1, 2, 3]);
    assert!(matches!(error, CheckError::Folded { cell: 0, .. }), "{error}");
    let twice = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]];
    let error = refused(twice, CellKind::Triangle, vec![0, 1, 2, 0, 2, 1]);
    assert!(matches!(error, CheckError::DuplicateCells { first: 0, second: 1, .. }), "{error}");
}

#[test]
fn files_keep_the_third_coordinate() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.msh", "a.mesh", "a.vtu", "a.pts"] {
        let mesh = of(2, SquareSplit::Triangles, 1);
        let path = folder.path().join(name);
        io::write(&path, &mesh).unwrap();
        let read = io::read(&path).unwrap();
        assert!(read.is_surface && read.n_cells() == mesh.n_cells(), "{name}");
        assert!(read.points == mesh.points, "{name}");
    }
    let error = io::write(&folder.path().join("a.ele"), &of(2, SquareSplit::Triangles, 1)).unwrap_err();
    assert!(error.to_string().contains("in space"), "{error}");
    let curved = of(2, SquareSplit::Quadrilateral, 3);
    io::write(&folder.path().join("b.vtu"), &curved).unwrap();
    let read = io::read(&folder.path().join("b.vtu")).unwrap();
    assert!(read.is_surface && read.curved.is_some_and(|curved| curved.order == 3));
}

#[test]
fn parts_of_a_surface_are_surfaces() {
    // Each sheet of a corner of a cube is a part; one lies in the plane z = 0.
    let bits = |node: usize| [0, 1, 2].map(|axis| f64::from(u8::from(node >> axis & 1 == 1)));
    let cells = vec![0, 1, 3, 2, 0, 2, 6, 4, 0, 4, 5, 1];
    let mesh = Mesh::new((0..7).map(bits).collect(), CellKind::Quadrilateral, cells).unwrap();
    let partition = Partition::new(vec![0, 1, 2], 3).unwrap();
    let (boundary, owners) = (boundary_facets(&mesh), partition.owners(&mesh));
    for rank in 0..3 {
        assert!(MeshPart::new(&mesh, &boundary, &owners, rank).unwrap().mesh.is_surface);
    }
}
