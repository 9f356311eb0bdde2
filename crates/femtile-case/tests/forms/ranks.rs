//! Several ranks: the answer is that of one rank.

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_comm::{Comm, threads};
use femtile_mesh::io::vtu::read;

use crate::{run_in, solve, try_solve};

/// A block that is clamped, pulled and pressed, with coefficients of all kinds.
fn block(generate: &str, degree: usize, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {generate} }}\n\
         [[region]]\nname = \"stiff\"\nwhere = \"x < 0.4\"\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"elasticity\"\nyoung = {{ by_tag = {{ stiff = 900 }}, default = \"300 + 50*z\" }}\npoisson = 0.3\n\
         source = [0, \"-10*x\", 1]\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"0.01*z\", 0]\n\
         [[boundary]]\nwhere = \"ymax\"\ndirichlet = [\"free\", \"free\", \"0.02*x\"]\n\
         [[boundary]]\nwhere = \"xmax\"\ntraction = [\"y\", 0, -3]\n\
         [[boundary]]\nwhere = \"zmax\"\npressure = \"2*x\"\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-11\n{solver}\n\
         [output]\nplot = false\n\
         functionals = [{{ name = \"at\", kind = \"value_at\", point = [0.9, 0.7, 0.6] }}, {{ name = \"norm\", kind = \"l2_norm\" }},\n\
         {{ name = \"energy\", kind = \"energy\" }}]\n"
    )
}

/// A plate in the plane that slides on one side.
fn plate(cell: &str, degree: usize, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cell = \"{cell}\", cells = [9, 7] }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"elasticity\"\nyoung = \"100*(1 + x*y)\"\npoisson = 0.35\nplane = \"stress\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"free\"]\n\
         [[boundary]]\nnodes = \"x + y < 1e-9\"\ndirichlet = [0, 0]\n\
         [[boundary]]\nwhere = \"xmax\"\ntraction = [\"y\", 1]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-11\n{solver}\n\
         [output]\nplot = false\n\
         functionals = [{{ name = \"at\", kind = \"value_at\", point = [0.9, 0.7] }}, {{ name = \"energy\", kind = \"energy\" }}]\n"
    )
}

fn convection(generate: &str, degree: usize, velocity: &str, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {generate} }}\n\
         [space]\ndegree = {degree}\n\
         [equation]\nkind = \"convection-diffusion\"\nsigma = \"0.5 + x\"\nvelocity = {velocity}\nlambda = 0.3\nsource = \"sin(3*x) + y\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"y*y\"\n\
         [[boundary]]\nwhere = \"ymax\"\nneumann = \"x\"\n\
         [[boundary]]\nwhere = \"xmax\"\nrobin = {{ coefficient = 2, value = \"y\" }}\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-11\n{solver}\n\
         [output]\nplot = false\n\
         functionals = [{{ name = \"mean\", kind = \"mean\" }}, {{ name = \"norm\", kind = \"l2_norm\" }}, {{ name = \"most\", kind = \"max\" }}]\n"
    )
}

/// The case on some ranks.
fn on(n_ranks: usize, text: &str) -> String {
    text.replace("tolerance = 1e-11", &format!("tolerance = 1e-11\nranks = {n_ranks}"))
}

/// Asserts that all functionals of two reports are equal up to the tolerance of the solves.
pub(crate) fn agree(found: &Report, expected: &Report, text: &str) {
    assert_eq!(found.space.n_dofs, expected.space.n_dofs);
    assert!(!expected.functionals.is_empty());
    for (name, value) in &expected.functionals {
        let error = (found.functionals[name] - value).abs();
        assert!(
            error <= 1e-8 * value.abs().max(1e-3),
            "{name}: {} and {value}\n{text}",
            found.functionals[name]
        );
    }
}

