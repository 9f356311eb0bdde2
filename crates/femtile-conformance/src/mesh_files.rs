//! One mesh in every format and encoding that Femtile reads, encoded apart from its own writers.

use std::fmt::Write;
use std::path::Path;

use femtile_mesh::{CellKind, Mesh, MeshError, io};

/// The files of a mesh in one format, and their reader.
#[derive(Debug, Clone)]
pub struct MeshFiles {
    /// Format and encoding.
    pub name: &'static str,
    /// One file, or several of a mesh, such as `.node/.ele/.face`.
    pub files: Vec<Vec<u8>>,
    /// Reads the files.
    pub parse: fn(&[Vec<u8>]) -> Result<Mesh, MeshError>,
}

/// Encodes a mesh of triangles or tetrahedra whose cells and facets are tagged with positive numbers.
pub fn all(mesh: &Mesh) -> Vec<MeshFiles> {
    let one = |name, file, parse| MeshFiles { name, files: vec![file], parse };
    let mut all = vec![
        MeshFiles { name: "TetGen", files: tetgen(mesh), parse: parse_tetgen },
        MeshFiles { name: "Chaste binary", files: chaste(mesh), parse: parse_tetgen },
        one("Abaqus", abaqus(mesh), |files| io::abaqus::parse(Path::new("fuzz.inp"), &files[0])),
        MeshFiles { name: "openCARP", files: carp(mesh), parse: parse_carp },
        one("MEDIT", medit(mesh), |files| io::medit::parse(Path::new("fuzz.mesh"), &files[0])),
    ];
    for (name, encoding) in [
        ("Gmsh 2.2 text", Encoding::Text),
        ("Gmsh 2.2 little-endian", Encoding::Little),
        ("Gmsh 2.2 big-endian", Encoding::Big),
    ] {
        all.push(one(name, gmsh_2(mesh, encoding), parse_gmsh));
    }
    all.push(one("Gmsh 1", gmsh_1(mesh), parse_gmsh));
    for (name, encoding) in [
        ("Gmsh 4.0 text", Encoding::Text),
        ("Gmsh 4.0 little-endian", Encoding::Little),
        ("Gmsh 4.0 big-endian", Encoding::Big),
    ] {
        all.push(one(name, gmsh_4(mesh, encoding, false), parse_gmsh));
    }
    for (name, encoding) in [
        ("Gmsh 4.1 text", Encoding::Text),
        ("Gmsh 4.1 little-endian", Encoding::Little),
        ("Gmsh 4.1 big-endian", Encoding::Big),
    ] {
        all.push(one(name, gmsh_4(mesh, encoding, true), parse_gmsh));
    }
    for (name, encoding, with_offsets) in [
        ("VTK 3.0 text", Encoding::Text, false),
        ("VTK 3.0 binary", Encoding::Big, false),
        ("VTK 5.1 text", Encoding::Text, true),
        ("VTK 5.1 binary", Encoding::Big, true),
    ] {
        all.push(one(name, vtk(mesh, encoding, with_offsets), parse_vtk));
    }
    all
}

/// Quadrilaterals and hexahedra, straight and curved, in the formats that have them.
pub fn products() -> Vec<MeshFiles> {
    let one = |name, text: String, parse| MeshFiles { name, files: vec![text.into_bytes()], parse };
    vec![
        one("Abaqus with a part", ABAQUS_PART.into(), |files| {
            io::abaqus::parse(Path::new("fuzz.inp"), &files[0])
        }),
        MeshFiles {
            name: "openCARP of a cube",
            files: CARP_CUBE.map(|text| text.as_bytes().to_vec()).into(),
            parse: parse_carp,
        },
        one("MFEM straight", MFEM_STRAIGHT.into(), parse_mfem),
        one("MFEM of order 2", mfem_curved("H1_2D_P2", 9), parse_mfem),
        one("MFEM discontinuous", mfem_curved("L2_T1_2D_P2", 9), parse_mfem),
        one("Gmsh of order 2", GMSH_CURVED.into(), parse_gmsh),
        one("VTK of order 2", VTK_CURVED.into(), parse_vtk),
    ]
}

