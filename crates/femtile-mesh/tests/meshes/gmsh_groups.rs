//! Physical groups of Gmsh: in partitioned files, with names of every spelling, several for a cell, or of no cell.

use femtile_mesh::Mesh;
use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::io::gmsh::parse;

/// A number of a file: of the C types `int`, `size_t` and `double`.
#[derive(Clone, Copy)]
enum Number {
    I(i32),
    S(u64),
    R(f64),
}

use Number::{I, R, S};

fn encoded(records: &[Vec<Number>], is_binary: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        for number in record {
            match (number, is_binary) {
                (I(i), true) => bytes.extend(i.to_le_bytes()),
                (S(i), true) => bytes.extend(i.to_le_bytes()),
                (R(x), true) => bytes.extend(x.to_le_bytes()),
                (I(i), false) => bytes.extend(format!("{i} ").bytes()),
                (S(i), false) => bytes.extend(format!("{i} ").bytes()),
                (R(x), false) => bytes.extend(format!("{x} ").bytes()),
            }
        }
        bytes.extend((!is_binary).then_some(b'\n'));
    }
    bytes
}

fn file(sections: &[(&str, Vec<Vec<Number>>)], is_binary: bool) -> Vec<u8> {
    let mark: &[u8] = if is_binary { b"4.1 1 8\n\x01\0\0\0" } else { b"4.1 0 8" };
    let names = "$PhysicalNames\n4\n1 5 \"inlet\"\n2 7 \"heater\"\n2 8 \"plate\"\n2 9 \"_part{1}\"\n$EndPhysicalNames\n";
    let mut bytes = [b"$MeshFormat\n", mark, b"\n$EndMeshFormat\n", names.as_bytes()].concat();
    for (name, records) in sections {
        bytes.extend(format!("${name}\n").bytes());
        bytes.extend(encoded(records, is_binary));
        bytes.extend(format!("\n$End{name}\n").bytes());
    }
    bytes
}

/// An entity from its bounding box on.
fn entity(groups: &[i32]) -> Vec<Number> {
    let groups = [S(groups.len() as u64)].into_iter().chain(groups.iter().map(|&group| I(group)));
    [R(0.0); 6].into_iter().chain(groups).chain([S(0)]).collect()
}

fn part_of(tag: i32, parent: [i32; 2], groups: &[i32]) -> Vec<Number> {
    [vec![I(tag), I(parent[0]), I(parent[1]), S(1), I(1)], entity(groups)].concat()
}

/// Two squares side by side, each an entity that is left to one partition, and a border between them.
fn partitioned(is_binary: bool) -> Vec<u8> {
    let whole = |tag: i32, group: i32| [vec![I(tag)], entity(&[group])].concat();
    let counts = |curves: u64, surfaces: u64| vec![S(0), S(curves), S(surfaces), S(0)];
    let nodes: Vec<Vec<Number>> =
        (0..6).map(|i| vec![R(f64::from(i % 3)), R(f64::from(i / 3)), R(0.0)]).collect();
    let numbers = (1..7).map(|number| vec![S(number)]).collect();
    let element = |numbers: &[u64]| numbers.iter().map(|&number| S(number)).collect::<Vec<Number>>();
    let sections = [
        ("Entities", vec![counts(1, 2), whole(1, 5), whole(1, 7), whole(2, -8)]),
        (
            "PartitionedEntities",
            vec![
                vec![S(2), S(1), I(90), I(2)],
                counts(2, 2),
                part_of(11, [1, 1], &[]),
                // Its parent is a surface, not the curve of that number.
                part_of(12, [2, 1], &[]),
                part_of(21, [2, 1], &[9]),
                part_of(22, [2, 2], &[8]),
            ],
        ),
        ("Nodes", [vec![vec![S(1), S(6), S(1), S(6), I(2), I(21), I(0), S(6)]], numbers, nodes].concat()),
        (
            "Elements",
            vec![
                vec![S(4), S(4), S(1), S(4), I(1), I(11), I(1), S(1)],
                element(&[1, 1, 4]),
                vec![I(1), I(12), I(1), S(1)],
                element(&[2, 2, 5]),
                vec![I(2), I(21), I(3), S(1)],
                element(&[3, 1, 2, 5, 4]),
                vec![I(2), I(22), I(3), S(1)],
                element(&[4, 2, 3, 6, 5]),
            ],
        ),
    ];
    let ghosts = "$GhostElements\n1\n3 1 1 2\n$EndGhostElements\n";
    [file(&sections, is_binary), ghosts.into()].concat()
}

