mod in_time;

use std::path::Path;

use femtile_comm::threads;

use super::*;
use crate::{Report, Silent, run};

const EQUATION: &str = r#"
[equation]
sigma = 2
source = "sin(3*x) + y"
[[boundary]]
where = "xmin"
dirichlet = "y*y"
[[boundary]]
where = "z > 1 - 1e-9 && x < 0.4"
robin = { coefficient = 2, value = 1 }
[solver]
tolerance = 1e-12
"#;
const OUTPUT: &str = r#"
functionals = [
  { kind = "max", name = "max" }, { kind = "min", name = "min" }, { kind = "l2_norm", name = "norm" },
  { kind = "energy", name = "energy" }, { kind = "integral", name = "integral" }, { kind = "mean", name = "mean" },
  { kind = "value_at", name = "value", point = [0.3, 0.4, 0.5] },
  { kind = "value_at", name = "values", points = [[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]] },
  { kind = "flux", name = "inflow", where = "xmin" }, { kind = "flux", name = "outflow", where = "zmax" },
  { kind = "error_l2", name = "error", exact = "x" }, { kind = "error_h1", name = "slope", exact = "x*y" },
  { kind = "along", name = "line", from = [0, 0, 0], to = [1, 1, 1], points = 9 },
]
"#;

fn case(folder: &Path, text: &str, comm: Option<&Comm>) -> Case {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    let n = comm.map_or(1, Comm::n_ranks);
    case.file.output.directory = folder.join(format!("out-{n}"));
    case.file.solver.threads = 1;
    case.embedding.comm = comm.cloned();
    case.embedding.writes_files = comm.is_none_or(|comm| comm.rank() == 0);
    case
}

fn on_ranks(n: usize, folder: &Path, text: &str) -> Result<Report, CaseError> {
    let work = |comm: Comm| run(&case(folder, text, Some(&comm)), &mut Silent);
    threads::run(n, work, |comm| work(comm).map(drop))
}

#[test]
fn the_report_is_that_of_one_rank_and_pieces_have_all_cells() {
    for (mesh, more, way) in [
        ("cells = [7, 5, 6]", "", "boxes"),
        ("cells = [7, 5, 6], cell = \"tetrahedron-5\", deform = 0.1", "preconditioner = \"amg\"", "boxes"),
        ("cells = [4, 4, 16], cell = \"hexahedron\", upper = [1, 1, 1.5]", "", "layers"),
        (
            "cells = [6, 5, 4]",
            "[[region]]\nname = \"core\"\nwhere = \"hypot(x, y) < 0.4\"\n[[region]]\nname = \"low\"\nwhere = \"z < 0.3\"",
            "boxes",
        ),
        (
            "cells = [4, 3, 5], cell = \"hexahedron\", deform = 0.1, order = 2",
            "preconditioner = \"pmg\"\n[space]\ndegree = 2",
            "boxes",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = format!("[output]\nvtu = \"pieces\"{OUTPUT}");
        let sigma =
            if more.contains("region") { "{ by_tag = { \"0\" = 1, \"1\" = 5, low = 2 } }" } else { "2" };
        let equation = EQUATION.replace("sigma = 2", &format!("sigma = {sigma}"));
        let text = format!("[mesh]\ngenerate = {{ kind = \"box\", {mesh} }}{equation}{more}\n{output}");
        let alone = run(&case(folder.path(), &text, None), &mut Silent).unwrap();
        for n in [2, 3] {
            let found = on_ranks(n, folder.path(), &text).unwrap();
            let ranks = found.ranks.as_ref().unwrap();
            let expected = if way == "layers" && n == 3 { "boxes" } else { way };
            assert_eq!((ranks.n_ranks, ranks.partition), (n, expected), "{mesh}");
            let sizes = |report: &Report| (report.mesh.n_nodes, report.mesh.n_cells, report.space.n_dofs);
            assert_eq!(sizes(&found), sizes(&alone), "{mesh}");
            assert_eq!(found.warnings, alone.warnings, "{mesh}");
            assert!((found.mesh.volume - alone.mesh.volume).abs() < 1e-12, "{mesh}");
            for (name, expected) in &alone.functionals {
                let found = found.functionals[name];
                assert!((found - expected).abs() < 1e-10, "{mesh}, {name}: {found} {expected}");
            }
            let folder = folder.path().join(format!("out-{n}"));
            let of_piece = |rank: usize| {
                femtile_mesh::io::read(&folder.join(format!("solution_{rank:04}.vtu"))).unwrap().n_cells()
            };
            assert_eq!((0..n).map(of_piece).sum::<usize>(), alone.mesh.n_cells, "{mesh}");
            assert!(folder.join("line.csv").exists() && folder.join("solution.pvtu").exists());
            assert_eq!(crate::verify(&folder).unwrap(), []);
        }
    }
}

#[test]
fn ranks_that_are_threads_make_their_parts_too() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = "[mesh]\ngenerate = { kind = \"box\", cells = [5, 4, 6], cell = \"hexahedron\" }";
    let of = |ranks: usize, vtu: &str| {
        let output = format!("[output]\nvtu = {vtu}{OUTPUT}");
        let text = format!("{mesh}{EQUATION}ranks = {ranks}\n{output}");
        let mut case = Case::parse(&folder.path().join("case.toml"), text).unwrap();
        case.file.output.directory = folder.path().join(format!("out-{ranks}"));
        run(&case, &mut Silent).unwrap()
    };
    let alone = of(1, "false");
    for (ranks, vtu) in [(2, "false"), (3, "\"pieces\"")] {
        let found = of(ranks, vtu);
        assert_eq!(found.ranks.unwrap().partition, "boxes");
        for (name, expected) in &alone.functionals {
            assert!((found.functionals[name] - expected).abs() < 1e-10, "{name}");
        }
        let folder = folder.path().join(format!("out-{ranks}"));
        assert_eq!(crate::verify(&folder).unwrap(), []);
        assert_eq!(folder.join("solution_0002.vtu").exists(), ranks == 3);
    }
    assert_eq!(of(2, "true").ranks.unwrap().partition, "bisection");
}

