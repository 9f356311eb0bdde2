//! Meshes of openCARP: nodes, elements, fibres and surfaces in files of their own.

use std::path::{Path, PathBuf};

use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::generate::{BoxConfig, BoxSplit, VentricleConfig, box_mesh, ventricle};
use femtile_mesh::{CellKind, Field, Mesh, io};

const PTS: &str = "5\n0 0 0\n1000 0 0\n0 1e3 0\n0 0 1000.0\n1000 1000 1000\n";
const ELEM: &str = "3\nTt 0 1 2 3 7\nLn 0 1 9\nTt 1 2 3 4 8\n";
const LON: &str = "2\n1 0 0 0 1 0\n5 5 5 5 5 5\n0 0 0 0 0 0\n";

/// Writes the files `heart.…` with these extensions.
fn heart(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (extension, text) in files {
        std::fs::write(folder.path().join(format!("heart.{extension}")), text).unwrap();
    }
    let base = folder.path().join("heart");
    (folder, base)
}

fn parsed(pts: &str, elem: &str, lon: Option<&str>, surface: Option<&str>) -> Result<Mesh, String> {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let surfaces = surface.map(|text| (String::from("epi"), bytes(text))).into_iter().collect();
    let files = io::carp::Files { pts: bytes(pts), elem: bytes(elem), lon: lon.map(bytes), surfaces };
    io::carp::parse(Path::new("heart"), &files).map_err(|error| error.to_string())
}

#[test]
fn any_file_of_a_mesh_or_its_name_alone_opens_all_of_them() {
    let surfaces = [
        ("epi.surf", "2\nTr 1 2 4\nTr 2 3 4\n"),
        ("endo.surf", "1\nTr 0 1 2 5\n"),
        ("12.surf", "1\nTr 0 1 3\n"),
    ];
    let files = [&[("pts", PTS), ("elem", ELEM), ("lon", LON)][..], &surfaces].concat();
    let (_folder, base) = heart(&files);
    let whole = io::read(&base).unwrap();
    for extension in ["pts", "elem", "lon"] {
        assert_eq!(io::read(&base.with_extension(extension)).unwrap(), whole);
    }
    assert_eq!((whole.kind, whole.n_nodes(), &whole.cell_tags[..]), (CellKind::Tetrahedron, 5, &[7, 8][..]));
    assert_eq!(whole.points[4], [1000.0; 3]);
    // The directions of the line are left out with it.
    assert_eq!(
        whole.cell_fields["fibre"],
        Field { n_components: 3, values: vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0] }
    );
    assert_eq!(whole.cell_fields["sheet"].values, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let parts: Vec<_> = whole.tag_names.iter().map(|((d, tag), name)| (*d, *tag, name.as_str())).collect();
    assert_eq!(parts, [(2, 13, "endo"), (2, 14, "epi")]);
    assert_eq!((&whole.facets.tags[..], whole.facet(2)), (&[12, 13, 14, 14][..], &[1, 2, 4][..]));
}

#[test]
fn a_name_may_have_dots_and_a_mesh_no_fibres() {
    let (folder, base) = heart(&[("v2.pts", PTS), ("v2.elem", ELEM)]);
    let mesh = io::read(&folder.path().join("heart.v2")).unwrap();
    assert!(mesh.cell_fields.is_empty() && mesh.facets.tags.is_empty());
    assert_eq!(io::read(&folder.path().join("heart.v2.elem")).unwrap(), mesh);
    let said = io::read(&base).unwrap_err().to_string();
    assert!(
        said.contains("a file name without extension") && said.contains(".pts/.elem (openCARP)"),
        "{said}"
    );
    let said = io::read(&base.with_extension("elem")).unwrap_err().to_string();
    assert!(said.contains("heart.pts: cannot read"), "{said}");
}

#[test]
fn old_files_of_fibres_lack_the_first_line() {
    let of = |lon: &str| parsed(PTS, ELEM, Some(lon), None).unwrap().cell_fields;
    assert_eq!(of("1 0 0\n0 1 0\n0 0 1\n"), of("1\n1 0 0\n0 1 0\n0 0 1\n"));
    assert_eq!(of(&LON[2..]), of(LON));
}

