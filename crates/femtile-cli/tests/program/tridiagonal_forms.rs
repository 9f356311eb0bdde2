//! `femtile tridiagonal --block` and `--factored`.

use std::process::Command;

use crate::common::{f64s, npy, numbers, numpy, text};
use crate::tridiagonal::{assert_near, place, refuses, report, solve};

/// Blocks of 2 × 2: entries of 2 systems of 3 rows that no two places share.
fn bands() -> [Vec<f64>; 3] {
    let entry = |i: usize, k: usize| 0.1 * ((i * 7 + k * 3) % 11) as f64 - 0.5;
    let [lower, mut diagonal, upper] =
        [0, 1, 2].map(|k| (0..2 * 3 * 4).map(|i| entry(i, k)).collect::<Vec<f64>>());
    diagonal.iter_mut().enumerate().filter(|(i, _)| [0, 3].contains(&(i % 4))).for_each(|(_, b)| *b += 4.0);
    [lower, diagonal, upper]
}

/// The right side of u = 1, 2, 3, … by plain multiplication.
fn right_side([lower, diagonal, upper]: &[Vec<f64>; 3]) -> Vec<f64> {
    let u = |p: usize, n: usize, j: usize| (1 + j + 2 * (n + 3 * p)) as f64;
    let mut rhs = Vec::new();
    for (p, n, i) in (0..12).map(|at| (at / 6, at / 2 % 3, at % 2)) {
        let at = |j: usize| ((p * 3 + n) * 2 + i) * 2 + j;
        rhs.push(
            (0..2)
                .map(|j| {
                    let below = if n > 0 { lower[at(j)] * u(p, n - 1, j) } else { 0.0 };
                    let above = if n < 2 { upper[at(j)] * u(p, n + 1, j) } else { 0.0 };
                    below + diagonal[at(j)] * u(p, n, j) + above
                })
                .sum(),
        );
    }
    rhs
}

const FILES: [&str; 5] = ["a.npy", "b.npy", "c.npy", "d.npy", "--block"];

fn files(bands: &[Vec<f64>; 3], rhs: &[f64], outer: &[usize]) -> Vec<(&'static str, Vec<u8>)> {
    let [matrix, vector] = [[outer, &[2, 2]].concat(), [outer, &[2]].concat()];
    let [a, b, c] = bands.each_ref().map(|band| f64s(&matrix, band));
    vec![("a.npy", a), ("b.npy", b), ("c.npy", c), ("d.npy", f64s(&vector, rhs))]
}

#[test]
fn blocks_of_every_system_are_solved() {
    let bands = bands();
    let expected: Vec<f64> = (1..=12).map(f64::from).collect();
    for outer in [&[2, 3][..], &[2, 1, 3]] {
        let place = place(&files(&bands, &right_side(&bands), outer));
        for algorithm in ["auto", "thomas"] {
            let options = ["--output", "u.npy", "--device", "cpu", "--algorithm", algorithm];
            let found = report(&place, &[&FILES[..], &options].concat(), 0);
            assert_eq!(
                (&found["block"], &found["length"], &found["n_systems"]),
                (&2.into(), &3.into(), &2.into())
            );
            assert_eq!(found["axis"], outer.len() - 1);
            assert_near(&numbers(&place, "u.npy"), &expected);
        }
        let said = text(&solve(&place, &[&FILES[..], &["-o", "u.npy"]].concat()).stdout);
        assert!(said.contains("2 of length 3 in blocks of 2"), "{said}");
    }
}

