//! Cases with geometric multigrid.

mod full_multigrid;

use std::path::Path;

use femtile_case::{Case, CaseError, Report, Silent, run};
use femtile_linalg::krylov::Stop;
use femtile_mesh::{CellKind, Mesh, io};

/// Carries a case out in a folder; the report, and u at the nodes.
fn solve_in(folder: &Path, text: &str) -> Result<(Report, Vec<f64>), CaseError> {
    let mut case = Case::parse(&folder.join("case.toml"), text.into())?;
    case.file.output.directory = folder.join("out");
    case.file.output.plot = false;
    let report = run(&case, &mut Silent)?;
    let written = io::read(&folder.join("out/solution.vtu")).unwrap();
    Ok((report, written.node_fields["u"].values.clone()))
}

fn solve(text: &str) -> (Report, Vec<f64>) {
    let (report, u) = solve_in(tempfile::tempdir().unwrap().path(), text).unwrap();
    assert_eq!(report.solve.stop, Stop::Converged);
    (report, u)
}

/// The key that a case is refused for and what is said.
fn refused(text: &str) -> (String, String) {
    match solve_in(tempfile::tempdir().unwrap().path(), text) {
        Err(CaseError::Input { key, message, .. }) => (key.unwrap_or_default(), message),
        other => panic!("{other:?}"),
    }
}

/// A square or cube with `cells` cells per side.
fn mesh(dimension: usize, cells: usize) -> String {
    match dimension {
        2 => format!("{{ kind = \"square\", cell = \"quadrilateral\", cells = [{cells}, {cells}] }}"),
        _ => format!("{{ kind = \"box\", cell = \"hexahedron\", cells = [{cells}, {cells}, {cells}] }}"),
    }
}

fn case(mesh: &str, degree: usize, equation: &str, solver: &str) -> String {
    format!(
        r#"
        [mesh]
        generate = {mesh}
        [space]
        degree = {degree}
        [equation]
        source = "exp(x)*(1 + y)"
        {equation}
        [[boundary]]
        where = "all"
        dirichlet = "1 + x*y + sin(3*y)"
        [solver]
        tolerance = 1e-12
        {solver}
        "#
    )
}

const GMG: &str = "preconditioner = \"gmg\"";

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let size = expected.iter().fold(0.0_f64, |size, u| size.max(u.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-8 * size, "{found} instead of {expected}");
    }
}

#[test]
fn solutions_are_those_of_jacobis_preconditioner() {
    for (dimension, cells) in [(2, 8), (3, 4)] {
        for degree in [1, 2, 3, 5] {
            for equation in ["sigma = \"2 + sin(3*x)*y\"", "sigma = 5\nlambda = \"1 + x\""] {
                let text = |solver| case(&mesh(dimension, cells), degree, equation, solver);
                let (plain, expected) = solve(&text("preconditioner = \"jacobi\""));
                let (report, u) = solve(&text(GMG));
                assert_close(&u, &expected);
                assert!(
                    report.solve.iterations < plain.solve.iterations.min(25),
                    "{}",
                    report.solve.iterations
                );
            }
        }
    }
}

#[test]
fn iterations_are_few_for_every_degree_and_do_not_grow_with_the_cells() {
    for (dimension, cells) in [(2, [8, 32]), (3, [4, 8])] {
        for degree in [1, 2, 3, 5] {
            for cells in cells {
                let text = case(&mesh(dimension, cells), degree, "sigma = 3", GMG);
                let n = solve(&text.replace("1e-12", "1e-10")).0.solve.iterations;
                assert!(n <= 12, "{dimension}-D, degree {degree}, {cells} cells: {n}");
            }
        }
    }
}

#[test]
fn both_precisions_and_smoothers_precondition_and_are_told_of() {
    let text = |solver: &str| case(&mesh(3, 8), 2, "", &format!("{GMG}\n{solver}"));
    let (default, expected) = solve(&text(""));
    let levels = |report: &Report| -> Vec<(usize, Option<usize>)> {
        assert!(report.solve.levels.iter().all(|level| level.n_nonzeros.is_none()));
        report.solve.levels.iter().map(|level| (level.n_rows, level.n_patches)).collect()
    };
    let without_patches = [(3375, None), (343, None), (27, None)];
    assert_eq!(levels(&default), without_patches, "the default on rectangles of one sigma is a polynomial");
    assert_eq!(default.citations, ["hestenes1952", "kronbichler2022", "cui2024"]);
    for (solver, most) in [
        ("gmg = { precision = \"f64\" }", default.solve.iterations),
        ("gmg = { precision = \"f32\", smoother = \"vertex-patch\" }", default.solve.iterations + 2),
        ("gmg = { smoother = \"vertex-patch\", precision = \"f64\" }", default.solve.iterations + 2),
        // Its recurrences feel the rounding of cycles in single precision.
        ("method = \"pipelined-cg\"", 2 * default.solve.iterations),
        ("operator = \"matrix-free\"", default.solve.iterations),
        ("method = \"gmres\"", default.solve.iterations),
        // Smooths in the same order before and after.
        ("method = \"gmres\"\ngmg = { smoother = \"vertex-patch\" }", default.solve.iterations),
        ("method = \"gmres\"\nrestart = 3", default.solve.iterations + 5),
    ] {
        let (report, u) = solve(&text(solver));
        assert_close(&u, &expected);
        assert!(report.solve.iterations <= most, "{solver}: {}", report.solve.iterations);
        if solver.contains("patch") {
            assert_eq!(levels(&report), [(3375, Some(343)), (343, Some(27)), (27, None)]);
        } else {
            assert_eq!(levels(&report), without_patches);
        }
    }
}

