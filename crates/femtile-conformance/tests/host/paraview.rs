//! The VTU and VTKHDF files of our writers, read by VTK: points, cells, tags, fields, for every kind of cell; polynomials on
//! simplices of higher order.

use std::path::Path;
use std::process::Command;

use femtile::mesh::check::boundary_facets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile::mesh::io::vtu::{
    Compression, Extent, LagrangeCells, Pieces, WriteOptions, lattice, write_lagrange, write_with,
};
use femtile::mesh::partition::Partitioner;
use femtile::mesh::{CellKind, Field, Mesh};
use femtile_case::{Case, Silent};
use serde_json::json;

fn meshes() -> Vec<Mesh> {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [3, 17, 13], split, ..BoxConfig::default() }).unwrap());
    let planes = [SquareSplit::Triangles, SquareSplit::Quadrilateral]
        .map(|split| square(&SquareConfig { cells: [5, 3], split, ..SquareConfig::default() }).unwrap());
    boxes.into_iter().chain(planes).collect()
}

/// Returns a function that compares a file with what is expected of it; none without VTK.
fn checker() -> Option<impl Fn(&Path, serde_json::Value, &str)> {
    let Some(python) = std::env::var_os("FEMTILE_PYTHON") else {
        eprintln!("SKIPPED: VTK reads VTU files: FEMTILE_PYTHON names no Python with vtk");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("paraview/check_vtu.py");
    Some(move |file: &Path, promise: serde_json::Value, what: &str| {
        let expected = file.with_extension("json");
        std::fs::write(&expected, promise.to_string()).unwrap();
        let checked = Command::new(&python).arg(&script).arg(file).arg(&expected).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        let errors = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{what}: {said}{errors}");
    })
}

#[test]
fn vtk_interpolates_polynomials_on_simplices_of_their_order() {
    let Some(check) = checker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("simplex.vtu");
    let edges = [[1.1, 0.2, 0.3], [-0.2, 0.9, 0.1], [0.1, -0.3, 1.2]];
    for kind in [CellKind::Triangle, CellKind::Tetrahedron] {
        let map = |x: [f64; 3]| -> [f64; 3] {
            std::array::from_fn(|i| 0.5 + (0..kind.dimension()).map(|a| x[a] * edges[a][i]).sum::<f64>())
        };
        for order in 1..=6 {
            let mut lattice = lattice(kind, order).unwrap();
            lattice.sort_by_key(|&[i, j, k]| [k, j, i]);
            let points: Vec<[f64; 3]> =
                lattice.iter().map(|at| map(at.map(|i| i as f64 / order as f64))).collect();
            let u = |[x, y, z]: [f64; 3]| (0.3 + 0.7 * x - 0.4 * y + 0.5 * z).powi(order as i32);
            let numbers: Vec<u32> = (0..points.len() as u32).collect();
            let cells = LagrangeCells { kind, order, points: &points, cells: &numbers };
            let field = Field { n_components: 1, values: points.iter().map(|&point| u(point)).collect() };
            write_lagrange(&file, &cells, &[("u", &field)], &[], WriteOptions::default()).unwrap();
            let inside = [[0.21, 0.34, 0.17], [0.05, 0.11, 0.62], [0.7, 0.1, 0.08]].map(|[x, y, z]| {
                let reference = [x, y, if kind.dimension() == 3 { z } else { 0.0 }];
                let point = map(reference);
                json!({ "cell": 0, "reference": reference, "point": point, "u": u(point) })
            });
            let promise = json!({ "n_points": points.len(), "n_cells": 1, "inside": inside });
            check(&file, promise, &format!("{kind} of order {order}"));
        }
    }
}

#[test]
fn vtk_reads_every_kind_of_cell_compressed_or_not() {
    let Some(check) = checker() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mesh.vtu");
    for mut mesh in meshes() {
        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|i| i % 7 - 3).collect();
        let vectors: Vec<f64> = (0..3 * mesh.n_cells()).map(|i| (i as f64).sin() * 1e-7).collect();
        let values: Vec<f64> = (0..mesh.n_nodes()).map(|i| (i as f64 * 0.7).cos() * 1e9).collect();
        let (u, v) = (Field { n_components: 1, values }, Field { n_components: 3, values: vectors });
        for compression in [Compression::None, Compression::Zlib, Compression::Lz4] {
            let options = WriteOptions { compression, ..WriteOptions::default() };
            write_with(&file, &mesh, &[("u", &u)], &[("v <&>", &v)], options).unwrap();
            let cells: Vec<&[u32]> = (0..mesh.n_cells()).map(|cell| mesh.cell(cell)).collect();
            let promise = json!({
                "n_points": mesh.n_nodes(),
                "n_cells": mesh.n_cells(),
                "points": mesh.points.iter().flatten().collect::<Vec<_>>(),
                "cells": cells,
                "point_arrays": { "u": { "n_components": 1, "values": u.values } },
                "cell_arrays": {
                    "v <&>": { "n_components": 3, "values": v.values },
                    "tag": { "n_components": 1, "values": mesh.cell_tags },
                },
            });
            check(&file, promise, &format!("{}, {compression:?}", mesh.kind));
        }
        let options = WriteOptions { extent: Extent::Surface, ..WriteOptions::default() };
        write_with(&file, &mesh, &[("u", &u)], &[], options).unwrap();
        let boundary = boundary_facets(&mesh);
        let mut nodes = boundary.nodes.clone();
        nodes.sort_unstable();
        nodes.dedup();
        let facets = (0..boundary.len()).map(|i| boundary.facet(i));
        let facets = facets.map(|facet| facet.iter().map(|node| nodes.binary_search(node).unwrap()));
        let promise = json!({
            "n_points": nodes.len(),
            "n_cells": boundary.len(),
            "points": nodes.iter().flat_map(|&node| mesh.points[node as usize]).collect::<Vec<_>>(),
            "cells": facets.map(Iterator::collect).collect::<Vec<Vec<usize>>>(),
            "point_arrays": {
                "u": { "values": nodes.iter().map(|&node| u.values[node as usize]).collect::<Vec<_>>() },
            },
            "cell_arrays": {
                "tag": { "values": boundary.cells.iter().map(|&cell| cell as i32 % 7 - 3).collect::<Vec<_>>() },
            },
        });
        check(&file, promise, &format!("surface of {}", mesh.kind));
        // The cells of one rank after those of another, each once.
        let partition = Partitioner::Bisection.divide(&mesh, 3);
        for compression in [Compression::None, Compression::Zlib] {
            let extent = Extent::Pieces(Pieces { partition: &partition, only: None });
            let options = WriteOptions { compression, extent, ..WriteOptions::default() };
            let number =
                Field { n_components: 1, values: (0..mesh.n_cells()).map(|cell| cell as f64).collect() };
            let pieces = folder.path().join("pieces.pvtu");
            write_with(&pieces, &mesh, &[("u", &u)], &[("number", &number)], options).unwrap();
            let ranks = partition.ranks();
            let of_rank = |rank: u32| (0..mesh.n_cells()).filter(move |&cell| ranks[cell] == rank);
            let cells: Vec<usize> = (0..3).flat_map(of_rank).collect();
            let nodes = (0..3).flat_map(|rank| {
                let mut nodes: Vec<u32> = of_rank(rank).flat_map(|cell| mesh.cell(cell).to_vec()).collect();
                nodes.sort_unstable();
                nodes.dedup();
                nodes
            });
            let nodes: Vec<usize> = nodes.map(|node| node as usize).collect();
            let tags: Vec<i32> = cells.iter().map(|&cell| mesh.cell_tags[cell]).collect();
            let promise = json!({
                "n_points": nodes.len(),
                "n_cells": mesh.n_cells(),
                "points": nodes.iter().flat_map(|&node| mesh.points[node]).collect::<Vec<_>>(),
                "point_arrays": {
                    "u": { "n_components": 1, "values": nodes.iter().map(|&node| u.values[node]).collect::<Vec<_>>() },
                },
                "cell_arrays": { "number": { "values": cells }, "tag": { "values": tags } },
            });
            check(&pieces, promise, &format!("pieces of {}, {compression:?}", mesh.kind));
        }
    }
}