#[test]
fn a_whole_mesh_serves_what_needs_it() {
    let small = "[mesh]\ngenerate = { kind = \"box\", cells = [4, 4, 6] }";
    let cubes = "[mesh]\ngenerate = { kind = \"box\", cells = [4, 4, 16], cell = \"hexahedron\"";
    let shell = "[mesh]\ngenerate = { kind = \"shell\", cells = 2, layers = 2 }";
    let no_file = "[output]\nvtu = false\n";
    let equation = EQUATION.split("[[boundary]]\nwhere = \"z").next().unwrap();
    let [from_box, from_first, whole] = ["in place", "sent", "whole"];
    for (text, way, held) in [
        (format!("{small}{EQUATION}{no_file}"), "boxes", from_box),
        (format!("{small}{EQUATION}"), "boxes", from_box),
        (format!("{small}{EQUATION}{no_file}picture = true\n"), "boxes", from_box),
        (
            format!("{small}{EQUATION}[output]\nvtu = \"pieces\"\nfields = [\"gradient\"]\n"),
            "bisection",
            whole,
        ),
        (format!("{small}{EQUATION}[output]\nvtu = \"pieces\"\npicture = true\n"), "bisection", whole),
        (format!("{small}\naccept = [\"gap\"]{EQUATION}{no_file}"), "bisection", whole),
        (
            format!("{cubes}, order = 2 }}{EQUATION}preconditioner = \"gmg\"\ngmg.smoother = \"chebyshev\"\n{no_file}")
                .replace("[[boundary]]\nwhere = \"z > 1 - 1e-9 && x < 0.4\"\nrobin = { coefficient = 2, value = 1 }\n", ""),
            "layers",
            from_box,
        ),
        (format!("{small}\nrefine = 1{EQUATION}{no_file}"), "bisection", from_first),
        (format!("{small}\ncheck = \"full\"{EQUATION}{no_file}"), "bisection", from_first),
        (format!("{small}{EQUATION}partition = \"hilbert\"\n{no_file}"), "hilbert", from_first),
        (
            format!("{small}{EQUATION}{no_file}[[region]]\nname = \"a\"\nwhere = \"x < 0.5\"\n"),
            "boxes",
            from_box,
        ),
        (format!("{cubes} }}{EQUATION}{no_file}"), "layers", from_box),
        (
            format!("{cubes}, deform = 0.1 }}{EQUATION}preconditioner = \"jacobi\"\n{no_file}"),
            "boxes",
            from_box,
        ),
        (format!("{cubes}, deform = 0.1 }}{EQUATION}{no_file}"), "layers", from_box),
        (format!("{cubes} }}\ncheck = \"full\"{EQUATION}{no_file}"), "bisection", from_first),
        (
            format!("{shell}{equation}[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n{no_file}")
                .replace("[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y*y\"\n", ""),
            "bisection",
            from_first,
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let alone = source(folder.path(), &text, 2);
        assert_eq!(alone, held, "{text}");
        let found = on_ranks(2, folder.path(), &text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found.ranks.unwrap().partition, way, "{text}");
    }
}

/// Where the ranks of a case have their parts from.
fn source(folder: &Path, text: &str, n: usize) -> &'static str {
    let case = case(folder, text, None);
    match Source::of(&case, &case.solver_config().unwrap(), n) {
        Some(Source::Box(_)) => "in place",
        Some(Source::First { .. }) => "sent",
        None => "whole",
    }
}

