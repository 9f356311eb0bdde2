//! Runs in time whose first rank alone has the whole mesh.

use super::*;

/// Heat with data that depend on the time, frames and traces.
const HEAT: &str = r#"
[equation]
kind = "diffusion"
diffusion = DIFFUSION
source = "sin(3*t)*y"
initial = "x + y*z"
[[boundary]]
where = "x < 1e-9"
dirichlet = "t*y"
[solver]
tolerance = 1e-12
[time]
method = "bdf2"
end = 0.5
steps = 8
frames = [0, 0.25, 0.5]
traces = { every = 0.1 }
checkpoint = { steps = 3 }
"#;
/// A paced block with an electrode.
const HEART: &str = r#"
[equation]
kind = "monodomain"
sigma = SIGMA
[membrane]
model = "aliev-panfilov"
[[stimulus]]
where = "x < 0.3"
strength = 1
duration = 1
[solver]
tolerance = 1e-12
[time]
method = "strang"
end = 3
step = 0.05
frames = [0, 1, 3]
traces = { every = 0.5 }
checkpoint = { steps = 25 }
[ecg]
electrodes = { V1 = [3, 0, 0] }
"#;
const FUNCTIONALS: &str = r#"
functionals = [
  { kind = "max", name = "max" }, { kind = "integral", name = "integral" },
  { kind = "value_at", name = "value", point = [0.3, 0.4, 0.5] },
  { kind = "along", name = "line", from = [0, 0, 0], to = [1, 1, 1], points = 9 },
]
"#;

fn run_of(folder: &Path, text: &str) -> Report {
    run(&case(folder, text, None), &mut Silent).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The rows of the table of traces, by numbers.
fn traces(folder: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(folder.join("traces.csv")).unwrap();
    text.lines().skip(1).flat_map(|line| line.split(',')).map(|number| number.parse().unwrap()).collect()
}

fn assert_runs(text: &str, folder: &Path, alone: &Report, n: usize) {
    let found = on_ranks(n, folder, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let sizes = |report: &Report| (report.mesh.n_nodes, report.mesh.n_cells, report.space.n_dofs);
    assert_eq!(sizes(&found), sizes(alone), "{text}");
    assert_eq!(found.warnings, alone.warnings, "{text}");
    for (name, expected) in &alone.functionals {
        let found = found.functionals[name];
        assert!((found - expected).abs() < 1e-7, "{text}, {name}: {found} {expected}");
    }
    let steps = |report: &Report| report.time.as_ref().unwrap().steps;
    assert_eq!(steps(&found), steps(alone));
    let [folder, of_one] = [n, 1].map(|n| folder.join(format!("out-{n}")));
    assert_eq!(crate::verify(&folder).unwrap(), []);
    let [found, expected] = [&folder, &of_one].map(|folder| traces(folder));
    assert_close("traces", &found, &expected);
    for frame in ["frames/u_0001.vtu", "frames/u_0002.vtu"] {
        let [found, expected] =
            [&folder, &of_one].map(|folder| femtile_mesh::io::read(&folder.join(frame)).unwrap());
        assert_eq!(found.cells, expected.cells);
        for (name, field) in &expected.node_fields {
            assert_close(name, &found.node_fields[name].values, &field.values);
        }
    }
}

fn assert_close(name: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() < 1e-7 || found.is_nan() && expected.is_nan(),
            "{name}: {found} {expected}"
        );
    }
}

