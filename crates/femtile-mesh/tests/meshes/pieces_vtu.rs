//! Files of the pieces of a mesh, and the file that names them.

use std::path::Path;

use femtile_mesh::generate::{
    BoxConfig, BoxSplit, HexahedralBallConfig, SquareConfig, box_mesh, hexahedral_ball, square,
};
use femtile_mesh::io::vtu::{
    Compression, Extent, LagrangeCells, Pieces, WriteOptions, read, write_lagrange, write_with,
};
use femtile_mesh::partition::Partition;
use femtile_mesh::{Field, Mesh};

/// A rank of each cell without order; the second of four has none.
fn scattered(n_cells: usize) -> Partition {
    let rank = |cell: usize| [0, 2, 3][cell.wrapping_mul(2_654_435_761) % 4096 % 3];
    Partition::new((0..n_cells).map(rank).collect(), 4).unwrap()
}

/// Values that tell points apart, and the number of each cell.
fn marked(mesh: &Mesh) -> (Field, Field) {
    let at_points = mesh.points.iter().map(|[x, y, z]| x + 10.0 * y + 100.0 * z).collect();
    let of_cells = (0..mesh.n_cells()).map(|cell| cell as f64).collect();
    (Field { n_components: 1, values: at_points }, Field { n_components: 1, values: of_cells })
}

fn options(pieces: Pieces<'_>, compression: Compression) -> WriteOptions<'_> {
    WriteOptions { compression, facets: true, extent: Extent::Pieces(pieces), sum: true }
}

/// The names in the folder of a file, ascending.
fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn pieces_have_each_cell_once_with_its_points_and_values() {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [3, 4, 5], split, ..BoxConfig::default() }).unwrap());
    let plane = square(&SquareConfig { cells: [6, 7], ..SquareConfig::default() }).unwrap();
    for mut mesh in boxes.into_iter().chain([plane]) {
        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|cell| cell % 3 + 1).collect();
        let (u, v) = marked(&mesh);
        let partition = scattered(mesh.n_cells());
        for compression in [Compression::None, Compression::Lz4] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("u.pvtu");
            let of = |only| options(Pieces { partition: &partition, only }, compression);
            let write = |only| write_with(&path, &mesh, &[("u", &u)], &[("v", &v)], of(only)).unwrap();
            // A rank after the first writes its piece alone.
            assert_eq!((write(Some(3)), names(&path)), (None, vec!["u_0003.vtu".into()]));
            assert_eq!((write(Some(1)), names(&path).len()), (None, 1));
            assert!(write(Some(0)).is_some());
            assert_eq!(names(&path), ["u.pvtu", "u_0000.vtu", "u_0003.vtu"]);
            assert!(write(None).is_some());
            assert_eq!(names(&path), ["u.pvtu", "u_0000.vtu", "u_0002.vtu", "u_0003.vtu"]);
            let index = std::fs::read_to_string(&path).unwrap();
            for rank in [0, 2, 3] {
                assert!(index.contains(&format!("<Piece Source=\"u_000{rank}.vtu\"/>")), "{index}");
            }
            assert_eq!(index.matches("<Piece ").count(), 3);
            let mut found = vec![0; mesh.n_cells()];
            for rank in [0, 2, 3] {
                let piece = read(&folder.path().join(format!("u_000{rank}.vtu"))).unwrap();
                let numbers = &piece.cell_fields["v"].values;
                assert_eq!((numbers.len(), piece.cell_tags.len()), (piece.n_cells(), piece.n_cells()));
                for (own, &number) in numbers.iter().enumerate() {
                    let cell = number as usize;
                    found[cell] += 1;
                    assert_eq!(partition.ranks()[cell], rank);
                    assert_eq!(piece.cell_tags[own], mesh.cell_tags[cell]);
                    for (&node, &of_mesh) in piece.cell(own).iter().zip(mesh.cell(cell)) {
                        assert_eq!(piece.points[node as usize], mesh.points[of_mesh as usize]);
                        let value = piece.node_fields["u"].values[node as usize];
                        assert_eq!(value, u.values[of_mesh as usize]);
                    }
                }
                // No points but those of its cells.
                let mut used = piece.cells.clone();
                used.sort_unstable();
                used.dedup();
                assert_eq!(used.len(), piece.n_nodes());
            }
            assert_eq!(found, vec![1; mesh.n_cells()]);
        }
    }
}

#[test]
fn pieces_of_curved_cells_are_curved() {
    let ball =
        hexahedral_ball(&HexahedralBallConfig { order: 3, ..HexahedralBallConfig::default() }).unwrap();
    let partition = scattered(ball.n_cells());
    let folder = tempfile::tempdir().unwrap();
    let of = options(Pieces { partition: &partition, only: None }, Compression::None);
    let curved = ball.curved.as_ref().unwrap();
    let cells = LagrangeCells { kind: ball.kind, order: 3, points: &curved.points, cells: &curved.cells };
    write_with(&folder.path().join("mesh.pvtu"), &ball, &[], &[], of).unwrap();
    write_lagrange(&folder.path().join("cells.pvtu"), &cells, &[], &[], of).unwrap();
    let pieces = ["mesh", "cells"].map(|name| {
        [0, 2, 3].map(|rank| read(&folder.path().join(format!("{name}_000{rank}.vtu"))).unwrap())
    });
    assert_eq!(pieces[0].iter().map(Mesh::n_cells).sum::<usize>(), ball.n_cells());
    for (one, other) in pieces[0].iter().zip(&pieces[1]) {
        let [one, other] = [one, other].map(|piece| piece.curved.as_ref().unwrap());
        assert_eq!((one.order, &one.points, &one.cells), (3, &other.points, &other.cells));
    }
}

#[test]
fn a_partition_of_another_mesh_is_refused() {
    let mesh = square(&SquareConfig { cells: [2, 2], ..SquareConfig::default() }).unwrap();
    let partition = Partition::one(mesh.n_cells() + 1);
    let folder = tempfile::tempdir().unwrap();
    let of = options(Pieces { partition: &partition, only: None }, Compression::None);
    let error = write_with(&folder.path().join("u.pvtu"), &mesh, &[], &[], of).unwrap_err();
    assert!(error.to_string().contains("ranks of 9 cells, but there are 8"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
