//! Files of surfaces: facets on the boundary with the values of their points and cells.

use std::collections::BTreeMap;

use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{
    BoxConfig, BoxSplit, DeformConfig, HexahedralBallConfig, SquareConfig, SquareSplit, box_mesh, deform,
    hexahedral_ball, square,
};
use femtile_mesh::io::vtu::{Compression, Extent, LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_mesh::{CellKind, Field, Mesh};

const SURFACE: WriteOptions<'static> =
    WriteOptions { compression: Compression::None, facets: true, extent: Extent::Surface, sum: false };

/// A file as VTK's reader would see it: arrays by name, as numbers.
fn arrays(bytes: &[u8]) -> BTreeMap<String, Vec<f64>> {
    let begin = bytes.windows(2).position(|pair| pair == b"\n_").unwrap() + 2;
    let head = String::from_utf8_lossy(&bytes[..begin]).into_owned();
    let attribute = |line: &str, name: &str| {
        let begin = line.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        line[begin..].split('"').next().unwrap().to_owned()
    };
    let lines = head.lines().filter(|line| line.starts_with("<DataArray"));
    let array = |line: &str| {
        let at = begin + attribute(line, "offset").parse::<usize>().unwrap();
        let (n, bytes) = bytes[at..].split_at(8);
        let bytes = &bytes[..u64::from_le_bytes(n.try_into().unwrap()) as usize];
        let values = match attribute(line, "type").as_str() {
            "Float64" => bytes.chunks(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect(),
            "Int32" => {
                bytes.chunks(4).map(|word| f64::from(i32::from_le_bytes(word.try_into().unwrap()))).collect()
            }
            _ => bytes.iter().map(|&byte| f64::from(byte)).collect(),
        };
        (attribute(line, "Name"), values)
    };
    lines.map(array).collect()
}

fn written(write: impl FnOnce(&std::path::Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("surface.vtu");
    write(&path);
    std::fs::read(path).unwrap()
}

/// A value that tells points, and one that tells cells apart.
fn marked(mesh: &Mesh) -> (Field, Field) {
    let at_points = mesh.points.iter().flat_map(|[x, y, z]| [x + 10.0 * y, 100.0 * z]).collect();
    let of_cells = (0..mesh.n_cells()).map(|cell| cell as f64).collect();
    (Field { n_components: 2, values: at_points }, Field { n_components: 1, values: of_cells })
}

#[test]
fn a_surface_has_the_boundary_facets_of_straight_cells_with_their_values() {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [2, 3, 5], split, ..BoxConfig::default() }).unwrap());
    let plane = square(&SquareConfig { cells: [3, 5], ..SquareConfig::default() }).unwrap();
    for mut mesh in boxes.into_iter().chain([plane]) {
        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|cell| cell % 3 + 1).collect();
        let (u, v) = marked(&mesh);
        let bytes = written(|path| {
            write_with(path, &mesh, &[("u", &u)], &[("v", &v)], SURFACE).unwrap();
        });
        let found = arrays(&bytes);
        let boundary = boundary_facets(&mesh);
        let facet = mesh.kind.facet_kind().unwrap();
        assert_eq!(found["types"], vec![f64::from(facet.vtk_type()); boundary.len()]);
        let points = found["Points"].as_chunks::<3>().0;
        let places: Vec<usize> = found["connectivity"].iter().map(|&place| place as usize).collect();
        let nodes: Vec<[f64; 3]> = boundary.nodes.iter().map(|&node| mesh.points[node as usize]).collect();
        assert_eq!(places.iter().map(|&place| points[place]).collect::<Vec<_>>(), nodes);
        let mut used = boundary.nodes.clone();
        used.sort_unstable();
        used.dedup();
        assert_eq!(points.len(), used.len());
        let expected: Vec<f64> = points.iter().flat_map(|[x, y, z]| [x + 10.0 * y, 100.0 * z]).collect();
        assert_eq!(found["u"], expected);
        assert_eq!(found["v"], boundary.cells.iter().map(|&cell| f64::from(cell)).collect::<Vec<_>>());
        let tags = boundary.cells.iter().map(|&cell| f64::from(cell % 3 + 1));
        assert_eq!(found["tag"], tags.collect::<Vec<_>>());
    }
}

#[test]
fn the_surface_of_curved_cells_lies_on_the_sphere() {
    let ball =
        hexahedral_ball(&HexahedralBallConfig { order: 3, ..HexahedralBallConfig::default() }).unwrap();
    let (u, _) = marked(&ball);
    let n = boundary_facets(&ball).len();
    let curved = ball.curved.as_ref().unwrap();
    let cells =
        LagrangeCells { kind: CellKind::Hexahedron, order: 3, points: &curved.points, cells: &curved.cells };
    let of_mesh = written(|path| {
        write_with(path, &ball, &[("u", &u)], &[], SURFACE).unwrap();
    });
    let of_cells = written(|path| {
        write_lagrange(path, &cells, &[], &[], SURFACE).unwrap();
    });
    let found = [of_mesh, of_cells].map(|bytes| arrays(&bytes));
    for found in &found {
        assert_eq!((found["types"].as_slice(), found["connectivity"].len()), (&*vec![70.0; n], 16 * n));
        for point in found["Points"].as_chunks::<3>().0 {
            let radius = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((radius - 1.0).abs() < 1e-14, "{point:?}");
        }
    }
    for name in ["Points", "connectivity", "offsets"] {
        assert_eq!(found[0][name], found[1][name], "{name}");
    }
    assert!(found[0].contains_key("u"));
}

#[test]
fn curves_around_a_plane_list_their_ends_and_then_the_points_between_them() {
    let split = SquareSplit::Quadrilateral;
    let mut plane = square(&SquareConfig { cells: [3, 2], split, ..SquareConfig::default() }).unwrap();
    deform(&mut plane, &DeformConfig { amplitude: 0.02, order: 5 }).unwrap();
    let bytes = written(|path| {
        write_with(path, &plane, &[], &[], SURFACE).unwrap();
    });
    let found = arrays(&bytes);
    assert_eq!(found["types"], [68.0; 10]);
    let points = found["Points"].as_chunks::<3>().0;
    for curve in found["connectivity"].chunks(6) {
        let along = [0, 2, 3, 4, 5, 1].map(|place| points[curve[place] as usize]);
        for pair in along.windows(2) {
            let length = (pair[0][0] - pair[1][0]).hypot(pair[0][1] - pair[1][1]);
            // A side of a cell is a third or a half long.
            assert!((0.04..0.14).contains(&length), "{length}");
        }
    }
}

#[test]
fn a_surface_of_no_cells_is_refused() {
    let none = LagrangeCells { kind: CellKind::Hexahedron, order: 2, points: &[], cells: &[] };
    let folder = tempfile::tempdir().unwrap();
    let error = write_lagrange(&folder.path().join("none.vtu"), &none, &[], &[], SURFACE).unwrap_err();
    assert!(error.to_string().contains("no cells"), "{error}");
}
