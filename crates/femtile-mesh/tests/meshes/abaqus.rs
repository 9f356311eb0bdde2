//! Input files of Abaqus and CalculiX: sets, surfaces and parts, and what is refused.

use std::path::Path;

use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::{CellKind, Mesh, io};

fn read(text: &str) -> Result<Mesh, String> {
    io::abaqus::parse(Path::new("a.inp"), text.as_bytes()).map_err(|error| error.to_string())
}

/// Two cubes side by side along x, numbered as nobody would.
const CUBES: &str = "*Heading\n two cubes\n** a comment\n*NODE, NSET=all\n101, 0, 0, 0\n102, 1.0\n103, 2.\n104, 0, 1, 0\n\
    105, 1, 1\n106, 2, 1\n201, 0, 0, 1\n202, 1, 0, 1\n203, 2, 0, 1.D0\n204, 0, 1, 1\n205, 1, 1, 1\n206, 2, 1, 1\n\
    *Element, type=C3D8R,\n elset=Body\n7, 101, 102, 105, 104,\n 201, 202, 205, 204\n\
    9, 102, 103, 106, 105, 202, 203, 206, 205\n";

/// Facets with their tags, nodes sorted.
fn facets(mesh: &Mesh, name: &str) -> Vec<Vec<u32>> {
    let tag = mesh
        .tag_names
        .iter()
        .find(|((dimension, _), found)| *dimension == mesh.dimension() - 1 && *found == name);
    let tag = tag.unwrap_or_else(|| panic!("no {name} in {:?}", mesh.tag_names)).0.1;
    let of_tag = (0..mesh.facets.tags.len()).filter(|&facet| mesh.facets.tags[facet] == tag);
    let mut found: Vec<Vec<u32>> = of_tag
        .map(|facet| {
            let mut nodes = mesh.facet(facet).to_vec();
            nodes.sort_unstable();
            nodes
        })
        .collect();
    found.sort();
    found
}

#[test]
fn sets_of_elements_are_regions_and_the_one_of_a_section_wins() {
    let mesh = read(CUBES).unwrap();
    assert_eq!((mesh.kind, mesh.n_nodes(), mesh.points[2]), (CellKind::Hexahedron, 12, [2.0, 0.0, 0.0]));
    assert_eq!(mesh.cell(1), [1, 2, 5, 4, 7, 8, 11, 10]);
    assert_eq!(
        (mesh.cell_tags[0], &mesh.tag_names[&(3, mesh.cell_tags[0])][..]),
        (mesh.cell_tags[1], "Body")
    );
    let more = [CUBES, "*elset, elset=right\n9\n*ELSET, ELSET=Both, GENERATE\n1, 9, 2\n"].concat();
    let named = |mesh: &Mesh| -> Vec<String> {
        mesh.cell_tags.iter().map(|&tag| mesh.tag_names[&(3, tag)].clone()).collect()
    };
    assert_eq!(named(&read(&more).unwrap()), ["Both", "Both"]);
    let sections = [&more, "*SOLID SECTION, ELSET=RIGHT, MATERIAL=steel\n"].concat();
    assert_eq!(named(&read(&sections).unwrap()), ["Both", "right"]);
    // A set for a surface, and one that a program made for itself, are no regions.
    let others = "*Elset, elset=_s_S4, internal\n7\n*ELSET, ELSET=side\n9\n*SURFACE, NAME=s\nside, S4\n";
    let mesh = read(&[&sections, others].concat()).unwrap();
    assert_eq!(named(&mesh), ["Both", "right"]);
    assert_eq!(facets(&mesh, "s"), [[2, 5, 8, 11]]);
}