/// Two cubes with fibres and a wall; the region of one is missing.
const CARP_CUBE: [&str; 4] = [
    "12\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n0 0 2\n1 0 2\n1 1 2\n0 1 2\n",
    "2\nHx 0 1 2 3 4 7 6 5 3\nHx 4 5 6 7 8 11 10 9\n",
    "1\n1 0 0\n0 0.6 0.8\n",
    "2\nQd 0 3 2 1\nQd 0 1 5 4 9\n",
];

/// A cube and a face of it, with attributes and a vertex that nothing uses.
const MFEM_STRAIGHT: &str = "MFEM mesh v1.3\n# a cube\ndimension\n3\nelements\n1\n2 5 0 1 3 2 4 5 7 6\n\
    attribute_sets\n1\n\"part\" 1 2\nboundary\n1\n7 3 0 2 3 1\nbdr_attribute_sets\n0\nvertices\n9\n3\n0 0 0\n1 0 0\n\
    0 1 0\n1 1 0\n0 0 1\n1 0 1\n0 1 1\n1 1 1.5\n9 9 9\n";

/// A square whose shape is a function of a space with `n_nodes` values.
pub fn mfem_curved(collection: &str, n_nodes: usize) -> String {
    let mut text = String::from(
        "MFEM mesh v1.0\ndimension\n2\nelements\n1\n3 3 0 1 2 3\nboundary\n1\n9 1 0 1\nvertices\n4\nnodes\n\
         FiniteElementSpace\n",
    );
    let _ = writeln!(text, "FiniteElementCollection: {collection}\nVDim: 2\nOrdering: 1\n");
    (0..n_nodes).for_each(|i| _ = writeln!(text, "{:?} {:?}", (i % 3) as f64 / 2.0, (i / 3) as f64 / 2.0));
    text
}

/// A square of nine nodes and a line of three.
const GMSH_CURVED: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n9\n1 0 0 0\n2 2 0 0\n3 2 2 0\n4 0 2 0\n5 1 0.2 0\n\
    6 2 1 0\n7 1 2 0\n8 0 1 0\n9 1 1 0\n$EndNodes\n$Elements\n2\n1 8 2 7 7 1 2 5\n2 10 2 5 5 1 2 3 4 5 6 7 8 9\n\
    $EndElements\n";

/// A Lagrange square of nine points with a field.
const VTK_CURVED: &str = "# vtk DataFile Version 5.1\ntitle\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 9 double\n0 0 0 2 0 0\n\
    2 2 0 0 2 0 1 0.2 0 2 1 0 1 2 0 0 1 0 1 1 0\nCELLS 1 10\n9 0 1 2 3 4 5 6 7 8\nCELL_TYPES 1\n70\nPOINT_DATA 9\n\
    SCALARS u double 1\nLOOKUP_TABLE default\n0 1 2 3 4 5 6 7 8\n";

fn parse_mfem(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    io::mfem::parse(Path::new("fuzz.mesh"), &files[0])
}

fn parse_tetgen(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    io::tetgen::parse(Path::new("fuzz.node"), &files[0], &files[1], files.get(2).map(Vec::as_slice))
}

fn parse_carp(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    let [pts, elem, lon, surfaces @ ..] = files else { panic!("three files or more") };
    let files = io::carp::Files {
        pts: pts.clone(),
        elem: elem.clone(),
        lon: Some(lon.clone()),
        surfaces: surfaces.iter().map(|bytes| (String::from("wall"), bytes.clone())).collect(),
    };
    io::carp::parse(Path::new("fuzz"), &files)
}

fn parse_gmsh(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    io::gmsh::parse(Path::new("fuzz.msh"), &files[0])
}

fn parse_vtk(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    io::vtk::parse(Path::new("fuzz.vtk"), &files[0])
}

/// Encoding of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Text,
    Little,
    Big,
}

/// Text and numbers, one after another.
struct Encoder {
    encoding: Encoding,
    bytes: Vec<u8>,
}

macro_rules! put_number {
    ($name:ident, $type:ty) => {
        fn $name(&mut self, value: $type) {
            match self.encoding {
                Encoding::Text => self.text(&format!("{value:?} ")),
                Encoding::Little => self.bytes.extend(value.to_le_bytes()),
                Encoding::Big => self.bytes.extend(value.to_be_bytes()),
            }
        }
    };
}