#[test]
fn thin_boxes_held_on_one_side_take_few_iterations_and_a_cpu() {
    for (cells, upper, thin) in [("[16, 16, 2]", "[1, 1, 0.02]", "z"), ("[32, 2, 2]", "[16, 1, 1]", "y")] {
        // Patches are multiplicative with one σ, else additive.
        for (sigma, most) in [("2", 12), ("\"2 + x\"", 20)] {
            let mesh =
                format!("{{ kind = \"box\", cell = \"hexahedron\", cells = {cells}, upper = {upper} }}");
            let text = case(&mesh, 2, &format!("sigma = {sigma}"), GMG).replace("\"all\"", "\"xmin\"");
            let report = solve(&text.replace("1e-12", "1e-9")).0;
            let n = report.solve.iterations;
            assert!(n <= most, "{cells}, {sigma}: {n}");
            if sigma == "2" {
                assert!(report.device_reason.contains(&format!("along {thin}")), "{}", report.device_reason);
            }
        }
    }
}

#[test]
fn conductivity_along_the_axes_stretches_the_box() {
    let stretched = "{ kind = \"box\", cell = \"hexahedron\", cells = [4, 4, 4], upper = [10, 20, 10] }";
    let sigma = "sigma = [[1, 0, 0], [0, 4, 0], [0, 0, 1]]";
    let iterations = |mesh: &str, equation: &str, u: &str| {
        let text = case(mesh, 3, equation, GMG).replace("exp(x)*(1 + y)", "1");
        solve(&text.replace("1 + x*y + sin(3*y)", u)).0.solve.iterations
    };
    assert_eq!(iterations(stretched, sigma, "0"), iterations(&mesh(3, 4), "", "0"));
}

#[test]
fn a_single_patch_or_cell_is_solved_at_once() {
    for dimension in [2, 3] {
        for (degree, cells) in [(1, 2), (4, 2), (3, 1), (1, 1)] {
            let text = case(&mesh(dimension, cells), degree, "", &format!("{GMG}\ngmg.precision = \"f64\""));
            let report = solve(&text).0;
            assert!(report.solve.iterations <= 1, "{}", report.solve.iterations);
            assert_eq!(report.solve.levels.len(), usize::from(degree * cells > 1));
        }
    }
}

/// A box of cells between these lines, cells and nodes in disorder, each cell turned about z.
fn shuffled(lines: &[Vec<f64>]) -> Mesh {
    let along: Vec<usize> = lines.iter().map(Vec::len).collect();
    let (n_nodes, n_cells): (usize, usize) = (along.iter().product(), along.iter().map(|n| n - 1).product());
    let shuffle = |i: usize, n: usize| (i * 37 + 11) % n;
    let node = |at: &[usize]| {
        let number = at.iter().zip(&along).rev().fold(0, |number, (at, n)| number * n + at);
        shuffle(number, n_nodes) as u32
    };
    let split = |i: usize, along: &[usize]| -> Vec<usize> {
        along.iter().scan(i, |rest, n| Some((*rest % n, *rest /= n).0)).collect()
    };
    let mut points = vec![[0.0; 3]; n_nodes];
    for i in 0..n_nodes {
        let at = split(i, &along);
        for (axis, lines) in lines.iter().enumerate() {
            points[node(&at) as usize][axis] = lines[at[axis]];
        }
    }
    let counts: Vec<usize> = along.iter().map(|n| n - 1).collect();
    let mut cells = Vec::new();
    for i in 0..n_cells {
        let at = split(shuffle(i, n_cells), &counts);
        for layer in 0..lines.len() - 1 {
            for corner in 0..4 {
                let [x, y] = [[0, 0], [1, 0], [1, 1], [0, 1]][(corner + i) % 4];
                let corner: Vec<usize> = at.iter().zip([x, y, layer]).map(|(at, step)| at + step).collect();
                cells.push(node(&corner));
            }
        }
    }
    let kind = if lines.len() == 2 { CellKind::Quadrilateral } else { CellKind::Hexahedron };
    Mesh::new(points, kind, cells).unwrap()
}

