//! Meshes of several kinds of cells, and their files in the formats that have them, encoded apart from the readers.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use femtile_mesh::CellShape::{
    self, Hexahedron, Prism, Pyramid, Quadrilateral, Segment, Tetrahedron, Triangle,
};
use femtile_mesh::io;

use crate::mesh_files::MeshFiles;

/// A mesh of the unit square or cube whose cells are of several shapes, its sides tagged: 1 for x = 0, 2 for x = 1, 3 for y = 0, ….
#[derive(Debug, Clone)]
pub struct MixedMesh {
    /// Coordinates of the nodes.
    pub points: Vec<[f64; 3]>,
    /// Shape, nodes and tag of each cell.
    pub cells: Vec<(CellShape, Vec<u32>, i32)>,
    /// Shape, nodes and tag of each facet of the boundary.
    pub facets: Vec<(CellShape, Vec<u32>, i32)>,
    /// Cell of each facet, and its number there.
    sides: Vec<(usize, usize)>,
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }

    fn shuffle<T>(&mut self, values: &mut [T]) {
        (1..values.len()).for_each(|i| values.swap(i, self.below(i + 1)));
    }
}

/// The corners of a box of a lattice of `n` boxes an axis, in the order of VTK.
fn corners(n: usize, [i, j, k]: [usize; 3]) -> [u32; 8] {
    let m = n + 1;
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
        .map(|[a, b, c]| (i + a + m * (j + b + m * (k + c))) as u32)
}

fn lattice(n: usize, n_layers: usize) -> Vec<[f64; 3]> {
    let m = n + 1;
    let at = |i: usize| i as f64 / n as f64;
    (0..m * m * n_layers).map(|node| [at(node % m), at(node / m % m), at(node / m / m)]).collect()
}

