//! Meshes that a `.pvtu` file names piece by piece.

use std::path::Path;

use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::generate::{BoxConfig, BoxSplit, HexahedralBallConfig, box_mesh, hexahedral_ball};
use femtile_mesh::io::vtu::{Extent, Pieces, WriteOptions, write_with};
use femtile_mesh::partition::Partition;
use femtile_mesh::{Field, Mesh, io};

/// Writes a mesh in pieces of three ranks, with the values of a linear function.
fn write(path: &Path, mesh: &Mesh) {
    let ranks = (0..mesh.n_cells() as u32).map(|cell| cell * 7 % 3).collect();
    let partition = Partition::new(ranks, 3).unwrap();
    let values = mesh.points.iter().map(|[x, y, z]| x + 10.0 * y + 100.0 * z).collect();
    let u = Field { n_components: 1, values };
    let extent = Extent::Pieces(Pieces { partition: &partition, only: None });
    write_with(
        path,
        mesh,
        &[("u", &u)],
        &[],
        WriteOptions { extent, facets: true, ..WriteOptions::default() },
    )
    .unwrap();
}

#[test]
fn pieces_are_joined_to_the_mesh_that_they_are_of() {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [3, 4, 2], split, ..BoxConfig::default() }).unwrap());
    let ball = HexahedralBallConfig { order: 2, ..HexahedralBallConfig::default() };
    for mut mesh in boxes.into_iter().chain([hexahedral_ball(&ball).unwrap()]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("u.pvtu");
        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|cell| cell % 5).collect();
        write(&path, &mesh);
        let mut read = io::read(&path).unwrap();
        assert_eq!((read.kind, read.n_cells(), read.n_nodes()), (mesh.kind, mesh.n_cells(), mesh.n_nodes()));
        let points = |mesh: &Mesh| mesh.curved.as_ref().map(|curved| curved.points.len());
        assert_eq!(points(&read), points(&mesh));
        for (&[x, y, z], &u) in read.points.iter().zip(&read.node_fields["u"].values) {
            assert!((u - (x + 10.0 * y + 100.0 * z)).abs() < 1e-12);
        }
        let mut tags = [&read.cell_tags, &mesh.cell_tags].map(Vec::clone);
        tags.iter_mut().for_each(|tags| tags.sort_unstable());
        assert_eq!(tags[0], tags[1]);
        let [found, expected] =
            [&mut read, &mut mesh].map(|mesh| check(mesh, &CheckConfig::default()).unwrap());
        assert!((found.volume - expected.volume).abs() < 1e-12 * expected.volume);
        assert_eq!(found.n_components, expected.n_components);
        assert_eq!(io::read_tagged(&path, "tag").unwrap().cell_tags, read.cell_tags);
    }
}

/// A piece of triangles, with marks of ghosts.
fn piece(points: &str, n_points: usize, cells: &str, ghosts: &str) -> String {
    let n_cells = ghosts.split(' ').count();
    let ends: Vec<String> = (1..=n_cells).map(|cell| (3 * cell).to_string()).collect();
    format!(
        "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"{n_points}\" NumberOfCells=\"{n_cells}\">\
         <Points><DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"ascii\">{points}</DataArray></Points><Cells>\
         <DataArray type=\"Int32\" Name=\"connectivity\" format=\"ascii\">{cells}</DataArray><DataArray type=\"Int32\" \
         Name=\"offsets\" format=\"ascii\">{}</DataArray><DataArray type=\"UInt8\" Name=\"types\" format=\"ascii\">{}</DataArray>\
         </Cells><CellData><DataArray type=\"UInt8\" Name=\"vtkGhostType\" format=\"ascii\">{ghosts}</DataArray></CellData>\
         </Piece></UnstructuredGrid></VTKFile>",
        ends.join(" "),
        vec!["5"; n_cells].join(" ")
    )
}