#[test]
fn vtk_finds_in_one_file_what_it_finds_in_the_vtu_files_of_a_run() {
    let Some(check) = checker() else { return };
    let square = |cell: &str| format!("kind = \"square\", cells = [4, 3], cell = \"{cell}\"");
    let cube = |cell: &str| format!("kind = \"box\", cells = [2, 1, 3], cell = \"{cell}\"");
    let steady = "source = \"x\"";
    let heat = "kind = \"diffusion\"\nsource = \"x + t\"\n[time]\nmethod = \"bdf2\"\nend = 0.4\nsteps = 8\n\
                frames = { every = 0.1 }";
    let form = "kind = \"form\"\nflux = \"grad(u)\"\nsource = \"x\"\n[unknown]\nu = {}";
    for (mesh, degree, equation, n_frames) in [
        (square("triangle"), 1, steady, 0),
        (square("quadrilateral"), 3, steady, 0),
        (cube("hexahedron"), 2, steady, 0),
        (cube("tetrahedron"), 2, form, 0),
        (cube("tetrahedron"), 1, heat, 5),
        (square("quadrilateral"), 2, heat, 5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Vectors at points and numbers of cells, where they are offered.
        let fields = if equation == steady { "fields = [\"gradient\", \"error\"]\n" } else { "" };
        let text = format!(
            "[mesh]\ngenerate = {{ {mesh} }}\n[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n\
             [space]\ndegree = {degree}\n[equation]\n{equation}\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y\"\n\
             [output]\nvtkhdf = true\n{fields}"
        );
        let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
        case.file.output.directory = folder.path().join("out");
        femtile_case::run(&case, &mut Silent).unwrap();
        let out = |name: &str| case.file.output.directory.join(name);
        let mut frames: Vec<_> = (0..n_frames)
            .map(|i| json!({ "time": f64::from(i) * 0.1, "file": out(&format!("frames/u_{i:04}.vtu")) }))
            .collect();
        if frames.is_empty() {
            frames.push(json!({ "time": null, "file": out("solution.vtu") }));
        }
        check(&out("solution.vtkhdf"), json!({ "frames": frames }), &format!("{mesh}, degree {degree}"));
    }
}