#[test]
fn sides_of_surfaces_are_those_of_the_manual() {
    let sides = [[0, 1, 3, 4], [6, 7, 9, 10], [0, 1, 6, 7], [1, 4, 7, 10], [3, 4, 9, 10], [0, 3, 6, 9]];
    for (side, expected) in sides.into_iter().enumerate() {
        let mesh = read(&format!("{CUBES}*Surface, type=ELEMENT, name=Face\n7, s{}\n", side + 1)).unwrap();
        assert_eq!(facets(&mesh, "Face"), [expected], "S{}", side + 1);
    }
    let tetrahedron = "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n*ELEMENT,TYPE=C3D4\n1,1,2,3,4\n";
    for (side, expected) in [[0, 1, 2], [0, 1, 3], [1, 2, 3], [0, 2, 3]].into_iter().enumerate() {
        let mesh = read(&format!("{tetrahedron}*SURFACE, NAME=Face\n1, S{}\n", side + 1)).unwrap();
        assert_eq!(facets(&mesh, "Face"), [expected], "S{}", side + 1);
    }
    let square = "*NODE\n1,0,0\n2,1,0\n3,1,1\n4,0,1\n*ELEMENT,TYPE=CPE4\n1,1,2,3,4\n";
    let mesh = read(&format!("{square}*SURFACE, NAME=top\n1, S3\n")).unwrap();
    assert_eq!(facets(&mesh, "top"), [[2, 3]]);
}

#[test]
fn sets_of_nodes_and_elements_of_lower_dimension_tag_the_boundary() {
    let shells = "*ELEMENT, TYPE=S4, ELSET=skin\n20, 101, 104, 204, 201\n*SURFACE, NAME=out\nskin, SPOS\n";
    // All nodes of the face between the cubes, of the face x = 2, and one more.
    let nodes = "*NSET, NSET=right\n103, 106,\n203, 206, 102, 105, 202\n205\n*Nset, nset=\"Under\", generate\n101, 106\n\
                 *SURFACE, TYPE=NODE, NAME=again\nright\n101\n";
    let mut mesh = read(&[CUBES, shells, nodes].concat()).unwrap();
    assert_eq!(facets(&mesh, "skin"), [[0, 3, 6, 9]]);
    assert_eq!(facets(&mesh, "out"), facets(&mesh, "skin"));
    let right = [[1, 2, 4, 5], [1, 2, 7, 8], [2, 5, 8, 11], [4, 5, 10, 11], [7, 8, 10, 11]];
    assert_eq!(facets(&mesh, "right"), right, "not the face that both cubes have");
    assert_eq!(facets(&mesh, "again"), right);
    assert_eq!(facets(&mesh, "Under"), [[0, 1, 3, 4], [1, 2, 4, 5]]);
    assert!(!mesh.tag_names.values().any(|name| name == "all"), "{:?}", mesh.tag_names);
    let report = check(&mut mesh, &CheckConfig::default()).unwrap();
    assert!(report.warnings.is_empty() && (report.volume - 2.0).abs() < 1e-12, "{report:?}");
}

#[test]
fn one_part_with_one_instance_is_flattened() {
    let (head, elements) = CUBES.split_at(CUBES.find("*Element").unwrap());
    let assembly = "*Elset, elset=Set-1\n7\n*End Part\n*Assembly, name=Assembly\n*Instance, name=P-1, part=P\n10., 0., 0.5\n\
                    *End Instance\n*Node\n 101, 5., 5., 5.\n*Nset, nset=reference\n 101\n\
                    *Elset, elset=Set-1, instance=P-1\n 9\n*Elset, elset=_F_S6, internal, instance=P-1\n 7\n\
                    *Surface, type=ELEMENT, name=F\n _F_S6, S6\n*Surface, name=G\nP-1.Set-1, S1\nSet-1, S2\n\
                    *End Assembly\n*Step\n*Element Output\nS\n";
    let mesh = read(&["*Part, name=P\n", head, elements, assembly].concat()).unwrap();
    assert_eq!((mesh.n_nodes(), mesh.points[0]), (12, [10.0, 0.0, 0.5]));
    assert_eq!(facets(&mesh, "F"), [[0, 3, 6, 9]]);
    assert_eq!(
        facets(&mesh, "G"),
        [[0, 1, 3, 4], [7, 8, 10, 11]],
        "the part's set, then that of the assembly"
    );
    let two = "*PART, NAME=A\n*END PART\n*PART, NAME=B\n*END PART\n";
    assert!(read(two).unwrap_err().contains("line 3: a file of several parts is not supported"));
    let instances =
        "*PART, NAME=A\n*END PART\n*ASSEMBLY\n*INSTANCE, NAME=A-1\n*END INSTANCE\n*INSTANCE, NAME=A-2\n";
    assert!(read(instances).unwrap_err().contains("line 6: an assembly of several instances"));
    let turned = "*INSTANCE, NAME=A\n0,0,0\n0,0,0,0,0,1,90.\n";
    assert!(read(turned).unwrap_err().contains("line 3: an instance that is rotated"));
}

