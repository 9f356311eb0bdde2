//! The report, exit codes, Ctrl-C, the same bits on any number of threads.

use crate::common;

use common::{Workplace, femtile, text};

const SQUARE: &str = r#"
[mesh]
generate = { kind = "square", cells = [16, 16] }
[equation]
source = "1"
[[boundary]]
where = "all"
dirichlet = 0
[output]
functionals = [{ name = "peak", kind = "max" }, { name = "energy", kind = "energy" }]
"#;

#[test]
fn the_report_has_every_key_that_scripts_rely_on() {
    let place = Workplace::new(SQUARE);
    let report = place.report(&[], 0);
    for key in [
        "/mesh/n_nodes",
        "/mesh/n_cells",
        "/mesh/n_orphans",
        "/mesh/volume",
        "/space/n_dofs",
        "/solve/iterations",
        "/solve/relative_residual",
        "/functionals/peak",
        "/functionals/energy",
        "/timings_s/read",
        "/timings_s/check",
        "/timings_s/space",
        "/timings_s/assemble",
        "/timings_s/setup",
        "/timings_s/solve",
        "/timings_s/write",
        "/kernel_launches",
    ] {
        assert!(report.pointer(key).is_some_and(serde_json::Value::is_number), "{key}");
    }
    assert_eq!(report["solve"]["stop"], "converged");
    assert_eq!(report["mesh"]["n_nodes"], 17 * 17);
    assert_eq!(report["space"]["n_dofs"], 17 * 17);
    let residuals = report["solve"]["residuals"].as_array().unwrap();
    assert_eq!(residuals.len() as u64, report["solve"]["iterations"].as_u64().unwrap() + 1);
    assert!(report["device"].as_str().unwrap().starts_with("cpu"));
    assert!(report["warnings"].as_array().unwrap().is_empty());
    assert!(report["citations"].as_array().unwrap().contains(&"hestenes1952".into()));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    if cfg!(target_os = "linux") {
        assert!(report["memory_bytes"]["peak"].as_u64().unwrap() > 1 << 20);
    }
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("out/report.json")).unwrap()).unwrap();
    assert_eq!(written, report);
}

#[test]
fn quiet_says_nothing_and_json_goes_to_a_file() {
    let place = Workplace::new(SQUARE);
    let output = place.solve(&["--quiet", "--json", "report.json"]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), (String::new(), String::new()));
    assert!(place.path("report.json").is_file());
    let loud = place.solve(&[]);
    assert!(text(&loud.stdout).contains("converged") && loud.stderr.is_empty(), "no bars without a terminal");
}

#[test]
fn the_solution_has_the_same_bits_at_one_two_and_three_threads() {
    let case = SQUARE
        .replace("[16, 16]", "[150, 131]")
        .replace("source = \"1\"", "source = \"exp(x)\"\nsigma = \"1+y\"");
    let place = Workplace::new(&case);
    let solutions: Vec<_> = ["1", "2", "3"]
        .iter()
        .map(|threads| {
            place.report(&["--threads", threads], 0);
            std::fs::read(place.path("out/solution.vtu")).unwrap()
        })
        .collect();
    assert!(solutions[0] == solutions[1] && solutions[1] == solutions[2]);
}

#[test]
fn a_solve_that_does_not_converge_writes_its_results_and_exits_with_1() {
    let place = Workplace::new(SQUARE);
    let report = place.report(&["--max-iterations", "3"], 1);
    assert_eq!(
        (report["solve"]["stop"].as_str(), report["solve"]["iterations"].as_u64()),
        (Some("max_iterations"), Some(3))
    );
    assert!(report["warnings"][0].as_str().unwrap().contains("limit of iterations"));
    assert!(place.path("out/solution.vtu").is_file() && place.path("out/residuals.svg").is_file());
}