/// Solves a case on one, two and three ranks; returns the report of one and of three.
fn on_ranks(text: &str) -> [Report; 2] {
    let of_one = solve(&on(1, text));
    assert!(of_one.ranks.is_none());
    let [_, of_three] = [2, 3].map(|n_ranks| {
        let report = solve(&on(n_ranks, text));
        agree(&report, &of_one, text);
        let ranks = report.ranks.as_ref().unwrap();
        assert_eq!((ranks.n_ranks, ranks.partition), (n_ranks, "bisection"));
        assert!(ranks.unknowns[0] > 0 && ranks.most_ghosts > 0 && ranks.n_shared_nodes > 0);
        assert!(ranks.unknowns[1] < of_one.space.n_dofs);
        assert_eq!(report.solve.preconditioner, of_one.solve.preconditioner);
        report
    });
    [of_one, of_three]
}

#[test]
fn bodies_of_all_cells_and_degrees_have_the_displacements_of_one_rank() {
    for (cell, cells, degree) in [
        ("hexahedron", [9, 8, 7], 1),
        ("hexahedron", [3, 2, 3], 3),
        ("tetrahedron", [4, 4, 3], 1),
        ("tetrahedron", [4, 3, 3], 2),
        ("tetrahedron", [3, 2, 2], 4),
    ] {
        let generate = format!("kind = \"box\", cell = \"{cell}\", cells = {cells:?}");
        let [of_one, of_three] = on_ranks(&block(&generate, degree, ""));
        assert_eq!(of_one.solve.preconditioner, Some("amg"));
        let (few, many) = (of_one.solve.iterations, of_three.solve.iterations);
        // One rank solves a single level directly.
        let is_few = of_one.solve.levels.len() == 1 || many as f64 <= 1.25 * few as f64 + 2.0;
        assert!(is_few, "{cell} {degree}: {many} iterations for {few}");
    }
    for (cell, degree) in [("quadrilateral", 2), ("quadrilateral", 1), ("triangle", 3)] {
        on_ranks(&plate(cell, degree, ""));
    }
}

#[test]
fn methods_and_preconditioners_agree_on_ranks() {
    let generate = "kind = \"box\", cell = \"hexahedron\", cells = [5, 3, 4]";
    let expected = solve(&block(generate, 1, ""));
    for solver in [
        "preconditioner = \"jacobi\"",
        "method = \"pipelined-cg\"",
        "method = \"merged-cg\"",
        "method = \"gmres\"\nrestart = 100",
        "partition = \"hilbert\"",
        "format = \"ell-warp\"",
    ] {
        let text = on(2, &block(generate, 1, solver));
        agree(&solve(&text), &expected, &text);
    }
}

#[test]
fn convection_has_the_solution_of_one_rank() {
    for (generate, degree, velocity) in [
        ("kind = \"square\", cell = \"triangle\", cells = [9, 8]", 1, "[\"1 - y\", 2]"),
        ("kind = \"square\", cell = \"triangle\", cells = [5, 6]", 4, "[\"1 - y\", 2]"),
        ("kind = \"square\", cell = \"quadrilateral\", cells = [6, 5]", 3, "[1, \"x\"]"),
        ("kind = \"box\", cell = \"tetrahedron\", cells = [4, 4, 3]", 2, "[1, \"x\", -1]"),
        ("kind = \"box\", cell = \"hexahedron\", cells = [4, 4, 3]", 1, "[1, \"x\", -1]"),
    ] {
        // Several ranks have no multigrid for it.
        let jacobi = "preconditioner = \"jacobi\"";
        let [of_one, of_three] = on_ranks(&convection(generate, degree, velocity, jacobi));
        assert_eq!(of_one.solve.preconditioner, Some("jacobi"));
        assert!(of_three.solve.iterations.abs_diff(of_one.solve.iterations) <= 1);
    }
}

#[test]
fn more_ranks_than_cells_leave_some_without_rows() {
    for text in [
        block("kind = \"box\", cell = \"hexahedron\", cells = [2, 1, 1]", 2, ""),
        convection("kind = \"square\", cell = \"quadrilateral\", cells = [2, 1]", 2, "[1, 0]", ""),
    ] {
        let report = solve(&on(5, &text));
        agree(&report, &solve(&text), &text);
        assert_eq!(report.ranks.unwrap().unknowns[0], 0);
    }
}

