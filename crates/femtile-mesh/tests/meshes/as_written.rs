//! Files as other programs write them: ghost cells, wide regions, markers that are not announced, keywords in other letters.

use std::path::Path;

use femtile_mesh::{CellKind, Mesh, MeshError, io};

fn in_words(result: Result<Mesh, MeshError>) -> Result<Mesh, String> {
    result.map_err(|error| error.to_string())
}

/// The unit square of two triangles as one piece of a VTU file, with these arrays.
fn piece(cell_data: &str, point_data: &str) -> String {
    format!(
        "<Piece NumberOfPoints=\"4\" NumberOfCells=\"2\"><Points><DataArray type=\"Float64\" NumberOfComponents=\"3\" \
         format=\"ascii\">0 0 0 1 0 0 1 1 0 0 1 0</DataArray></Points><Cells><DataArray type=\"Int32\" Name=\"connectivity\" \
         format=\"ascii\">0 1 2 0 2 3</DataArray><DataArray type=\"Int32\" Name=\"offsets\" format=\"ascii\">3 6</DataArray>\
         <DataArray type=\"UInt8\" Name=\"types\" format=\"ascii\">5 5</DataArray></Cells><CellData>{cell_data}</CellData>\
         <PointData>{point_data}</PointData></Piece>"
    )
}

fn array(name: &str, kind: &str, values: &str) -> String {
    format!("<DataArray type=\"{kind}\" Name=\"{name}\" format=\"ascii\">{values}</DataArray>")
}

fn document(pieces: &str) -> String {
    format!("<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid>{pieces}</UnstructuredGrid></VTKFile>")
}

fn vtu(pieces: &[String]) -> Result<Mesh, String> {
    in_words(io::vtu::parse(Path::new("a.vtu"), document(&pieces.concat()).as_bytes()))
}

/// The square as a legacy file, with this data of its cells.
fn vtk(data: &str) -> String {
    format!(
        "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n0 0 0 1 0 0 1 1 0 0 1 0\n\
         CELLS 2 8\n3 0 1 2\n3 0 2 3\nCELL_TYPES 2\n5 5\n{data}"
    )
}

fn vtk_mesh(data: &str) -> Result<Mesh, String> {
    in_words(io::vtk::parse(Path::new("a.vtk"), vtk(data).as_bytes()))
}

fn volume(mesh: &Mesh) -> f64 {
    (0..mesh.n_cells()).map(|cell| mesh.volume_by_corners(cell)).sum()
}

#[test]
fn cells_that_another_piece_has_or_that_are_hidden_are_left_out() {
    let ghosts = |values: &str| array("vtkGhostType", "UInt8", values);
    let half = |values: &str| array("half", "Float64", values);
    let mesh = vtu(&[
        piece(&(ghosts("0 1") + &half("1 2")), ""),
        piece(&(half("3 4") + &ghosts("1 0")), &array("u", "Float64", "1 2 3 4")),
    ])
    .unwrap();
    assert_eq!((mesh.n_cells(), volume(&mesh)), (2, 1.0));
    assert_eq!(mesh.cell_fields["half"].values, [1.0, 4.0]);
    // A field that a piece lacks, and the marks, are no fields.
    assert!(mesh.cell_fields.len() == 1 && mesh.node_fields.is_empty());
    assert!(mesh.notes[0].contains("2 ghost cells are left out"), "{:?}", mesh.notes);

    // A later piece alone has marks; bits of other meaning leave no cell out.
    assert_eq!(vtu(&[piece("", ""), piece(&ghosts("32 8"), "")]).unwrap().n_cells(), 2);
    assert_eq!(vtu(&[piece(&ghosts("2 16"), "")]).unwrap().notes, [""; 0]);
    let hidden_point = array("vtkGhostType", "UInt8", "0 2 0 0");
    assert_eq!(vtu(&[piece("", &hidden_point)]).unwrap().cells, [0, 2, 3]);
    let duplicate_point = array("vtkGhostType", "UInt8", "0 1 0 0");
    assert_eq!(vtu(&[piece("", &duplicate_point)]).unwrap().n_cells(), 2);
    assert_eq!(vtu(&[piece(&array("vtkGhostLevels", "UInt8", "2 0"), "")]).unwrap().cells, [0, 2, 3]);

    let mesh =
        vtk_mesh("CELL_DATA 2\nSCALARS vtkGhostType unsigned_char\nLOOKUP_TABLE default\n1 0\n").unwrap();
    assert_eq!((&mesh.cells[..], mesh.cell_fields.len()), (&[0, 2, 3][..], 0));
    assert!(mesh.notes[0].contains("a ghost cell is left out"), "{:?}", mesh.notes);
}

