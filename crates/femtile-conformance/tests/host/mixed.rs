//! Meshes of several kinds of cells from files of every format: parts, tags, solutions and refusals.

use std::collections::BTreeMap;
use std::path::Path;

use femtile_case::{Case, Report, Silent, run};
use femtile_conformance::mesh_files::MeshFiles;
use femtile_conformance::mixed_files::MixedMesh;
use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::{CellKind, CellShape, Division, Mesh, MeshError, io};

/// The name of a tag in a mesh of a format: Abaqus has names, the others numbers.
fn tag(mesh: &Mesh, dimension: usize, number: i32) -> i32 {
    let prefix = if dimension == mesh.dimension() { "part" } else { "side" };
    let named = mesh.tag_names.iter().find(|(_, name)| **name == format!("{prefix}{number}"));
    named.map_or(number, |((_, tag), _)| *tag)
}

/// Volume of the part of a cell of the unit cube or square with `n` boxes an axis.
fn volume_of(mixed: &MixedMesh, cell: usize, n: usize) -> f64 {
    let (shape, nodes, _) = &mixed.cells[cell];
    let of_box = (n as f64).powi(-(shape.dimension() as i32));
    let height = |node: &u32| mixed.points[*node as usize][2] * n as f64;
    match shape {
        CellShape::Pyramid => of_box / 6.0,
        CellShape::Prism | CellShape::Triangle => of_box / 2.0,
        // Half a pyramid.
        CellShape::Tetrahedron if nodes.iter().any(|node| (height(node).fract() - 0.5).abs() < 0.1) => {
            of_box / 12.0
        }
        _ => of_box,
    }
}

fn assert_reads(files: &MeshFiles, mixed: &MixedMesh, n: usize) -> Vec<Vec<u32>> {
    let name = files.name;
    let mut mesh = (files.parse)(&files.files).unwrap_or_else(|error| panic!("{name}: {error}"));
    let dimension = mixed.cells[0].0.dimension();
    assert_eq!(mesh.dimension(), dimension, "{name}");
    assert_eq!(mesh.points, mixed.points, "{name}");
    let division = mesh.division.clone().unwrap();
    assert_eq!(division.counts(), mixed.counts(), "{name}");
    assert_eq!(mesh.notes, [""; 0], "{name}");
    let cells = mesh.cells.clone();
    let report = check(&mut mesh, &CheckConfig::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    // Nothing was turned over: the parts have the orientation of their cells.
    assert_eq!((&report.warnings[..], report.n_flipped), (&[][..], 0), "{name}");
    assert!(mesh.cells == cells && (report.volume - 1.0).abs() < 1e-13, "{name}: {}", report.volume);
    assert_eq!((report.n_components, report.n_boundary_components, report.n_gaps), (1, 1, 0), "{name}");
    let per_side = if dimension == 2 { n } else { 2 * n * n };
    assert_eq!(report.boundary.len(), 2 * dimension * per_side, "{name}");
    assert_eq!(report.division, Some(division.note()), "{name}");
    // Tags of sides are those of their halves, tags of cells those of their parts.
    for side in 1..=2 * dimension as i32 {
        let number = tag(&mesh, dimension - 1, side);
        let facets: Vec<usize> =
            (0..mesh.facets.tags.len()).filter(|&facet| mesh.facets.tags[facet] == number).collect();
        let (axis, x) = ((side as usize - 1) / 2, f64::from((side - 1) % 2));
        let is_there = |&node: &u32| mesh.points[node as usize][axis] == x;
        assert_eq!(facets.len(), per_side, "{name}: side {side}");
        assert!(facets.iter().all(|&facet| mesh.facet(facet).iter().all(is_there)), "{name}: side {side}");
    }
    assert_eq!(report.n_tagged_inside, 0, "{name}");
    let low = tag(&mesh, dimension, 7);
    let of_low = (0..mesh.n_cells()).filter(|&cell| mesh.cell_tags[cell] == low);
    let share: f64 = of_low.map(|cell| mesh.volume_by_corners(cell)).sum();
    assert!((share - (n / 2) as f64 / n as f64).abs() < 1e-13, "{name}: {share}");
    // The parts of a cell of the file fill it. MEDIT has another order of cells.
    let numbers = &mesh.cell_fields[Division::FIELD].values;
    let mut volumes = vec![0.0; division.shapes.len()];
    (0..mesh.n_cells()).for_each(|cell| volumes[numbers[cell] as usize] += mesh.volume_by_corners(cell));
    let mut expected: Vec<f64> = (0..mixed.cells.len()).map(|cell| volume_of(mixed, cell, n)).collect();
    if matches!(name, "MEDIT, mixed" | "Gmsh 4.1, mixed") {
        volumes.sort_by(f64::total_cmp);
        expected.sort_by(f64::total_cmp);
    }
    for (found, expected) in volumes.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-13, "{name}: {found} for {expected}");
    }
    if name == "VTU, mixed" {
        let sigma = &mesh.cell_fields["sigma"].values;
        assert!(sigma.iter().zip(&mesh.cell_tags).all(|(value, tag)| *value == f64::from(*tag)));
    }
    let sorted = |cell: &[u32]| {
        let mut cell = cell.to_vec();
        cell.sort_unstable();
        cell
    };
    let mut parts: Vec<_> = cells.chunks(dimension + 1).map(sorted).collect();
    parts.sort();
    parts
}