impl Encoder {
    fn new(encoding: Encoding) -> Self {
        Self { encoding, bytes: Vec::new() }
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Ends a record of text.
    fn line(&mut self) {
        if self.encoding == Encoding::Text {
            self.bytes.push(b'\n');
        }
    }

    put_number!(int, i32);
    put_number!(size, u64);
    put_number!(real, f64);
}

/// Kind, nodes and tag of every facet, then of every cell.
fn elements(mesh: &Mesh) -> Vec<(CellKind, &[u32], i32)> {
    let mut elements = Vec::new();
    if let Some(facet) = mesh.kind.facet_kind() {
        elements.extend(mesh.facets.tags.iter().enumerate().map(|(i, &tag)| (facet, mesh.facet(i), tag)));
    }
    let tag = |cell| mesh.cell_tags.get(cell).copied().unwrap_or(1);
    elements.extend((0..mesh.n_cells()).map(|cell| (mesh.kind, mesh.cell(cell), tag(cell))));
    elements
}

fn tetgen(mesh: &Mesh) -> Vec<Vec<u8>> {
    let (dimension, mut node) = (mesh.dimension(), String::from("# nodes\n"));
    let _ = writeln!(node, "{} {dimension} 1 1", mesh.n_nodes());
    for (i, point) in mesh.points.iter().enumerate() {
        let _ = write!(node, "{} ", i + 1);
        point[..dimension].iter().for_each(|x| _ = write!(node, "{x:?} "));
        let _ = writeln!(node, "0.5 0 # a node");
    }
    let all = elements(mesh);
    let (facets, cells) = all.split_at(mesh.facets.tags.len());
    let table = |header: String, records: &[(CellKind, &[u32], i32)]| {
        let mut text = header;
        for (i, (_, nodes, tag)) in records.iter().enumerate() {
            let _ = write!(text, "{i}");
            nodes.iter().for_each(|node| _ = write!(text, " {}", node + 1));
            let _ = writeln!(text, " {tag}");
        }
        text.into_bytes()
    };
    vec![
        node.into_bytes(),
        table(format!("{} {} 1\n", cells.len(), mesh.kind.n_nodes()), cells),
        table(format!("{} 1\n", facets.len()), facets),
    ]
}

fn chaste(mesh: &Mesh) -> Vec<Vec<u8>> {
    let dimension = mesh.dimension();
    let all = elements(mesh);
    let (facets, cells) = all.split_at(mesh.facets.tags.len());
    let mut node = Encoder::new(Encoding::Little);
    node.text(&format!("{}\t{dimension}\t0\t0\tBIN\n", mesh.n_nodes()));
    mesh.points.iter().flat_map(|point| &point[..dimension]).for_each(|&x| node.real(x));
    let table = |header: String, records: &[(CellKind, &[u32], i32)]| {
        let mut out = Encoder::new(Encoding::Little);
        out.text(&header);
        for (_, nodes, tag) in records {
            nodes.iter().for_each(|&node| out.int(node as i32));
            out.real(f64::from(*tag));
        }
        out.text("#\n# Created by a test\n");
        out.bytes
    };
    node.text("#\n# Created by a test\n");
    vec![
        node.bytes,
        table(format!("{}\t{}\t1\tBIN\n", cells.len(), mesh.kind.n_nodes()), cells),
        table(format!("{}\t1\tBIN\n", facets.len()), facets),
    ]
}

/// Facets are elements with a region, as are lines that no mesh has; each has a fibre and a sheet.
fn carp(mesh: &Mesh) -> Vec<Vec<u8>> {
    let mut pts = format!("{}\n", mesh.n_nodes());
    mesh.points.iter().for_each(|[x, y, z]| _ = writeln!(pts, "{x:?} {y:?}  {z:e}"));
    let all = elements(mesh);
    let (mut elem, mut lon) = (format!("{}\ncH 0 1\n", all.len() + 1), String::from("2\n1 0 0 0 1 0\n"));
    for (number, (kind, nodes, tag)) in all.iter().enumerate() {
        let name = match kind {
            CellKind::Segment => "Ln",
            CellKind::Triangle => "Tr",
            CellKind::Quadrilateral => "Qd",
            CellKind::Tetrahedron => "Tt",
            CellKind::Hexahedron => "Hx",
        };
        elem.push_str(name);
        nodes.iter().for_each(|node| _ = write!(elem, " {node}"));
        let _ = writeln!(elem, " {tag}");
        let _ = writeln!(lon, "{number} 0.5 -1e-3 0 {number}.25 1");
    }
    [pts, elem, lon].map(String::into_bytes).into()
}

fn medit(mesh: &Mesh) -> Vec<u8> {
    let dimension = mesh.dimension();
    let mut text = format!("MeshVersionFormatted 2\nDimension\n{dimension}\nVertices {}\n", mesh.n_nodes());
    for point in &mesh.points {
        point[..dimension].iter().for_each(|x| _ = write!(text, "{x:e} "));
        text.push_str("0\n");
    }
    text.push_str("Corners\n2\n1\n2\n");
    let all = elements(mesh);
    let (facets, cells) = all.split_at(mesh.facets.tags.len());
    for records in [facets, cells] {
        let Some((kind, _, _)) = records.first() else { continue };
        let keyword = match kind {
            CellKind::Segment => "Edges",
            CellKind::Triangle => "Triangles",
            _ => "Tetrahedra",
        };
        let _ = writeln!(text, "{keyword}\n{}", records.len());
        for (_, nodes, tag) in records {
            nodes.iter().for_each(|node| _ = write!(text, "{} ", node + 1));
            let _ = writeln!(text, "{tag}");
        }
    }
    text.push_str("End\n");
    text.into_bytes()
}

/// Sets are listed first, in the order of their tags, so that their numbers are those.
fn abaqus(mesh: &Mesh) -> Vec<u8> {
    let mut text = String::from("*HEADING\na mesh\n");
    let all = elements(mesh);
    for tag in 1..=all.iter().map(|element| element.2).max().unwrap_or(0) {
        let name = if tag == 1 { "first part".into() } else { format!("part {tag}") };
        let _ = writeln!(text, "*ELSET, ELSET=\"{name}\"");
        let of_tag = all.iter().enumerate().filter(|(_, element)| element.2 == tag);
        of_tag.for_each(|(number, _)| _ = writeln!(text, "{},", 7 + 2 * number));
    }
    text.push_str("*NODE, NSET=ALL\n** nodes\n");
    for (node, [x, y, z]) in mesh.points.iter().enumerate() {
        let _ = writeln!(text, "{}, {x:?}, {y:?}, {z:?}", 10 + 3 * node);
    }
    let mut last = None;
    for (number, (kind, nodes, _)) in all.iter().enumerate() {
        if last.replace(*kind) != Some(*kind) {
            let name = match kind {
                CellKind::Segment => "T3D2",
                CellKind::Triangle => "CPS3",
                _ => "C3D4",
            };
            let _ = writeln!(text, "*ELEMENT,\n TYPE={name}");
        }
        let _ = write!(text, "{},", 7 + 2 * number);
        nodes.iter().for_each(|node| _ = write!(text, " {},", 10 + 3 * node));
        text.push('\n');
    }
    text.into_bytes()
}

/// Surfaces, sets of sets, ranges and a part with an instance.
const ABAQUS_PART: &str = "*HEADING\na square\n*PART, NAME=P\n*NODE, NSET=all\n1,0,0\n2,1,0\n3,1,1\n4,0,1\n5,2,0\n6,2,1\n\
    *ELEMENT, TYPE=CPS4, ELSET=body\n1,1,2,3,4\n2,2,5,6,3\n*ELSET, ELSET=two, GENERATE\n1,2,1\n*ELSET, ELSET=more\nbody, 2\n\
    *NSET, NSET=left\n1,4\n*SOLID SECTION, ELSET=two, MATERIAL=m\n*END PART\n*ASSEMBLY\n*INSTANCE, NAME=P-1, PART=P\n1,0,0\n\
    *END INSTANCE\n*ELSET, ELSET=right, INSTANCE=P-1\n2,\n*SURFACE, NAME=s\nright, S2\nP-1.more, S1\n*SURFACE, TYPE=NODE, \
    NAME=n\nP-1.left\n*END ASSEMBLY\n";

fn gmsh_type(kind: CellKind) -> i32 {
    match kind {
        CellKind::Segment => 1,
        CellKind::Triangle => 2,
        CellKind::Quadrilateral => 3,
        CellKind::Tetrahedron => 4,
        CellKind::Hexahedron => 5,
    }
}

/// The format, then a section of remarks and the names of tag 1.
fn gmsh_begin(mesh: &Mesh, encoding: Encoding, version: &str) -> Encoder {
    let mut out = Encoder::new(encoding);
    out.text(&format!("$MeshFormat\n{version} {} 8\n", u8::from(encoding != Encoding::Text)));
    if encoding != Encoding::Text {
        out.int(1);
        out.text("\n");
    }
    out.text("$EndMeshFormat\n$Remarks\nanything 1 2 3\n$EndRemarks\n");
    out.text(&format!("$PhysicalNames\n1\n{} 1 \"first part\"\n$EndPhysicalNames\n", mesh.dimension()));
    out
}

fn gmsh_1(mesh: &Mesh) -> Vec<u8> {
    let mut text = format!("$NOD\n{}\n", mesh.n_nodes());
    for (node, [x, y, z]) in mesh.points.iter().enumerate() {
        let _ = writeln!(text, "{} {x:?} {y:?} {z:?}", 10 + 3 * node);
    }
    let all = elements(mesh);
    let _ = writeln!(text, "$ENDNOD\n$ELM\n{}", all.len());
    for (number, (kind, nodes, tag)) in all.iter().enumerate() {
        let _ = write!(text, "{} {} {tag} 7 {}", number + 1, gmsh_type(*kind), nodes.len());
        nodes.iter().for_each(|&node| _ = write!(text, " {}", 10 + 3 * node));
        text.push('\n');
    }
    text += "$ENDELM\n";
    text.into_bytes()
}

fn gmsh_2(mesh: &Mesh, encoding: Encoding) -> Vec<u8> {
    let mut out = gmsh_begin(mesh, encoding, "2.2");
    out.text(&format!("$Nodes\n{}\n", mesh.n_nodes()));
    for (node, point) in mesh.points.iter().enumerate() {
        out.int(10 + 3 * node as i32);
        point.iter().for_each(|&x| out.real(x));
        out.line();
    }
    let all = elements(mesh);
    out.text(&format!("$EndNodes\n$Elements\n{}\n", all.len()));
    for (number, (kind, nodes, tag)) in all.iter().enumerate() {
        let (number, header) = (number as i32 + 1, gmsh_type(*kind));
        // In text the number comes first and its type belongs to the element, in binary to a block.
        let head: &[i32] = if encoding == Encoding::Text {
            &[number, header, 2, *tag, 7]
        } else {
            &[header, 1, 2, number, *tag, 7]
        };
        head.iter().for_each(|&value| out.int(value));
        nodes.iter().for_each(|&node| out.int(10 + 3 * node as i32));
        out.line();
    }
    out.text("$EndElements\n");
    out.bytes
}

/// Version 4.1, or 4.0, which has fewer counts, other places of some numbers and numbers of nodes of 32 bits.
fn gmsh_4(mesh: &Mesh, encoding: Encoding, is_4_1: bool) -> Vec<u8> {
    let mut out = gmsh_begin(mesh, encoding, if is_4_1 { "4.1" } else { "4.0" });
    let number = |out: &mut Encoder, value: u64| if is_4_1 { out.size(value) } else { out.int(value as i32) };
    let entity = |dimension: usize, tag: i32| {
        let pair = [dimension as i32, tag];
        if is_4_1 { pair } else { [pair[1], pair[0]] }
    };
    let totals = |blocks: usize, n: usize, first: u64| {
        let all = [blocks as u64, n as u64, first, first + n as u64 - 1];
        all.into_iter().take(if is_4_1 { 4 } else { 2 })
    };
    let all = elements(mesh);
    let entities = |dimension: usize| {
        let of = all.iter().filter(move |element| element.0.dimension() == dimension);
        of.map(|element| element.2).collect::<std::collections::BTreeSet<_>>()
    };
    out.text("$Entities\n");
    (0..4).for_each(|dimension| out.size(entities(dimension).len() as u64));
    out.line();
    for tag in (0..4).flat_map(entities) {
        out.int(100 + tag);
        (0..6).for_each(|_| out.real(0.0));
        out.size(1);
        out.int(tag);
        out.size(1);
        out.int(3);
        out.line();
    }
    out.text("\n$EndEntities\n$Nodes\n");
    let n = mesh.n_nodes() as u64;
    totals(1, mesh.n_nodes(), 5).for_each(|value| out.size(value));
    out.line();
    entity(mesh.dimension(), 101).into_iter().chain([0]).for_each(|value| out.int(value));
    out.size(n);
    out.line();
    for node in (0..n).filter(|_| is_4_1) {
        out.size(5 + node);
        out.line();
    }
    for (node, point) in (0..n).zip(&mesh.points) {
        if !is_4_1 {
            out.int(5 + node as i32);
        }
        point.iter().for_each(|&x| out.real(x));
        out.line();
    }
    out.text("\n$EndNodes\n$Elements\n");
    let blocks = all.chunk_by(|a, b| (a.0, a.2) == (b.0, b.2));
    totals(blocks.clone().count(), all.len(), 1).for_each(|value| out.size(value));
    out.line();
    for block in blocks {
        let (kind, _, tag) = block[0];
        let of_block = entity(kind.dimension(), 100 + tag).into_iter().chain([gmsh_type(kind)]);
        of_block.for_each(|value| out.int(value));
        out.size(block.len() as u64);
        out.line();
        for (i, (_, nodes, _)) in block.iter().enumerate() {
            number(&mut out, i as u64);
            nodes.iter().for_each(|&node| number(&mut out, 5 + u64::from(node)));
            out.line();
        }
    }
    out.text("\n$EndElements\n");
    out.bytes
}

fn vtk(mesh: &Mesh, encoding: Encoding, with_offsets: bool) -> Vec<u8> {
    let mut out = Encoder::new(encoding);
    let (version, word) = (
        if with_offsets { "5.1" } else { "3.0" },
        if encoding == Encoding::Text { "ASCII" } else { "BINARY" },
    );
    out.text(&format!("# vtk DataFile Version {version}\ntitle\n{word}\nDATASET UNSTRUCTURED_GRID\n"));
    out.text(&format!("POINTS {} double\n", mesh.n_nodes()));
    mesh.points.iter().flatten().for_each(|&x| out.real(x));
    out.text("\nMETADATA\nINFORMATION 0\n\n");
    let all = elements(mesh);
    let n_nodes: usize = all.iter().map(|element| element.1.len()).sum();
    if with_offsets {
        out.text(&format!("CELLS {} {n_nodes}\nOFFSETS vtktypeint64\n", all.len() + 1));
        out.size(0);
        let mut end = 0;
        for element in &all {
            end += element.1.len() as u64;
            out.size(end);
        }
        out.text("\nCONNECTIVITY vtktypeint64\n");
        all.iter().flat_map(|element| element.1).for_each(|&node| out.size(u64::from(node)));
    } else {
        out.text(&format!("CELLS {} {}\n", all.len(), n_nodes + all.len()));
        for (_, nodes, _) in &all {
            out.int(nodes.len() as i32);
            nodes.iter().for_each(|&node| out.int(node as i32));
        }
    }
    out.text(&format!("\nCELL_TYPES {}\n", all.len()));
    all.iter().for_each(|element| out.int(i32::from(element.0.vtk_type())));
    out.text(&format!("\nCELL_DATA {}\nSCALARS region int 1\nLOOKUP_TABLE default\n", all.len()));
    all.iter().for_each(|element| out.int(element.2));
    out.text(&format!(
        "\nPOINT_DATA {}\nFIELD FieldData 1\nheat%20flux 3 {} double\n",
        mesh.n_nodes(),
        mesh.n_nodes()
    ));
    mesh.points.iter().flatten().for_each(|&x| out.real(x));
    out.text("\n");
    out.bytes
}