fn index(names: &[&str]) -> String {
    let pieces: String = names.iter().map(|name| format!("<Piece Source=\"{name}\"/>")).collect();
    format!("<VTKFile type=\"PUnstructuredGrid\"><PUnstructuredGrid>{pieces}</PUnstructuredGrid></VTKFile>")
}

/// Writes files into a folder and reads the first of them.
fn read(files: &[(&str, String)]) -> Result<Mesh, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    io::read(&folder.path().join(files[0].0)).map_err(|error| error.to_string())
}

#[test]
fn ghost_cells_are_left_out_and_points_of_a_slit_stay_apart() {
    // The lower triangle of a square with the upper one as a ghost, and the upper one; zeros of both signs.
    let lower = piece("0 0 0 1 0 0 1 1 0 0 1 0", 4, "0 1 2 0 2 3", "0 1");
    let upper = piece("0 1 0 -0.0 0 0 1 1 0", 3, "1 2 0", "0");
    let names = index(&["parts/0.vtu", "parts/1.vtu"]);
    let files = |upper: &str| {
        [("a.pvtu", names.clone()), ("parts/0.vtu", lower.clone()), ("parts/1.vtu", upper.into())]
    };
    let mesh = read(&files(&upper)).unwrap();
    assert_eq!((mesh.n_nodes(), &mesh.cells[..]), (4, &[0, 1, 2, 0, 2, 3][..]));
    assert!(mesh.notes[0].contains("a ghost cell is left out"), "{:?}", mesh.notes);
    // Without a mark the cell that both have is read once as well.
    let unmarked = files(&upper).map(|(name, text)| {
        (name, text.replace(">0 1</DataArray></CellData>", ">0 0</DataArray></CellData>"))
    });
    let mesh = read(&unmarked).unwrap();
    assert_eq!((mesh.n_nodes(), &mesh.cells[..]), (4, &[0, 1, 2, 0, 2, 3][..]));
    assert_eq!(mesh.notes, ["several pieces have the same cells, 1 in all: each is read once"]);
    // A piece with two points at the place (1, 1) keeps all three.
    let slit = piece("0 1 0 0 0 0 1 1 0 1 1 0", 4, "1 2 0 1 3 0", "0 0");
    let mesh = read(&files(&slit)).unwrap();
    assert_eq!((mesh.n_nodes(), mesh.n_cells()), (6, 3));
    assert_eq!(mesh.cell(1)[1..], [4, 3]);
}

#[test]
fn pieces_that_cannot_be_read_are_named() {
    let whole = || piece("0 0 0 1 0 0 1 1 0", 3, "0 1 2", "0");
    for (files, expected) in [
        (vec![("a.pvtu", index(&["none.vtu"]))], "the piece `none.vtu` cannot be read: "),
        (
            vec![("a.pvtu", index(&["0.vtu", "./0.vtu"])), ("0.vtu", whole())],
            "the piece `./0.vtu` is named twice",
        ),
        (
            vec![("a.pvtu", index(&["a.pvtu"]))],
            "the file holds a PUnstructuredGrid; only an UnstructuredGrid",
        ),
        (vec![("a.pvtu", index(&["."]))], "the piece `.` cannot be read: it is no regular file"),
        (
            vec![("a.pvtu", whole())],
            "the file holds a UnstructuredGrid; only a PUnstructuredGrid can be read",
        ),
        (vec![("a.pvtu", index(&[]))], "the file has no triangles"),
        (vec![("a.pvtu", index(&["0.vtu"])), ("0.vtu", whole().replace("0 1 2<", "0 1 3<"))], "0.vtu: byte "),
        (
            vec![("a.pvtu", "<VTKFile type=\"PUnstructuredGrid\"><Piece/>".into())],
            "a piece names no file by `Source`",
        ),
    ] {
        let said = read(&files).unwrap_err();
        assert!(said.contains(expected), "`{said}` should contain `{expected}`");
    }
    let text = index(&["0.vtu"]);
    for end in 0..text.find("<Piece").unwrap() {
        assert!(read(&[("a.pvtu", text[..end].into()), ("0.vtu", whole())]).is_err(), "{end}");
    }
}