#[test]
fn files_of_all_formats_give_the_same_parts_with_tags_and_numbers() {
    let mut meshes = Vec::new();
    for (n, seed) in [(1, 3), (2, 1), (3, 2), (4, 5)] {
        meshes.extend([(MixedMesh::cube(n, seed), n), (MixedMesh::square(2 * n + 1, seed), 2 * n + 1)]);
    }
    for (mixed, n) in meshes {
        if mixed.counts().len() < 2 {
            continue;
        }
        let mut all = mixed.files().into_iter().map(|files| assert_reads(&files, &mixed, n));
        let first = all.next().unwrap();
        assert!(all.all(|other| other == first), "{n}");
    }
}

#[test]
fn meshes_of_one_kind_of_the_solver_are_not_divided() {
    let all = MixedMesh::cube(3, 2);
    for (shape, kind) in
        [(CellShape::Hexahedron, CellKind::Hexahedron), (CellShape::Tetrahedron, CellKind::Tetrahedron)]
    {
        let mut mixed = all.clone();
        mixed.cells.retain(|(of, ..)| *of == shape);
        let text = mixed.gmsh();
        let mesh = io::gmsh::parse(Path::new("a.msh"), text.as_bytes()).unwrap();
        assert_eq!((mesh.kind, mesh.n_cells(), &mesh.division), (kind, mixed.cells.len(), &None));
        assert!(!mesh.cell_fields.contains_key(Division::FIELD));
    }
    for shape in [CellShape::Prism, CellShape::Pyramid] {
        let mut mixed = all.clone();
        mixed.cells.retain(|(of, ..)| *of == shape);
        let text = mixed.gmsh();
        let mesh = io::gmsh::parse(Path::new("a.msh"), text.as_bytes()).unwrap();
        let parts = if shape == CellShape::Prism { 3 } else { 2 };
        assert_eq!((mesh.kind, mesh.n_cells()), (CellKind::Tetrahedron, parts * mixed.cells.len()));
    }
}

/// A case on a mesh file without its solver and output.
struct Problem<'a> {
    exact: &'a str,
    n_ranks: usize,
    /// Space, equation and conditions.
    text: String,
}

/// Solves a case with the text of a mesh file; functionals are its error and the fluxes through both sides of the first axis.
fn solve_on(name: &str, file: &str, problem: &Problem<'_>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), file).unwrap();
    let Problem { exact, n_ranks, text } = problem;
    let text = format!(
        "[mesh]\nfile = \"{name}\"\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-14\nranks = {n_ranks}\n{text}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"error\", kind = \"error_l2\", exact = \"{exact}\" }}, \
         {{ name = \"in\", kind = \"flux\", where = \"1\" }}, {{ name = \"out\", kind = \"flux\", where = \"2\" }}]\n"
    );
    // Abaqus has names of sides.
    let named = |text: String, side: usize| {
        text.replace(&format!("where = \"{side}\""), &format!("where = \"side{side}\""))
    };
    let text = if name == "a.inp" { (1..=2).fold(text, named) } else { text };
    let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent).unwrap()
}