#[test]
fn one_block_matrix_serves_all_systems() {
    let all = bands();
    let one = all.each_ref().map(|band| band[..12].to_vec());
    let repeated = one.each_ref().map(|band| [&band[..], band].concat());
    let rhs = right_side(&repeated);
    let mut given = files(&one, &[], &[3]);
    given[3] = ("d.npy", f64s(&[2, 3, 2], &rhs));
    let place = place(&given);
    report(&place, &[&FILES[..], &["-o", "u.npy"]].concat(), 0);
    assert_near(&numbers(&place, "u.npy"), &(1..=12).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn block_systems_that_fail_are_named_and_the_others_written() {
    let mut bands = bands();
    let rhs = right_side(&bands);
    // The first block of the second system is singular; entries that are not read need not be finite.
    bands[1][12..16].fill(0.0);
    bands[0][0] = f64::NAN;
    let place = place(&files(&bands, &rhs, &[2, 3]));
    let found = report(&place, &[&FILES[..], &["-o", "u.npy"]].concat(), 1);
    assert_eq!((&found["n_failed"], &found["failed"]), (&1.into(), &serde_json::json!([[1, null, null]])));
    assert_eq!((&found["first_failure"][0], &found["warnings"]), (&1.into(), &serde_json::json!([])));
    let u = numbers(&place, "u.npy");
    assert_near(&u[..6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(u[6..].iter().all(|value| value.is_nan()), "{u:?}");
    bands[2][3] = f64::INFINITY;
    let place = crate::tridiagonal::place(&files(&bands, &rhs, &[2, 3]));
    let found = report(&place, &[&FILES[..], &["-o", "u.npy"]].concat(), 1);
    assert_eq!(found["warnings"], serde_json::json!(["upper[0, 0, 1, 1] is inf"]));
}

#[test]
fn blocks_that_do_not_fit_are_refused_with_their_shapes() {
    let bands = bands();
    let rhs = right_side(&bands);
    let sound = files(&bands, &rhs, &[2, 3]);
    let with = |number: usize, file: Vec<u8>| {
        let mut files = sound.clone();
        files[number].1 = file;
        files
    };
    let arguments = [&FILES[..], &["-o", "u.npy"]].concat();
    for (number, file, words) in [
        (0, f64s(&[2, 3, 3, 3], &[1.0; 54]), &["blocks disagree", "lower (2, 3, 3, 3)", "(…, N, M, M)"][..]),
        (3, f64s(&[2, 3], &[1.0; 6]), &["blocks disagree", "rhs (2, 3)"]),
        (3, f64s(&[2], &[1.0; 2]), &["axis of rows", "rhs (2,)"]),
        (3, f64s(&[], &[1.0]), &["right side has no axes"]),
        (3, f64s(&[4, 3, 2], &[1.0; 24]), &["shapes disagree", "rhs (4, 3, 2)"]),
        (1, npy("<f2", false, &[1], &[0; 2]), &["float16", "b.npy"]),
    ] {
        refuses(&with(number, file), &arguments, words);
    }
    let one = [f64s(&[2, 1, 1], &[4.0; 2]), f64s(&[2, 1], &[1.0; 2])];
    let names = ["a.npy", "b.npy", "c.npy"].map(|name| (name, one[0].clone()));
    refuses(
        &[&names[..], &[("d.npy", one[1].clone())]].concat(),
        &arguments,
        &["blocks of 1 rows", "2 to 10"],
    );
    for other in ["--periodic", "--factored", "--check"] {
        let arguments = if other == "--check" { FILES.to_vec() } else { arguments.clone() };
        refuses(&sound, &[&arguments[..], &[other]].concat(), &["--block", other]);
    }
    refuses(&sound, &[&arguments[..], &["--axis", "0"]].concat(), &["--block", "--axis"]);
    refuses(&sound, &[&arguments[..], &["--algorithm", "hybrid", "--device", "cpu"]].concat(), &["hybrid"]);
}

#[test]
fn one_matrix_is_eliminated_once_for_all_right_sides() {
    let d: Vec<f64> = (0..3 * 5).map(|i| f64::from(i % 7) - 2.0).collect();
    let place = place(&[("d.npy", f64s(&[3, 5], &d)), ("b.npy", f64s(&[5], &[3.0, 4.0, 5.0, 4.0, 3.0]))]);
    let across = crate::tridiagonal::place(&[
        ("d.npy", f64s(&[5, 3], &d)),
        ("b.npy", f64s(&[5, 1], &[3.0, 4.0, 5.0, 4.0, 3.0])),
    ]);
    for (place, axis) in [(&place, "1"), (&across, "0")] {
        for ends in [&[][..], &["--periodic"]] {
            let arguments = [&["-1", "b.npy", "-0.5", "d.npy", "--axis", axis, "-o", "u.npy"], ends].concat();
            report(place, &arguments, 0);
            let expected = numbers(place, "u.npy");
            let found = report(place, &[&arguments[..], &["--factored"]].concat(), 0);
            assert_eq!((&found["algorithm"], &found["n_systems"]), (&"factored".into(), &3.into()));
            assert!(found["timings_s"]["factor"].is_number() && found.get("block").is_none(), "{found}");
            let solved = numbers(place, "u.npy");
            assert!(
                solved.iter().zip(&expected).all(|(u, v)| (u - v).abs() < 1e-13),
                "{solved:?} {expected:?}"
            );
        }
    }
}

#[test]
fn factored_systems_whose_right_side_is_not_finite_fail_alone() {
    let place = place(&[("d.npy", f64s(&[2, 3], &[1.0, 1.0, 1.0, 1.0, f64::INFINITY, 1.0]))]);
    let arguments = ["-1", "2", "-1", "d.npy", "--factored", "-o", "u.npy"];
    let found = report(&place, &arguments, 1);
    assert_eq!((&found["n_failed"], &found["failed"]), (&1.into(), &serde_json::json!([[1, null]])));
    assert_eq!(found["warnings"], serde_json::json!(["rhs[1, 1] is inf"]));
    let u = numbers(&place, "u.npy");
    assert_near(&u[..3], &[1.5, 2.0, 1.5]);
    assert!(u[3..].iter().all(|value| value.is_nan()), "{u:?}");
    let said = text(&solve(&place, &arguments).stdout);
    assert!(said.contains("failed    1 systems") && said.contains("u[1, :]"), "{said}");
}

#[test]
fn matrices_that_are_not_one_or_not_sound_are_refused() {
    let many = [("b.npy", f64s(&[2, 3], &[3.0; 6])), ("d.npy", f64s(&[2, 3], &[1.0; 6]))];
    let arguments = ["-1", "b.npy", "-1", "d.npy", "--factored", "-o", "u.npy"];
    refuses(&many, &arguments, &["--factored", "bands differ from system to system", "axis 0 of (2, 3)"]);
    let zero = [("b.npy", f64s(&[3], &[0.0; 3])), ("d.npy", f64s(&[2, 3], &[1.0; 6]))];
    refuses(&zero, &arguments, &["diagonal", "pivot of row 0 is zero"]);
    for other in [&["--pivoting"][..], &["--algorithm", "thomas"]] {
        refuses(&zero, &[&arguments[..], other].concat(), &["--factored", other[0]]);
    }
}

#[test]
fn short_systems_of_blocks_and_of_one_matrix_are_solved() {
    let empty = files(&[vec![], vec![], vec![]], &[], &[2, 0]);
    let place = place(&empty);
    let found = report(&place, &[&FILES[..], &["-o", "u.npy"]].concat(), 0);
    assert_eq!((&found["n_systems"], &found["length"]), (&2.into(), &0.into()));
    let place = crate::tridiagonal::place(&[("d.npy", f64s(&[2, 0], &[]))]);
    report(&place, &["-1", "2", "-1", "d.npy", "--factored", "-o", "u.npy"], 0);
    assert!(numbers(&place, "u.npy").is_empty());
}

#[test]
fn numpy_archives_of_blocks_are_solved() {
    let Some(python) = numpy() else {
        eprintln!("SKIPPED: NumPy's archives of blocks: no python3 with numpy");
        return;
    };
    let place = place(&[]);
    let run = |script: &str| {
        let output =
            Command::new(&python).current_dir(place.folder.path()).args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    run("import numpy as np
r = np.random.default_rng(5)
a, b, c = (np.asfortranarray(r.uniform(-1, 1, (4, 6, 3, 3))) for _ in range(3))
np.savez('s.npz', lower=a, diagonal=b + 8 * np.eye(3), upper=c[0], rhs=r.uniform(-1, 1, (4, 6, 3)))");
    report(&place, &["s.npz", "--block", "-o", "u.npz"], 0);
    run("import numpy as np
s, f = np.load('s.npz'), np.load('u.npz')
u, a, b, c = f['u'], s['lower'], s['diagonal'], s['upper']
r = np.einsum('pnij,pnj->pni', b, u) - s['rhs']
r[:, 1:] += np.einsum('pnij,pnj->pni', a[:, 1:], u[:, :-1])
r[:, :-1] += np.einsum('nij,pnj->pni', c[:-1], u[:, 1:])
assert abs(r).max() < 1e-13 and f['failed'].shape == (4,) and not f['failed'].any()");
}
