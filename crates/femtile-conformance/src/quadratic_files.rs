//! Triangles and tetrahedra of order 2 in every text format that has them.

use std::fmt::Write;
use std::path::Path;

use femtile_mesh::{CellKind, Mesh, MeshError, io};

use crate::mesh_files::MeshFiles;

/// A straight mesh with a node on each edge of its cells, and its files.
struct Quadratic<'a> {
    mesh: &'a Mesh,
    points: Vec<[f64; 3]>,
    edges: Vec<[u32; 2]>,
}

/// Files of a mesh of tagged triangles or tetrahedra, each with nodes on the edges of its cells and facets.
///
/// The node of the first edge lies `shift` edge lengths away from its middle.
pub fn all(mesh: &Mesh, shift: f64) -> Vec<MeshFiles> {
    let quadratic = Quadratic::new(mesh, shift);
    let one = |name, text: String, parse| MeshFiles { name, files: vec![text.into_bytes()], parse };
    let mut files = vec![
        one("Gmsh of order 2, simplices", quadratic.gmsh(), |files| {
            io::gmsh::parse(Path::new("fuzz.msh"), &files[0])
        }),
        one("VTK of order 2, simplices", quadratic.vtk(false), parse_vtk),
        one("VTK Lagrange of order 2, simplices", quadratic.vtk(true), parse_vtk),
        one("MEDIT of order 2", quadratic.medit(), |files| {
            io::medit::parse(Path::new("fuzz.mesh"), &files[0])
        }),
        one("MFEM of order 2, simplices", quadratic.mfem(), |files| {
            io::mfem::parse(Path::new("fuzz.mesh"), &files[0])
        }),
        one("Abaqus of order 2", quadratic.abaqus(), |files| {
            io::abaqus::parse(Path::new("fuzz.inp"), &files[0])
        }),
    ];
    files.push(MeshFiles {
        name: "TetGen of order 2",
        files: quadratic.tetgen().map(String::into_bytes).to_vec(),
        parse: |files| io::tetgen::parse(Path::new("fuzz.node"), &files[0], &files[1], Some(&files[2])),
    });
    files
}

fn parse_vtk(files: &[Vec<u8>]) -> Result<Mesh, MeshError> {
    io::vtk::parse(Path::new("fuzz.vtk"), &files[0])
}

/// Edges of a simplex, those of VTK's order.
fn edges(kind: CellKind) -> &'static [[usize; 2]] {
    const ALL: [[usize; 2]; 6] = [[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]];
    match kind {
        CellKind::Segment => &ALL[..1],
        CellKind::Triangle => &ALL[..3],
        _ => &ALL,
    }
}

impl<'a> Quadratic<'a> {
    fn new(mesh: &'a Mesh, shift: f64) -> Self {
        let cells = (0..mesh.n_cells()).map(|cell| mesh.cell(cell));
        let of_cell = |cell: &[u32]| -> Vec<[u32; 2]> {
            edges(mesh.kind).iter().map(|&[i, j]| [cell[i].min(cell[j]), cell[i].max(cell[j])]).collect()
        };
        let mut edges: Vec<[u32; 2]> = cells.flat_map(of_cell).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut points = mesh.points.clone();
        for (edge, nodes) in edges.iter().enumerate() {
            let [a, b] = nodes.map(|node| mesh.points[node as usize]);
            let at = if edge == 0 { 0.5 + shift } else { 0.5 };
            points.push(std::array::from_fn(|d| (1.0 - at) * a[d] + at * b[d]));
        }
        Self { mesh, points, edges }
    }

    /// Kind, all nodes and tag of every facet, then of every cell.
    fn elements(&self) -> Vec<(CellKind, Vec<u32>, i32)> {
        let mesh = self.mesh;
        let whole = |kind: CellKind, corners: &[u32], tag| {
            let middle = |&[i, j]: &[usize; 2]| {
                let edge = [corners[i].min(corners[j]), corners[i].max(corners[j])];
                let found = self.edges.binary_search(&edge).expect("facets are those of cells");
                (mesh.n_nodes() + found) as u32
            };
            (kind, corners.iter().copied().chain(edges(kind).iter().map(middle)).collect(), tag)
        };
        let facet = mesh.kind.facet_kind().expect("triangles and tetrahedra have facets");
        let facets = mesh.facets.tags.iter().enumerate().map(|(i, &tag)| whole(facet, mesh.facet(i), tag));
        let cells = (0..mesh.n_cells()).map(|cell| whole(mesh.kind, mesh.cell(cell), mesh.cell_tags[cell]));
        facets.chain(cells).collect()
    }

    fn lines(&self, numbered: bool, comma: &str) -> String {
        let line = |(node, [x, y, z]): (usize, &[f64; 3])| match numbered {
            true => format!("{}{comma} {x:?}{comma} {y:?}{comma} {z:?}\n", node + 1),
            false => format!("{x:?} {y:?} {z:?}\n"),
        };
        self.points.iter().enumerate().map(line).collect()
    }

    fn gmsh(&self) -> String {
        let n = self.points.len();
        let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{n}\n{}", self.lines(true, ""));
        let elements = self.elements();
        let _ = writeln!(text, "$EndNodes\n$Elements\n{}", elements.len());
        for (number, (kind, nodes, tag)) in elements.iter().enumerate() {
            let number_of_type = match kind {
                CellKind::Segment => 8,
                CellKind::Triangle => 9,
                _ => 11,
            };
            let _ = writeln!(text, "{} {number_of_type} 2 {tag} 1{}", number + 1, joined(nodes, " ", 1));
        }
        text + "$EndElements\n"
    }

