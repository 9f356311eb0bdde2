//! `femtile solve-matrix`: systems in files of Matrix Market, SciPy and NumPy, its report, its refusals.

use crate::common;

use std::process::{Command, Output};

use common::{Workplace, f64s, femtile, npy, numbers, numpy, root, text};
use serde_json::{Value, json};

/// −u″ with three points: a right side of ones is solved by 3/2, 2, 3/2.
const SMALL: &str =
    "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 2\n2 1 -1\n2 2 2\n3 2 -1\n3 3 2\n";

fn place(files: &[(&str, Vec<u8>)]) -> Workplace {
    let place = Workplace::new("");
    std::fs::write(place.path("a.mtx"), SMALL).unwrap();
    for (name, bytes) in files {
        std::fs::write(place.path(name), bytes).unwrap();
    }
    place
}

fn run(place: &Workplace, arguments: &[&str]) -> Output {
    femtile().current_dir(place.folder.path()).arg("solve-matrix").args(arguments).output().unwrap()
}

/// The report of a solve that ends with `code`.
fn report(place: &Workplace, arguments: &[&str], code: i32) -> Value {
    let output = run(place, &[arguments, &["--json", "-", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn refuses(place: &Workplace, arguments: &[&str], words: &[&str]) {
    let output = run(place, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!place.path("x.npy").exists());
    let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-8), "{found:?}");
}

/// −Δu on a square of n × n points, times the square of their distance.
fn laplace(n: usize) -> String {
    let mut lines = Vec::new();
    for i in 0..n * n {
        lines.push(format!("{} {} 4", i + 1, i + 1));
        if i % n > 0 {
            lines.push(format!("{} {} -1", i + 1, i));
        }
        if i >= n {
            lines.push(format!("{} {} -1", i + 1, i + 1 - n));
        }
    }
    let banner = "%%MatrixMarket matrix coordinate real symmetric";
    format!("{banner}\n{0} {0} {1}\n{2}\n", n * n, lines.len(), lines.join("\n"))
}

#[test]
fn a_system_of_ones_is_solved_and_reported_as_a_case_is() {
    let place = place(&[]);
    for rhs in [&[][..], &["ones"]] {
        let found = report(&place, &[&["a.mtx"], rhs, &["-o", "x.npy"]].concat(), 0);
        assert_near(&numbers(&place, "x.npy"), &[1.5, 2.0, 1.5]);
        assert_eq!((&found["matrix"]["n_rows"], &found["matrix"]["n_nonzeros"]), (&3.into(), &7.into()));
        assert_eq!((&found["preconditioner"], &found["method"]), (&"amg".into(), &"cg".into()));
        let solve = &found["solve"][0];
        assert_eq!(solve["stop"], "converged");
        assert!(solve["true_relative_residual"].as_f64().unwrap() <= 1e-10);
        assert!(solve["algebraic_error_estimate"].is_number() && solve["residuals"].is_array());
        assert!(found["device_reason"].is_string() && found["timings_s"]["setup"].is_number());
        std::fs::remove_file(place.path("x.npy")).unwrap();
    }
}

#[test]
fn several_right_sides_are_columns_in_either_order_and_either_format() {
    let by_rows: Vec<u8> = [1.0_f64, 2.0, 1.0, 2.0, 1.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let by_columns: Vec<u8> =
        [1.0_f64, 1.0, 1.0, 2.0, 2.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let market = "%%MatrixMarket matrix array real general\n3 2\n1\n1\n1\n2\n2\n2\n";
    let place = place(&[
        ("rows.npy", npy("<f8", false, &[3, 2], &by_rows)),
        ("columns.npy", npy("<f8", true, &[3, 2], &by_columns)),
        ("b.mtx", market.into()),
    ]);
    for rhs in ["rows.npy", "columns.npy", "b.mtx"] {
        let found = report(&place, &["a.mtx", rhs, "-o", "x.npy"], 0);
        assert_eq!((&found["n_right_sides"], found["solve"].as_array().unwrap().len()), (&2.into(), 2));
        let written = std::fs::read(place.path("x.npy")).unwrap();
        assert!(text(&written[..80]).contains("'fortran_order': True, 'shape': (3, 2)"));
        assert_near(&numbers(&place, "x.npy"), &[1.5, 2.0, 1.5, 3.0, 4.0, 3.0]);
    }
    report(&place, &["a.mtx", "b.mtx", "-o", "x.mtx"], 0);
    let written = std::fs::read_to_string(place.path("x.mtx")).unwrap();
    let mut lines = written.lines();
    assert_eq!(lines.next(), Some("%%MatrixMarket matrix array real general"));
    assert_eq!(lines.next(), Some("3 2"));
    let values: Vec<f64> = lines.map(|line| line.parse().unwrap()).collect();
    assert_near(&values, &[1.5, 2.0, 1.5, 3.0, 4.0, 3.0]);
}

#[test]
fn methods_and_preconditioners_that_are_named_are_taken() {
    let place = place(&[("l.mtx", laplace(24).into())]);
    report(&place, &["l.mtx", "-o", "x.npy"], 0);
    let expected = numbers(&place, "x.npy");
    let solve = |more: &[&str]| {
        let found = report(&place, &[&["l.mtx", "-o", "x.npy"], more].concat(), 0);
        let x = numbers(&place, "x.npy");
        assert!(x.iter().zip(&expected).all(|(f, e)| (f - e).abs() < 1e-6), "{more:?}");
        (
            found["preconditioner"].as_str().unwrap().to_string(),
            found["levels"].is_array(),
            found["solve"][0]["iterations"].as_u64().unwrap(),
        )
    };
    let (name, has_levels, n_amg) = solve(&["--preconditioner", "amg"]);
    assert!(name == "amg" && has_levels);
    let (name, has_levels, n_jacobi) = solve(&["--preconditioner", "jacobi"]);
    assert!(name == "jacobi" && !has_levels && n_jacobi > 2 * n_amg, "{n_jacobi} {n_amg}");
    assert_eq!(solve(&["--preconditioner", "none"]).0, "none");
    for method in ["merged-cg", "s-step-cg", "gmres"] {
        assert_eq!(solve(&["--method", method]).0, "jacobi");
    }
    assert_eq!(solve(&["--method", "pipelined-cg", "--preconditioner", "auto"]).0, "amg");
    assert_eq!(solve(&["--method", "gmres", "--preconditioner", "amg"]).0, "amg");
}

#[test]
fn settings_of_multigrid_are_those_of_case_files() {
    let place = place(&[("l.mtx", laplace(60).into())]);
    let residuals = |more: &[&str]| {
        let found = report(&place, &[&["l.mtx", "-o", "x.npy"], more].concat(), 0);
        found["solve"][0]["residuals"].clone()
    };
    let default = residuals(&[]);
    let named = ["--strength", "0.04", "--smoother", "chebyshev", "--cycle", "v", "--precision", "f32"];
    assert_eq!(residuals(&named), default);
    for other in [
        ["--strength", "0.3"],
        ["--smoother", "jacobi"],
        ["--smoother", "gauss-seidel"],
        ["--smoother", "patch"],
        ["--cycle", "w"],
        ["--cycle", "k"],
        ["--precision", "f64"],
    ] {
        assert_ne!(residuals(&other), default, "{other:?}");
    }
}

#[test]
fn a_limit_of_iterations_ends_with_exit_code_1_and_the_iterate_is_written() {
    let place = place(&[("l.mtx", laplace(24).into())]);
    let arguments = ["l.mtx", "-o", "x.npy", "--preconditioner", "jacobi", "--max-iterations", "3"];
    let found = report(&place, &arguments, 1);
    assert_eq!(found["solve"][0]["iterations"], 3);
    assert_eq!(numbers(&place, "x.npy").len(), 576);
    let said = text(&run(&place, &arguments).stdout);
    assert!(said.contains("after 3 iterations"), "{said}");
}

#[test]
fn matrices_that_are_not_symmetric_need_gmres() {
    let general =
        "%%MatrixMarket matrix coordinate real general\n3 3 5\n1 1 4\n1 2 -1\n2 2 4\n2 3 -1\n3 3 4\n";
    let place = place(&[("g.mtx", general.into())]);
    refuses(
        &place,
        &["g.mtx", "-o", "x.npy"],
        &["g.mtx is not symmetric", "row 0, column 1 is -1", "row 1, column 0 is 0", "--method gmres"],
    );
    let with_amg = ["g.mtx", "-o", "x.npy", "--method", "gmres", "--preconditioner", "amg"];
    refuses(&place, &with_amg, &["--preconditioner amg needs a symmetric matrix"]);
    let found = report(&place, &["g.mtx", "-o", "x.npy", "--method", "gmres"], 0);
    assert_eq!(
        (&found["preconditioner"], &found["matrix"]["is_symmetric"]),
        (&"jacobi".into(), &false.into())
    );
    assert_near(&numbers(&place, "x.npy"), &[0.328125, 0.3125, 0.25]);
}

#[test]
fn definite_matrices_of_either_sign_and_indefinite_ones_are_solved_or_say_how() {
    let place = place(&[
        ("n.mtx", SMALL.replace(" 2\n", " -2\n").replace(" -1\n", " 1\n").into()),
        ("i.mtx", laplace(12).replace(" 4\n", " 3.1\n").into()),
    ]);
    let found = report(&place, &["n.mtx", "-o", "x.npy"], 0);
    assert_near(&numbers(&place, "x.npy"), &[-1.5, -2.0, -1.5]);
    assert!(found["warnings"][0].as_str().unwrap().contains("−A x = −b"), "{}", found["warnings"]);
    std::fs::remove_file(place.path("x.npy")).unwrap();
    refuses(&place, &["i.mtx", "-o", "x.npy"], &["not positive definite", "--method gmres"]);
    refuses(&place, &["i.mtx", "-o", "x.npy", "--restart", "9"], &["--restart is for --method gmres"]);
    let found = report(&place, &["i.mtx", "-o", "x.npy", "--method", "gmres", "--restart", "144"], 0);
    assert!(found["solve"][0]["true_relative_residual"].as_f64().unwrap() <= 2e-10);
}

#[test]
fn levels_that_fill_up_give_way_to_the_diagonal() {
    // A chain with twenty nodes that are connected to a tenth of all others as well.
    let n = 1000;
    let mut edges: Vec<(usize, usize, f64)> = (1..n).map(|i| (i, i - 1, 1.0)).collect();
    for hub in 0..20 {
        let ends = (0..100).map(|k| (10 * k + 7 * hub) % n).filter(|end| end.abs_diff(50 * hub) > 1);
        edges.extend(ends.map(|end| (end.max(50 * hub), end.min(50 * hub), 0.1)));
    }
    let mut lines: Vec<String> = (1..=n).map(|i| format!("{i} {i} 0.01")).collect();
    for (i, j, weight) in edges {
        let (i, j) = (i + 1, j + 1);
        lines.extend([
            format!("{i} {j} -{weight}"),
            format!("{i} {i} {weight}"),
            format!("{j} {j} {weight}"),
        ]);
    }
    let banner = "%%MatrixMarket matrix coordinate real symmetric";
    let matrix = format!("{banner}\n{n} {n} {}\n{}\n", lines.len(), lines.join("\n"));
    let place = place(&[("h.mtx", matrix.into())]);
    let found = report(&place, &["h.mtx", "-o", "x.npy"], 0);
    assert_eq!((&found["preconditioner"], found["levels"].is_array()), (&"jacobi".into(), false));
    assert!(found["warnings"].to_string().contains("the diagonal is taken"), "{}", found["warnings"]);
    let found = report(&place, &["h.mtx", "-o", "x.npy", "--preconditioner", "amg"], 0);
    assert_eq!((&found["preconditioner"], found["levels"].is_array()), (&"amg".into(), true));
}

#[test]
fn a_warning_names_the_test_that_a_solution_fails() {
    // A chain whose second half has weights, and loads, 10⁻⁸ times as large: ‖b − Ax‖ hardly sees it.
    let n = 200;
    let weight = |i: usize| if i < n / 2 { 1.0 } else { 1e-8 };
    let mut lines = vec!["1 1 1".to_string()];
    for i in 1..n {
        let (weight, next) = (weight(i), i + 1);
        lines.extend([
            format!("{next} {i} -{weight}"),
            format!("{i} {i} {weight}"),
            format!("{next} {next} {weight}"),
        ]);
    }
    let banner = "%%MatrixMarket matrix coordinate real symmetric";
    let matrix = format!("{banner}\n{n} {n} {}\n{}\n", lines.len(), lines.join("\n"));
    let loads: Vec<f64> = (0..n).map(weight).collect();
    let place = place(&[("s.mtx", matrix.into()), ("b.npy", f64s(&[n], &loads))]);
    let limited = ["s.mtx", "b.npy", "-o", "x.npy", "--preconditioner", "jacobi", "--tolerance", "1e-6"];
    let found = report(&place, &[&limited[..], &["--max-iterations", "150"]].concat(), 1);
    assert!(found["solve"][0]["true_relative_residual"].as_f64().unwrap() <= 1e-6);
    let warning = found["warnings"].to_string();
    for words in [
        "limit of iterations",
        "‖b − Ax‖ meets the tolerance, but the preconditioned residual",
        "above 5.0e-6",
    ] {
        assert!(warning.contains(words), "`{words}` is not in {warning}");
    }
}

#[test]
fn invalid_matrices_are_refused_with_the_reason() {
    let banner = "%%MatrixMarket matrix coordinate";
    for (file, words) in [
        (format!("{banner} real general\n2 3 1\n1 1 1\n"), &["2 × 3 is not square"][..]),
        (format!("{banner} complex general\n1 1 1\n1 1 1 0\n"), &["complex"]),
        (format!("{banner} real general\n1 1 1\n1 1 nan\n"), &["nan"]),
        (format!("{banner} pattern general\n1 1 1\n1 1\n"), &["pattern", "values"]),
        (format!("{banner} real general\n0 0 0\n"), &["no rows"]),
        (format!("{banner} real general\n2 2 2\n1 1 1\n2 2 -1\n"), &["row 1 is -1", "gmres"]),
    ] {
        let place = place(&[("w.mtx", file.into_bytes())]);
        refuses(&place, &["w.mtx", "-o", "x.npy"], words);
    }
}

#[test]
fn right_sides_that_do_not_fit_are_refused() {
    let complex = npy("<c16", false, &[3], &[0; 48]);
    for (file, words) in [
        (f64s(&[4], &[1.0; 4]), &["right side has 4 rows, and the matrix has 3"][..]),
        (f64s(&[1, 3], &[1.0; 3]), &["right side has 1 rows"]),
        (f64s(&[3, 2], &[1.0, 1.0, 1.0, f64::NAN, 1.0, 1.0]), &["row 1, column 1", "NaN"]),
        (f64s(&[3, 1, 1], &[1.0; 3]), &["(N, K)", "[3, 1, 1]"]),
        (f64s(&[3, 0], &[]), &["no right side"]),
        (complex, &["complex128"]),
    ] {
        let place = place(&[("b.npy", file)]);
        refuses(&place, &["a.mtx", "b.npy", "-o", "x.npy"], words);
    }
}

#[test]
fn options_that_do_not_serve_say_what_to_do() {
    let place = place(&[("near.npy", f64s(&[4], &[1.0; 4]))]);
    for (more, words) in [
        (&["-o", "x.txt"][..], &["x.txt", ".npy or .mtx"][..]),
        (&["-o", "no/such/x.npy"], &["--output", "no/such"]),
        (&["-o", "x.npy", "--tolerance", "2"], &["--tolerance 2", "below 1"]),
        (&["-o", "x.npy", "--device", "gpu"], &["--device", "`gpu`", "cuda:N"]),
        (&["-o", "x.npy", "--near-nullspace", "near.npy"], &["near-nullspace has 4 rows"]),
        (&["-o", "x.npy", "--block-size", "2"], &["2 does not divide the 3 rows"]),
        (&["-o", "x.npy", "--method", "s-step-cg", "--preconditioner", "amg"], &["--method", "s-step-cg"]),
        (&["-o", "x.npy", "--preconditioner", "none", "--block-size", "3"], &["--block-size", "amg"]),
        (&["-o", "x.npy", "--preconditioner", "jacobi", "--cycle", "w"], &["--cycle", "amg"]),
        (&["-o", "x.npy", "--strength", "2"], &["--strength: 2 is not in [0, 1)"]),
        (&["-o", "x.npy", "--smoother", "magic"], &["--smoother", "gauss-seidel"]),
    ] {
        refuses(&place, &[&["a.mtx"], more].concat(), words);
    }
    refuses(&place, &["no.mtx", "-o", "x.npy"], &["no.mtx"]);
    refuses(&place, &["near.npz", "-o", "x.npy"], &["near.npz"]);
}

#[test]
fn a_near_nullspace_makes_iterations_fewer() {
    // D A D of a chain with weights of 1 and 100 in turn has a diagonal of ones: 1/d is nearly in its null space.
    let n = 400;
    let weight = |i: usize| if i % 40 < 20 { 1.0 } else { 100.0 };
    let d = |i: usize| (1.0_f64 / (weight(i) + weight(i + 1))).sqrt();
    let mut lines = Vec::new();
    for i in 0..n {
        lines.push(format!("{} {} 1", i + 1, i + 1));
        if i > 0 {
            lines.push(format!("{} {} {:?}", i + 1, i, -weight(i) * d(i) * d(i - 1)));
        }
    }
    let banner = "%%MatrixMarket matrix coordinate real symmetric";
    let matrix = format!("{banner}\n{n} {n} {}\n{}\n", lines.len(), lines.join("\n"));
    let near: Vec<f64> = (0..n).map(|i| 1.0 / d(i)).collect();
    let place = place(&[("s.mtx", matrix.into()), ("near.npy", f64s(&[n, 1], &near))]);
    let iterations = |more: &[&str]| {
        let found = report(&place, &[&["s.mtx", "-o", "x.npy"], more].concat(), 0);
        found["solve"][0]["iterations"].as_u64().unwrap()
    };
    let (without, with) = (iterations(&[]), iterations(&["--near-nullspace", "near.npy"]));
    assert!(2 * with < without, "{with} {without}");
}

#[test]
fn matrices_of_scipy_are_those_that_were_saved() {
    let python = numpy().filter(|python| {
        let found = Command::new(python).args(["-c", "import scipy.sparse"]).output();
        found.is_ok_and(|output| output.status.success())
    });
    let Some(python) = python else {
        eprintln!("SKIPPED: SciPy's matrices: no python3 with scipy");
        return;
    };
    let place = place(&[]);
    let script = |script: &str| {
        let output =
            Command::new(&python).current_dir(place.folder.path()).args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let made = "import numpy as np, scipy.sparse as s
r = np.random.default_rng(3)
a = s.random(60, 60, 0.05, rng=r, format='csr'); a = (a + a.T + 9 * s.eye(60)).asformat('FORMAT')
s.save_npz('a.npz', a, compressed=PACKED); np.save('b.npy', r.standard_normal((60, 3)))";
    let checked = "import numpy as np, scipy.sparse as s
a, b, x = s.load_npz('a.npz'), np.load('b.npy'), np.load('x.npy')
assert x.shape == b.shape and abs(a @ x - b).max() < 1e-8";
    for (format, packed) in [("csr", "True"), ("csr", "False"), ("csc", "True")] {
        script(&made.replace("FORMAT", format).replace("PACKED", packed));
        report(&place, &["a.npz", "b.npy", "-o", "x.npy"], 0);
        script(checked);
        std::fs::remove_file(place.path("x.npy")).unwrap();
    }
    script(&made.replace("FORMAT", "coo").replace("PACKED", "True"));
    refuses(&place, &["a.npz", "b.npy", "-o", "x.npy"], &["format `coo`", ".tocsr()"]);
    script("import numpy as np; np.savez('a.npz', data=np.ones(3))");
    refuses(&place, &["a.npz", "-o", "x.npy"], &["no member `format`", "data"]);
    for (change, words) in [
        ("indices=np.array([0, 2])", "`indices` holds 2 in a matrix of 2 × 2"),
        ("indices=np.array([0, -1])", "`indices` holds -1"),
        ("indptr=np.array([0, 3, 2])", "`indptr` does not ascend"),
        ("indptr=np.array([0, 2])", "`indptr` has 2 entries, and 2 + 1 are needed"),
        ("data=np.ones(3)", "2 `indices` and 3 `data`"),
        ("data=np.array([1, np.inf])", "row 1, column 1 (counted from 0) is inf"),
        ("data=np.ones(2, complex)", "complex128"),
        ("shape=np.array([2.0, 2.0])", "int32 or int64"),
        ("shape=np.array([2, 3])", "2 × 3 is not square"),
    ] {
        script(&format!(
            "import numpy as np
members = dict(format=np.array(b'csr'), shape=np.array([2, 2]), indptr=np.array([0, 1, 2]), indices=np.array([0, 1]), \
             data=np.ones(2))
np.savez('a.npz', **{{**members, **dict({change})}})"
        ));
        refuses(&place, &["a.npz", "-o", "x.npy"], &[words]);
    }
}

#[test]
fn the_example_of_a_matrix_gives_what_it_promises() {
    let example = root().join("examples/19-matrix");
    let place = place(&[]);
    let file = |name: &str| example.join(name).to_str().unwrap().to_string();
    let found = report(&place, &[&file("membrane.mtx"), &file("loads.mtx"), "-o", "x.npy"], 0);
    let x = numbers(&place, "x.npy");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(example.join("expected.json")).unwrap()).unwrap();
    assert_eq!(found["matrix"]["n_rows"], expected["n_rows"]);
    assert_eq!(found["n_right_sides"], expected["n_right_sides"]);
    let n = expected["n_rows"].as_u64().unwrap() as usize;
    for (column, promise) in x.chunks(n).zip(expected["largest"].as_array().unwrap()) {
        let largest = column.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let difference = largest - promise["value"].as_f64().unwrap();
        assert!(difference.abs() <= promise["tolerance"].as_f64().unwrap(), "{largest}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_solve_writes_what_it_has_reached_and_replaces_nothing() {
    use std::process::Stdio;
    use std::time::Duration;

    let place = place(&[("l.mtx", laplace(300).into()), ("b.npy", f64s(&[90_000, 2], &[1.0; 180_000]))]);
    let endless = ["--preconditioner", "jacobi", "--tolerance", "1e-300", "--max-iterations", "100000000"];
    let interrupted = || {
        let mut program = femtile();
        program.current_dir(place.folder.path()).args(["solve-matrix", "l.mtx", "b.npy", "-o", "x.npy"]);
        program.args(["--json", "-", "--quiet"]).args(endless);
        let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let found = interrupted();
    assert_eq!((&found["solve"][0]["stop"], &found["output"]), (&"interrupted".into(), &"x.npy".into()));
    assert_eq!(found["solve"].as_array().unwrap().len(), 1);
    let x = numbers(&place, "x.npy");
    assert!(x[..90_000].iter().all(|x| x.is_finite()) && x[90_000..].iter().all(|x| x.is_nan()));
    std::fs::write(place.path("x.npy"), "an earlier result").unwrap();
    let found = interrupted();
    assert_eq!(found["output"], Value::Null);
    assert!(
        found["warnings"][1].as_str().unwrap().contains("x.npy was left as it is"),
        "{}",
        found["warnings"]
    );
    assert_eq!(std::fs::read(place.path("x.npy")).unwrap(), b"an earlier result");
}

#[test]
fn a_solve_takes_the_format_that_a_search_has_found() {
    let place = place(&[]);
    let cache = place.path("cache");
    std::fs::create_dir(&cache).unwrap();
    let solved = |kept: &str| {
        std::fs::write(cache.join("tuned.json"), kept).unwrap();
        let mut program = femtile();
        program.current_dir(place.folder.path()).env("FEMTILE_CACHE", &cache);
        program.args([
            "solve-matrix",
            "a.mtx",
            "-o",
            "x.npy",
            "--device",
            "cpu",
            "--preconditioner",
            "jacobi",
        ]);
        let output = program.args(["--quiet", "--json", "-"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let unknown = solved("[");
    assert_eq!(
        (&unknown["operator"], &unknown["format_reason"]),
        (&"CSR".into(), &"fewer than 200000 rows".into())
    );
    let matrix = femtile::linalg::sparse::matrix_market::read::<f64>(&place.path("a.mtx")).unwrap().matrix;
    let found = |version: u32, device: &str| {
        let (matrix, format) =
            (femtile::linalg::sparse::choice::fingerprint(&matrix), "K1 (unsorted, 8 lanes)");
        json!({"version": version, "tuned": [{"matrix": matrix, "device": device, "format": format, "seconds": 1.0}]})
    };
    let device = unknown["device"].as_str().unwrap();
    let here = format!("{device} on {}", femtile_terminal::processor());
    let taken = solved(&found(1, &here).to_string());
    assert_eq!(taken["operator"], "K1 (unsorted, 8 lanes)");
    assert_eq!(taken["format_reason"], "found by a search");
    for other in [found(2, &here), found(1, &format!("{device} on another processor"))] {
        assert_eq!(solved(&other.to_string())["operator"], "CSR");
    }
}
