//! Files that are begun before their fields are known.

use femtile_mesh::generate::{
    BoxConfig, HexahedralBallConfig, VentricleConfig, box_mesh, hexahedral_ball, ventricle,
};
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{
    BegunFile, Compression, Extent, LagrangeCells, WriteOptions, read, write_lagrange, write_with,
};
use femtile_mesh::{CellKind, Field, Mesh, MeshError};

const SUMMED: WriteOptions<'static> =
    WriteOptions { compression: Compression::None, facets: false, extent: Extent::Whole, sum: true };

fn field(mesh: &Mesh, n_components: usize) -> Field {
    let values = (0..n_components * mesh.n_nodes()).map(|i| (i as f64).sqrt()).collect();
    Field { n_components, values }
}

#[test]
fn a_file_that_was_begun_is_the_one_written_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let [begun, whole] = ["begun.vtu", "whole.vtu"].map(|name| folder.path().join(name));
    let mut cube = box_mesh(&BoxConfig { cells: [2, 3, 1], ..BoxConfig::default() }).unwrap();
    cube.cell_tags = (0..cube.n_cells() as i32).collect();
    // One field of the mesh is replaced, one stays.
    cube.node_fields = [("u".into(), field(&cube, 1)), ("w".into(), field(&cube, 1))].into();
    for mesh in [cube, ventricle(&VentricleConfig { h_mm: 2.0 }).unwrap()] {
        let (u, v) = (field(&mesh, 1), field(&mesh, 3));
        for facets in [false, true] {
            let options = WriteOptions { facets, ..SUMMED };
            let file =
                BegunFile::begin(&begun, &mesh, &[("u", 1), ("v", 3)], options, None).unwrap().unwrap();
            assert!(!begun.exists());
            let sum = file.finish(&[("u", &u), ("v", &v)]).unwrap();
            let expected = write_with(&whole, &mesh, &[("u", &u), ("v", &v)], &[], options).unwrap();
            assert!(std::fs::read(&begun).unwrap() == std::fs::read(&whole).unwrap());
            assert!(sum == expected && sum == Some(FileSum::of(&begun).unwrap()));
            std::fs::remove_file(&begun).unwrap();
        }
    }
}

#[test]
fn a_file_that_is_not_finished_leaves_the_former_one_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("solution.vtu");
    std::fs::write(&path, "former").unwrap();
    let mesh = box_mesh(&BoxConfig::default()).unwrap();
    let begin = || BegunFile::begin(&path, &mesh, &[("u", 1)], SUMMED, None).unwrap().unwrap();
    drop(begin());
    let stopped = BegunFile::begin(&path, &mesh, &[("u", 1)], SUMMED, Some(&|| true));
    assert!(matches!(stopped, Err(MeshError::Interrupted)));
    let (u, wide) = (field(&mesh, 1), field(&mesh, 2));
    let short = Field { n_components: 1, values: vec![0.0] };
    for fields in [&[][..], &[("v", &u)], &[("u", &wide)], &[("u", &short)], &[("u", &u), ("v", &u)]] {
        let error = begin().finish(fields).unwrap_err().to_string();
        assert!(error.contains("point_data"), "{error}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"former");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn cells_of_any_order_that_are_begun_make_the_file_that_is_written_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let [begun, whole] = ["begun.vtu", "whole.vtu"].map(|name| folder.path().join(name));
    let points: Vec<[f64; 3]> =
        (0..45).map(|i| [(i % 5) as f64, (i / 5 % 3) as f64, (i / 15) as f64]).collect();
    let point = |cell: usize, at: usize| (2 * cell + at % 3 + at / 3 % 3 * 5 + at / 9 * 15) as u32;
    let indices: Vec<u32> = (0..54).map(|i| point(i / 27, i % 27)).collect();
    let cells = LagrangeCells { kind: CellKind::Hexahedron, order: 2, points: &points, cells: &indices };
    let u = Field { n_components: 2, values: (0..90).map(f64::from).collect() };
    let file = BegunFile::begin_lagrange(&begun, &cells, &[], &[("u", 2)], SUMMED, None).unwrap().unwrap();
    assert!(!begun.exists());
    let sum = file.finish(&[("u", &u)]).unwrap();
    assert_eq!(sum, write_lagrange(&whole, &cells, &[("u", &u)], &[], SUMMED).unwrap());
    assert_eq!(std::fs::read(&begun).unwrap(), std::fs::read(&whole).unwrap());
    let tag = Field { n_components: 1, values: vec![3.0, 4.0] };
    let file = BegunFile::begin_lagrange(&begun, &cells, &[("tag", &tag)], &[("u", 2)], SUMMED, None);
    file.unwrap().unwrap().finish(&[("u", &u)]).unwrap();
    assert_eq!(read(&begun).unwrap().cell_fields["tag"].values, [3.0, 4.0]);
    let beyond = LagrangeCells { points: &points[..44], ..cells };
    assert!(BegunFile::begin_lagrange(&begun, &beyond, &[], &[], SUMMED, None).is_err());
}

#[test]
fn compressed_files_surfaces_and_curved_cells_are_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("solution.vtu");
    let mesh = box_mesh(&BoxConfig::default()).unwrap();
    let ball = hexahedral_ball(&HexahedralBallConfig::default()).unwrap();
    let packed = WriteOptions { compression: Compression::Lz4, ..SUMMED };
    let surface = WriteOptions { extent: Extent::Surface, ..SUMMED };
    for (mesh, options) in [(&mesh, packed), (&mesh, surface), (&ball, SUMMED)] {
        assert!(BegunFile::begin(&path, mesh, &[], options, None).unwrap().is_none());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