fn read(bytes: impl AsRef<[u8]>) -> Mesh {
    parse("a.msh".as_ref(), bytes.as_ref()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn parts_of_entities_have_the_groups_of_the_entities() {
    for is_binary in [false, true] {
        let mesh = read(partitioned(is_binary));
        assert_eq!((&mesh.cell_tags[..], &mesh.facets.tags[..]), (&[7, 8][..], &[5][..]));
        assert_eq!(mesh.facet(0), [0, 3]);
        let notes = mesh.notes.join("\n");
        assert!(notes.contains("`$GhostElements`"), "{notes}");
        assert!(notes.contains("1 of `heater` (7) is not in `_part{1}` (9)"), "{notes}");
        assert_eq!(mesh.notes.len(), 2, "{notes}");
    }
}

#[test]
fn groups_that_partitions_repeat_are_bounded_by_the_file() {
    let (groups, parts): (Vec<i32>, _) = ((1..2000).collect(), 1000);
    let mut entities = vec![vec![S(2), S(0)], vec![S(0), S(0), S(parts), S(0)]];
    entities.extend((0..parts as i32).map(|tag| part_of(10 + tag, [2, 1], &[])));
    let whole = vec![vec![S(0), S(0), S(1), S(0)], [vec![I(1)], entity(&groups)].concat()];
    let bytes = file(&[("Entities", whole), ("PartitionedEntities", entities)], false);
    let error = parse("a.msh".as_ref(), &bytes).unwrap_err().to_string();
    assert!(error.contains("entities are in many physical groups"), "{error}");
}

/// A square of two triangles in version 2, with a section before the nodes and elements after them.
fn square(version: &str, section: &str, elements: &[&str]) -> String {
    format!(
        "$MeshFormat\n{version} 0 8\n$EndMeshFormat\n{section}$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0\n$EndNodes\n\
         $Elements\n{}\n{}\n$EndElements\n",
        elements.len(),
        elements.join("\n")
    )
}

const TRIANGLES: [&str; 2] = ["1 2 2 1 1 1 2 3", "2 2 2 1 1 1 3 4"];

#[test]
fn names_of_groups_are_read_in_every_spelling() {
    let name_of = |version: &str, line: &str| {
        let section = format!("$PhysicalNames\n1\n{line}\n$EndPhysicalNames\n");
        read(square(version, &section, &TRIANGLES)).tag_names
    };
    for (version, line, name) in [
        ("2.2", "2 1 \"left plate\"", "left plate"),
        ("2.2", "2 1 \"plate\" of steel", "plate"),
        ("2.2", "2 1 grain1", "grain1"),
        ("2.2", "2 1 left plate", "left plate"),
        ("2.2", "2 1.0 \"plate\"", "plate"),
        ("2", "1 \"plate\"", "plate"),
        ("2", "1 plate", "plate"),
        ("2", "1\"plate\"", "plate"),
        ("2.2", "2 1\"left plate\"", "left plate"),
        ("2.2", "-1 1 \"plate\"", "plate"),
    ] {
        assert_eq!(name_of(version, line), [((2, 1), name.to_string())].into(), "{line}");
    }
    assert_eq!(name_of("2", "9 \"edge\""), [].into(), "no facet and no cell has it");
    for line in ["2 1", "2 1 \"plate", "-2 1 plate"] {
        let section = format!("$PhysicalNames\n1\n{line}\n$EndPhysicalNames\n");
        let error = parse("a.msh".as_ref(), square("2.2", &section, &TRIANGLES).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("a.msh: line"), "{line}: {error}");
    }
}

#[test]
fn comments_may_stand_before_the_format_and_tags_may_be_written_as_real_numbers() {
    let text = square("2.2", "", &["1 2 2 11.0 1 1 2 3", "2 2 2 11.0 1 1 3 4"]);
    let mesh = read(format!("$Comments\nwritten by\nhand\n$EndComments\n{text}"));
    assert_eq!(mesh.cell_tags, [11, 11]);
    let error = |text: &str| parse("a.msh".as_ref(), text.as_bytes()).unwrap_err().to_string();
    assert!(error(&text.replace("11.0", "11.5")).contains("not `11.5`"));
}

#[test]
fn parametric_nodes_are_nodes() {
    let text = square("2.2", "", &TRIANGLES);
    let parametric = text.replace("Nodes", "ParametricNodes").replace(
        "1 0 0 0\n2 1 0 0\n3 1 1 0\n4 0 1 0",
        "1 0 0 0 0 1\n2 1 0 0 1 4 0.5\n3 1 1 0 2 1 0.25 0.75\n4 0 1 0 3 1",
    );
    assert_eq!(read(&parametric), read(&text));
    let error = parse("a.msh".as_ref(), parametric.replace("1 4 0.5", "1 4").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("line 8"), "{error}");
}

#[test]
fn cells_in_two_groups_keep_the_first_and_a_note_names_both() {
    let names = "$PhysicalNames\n3\n1 5 \"hot\"\n2 1 \"plate\"\n2 2 \"all parts\"\n$EndPhysicalNames\n";
    let elements = ["9 1 2 5 1 4 1", TRIANGLES[0], TRIANGLES[1], "3 2 2 2 1 2 3 1", "4 2 2 3 1 1 4 3"];
    let mesh = read(square("2.2", names, &elements));
    assert_eq!((mesh.n_cells(), &mesh.cell_tags[..], &mesh.facets.tags[..]), (2, &[1, 1][..], &[5][..]));
    let [note] = &mesh.notes[..] else { panic!("{:?}", mesh.notes) };
    assert!(
        note.contains("1 of `plate` (1) is not in `all parts` (2), 1 of `plate` (1) is not in 3"),
        "{note}"
    );
    // The same cell twice in one group is a fault of the mesh.
    let twice = read(square("2.2", names, &[TRIANGLES[0], TRIANGLES[1], "3 2 2 1 1 2 3 1", elements[4]]));
    assert_eq!(twice.n_cells(), 3);
}

#[test]
fn the_check_drops_names_that_no_cell_has() {
    let names =
        "$PhysicalNames\n4\n1 5 \"hot\"\n2 1 \"plate\"\n2 2 \"empty\"\n2 0 \"rest\"\n$EndPhysicalNames\n";
    let mut mesh = read(square("2.2", names, &TRIANGLES));
    assert_eq!(mesh.tag_names.len(), 4);
    check(&mut mesh, &CheckConfig::default()).unwrap();
    let names: Vec<&str> = mesh.tag_names.values().map(String::as_str).collect();
    assert_eq!(names, ["hot", "plate"]);
    mesh.tag_cells("left", &[0]).unwrap();
    mesh.tag_cells("right", &[0, 1]).unwrap();
    let names: Vec<&str> = mesh.tag_names.values().map(String::as_str).collect();
    assert_eq!(names, ["hot", "right"]);
}