#[test]
fn meshes_from_files_in_any_order_with_unequal_widths_are_boxes() {
    let x = vec![-1.0, -0.9, -0.8, -0.5, -0.2];
    let y = vec![3.0, 3.1, 3.2, 3.3, 3.4, 3.8, 4.2, 4.3, 4.4];
    let z = vec![0.0, 0.25, 0.5, 0.75, 1.0];
    for mut lines in [vec![x.clone(), y.clone()], vec![x, y, z]] {
        // As files in single precision have them.
        lines.iter_mut().flatten().for_each(|x| *x = f64::from(*x as f32));
        let folder = tempfile::tempdir().unwrap();
        io::vtu::write(&folder.path().join("box.vtu"), &shuffled(&lines), &[], &[]).unwrap();
        let text = |solver| {
            case("1", 3, "sigma = \"1 + x^2\"", solver).replace("generate = 1", "file = \"box.vtu\"")
        };
        let (_, expected) = solve_in(folder.path(), &text("preconditioner = \"jacobi\"")).unwrap();
        let (report, u) = solve_in(folder.path(), &text(GMG)).unwrap();
        assert_close(&u, &expected);
        assert!(report.solve.iterations <= 25, "{}", report.solve.iterations);
        // Twice as many cells along y as along the others.
        assert_eq!(report.solve.levels.len(), 3);
    }
}

#[test]
fn stretched_cells_take_hardly_more_iterations() {
    let iterations = |upper: &str| {
        let stretched =
            format!("{{ kind = \"box\", cell = \"hexahedron\", cells = [8, 8, 8], upper = {upper} }}");
        solve(&case(&stretched, 2, "", GMG)).0.solve.iterations
    };
    let [cubes, stretched] = ["[1, 1, 1]", "[100, 1, 1]"].map(iterations);
    assert!(stretched <= 2 * cubes, "{stretched}, {cubes}");
}

#[test]
fn deformed_and_curved_cells_take_hardly_more_iterations() {
    for (dimension, cells) in [(2, 8), (3, 4)] {
        for (degree, order) in [(1, 1), (3, 1), (2, 2), (3, 3)] {
            let text = |deform: f64, solver: &str| {
                let mesh = mesh(dimension, cells);
                let options = format!("], order = {order}, deform = {deform} }}");
                case(&mesh.replace("] }", &options), degree, "sigma = 2", solver)
            };
            let straight = solve(&text(0.0, GMG)).0.solve.iterations;
            let (_, expected) = solve(&text(0.15, "preconditioner = \"jacobi\""));
            for smoother in ["vertex-patch", "chebyshev"] {
                let (report, u) = solve(&text(0.15, &format!("{GMG}\ngmg.smoother = \"{smoother}\"")));
                assert_close(&u, &expected);
                let found = report.solve.iterations;
                // Of curved cells the cycle sees the corners alone.
                let most = if order == 1 { 2 } else { 3 } + usize::from(smoother == "vertex-patch");
                assert!(
                    found <= most * straight,
                    "{dimension} {degree} {order} {smoother}: {found}, {straight}"
                );
                assert_eq!(report.solve.levels.len(), if dimension == 2 { 3 } else { 2 });
            }
        }
    }
}

#[test]
fn sides_without_values_take_as_many_iterations() {
    let flux = |side: &str| format!("[[boundary]]\nwhere = \"{side}\"\nneumann = \"1 + y\"\n");
    let robin = "[[boundary]]\nwhere = \"ymin\"\nrobin = { coefficient = 0.5, value = \"x\" }\n";
    let half = |text: &str| text.replace("where = \"all\"", "where = \"xmin\"");
    let with = |more: String| move |text: &str| text.replace("[solver]", &format!("{more}[solver]"));
    for (dimension, cells) in [(2, 8), (3, 4)] {
        for (degree, deform) in [(1, 0.0), (3, 0.0), (2, 0.1)] {
            let text = |solver: &str| {
                let mesh = mesh(dimension, cells).replace("] }", &format!("], deform = {deform} }}"));
                case(&mesh, degree, "sigma = 2", solver)
            };
            let closed = solve(&text(GMG)).0.solve.iterations;
            let cases: [&dyn Fn(&str) -> String; 4] = [
                &half,
                &with(flux("ymax")),
                &with(flux("xmin") + &flux("xmax")),
                &with(flux("xmax") + robin),
            ];
            for change in cases {
                let (_, expected) = solve(&change(&text("preconditioner = \"jacobi\"")));
                for solver in ["", "gmg.smoother = \"chebyshev\"", "method = \"gmres\""] {
                    let (report, u) = solve(&change(&text(&format!("{GMG}\n{solver}"))));
                    assert_close(&u, &expected);
                    let found = report.solve.iterations;
                    assert!(found <= closed + 3, "{dimension} {degree} {solver}: {found}, {closed}");
                }
            }
        }
    }
}

