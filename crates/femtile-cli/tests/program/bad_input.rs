//! Bad input: a clear error that names the place, the right exit code, and nothing written.

use crate::common;

use common::{Workplace, femtile, text};

const BOX: &str = r#"
[mesh]
generate = { kind = "box", cells = [3, 3, 3] }
[equation]
source = "1"
[[boundary]]
where = "xmin"
dirichlet = 0
"#;

fn refuses(case: &str, words: &[&str]) {
    let said = Workplace::new(case).refusal(&[], 2);
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

#[test]
fn an_unknown_key_is_named_with_a_suggestion_and_its_line() {
    refuses(
        &BOX.replace("source", "sourse"),
        &["unknown key `sourse`", "did you mean `source`?", "case.toml:5"],
    );
    refuses(&format!("{BOX}[solvr]\n"), &["`solvr`", "did you mean `solver`?"]);
    refuses(&BOX.replace("cells", "cell_count"), &["cell_count"]);
    refuses(&BOX.replace("\"box\"", "\"boxx\""), &["boxx", "did you mean `box`?"]);
}

#[test]
fn a_syntax_error_points_at_its_line() {
    refuses("[mesh\n", &["case.toml:1"]);
}

#[test]
fn an_expression_that_does_not_parse_is_pointed_at() {
    refuses(
        &BOX.replace("\"1\"", "\"2*sinn(x)\""),
        &["equation.source", "sinn", "did you mean `sin`?", "case.toml:5:13"],
    );
    refuses(&BOX.replace("dirichlet = 0", "dirichlet = \"(x\""), &["boundary[0].dirichlet"]);
}

#[test]
fn a_tag_that_does_not_exist_lists_those_that_do() {
    refuses(&BOX.replace("xmin", "left"), &["`left`", "xmin", "zmax", "boundary[0].where"]);
    refuses(
        &BOX.replace("source = \"1\"", "sigma = { by_tag = { muscle = 1 } }"),
        &["muscle", "tags of cells"],
    );
    refuses(&BOX.replace("source = \"1\"", "sigma = { field = \"fibre\" }"), &["`fibre`", "cell field"]);
}

#[test]
fn settings_out_of_range_name_their_key() {
    for (line, words) in [
        ("tolerance = 0", ["solver.tolerance", "not positive"]),
        ("tolerance = -1e-3", ["solver.tolerance", "not positive"]),
        ("tolerance = nan", ["solver.tolerance", "not positive"]),
        ("operator = \"matrix-free\"", ["solver.operator", "quadrilaterals"]),
        ("precision = \"mixed\"", ["solver.precision", "`mixed` is not offered"]),
        ("preconditioner = \"gmg\"", ["solver.preconditioner", "quadrilaterals"]),
        ("amg = {}", ["solver.amg", "preconditioner"]),
        ("preconditioner = \"amg\"\namg = { strength = 2 }", ["solver.amg", "strength"]),
        ("preconditioner = \"amg\"\namg = { sweeps = 0 }", ["solver.amg", "smoother"]),
        ("preconditioner = \"amg\"\namg = { cycle = \"x\" }", ["`x`", "`v`"]),
        ("preconditioner = \"amg\"\namg = { graph = \"cells\" }", ["`cells`", "`mesh`"]),
        ("preconditioner = \"amg\"\namg = { inner = 3 }", ["solver.amg", "inner"]),
        ("preconditioner = \"amg\"\namg = { patch_format = \"csr\" }", ["solver.amg", "patch_format"]),
        ("preconditioner = \"amg\"\namg = { smoother = \"patch\", inner = 0 }", ["solver.amg", "smoother"]),
        ("preconditioner = \"amg\"\namg = { smoother = \"patch\", sweeps = 1 }", ["solver.amg", "inner"]),
        (
            "preconditioner = \"amg\"\namg = { smoother = \"patch\", patch_format = \"coo\" }",
            ["`coo`", "`symmetric-coo`"],
        ),
        ("device = \"gpu\"", ["solver.device", "`gpu`"]),
        ("method = \"bicgstab\"", ["bicgstab", "cg"]),
        ("restart = 3", ["solver.restart", "gmres"]),
        ("method = \"gmres\"\nrestart = 0", ["solver.restart", "0 directions"]),
        ("preconditioner = \"pmg\"", ["solver.preconditioner", "quadrilaterals"]),
        ("pmg = {}", ["solver.pmg", "preconditioner"]),
        ("method = \"s-step\"", ["did you mean", "s-step-cg"]),
        ("method = \"s-step-cg\"\nsteps = 7", ["solver.steps", "between 1 and 6"]),
        ("method = \"s-step-cg\"\nsteps = 0", ["solver.steps", "between 1 and 6"]),
        ("steps = 3", ["solver.steps", "s-step-cg"]),
        ("method = \"s-step-cg\"\npreconditioner = \"amg\"", ["solver.method", "jacobi"]),
        (
            "method = \"pipelined-cg\"\npreconditioner = \"amg\"\namg = { cycle = \"k\" }",
            ["solver.method", "K cycles"],
        ),
    ] {
        refuses(&format!("{BOX}[solver]\n{line}\n"), &words);
    }
    refuses(&format!("{BOX}[space]\ndegree = 7\n"), &["space.degree", "1 to 6"]);
    refuses(&format!("{BOX}[space]\ndegree = 11\n"), &["space.degree", "1 to 10"]);
    refuses(&format!("{BOX}[space]\nquadrature = \"gauss-lobato\"\n"), &["did you mean `gauss-lobatto`?"]);
    refuses(&format!("{BOX}[space]\nquadrature = \"gauss-fine\"\n"), &["space.quadrature", "leave it out"]);
    refuses(&BOX.replace("[3, 3, 3]", "[0, 3, 3]"), &["cells"]);
    refuses(&BOX.replace("dirichlet = 0", ""), &["exactly one of `dirichlet`"]);
}

#[test]
fn coefficients_that_make_the_problem_ill_posed_name_the_cell() {
    refuses(&BOX.replace("source = \"1\"", "sigma = \"x - 0.5\""), &["sigma", "cell"]);
    refuses(
        &BOX.replace("source = \"1\"", "sigma = [[1, 2, 0], [2, 1, 0], [0, 0, 1]]"),
        &["sigma", "positive definite", "cell 0"],
    );
    refuses(&BOX.replace("source = \"1\"", "lambda = -1"), &["lambda", "negative"]);
    refuses(&BOX.replace("\"1\"", "\"log(x - 2)\""), &["source", "finite"]);
}

#[test]
fn pure_neumann_data_that_do_not_balance_are_refused() {
    refuses(&BOX.replace("dirichlet = 0", "neumann = 1"), &["flows in and nothing out", "`dirichlet`"]);
}

#[test]
fn a_point_outside_the_mesh_is_refused_before_the_solve() {
    let case = format!(
        "{BOX}[output]\nfunctionals = [{{ name = \"a\", kind = \"value_at\", point = [2, 0, 0] }}]\n"
    );
    refuses(&case, &["outside the mesh", "output.functionals[0].point"]);
}

#[test]
fn an_output_folder_that_cannot_be_written_to_is_refused_before_the_solve() {
    let place = Workplace::new(BOX);
    std::fs::write(place.path("file"), "").unwrap();
    let said = place.refusal(&["--output", "file/out"], 2);
    assert!(said.contains("file/out") && said.contains("cannot write results"), "{said}");
}

#[test]
fn a_device_that_is_not_there_is_device_trouble() {
    let said = Workplace::new(BOX).refusal(&["--device", "cuda:99"], 3);
    assert!(said.contains("cuda:99") && said.contains("not available"), "{said}");
    let said = Workplace::new(BOX).refusal(&["--device", "cuda:x"], 2);
    assert!(said.contains("cuda:x") && said.contains("cuda:N"), "{said}");
}

#[test]
fn missing_libraries_of_cuda_are_named_with_what_installs_them() {
    let empty = tempfile::tempdir().unwrap();
    let output = femtile().arg("devices").env("FEMTILE_NVRTC", empty.path()).output().unwrap();
    let said = text(&output.stdout);
    assert!(output.status.success());
    assert!(said.contains("pip install nvidia-cuda-nvrtc") && said.contains("FEMTILE_NVRTC="), "{said}");
}

#[test]
fn a_small_problem_stays_on_the_cpu_and_the_report_says_why() {
    let report = Workplace::new(BOX).report(&[], 0);
    let reason = report["device_reason"].as_str().unwrap();
    assert!(report["device"].as_str().unwrap().starts_with("cpu") && reason.contains("unknowns"), "{reason}");
    assert_eq!(report["kernel_launches"], 0);
}

#[test]
fn the_cache_of_kernels_is_cleared_of_kernels_alone() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.kernel", "b.kernel", "notes.txt"] {
        std::fs::write(folder.path().join(name), "x").unwrap();
    }
    let output = femtile().args(["cache", "clear"]).env("FEMTILE_CACHE", folder.path()).output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("removed 2"), "{output:?}");
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[test]
fn an_option_out_of_range_is_named() {
    for (arguments, code, word) in [
        (["--tolerance", "0"], 2, "--tolerance 0"),
        (["--json", "no/such/report.json"], 2, "--json"),
        (["--threads", "100000"], 3, "100000"),
    ] {
        let said = Workplace::new(BOX).refusal(&arguments, code);
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn a_missing_case_file_is_named() {
    let output = femtile().args(["solve", "no/such/case.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no/such/case.toml"));
}

/// A case on a mesh file, with what the file holds.
fn refuses_mesh(node: &str, ele: &str, words: &[&str]) {
    let place = Workplace::new("[mesh]\nfile = \"a.node\"\n[equation]\nlambda = 1\n");
    if !node.is_empty() {
        std::fs::write(place.path("a.node"), node).unwrap();
        std::fs::write(place.path("a.ele"), ele).unwrap();
    }
    let said = place.refusal(&[], 2);
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

const NODES: &str = "4 3 0 0\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 0 0 1\n";

#[test]
fn bad_mesh_files_name_their_line_or_cell() {
    refuses_mesh("", "", &["a.node", "cannot read"]);
    refuses_mesh(NODES, "2 4 0\n0 0 1 2 3\n", &["a.ele", "line"]);
    refuses_mesh(NODES, "1 4 0\n0 0 1 2 3\n1 0 1 2 3\n", &["a.ele", "line 3", "announces"]);
    refuses_mesh(&format!("{NODES}4 1 1 1\n"), "1 4 0\n0 0 1 2 3\n", &["a.node", "line 6", "announces"]);
    refuses_mesh(NODES, "1 4 0\n0 0 1 2 9\n", &["a.ele", "9"]);
    refuses_mesh(&NODES.replace("1 1 0 0", "1 nan 0 0"), "1 4 0\n0 0 1 2 3\n", &["line 3", "NaN"]);
    refuses_mesh(NODES, "0 4 0\n", &["cells"]);
    refuses_mesh(NODES, "1 4 0\n0 0 1 2 2\n", &["cell 0"]);
    let flat = NODES.replace("3 0 0 1", "3 1 1 0");
    refuses_mesh(&flat, "1 4 0\n0 0 1 2 3\n", &["cell 0"]);
}

#[test]
fn parts_of_a_mesh_that_nothing_holds_are_refused() {
    let place =
        Workplace::new("[mesh]\nfile = \"a.node\"\n[[boundary]]\nwhere = \"x < 1.5\"\ndirichlet = 0\n");
    let second = "4 5 0 0\n5 6 0 0\n6 5 1 0\n7 5 0 1\n";
    std::fs::write(place.path("a.node"), NODES.replace("4 3", "8 3") + second).unwrap();
    std::fs::write(place.path("a.ele"), "2 4 0\n0 0 1 2 3\n1 4 5 6 7\n").unwrap();
    let said = place.refusal(&[], 2);
    assert!(said.contains("connected components") && said.contains("Dirichlet"), "{said}");
}

const GRID: &str = r#"
[mesh]
generate = { kind = "grid", nodes = [9, 9] }
[equation]
kind = "diffusion"
initial = "x"
[[boundary]]
where = "xmin"
dirichlet = "t"
[time]
end = 1
steps = 4
"#;

#[test]
fn what_an_equation_in_time_cannot_mean_is_refused_where_it_stands() {
    for (from, to, words) in [
        ("initial", "initail", ["initail", "did you mean `initial`?"]),
        ("initial = \"x\"", "initial = \"t\"", ["equation.initial", "unknown name `t`"]),
        ("initial = \"x\"", "diffusion = \"0.5 - x\"", ["equation.diffusion", "negative"]),
        ("initial = \"x\"", "diffusion = [[1, 2], [2, 1]]", ["equation.diffusion", "off the diagonal"]),
        ("initial = \"x\"", "convection = [1]", ["equation.convection", "1 components in 2 dimensions"]),
        ("initial = \"x\"", "lambda = 1", ["equation.lambda", "reaction-diffusion"]),
        ("[9, 9]", "[9, 2]", ["mesh.generate.nodes", "2 nodes along y"]),
        ("[9, 9] }", "[9, 9], upper = [1, 0] }", ["mesh.generate.upper", "not above"]),
        ("\"grid\", nodes = [9, 9]", "\"square\", cells = [9, 9]", ["time.method", "for grids"]),
        ("\"diffusion\"", "\"reaction-diffusion\"", ["equation.initial", "diffusion"]),
        ("xmin", "zmin", ["boundary[0].where", "xmin, xmax, ymin, ymax"]),
        ("dirichlet = \"t\"", "periodic = true", ["boundary", "one side of x is periodic"]),
        ("dirichlet = \"t\"", "robin = { coefficient = 1, value = 1 }", ["boundary[0].robin", "periodic"]),
        ("steps = 4", "steps = 0", ["time.steps", "at least 1"]),
        ("[time]", "[space]\nquadrature = \"gauss-fine\"\n[time]", ["space.quadrature", "no elements"]),
        ("steps = 4", "steps = 4\nrannacher_steps = 5", ["time.rannacher_steps", "5 of 4"]),
        ("steps = 4", "steps = 4\nalgorithm = \"tomas\"", ["time.algorithm", "thomas"]),
        ("[time]\nend = 1\nsteps = 4", "", ["equation.kind", "[time]"]),
        ("[time]", "[solver]\ntolerance = 1e-3\n[time]", ["solver.tolerance", "directly"]),
        (
            "[time]",
            "[output]\nfunctionals = [{ name = \"e\", kind = \"energy\" }]\n[time]",
            ["functionals[0].kind", "not available"],
        ),
        (
            "[time]",
            "[output]\nfunctionals = [{ name = \"u\", kind = \"value_at\", point = [2, 0] }]\n[time]",
            ["functionals[0].point", "outside the box"],
        ),
    ] {
        assert!(GRID.contains(from), "{from}");
        refuses(&GRID.replace(from, to), &words);
    }
    refuses(&format!("{BOX}[time]\nend = 1\nsteps = 1\n"), &["time", "diffusion"]);
    refuses(&BOX.replace("dirichlet = 0", "periodic = true"), &["boundary[0].periodic", "grids"]);
}

/// Two layers of cubes that cut the faces between them along different diagonals, in MEDIT's format.
fn clashing_mesh() -> String {
    let point = |i: usize| format!("{} {} {} 0\n", i & 1, i >> 1 & 1, i >> 2);
    let points: String = (0..12).map(point).collect();
    let kuhn = [[0, 1, 3, 7], [0, 5, 1, 7], [0, 3, 2, 7], [0, 2, 6, 7], [0, 4, 5, 7], [0, 6, 4, 7]];
    let cell = |nodes: [usize; 4]| nodes.map(|node| (node + 1).to_string()).join(" ") + " 0\n";
    // The upper cube is the lower one mirrored along x.
    let upper = kuhn.map(|cell| cell.map(|node| (node ^ 1) + 4));
    let cells: String = kuhn.into_iter().chain(upper).map(cell).collect();
    format!("MeshVersionFormatted 2\nDimension 3\nVertices\n12\n{points}Tetrahedra\n12\n{cells}End\n")
}

#[test]
fn what_the_check_refuses_can_be_accepted_by_its_name() {
    let case = |accept: &str| {
        let case = format!(
            "[mesh]\nfile = \"clash.mesh\"\n{accept}\n[equation]\nsource = 1\n[[boundary]]\nwhere = \"z < 1e-9\"\n\
             dirichlet = 0\n[solver]\ndevice = \"cpu\"\n"
        );
        let workplace = Workplace::new(&case);
        std::fs::write(workplace.path("clash.mesh"), clashing_mesh()).unwrap();
        workplace
    };
    let said = case("").refusal(&[], 2);
    assert!(said.contains("overlap without coinciding"), "{said}");
    assert!(said.contains("accept = [\"overlapping-facets\"] takes it as it is"), "{said}");
    let said = case("accept = [\"gap\"]").refusal(&[], 2);
    assert!(said.contains("overlap without coinciding"), "{said}");
    let said = case("accept = [\"overlaping-facets\"]").refusal(&[], 2);
    assert!(
        said.contains("`overlaping-facets`")
            && said.replace("- ", "-").contains("did you mean `overlapping-facets`?"),
        "{said}"
    );
    let report = case("accept = [\"overlapping-facets\"]").report(&[], 0);
    let warning = report["warnings"][0].as_str().unwrap().to_owned();
    assert!(warning.starts_with("accepted (overlapping-facets): boundary facets of cells"), "{warning}");

    let workplace = case("");
    let check = |accept: &[&str]| {
        let arguments = [&["mesh", "check", "clash.mesh"], accept].concat();
        femtile().current_dir(workplace.folder.path()).args(arguments).output().unwrap()
    };
    let refused = check(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--accept"), "{}", text(&refused.stderr));
    let accepted = check(&["--accept", "overlapping-facets,gap"]);
    assert!(
        accepted.status.success()
            && text(&accepted.stdout).contains("warning   accepted (overlapping-facets)")
    );
    assert_eq!(check(&["--accept", "everything"]).status.code(), Some(2));
}