#[test]
fn hexahedra_of_twenty_nodes_are_curved() {
    let corners = [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [0, 0, 2], [2, 0, 2], [2, 2, 2], [0, 2, 2]];
    let edges =
        [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]];
    let middle = |[a, b]: [usize; 2]| std::array::from_fn(|d| (corners[a][d] + corners[b][d]) / 2);
    let points: Vec<[i32; 3]> = corners.into_iter().chain(edges.map(middle)).collect();
    let mut text = String::from("*NODE\n");
    for (node, [x, y, z]) in points.iter().enumerate() {
        text += &format!("{}, {x}, {y}, {z}\n", node + 1);
    }
    text +=
        "*ELEMENT, TYPE=C3D20R\n1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,\n15, 16, 17, 18, 19, 20\n";
    let mut mesh = read(&text).unwrap();
    let curved = mesh.curved.as_ref().unwrap();
    assert_eq!((curved.order, mesh.n_nodes()), (2, 8));
    let place = |point: &u32| curved.points[*point as usize];
    let lattice = (0..27).map(|i| [i % 3, i / 3 % 3, i / 9].map(f64::from));
    assert!(curved.cells.iter().map(place).eq(lattice), "{:?}", curved.points);
    let volume = check(&mut mesh, &CheckConfig::default()).unwrap().volume;
    assert!((volume - 8.0).abs() < 1e-12, "{volume}");
}

