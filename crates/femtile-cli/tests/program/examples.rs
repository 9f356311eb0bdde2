//! Every example case is solved as the README says, and its functionals are compared with what it promises.

use crate::common;

use std::path::Path;
use std::process::Command;

use common::{femtile, root, text};
use serde_json::Value;

#[test]
fn every_example_gives_what_it_promises() {
    let mut n_examples = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("case.toml").is_file() {
            continue;
        }
        n_examples += 1;
        let output = tempfile::tempdir().unwrap();
        let ran = femtile()
            .arg("solve")
            .arg(folder.join("case.toml"))
            .args(["--quiet", "--json", "-", "--output"])
            .arg(output.path())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}: {}", folder.display(), text(&ran.stderr));
        let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
        compare(&folder, &report);
        let (in_time, on_grid) = (report["time"].is_object(), report["space"]["degree"].is_null());
        let field = if on_grid { "solution.vti" } else { "solution.vtu" };
        let files = [field, "residuals.svg", "report.json"];
        for file in files.into_iter().filter(|file| !in_time || !file.ends_with("svg")) {
            assert!(output.path().join(file).is_file(), "{}: {file} is missing", folder.display());
        }
        opens_in_vtk(&output.path().join(field), &report);
    }
    assert!(n_examples >= 5);
}

/// Compares functionals by their names, and other numbers of the report by pointers such as `/modes/0/eigenvalue`.
fn compare(folder: &Path, report: &Value) {
    let expected = std::fs::read(folder.join("expected.json"));
    let expected = expected.unwrap_or_else(|_| panic!("{} has no expected.json", folder.display()));
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    for (name, promise) in expected.as_object().unwrap() {
        let (value, tolerance) = (promise["value"].as_f64().unwrap(), promise["tolerance"].as_f64().unwrap());
        let found = report.pointer(name).unwrap_or(&report["functionals"][name]).as_f64().unwrap();
        assert!((found - value).abs() <= tolerance, "{}: {name} is {found}, not {value}", folder.display());
    }
}

/// VTK, which ParaView reads with, finds the same numbers as the report.
fn opens_in_vtk(file: &Path, report: &Value) {
    let Some(python) = std::env::var_os("FEMTILE_PYTHON") else {
        eprintln!(
            "SKIPPED: VTK opens the solutions of the examples: FEMTILE_PYTHON names no Python with vtk"
        );
        return;
    };
    let functionals = &report["functionals"];
    // Solutions of higher degree come with a point for each unknown of a component.
    let is_linear = report["space"]["degree"].as_u64().is_none_or(|degree| degree == 1);
    let of_space = |key: &str| report["space"][key].as_u64();
    let components = of_space("components").unwrap_or(1);
    let n_points = if is_linear { report["mesh"]["n_nodes"].as_u64() } else { of_space("n_dofs") };
    let n_points = n_points.map(|n| if is_linear { n } else { n / components });
    // Files have vectors of space, with a zero along z in the plane.
    let n_components = if components == 2 { 3 } else { components };
    let field = match (functionals["activated_share"].is_number(), report["modes"].is_array()) {
        (true, _) => "V",
        (_, true) => "mode_1",
        _ => "u",
    };
    let expected = serde_json::json!({
        "n_points": n_points,
        "n_cells": report["mesh"]["n_cells"],
        "point_arrays": { field: { "n_components": n_components, "max": functionals["peak"], "min": functionals["smallest"] } },
    });
    let path = file.with_extension("json");
    std::fs::write(&path, expected.to_string()).unwrap();
    let script = root().join("crates/femtile-conformance/paraview/check_vtu.py");
    let checked = Command::new(python).arg(script).arg(file).arg(&path).output().unwrap();
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
}
