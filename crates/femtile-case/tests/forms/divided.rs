//! Conditions that reach across the body, and runs in time, on several ranks: the answer is that of one rank.

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_comm::{Comm, threads};
use femtile_mesh::generate::SquareSplit;
use femtile_mesh::{CellKind, Mesh};

use crate::inside::{KINDS, halves, try_solve_on};
use crate::ranks::{agree, of_process};
use crate::sides::{blocks, sector};
use crate::stop_at::StopAt;
use crate::{run_in, try_solve};

/// A case without its mesh, whose last section is that of the solver.
fn case(degree: u32, equation: &str, functionals: &str, solver: &str) -> String {
    format!(
        "[space]\ndegree = {degree}\n{equation}\n[output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n{solver}"
    )
}

/// A mesh: the text of a generator, or one that is given.
#[derive(Clone, Copy)]
enum On<'a> {
    Generated(&'a str),
    Mesh(&'a Mesh),
}

/// Solves a case on some ranks.
fn on(mesh: On<'_>, text: &str, n_ranks: usize) -> Report {
    let text = format!("{text}ranks = {n_ranks}\n");
    let report = match mesh {
        On::Generated(generate) => try_solve(&format!("[mesh]\ngenerate = {{ {generate} }}\n{text}")),
        On::Mesh(mesh) => try_solve_on(mesh, &format!("[mesh]\n{text}")),
    };
    let report = report.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(report.solve.stop.name(), "converged", "{text}");
    report
}

/// Asserts that some ranks have the results of one; returns the reports of one and of the last number.
fn same_on(mesh: On<'_>, text: &str, numbers: &[usize]) -> [Report; 2] {
    let of_one = on(mesh, text, 1);
    assert!(of_one.ranks.is_none());
    let mut last = None;
    for &n_ranks in numbers {
        let report = on(mesh, text, n_ranks);
        agree(&report, &of_one, text);
        assert_eq!(report.ranks.as_ref().unwrap().n_ranks, n_ranks);
        last = Some(report);
    }
    [of_one, last.unwrap()]
}

/// As [`same_on`] for two to four ranks, and more than the mesh has sides.
fn same_on_ranks(mesh: On<'_>, text: &str) -> [Report; 2] {
    same_on(mesh, text, &[2, 9, 4, 3])
}

const REACTION: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + x)*grad(u)\"\nsource = \"sin(3*x) + y - 0.5*u\"\n";

const NUMBERS: &str = "{ name = \"norm\", kind = \"l2_norm\" }, { name = \"most\", kind = \"max\" }, \
    { name = \"xmin\", kind = \"flux\", where = \"xmin\" }, { name = \"xmax\", kind = \"flux\", where = \"xmax\" }";

fn periodic(axes: &str) -> String {
    let side = |a: char| format!("[[periodic]]\nfrom = \"{a}min\"\nto = \"{a}max\"\njump = 0.5\n");
    axes.chars().map(side).collect()
}

#[test]
fn periodic_boxes_of_all_cells_and_degrees() {
    for (generate, axes, degrees) in [
        ("kind = \"square\", cell = \"triangle\", cells = [7, 5]", "xy", [1, 3]),
        ("kind = \"square\", cell = \"quadrilateral\", cells = [9, 5]", "xy", [1, 3]),
        ("kind = \"square\", cell = \"quadrilateral\", cells = [3, 11]", "x", [1, 2]),
        ("kind = \"box\", cell = \"tetrahedron\", cells = [4, 3, 3]", "xyz", [1, 2]),
        ("kind = \"box\", cell = \"hexahedron\", cells = [3, 4, 3]", "yz", [1, 3]),
    ] {
        for degree in degrees {
            let equation = format!("{REACTION}{}", periodic(axes));
            same_on_ranks(On::Generated(generate), &case(degree, &equation, NUMBERS, ""));
        }
    }
}

#[test]
fn multigrid_of_a_periodic_square_takes_hardly_more_iterations() {
    let generate = "kind = \"square\", cell = \"quadrilateral\", cells = [45, 37]";
    let text = case(1, &format!("{REACTION}{}", periodic("xy")), NUMBERS, "preconditioner = \"amg\"\n");
    let [of_one, of_three] = same_on_ranks(On::Generated(generate), &text);
    assert!(of_one.solve.levels.len() > 1);
    let [few, many] = [of_one, of_three].map(|report| report.solve.iterations);
    assert!(many as f64 <= 1.25 * few as f64 + 1.0, "{many} iterations for {few}");
}

