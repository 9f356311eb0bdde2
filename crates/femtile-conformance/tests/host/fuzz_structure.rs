//! No change of the structure of a file makes its reader panic, hang, swell or accept what is inconsistent.

use std::io::Write;
use std::path::{Path, PathBuf};

use femtile::linalg::sparse::matrix_market::{self, ReadConfig};
use femtile_case::Case;
use femtile_conformance::mesh_files::{self, MeshFiles};
use femtile_conformance::quadratic_files;
use femtile_conformance::structure::{Reader, fuzz};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::fuzz_readers::{allowed, allowed_for_matrix, cube, curved_vtu, matrix_files, vtu_files};

/// Fuzzes readers of one or several formats, each with the files of the others of its format to take parts from.
fn fuzz_meshes(formats: &[Vec<MeshFiles>]) {
    let reads: Vec<Vec<_>> = formats.iter().map(|all| all.iter().map(read_mesh).collect()).collect();
    let mut readers = Vec::new();
    for (all, reads) in formats.iter().zip(&reads) {
        for (first, (files, read)) in all.iter().zip(reads).enumerate() {
            let mut seeds: Vec<_> = all.iter().map(|files| files.files.clone()).collect();
            seeds.rotate_left(first);
            readers.push(Reader { name: files.name, seeds, allowed, read });
        }
    }
    fuzz(&readers);
}

fn read_mesh(files: &MeshFiles) -> impl Fn(&[Vec<u8>]) -> bool {
    let parse = files.parse;
    move |input| match parse(input) {
        Err(error) => {
            let said = error.to_string();
            assert!(!said.chars().any(char::is_control), "{said:?}");
            false
        }
        Ok(mesh) => {
            mesh.validate().unwrap();
            let names = mesh.tag_names.values().chain(mesh.cell_fields.keys()).chain(mesh.node_fields.keys());
            names.for_each(|name| assert!(!name.chars().any(char::is_control), "{name:?}"));
            true
        }
    }
}

/// Seeds whose name begins so.
fn of_format(begin: &str) -> Vec<MeshFiles> {
    let all = mesh_files::all(&cube(1)).into_iter().chain(mesh_files::products());
    let all = all.chain(quadratic_files::all(&cube(1), 0.01));
    all.filter(|files| files.name.starts_with(begin)).collect()
}

#[test]
fn abaqus_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("Abaqus")]);
}

#[test]
fn opencarp_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("openCARP")]);
}

#[test]
fn gmsh_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("Gmsh")]);
}

#[test]
fn legacy_vtk_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("VTK")]);
}

#[test]
fn medit_and_mfem_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("MEDIT"), of_format("MFEM")]);
}

#[test]
fn tetgen_files_of_any_structure_are_read_or_refused() {
    fuzz_meshes(&[of_format("TetGen"), of_format("Chaste")]);
}

#[test]
fn vtu_files_of_any_structure_are_read_or_refused() {
    let is_read = |files: &MeshFiles| (files.parse)(&files.files).is_ok();
    let mut seeds: Vec<MeshFiles> = vtu_files().into_iter().filter(is_read).collect();
    seeds.push(curved_vtu());
    fuzz_meshes(&[seeds]);
}

fn read_matrix(bytes: &[u8]) -> bool {
    match matrix_market::parse::<f64>(Path::new("fuzz.mtx"), bytes, &ReadConfig::default()) {
        Err(error) => {
            let said = error.to_string();
            assert!(!said.chars().any(char::is_control), "{said:?}");
            false
        }
        Ok(found) => {
            let matrix = found.matrix;
            let entries = (0..matrix.n_rows()).flat_map(|row| matrix.row(row));
            entries.for_each(|(column, value)| assert!(column < matrix.n_cols() && value.is_finite()));
            true
        }
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

#[test]
fn matrix_files_of_any_structure_are_read_or_refused() {
    let is_plain = |file: &Vec<u8>| file.starts_with(b"%%");
    let (plain, compressed): (Vec<_>, Vec<_>) = matrix_files().into_iter().partition(is_plain);
    let plain: Vec<_> = plain.into_iter().map(|file| vec![file]).collect();
    let compressed: Vec<_> = compressed.into_iter().map(|file| vec![file]).collect();
    let packed_first = |input: &[Vec<u8>]| read_matrix(&packed(&input[0]));
    let as_it_is = |input: &[Vec<u8>]| read_matrix(&input[0]);
    const NAMES: [&str; 5] =
        ["matrix", "symmetric matrix", "matrix pattern", "skew-symmetric matrix", "matrix as an array"];
    let mut readers = Vec::new();
    for (first, name) in NAMES.into_iter().enumerate() {
        let mut seeds = plain.clone();
        seeds.rotate_left(first);
        readers.push(Reader { name, seeds, allowed: allowed_for_matrix, read: &as_it_is });
    }
    let reader = |name, seeds, read| Reader { name, seeds, allowed: allowed_for_matrix, read };
    readers.push(reader("compressed matrix, changed before", plain, &packed_first));
    readers.push(reader("compressed matrix, changed after", compressed, &as_it_is));
    fuzz(&readers);
}

/// Case files of the examples.
fn case_files() -> Vec<Vec<Vec<u8>>> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut files: Vec<PathBuf> = Vec::new();
    for example in
        std::fs::read_dir(folder).unwrap().filter_map(|entry| entry.unwrap().path().read_dir().ok())
    {
        files.extend(example.map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files.iter().map(|path| vec![std::fs::read(path).unwrap()]).collect()
}

#[test]
fn case_files_of_any_structure_are_read_or_refused() {
    let read = |input: &[Vec<u8>]| {
        let text = String::from_utf8_lossy(&input[0]).into_owned();
        Case::parse(Path::new("case.toml"), text).is_ok()
    };
    let seeds = case_files();
    assert!(seeds.len() > 10);
    let readers = ["case of a square", "case of a ventricle", "case of NAFEMS", "manufactured case"];
    let readers = readers.into_iter().chain(["pure Neumann case", "case with a mesh file"]).enumerate();
    let readers = readers.map(|(first, name)| {
        let mut seeds = seeds.clone();
        seeds.rotate_left(first);
        Reader { name, seeds, allowed: |n_bytes| (4 << 20) + 256 * n_bytes, read: &read }
    });
    fuzz(&readers.collect::<Vec<_>>());
}