#[test]
fn tags_of_more_than_32_bits_are_refused_with_the_cell() {
    let said = vtu(&[piece(&array("region", "Int64", "7 3000000001"), "")]).unwrap_err();
    assert!(
        said.starts_with("a.vtu: byte ") && said.contains("`region` has the value 3000000001 in cell 1"),
        "{said}"
    );
    let said = vtu(&[piece("", ""), piece(&array("region", "Int64", "-3000000001 0"), "")]).unwrap_err();
    assert!(said.contains("the value -3000000001 in cell 2;"), "{said}");
    let said = vtk_mesh("CELL_DATA 2\nSCALARS region long\nLOOKUP_TABLE default\n3000000001\n3000000002\n")
        .unwrap_err();
    assert!(said.starts_with("a.vtk: line 15: array `region` has the value 3000000001 in cell 0"), "{said}");
    let node = b"3 2 0 0\n1 0 0\n2 1 0\n3 0 1\n";
    let parse = |edge: &[u8]| io::tetgen::parse(Path::new("a.node"), node, b"1 3 0\n1 1 2 3\n", Some(edge));
    let said = in_words(parse(b"1 1\n# a comment\n 8 1 2 3000000001\n")).unwrap_err();
    assert_eq!(said, "a.edge: line 3: the marker of facet 8 is not a whole number of 32 bits");
}

#[test]
fn the_array_of_the_tags_can_be_chosen() {
    let data = array("MaterialIDs", "Float64", "5 -2")
        + &array("region", "Int32", "1 1")
        + &array("s", "Float64", "0.5 1");
    let text = document(&piece(&data, ""));
    let tagged = |name: &str| in_words(io::vtu::parse_tagged(Path::new("a.vtu"), text.as_bytes(), name));
    let mesh = tagged("MaterialIDs").unwrap();
    assert_eq!((&mesh.cell_tags[..], mesh.cell_fields.len()), (&[5, -2][..], 2));
    assert_eq!(
        tagged("materialids").unwrap_err(),
        "tags: the file has no array `materialids` of cells; it has `MaterialIDs`, `region`, `s`"
    );
    assert!(tagged("s").unwrap_err().contains("array `s` has the value 0.5 in cell 0"));
    let vector =
        document(&piece(&array("v", "Int8", "1 2 3 4").replace("Name", "NumberOfComponents=\"2\" Name"), ""));
    let said = in_words(io::vtu::parse_tagged(Path::new("a.vtu"), vector.as_bytes(), "v")).unwrap_err();
    assert!(said.contains("`v` has 2 numbers for each cell"), "{said}");
    // By default the last array with a usual name is taken, and this is said.
    let mesh =
        vtu(&[piece(&(array("region", "Int32", "1 1") + &array("mat_id", "Int32", "4 6")), "")]).unwrap();
    assert_eq!(mesh.cell_tags, [4, 6]);
    assert!(mesh.notes[0].contains("those of the array `mat_id`, not of `region`"), "{:?}", mesh.notes);
}

#[test]
fn of_the_arrays_of_several_time_steps_the_first_is_read() {
    let step = |number: u32, values: &str| {
        array("V", "Float64", values).replace("Name", &format!("TimeStep=\"{number}\" Name"))
    };
    let mesh = vtu(&[piece("", &(step(0, "1 2 3 4") + &step(1, "5 6 7 8")))]).unwrap();
    assert_eq!(mesh.node_fields["V"].values, [1.0, 2.0, 3.0, 4.0]);
    assert!(mesh.notes[0].contains("time steps"), "{:?}", mesh.notes);
}

#[test]
fn keywords_of_vtk_and_medit_may_have_letters_of_either_case() {
    let data = "CELL_DATA 2\nScalars  Region int 1\nLOOKUP_TABLE colours\n7 8\nLookup_Table colours 2\n0 0 0 1\n1 1 1 1\n\
                Point_Data 4\nVectors v float\n0 0 0 1 0 0 0 0 0 0 0 0\n";
    let text = vtk(data)
        .replace("ASCII", "ascii")
        .replace("UNSTRUCTURED_GRID", "Unstructured_Grid")
        .replace("CELLS", "Cells");
    let mesh = io::vtk::parse(Path::new("a.vtk"), text.as_bytes()).unwrap();
    assert_eq!((&mesh.cell_tags[..], mesh.node_fields["v"].n_components), (&[7, 8][..], 3));
    let medit = "MESHVERSIONFORMATTED 2\nDIMENSION 2\nVERTICES\n3\n0 0 1.0\n1 0 1\n0 1 1\nTRIANGLES\n1\n1 2 3 7.0\nEND\n";
    assert_eq!(io::medit::parse(Path::new("a.mesh"), medit.as_bytes()).unwrap().cell_tags, [7]);
}

#[test]
fn texts_in_quotes_that_bamg_writes_are_passed_over() {
    let text = "MeshVersionFormatted 0\nDimension\n2\nIdentifier\n\"G=dom.mesh;1, Date: 21/01/01 # 3\"\nGeometry\n\"dom.mesh\"\n\
                Vertices\n3\n0 0 1\n1 0 1\n0 1 1\nTriangles\n1\n1 2 3 4\nSubDomainFromMesh\n1\n3 1 1 0\nEnd\n";
    let mesh = io::medit::parse(Path::new("a.mesh"), text.as_bytes()).unwrap();
    assert_eq!((mesh.n_nodes(), &mesh.cell_tags[..]), (3, &[4][..]));
    let open = in_words(io::medit::parse(Path::new("a.mesh"), &text.as_bytes()[..60])).unwrap_err();
    assert!(open.contains("`Identifier` has no end"), "{open}");
}

