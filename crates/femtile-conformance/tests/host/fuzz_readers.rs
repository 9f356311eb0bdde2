//! No mutation of a valid mesh or matrix file makes a reader panic, hang or take memory out of proportion.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use femtile::device::Reference;
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::matrix_market::{self, ReadConfig, Symmetry, WriteConfig};
use femtile::linalg::sparse::{Csr, Triplets};
use femtile_conformance::allocation::{CountingAllocator, peak_of};
use femtile_conformance::mesh_files::{self, MeshFiles};
use femtile_conformance::mixed_files::MixedMesh;
use femtile_conformance::quadratic_files;
use femtile_mesh::generate::{BoxConfig, BoxSplit, DeformConfig, box_mesh, deform};
use femtile_mesh::{Mesh, io};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Bytes that a reader may hold at once for a file of `n_bytes`.
pub fn allowed(n_bytes: usize) -> usize {
    (1 << 20) + 16 * n_bytes
}

pub fn cube(n: usize) -> Mesh {
    let mut mesh = box_mesh(&BoxConfig { cells: [n; 3], ..Default::default() }).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| 1 + (cell % 2) as i32).collect();
    mesh
}

/// One change of a file.
#[derive(Debug, Clone)]
enum Mutation {
    /// Another byte at a place.
    Byte(f64, u8),
    /// Cut the file short.
    Truncate(f64),
    /// Remove some bytes.
    Remove(f64, usize),
    /// Repeat some bytes.
    Repeat(f64, usize),
    /// Another word for a word of text.
    Word(f64, &'static str),
    /// Other bytes for four or eight of them.
    Number(f64, Vec<u8>),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    const WORDS: [&str; 20] = [
        "0",
        "-1",
        "1",
        "3",
        "11",
        "99999999",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "nan",
        "inf",
        "1e999",
        "",
        "x",
        "$End",
        "BIN",
        "BINARY",
        "METADATA",
        "\"",
    ];
    const NUMBERS: [u64; 6] = [0, 1, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];
    let number = (prop::sample::select(&NUMBERS[..]), any::<bool>(), any::<bool>());
    let number = number.prop_map(|(value, wide, big)| match (wide, big) {
        (true, true) => value.to_be_bytes().to_vec(),
        (true, false) => value.to_le_bytes().to_vec(),
        (false, true) => (value as u32).to_be_bytes().to_vec(),
        (false, false) => (value as u32).to_le_bytes().to_vec(),
    });
    let place = 0.0..1.0f64;
    prop_oneof![
        2 => (place.clone(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
        1 => place.clone().prop_map(Mutation::Truncate),
        1 => (place.clone(), 0..40usize).prop_map(|(at, n)| Mutation::Remove(at, n)),
        1 => (place.clone(), 0..40usize).prop_map(|(at, n)| Mutation::Repeat(at, n)),
        4 => (place.clone(), prop::sample::select(&WORDS[..])).prop_map(|(at, word)| Mutation::Word(at, word)),
        2 => (place, number).prop_map(|(at, bytes)| Mutation::Number(at, bytes)),
    ]
}

fn mutate(file: &mut Vec<u8>, mutation: &Mutation) {
    let n = file.len();
    let at = |share: f64| ((n as f64 * share) as usize).min(n.saturating_sub(1));
    if n == 0 {
        return;
    }
    match mutation {
        Mutation::Byte(share, byte) => file[at(*share)] = *byte,
        Mutation::Truncate(share) => file.truncate(at(*share)),
        Mutation::Remove(share, count) => {
            file.drain(at(*share)..(at(*share) + count).min(n));
        }
        Mutation::Repeat(share, count) => {
            let (begin, end) = (at(*share), (at(*share) + count).min(n));
            let repeated = file[begin..end].to_vec();
            file.splice(end..end, repeated);
        }
        Mutation::Word(share, word) => {
            let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
            let begin = file[..at(*share)].iter().rposition(ends).map_or(0, |before| before + 1);
            let end = file[begin..].iter().position(ends).map_or(n, |length| begin + length);
            file.splice(begin..end, word.bytes());
        }
        Mutation::Number(share, bytes) => {
            let begin = at(*share);
            let end = (begin + bytes.len()).min(n);
            file[begin..end].copy_from_slice(&bytes[..end - begin]);
        }
    }
}

/// VTU files as VTK writes them.
pub fn vtu_files() -> Vec<MeshFiles> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../femtile-mesh/tests/data"));
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "vtu"));
    names.sort();
    let parse = |files: &[Vec<u8>]| io::vtu::parse(Path::new("fuzz.vtu"), &files[0]);
    let file = |path: &PathBuf| MeshFiles {
        name: path.file_name().unwrap().to_string_lossy().into_owned().leak(),
        files: vec![std::fs::read(path).unwrap()],
        parse,
    };
    names.iter().map(file).collect()
}