#[test]
fn a_mesh_of_one_cell_is_solved() {
    let place = Workplace::new(
        "[mesh]\nfile = \"one.node\"\n[equation]\nlambda = 1\nsource = 2\n[output]\nfunctionals = [{ name = \"m\", kind = \"max\" }]\n",
    );
    std::fs::write(place.path("one.node"), "4 3 0 0\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 0 0 1\n").unwrap();
    std::fs::write(place.path("one.ele"), "1 4 0\n0 0 1 2 3\n").unwrap();
    let report = place.report(&[], 0);
    assert!((report["functionals"]["m"].as_f64().unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn sigma_may_be_a_tensor_a_tag_or_a_field_all_with_the_same_result() {
    let sigmas = [
        "sigma = 2",
        "sigma = \"2\"",
        "sigma = [[2, 0], [0, 2]]",
        "sigma = [[\"2\", 0], [0, \"1+1\"]]",
        "sigma = { by_tag = { 0 = 2 } }",
    ];
    let energies: Vec<f64> = sigmas
        .iter()
        .map(|sigma| {
            let place = Workplace::new(&SQUARE.replace("source = \"1\"", &format!("source = 1\n{sigma}")));
            place.report(&[], 0)["functionals"]["energy"].as_f64().unwrap()
        })
        .collect();
    assert!(energies.iter().all(|energy| (energy - energies[0]).abs() < 1e-12 * energies[0]), "{energies:?}");
}

#[test]
fn a_cell_field_of_the_mesh_file_serves_as_sigma() {
    let place = Workplace::new(
        "[mesh]\nfile = \"heart.vtu\"\n[equation]\nsigma = { field = \"transmural\" }\nlambda = 1\nsource = 1\n",
    );
    let made = femtile()
        .current_dir(place.folder.path())
        .args(["mesh", "generate", "kind = \"ventricle\", h_mm = 3.0", "heart.vtu"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    place.report(&[], 0);
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_at_the_next_iteration_and_keeps_what_there_is() {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    let case = SQUARE.replace("[16, 16]", "[400, 400]");
    let place = Workplace::new(&format!("{case}[solver]\ntolerance = 1e-300\nmax_iterations = 100000000\n"));
    let child = femtile()
        .current_dir(place.folder.path())
        .args(["solve", "case.toml", "--json", "-", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["solve"]["stop"], "interrupted");
    assert!(place.path("out/solution.vtu").is_file());
}

#[test]
fn a_time_limit_ends_the_solve_with_its_results() {
    let place = Workplace::new(&format!("{SQUARE}[solver]\ntime_limit_s = 0\n"));
    assert_eq!(place.report(&[], 1)["solve"]["stop"], "time_limit");
}

#[test]
fn the_schema_describes_every_section_and_default() {
    let output = femtile().arg("schema").output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for section in ["mesh", "space", "equation", "boundary", "solver", "output"] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
    let solver = &schema["$defs"]["SolverSection"]["properties"];
    assert_eq!(solver["tolerance"]["default"], 1e-10);
    assert_eq!(solver["max_iterations"]["default"], 10_000);
    assert!(solver["tolerance"]["description"].as_str().unwrap().contains("‖b‖"));
    let equation = &schema["$defs"]["EquationSection"]["properties"];
    assert_eq!((&equation["sigma"]["default"], &equation["lambda"]["default"]), (&1.0.into(), &0.0.into()));
}

#[test]
fn help_completions_and_the_manual_page_are_there() {
    for arguments in [
        &["--help"][..],
        &["solve", "--help"],
        &["completions", "bash"],
        &["man"],
        &["devices", "--json"],
        &["devices", "--kernels"],
    ] {
        let output = femtile().args(arguments).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn meshes_are_made_looked_at_refined_converted_and_checked() {
    let place = Workplace::new("");
    let run = |arguments: &[&str]| {
        let output = femtile().current_dir(place.folder.path()).arg("mesh").args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    run(&["generate", "kind = \"box\", cells = [2, 3, 4]", "box.vtu"]);
    assert!(run(&["info", "box.vtu"]).contains("144 of kind tetrahedron"));
    run(&["refine", "box.vtu", "fine.node"]);
    assert!(run(&["check", "fine.node"]).contains("1152"));
    run(&["convert", "fine.node", "fine.msh"]);
    assert!(run(&["info", "fine.msh"]).contains("1152 of kind tetrahedron"));
}

#[test]
fn the_defaults_for_tridiagonal_systems_leave_no_length_out() {
    let output = femtile().args(["devices", "--kernels", "--json"]).output().unwrap();
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    for device in ["cpu", "cuda"] {
        for axis in ["contiguous", "strided"] {
            for precision in ["f32", "f64"] {
                let is_wanted = |r: &&serde_json::Value| {
                    r["device"] == device && r["axis"] == axis && r["precision"] == precision
                };
                let mut next = Some(1);
                for row in rows.iter().filter(is_wanted) {
                    assert_eq!(row["shortest"].as_u64(), next, "{row}");
                    next = row["longest"].as_u64().map(|end| end + 1);
                }
                assert_eq!(next, None, "{device} {axis} {precision}");
            }
        }
    }
}