#[test]
fn columns_that_a_tetgen_file_does_not_announce_are_left_out_with_a_note() {
    let node = "4 3 0 0\n0 0 0 0 1\n1 1 0 0 1\n2 0 1 0 1\n3 0 0 1 1\n";
    let parse = |node: &str, ele: &str, face: &str| {
        in_words(io::tetgen::parse(
            Path::new("a.node"),
            node.as_bytes(),
            ele.as_bytes(),
            Some(face.as_bytes()),
        ))
    };
    let mesh = parse(node, "1 4 0\n0 0 1 2 3\n", "1 0\n0 0 1 2 0 -1\n").unwrap();
    assert!(mesh.facets.tags.is_empty() && mesh.notes.len() == 2, "{:?}", mesh.notes);
    assert!(mesh.notes[0].contains("`a.node` has more columns") && mesh.notes[1].contains("`a.face`"));
    // Neighbours of `tetgen -nn` follow the marker.
    let mesh = parse(node, "1 4 0\n0 0 1 2 3\n", "1 1\n0 0 1 2 5.0 0 -1\n").unwrap();
    assert_eq!(mesh.facets.tags, [5]);
    // A marker of nodes that is announced may be missing.
    let unmarked = "4 3 0 1\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 0 0 1\n";
    assert_eq!(parse(unmarked, "1 4 0\n0 0 1 2 3\n", "0 0\n").unwrap().notes, [""; 0]);
    // Nodes on edges of facets belong to cells of order 2, and need no note.
    let plane = "6 2 0 0\n0 0 0\n1 1 0\n2 0 1\n3 .5 .5\n4 0 .5\n5 .5 0\n";
    let mesh = parse(plane, "1 6 0\n0 0 1 2 3 4 5\n", "3 0\n0 0 1 5\n1 0 2 4\n2 1 2 3\n").unwrap();
    assert!(mesh.notes.len() == 1 && mesh.notes[0].contains("order 2"), "{:?}", mesh.notes);
}

#[test]
fn faults_of_a_tetgen_file_are_named_by_its_own_numbers_and_lines() {
    let node = "4 3 0 0\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n";
    let parse = |node: &str, ele: &str| {
        in_words(io::tetgen::parse(Path::new("a.node"), node.as_bytes(), ele.as_bytes(), None)).unwrap_err()
    };
    let said = parse(node, "2 4 0\n\n7 1 2 3 4\n# then\n8 1 2 3 6\n");
    assert_eq!(said, "a.ele: line 5: cell 8 uses node 6, but nodes are numbered 1 to 4");
    let said = parse(&node.replace("2 1 0 0", "2 1 0"), "");
    assert_eq!(said, "a.node: line 3: the line ends where a coordinate should stand");
    assert!(parse(&node.replace("2 1 0 0", "2 1 0 0 x"), "").contains("line 3: `x` follows a node"));
}

#[test]
fn regions_of_opencarp_may_be_written_with_a_point() {
    let files = io::carp::Files {
        pts: b"4\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n".to_vec(),
        elem: b"1\nTt 0 1 2 3 11.0\n".to_vec(),
        ..io::carp::Files::default()
    };
    assert_eq!(io::carp::parse(Path::new("a"), &files).unwrap().cell_tags, [11]);
}

#[test]
fn the_first_bytes_of_a_file_tell_formats_of_one_extension_apart() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        in_words(io::read(&path))
    };
    let gmsh = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n$EndNodes\n$Elements\n1\n\
                1 2 2 7 7 1 2 3\n$EndElements\n";
    assert_eq!(read("a.mesh", gmsh).unwrap().cell_tags, [7]);
    let abaqus = "*NODE, NSET=Nall\n1,0,0,0\n2,1,0,0\n3,0,1,0\n*ELEMENT, TYPE=CPS3, ELSET=Eall\n1,1,2,3\n";
    assert_eq!(read("all.msh", abaqus).unwrap().n_cells(), 1);
    let freefem = "4 2 3\n0 0 4\n1 0 2\n1 1 2\n0 1 4\n1 2 3 9\n1 3 4 8\n1 2 1\n2 3 2\n4 1 0\n";
    let mesh = read("Th.msh", freefem).unwrap();
    assert_eq!((mesh.kind, &mesh.cell_tags[..]), (CellKind::Triangle, &[9, 8][..]));
    assert_eq!((&mesh.facets.tags[..], &mesh.facets.nodes[..]), (&[1, 2][..], &[0, 1, 1, 2][..]));
    let said = read("Th.msh", &freefem.replace("1 3 4 8", "1 3 5 8")).unwrap_err();
    assert!(said.contains("line 7: vertex 5, but vertices are numbered 1 to 4"), "{said}");
    let said = read("Th.msh", &freefem.replace("1 0 2\n", "1 0 0 2\n")).unwrap_err();
    assert!(said.contains("line 3: `2` follows a vertex of a plane mesh"), "{said}");
}