#[test]
fn meshes_that_do_not_match_are_tied() {
    for cell in ["triangle", "quadrilateral", "tetrahedron", "hexahedron"] {
        let up = if matches!(cell, "triangle" | "quadrilateral") { "y" } else { "z" };
        for (degree, upper) in [(1, 3), (2, 4), (3, 3)] {
            let equation = format!(
                "{REACTION}[[tie]]\nfrom = \"{up}max\"\nto = \"upper-{up}min\"\n\
                 [[boundary]]\nwhere = \"{up}min\"\ndirichlet = \"x\"\n"
            );
            let functionals = format!(
                "{{ name = \"norm\", kind = \"l2_norm\" }}, {{ name = \"tied\", kind = \"flux\", where = \"{up}max\" }}, \
                 {{ name = \"in\", kind = \"flux\", where = \"{up}min\" }}"
            );
            let mesh = blocks(cell, if degree == 1 { 2 } else { 1 }, upper);
            same_on_ranks(On::Mesh(&mesh), &case(degree, &equation, &functionals, ""));
        }
    }
}

#[test]
fn displacements_turn_with_a_rotation_and_blocks_float() {
    let at = "{ name = \"at\", kind = \"value_at\", points = [[1.0, 0], [0, 1.5], [1, 1]] }, { name = \"energy\", kind = \"energy\" }";
    let tube = "[equation]\nkind = \"elasticity\"\nyoung = \"100*(1 + x)\"\npoisson = 0.3\n\
        [[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\nrotation = { degrees = 90, centre = [0, 0] }\n\
        [[boundary]]\nwhere = \"xmin\"\npressure = 2\n[[boundary]]\nnodes = \"x > 1.999\"\ndirichlet = [\"free\", 0]\n";
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        let mesh = sector(90.0, [3, 7], split);
        same_on_ranks(On::Mesh(&mesh), &case(2, tube, at, ""));
    }
    let block = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.2\nsource = [0, \"x\"]\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\nfloating = true\ntotal = [3, 1]\n";
    let force =
        "{ name = \"force\", kind = \"flux\", where = \"xmax\" }, { name = \"energy\", kind = \"energy\" }";
    let generate = "kind = \"square\", cells = [9, 3], upper = [3, 1]";
    same_on_ranks(On::Generated(generate), &case(2, block, force, ""));
}

#[test]
fn floating_sides_and_walls_have_one_value() {
    // With more ranks some have no unknown of the side.
    let equation = format!(
        "{REACTION}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\nfloating = true\ntotal = 2\n"
    );
    for generate in [
        "kind = \"square\", cells = [13, 5], upper = [4, 1]",
        "kind = \"box\", cell = \"hexahedron\", cells = [5, 2, 3]",
    ] {
        for degree in [1, 2] {
            same_on_ranks(On::Generated(generate), &case(degree, &equation, NUMBERS, ""));
        }
    }
    let ends =
        "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n";
    for kind in KINDS {
        for interface in ["", "[[interface]]\nwhere = \"wall\"\nconductance = 0.5\n"] {
            let equation = format!(
                "{REACTION}{interface}{ends}[[boundary]]\nwhere = \"wall\"\nfloating = true\ntotal = 3\n"
            );
            same_on_ranks(On::Mesh(&halves(kind)), &case(1, &equation, NUMBERS, ""));
        }
    }
}

const CONTACT: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { k = { by_tag = { left = 1, right = 7 } } }\n\
    flux = \"k*grad(u)\"\nsource = \"y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n\
    [[interface]]\nwhere = \"wall\"\n";

#[test]
fn interfaces_of_all_cells_with_and_without_periodic_sides() {
    let functionals = format!(
        "{NUMBERS}, {{ name = \"left\", kind = \"flux\", where = \"wall\", from = \"left\" }}, {{ name = \"least\", kind = \"min\" }}"
    );
    for kind in KINDS {
        let mut mesh = halves(kind);
        let (n, axes) = if mesh.dimension() == 2 { (6.0, "y") } else { (4.0, "yz") };
        for degree in [1, 2] {
            let text = case(degree, &format!("{CONTACT}conductance = \"0.5 + y\"\n"), &functionals, "");
            same_on_ranks(On::Mesh(&mesh), &text);
        }
        mesh.points.iter_mut().for_each(|[x, _, _]| *x = (*x * n * 0.5).round() / (n * 0.5));
        let equation = format!("{CONTACT}conductance = 2\n{}", periodic(axes).replace("jump = 0.5\n", ""));
        same_on_ranks(On::Mesh(&mesh), &case(2, &equation, &functionals, ""));
    }
    let radiation =
        format!("{CONTACT}from = \"left\"\nconductance = \"0.3*(u^2 + u_other^2)*(u + u_other)\"\n");
    let radiation = radiation.replace("dirichlet = 0", "dirichlet = 0.5");
    let solver = "nonlinear_tolerance = 1e-12\n";
    same_on_ranks(On::Mesh(&halves(CellKind::Triangle)), &case(2, &radiation, &functionals, solver));
}