#[test]
fn what_is_not_read_is_refused_by_name_and_line() {
    let nodes = "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n";
    for (text, expected) in [
        ("*ELEMENT, TYPE=SC6R\n1,1,2,3,4,5,6\n", "line 6: the Abaqus element type `SC6R` is not supported"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3\n", "line 7: element 1 has 3 nodes where 4 are needed"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,4,1\n", "line 7: element 1 has 5 nodes where 4 are needed"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,x\n", "line 7: a node of an element should be a whole number"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,9\n", "an element uses node 9, which no `*NODE` has"),
        ("*ELEMENT\n1,1,2,3,4\n", "line 6: `*ELEMENT` has no `TYPE`"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n1,1,2,3,4\n", "two elements have the number 1"),
        ("*NODE\n1,2,3,nan\n", "line 7: a coordinate is NaN"),
        ("*NODE\n4,2,3,4\n*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n", "two nodes have the number 4"),
        ("*NODE, INPUT=nodes.txt\n", "line 6: `*NODE` whose lines are in another file"),
        ("*NODE, SYSTEM=C\n1,1,1,1\n", "line 6: nodes in the coordinates `C`"),
        ("*INCLUDE, INPUT=a.inp\n", "line 6: `*INCLUDE` whose lines are in another file"),
        ("*INCLUDE\n", "line 6: `*INCLUDE` names no file by `INPUT=`"),
        ("*NGEN\n1,2\n", "line 6: the keyword `*NGEN`"),
        ("*ELSET, ELSET=a, GENERATE\n5, 1\n", "line 7: `5, 1` is no range"),
        ("*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n*ELSET, ELSET=a\na\n", "the set `a` holds sets within sets"),
        (
            "*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n*SURFACE, NAME=f\n1, S5\n",
            "line 8: the surface `f` names the side `S5`",
        ),
        (
            "*ELEMENT, TYPE=C3D4\n1,1,2,3,4\n*SURFACE, NAME=f\n1\n",
            "line 8: the surface `f` names the side ``",
        ),
        ("", "the file has no triangles, tetrahedra or other cells"),
    ] {
        let said = read(&[nodes, text].concat()).unwrap_err();
        assert!(
            said.starts_with("a.inp: ") && said.contains(expected),
            "`{said}` should contain `{expected}`"
        );
    }
}

#[test]
fn members_that_the_file_does_not_define_are_left_out_with_a_note() {
    for (text, expected) in [
        ("*ELSET, ELSET=a\n7, 3\n", "line 23: the set `a` holds element 3, which the file does not define"),
        ("*ELSET, ELSET=a\nb, 7\n", "line 23: the set `a` holds a set `b`"),
        ("*NSET, NSET=n\n101, 104,\n** a comment\n201, 204, 29\n", "line 25: the set `n` holds node 29"),
        (
            "*SURFACE, NAME=f\n7, S1\n*SURFACE, NAME=g\nnone, S1\n",
            "line 24: the surface `g` names element `NONE`",
        ),
        ("*SURFACE, NAME=f, TYPE=NODE\n999\n", "line 22: the surface `f` names node `999`"),
    ] {
        let mesh = read(&[CUBES, text].concat()).unwrap_or_else(|said| panic!("{text}: {said}"));
        assert!(mesh.n_cells() == 2 && mesh.notes.len() == 1, "{:?}", mesh.notes);
        assert!(mesh.notes[0].contains(expected), "`{}` should contain `{expected}`", mesh.notes[0]);
        // A surface or set of nothing names nothing.
        assert!(!mesh.tag_names.values().any(|name| name == "g"));
    }
    let mesh = read(&[CUBES, "*NSET, NSET=n\n101, 104, 201, 204, 29\n"].concat()).unwrap();
    assert_eq!(facets(&mesh, "n"), [[0, 3, 6, 9]]);
}

#[test]
fn elements_beside_the_mesh_are_left_out_with_a_note() {
    let text = "*ELEMENT, TYPE=MASS, ELSET=M\n20, 101\n*MASS, ELSET=M\n2.5\n*ELEMENT, TYPE=SpringA, ELSET=S\n21, 101, 102\n\
                22, 102, 103\n*ELEMENT, TYPE=U1, ELSET=User\n30, 101, 102,\n103, 104\n*ELEMENT, TYPE=B31, ELSET=Beam\n\
                40, 101, 102\n*ELSET, ELSET=all\n7, 9, 20, 21, 22, S\n";
    let mesh = read(&[CUBES, text].concat()).unwrap();
    assert_eq!((mesh.kind, mesh.n_cells(), mesh.facets.tags.len()), (CellKind::Hexahedron, 2, 0));
    assert_eq!(
        mesh.notes,
        ["elements that are no cells are left out, of the types `MASS`, `SPRINGA`, `U1`, `B31`"]
    );
    assert_eq!(mesh.tag_names[&(3, mesh.cell_tags[0])], "all");
    // In the plane beams are lines of the boundary.
    let plane = "*NODE\n1,0,0\n2,1,0\n3,1,1\n4,0,1\n*ELEMENT, TYPE=CPS4\n1,1,2,3,4\n*ELEMENT, TYPE=B21, ELSET=low\n2,1,2\n";
    let mesh = read(plane).unwrap();
    assert_eq!((facets(&mesh, "low"), mesh.notes.len()), (vec![vec![0, 1]], 0));
    let said = read("*NODE\n1,0,0\n*ELEMENT, TYPE=MASS\n1,1\n").unwrap_err();
    assert!(said.contains("the file has no triangles"), "{said}");
}

#[test]
fn sets_that_multiply_a_short_file_are_refused() {
    let mut text = [CUBES, "*ELSET, ELSET=s0\n7, 9\n"].concat();
    for i in 1..60 {
        text += &format!("*ELSET, ELSET=s{i}\ns{}, s{}\n", i - 1, i - 1);
    }
    let said = read(&text).unwrap_err();
    assert!(said.contains("are longer than such a file can need"), "{said}");
    let mut text = String::from(CUBES);
    for i in 0..400 {
        text += &format!("*SURFACE, NAME=s{i}\nBody, S1\nBody, S2\nBody, S3\nBody, S4\nBody, S5\nBody, S6\n");
    }
    let said = read(&text).unwrap_err();
    assert!(said.contains("most facets belong to several sets and surfaces"), "{said}");
}

#[test]
fn three_corners_of_a_quadrilateral_face_do_not_tag_half_of_it() {
    let prism = "*NODE\n1,0,0,0\n2,1,0,0\n3,0,1,0\n4,0,0,1\n5,1,0,1\n6,0,1,1\n*ELEMENT, TYPE=C3D6\n1,1,2,3,4,5,6\n*NSET, NSET=side\n";
    for (set, n_facets) in [("1,2,5\n", 0), ("1,2,5,4\n", 2), ("1,2,3\n", 1), ("1,2,3,4,5\n", 3)] {
        let mesh = read(&[prism, set].concat()).unwrap();
        assert_eq!((mesh.n_cells(), mesh.facets.tags.len()), (3, n_facets), "{set}");
    }
}