#[test]
fn the_first_rank_sends_meshes_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let made = "kind = \"box\", cells = [5, 4, 6], deform = 0.1";
    for (cell, order, solver) in [
        ("tetrahedron", 1, "preconditioner = \"amg\""),
        ("tetrahedron", 1, "preconditioner = \"jacobi\"\npartition = \"hilbert\""),
        ("hexahedron", 2, "preconditioner = \"pmg\"\n[space]\ndegree = 2"),
    ] {
        let generator = format!("generate = {{ {made}, cell = \"{cell}\", order = {order} }}");
        let generator: MeshSection = toml::from_str(&generator).unwrap();
        let mesh = crate::generate(generator.generate.as_ref().unwrap()).unwrap();
        let path = folder.path().join("mesh.vtu");
        femtile_mesh::io::write(&path, &mesh).unwrap();
        let equation = EQUATION.replace("\"xmin\"", "\"x < 1e-9\"");
        let output = OUTPUT.replace("\"xmin\"", "\"x < 1e-9\"").replace("\"zmax\"", "\"z > 1 - 1e-9\"");
        let text = format!(
            "[mesh]\nfile = \"mesh.vtu\"\nscale = 1{equation}{solver}\n[output]\nvtu = \"pieces\"{output}"
        );
        let alone = run(&case(folder.path(), &text, None), &mut Silent).unwrap();
        for n in [2, 3] {
            let held = source(folder.path(), &text, n);
            assert_eq!(held, "sent");
            let found = on_ranks(n, folder.path(), &text).unwrap();
            let sizes = |report: &Report| (report.mesh.n_nodes, report.mesh.n_cells, report.space.n_dofs);
            assert_eq!(sizes(&found), sizes(&alone), "{cell}");
            assert_eq!(found.warnings, alone.warnings, "{cell}");
            for (name, expected) in &alone.functionals {
                let found = found.functionals[name];
                assert!((found - expected).abs() < 1e-10, "{cell}, {name}: {found} {expected}");
            }
            let folder = folder.path().join(format!("out-{n}"));
            assert_eq!(crate::verify(&folder).unwrap(), []);
        }
    }
}

/// The points, cells and fields of a file.
fn written(folder: &Path) -> femtile_mesh::Mesh {
    femtile_mesh::io::read(&folder.join("solution.vtu")).unwrap()
}

fn assert_near(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let size = expected.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9 * size || (found.is_nan() && expected.is_nan()), "{name}");
    }
}