    fn vtk(&self, is_lagrange: bool) -> String {
        let elements = self.elements();
        let n_nodes: usize = elements.iter().map(|(_, nodes, _)| nodes.len() + 1).sum();
        let mut text = String::from("# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\n");
        let _ = write!(text, "POINTS {} double\n{}", self.points.len(), self.lines(false, ""));
        let _ = writeln!(text, "CELLS {} {n_nodes}", elements.len());
        elements
            .iter()
            .for_each(|(_, nodes, _)| _ = writeln!(text, "{}{}", nodes.len(), joined(nodes, " ", 0)));
        let _ = writeln!(text, "CELL_TYPES {}", elements.len());
        for (kind, ..) in &elements {
            let number = match kind {
                CellKind::Segment => [21, 68],
                CellKind::Triangle => [22, 69],
                _ => [24, 71],
            };
            let _ = writeln!(text, "{}", number[usize::from(is_lagrange)]);
        }
        let _ = writeln!(text, "CELL_DATA {}\nSCALARS tag int 1\nLOOKUP_TABLE default", elements.len());
        elements.iter().for_each(|(.., tag)| _ = writeln!(text, "{tag}"));
        let _ = writeln!(text, "POINT_DATA {}\nSCALARS x double 1\nLOOKUP_TABLE default", self.points.len());
        self.points.iter().for_each(|[x, ..]| _ = writeln!(text, "{x:?}"));
        text
    }

    fn medit(&self) -> String {
        let dimension = self.mesh.dimension();
        let mut text =
            format!("MeshVersionFormatted 2\nDimension {dimension}\nVertices {}\n", self.points.len());
        for point in &self.points {
            point[..dimension].iter().for_each(|x| _ = write!(text, "{x:?} "));
            text += "0\n";
        }
        for (keyword, kind) in [
            ("EdgesP2", CellKind::Segment),
            ("TrianglesP2", CellKind::Triangle),
            ("TetrahedraP2", CellKind::Tetrahedron),
        ] {
            let of_kind: Vec<_> = self.elements().into_iter().filter(|element| element.0 == kind).collect();
            let _ = writeln!(text, "{keyword} {}", of_kind.len());
            of_kind.iter().for_each(|(_, nodes, tag)| _ = writeln!(text, "{} {tag}", joined(nodes, " ", 1)));
        }
        text + "End\n"
    }

    /// Nodes of an element have their numbers from the vertices and then the edges.
    fn mfem(&self) -> String {
        let (mesh, dimension) = (self.mesh, self.mesh.dimension());
        let mut text = format!("MFEM mesh v1.0\ndimension\n{dimension}\n");
        let elements = self.elements();
        let (facets, cells) = elements.split_at(mesh.facets.tags.len());
        for (section, elements) in [("elements", cells), ("boundary", facets)] {
            let _ = writeln!(text, "{section}\n{}", elements.len());
            for (kind, nodes, tag) in elements {
                let number = [0, 1, 2, 4][kind.n_nodes() - 1];
                let _ = writeln!(text, "{tag} {number}{}", joined(&nodes[..kind.n_nodes()], " ", 0));
            }
        }
        let _ = writeln!(text, "vertices\n{}\nnodes\nFiniteElementSpace", mesh.n_nodes());
        let _ =
            writeln!(text, "FiniteElementCollection: H1_{dimension}D_P2\nVDim: {dimension}\nOrdering: 0\n");
        let axes = (0..dimension).flat_map(|axis| self.points.iter().map(move |point| point[axis]));
        axes.for_each(|x| _ = writeln!(text, "{x:?}"));
        text
    }

    fn abaqus(&self) -> String {
        let mut text = format!("*NODE\n{}", self.lines(true, ","));
        for (number, (kind, nodes, tag)) in self.elements().iter().enumerate() {
            let (name, n) = match kind {
                CellKind::Segment => ("T3D2", 2),
                CellKind::Triangle => ("S6", 6),
                _ => ("C3D10M", 10),
            };
            let nodes = joined(&nodes[..n], ", ", 1);
            let _ = writeln!(text, "*ELEMENT, TYPE={name}, ELSET=tag{tag}\n{}{nodes}", number + 1);
        }
        text
    }

    fn tetgen(&self) -> [String; 3] {
        let dimension = self.mesh.dimension();
        let mut node = format!("{} {dimension} 1 0\n", self.points.len());
        for (number, point) in self.points.iter().enumerate() {
            let _ = write!(node, "{}", number + 1);
            point[..dimension].iter().for_each(|x| _ = write!(node, " {x:?}"));
            let _ = writeln!(node, " {number}");
        }
        let elements = self.elements();
        let (facets, cells) = elements.split_at(self.mesh.facets.tags.len());
        let records = |elements: &[(CellKind, Vec<u32>, i32)]| -> String {
            let n = |kind: CellKind, n: usize| if kind == CellKind::Segment { 2 } else { n };
            let record = |(i, (kind, nodes, tag)): (usize, &(CellKind, Vec<u32>, i32))| {
                format!("{}{} {tag}\n", i + 1, joined(&nodes[..n(*kind, nodes.len())], " ", 1))
            };
            elements.iter().enumerate().map(record).collect()
        };
        let ele = format!("{} {} 1\n{}", cells.len(), cells[0].1.len(), records(cells));
        [node, ele, format!("{} 1\n{}", facets.len(), records(facets))]
    }
}

/// Numbers, each with `blank` before it.
fn joined(nodes: &[u32], blank: &str, base: u32) -> String {
    nodes.iter().map(|node| format!("{blank}{}", node + base)).collect()
}