#[test]
fn jumps_between_cells_take_hardly_more_iterations() {
    for (dimension, cells) in [(2, 8), (3, 4)] {
        let text = |sigma: &str| {
            let text = case(&mesh(dimension, cells), 2, &format!("sigma = \"{sigma}\""), GMG);
            text.replace("1e-12", "1e-10")
        };
        let one = solve(&text("1")).0.solve.iterations;
        let wall = solve(&text("if(x < 0.5, 1, 10000)")).0.solve.iterations;
        assert!(wall <= 2 * one, "{dimension}: {wall}, {one}");
    }
}

#[test]
fn cells_in_any_order_and_turned_are_rows() {
    let lines = [vec![0.0, 0.3, 0.5, 0.6, 1.0], vec![0.0, 0.2, 0.4, 0.7, 1.1], vec![0.0, 0.5, 1.0]];
    for dimension in [2, 3] {
        let mut mesh = shuffled(&lines[..dimension]);
        for [x, y, z] in &mut mesh.points {
            (*x, *y, *z) = (*y + 0.1 * *x * *y, -*x + 0.1 * (3.0 * *y).sin(), *z * (1.0 + 0.1 * *x));
        }
        let folder = tempfile::tempdir().unwrap();
        io::vtu::write(&folder.path().join("box.vtu"), &mesh, &[], &[]).unwrap();
        let text = |solver| {
            case("1", 2, "sigma = \"1 + y^2\"", solver).replace("generate = 1", "file = \"box.vtu\"")
        };
        let (_, expected) = solve_in(folder.path(), &text("preconditioner = \"jacobi\"")).unwrap();
        let (report, u) = solve_in(folder.path(), &text(GMG)).unwrap();
        assert_close(&u, &expected);
        assert!(report.solve.iterations <= 25, "{}", report.solve.iterations);
        assert_eq!(report.solve.levels.len(), 2);
    }
}

#[test]
fn what_is_no_box_or_too_coarse_is_refused_with_advice() {
    let square = |solver: &str| case(&mesh(2, 4), 2, "", solver);
    let gmg = square(GMG);
    let l_shape = case("{ kind = \"l_shape\", cells = 4 }", 2, "", GMG);
    let odd = case(&mesh(2, 35), 2, "", GMG);
    let part = gmg.replace("where = \"all\"", "where = \"x < 0.3\"");
    let none = gmg.replace("dirichlet =", "neumann =").replace("[[bound", "lambda = 1\n[[bound");
    let deformed = mesh(2, 4).replace("] }", "], deform = 0.1 }");
    let bent_part = case(&deformed, 2, "", GMG).replace("where = \"all\"", "where = \"y > 0.7\"");
    for (text, key, words) in [
        (bent_part, "solver.preconditioner", ["around the point (0.000, 0.500, 0.000)", "`dirichlet`"]),
        (l_shape, "solver.preconditioner", ["cells do not fill the rows", "use \"pmg\""]),
        (odd, "solver.preconditioner", ["35 along x", "1 to 16"]),
        (part, "solver.preconditioner", ["a part of the side y = 0", "`dirichlet`"]),
        (none, "solver.preconditioner", ["on one side of the box", "`dirichlet`"]),
        (
            case("{ kind = \"square\", cells = [4, 4] }", 1, "", GMG),
            "solver.preconditioner",
            ["triangle", "\"amg\""],
        ),
        (
            square(&format!("{GMG}\noperator = \"assembled\"")),
            "solver.operator",
            ["not from a matrix", "\"auto\""],
        ),
        (square(&format!("{GMG}\nmethod = \"merged-cg\"")), "solver.method", ["jacobi", "\"cg\""]),
        (square(&format!("{GMG}\nmethod = \"s-step-cg\"")), "solver.method", ["jacobi", "\"cg\""]),
        (square("gmg = { precision = \"f64\" }"), "solver.gmg", ["preconditioner", "\"gmg\""]),
    ] {
        let (found, message) = refused(&text);
        assert_eq!(found, key, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}

#[test]
fn options_that_there_are_not_are_refused() {
    for (option, words) in [
        ("smother = \"chebyshev\"", "did you mean `smoother`"),
        ("smoother = \"gauss-seidel\"", "`vertex-patch`"),
    ] {
        let text = case(&mesh(2, 4), 2, "", &format!("{GMG}\ngmg = {{ {option} }}"));
        let said = Case::parse(Path::new("case.toml"), text).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
}
