//! VTU files: those that VTK itself wrote in every encoding, and our own back again.

use std::collections::BTreeMap;
use std::path::Path;

use femtile_mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{Compression, WriteOptions, parse, read, write_with};
use femtile_mesh::{CellKind, Field, Mesh, MeshError};
use proptest::prelude::*;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn every_encoding_of_vtk_gives_the_same_mesh() {
    let mut n_files = 0;
    for entry in std::fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "vtu") {
            continue;
        }
        n_files += 1;
        let mesh = read(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(mesh.kind, CellKind::Tetrahedron);
        assert_eq!(mesh.points[4], [1.0; 3]);
        assert_eq!(mesh.cells, [0, 1, 2, 3, 1, 2, 3, 4]);
        assert_eq!(mesh.cell_tags, [7, -8]);
        assert_eq!((mesh.facets.nodes.as_slice(), mesh.facets.tags.as_slice()), (&[0, 2, 1][..], &[9][..]));
        assert_eq!(mesh.cell_fields["half"], Field { n_components: 2, values: vec![0.5, 0.0, 1.5, -1.0] });
        let u: Vec<f64> = (0..5).map(|i| 0.1 * f64::from(i)).collect();
        assert_eq!(mesh.node_fields["u"].values, u, "{}", path.display());
        assert!(!mesh.node_fields.contains_key("note"), "strings are passed over");
    }
    assert_eq!(n_files, 15);
}

#[test]
fn another_compressor_is_refused_by_name() {
    let text = std::fs::read_to_string(data("binary_zlib_64.vtu")).unwrap();
    let text = text.replace("vtkZLibDataCompressor", "vtkLZMADataCompressor");
    let error = parse(Path::new("lzma.vtu"), text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("vtkLZMADataCompressor") && error.contains("byte"), "{error}");
}

#[test]
fn a_truncated_file_is_refused_wherever_it_ends() {
    for name in [
        "ascii_plain_32.vtu",
        "binary_zlib_64.vtu",
        "appended_raw_plain_64.vtu",
        "appended_base64_zlib_32.vtu",
        "lz4.vtu",
    ] {
        let bytes = std::fs::read(data(name)).unwrap();
        let end_of_data = bytes.windows(4).rposition(|w| w == b"</Ap" || w == b"</Ce").unwrap();
        let mut n_refused = 0;
        for end in (0..end_of_data.saturating_sub(40)).step_by(7) {
            n_refused += usize::from(parse(Path::new(name), &bytes[..end]).is_err());
        }
        assert!(
            n_refused * 7 > end_of_data * 8 / 10,
            "{name}: only {n_refused} of {} refused",
            end_of_data / 7
        );
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = read(Path::new("no/such.vtu")).unwrap_err();
    assert!(matches!(error, MeshError::Io { .. }) && error.to_string().contains("no/such.vtu"));
}

#[test]
fn a_field_of_the_wrong_length_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vtu");
    let mesh = square(&SquareConfig::default()).unwrap();
    let field = Field { n_components: 1, values: vec![0.0; 2] };
    let error = write_with(&path, &mesh, &[("u", &field)], &[], WriteOptions::default()).unwrap_err();
    assert!(error.to_string().contains("`u`") && !path.exists());
}

fn with_everything(mut mesh: Mesh, seed: u64) -> Mesh {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / 1e15
    };
    mesh.cell_tags = (0..mesh.n_cells()).map(|_| next() as i32 % 5).collect();
    mesh.tag_names = BTreeMap::new();
    let n = mesh.n_cells() * 3;
    mesh.cell_fields
        .insert("a <b>&\"c\"".into(), Field { n_components: 3, values: (0..n).map(|_| next()).collect() });
    let n = mesh.n_nodes();
    mesh.node_fields.insert("u".into(), Field { n_components: 1, values: (0..n).map(|_| next()).collect() });
    mesh
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_is_read_back(n in 1usize..5, m in 1usize..14, packed in 0usize..3, facets: bool, seed: u64) {
        let compression = [Compression::None, Compression::Zlib, Compression::Lz4][packed];
        let boxes = box_mesh(&BoxConfig { cells: [n, m, 2], ..BoxConfig::default() }).unwrap();
        let plane = square(&SquareConfig { cells: [n, m * 3], ..SquareConfig::default() }).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for mesh in [boxes, plane] {
            let mut mesh = with_everything(mesh, seed);
            let path = folder.path().join("mesh.vtu");
            let options = WriteOptions { compression, facets, sum: true, ..WriteOptions::default() };
            let sum = write_with(&path, &mesh, &[], &[], options).unwrap();
            assert_eq!(sum, Some(FileSum::of(&path).unwrap()), "{compression:?} {facets}");
            if !facets {
                mesh.facets = Default::default();
            }
            prop_assert_eq!(read(&path).unwrap(), mesh);
        }
    }
}
