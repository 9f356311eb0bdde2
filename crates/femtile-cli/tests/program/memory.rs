//! The memory of a run is estimated before it begins; a run that needs more than is available is refused, with both
//! figures.

use crate::common;

use common::{Workplace, femtile, text};

fn case(mesh: &str, rest: &str) -> String {
    format!(
        "[mesh]\n{mesh}\n[equation]\nsource = \"1\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n{rest}\n[solver]\n\
         device = \"cpu\"\nthreads = 2\nmax_iterations = 2\n"
    )
}

fn refuses(case: &str, words: &[&str]) {
    let said = Workplace::new(case).refusal(&[], 2);
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn meshes_that_need_more_than_the_limit_are_refused_with_the_figures() {
    for (mesh, place, needed) in [
        (
            "generate = { kind = \"box\", cells = [1500, 1500, 1500], cell = \"hexahedron\" }",
            "mesh.generate.cells",
            "TB",
        ),
        ("generate = { kind = \"square\", cells = [1000000000, 1] }", "mesh.generate.cells", "GB"),
        ("generate = { kind = \"ball\", h = 0.003 }", "mesh.generate.h:", "GB"),
        (
            "generate = { kind = \"shell\", cells = 300, layers = 300, order = 4 }",
            "mesh.generate.cells",
            "TB",
        ),
        ("generate = { kind = \"box\", cells = [6, 6, 6] }\nrefine = 10", "mesh.refine", "TB"),
    ] {
        let case = format!("{}memory_limit = \"8 GB\"\n", case(mesh, ""));
        let words = [
            place,
            "of memory would be needed (",
            needed,
            "the limit of solver.memory_limit is 8.0 GB",
            "coarser mesh",
        ];
        refuses(&case, &words);
    }
}

#[test]
fn a_grid_larger_than_any_memory_is_refused() {
    let case = "[mesh]\ngenerate = { kind = \"grid\", nodes = [100000, 100000, 100000] }\n[equation]\nkind = \"diffusion\"\nsource = 1\n\
                [time]\nend = 1\nsteps = 1\n[solver]\ndevice = \"cpu\"\n";
    refuses(case, &["mesh.generate.nodes", "of memory would be needed", "this machine", "fewer nodes"]);
}

#[test]
fn a_mesh_refined_beyond_all_memory_is_refused_by_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| femtile().current_dir(folder.path()).args(arguments).output().unwrap();
    assert!(run(&["mesh", "generate", "kind = \"box\", cells = [6, 6, 6]", "box.vtu"]).status.success());
    let output = run(&["mesh", "refine", "box.vtu", "fine.vtu", "-n", "10"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("times: about") && said.contains("TB"), "{said}");
    assert!(!folder.path().join("fine.vtu").exists());
}

#[test]
fn a_limit_that_is_no_amount_is_pointed_at() {
    let mesh = "generate = { kind = \"box\", cells = [2, 2, 2] }";
    for (limit, words) in [
        ("\"8 QB\"", ["solver.memory_limit", "`8 QB` is not an amount of memory"]),
        ("-1", ["memory_limit", "a whole number ≥ 0 or a text such as \"8 GB\""]),
    ] {
        refuses(&format!("{}memory_limit = {limit}\n", case(mesh, "")), &words);
    }
}

/// The estimate that a refusal tells, in bytes.
fn estimate(case: &str) -> f64 {
    let said = Workplace::new(&format!("{case}memory_limit = 1\n")).refusal(&[], 2);
    let mut words = said.split("about ").nth(1).unwrap_or_else(|| panic!("{said}")).split(' ');
    let number: f64 = words.next().unwrap().parse().unwrap();
    number * if words.next() == Some("GB") { 1e9 } else { 1e6 }
}

#[test]
fn estimates_are_near_what_runs_take() {
    let hexahedra = |n: usize, more: &str| {
        format!("generate = {{ kind = \"box\", cells = [{n}, {n}, {n}], cell = \"hexahedron\"{more} }}")
    };
    let tetrahedra = "generate = { kind = \"box\", cells = [40, 40, 40] }".to_owned();
    let refined = "generate = { kind = \"square\", cells = [150, 150] }\nrefine = 1".to_owned();
    for (mesh, rest, solver, code) in [
        (tetrahedra, "", "preconditioner = \"amg\"", 1),
        (refined, "", "", 1),
        (hexahedra(36, ""), "", "operator = \"assembled\"", 1),
        (hexahedra(18, ""), "[space]\ndegree = 3", "preconditioner = \"pmg\"", 1),
        (hexahedra(14, ", deform = 0.1, order = 3"), "[space]\ndegree = 4", "", 1),
    ] {
        let case = format!("{}{solver}\n", case(&mesh, rest));
        let peak = Workplace::new(&case).report(&[], code)["memory_bytes"]["peak"].as_f64();
        // Other systems than Linux do not tell.
        let Some(peak) = peak else { return };
        let estimate = estimate(&case);
        assert!(estimate > 0.5 * peak && estimate < 3.0 * peak, "{estimate:e} for {peak:e}: {case}");
    }
}