impl MixedMesh {
    /// Hexahedra, prisms, pyramids and tetrahedra in a cube of `n` boxes an axis, with nodes and cells in a random order. The tag is 7
    /// of cells in the half x < 1/2, else 8; an odd `n` gives it the smaller part.
    pub fn cube(n: usize, seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (mut points, mut cells) = (lattice(n, n + 1), Vec::new());
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let (is_of_prisms, diagonal) = (random.below(3) == 0, random.below(2));
            for k in 0..n {
                let nodes = corners(n, [i, j, k]);
                let triangles = [[[0, 1, 2], [0, 2, 3]], [[1, 2, 3], [1, 3, 0]]][diagonal];
                let mut of_box = Vec::new();
                let pick = |at: &[usize]| at.iter().map(|&i| nodes[i]).collect::<Vec<u32>>();
                let middle = points.len() as u32;
                let pyramid = |facet: &[usize]| {
                    let mut nodes: Vec<u32> = facet.iter().rev().map(|&i| nodes[i]).collect();
                    nodes.push(middle);
                    (Pyramid, nodes)
                };
                if is_of_prisms && k + 1 < n {
                    of_box.extend(triangles.map(|[a, b, c]| (Prism, pick(&[a, b, c, a + 4, b + 4, c + 4]))));
                } else if is_of_prisms || random.below(2) == 0 {
                    let facets = &Hexahedron.facets()[usize::from(is_of_prisms)..];
                    of_box.extend(facets.iter().map(|facet| pyramid(facet)));
                    if is_of_prisms {
                        let bottom = triangles.map(|at| (Tetrahedron, [pick(&at), vec![middle]].concat()));
                        of_box.extend(bottom);
                    }
                    let centre = [i, j, k].map(|i| (i as f64 + 0.5) / n as f64);
                    points.push(centre);
                } else {
                    of_box.push((Hexahedron, nodes.to_vec()));
                }
                let tag = if i < n / 2 { 7 } else { 8 };
                cells.extend(of_box.into_iter().map(|(shape, nodes)| (shape, nodes, tag)));
            }
        }
        Self::shuffled(points, cells, &mut random)
    }

    /// Layers of prisms over one half of a cube, tetrahedra in the other, in a random order.
    pub fn layers(n: usize, seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut cells = Vec::new();
        for at in 0..n * n * n {
            let at = [at % n, at / n % n, at / n / n];
            let nodes = corners(n, at);
            if 2 * at[2] < n {
                let prism = |triangle: [usize; 3]| {
                    let both = triangle.into_iter().chain(triangle.map(|i| i + 4));
                    (Prism, both.map(|i| nodes[i]).collect(), 7)
                };
                cells.extend([[0, 1, 2], [0, 2, 3]].map(prism));
            } else {
                // Paths along the axes from the first corner to the last.
                let paths = [[1, 2], [3, 7], [4, 5], [2, 3], [7, 4], [5, 1]];
                cells.extend(paths.map(|[a, b]| (Tetrahedron, [0, a, b, 6].map(|i| nodes[i]).to_vec(), 8)));
            }
        }
        Self::shuffled(lattice(n, n + 1), cells, &mut random)
    }

    /// Triangles and quadrilaterals in a square of `n` boxes an axis, with nodes and cells in a random order.
    pub fn square(n: usize, seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut cells = Vec::new();
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let [a, b, c, d, ..] = corners(n, [i, j, 0]);
            let tag = if i < n / 2 { 7 } else { 8 };
            match random.below(3) {
                0 => cells.extend([[a, b, c], [a, c, d]].map(|nodes| (Triangle, nodes.to_vec(), tag))),
                1 => cells.extend([[a, b, d], [b, c, d]].map(|nodes| (Triangle, nodes.to_vec(), tag))),
                _ => cells.push((Quadrilateral, vec![a, b, c, d], tag)),
            }
        }
        Self::shuffled(lattice(n, 1), cells, &mut random)
    }

    fn shuffled(
        points: Vec<[f64; 3]>,
        mut cells: Vec<(CellShape, Vec<u32>, i32)>,
        random: &mut Random,
    ) -> Self {
        let mut number: Vec<u32> = (0..points.len() as u32).collect();
        random.shuffle(&mut number);
        let mut moved = points.clone();
        number.iter().zip(&points).for_each(|(&to, point)| moved[to as usize] = *point);
        cells.iter_mut().flat_map(|(_, nodes, _)| nodes).for_each(|node| *node = number[*node as usize]);
        random.shuffle(&mut cells);
        let mut mesh = Self { points: moved, cells, facets: Vec::new(), sides: Vec::new() };
        mesh.find_facets();
        mesh
    }

    /// Finds the facets on the boundary.
    fn find_facets(&mut self) {
        let mut all = BTreeMap::<Vec<u32>, Vec<(usize, usize, Vec<u32>)>>::new();
        for (cell, (shape, nodes, _)) in self.cells.iter().enumerate() {
            for (local, facet) in shape.facets().iter().enumerate() {
                let facet: Vec<u32> = facet.iter().map(|&i| nodes[i]).collect();
                let mut key = facet.clone();
                key.sort_unstable();
                all.entry(key).or_default().push((cell, local, facet));
            }
        }
        let tag = |nodes: &[u32]| {
            let is_on = |axis: usize, x: f64| nodes.iter().all(|&node| self.points[node as usize][axis] == x);
            let sides = (0..3).flat_map(|axis| [(axis, 0.0), (axis, 1.0)]);
            sides.zip(1..).find(|((axis, x), _)| is_on(*axis, *x)).map_or(0, |(_, tag)| tag)
        };
        for (cell, local, nodes) in all.into_values().filter(|sides| sides.len() == 1).flatten() {
            let tag = tag(&nodes);
            self.facets.push((facet(nodes.len()), nodes, tag));
            self.sides.push((cell, local));
        }
    }

    /// The mesh with its points mapped.
    pub fn mapped(mut self, map: impl Fn([f64; 3]) -> [f64; 3]) -> Self {
        self.points.iter_mut().for_each(|point| *point = map(*point));
        self
    }

    /// Number of cells of each shape.
    pub fn counts(&self) -> BTreeMap<CellShape, usize> {
        let mut counts = BTreeMap::new();
        self.cells.iter().for_each(|(shape, ..)| *counts.entry(*shape).or_default() += 1);
        counts
    }

    /// All files of a mesh of solids or in the plane.
    pub fn files(&self) -> Vec<MeshFiles> {
        let one = |name, text: String, parse| MeshFiles { name, files: vec![text.into_bytes()], parse };
        vec![
            one("Gmsh 2.2, mixed", self.gmsh(), |files| io::gmsh::parse(Path::new("fuzz.msh"), &files[0])),
            MeshFiles {
                name: "Gmsh 4.1, mixed",
                files: vec![self.gmsh_4()],
                parse: |files| io::gmsh::parse(Path::new("fuzz.msh"), &files[0]),
            },
            one("VTU, mixed", self.vtu(), |files| io::vtu::parse(Path::new("fuzz.vtu"), &files[0])),
            one("VTK, mixed", self.vtk(), |files| io::vtk::parse(Path::new("fuzz.vtk"), &files[0])),
            one("Abaqus, mixed", self.abaqus(), |files| io::abaqus::parse(Path::new("fuzz.inp"), &files[0])),
            one("MEDIT, mixed", self.medit(), |files| io::medit::parse(Path::new("fuzz.mesh"), &files[0])),
            one("MFEM, mixed", self.mfem(), |files| io::mfem::parse(Path::new("fuzz.mesh"), &files[0])),
            one("UCD, mixed", self.ucd(), |files| io::ucd::parse(Path::new("fuzz.inp"), &files[0])),
            MeshFiles {
                name: "openCARP, mixed",
                files: self.carp().map(String::into_bytes).into(),
                parse: |files| {
                    let [pts, elem] = [0, 1].map(|i| files[i].clone());
                    let files = io::carp::Files { pts, elem, lon: None, surfaces: Vec::new() };
                    io::carp::parse(Path::new("fuzz"), &files)
                },
            },
        ]
    }

    /// Cells after facets, as one list.
    fn entries(&self) -> impl Iterator<Item = &(CellShape, Vec<u32>, i32)> {
        self.facets.iter().chain(&self.cells)
    }

    fn n_entries(&self) -> usize {
        self.facets.len() + self.cells.len()
    }

    /// A text file of Gmsh, version 2.2.
    pub fn gmsh(&self) -> String {
        let mut text = format!("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n", self.points.len());
        for (number, [x, y, z]) in (1..).zip(&self.points) {
            writeln!(text, "{number} {x:?} {y:?} {z:?}").unwrap();
        }
        writeln!(text, "$EndNodes\n$Elements\n{}", self.n_entries()).unwrap();
        for (number, (shape, nodes, tag)) in (1..).zip(self.entries()) {
            let kind = gmsh_type(*shape);
            writeln!(text, "{number} {kind} 2 {tag} {tag} {}", list(nodes, 1)).unwrap();
        }
        text + "$EndElements\n"
    }

    /// A binary file of Gmsh, version 4.1, one block a shape and tag.
    fn gmsh_4(&self) -> Vec<u8> {
        let mut file = b"$MeshFormat\n4.1 1 8\n\x01\0\0\0\n$EndMeshFormat\n$Entities\n".to_vec();
        let size = |file: &mut Vec<u8>, n: usize| file.extend((n as u64).to_le_bytes());
        let int = |file: &mut Vec<u8>, n: i32| file.extend(n.to_le_bytes());
        let dimension = self.cells[0].0.dimension();
        let tags = [(dimension - 1, 1..=6), (dimension, 7..=8)];
        for d in 0..4 {
            size(&mut file, tags.iter().find(|(of, _)| *of == d).map_or(0, |(_, tags)| tags.clone().count()));
        }
        for tag in tags.iter().flat_map(|(_, tags)| tags.clone()) {
            int(&mut file, tag);
            file.extend([0u8; 48]);
            size(&mut file, 1);
            int(&mut file, tag);
            size(&mut file, 0);
        }
        file.extend(b"\n$EndEntities\n$Nodes\n");
        let n = self.points.len();
        [1, n, 1, n].into_iter().for_each(|number| size(&mut file, number));
        [dimension as i32, 7, 0].into_iter().for_each(|number| int(&mut file, number));
        size(&mut file, n);
        (1..=n).for_each(|number| size(&mut file, number));
        self.points.iter().flatten().for_each(|x| file.extend(x.to_le_bytes()));
        file.extend(b"\n$EndNodes\n$Elements\n");
        let mut blocks = BTreeMap::<_, Vec<&[u32]>>::new();
        self.entries().for_each(|(shape, nodes, tag)| blocks.entry((*shape, *tag)).or_default().push(nodes));
        let n = self.n_entries();
        [blocks.len(), n, 1, n].into_iter().for_each(|number| size(&mut file, number));
        let mut number = 0;
        for ((shape, tag), elements) in blocks {
            [shape.dimension() as i32, tag, gmsh_type(shape)]
                .into_iter()
                .for_each(|number| int(&mut file, number));
            size(&mut file, elements.len());
            for nodes in elements {
                number += 1;
                size(&mut file, number);
                nodes.iter().for_each(|&node| size(&mut file, node as usize + 1));
            }
        }
        file.extend(b"\n$EndElements\n");
        file
    }

    /// Nodes of an entry in the order of VTK, which turns the triangles of prisms.
    fn in_vtk_order(shape: CellShape, nodes: &[u32]) -> Vec<u32> {
        match shape {
            Prism => [0, 2, 1, 3, 5, 4].map(|i: usize| nodes[i]).to_vec(),
            _ => nodes.to_vec(),
        }
    }

    /// A text file of VTU.
    pub fn vtu(&self) -> String {
        let [mut cells, mut ends, mut types, mut tags] = [const { String::new() }; 4];
        let mut end = 0;
        for (shape, nodes, tag) in self.entries() {
            end += nodes.len();
            cells += &(list(&Self::in_vtk_order(*shape, nodes), 0) + " ");
            ends += &format!("{end} ");
            types += &format!("{} ", vtk_type(*shape));
            tags += &format!("{tag} ");
        }
        let points: String = self.points.iter().map(|[x, y, z]| format!("{x:?} {y:?} {z:?} ")).collect();
        let array = |name: &str, kind: &str, n: usize, text: &str| {
            format!(
                "<DataArray type=\"{kind}\" Name=\"{name}\" NumberOfComponents=\"{n}\" format=\"ascii\">{text}</DataArray>\n"
            )
        };
        format!(
            "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\"><UnstructuredGrid>\n\
             <Piece NumberOfPoints=\"{}\" NumberOfCells=\"{}\">\n<Points>{}</Points>\n<Cells>{}{}{}</Cells>\n\
             <CellData>{}{}</CellData></Piece></UnstructuredGrid></VTKFile>\n",
            self.points.len(),
            self.n_entries(),
            array("p", "Float64", 3, &points),
            array("connectivity", "Int64", 1, &cells),
            array("offsets", "Int64", 1, &ends),
            array("types", "UInt8", 1, &types),
            array("tag", "Int32", 1, &tags),
            array("sigma", "Float64", 1, &tags)
        )
    }

    /// A legacy text file of VTK.
    fn vtk(&self) -> String {
        let mut text = "# vtk DataFile Version 3.0\nmixed\nASCII\nDATASET UNSTRUCTURED_GRID\n".to_owned();
        writeln!(text, "POINTS {} double", self.points.len()).unwrap();
        self.points.iter().for_each(|[x, y, z]| writeln!(text, "{x:?} {y:?} {z:?}").unwrap());
        let n = self.n_entries();
        let size: usize = self.entries().map(|(_, nodes, _)| 1 + nodes.len()).sum();
        writeln!(text, "CELLS {n} {size}").unwrap();
        for (shape, nodes, _) in self.entries() {
            writeln!(text, "{} {}", nodes.len(), list(&Self::in_vtk_order(*shape, nodes), 0)).unwrap();
        }
        writeln!(text, "CELL_TYPES {n}").unwrap();
        self.entries().for_each(|(shape, ..)| writeln!(text, "{}", vtk_type(*shape)).unwrap());
        writeln!(text, "CELL_DATA {n}\nSCALARS tag int 1\nLOOKUP_TABLE default").unwrap();
        self.entries().for_each(|(_, _, tag)| writeln!(text, "{tag}").unwrap());
        text
    }

    /// A file of Abaqus with a set of elements for each tag, a surface for each side of the first axis, sets of nodes for the others.
    pub fn abaqus(&self) -> String {
        let mut text = "*NODE\n".to_owned();
        for (number, [x, y, z]) in (1..).zip(&self.points) {
            writeln!(text, "{number}, {x:?}, {y:?}, {z:?}").unwrap();
        }
        for (number, (shape, nodes, tag)) in (1..).zip(&self.cells) {
            let name = match shape {
                Segment => "T2D2",
                Triangle => "CPS3",
                Quadrilateral => "CPS4",
                Tetrahedron => "C3D4",
                Pyramid => "C3D5",
                Prism => "C3D6",
                Hexahedron => "C3D8",
            };
            let nodes: Vec<String> = nodes.iter().map(|node| (node + 1).to_string()).collect();
            writeln!(text, "*ELEMENT, TYPE={name}, ELSET=part{tag}\n{number}, {}", nodes.join(", ")).unwrap();
        }
        for side in 1..=2 {
            writeln!(text, "*SURFACE, NAME=side{side}").unwrap();
            for (&(cell, local), (_, _, tag)) in self.sides.iter().zip(&self.facets) {
                if *tag == side {
                    let number = abaqus_side(self.cells[cell].0, local);
                    writeln!(text, "{}, S{number}", cell + 1).unwrap();
                }
            }
        }
        for side in 3..=2 * self.cells[0].0.dimension() as i32 {
            let of_side = self.facets.iter().filter(|(_, _, tag)| *tag == side);
            let mut nodes: Vec<u32> = of_side.flat_map(|(_, nodes, _)| nodes).map(|node| node + 1).collect();
            nodes.sort_unstable();
            nodes.dedup();
            writeln!(text, "*NSET, NSET=side{side}").unwrap();
            nodes.iter().for_each(|node| writeln!(text, "{node}").unwrap());
        }
        text
    }

    fn medit(&self) -> String {
        let mut text = format!("MeshVersionFormatted 2\nDimension 3\nVertices\n{}\n", self.points.len());
        self.points.iter().for_each(|[x, y, z]| writeln!(text, "{x:?} {y:?} {z:?} 0").unwrap());
        for (shape, name) in [
            (Segment, "Edges"),
            (Triangle, "Triangles"),
            (Quadrilateral, "Quadrilaterals"),
            (Tetrahedron, "Tetrahedra"),
            (Pyramid, "Pyramids"),
            (Prism, "Prisms"),
            (Hexahedron, "Hexahedra"),
        ] {
            let all: Vec<_> = self.entries().filter(|(of, ..)| *of == shape).collect();
            writeln!(text, "{name}\n{}", all.len()).unwrap();
            all.iter().for_each(|(_, nodes, tag)| writeln!(text, "{} {tag}", list(nodes, 1)).unwrap());
        }
        text + "End\n"
    }

    fn mfem(&self) -> String {
        let dimension = self.cells[0].0.dimension();
        let mut text = format!("MFEM mesh v1.0\n\ndimension\n{dimension}\n");
        for (name, all) in [("elements", &self.cells), ("boundary", &self.facets)] {
            writeln!(text, "\n{name}\n{}", all.len()).unwrap();
            for (shape, nodes, tag) in all {
                let number = match shape {
                    Segment => 1,
                    Triangle => 2,
                    Quadrilateral => 3,
                    Tetrahedron => 4,
                    Hexahedron => 5,
                    Prism => 6,
                    Pyramid => 7,
                };
                writeln!(text, "{tag} {number} {}", list(nodes, 0)).unwrap();
            }
        }
        writeln!(text, "\nvertices\n{}\n3", self.points.len()).unwrap();
        self.points.iter().for_each(|[x, y, z]| writeln!(text, "{x:?} {y:?} {z:?}").unwrap());
        text
    }

    fn ucd(&self) -> String {
        let mut text = format!("{} {} 0 0 0\n", self.points.len(), self.n_entries());
        for (number, [x, y, z]) in (1..).zip(&self.points) {
            writeln!(text, "{number} {x:?} {y:?} {z:?}").unwrap();
        }
        for (number, (shape, nodes, tag)) in (1..).zip(self.entries()) {
            let (name, order): (_, &[usize]) = match shape {
                Segment => ("line", &[0, 1]),
                Triangle => ("tri", &[0, 1, 2]),
                Quadrilateral => ("quad", &[0, 1, 2, 3]),
                Tetrahedron => ("tet", &[0, 1, 2, 3]),
                Pyramid => ("pyr", &[4, 0, 1, 2, 3]),
                Prism => ("prism", &[0, 1, 2, 3, 4, 5]),
                Hexahedron => ("hex", &[0, 1, 2, 3, 4, 5, 6, 7]),
            };
            let nodes: Vec<u32> = order.iter().map(|&i| nodes[i]).collect();
            writeln!(text, "{number} {tag} {name} {}", list(&nodes, 1)).unwrap();
        }
        text
    }

    /// `.pts` and `.elem` of openCARP, the upper sides of hexahedra and prisms turned.
    fn carp(&self) -> [String; 2] {
        let mut pts = format!("{}\n", self.points.len());
        self.points.iter().for_each(|[x, y, z]| writeln!(pts, "{x:?} {y:?} {z:?}").unwrap());
        let mut elem = format!("{}\n", self.n_entries());
        for (shape, nodes, tag) in self.entries() {
            let (name, order): (_, &[usize]) = match shape {
                Segment => ("Ln", &[0, 1]),
                Triangle => ("Tr", &[0, 1, 2]),
                Quadrilateral => ("Qd", &[0, 1, 2, 3]),
                Tetrahedron => ("Tt", &[0, 1, 2, 3]),
                Pyramid => ("Py", &[0, 1, 2, 3, 4]),
                Prism => ("Pr", &[0, 1, 2, 3, 5, 4]),
                Hexahedron => ("Hx", &[0, 1, 2, 3, 4, 7, 6, 5]),
            };
            let nodes: Vec<u32> = order.iter().map(|&i| nodes[i]).collect();
            writeln!(elem, "{name} {} {tag}", list(&nodes, 0)).unwrap();
        }
        [pts, elem]
    }
}