#[test]
fn a_linear_solution_is_exact_on_a_mixed_mesh_from_each_format() {
    let mixed = MixedMesh::cube(3, 4).mapped(|[x, y, z]| [x + 0.2 * y, y, z - 0.1 * x]);
    let flat = MixedMesh::square(5, 4);
    let mut solutions = Vec::new();
    for (mixed, exact) in [(&mixed, "1 + 2*x - 3*y + 0.5*z"), (&flat, "1 + 2*x - 3*y")] {
        for (name, text) in [("a.msh", mixed.gmsh()), ("a.vtu", mixed.vtu()), ("a.inp", mixed.abaqus())] {
            for degree in [1, 2] {
                let conditions = format!(
                    "[space]\ndegree = {degree}\n[equation]\nsigma = 3\n[[boundary]]\nwhere = \"all\"\ndirichlet = \"{exact}\"\n"
                );
                let report = solve_on(name, &text, &Problem { exact, n_ranks: 1, text: conditions });
                let error = report.functionals["error"];
                assert!(error < 1e-12, "{name}, {degree}: {error}");
                assert!(report.mesh.division.unwrap().contains("divided into"));
                let [inward, out] = ["in", "out"].map(|name| report.functionals[name]);
                assert!((inward + out).abs() < 1e-10 && out.abs() > 1.0, "{name}: {inward} {out}");
                solutions.push((mixed.points.len(), out));
            }
        }
    }
    assert!(solutions.iter().all(|(n, out)| {
        let (_, first) = solutions.iter().find(|(of, _)| of == n).unwrap();
        (out - first).abs() < 1e-11
    }));
}

#[test]
fn sides_with_tags_have_the_fluxes_of_theory() {
    // Two materials in series along x: σ = 7 in one half, 8 in the other, by the field of the cells that the parts inherit.
    let mixed = MixedMesh::cube(4, 9);
    let (sigma, flux) = ("{ field = \"sigma\" }", 1.0 / (0.5 / 7.0 + 0.5 / 8.0));
    let exact = format!("if(x < 0.5, {flux:?}*x/7, {flux:?}*0.5/7 + {flux:?}*(x - 0.5)/8)");
    let text = format!(
        "[equation]\nsigma = {sigma}\n[[boundary]]\nwhere = \"1\"\ndirichlet = 0\n[[boundary]]\nwhere = \"2\"\ndirichlet = 1\n"
    );
    for n_ranks in [1, 2, 3] {
        let problem = Problem { exact: &exact, n_ranks, text: text.clone() };
        let report = solve_on("a.vtu", &mixed.vtu(), &problem);
        let [inward, out, error] = ["in", "out", "error"].map(|name| report.functionals[name]);
        assert!(
            (out - flux).abs() < 1e-10 && (inward + flux).abs() < 1e-10,
            "{n_ranks}: {inward} {out} {flux}"
        );
        assert!(error < 1e-12, "{n_ranks}: {error}");
        assert!(report.mesh.division.unwrap().contains("pyramids"));
        assert_eq!(report.ranks.map_or(1, |ranks| ranks.n_ranks), n_ranks);
    }
}

#[test]
fn made_solutions_have_the_orders_of_theory_on_mixed_meshes() {
    let exact = "sin(2*x)*exp(y)*(1 + z)";
    for (degree, kinds) in [(1, 2), (2, 2)] {
        for kind in 0..kinds {
            let error = |n: usize| {
                let mixed = if kind == 0 { MixedMesh::cube(n, 7) } else { MixedMesh::layers(n, 7) };
                let text = format!(
                    "[space]\ndegree = {degree}\n[equation]\nsource = \"3*{exact}\"\n\
                     [[boundary]]\nwhere = \"all\"\ndirichlet = \"{exact}\"\n"
                );
                solve_on("a.msh", &mixed.gmsh(), &Problem { exact, n_ranks: 1, text }).functionals["error"]
            };
            let (coarse, fine) = if degree == 1 { (4, 8) } else { (3, 6) };
            let order = (error(coarse) / error(fine)).log2();
            assert!((order - f64::from(degree + 1)).abs() < 0.3, "{kind}, {degree}: {order}");
        }
    }
}

