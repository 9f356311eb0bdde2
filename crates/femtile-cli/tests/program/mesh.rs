//! `femtile mesh info` and `femtile mesh convert`.

use serde_json::{Value, json};

use crate::common::{Workplace, femtile, root, text};

/// A tetrahedron of order 2 with a curved edge, in a set, and a surface.
const ABAQUS: &str = "*NODE\n1,0,0,0\n2,2,0,0\n3,0,2,0\n4,0,0,2\n5,1,0.5,0\n6,1,1,0\n7,0,1,0\n8,0,0,1\n9,1,0,1\n10,0,1,1\n\
    *ELEMENT, TYPE=C3D10, ELSET=Body\n1,1,2,3,4,5,6,7,8,9,10\n*SURFACE, NAME=Foot\n1, S1\n";

fn mesh(place: &Workplace, arguments: &[&str], code: i32) -> String {
    let output = femtile().current_dir(place.folder.path()).arg("mesh").args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(if code == 0 { &output.stdout } else { &output.stderr })
}

#[test]
fn info_tells_the_same_as_text_and_as_json() {
    let place = Workplace::new("");
    std::fs::write(place.path("a.inp"), ABAQUS).unwrap();
    let said = mesh(&place, &["info", "a.inp"], 0);
    let found: Value = serde_json::from_str(&mesh(&place, &["info", "a.inp", "--json"], 0)).unwrap();
    for (key, expected) in [
        ("file", json!("a.inp")),
        ("dimension", json!(3)),
        ("n_nodes", json!(4)),
        ("n_cells", json!(1)),
        ("cell", json!("tetrahedron")),
        ("lower", json!([0.0, 0.0, 0.0])),
        ("upper", json!([2.0, 2.0, 2.0])),
        ("curved", Value::Null),
        ("regions", json!([{ "tag": 1, "name": "Body", "n": 1 }])),
        ("boundary", json!([{ "tag": 2, "name": "Foot", "n": 1 }])),
        ("cell_fields", json!([])),
        ("node_fields", json!([])),
    ] {
        assert_eq!(found[key], expected, "{key}");
    }
    let note = found["notes"][0].as_str().unwrap();
    assert!(note.contains("midside nodes are dropped") && found["notes"][1].is_null(), "{note}");
    for words in ["cells     1 of kind tetrahedron", "regions   1 Body: 1", "boundary  2 Foot: 1", note] {
        assert!(said.contains(words), "`{words}` is not in: {said}");
    }
    let fields = ["generate", "kind = \"ventricle\", h_mm = 5.0", "heart.vtu"];
    mesh(&place, &fields, 0);
    let found: Value = serde_json::from_str(&mesh(&place, &["info", "heart.vtu", "--json"], 0)).unwrap();
    let names = found["cell_fields"].as_array().unwrap().iter().map(|field| &field["name"]);
    assert!(names.into_iter().any(|name| name == "transmural"), "{found}");
}

#[test]
fn what_a_reader_left_out_is_told_by_convert_and_check() {
    let place = Workplace::new("");
    std::fs::write(place.path("a.inp"), ABAQUS).unwrap();
    for arguments in [&["convert", "a.inp", "a.msh"][..], &["check", "a.inp"]] {
        let said = mesh(&place, arguments, 0);
        assert!(said.contains("warning   a tetrahedron of order 2 is read as straight"), "{said}");
        assert!(
            said.contains("2.5e-1 longest edges away") || said.contains("curved shape is lost"),
            "{said}"
        );
    }
}

#[test]
fn commands_and_the_report_tell_what_was_divided() {
    let place = Workplace::new("");
    let file = root().join("examples/49-mixed-mesh/plate.msh");
    std::fs::copy(file, place.path("plate.msh")).unwrap();
    let note = "27 hexahedra, 54 prisms, 9 pyramids and 252 tetrahedra, divided into";
    let line = format!("file      {note}");
    let said = mesh(&place, &["info", "plate.msh"], 0);
    assert!(
        said.contains(&line) && said.contains("of kind tetrahedron") && !said.contains("warning"),
        "{said}"
    );
    let found: Value = serde_json::from_str(&mesh(&place, &["info", "plate.msh", "--json"], 0)).unwrap();
    assert!(found["division"].as_str().unwrap().starts_with(note), "{found}");
    assert!(mesh(&place, &["check", "plate.msh"], 0).contains(&line));
    assert!(mesh(&place, &["convert", "plate.msh", "plate.vtu"], 0).contains(&line));
    let info = mesh(&place, &["info", "plate.vtu"], 0);
    assert!(
        !info.contains("file      ") && info.contains("field     cell_of_file, 1 numbers a cell"),
        "{info}"
    );
}