#[test]
fn nonlinear_forms_have_jumps_and_totals() {
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + w^2)*grad(u)\"\ndefine = \"w = u - x\"\n\
        source = \"sin(6*y)\"\n[[periodic]]\nfrom = \"xmin\"\nto = \"xmax\"\njump = 1\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = \"x\"\n\
        [[boundary]]\nwhere = \"ymax\"\nfloating = false\ntotal = 1\n";
    let mesh = On::Generated("kind = \"square\", cells = [5, 6]");
    same_on_ranks(mesh, &case(2, equation, NUMBERS, "nonlinear_tolerance = 1e-12\n"));
    let floating = equation.replace("floating = false\ntotal", "floating = true\ntotal");
    let floating = floating
        .replace("jump = 1", "jump = 0")
        .replace("\"w = u - x\"", "\"w = u\"")
        .replace("dirichlet = \"x\"", "dirichlet = 1");
    same_on_ranks(mesh, &case(1, &floating, NUMBERS, "nonlinear_tolerance = 1e-12\n"));
    let steps = format!("{equation}[continuation]\nsteps = 3\n").replace("jump = 1", "jump = \"t\"");
    let steps = steps.replace("dirichlet = \"x\"", "dirichlet = \"t*x\"").replace("u - x", "u - t*x");
    same_on_ranks(mesh, &case(1, &steps, NUMBERS, "nonlinear_tolerance = 1e-12\n"));
}

#[test]
fn unknowns_of_several_degrees_are_divided() {
    let bent = "[unknown]\nu = { components = 2, degree = 2 }\nT = { degree = 1 }\n[equation]\nkind = \"form\"\n\
        constants = { mu = 38, lam = 57, alpha = 1e-2, k = 2 }\n\
        define = \"\"\"\nstrain = sym(grad(u)) - alpha*T*identity\nstress = 2*mu*strain + lam*tr(strain)*identity\n\"\"\"\n\
        flux = { u = \"stress\", T = \"k*grad(T)\" }\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = { u = [0, 0], T = 0 }\n[[boundary]]\nwhere = \"xmax\"\nflux = { T = \"6*y\" }\n";
    let at =
        "{ name = \"at\", kind = \"value_at\", point = [1.3, 0.7] }, { name = \"norm\", kind = \"l2_norm\" }";
    let text = case(2, bent, at, "preconditioner = \"jacobi\"\n").replace("[space]\ndegree = 2\n", "");
    for cell in ["triangle", "quadrilateral"] {
        let generate = format!("kind = \"square\", cell = \"{cell}\", cells = [5, 3], upper = [2, 1]");
        same_on_ranks(On::Generated(&generate), &text);
    }
}

#[test]
fn processes_that_share_no_memory_have_periodic_sides() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [6, 5] }}\n{}",
        case(2, &format!("{REACTION}{}", periodic("xy")), NUMBERS, "")
    );
    let expected = try_solve(&text).unwrap();
    let work = |comm: Comm| {
        let report = of_process(folder.path(), &text, &comm)?;
        agree(&report, &expected, &text);
        Ok::<_, CaseError>(())
    };
    threads::run(3, work, work).unwrap();
}

const IN_TIME: &str = "kind = \"square\", cells = [7, 5]";

