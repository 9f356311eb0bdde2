//! `femtile tridiagonal`: what NumPy's files hold is solved as NumPy means it, and what cannot be is refused by name.

use crate::common;

use std::process::{Command, Output};

use common::{Workplace, f64s, femtile, npy, numbers, numpy, root, text};
use serde_json::Value;

pub fn place(files: &[(&str, Vec<u8>)]) -> Workplace {
    let place = Workplace::new("");
    for (name, bytes) in files {
        std::fs::write(place.path(name), bytes).unwrap();
    }
    place
}

pub fn solve(place: &Workplace, arguments: &[&str]) -> Output {
    femtile().current_dir(place.folder.path()).arg("tridiagonal").args(arguments).output().unwrap()
}

/// The report of a solve that ends with `code`.
pub fn report(place: &Workplace, arguments: &[&str], code: i32) -> Value {
    let output = solve(place, &[arguments, &["--json", "-", "--quiet"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn refuses(files: &[(&str, Vec<u8>)], arguments: &[&str], words: &[&str]) {
    let place = place(files);
    let output = solve(&place, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!place.path("u.npy").exists());
    let said = said.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

const BANDS: [&str; 4] = ["-1", "2", "-1", "d.npy"];

/// −u″ = 1 with three points is solved by 3/2, 2, 3/2.
const SOLUTION: [f64; 3] = [1.5, 2.0, 1.5];

pub fn assert_near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-6), "{found:?}");
}

#[test]
fn systems_lie_along_the_axis_that_is_named() {
    let along_columns = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
    let place = place(&[("d.npy", f64s(&[3, 2], &along_columns))]);
    for axis in ["0", "-2"] {
        let report = report(&place, &[&BANDS[..], &["--axis", axis, "--output", "u.npy"]].concat(), 0);
        assert_eq!((report["n_systems"].as_u64(), report["length"].as_u64()), (Some(2), Some(3)));
        assert_eq!(
            (report["algorithm"].as_str(), report["precision"].as_str()),
            (Some("thomas"), Some("f64"))
        );
        assert!(report["gb_per_s"].is_number() && report["timings_s"]["solve"].is_number());
        assert_near(&numbers(&place, "u.npy"), &[1.5, 3.0, 2.0, 4.0, 1.5, 3.0]);
    }
}

#[test]
fn vectors_lie_along_the_axis_and_integers_are_numbers() {
    let along_columns: Vec<u8> = [1_i32, 2, 1, 2, 1, 2].iter().flat_map(|n| n.to_le_bytes()).collect();
    let place = place(&[
        ("d.npy", npy("<i4", false, &[3, 2], &along_columns)),
        ("a.npy", npy("|i1", false, &[3], &[0xff; 3])),
        ("b.npy", npy("<f4", false, &[3], &2.0_f32.to_le_bytes().repeat(3))),
    ]);
    for more in [&[][..], &["--factored"]] {
        let arguments = ["a.npy", "b.npy", "a.npy", "d.npy", "--axis", "0", "-o", "u.npy"];
        let report = report(&place, &[&arguments[..], more].concat(), 0);
        assert_eq!((&report["precision"], &report["n_systems"]), (&"f64".into(), &2.into()));
        assert_near(&numbers(&place, "u.npy"), &[1.5, 3.0, 2.0, 4.0, 1.5, 3.0]);
    }
}

#[test]
fn orders_precisions_and_byte_orders_give_the_same_solution() {
    let fortran: Vec<u8> = [1.0_f32, 2.0, 1.0, 2.0, 1.0, 2.0].iter().flat_map(|v| v.to_be_bytes()).collect();
    // In Fortran's order the first axis, of two systems, is the contiguous one.
    let place = place(&[("d.npy", npy(">f4", true, &[2, 3], &fortran))]);
    let report = report(&place, &[&BANDS[..], &["--output", "u.npy"]].concat(), 0);
    assert_eq!(report["precision"], "f32");
    assert_near(&numbers(&place, "u.npy"), &[1.5, 3.0, 2.0, 4.0, 1.5, 3.0]);
    let written = std::fs::read(place.path("u.npy")).unwrap();
    assert!(text(&written[..80]).contains("'fortran_order': True, 'shape': (2, 3)"));
    let output = solve(&place, &[&BANDS[..], &["--output", "u.npy", "--precision", "f64"]].concat());
    assert!(text(&output.stdout).contains("(2, 3), f64"), "{}", text(&output.stdout));
}

#[test]
fn one_matrix_serves_all_systems_and_one_right_side_all_matrices() {
    let band = |value: f64| f64s(&[1, 3], &[value; 3]);
    let many = |value: f64| f64s(&[2, 3], &[value; 6]);
    let (one, two) = (f64s(&[3], &[1.0; 3]), f64s(&[2, 3], &[1.0; 6]));
    for (a, b, d) in [(band(-1.0), band(2.0), two), (band(-1.0), many(2.0), one)] {
        let place = place(&[("a.npy", a), ("b.npy", b), ("d.npy", d)]);
        report(&place, &["a.npy", "b.npy", "-1", "d.npy", "-o", "u.npy"], 0);
        assert_near(&numbers(&place, "u.npy"), &[SOLUTION, SOLUTION].concat());
    }
}

#[test]
fn short_systems_and_none_are_solved() {
    for (shape, expected) in [(&[2, 0][..], &[][..]), (&[0, 3], &[]), (&[2, 1], &[0.5; 2]), (&[2], &[1.0; 2])]
    {
        let n: usize = shape.iter().product();
        let place = place(&[("d.npy", f64s(shape, &vec![1.0; n]))]);
        report(&place, &[&BANDS[..], &["--output", "u.npy"]].concat(), 0);
        assert_near(&numbers(&place, "u.npy"), expected);
    }
}

#[test]
fn cyclic_systems_couple_their_ends() {
    let place = place(&[("d.npy", f64s(&[4], &[1.0, 2.0, 3.0, 4.0]))]);
    report(&place, &["-1", "4", "-1", "d.npy", "--periodic", "-o", "u.npy"], 0);
    let u = numbers(&place, "u.npy");
    for i in 0..4 {
        let row = 4.0 * u[i] - u[(i + 3) % 4] - u[(i + 1) % 4];
        assert!((row - (i + 1) as f64).abs() < 1e-12);
    }
}

#[test]
fn systems_that_fail_are_named_and_the_others_written() {
    let mut b = [2.0; 9];
    b[3] = 0.0;
    let files = [("b.npy", f64s(&[3, 3], &b)), ("d.npy", f64s(&[3, 3], &[1.0; 9]))];
    let place = place(&files);
    let arguments = ["-1", "b.npy", "-1", "d.npy", "-o", "u.npy"];
    let found = report(&place, &arguments, 1);
    assert_eq!((found["n_failed"].as_u64(), &found["failed"][0][0]), (Some(1), &1.into()));
    assert_eq!(found["first_failure"], serde_json::json!([1, 0]));
    let u = numbers(&place, "u.npy");
    assert_near(&[&u[..3], &u[6..]].concat(), &[SOLUTION, SOLUTION].concat());
    assert!(u[3..6].iter().all(|value| value.is_nan()));
    let said = text(&solve(&place, &arguments).stdout);
    assert!(
        said.contains("failed    1") && said.contains("u[1, :]") && said.contains("--pivoting"),
        "{said}"
    );
    report(&place, &[&arguments[..], &["--pivoting"]].concat(), 0);
    assert!(numbers(&place, "u.npy").iter().all(|value| value.is_finite()));
}

#[test]
fn rows_that_are_not_dominant_are_found_without_solving() {
    let mut b = [2.0; 6];
    let b_file = |b: &[f64]| ("b.npy", f64s(&[2, 3], b));
    let d = ("d.npy", f64s(&[2, 3], &[1.0; 6]));
    let sound = place(&[b_file(&b), d.clone()]);
    let found = report(&sound, &["-1", "b.npy", "-1", "d.npy", "--check"], 0);
    assert_eq!((&found["is_dominant"], found["least_margin"].as_f64()), (&true.into(), Some(0.0)));
    b[4] = 1.5;
    let weak = place(&[b_file(&b), d]);
    let output = solve(&weak, &["-1", "b.npy", "-1", "d.npy", "--check"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("1 of 6 rows") && said.contains("[1, 1]") && said.contains("pivoting"), "{said}");
}

#[test]
fn entries_that_are_not_finite_are_named() {
    let place = place(&[("d.npy", f64s(&[2, 3], &[1.0, 1.0, 1.0, 1.0, f64::INFINITY, 1.0]))]);
    let found = report(&place, &[&BANDS[..], &["-o", "u.npz"]].concat(), 1);
    assert_eq!(found["warnings"], serde_json::json!(["rhs[1, 1] is inf"]));
    assert_eq!(found["n_failed"], 1);
    assert!(place.path("u.npz").is_file());
}

#[test]
fn shapes_without_entries_that_would_take_memory_are_refused() {
    for (shape, words) in [
        (&[0, usize::MAX][..], "[0, 18446744073709551615] is too large"),
        (&[0, 40_000_000_000], "(0, 40000000000) has no entries"),
    ] {
        let arguments = ["1", "3", "1", "d.npy", "--axis", "0", "-o", "u.npy"];
        refuses(&[("d.npy", f64s(shape, &[]))], &arguments, &[words]);
    }
}

#[test]
fn a_batch_larger_than_any_memory_is_refused_with_figures_before_it_is_read() {
    // Both have eight megabytes, and a product of eight terabytes.
    let ones = vec![1.0; 1_000_000];
    let files = [("d.npy", f64s(&[1_000_000, 1], &ones)), ("b.npy", f64s(&[1, 1_000_000], &ones))];
    let words = ["arrays 8000.0 GB", "solution 8000.0 GB", "limit of this machine or its control group is"];
    refuses(&files, &["-1", "b.npy", "-1", "d.npy", "--output", "u.npy"], &words);
    refuses(&files, &["-1", "b.npy", "-1", "d.npy", "--check"], &["arrays 8000.0 GB", "solution 0.0 GB"]);
}

#[test]
fn shapes_that_disagree_are_all_shown() {
    let files = [("b.npy", f64s(&[2, 3], &[2.0; 6])), ("d.npy", f64s(&[2, 4], &[1.0; 8]))];
    refuses(
        &files,
        &["-1", "b.npy", "-1", "d.npy", "-o", "u.npy"],
        &["diagonal (2, 3)", "rhs (2, 4)", "disagree"],
    );
}

#[test]
fn numbers_of_other_types_are_refused_by_name() {
    for (descr, name) in [("<f2", "float16"), ("<c8", "complex64")] {
        let files = [("d.npy", npy(descr, false, &[3], &[0; 24]))];
        refuses(&files, &[&BANDS[..], &["-o", "u.npy"]].concat(), &[name, "d.npy"]);
    }
}

#[test]
fn bad_arguments_say_what_to_do() {
    let d = ("d.npy", f64s(&[2, 3], &[1.0; 6]));
    for (more, words) in [
        (&["--axis", "2", "-o", "u.npy"][..], &["--axis 2", "(2, 3)", "-2 to 1"][..]),
        (&["--algorithm", "magic", "-o", "u.npy"], &["`magic`", "thomas-shuffle"]),
        (&["--algorithm", "thomas-grid", "--device", "cpu", "-o", "u.npy"], &["`thomas-grid`"]),
        (&["--device", "gpu", "-o", "u.npy"], &["`gpu`"]),
        (&["-o", "u.txt"], &["u.txt", ".npz"]),
        (&["-o", "no/such/u.npy"], &["--output", "no/such"]),
        (&["-o", "u.npy", "--json", "no/such/report.json"], &["--json", "no/such"]),
    ] {
        refuses(std::slice::from_ref(&d), &[&BANDS[..], more].concat(), words);
    }
    refuses(&[d], &["1", "d.npy", "-o", "u.npy"], &["2 files", "lower, diagonal, upper, rhs"]);
    refuses(&[], &["no.npz", "-o", "u.npy"], &["no.npz"]);
    refuses(&[("d.npy", vec![0; 50])], &[&BANDS[..], &["-o", "u.npy"]].concat(), &["no .npy file"]);
    refuses(&[("s.npz", vec![0; 50])], &["s.npz", "-o", "u.npy"], &["no .npz file"]);
    let five = f64s(&[1, 1, 1, 1, 3], &[1.0; 3]);
    refuses(&[("d.npy", five)], &[&BANDS[..], &["-o", "u.npy"]].concat(), &["5 dimensions"]);
    refuses(&[("d.npy", f64s(&[], &[1.0]))], &[&BANDS[..], &["-o", "u.npy"]].concat(), &["without an axis"]);
}

#[test]
fn a_gpu_that_is_not_there_is_device_trouble() {
    let place = place(&[("d.npy", f64s(&[3], &[1.0; 3]))]);
    let output = solve(&place, &[&BANDS[..], &["--device", "cuda:99", "-o", "u.npy"]].concat());
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("cuda:99"), "{}", text(&output.stderr));
}

#[test]
fn a_gpu_gives_what_the_cpu_gives() {
    let gpus = femtile().args(["devices", "--json"]).output().unwrap();
    if !text(&gpus.stdout).contains("compute_capability") {
        eprintln!("SKIPPED: femtile tridiagonal on a GPU: there is none");
        return;
    }
    let d: Vec<f64> = (0..6 * 57).map(|i| f64::from(i % 17)).collect();
    let place = place(&[("d.npy", f64s(&[6, 57], &d))]);
    for axis in ["0", "1"] {
        let solved = |device: &str| {
            let arguments = ["--axis", axis, "--device", device, "-o", "u.npy"];
            report(&place, &[&["-1", "3", "-1", "d.npy"], &arguments[..]].concat(), 0);
            numbers(&place, "u.npy")
        };
        assert_near(&solved("cuda"), &solved("cpu"));
    }
}

#[test]
fn numpy_reads_what_is_written_and_is_understood() {
    let Some(python) = numpy() else {
        eprintln!("SKIPPED: NumPy's archives: no python3 with numpy");
        return;
    };
    let place = place(&[]);
    let run = |script: &str| {
        let output =
            Command::new(&python).current_dir(place.folder.path()).args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let made = "import numpy as np
r = np.random.default_rng(4)
a, c, d = (np.asfortranarray(r.uniform(-1, 1, (5, 7, 3))) for _ in range(3))
np.SAVE('s.npz', a=a, b=np.full((7, 1), 4.0), c=c, d=d)";
    let checked = "import numpy as np
s, f = np.load('s.npz'), np.load('u.npz')
u, (a, b, c, d) = f['u'], np.broadcast_arrays(*(s[k] for k in 'abcd'))
r = b * u - d
r[:, 1:] += a[:, 1:] * u[:, :-1]
r[:, :-1] += c[:, :-1] * u[:, 1:]
assert abs(r).max() < 1e-14 and f['failed'].shape == (5, 3) and not f['failed'].any()";
    for save in ["savez", "savez_compressed"] {
        run(&made.replace("SAVE", save));
        report(&place, &["s.npz", "--axis", "1", "--output", "u.npz"], 0);
        run(checked);
    }
    run("import numpy as np; np.savez('s.npz', a=-1.0, lower=-1.0, x=3)");
    let said = text(&solve(&place, &["s.npz", "-o", "u.npy"]).stderr);
    assert!(said.contains("`lower`") && said.contains("`a`"), "{said}");
    run("import numpy as np; np.savez('s.npz', a=-1.0, x=3)");
    let said = text(&solve(&place, &["s.npz", "-o", "u.npy"]).stderr);
    assert!(said.contains("no member `diagonal`") && said.contains("a, x"), "{said}");
}

#[test]
fn the_example_gives_what_it_promises() {
    let example = root().join("examples/10-tridiagonal");
    let place = place(&[]);
    let systems = example.join("systems.npz");
    let found = report(&place, &[systems.to_str().unwrap(), "--output", "u.npy"], 0);
    assert_eq!(found["shape"], serde_json::json!([5, 63]));
    let u = numbers(&place, "u.npy");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(example.join("expected.json")).unwrap()).unwrap();
    for entry in expected["u"].as_array().unwrap() {
        let [system, row] = [0, 1].map(|k| entry["index"][k].as_u64().unwrap() as usize);
        let difference = u[63 * system + row] - entry["value"].as_f64().unwrap();
        assert!(difference.abs() <= expected["tolerance"].as_f64().unwrap(), "{entry}: {difference}");
    }
}