fn facet(n_nodes: usize) -> CellShape {
    [Segment, Triangle, Quadrilateral][n_nodes - 2]
}

fn list(nodes: &[u32], first: u32) -> String {
    let numbers: Vec<String> = nodes.iter().map(|node| (node + first).to_string()).collect();
    numbers.join(" ")
}

fn gmsh_type(shape: CellShape) -> i32 {
    match shape {
        Segment => 1,
        Triangle => 2,
        Quadrilateral => 3,
        Tetrahedron => 4,
        Hexahedron => 5,
        Prism => 6,
        Pyramid => 7,
    }
}

fn vtk_type(shape: CellShape) -> u8 {
    match shape {
        Segment => 3,
        Triangle => 5,
        Quadrilateral => 9,
        Tetrahedron => 10,
        Hexahedron => 12,
        Prism => 13,
        Pyramid => 14,
    }
}

/// The number that Abaqus gives a facet of a cell.
fn abaqus_side(shape: CellShape, local: usize) -> usize {
    // Nodes of each side, counted from 1, in the tables of its manual.
    let sides: &[&[usize]] = match shape {
        Segment => &[],
        Triangle => &[&[1, 2], &[2, 3], &[3, 1]],
        Quadrilateral => &[&[1, 2], &[2, 3], &[3, 4], &[4, 1]],
        Tetrahedron => &[&[1, 2, 3], &[1, 4, 2], &[2, 4, 3], &[3, 4, 1]],
        Pyramid => &[&[1, 2, 3, 4], &[1, 5, 2], &[2, 5, 3], &[3, 5, 4], &[4, 5, 1]],
        Prism => &[&[1, 2, 3], &[4, 6, 5], &[1, 4, 5, 2], &[2, 5, 6, 3], &[3, 6, 4, 1]],
        Hexahedron => {
            &[&[1, 2, 3, 4], &[5, 8, 7, 6], &[1, 5, 6, 2], &[2, 6, 7, 3], &[3, 7, 8, 4], &[4, 8, 5, 1]]
        }
    };
    let facet = shape.facets()[local];
    let is_it = |side: &&[usize]| side.len() == facet.len() && facet.iter().all(|i| side.contains(&(i + 1)));
    sides.iter().position(is_it).map_or(0, |place| place + 1)
}