#[test]
fn errors_name_the_file_its_line_and_what_to_do() {
    let pts = |text: &str| parsed(text, ELEM, None, None);
    let elem = |text: &str| parsed(PTS, text, None, None);
    let lon = |text: &str| parsed(PTS, ELEM, Some(text), None);
    let surf = |text: &str| parsed(PTS, ELEM, None, Some(text));
    for (result, expected) in [
        (pts(&PTS.replace("1000.0", "nan")), "heart.pts: line 5: a coordinate is NaN"),
        (pts(&PTS.replace("5\n0", "4000000000\n0")), "heart.pts: line 1: 4000000000 nodes are announced"),
        (pts(&PTS.replace("5\n0", "4\n0")), "heart.pts: line 6: more than the 4 nodes"),
        (pts(&PTS.replace("1e3 0", "1e3 0 0")), "heart.pts: line 4: `0` follows a node"),
        (elem(&ELEM.replace("3 4 8", "3 5 8")), "heart.elem: line 4: node 5, but nodes are numbered 0 to 4"),
        (elem(&ELEM.replace("3 4 8", "-3 4 8")), "heart.elem: line 4: a node should be a whole number"),
        (
            elem(&ELEM.replace("Ln", "Oc")),
            "heart.elem: line 3: an octahedron (`Oc`) is not supported; split it",
        ),
        (elem(&ELEM.replace("Ln", "xy")), "heart.elem: line 3: `xy` is no kind of element"),
        (
            elem(&ELEM.replace("Tt 1 2 3 4 8", "Hx 0 1 2 3 4 0 1 2 8")),
            "heart.elem: cell 1 has repeated nodes that leave no cell",
        ),
        (elem(&ELEM.replace("3 4 8", "3 4 8 1")), "heart.elem: line 4: `1` follows an element"),
        (elem("1\nLn 0 1 1\n"), "heart.elem: the file has no triangles"),
        (elem(""), "heart.elem: line 1: the file ends where the number of elements should stand"),
        (lon("3\n1 0 0\n"), "heart.lon: line 1: 3 directions for each element; 1, that of the fibres"),
        (lon("1\n1 0 0\n"), "heart.lon: line 1: 3 elements of the `.elem` file are announced"),
        (lon("1\n1 0 0\n1 0 0\n1 0 0\n1 0 0\n"), "heart.lon: line 5: directions of more than the 3 elements"),
        (lon("1\n1 0 0\n1 0 0\n1 0 x\n"), "heart.lon: line 4: a component of a fibre should be a number"),
        (
            surf("1\nQd 0 1 2 3\n"),
            "heart.epi.surf: line 2: the facets of tetrahedron cells are `Tr`, not `Qd`",
        ),
        (surf("1\nTr 0 1 5\n"), "heart.epi.surf: line 2: node 5"),
        (surf("9999999\nTr 0 1 2\n"), "heart.epi.surf: line 1: 9999999 facets are announced"),
    ] {
        let said = result.expect_err(expected);
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
}

#[test]
fn hexahedra_are_read_with_either_direction_of_their_upper_sides() {
    let config = BoxConfig {
        cells: [2, 3, 1],
        split: BoxSplit::Hexahedron,
        upper: [5.0, 1.0, 0.2],
        ..BoxConfig::default()
    };
    let mesh = box_mesh(&config).unwrap();
    let points: Vec<String> = mesh.points.iter().map(|[x, y, z]| format!("{x:?} {y:?} {z:?}\n")).collect();
    let pts = format!("{}\n{}", points.len(), points.concat());
    for order in [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 7, 6, 5]] {
        let mut elem = format!("{}\n", mesh.n_cells());
        for cell in 0..mesh.n_cells() {
            let nodes: Vec<String> =
                order.iter().map(|&corner: &usize| mesh.cell(cell)[corner].to_string()).collect();
            elem += &format!("Hx {} 1\n", nodes.join(" "));
        }
        assert_eq!(parsed(&pts, &elem, None, None).unwrap().cells, mesh.cells);
    }
}

#[test]
fn what_is_written_reads_back_with_fibres_and_named_surfaces() {
    let folder = tempfile::tempdir().unwrap();
    let mut heart = ventricle(&VentricleConfig { h_mm: 3.0 }).unwrap();
    let n = heart.n_cells();
    heart.cell_tags = (0..n).map(|cell| 1 + (cell % 2) as i32).collect();
    heart.cell_fields.remove("transmural");
    let path = folder.path().join("heart.elem");
    io::write(&path, &heart).unwrap();
    let mut read = io::read(&path).unwrap();
    assert_eq!((&read.points, &read.cells, &read.cell_tags), (&heart.points, &heart.cells, &heart.cell_tags));
    assert_eq!(read.cell_fields, heart.cell_fields);
    // Parts are numbered in the order of their names.
    assert_eq!(read.tag_names[&(2, 1)], "base");
    let of = |mesh: &Mesh, name: &str| {
        let tag = mesh.tag_names.iter().find(|(_, known)| *known == name).unwrap().0.1;
        mesh.facets.tags.iter().filter(|found| **found == tag).count()
    };
    for name in ["base", "endocardium", "epicardium"] {
        assert!(of(&read, name) == of(&heart, name) && of(&read, name) > 10, "{name}");
    }
    check(&mut read, &CheckConfig::default()).unwrap();

    // Fibres of the old mesh would be read with the new one; a surface of it is refused.
    let mut cubes =
        box_mesh(&BoxConfig { cells: [2, 1, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() })
            .unwrap();
    let said = io::write(&path, &cubes).unwrap_err().to_string();
    assert!(said.contains("heart.base.surf") && said.contains("remove that file"), "{said}");
    for name in ["base", "endocardium", "epicardium"] {
        std::fs::remove_file(folder.path().join(format!("heart.{name}.surf"))).unwrap();
    }
    io::write(&path, &cubes).unwrap();
    assert!(!path.with_extension("lon").exists());
    let sheet = Field { n_components: 3, values: vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0] };
    cubes
        .cell_fields
        .insert("fibre".into(), Field { n_components: 3, values: vec![1.0, 0.0, 0.0, 0.1, -1e-300, 0.0] });
    cubes.cell_fields.insert("sheet".into(), sheet);
    io::write(&path, &cubes).unwrap();
    let read = io::read(&path).unwrap();
    assert_eq!((read.cells, read.cell_fields), (cubes.cells, cubes.cell_fields));
}

#[test]
fn scaling_multiplies_points_and_refuses_what_makes_no_mesh() {
    let mut mesh = parsed(PTS, ELEM, None, None).unwrap();
    mesh.scale(1e-3).unwrap();
    assert_eq!(mesh.points[4], [1.0; 3]);
    let before = mesh.clone();
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let said = mesh.scale(factor).unwrap_err().to_string();
        assert!(said.starts_with("scale: ") && said.contains("positive"), "{said}");
    }
    mesh.scale(1e200).unwrap();
    assert!(mesh.scale(1e200).unwrap_err().to_string().contains("infinite"));
    mesh.scale(1e-200).unwrap();
    assert_eq!(mesh, before);
}