#[test]
fn heat_in_parts_is_that_of_one_rank() {
    let of_file = box_of_file();
    for (mesh, diffusion, more, held) in [
        ("generate = { kind = \"box\", cells = [5, 4, 6] }", "2", "", "in place"),
        ("file = \"mesh.vtu\"", "{ by_tag = { \"3\" = 1, \"8\" = 2, low = 5 } }", "amg", "sent"),
        (
            "generate = { kind = \"box\", cells = [3, 3, 4], cell = \"hexahedron\", deform = 0.1, order = 2 }",
            "2",
            "jacobi",
            "in place",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        femtile_mesh::io::write(&folder.path().join("mesh.vtu"), &of_file).unwrap();
        let solver =
            if more.is_empty() { String::new() } else { format!("[solver]\npreconditioner = \"{more}\"") };
        let region = if held == "sent" { "[[region]]\nname = \"low\"\nwhere = \"z < 0.3\"\n" } else { "" };
        let degree = if mesh.contains("hexahedron") { "[space]\ndegree = 2\n" } else { "" };
        let heat = HEAT
            .replace("DIFFUSION", diffusion)
            .replace("[solver]", if more.is_empty() { "[solver]" } else { &solver });
        let text = format!("[mesh]\n{mesh}\n{region}{degree}{heat}[output]{FUNCTIONALS}");
        let alone = run_of(folder.path(), &text);
        assert_eq!(source(folder.path(), &text, 2), held);
        for n in [2, 3] {
            assert_runs(&text, folder.path(), &alone, n);
        }
    }
}

fn box_of_file() -> Mesh {
    let config = BoxConfig { cells: [4, 5, 4], ..BoxConfig::default() };
    let mut mesh = femtile_mesh::generate::box_mesh(&config).unwrap();
    mesh.cell_tags = (0..mesh.n_cells()).map(|cell| [3, 8][cell % 2]).collect();
    let fibre: Vec<f64> = (0..mesh.n_cells()).flat_map(|cell| [1.0 + (cell % 3) as f64, 0.5, 0.0]).collect();
    mesh.cell_fields.insert("fibre".into(), femtile_mesh::Field { n_components: 3, values: fibre });
    mesh
}

/// Fibres of other lengths than one are noted once, by the first rank.
#[test]
fn hearts_in_parts_are_those_of_one_rank() {
    let of_file = box_of_file();
    for (mesh, sigma, held) in [
        ("generate = { kind = \"box\", cells = [5, 4, 6] }", "0.02", "in place"),
        ("file = \"mesh.vtu\"", "{ fibre = \"fibre\", along = 0.02, across = 0.01 }", "sent"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        femtile_mesh::io::write(&folder.path().join("mesh.vtu"), &of_file).unwrap();
        let text = format!("[mesh]\n{mesh}{}[output]{FUNCTIONALS}", HEART.replace("SIGMA", sigma));
        let alone = run_of(folder.path(), &text);
        assert_eq!(source(folder.path(), &text, 2), held);
        for n in [2, 3] {
            assert_runs(&text, folder.path(), &alone, n);
            let [found, expected] = [n, 1].map(|n| written(&folder.path().join(format!("out-{n}"))));
            for (name, field) in expected.node_fields.iter().chain(&expected.cell_fields) {
                let fields = || found.node_fields.iter().chain(&found.cell_fields);
                let found = fields().find(|(found, _)| *found == name).unwrap().1;
                // A velocity is that of differences of times.
                if name != "conduction_velocity" {
                    assert_close(name, &found.values, &field.values);
                }
            }
        }
    }
}

#[test]
fn a_run_goes_on_on_another_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let mesh = "[mesh]\ngenerate = { kind = \"box\", cells = [5, 4, 6] }";
    for text in [HEAT.replace("DIFFUSION", "2"), HEART.replace("SIGMA", "0.02")] {
        let text = format!("{mesh}{text}[output]{FUNCTIONALS}");
        let alone = run_of(folder.path(), &text);
        on_ranks(3, folder.path(), &text).unwrap();
        let resumed = text.replace("[time]", "[time]\nrestart = true");
        let state = |n: usize| folder.path().join(format!("out-{n}")).join("checkpoint.bin");
        for (from, to) in [(3, 2), (2, 1), (1, 3)] {
            std::fs::create_dir_all(state(to).parent().unwrap()).unwrap();
            std::fs::copy(state(from), state(to)).unwrap();
            let found = match to {
                1 => run_of(folder.path(), &resumed),
                _ => on_ranks(to, folder.path(), &resumed).unwrap(),
            };
            for (name, expected) in &alone.functionals {
                let found = found.functionals[name];
                assert!((found - expected).abs() < 1e-7, "{from} to {to}, {name}: {found} {expected}");
            }
        }
        let other = resumed.replace("cells = [5, 4, 6]", "cells = [5, 4, 5]");
        let said = on_ranks(2, folder.path(), &other).unwrap_err().to_string();
        assert!(said.contains("another mesh"), "{said}");
    }
}

/// Without frames, traces and states no rank has the whole mesh.
#[test]
fn ranks_write_their_pieces_of_the_end_of_a_run() {
    let recorded = HEAT.replace("DIFFUSION", "2");
    let is_of_end = |line: &&str| !["frames", "traces", "checkpoint"].iter().any(|key| line.starts_with(key));
    let of_end = recorded.lines().filter(is_of_end).collect::<Vec<_>>().join("\n");
    for heat in [recorded.as_str(), of_end.as_str()] {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "[mesh]\ngenerate = {{ kind = \"box\", cells = [5, 4, 6] }}\n{heat}\n[output]\nvtu = \"pieces\"{FUNCTIONALS}"
        );
        let alone = run_of(folder.path(), &text);
        let found = on_ranks(3, folder.path(), &text).unwrap();
        let folder = folder.path().join("out-3");
        let n_of = |rank: usize| {
            femtile_mesh::io::read(&folder.join(format!("solution_{rank:04}.vtu"))).unwrap().n_cells()
        };
        assert_eq!((0..3).map(n_of).sum::<usize>(), alone.mesh.n_cells);
        for (name, expected) in &alone.functionals {
            assert!((found.functionals[name] - expected).abs() < 1e-8, "{name}");
        }
        assert!((found.mesh.volume - alone.mesh.volume).abs() < 1e-12);
        assert_eq!(crate::verify(&folder).unwrap(), []);
    }
}

/// A rank may have no cell of the data that depend on the time, or of fibres that are noted.
#[test]
fn data_of_some_ranks_alone_hold_on_all() {
    let folder = tempfile::tempdir().unwrap();
    let layers = "[mesh]\ngenerate = { kind = \"box\", cells = [2, 2, 12], upper = [1, 1, 3] }\n[[region]]\nname = \"low\"\nwhere = \"z < 1.6\"\n";
    let by_region = "source = { by_tag = { low = 1 }, default = \"sin(3*t)\" }";
    let heat = HEAT.replace("DIFFUSION", "2").replace("source = \"sin(3*t)*y\"", by_region);
    let by_tag =
        format!("{layers}{}[output]{FUNCTIONALS}", heat.replace("dirichlet = \"t*y\"", "dirichlet = 0"));
    let mut mesh = box_of_file();
    let fibre = mesh.cell_fields.get_mut("fibre").unwrap();
    fibre.values.iter_mut().enumerate().for_each(|(at, value)| *value = f64::from(u8::from(at % 3 == 0)));
    fibre.values[0] = 3.0;
    femtile_mesh::io::write(&folder.path().join("mesh.vtu"), &mesh).unwrap();
    let along = "{ fibre = \"fibre\", along = 2, across = 1 }";
    let fibres =
        format!("[mesh]\nfile = \"mesh.vtu\"\n{}[output]{FUNCTIONALS}", HEAT.replace("DIFFUSION", along));
    for text in [by_tag, fibres] {
        let alone = run_of(folder.path(), &text);
        for n in [2, 3] {
            assert_ne!(source(folder.path(), &text, n), "whole");
            assert_runs(&text, folder.path(), &alone, n);
        }
    }
}