#[test]
fn bodies_stretch_as_they_should_on_mixed_meshes() {
    // A linear displacement is one of every mesh; its tractions by tag hold it.
    let mixed = MixedMesh::layers(3, 1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.msh"), mixed.gmsh()).unwrap();
    let text = "[mesh]\nfile = \"a.msh\"\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n\
        [[boundary]]\nwhere = \"1\"\ndirichlet = [0, \"free\", \"free\"]\n[[boundary]]\nwhere = \"3\"\ndirichlet = [\"free\", 0, \"free\"]\n\
        [[boundary]]\nwhere = \"5\"\ndirichlet = [\"free\", \"free\", 0]\n[[boundary]]\nwhere = \"2\"\ntraction = [2, 0, 0]\n\
        [output]\nplot = false\nvtu = true\nfunctionals = [{ name = \"end\", kind = \"mean\" }]\n";
    let mut case = Case::parse(&folder.path().join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.path().join("out");
    run(&case, &mut Silent).unwrap();
    let found = io::read(&folder.path().join("out/solution.vtu")).unwrap();
    let u = &found.node_fields["u"];
    for (point, u) in found.points.iter().zip(u.values.chunks(3)) {
        assert!((u[0] - 0.2 * point[0]).abs() < 1e-10 && u[1].abs() + u[2].abs() < 1e-10, "{point:?} {u:?}");
    }
    // The file names the cells that its cells are parts of.
    let numbers = &found.cell_fields[Division::FIELD].values;
    assert_eq!(numbers.iter().copied().fold(0.0, f64::max), (mixed.cells.len() - 1) as f64);
}

#[test]
fn triangles_and_quadrilaterals_in_space_are_a_surface() {
    let mixed = MixedMesh::square(4, 6).mapped(|[x, y, _]| [x, 0.6 * y, 0.8 * y]);
    for (name, text) in [("a.msh", mixed.gmsh()), ("a.vtu", mixed.vtu()), ("a.inp", mixed.abaqus())] {
        let conditions = "[equation]\nsigma = 5\n[[boundary]]\nwhere = \"1\"\ndirichlet = 0\n\
             [[boundary]]\nwhere = \"2\"\ndirichlet = 1\n";
        let problem = Problem { exact: "x", n_ranks: 1, text: conditions.into() };
        let report = solve_on(name, &text, &problem);
        let [error, out] = ["error", "out"].map(|name| report.functionals[name]);
        assert!(error < 1e-12 && (out - 5.0).abs() < 1e-10, "{name}: {error} {out}");
    }
}

/// A file of Gmsh of two cells, a hexahedron and one above it.
fn two_cells(points: &str, cells: &[&str]) -> Result<Mesh, MeshError> {
    let points: Vec<String> =
        points.split(';').zip(1..).map(|(point, number)| format!("{number} {point}")).collect();
    let cells: Vec<String> = cells.iter().zip(1..).map(|(cell, number)| format!("{number} {cell}")).collect();
    let text = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{}\n{}\n$EndNodes\n$Elements\n{}\n{}\n$EndElements\n",
        points.len(),
        points.join("\n"),
        cells.len(),
        cells.join("\n")
    );
    io::gmsh::parse(Path::new("two.msh"), text.as_bytes())
}

const CUBE: &str = "0 0 0;1 0 0;1 1 0;0 1 0;0 0 1;1 0 1;1 1 1;0 1 1";

#[test]
fn collapsed_hexahedra_are_the_cells_that_they_are() {
    // A prism as a hexahedron, and the prism beside it.
    let mut mesh = two_cells(CUBE, &["5 2 1 1 1 2 3 3 5 6 7 7", "6 2 2 2 1 3 4 5 7 8"]).unwrap();
    assert_eq!(mesh.division.as_ref().unwrap().note(), "2 prisms, divided into 6 tetrahedra");
    assert_eq!(mesh.cell_tags, [1, 1, 1, 2, 2, 2]);
    let report = check(&mut mesh, &CheckConfig::default()).unwrap();
    assert!((report.volume - 1.0).abs() < 1e-15 && report.warnings.is_empty());
    let mesh = two_cells(CUBE, &["5 2 1 1 1 2 3 3 5 5 5 5"]).unwrap();
    assert_eq!((mesh.kind, mesh.cells.len()), (CellKind::Tetrahedron, 4));
    let error = two_cells(CUBE, &["5 2 1 1 1 2 3 4 1 2 3 4"]).unwrap_err().to_string();
    assert_eq!(
        error,
        "two.msh: cell 0 has repeated nodes that leave no cell; remove it or correct its nodes"
    );
    // A prism of the other orientation is turned over with a warning, as a tetrahedron is.
    let mut turned = two_cells(CUBE, &["6 0 1 4 3 5 8 7"]).unwrap();
    assert_eq!(check(&mut turned, &CheckConfig::default()).unwrap().n_flipped, 3);
}

#[test]
fn faults_name_the_cell_of_the_file() {
    // A corner of the hexahedron is pushed through the others; the pyramid stands on its top.
    let cells = ["5 0 1 2 3 4 5 6 7 8", "7 0 5 6 7 8 9"];
    let points = format!("{CUBE};0.5 0.5 2").replace("1 1 0;", "-0.2 -0.2 0;");
    let mut mesh = two_cells(&points, &cells).unwrap();
    let error = check(&mut mesh, &CheckConfig::default()).unwrap_err();
    assert!(error.to_string().contains("is a part of hexahedron 0 of the file"), "{error}");
    let points = format!("{CUBE};0.5 0.5 1");
    let error =
        check(&mut two_cells(&points, &cells).unwrap(), &CheckConfig::default()).unwrap_err().to_string();
    assert!(error.contains("is degenerate") && error.contains("part of pyramid 1 of the file"), "{error}");
    // The same pyramid once more.
    let points = format!("{CUBE};0.5 0.5 2");
    let mut twice = two_cells(&points, &[cells[0], cells[1], cells[1]]).unwrap();
    let error = check(&mut twice, &CheckConfig::default()).unwrap_err();
    assert_eq!(error.finding().map(|finding| finding.name()), Some("duplicate-cells"), "{error}");
    assert!(error.to_string().contains("part of pyramid 2 of the file"), "{error}");
    // A tagged triangle that cuts the face along the other diagonal is no face of a cell.
    let cells = [cells[0], cells[1], "2 2 7 7 2 3 4", "3 2 8 8 1 2 3 4"];
    let mut mesh = two_cells(&points, &cells).unwrap();
    assert_eq!(mesh.facets.tags, [7, 8, 8]);
    let report = check(&mut mesh, &CheckConfig::default()).unwrap();
    assert!(
        report.warnings[0].contains("1 tagged facet do not lie on the boundary"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn cells_of_order_2_among_others_are_read_as_straight_with_a_note() {
    // A hexahedron of 20 nodes and a pyramid of 13 on its top; the first edge of the hexahedron is bent.
    let corners =
        [[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [0, 0, 2], [2, 0, 2], [2, 2, 2], [0, 2, 2], [1, 1, 4]];
    let mut points: Vec<[f64; 3]> = corners.iter().map(|p| p.map(f64::from)).collect();
    let hexahedron =
        [[0, 1], [0, 3], [0, 4], [1, 2], [1, 5], [2, 3], [2, 6], [3, 7], [4, 5], [4, 7], [5, 6], [6, 7]];
    let pyramid = [[4, 5], [4, 7], [4, 8], [5, 6], [5, 8], [6, 7], [6, 8], [7, 8]];
    let mut of_edges = BTreeMap::new();
    let mut nodes = |corners: &[usize], edges: &[[usize; 2]]| -> String {
        let mut all = corners.to_vec();
        for &[a, b] in edges {
            let node = of_edges.entry([a, b]).or_insert_with(|| {
                points.push(std::array::from_fn(|d| 0.5 * (points[a][d] + points[b][d])));
                points.len() - 1
            });
            all.push(*node);
        }
        all.iter().map(|node| format!(" {}", node + 1)).collect()
    };
    let cells = [
        format!("17 2 1 1{}", nodes(&[0, 1, 2, 3, 4, 5, 6, 7], &hexahedron)),
        format!("19 2 2 2{}", nodes(&[4, 5, 6, 7, 8], &pyramid)),
    ];
    for bend in [0.0, 0.2] {
        let mut points = points.clone();
        points[9][1] -= bend;
        let text: Vec<String> = points.iter().map(|[x, y, z]| format!("{x} {y} {z}")).collect();
        let mut mesh = two_cells(&text.join(";"), &[&cells[0], &cells[1]]).unwrap();
        assert_eq!((mesh.kind, mesh.n_nodes(), mesh.curved.is_none()), (CellKind::Tetrahedron, 9, true));
        let [pyramid, hexahedron] = &mesh.notes[..] else { panic!("{:?}", mesh.notes) };
        assert!(pyramid.starts_with("a pyramid of order 2 is read as straight"), "{pyramid}");
        assert!(pyramid.ends_with("all of which lie where straight cells have them"), "{pyramid}");
        assert_eq!(hexahedron.contains("that curved shape is lost"), bend > 0.0, "{hexahedron}");
        assert_eq!(hexahedron.contains("1.0e-1 longest edges away"), bend > 0.0, "{hexahedron}");
        let report = check(&mut mesh, &CheckConfig::default()).unwrap();
        assert!((report.volume - 8.0 - 8.0 / 3.0).abs() < 1e-13);
    }
}

#[test]
fn divided_meshes_are_written_and_read_again() {
    let mixed = MixedMesh::cube(2, 1);
    let folder = tempfile::tempdir().unwrap();
    let mesh = io::gmsh::parse(Path::new("a.msh"), mixed.gmsh().as_bytes()).unwrap();
    for name in ["a.vtu", "a.msh", "a.mesh"] {
        let path = folder.path().join(name);
        io::write(&path, &mesh).unwrap();
        let read = io::read(&path).unwrap();
        assert_eq!((read.kind, read.n_cells()), (CellKind::Tetrahedron, mesh.n_cells()), "{name}");
        assert_eq!((&read.division, read.notes.len()), (&None, 0), "{name}");
    }
    // A field of the file with the name that the numbers of cells have is left out with a note.
    let text = mixed.vtu().replace("Name=\"sigma\"", "Name=\"cell_of_file\"");
    let read = io::vtu::parse(Path::new("a.vtu"), text.as_bytes()).unwrap();
    assert!(read.notes[0].contains("`cell_of_file` of the file is left out"), "{:?}", read.notes);
    assert_eq!(read.cell_fields[Division::FIELD], mesh.cell_fields[Division::FIELD]);
}

/// A piece of a VTU file with points of its own: `n` by `n` boxes between two heights, prisms or hexahedra.
fn piece(n: usize, z: f64, are_prisms: bool, shift: f64) -> String {
    let m = n + 1;
    // The second piece counts its columns from the other side.
    let number = |[i, j, k]: [usize; 3]| (if are_prisms { n - i } else { i }) + m * (j + m * k);
    let mut points = vec![String::new(); 2 * m * m];
    let (mut cells, mut n_cells) = (String::new(), 0);
    for at in (0..m * m * 2).map(|at| [at % m, at / m % m, at / m / m]) {
        let [x, y] = [at[0], at[1]].map(|i| i as f64 / n as f64 + shift);
        points[number(at)] = format!("{x:?} {y:?} {:?}", z + at[2] as f64);
        if at[0] == n || at[1] == n || at[2] == 1 {
            continue;
        }
        let corners =
            [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
                .map(|by: [usize; 3]| number(std::array::from_fn(|d| at[d] + by[d])));
        let of_box: &[&[usize]] = match are_prisms {
            true => &[&[0, 4, 1, 3, 7, 2], &[1, 4, 5, 2, 7, 6]],
            false => &[&[0, 1, 2, 3, 4, 5, 6, 7]],
        };
        for cell in of_box {
            cell.iter().for_each(|&i| cells += &format!("{} ", corners[i]));
            n_cells += 1;
        }
    }
    let (n_nodes, kind) = if are_prisms { (6, 13) } else { (8, 12) };
    let ends: Vec<String> = (1..=n_cells).map(|cell| (cell * n_nodes).to_string()).collect();
    format!(
        "<Piece NumberOfPoints=\"{}\" NumberOfCells=\"{n_cells}\"><Points><DataArray type=\"Float64\" NumberOfComponents=\"3\">\
         {}</DataArray></Points><Cells><DataArray type=\"Int32\" Name=\"connectivity\">{cells}</DataArray><DataArray \
         type=\"Int32\" Name=\"offsets\">{}</DataArray><DataArray type=\"UInt8\" Name=\"types\">{}</DataArray></Cells></Piece>",
        points.len(),
        points.join(" "),
        ends.join(" "),
        vec![kind.to_string(); n_cells].join(" ")
    )
}

/// Hexahedra below prisms, each in a piece of a VTU file.
fn two_pieces(n: [usize; 2], shift: f64) -> String {
    format!(
        "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid>{}{}</UnstructuredGrid></VTKFile>",
        piece(n[0], 0.0, false, 0.0),
        piece(n[1], 1.0, true, shift)
    )
}

#[test]
fn divided_pieces_with_points_of_their_own_match_when_they_are_merged() {
    for (n, shift) in [(1, 0.0), (2, 0.0), (5, 0.0), (5, 3e-12)] {
        let text = two_pieces([n, n], shift);
        let mut mesh = io::vtu::parse(Path::new("a.vtu"), text.as_bytes()).unwrap();
        assert_eq!(mesh.division.as_ref().unwrap().shapes.len(), 3 * n * n);
        let apart = check(&mut mesh.clone(), &CheckConfig::default()).unwrap();
        assert_eq!((apart.n_components, apart.n_crack_facets), (2, 4 * n * n), "{n}");
        let config = CheckConfig { merge_duplicates: true, ..CheckConfig::default() };
        let report = check(&mut mesh, &config).unwrap();
        assert_eq!((report.n_components, report.n_boundary_components), (1, 1), "{n}");
        assert_eq!((report.n_merged, report.n_gaps), ((n + 1) * (n + 1), 0), "{n}");
        assert_eq!(report.boundary.len(), 2 * 2 * n * (n + 4), "{n}");
        assert!((report.volume - 2.0).abs() < 1e-9, "{n}: {}", report.volume);
    }
}

#[test]
fn ties_do_not_hide_divided_parts_that_a_merge_fails_to_join() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.vtu"), two_pieces([2, 3], 0.0)).unwrap();
    let message = |more: &str| {
        let text = format!(
            "[mesh]\nfile = \"a.vtu\"\nmerge = true\n{more}[equation]\nlambda = 1\n[solver]\ndevice = \"cpu\"\n\
             [[tie]]\nfrom = \"z > 1.5\"\nto = \"z < 0.5\"\n"
        );
        let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
        case.file.output.directory = folder.path().join("out");
        run(&case, &mut Silent).map(|_| ()).map_err(|error| error.to_string())
    };
    let said = message("").unwrap_err();
    assert!(said.contains("overlap without coinciding") && said.contains("tied sides"), "{said}");
    // Taken as it is, the sides that are tied are too far from each other.
    let said = message("accept = [\"overlapping-facets\"]\n").unwrap_err();
    assert!(!said.contains("overlap without coinciding"), "{said}");
}

#[test]
fn one_collapsed_cell_that_divides_all_others_is_named() {
    let points = format!("{CUBE};0 0 2;1 0 2;1 1 2;0 1 2");
    let cells = ["5 2 1 1 1 2 3 4 5 6 7 8", "5 2 1 1 5 6 7 8 9 10 11 11"];
    let mesh = two_cells(&points, &cells).unwrap();
    assert_eq!(mesh.notes, ["1 of 2 hexahedra has repeated nodes, cell 1: therefore all cells are divided"]);
    let cells = [cells[1], "5 2 1 1 1 2 3 3 5 6 7 7"];
    let mut mesh = two_cells(&points, &cells).unwrap();
    let note = "2 of 2 hexahedra have repeated nodes, the first is cell 0: therefore all cells are divided";
    assert_eq!(mesh.notes, [note]);
    assert!(check(&mut mesh, &CheckConfig::default()).unwrap().warnings.contains(&note.into()));
}

#[test]
fn tagged_quadrilaterals_that_are_none_are_left_out_with_a_note() {
    let points = format!("{CUBE};0.5 0.5 2");
    let cells = [
        "5 0 1 2 3 4 5 6 7 8",
        "7 0 5 6 7 8 9",
        "3 2 4 4 1 2 1 4",
        "3 2 5 5 1 1 2 2",
        "3 2 6 6 1 2 3 3",
        "3 2 7 7 1 2 6 5",
    ];
    let mesh = two_cells(&points, &cells).unwrap();
    // That of three corners is a triangle.
    assert_eq!(mesh.facets.tags, [6, 7, 7]);
    assert_eq!(
        mesh.notes,
        ["2 tagged quadrilaterals have repeated nodes that leave no facet; they are left out"]
    );
}

#[test]
fn curved_cells_of_mfem_need_distinct_corners() {
    let values: String =
        (0..9).map(|i| format!("{:?} {:?}\n", f64::from(i % 3) / 2.0, f64::from(i / 3) / 2.0)).collect();
    let text = format!(
        "MFEM mesh v1.0\n\ndimension\n2\n\nelements\n1\n1 3 0 1 2 2\n\nboundary\n0\n\nvertices\n3\n\nnodes\n\
         FiniteElementSpace\nFiniteElementCollection: L2_2D_P2\nVDim: 2\nOrdering: 1\n\n{values}"
    );
    let error = io::mfem::parse(Path::new("a.mesh"), text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("cell 0, a quadrilateral with repeated vertices"), "{error}");
    assert!(error.contains("save the mesh without `nodes`"), "{error}");
}

#[test]
fn periodic_sides_of_divided_cells_may_have_unlike_diagonals() {
    let exact = "y*(1 - y)/2";
    let text = "[space]\ndegree = 2\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"1\"\n[unknown]\nu = {}\n\
        [[periodic]]\nfrom = \"1\"\nto = \"2\"\n[[boundary]]\nwhere = \"3\"\ndirichlet = 0\n[[boundary]]\nwhere = \"4\"\n\
        dirichlet = 0\n";
    for mixed in [MixedMesh::cube(3, 5), MixedMesh::layers(2, 3)] {
        let problem = Problem { exact, n_ranks: 1, text: text.into() };
        let error = solve_on("a.msh", &mixed.gmsh(), &problem).functionals["error"];
        assert!(error < 1e-10, "{error}");
    }
}

#[test]
fn interfaces_between_divided_cells_have_the_jump_of_theory() {
    // Conductance 1/2 in the middle of a unit length: a resistance of 1 + 2 for a difference of 4.
    let mut mixed = MixedMesh::cube(4, 9);
    let inside = |nodes: &[u32]| nodes.iter().all(|&node| mixed.points[node as usize][0] == 0.5);
    let mut facets = Vec::new();
    for (shape, nodes, _) in mixed.cells.iter().filter(|(.., tag)| *tag == 7) {
        for local in shape.facets() {
            let nodes: Vec<u32> = local.iter().map(|&i| nodes[i]).collect();
            if inside(&nodes) {
                let shape = if nodes.len() == 4 { CellShape::Quadrilateral } else { CellShape::Triangle };
                facets.push((shape, nodes, 9));
            }
        }
    }
    mixed.facets.extend(facets);
    let text = "[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n[unknown]\nu = {}\n[[interface]]\nwhere = \"9\"\n\
        conductance = 0.5\n[[boundary]]\nwhere = \"1\"\ndirichlet = 0\n[[boundary]]\nwhere = \"2\"\ndirichlet = 4\n";
    let exact = "if(x < 0.5, 4/3*x, 4 - 4/3*(1 - x))";
    for n_ranks in [1, 2] {
        let report = solve_on("a.msh", &mixed.gmsh(), &Problem { exact, n_ranks, text: text.into() });
        let [error, out] = ["error", "out"].map(|name| report.functionals[name]);
        assert!(error < 1e-10 && (out.abs() - 4.0 / 3.0).abs() < 1e-9, "{n_ranks}: {error} {out}");
    }
}