fn check(files: &MeshFiles) {
    let n_bytes = files.files.iter().map(Vec::len).sum();
    let start = Instant::now();
    let (result, peak) = peak_of(|| (files.parse)(&files.files));
    assert!(start.elapsed() < Duration::from_secs(10), "{} took {:?}", files.name, start.elapsed());
    assert!(peak <= allowed(n_bytes), "{}: {peak} bytes held for a file of {n_bytes}", files.name);
    if let Ok(mesh) = result {
        mesh.validate().unwrap_or_else(|error| panic!("{}: {error}", files.name));
    }
}

/// Curved hexahedra as Femtile writes them.
pub fn curved_vtu() -> MeshFiles {
    let config = BoxConfig { cells: [2, 1, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let mut mesh = box_mesh(&config).unwrap();
    deform(&mut mesh, &DeformConfig { amplitude: 0.1, order: 2 }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    io::write(&folder.path().join("curved.vtu"), &mesh).unwrap();
    let files = vec![std::fs::read(folder.path().join("curved.vtu")).unwrap()];
    let parse = |files: &[Vec<u8>]| io::vtu::parse(Path::new("fuzz.vtu"), &files[0]);
    MeshFiles { name: "curved VTU", files, parse }
}

#[test]
fn seeds_of_products_are_sound() {
    for files in mesh_files::products().into_iter().chain([curved_vtu()]) {
        let mesh = (files.parse)(&files.files).unwrap_or_else(|error| panic!("{}: {error}", files.name));
        let is_straight = ["MFEM straight", "Abaqus with a part", "openCARP of a cube"].contains(&files.name);
        assert_eq!(mesh.curved.is_none(), is_straight, "{}", files.name);
    }
}

/// Small files of MFEM that announce, or imply, what would take gigabytes.
#[test]
fn counts_that_a_small_file_cannot_hold_take_no_memory() {
    let good = mesh_files::mfem_curved("H1_2D_P2", 9);
    let many = |n: usize, collection: &str| {
        let cubes = "1 5 0 1 2 3 4 5 6 7\n".repeat(n);
        format!(
            "MFEM mesh v1.0\ndimension\n3\nelements\n{n}\n{cubes}boundary\n0\nvertices\n8\nnodes\nFiniteElementSpace\n\
             FiniteElementCollection: {collection}\nVDim: 3\nOrdering: 0\n0 0 0\n"
        )
    };
    let hostile = [
        good.replacen("elements\n1\n", "elements\n4294967295\n", 1),
        good.replacen("boundary\n1\n", "boundary\n9223372036854775807\n", 1),
        good.replacen("vertices\n4\n", "vertices\n4294967295\n", 1),
        good.replacen("3 3 0 1 2 3", "3 3 0 1 2 4294967294", 1).replacen(
            "vertices\n4\n",
            "vertices\n4294967295\n",
            1,
        ),
        many(20_000, "H1_3D_P9"),
        many(20_000, "L2_3D_P9"),
        many(20_000, "H1_3D_P2"),
    ];
    for text in hostile {
        let files = vec![text.into_bytes()];
        let parse = |files: &[Vec<u8>]| io::mfem::parse(Path::new("fuzz.mesh"), &files[0]);
        check(&MeshFiles { name: "MFEM", files, parse });
    }
}

#[test]
fn no_mutation_makes_a_reader_panic_hang_or_swell() {
    let mut seeds = mesh_files::all(&cube(1));
    seeds.extend(mesh_files::products());
    seeds.extend(quadratic_files::all(&cube(1), 0.01));
    seeds.extend(MixedMesh::cube(1, 1).files());
    seeds.extend(vtu_files());
    seeds.push(curved_vtu());
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let changes = prop::collection::vec((mutations(), 0..3usize), 1..4);
    for seed in &seeds {
        // A runner counts the cases of all its runs.
        let run = TestRunner::new(config.clone()).run(&changes, |changes| {
            let mut files = seed.clone();
            let n_files = files.files.len();
            for (mutation, file) in &changes {
                mutate(&mut files.files[file % n_files], mutation);
            }
            check(&files);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{}: {error}", seed.name));
    }
}

/// A symmetric matrix with up to three entries in a row.
fn tridiagonal(n: usize) -> Result<Csr<f64, Reference>, LinalgError> {
    let mut triplets = Triplets::new(n, n);
    for row in 0..n {
        triplets.push(row, row, 2.0 + row as f64)?;
        if row > 0 {
            triplets.push(row, row - 1, -0.1)?;
            triplets.push(row - 1, row, -0.1)?;
        }
    }
    Ok(triplets.into_csr(&Reference)?.matrix)
}

/// Matrix Market files of every kind that is read.
pub fn matrix_files() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let kinds =
        [("a.mtx", Symmetry::General), ("a.mtx.gz", Symmetry::General), ("b.mtx", Symmetry::Symmetric)];
    let written = kinds.map(|(name, symmetry)| {
        let config = WriteConfig { symmetry, comments: vec!["seed".into()] };
        matrix_market::write(&folder.path().join(name), &tridiagonal(9).unwrap(), &config).unwrap();
        std::fs::read(folder.path().join(name)).unwrap()
    });
    let texts = [
        "%%MatrixMarket matrix coordinate pattern general\n4 5 3\n1 5\n2 2\n4 1\n",
        "%%MatrixMarket matrix coordinate integer skew-symmetric\n4 4 2\n4 1 -3\n3 2 7\n",
        "%%MatrixMarket matrix array real symmetric\n2 2\n1.5\n0\n-2e-3\n",
    ];
    written.into_iter().chain(texts.map(|text| text.as_bytes().to_vec())).collect()
}

/// Bytes that the reader of matrices may hold: rows up to a million are taken on trust, empty or not.
pub fn allowed_for_matrix(n_bytes: usize) -> usize {
    (48 << 20) + 64 * n_bytes
}

fn check_matrix(file: &[u8]) {
    let start = Instant::now();
    let parse = || matrix_market::parse::<f64>(Path::new("fuzz.mtx"), file, &ReadConfig::default());
    let (result, peak) = peak_of(parse);
    assert!(start.elapsed() < Duration::from_secs(10), "a matrix took {:?}", start.elapsed());
    assert!(peak <= allowed_for_matrix(file.len()), "{peak} bytes held for a file of {}", file.len());
    if let Ok(found) = result {
        assert!(found.matrix.values().as_slice().iter().all(|value| value.is_finite()));
    }
}

#[test]
fn no_mutation_of_a_matrix_makes_its_reader_panic_hang_or_swell() {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    for seed in matrix_files() {
        check_matrix(&seed);
        let run = TestRunner::new(config.clone()).run(&prop::collection::vec(mutations(), 1..4), |changes| {
            let mut file = seed.clone();
            changes.iter().for_each(|mutation| mutate(&mut file, mutation));
            check_matrix(&file);
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(&seed)));
    }
}

#[test]
fn a_reader_holds_at_most_sixteen_times_its_file() {
    for files in mesh_files::all(&cube(24)).into_iter().chain(MixedMesh::cube(24, 3).files()) {
        let n_bytes: usize = files.files.iter().map(Vec::len).sum();
        assert!(n_bytes > 2 << 20 || !files.name.contains("text"), "{}: only {n_bytes} bytes", files.name);
        let (result, peak) = peak_of(|| (files.parse)(&files.files));
        assert!(result.is_ok(), "{}: {:?}", files.name, result.err());
        assert!(peak > n_bytes / 4, "{}: {peak} bytes cannot be the whole count", files.name);
        assert!(peak <= allowed(n_bytes), "{}: {peak} bytes held for a file of {n_bytes}", files.name);
        eprintln!("{}: {:.1} bytes a byte of the file", files.name, peak as f64 / n_bytes as f64);
    }
}

/// Triangles in pieces, each with an array of numbers of one byte in the appended data; all arrays at one place if asked.
fn pieces_of_bytes(n_pieces: usize, n_components: usize, is_shared: bool) -> Vec<u8> {
    let mut text =
        String::from("<VTKFile type=\"UnstructuredGrid\" header_type=\"UInt64\"><UnstructuredGrid>\n");
    let n_bytes = 3 * n_components;
    for piece in 0..n_pieces {
        let offset = if is_shared { 0 } else { piece * (8 + n_bytes) };
        text += &format!(
            "<Piece NumberOfPoints=\"3\" NumberOfCells=\"1\"><PointData><DataArray type=\"UInt8\" Name=\"u\" \
             NumberOfComponents=\"{n_components}\" format=\"appended\" offset=\"{offset}\"/></PointData><Points>\
             <DataArray type=\"Float32\" NumberOfComponents=\"3\">0 0 0 1 0 0 0 1 0</DataArray></Points><Cells>\
             <DataArray type=\"Int8\" Name=\"connectivity\">0 1 2</DataArray>\
             <DataArray type=\"Int8\" Name=\"offsets\">3</DataArray>\
             <DataArray type=\"Int8\" Name=\"types\">5</DataArray></Cells></Piece>\n"
        );
    }
    let mut file = (text + "</UnstructuredGrid><AppendedData encoding=\"raw\">_").into_bytes();
    for _ in 0..if is_shared { 1 } else { n_pieces } {
        file.extend((n_bytes as u64).to_le_bytes());
        file.resize(file.len() + n_bytes, 7);
    }
    file
}

#[test]
fn pieces_with_numbers_of_one_byte_hold_at_most_twenty_four_times_their_file() {
    for (n_pieces, n_components) in [(1, 1 << 20), (9, 1 << 17)] {
        let file = pieces_of_bytes(n_pieces, n_components, false);
        let (mesh, peak) = peak_of(|| io::vtu::parse(Path::new("a.vtu"), &file).unwrap());
        assert_eq!(mesh.node_fields["u"].values.len(), 3 * n_pieces * n_components);
        eprintln!("{n_pieces} pieces: {:.1} bytes a byte of the file", peak as f64 / file.len() as f64);
        assert!(peak <= (1 << 20) + 24 * file.len(), "{peak} bytes for {}", file.len());
    }
}

#[test]
fn divided_cells_with_numbers_of_one_byte_hold_at_most_sixty_four_times_their_file() {
    // A few cells with long arrays, and many cells, all between the same points, with none.
    for (n_cells, n_components) in [(2, 1 << 19), (1 << 17, 0), (1 << 15, 8)] {
        let array = |name: &str, n: usize, n_components: usize, offset: usize| {
            let text = format!(
                "<DataArray type=\"UInt8\" Name=\"{name}\" NumberOfComponents=\"{n_components}\" format=\"appended\" \
                 offset=\"{offset}\"/>"
            );
            (text, offset + 8 + n * n_components)
        };
        let [begin, n_nodes] = [0, 8 * (n_cells - 1) + 4];
        let (connectivity, begin) = array("connectivity", n_nodes, 1, begin);
        let (types, begin) = array("types", n_cells, 1, begin);
        let (field, ends_at) = array("u", n_cells, n_components, begin);
        let field = if n_components > 0 { field } else { String::new() };
        let ends_at = if n_components > 0 { ends_at } else { begin };
        let text = format!(
            "<VTKFile type=\"UnstructuredGrid\" header_type=\"UInt64\"><UnstructuredGrid><Piece NumberOfPoints=\"8\" \
             NumberOfCells=\"{n_cells}\"><CellData>{field}</CellData><Points><DataArray type=\"Float32\" \
             NumberOfComponents=\"3\">0 0 0 1 0 0 1 1 0 0 1 0 0 0 1 1 0 1 1 1 1 0 1 1</DataArray></Points><Cells>{connectivity}\
             {types}<DataArray type=\"UInt32\" Name=\"offsets\" format=\"appended\" offset=\"{ends_at}\"/></Cells></Piece>\n\
             </UnstructuredGrid><AppendedData encoding=\"raw\">_"
        );
        let mut file = text.into_bytes();
        let mut append = |bytes: &[u8]| {
            file.extend((bytes.len() as u64).to_le_bytes());
            file.extend(bytes);
        };
        append(&(0..n_nodes).map(|node| (node % 8) as u8).collect::<Vec<_>>());
        append(&(0..n_cells).map(|cell| if cell + 1 < n_cells { 12 } else { 10 }).collect::<Vec<_>>());
        if n_components > 0 {
            append(&vec![3; n_cells * n_components]);
        }
        let ends = (1..=n_cells).map(|cell| (8 * cell).min(n_nodes) as u32);
        append(&ends.flat_map(u32::to_le_bytes).collect::<Vec<_>>());
        let (mesh, peak) = peak_of(|| io::vtu::parse(Path::new("a.vtu"), &file).unwrap());
        assert!(mesh.n_cells() > 5 * (n_cells - 1));
        assert!(n_components == 0 || mesh.cell_fields["u"].values.len() == mesh.n_cells() * n_components);
        eprintln!("{n_cells} cells: {:.1} bytes a byte of the file", peak as f64 / file.len() as f64);
        assert!(peak <= (1 << 20) + 64 * file.len(), "{peak} bytes for {}", file.len());
    }
}

#[test]
fn arrays_at_one_place_take_no_memory() {
    let file = pieces_of_bytes(2000, 10_000, true);
    let (result, peak) = peak_of(|| io::vtu::parse(Path::new("a.vtu"), &file));
    let said = result.unwrap_err().to_string();
    assert!(said.contains("some share bytes"), "{said}");
    assert!(peak <= allowed(file.len()), "{peak} bytes for {}", file.len());
}

/// A million rows and columns are accepted without entries; beyond them one entry is required for four of each.
#[test]
fn a_matrix_of_mostly_empty_rows_holds_at_most_what_its_bytes_allow() {
    for symmetry in ["general", "symmetric"] {
        let n = 300_000;
        let head = format!("%%MatrixMarket matrix coordinate pattern {symmetry}\n{0} {0} {n}\n", 4 * n);
        let file = (head + &"2 1\n".repeat(n)).into_bytes();
        let parse = || matrix_market::parse::<f64>(Path::new("a.mtx"), &*file, &ReadConfig::default());
        let (result, peak) = peak_of(parse);
        assert_eq!(result.unwrap().matrix.n_rows(), 4 * n);
        assert!(peak <= allowed_for_matrix(file.len()), "{peak} bytes for {}", file.len());
    }
}