#[test]
fn a_compressed_mesh_is_smaller_and_reads_the_same() {
    let place = Workplace::new("");
    mesh(&place, &["generate", "kind = \"box\", cells = [12, 12, 12]", "plain.vtu"], 0);
    mesh(&place, &["convert", "plain.vtu", "packed.vtu", "--compress"], 0);
    mesh(&place, &["convert", "packed.vtu", "again.vtu"], 0);
    let [plain, packed, again] =
        ["plain.vtu", "packed.vtu", "again.vtu"].map(|name| std::fs::read(place.path(name)).unwrap());
    assert_eq!(plain, again);
    assert!(3 * packed.len() < plain.len(), "{} of {}", packed.len(), plain.len());
    assert!(text(&packed[..400]).contains("vtkZLibDataCompressor"));
    let said = mesh(&place, &["convert", "plain.vtu", "mesh.msh", "--compress"], 2);
    assert!(said.contains("compressing a file of this format is not supported"), "{said}");
    assert!(!place.path("mesh.msh").exists());
}

#[test]
fn a_binary_mesh_of_gmsh_reads_the_same() {
    let place = Workplace::new("");
    mesh(&place, &["generate", "kind = \"ventricle\", h_mm = 4.0", "text.msh"], 0);
    mesh(&place, &["convert", "text.msh", "binary.msh", "--binary"], 0);
    mesh(&place, &["convert", "binary.msh", "again.msh"], 0);
    let [plain, binary, again] =
        ["text.msh", "binary.msh", "again.msh"].map(|name| std::fs::read(place.path(name)).unwrap());
    // The reader leaves out fields.
    assert!(plain.starts_with(&again) && binary != again);
    let said = mesh(&place, &["convert", "text.msh", "mesh.vtu", "--binary"], 2);
    assert!(said.contains("binary numbers in a file of this format is not supported"), "{said}");
    assert!(!place.path("mesh.vtu").exists());
}

#[test]
fn a_heart_of_opencarp_is_converted_to_millimetres_and_back() {
    let place = Workplace::new("");
    mesh(&place, &["generate", "kind = \"ventricle\", h_mm = 5.0", "heart.msh"], 0);
    mesh(&place, &["convert", "heart.msh", "carp.pts", "--scale", "1000"], 0);
    mesh(&place, &["convert", "carp", "back.vtu", "--scale", "1e-3"], 0);
    let info =
        |name: &str| -> Value { serde_json::from_str(&mesh(&place, &["info", name, "--json"], 0)).unwrap() };
    let (heart, carp, back) = (info("heart.msh"), info("carp.elem"), info("back.vtu"));
    let upper = |of: &Value| of["upper"][2].as_f64().unwrap();
    assert!(
        (upper(&carp) - 1e3 * upper(&heart)).abs() < 1e-9 && (upper(&back) - upper(&heart)).abs() < 1e-12
    );
    assert_eq!((&heart["n_nodes"], &heart["n_cells"]), (&back["n_nodes"], &back["n_cells"]));
    assert_eq!(carp["boundary"][0]["name"], "base");
    let said = mesh(&place, &["convert", "carp", "back.vtu", "--scale", "0"], 2);
    assert!(said.contains("scale: 0; a positive number is needed"), "{said}");
}

#[test]
fn fibres_are_written_and_wrong_parts_are_refused() {
    let place = Workplace::new("");
    mesh(&place, &["generate", "kind = \"ventricle\", h_mm = 3.0", "heart.msh"], 0);
    let parts = ["--endocardium", "endocardium", "--epicardium", "2", "--base", "z > 4.999"];
    let said = mesh(&place, &[&["fibres", "heart.msh", "-o", "out.vtu"], &parts[..]].concat(), 0);
    assert!(said.starts_with("out.vtu: "), "{said}");
    let found: Value = serde_json::from_str(&mesh(&place, &["info", "out.vtu", "--json"], 0)).unwrap();
    let names: Vec<_> = found["cell_fields"].as_array().unwrap().iter().map(|field| &field["name"]).collect();
    assert_eq!(names, ["apicobasal", "fibre", "sheet", "transmural"]);
    for (options, words) in [
        (&["--angles", "60"][..], "two numbers with a comma"),
        (&["--sheet-angles", "-1,inf"], "sheet_angles: inf; degrees are needed"),
        (&["--apex", "tip"], "apex: "),
        (&["--right-endocardium", "rv"], "right_endocardium: "),
    ] {
        let said = mesh(&place, &[&["fibres", "heart.msh", "-o", "b.vtu"], &parts[..], options].concat(), 2);
        assert!(said.contains(words), "{said}");
    }
    assert!(!place.path("b.vtu").exists());
}