#[test]
fn the_first_rank_writes_what_is_of_the_whole_solution() {
    let config = BoxConfig { cells: [4, 5, 4], ..BoxConfig::default() };
    let mut mesh = femtile_mesh::generate::box_mesh(&config).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| [3, 8][cell % 2]).collect();
    let values = (0..mesh.n_cells()).map(|cell| (cell as f64).sin()).collect();
    mesh.cell_fields.insert("own".into(), femtile_mesh::Field { n_components: 1, values });
    let values = (0..3 * mesh.n_nodes()).map(|at| (at as f64).cos()).collect();
    mesh.node_fields.insert("wind".into(), femtile_mesh::Field { n_components: 3, values });
    let of_file = mesh;
    let region = "[[region]]\nname = \"low\"\nwhere = \"z < 0.3\"\n";
    let by_tag = "{ by_tag = { \"3\" = 1, \"8\" = 2, low = 5 } }";
    let cubes =
        "generate = { kind = \"box\", cells = [3, 3, 4], cell = \"hexahedron\", deform = 0.1, order = 2 }";
    for (mesh, sigma, more) in [
        ("file = \"mesh.vtu\"", by_tag, format!("{region}[output]\nfields = [\"gradient\", \"error\"]")),
        (
            "generate = { kind = \"box\", cells = [5, 4, 6] }",
            "2",
            "[output]\npicture = true\nreport = true".into(),
        ),
        (cubes, "2", "preconditioner = \"pmg\"\n[space]\ndegree = 3\n[output]\nfields = [\"flux\"]".into()),
    ] {
        let folder = tempfile::tempdir().unwrap();
        femtile_mesh::io::write(&folder.path().join("mesh.vtu"), &of_file).unwrap();
        let equation = EQUATION.replace("sigma = 2", &format!("sigma = {sigma}"));
        let equation = if mesh.starts_with("file") { equation.replace("xmin", "x < 1e-9") } else { equation };
        let text = format!("[mesh]\n{mesh}{equation}{more}\n");
        let alone = run(&case(folder.path(), &text, None), &mut Silent).unwrap();
        let one = written(&folder.path().join("out-1"));
        for n in [2, 3] {
            let folder = folder.path();
            assert_ne!(source(folder, &text, n), "whole");
            let found = on_ranks(n, folder, &text).unwrap();
            let folder = folder.join(format!("out-{n}"));
            assert_eq!(crate::verify(&folder).unwrap(), []);
            let names = |report: &Report| report.files.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&found), names(&alone));
            let estimate = |report: &Report| report.solve.discretization_error_estimate.unwrap_or(0.0);
            assert!((estimate(&found) - estimate(&alone)).abs() < 1e-9);
            let all = written(&folder);
            assert_eq!((&all.cells, &all.cell_tags), (&one.cells, &one.cell_tags), "{mesh}");
            assert_near("points", all.points.as_flattened(), one.points.as_flattened());
            for (fields, expected) in
                [(&all.cell_fields, &one.cell_fields), (&all.node_fields, &one.node_fields)]
            {
                assert!(fields.keys().eq(expected.keys()), "{mesh}");
                fields
                    .iter()
                    .for_each(|(name, field)| assert_near(name, &field.values, &expected[name].values));
            }
        }
    }
}

#[test]
fn a_mesh_that_cannot_be_sent_is_an_error_or_whole() {
    let folder = tempfile::tempdir().unwrap();
    let text = |mesh: &str| format!("[mesh]\n{mesh}\n{EQUATION}[output]\nvtu = false\n");
    let said = on_ranks(2, folder.path(), &text("file = \"absent.vtu\"")).unwrap_err().to_string();
    assert!(said.contains("absent.vtu"), "{said}");
    // Eight nodes are too few for a part of each of nine ranks.
    let few = text("generate = { kind = \"box\", cells = [1, 1, 1] }\ncheck = \"full\"");
    let few = few.replace(
        "[[boundary]]\nwhere = \"z > 1 - 1e-9 && x < 0.4\"\nrobin = { coefficient = 2, value = 1 }\n",
        "",
    );
    let alone = run(&case(folder.path(), &few, None), &mut Silent).unwrap();
    let found = on_ranks(9, folder.path(), &few).unwrap();
    assert_eq!(found.ranks.unwrap().n_ranks, 9);
    assert_eq!(found.space.n_dofs, alone.space.n_dofs);
}

#[test]
fn an_error_is_placed_in_the_case() {
    let folder = tempfile::tempdir().unwrap();
    let said = |mesh: &str, output: &str| {
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"box\", {mesh} }}{EQUATION}[output]\nvtu = false\n{output}"
        );
        on_ranks(2, folder.path(), &text).unwrap_err().to_string()
    };
    for (mesh, output, word) in [
        ("cells = [4, 4, 4], deform = 0.4", "", "deform"),
        ("cells = [4, 4, 4], upper = [1, 1, -1]", "", "upper"),
        (
            "cells = [4, 4, 4]",
            "functionals = [{ kind = \"value_at\", name = \"a\", point = [2, 2, 2] }]",
            "outside",
        ),
        (
            "cells = [4, 4, 4]",
            "functionals = [{ kind = \"flux\", name = \"a\", where = \"x > 3\" }]",
            "x from 0 to 1",
        ),
    ] {
        let said = said(mesh, output);
        assert!(said.contains(word), "{word}: {said}");
    }
}