#[test]
fn the_file_of_the_solution_is_that_of_one_rank() {
    let generate = "kind = \"box\", cell = \"hexahedron\", cells = [3, 3, 2], deform = 0.1";
    let values = |n_ranks: usize| {
        let folder = tempfile::tempdir().unwrap();
        run_in(folder.path(), &on(n_ranks, &block(generate, 2, ""))).unwrap();
        let mesh = read(&folder.path().join("out/solution.vtu")).unwrap();
        ["u", "von_mises"].map(|name| mesh.node_fields[name].values.clone())
    };
    for (of_one, of_three) in values(1).iter().zip(values(3)) {
        let most = of_one.iter().fold(0.0, |most: f64, value| value.abs().max(most));
        assert!(of_one.len() == of_three.len() && most > 0.0);
        assert!(of_one.iter().zip(of_three).all(|(a, b)| (a - b).abs() < 1e-7 * most));
    }
}

#[test]
fn what_one_rank_refuses_or_warns_about_several_do_too() {
    let generate = "kind = \"box\", cell = \"hexahedron\", cells = [4, 3, 2]";
    // Without the folder.
    let message = |text: &str| {
        let message = try_solve(text).unwrap_err().to_string();
        message.split_once("case.toml").map_or(message.clone(), |(_, message)| message.to_owned())
    };
    let text = block(generate, 1, "");
    for (given, instead, word) in [
        ("dirichlet = [0, \"0.01*z\", 0]", "dirichlet = [0, \"free\", 0]", "the body is free to move"),
        ("young = { by_tag = { stiff = 900 }", "young = { by_tag = { stiff = -900 }", "young"),
        ("traction = [\"y\", 0, -3]", "traction = [\"1/(x - 1)\", 0, -3]", "boundary facets"),
        (
            "[output]",
            "preconditioner = \"amg\"\namg = { smoother = \"gauss-seidel\" }\n[output]",
            "chebyshev",
        ),
    ] {
        let text = text.replace(given, instead);
        let of_ranks = message(&on(3, &text));
        assert!(of_ranks.contains(word), "{of_ranks}");
        if word != "chebyshev" {
            assert_eq!(of_ranks, message(&text));
        }
    }
    let square = "kind = \"square\", cell = \"quadrilateral\", cells = [5, 5]";
    let fast = convection(square, 1, "[90, 0]", "");
    let warned = solve(&on(2, &fast)).warnings.into_iter().find(|warning| warning.contains("Péclet"));
    assert!(warned.is_some() && solve(&fast).warnings.contains(&warned.unwrap()));
    let amg = message(&on(2, &convection(square, 1, "[1, 0]", "preconditioner = \"amg\"")));
    assert!(amg.contains("not symmetric"), "{amg}");
}

/// The case of one of several processes, each of which runs it.
pub(crate) fn of_process(folder: &Path, text: &str, comm: &Comm) -> Result<Report, CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    case.file.solver.threads = 1;
    case.embedding.comm = Some(comm.clone());
    case.embedding.writes_files = comm.rank() == 0;
    run(&case, &mut Silent)
}

#[test]
fn processes_that_share_no_memory_have_the_results_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        block("kind = \"box\", cell = \"tetrahedron\", cells = [4, 3, 3]", 2, ""),
        convection("kind = \"square\", cell = \"quadrilateral\", cells = [6, 5]", 2, "[1, \"x\"]", ""),
    ] {
        let expected = solve(&text);
        let work = |comm: Comm| {
            let report = of_process(folder.path(), &text, &comm)?;
            agree(&report, &expected, &text);
            assert_eq!(report.ranks.as_ref().unwrap().n_ranks, 3);
            Ok::<_, CaseError>(())
        };
        threads::run(3, work, work).unwrap();
        assert!(folder.path().join("out/solution.vtu").exists());
    }
}