#[test]
fn steps_in_time_are_those_of_one_rank() {
    let heat = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + x)*grad(u)\"\nsource = \"cos(3*t)*x - 0.5*u\"\n\
        capacity = \"2 + y\"\ninitial = \"x*y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"sin(t)*y\"\n\
        [[boundary]]\nwhere = \"xmax\"\nflux = \"2*(y + t - u)\"\n";
    let grows = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nflux = \"0.1*grad(u)\"\n\
        source = \"[-u[0]^2*u[1], u[0]^2*u[1] - 3*(u[1] - sin(2*t))]\"\ncapacity = 1\ninitial = [1, 0.5]\n";
    let melts = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nenthalpy = \"u + 0.3*tanh(u/0.1)\"\ninitial = -0.2\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"1 - exp(-20*t)\"\n";
    let numbers = "{ name = \"norm\", kind = \"l2_norm\" }, { name = \"mean\", kind = \"mean\" }";
    for (equation, time, degree) in [
        (heat, "method = \"implicit-euler\"\nend = 0.7\nsteps = 5", 2),
        (heat, "method = \"bdf2\"\nend = 0.7\nsteps = 5", 1),
        (heat, "method = \"sdirk2\"\nend = 0.7\nsteps = 5", 1),
        (heat, "method = \"crank-nicolson\"\nend = 0.7\nsteps = 5", 1),
        (heat, "end = 0.7\ntolerance = 1e-3", 1),
        (grows, "end = 1\ntolerance = 1e-3", 1),
        (melts, "end = 0.2\nsteps = 8", 1),
        (melts, "end = 0.2\ntolerance = 1e-3", 1),
    ] {
        let flux = ", { name = \"flux\", kind = \"flux\", where = \"xmin\" }";
        let numbers = &match time.contains("crank") {
            true => numbers.to_owned(),
            false => format!("{numbers}{flux}"),
        };
        let of_time = |equation: &str| {
            let solver = "preconditioner = \"jacobi\"\nnonlinear_tolerance = 1e-12\n";
            case(degree, &format!("{equation}[time]\n{time}\n"), numbers, solver)
        };
        let [of_one, of_three] = same_on(On::Generated(IN_TIME), &of_time(equation), &[9, 3]);
        let steps = |report: &Report| report.time.as_ref().unwrap().steps;
        assert_eq!(steps(&of_one), steps(&of_three), "{equation}{time}");
        if equation == heat {
            let sides = "[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\njump = \"t\"\n";
            let equation = format!("{equation}{sides}").replace("sin(t)*y", "t*y");
            same_on(On::Generated(IN_TIME), &of_time(&equation), &[2]);
        }
    }
    let solver = "preconditioner = \"amg\"\n";
    let text = case(1, &format!("{heat}[time]\nmethod = \"bdf2\"\nend = 0.7\nsteps = 5\n"), numbers, solver);
    let generate = "kind = \"square\", cells = [31, 27]";
    let [of_one, of_three] = same_on(On::Generated(generate), &text, &[3]);
    assert!(of_one.solve.levels.len() > 1 && of_three.solve.levels.len() > 1);
    let contact = format!("{CONTACT}conductance = 0.5\n[time]\nend = 1\nsteps = 4\n");
    let contact = contact.replace("source = \"y\"", "source = \"y\"\ncapacity = 3");
    same_on(On::Mesh(&halves(CellKind::Tetrahedron)), &case(1, &contact, numbers, ""), &[2, 4]);
}

/// A case in a folder with its output.
fn in_folder(folder: &Path, text: &str) -> Case {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

fn traces(folder: &Path) -> Vec<Vec<f64>> {
    let text = std::fs::read_to_string(folder.join("out/traces.csv")).unwrap();
    text.lines().skip(1).map(|row| row.split(',').map(|entry| entry.parse().unwrap()).collect()).collect()
}

fn are_near(found: &[Vec<f64>], expected: &[Vec<f64>]) {
    assert!(found.len() == expected.len() && expected.len() > 3);
    for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
        // The flux at the initial time.
        let is_unknown = found.is_nan() && expected.is_nan();
        assert!(is_unknown || (found - expected).abs() < 1e-9, "{found} and {expected}");
    }
    assert!(expected[1..].iter().flatten().all(|number| number.is_finite()));
}

#[test]
fn traces_and_restarts_on_ranks_are_those_of_one() {
    let text = |n_ranks: usize| {
        format!(
            "[mesh]\ngenerate = {{ {IN_TIME} }}\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"(1 + u^2)*grad(u)\"\n\
             capacity = \"1 + u\"\ninitial = \"x*y\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"t\"\n\
             [time]\nend = 1\nsteps = 20\ntraces = {{ every = 0.1 }}\ncheckpoint = {{ steps = 3 }}\n\
             [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"mean\", kind = \"mean\" }}, {{ name = \"norm\", kind = \"l2_norm\" }}, \
             {{ name = \"flux\", kind = \"flux\", where = \"xmin\" }}]\n\
             [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\nnonlinear_tolerance = 1e-12\nranks = {n_ranks}\n"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &text(1)).unwrap();
    let expected = traces(folder.path());
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), &text(3)).unwrap();
    are_near(&traces(folder.path()), &expected);
    for (before, after) in [(1, 3), (3, 2), (2, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let report = run(&in_folder(folder.path(), &text(before)), &mut StopAt::new(0.45)).unwrap();
        assert_eq!(report.time.unwrap().stop, "interrupted");
        let mut case = in_folder(folder.path(), &text(after));
        case.file.time.as_mut().unwrap().restart = true;
        run(&case, &mut Silent).unwrap();
        are_near(&traces(folder.path()), &expected);
    }
}
