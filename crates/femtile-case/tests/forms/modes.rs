//! Modes: eigenvalues in the report, functions in the file, and what is refused.

use std::f64::consts::PI;

use crate::{refusal, run_in, solve};

const DRUM: &str = r#"
[mesh]
generate = { kind = "square", cells = [8, 8] }
[space]
degree = 2
[equation]
capacity = 4
[[boundary]]
where = "all"
dirichlet = 0
[modes]
count = 3
[solver]
device = "cpu"
"#;

const BAR: &str = r#"
[mesh]
generate = { kind = "box", cells = [4, 1, 1], upper = [4, 1, 1], cell = "hexahedron" }
[equation]
kind = "elasticity"
young = 200e9
poisson = 0.3
density = 8000
[modes]
count = 8
[solver]
device = "cpu"
"#;

#[test]
fn the_same_drum_of_two_kinds_has_the_eigenvalues_of_its_capacity() {
    let form = DRUM.replace(
        "capacity = 4",
        "kind = \"form\"\nflux = \"c*grad(u)\"\ncapacity = \"4*c\"\nconstants = { c = 3 }\n[unknown]\nu = {}",
    );
    let (drum, form) = (solve(DRUM), solve(&form));
    assert_eq!((drum.modes.len(), form.modes.len()), (3, 3));
    for (k, (mode, of_form)) in [2.0, 5.0, 5.0].iter().zip(drum.modes.iter().zip(&form.modes)) {
        let exact = k * PI * PI / 4.0;
        assert!((mode.eigenvalue / exact - 1.0).abs() < 2e-3, "{mode:?} {exact}");
        assert!((mode.eigenvalue - of_form.eigenvalue).abs() < 1e-10 * exact, "{mode:?} {of_form:?}");
        let frequency = mode.eigenvalue.sqrt() / (2.0 * PI);
        assert!((mode.frequency.unwrap() - frequency).abs() < 1e-14);
    }
    assert!(drum.citations.iter().any(|key| key == "knyazev2001"));
}

#[test]
fn a_free_bar_has_six_zeros_and_its_functions_are_fields() {
    let folder = tempfile::tempdir().unwrap();
    let report = run_in(folder.path(), BAR).unwrap();
    let zeros = report.modes.iter().take_while(|mode| mode.eigenvalue == 0.0).count();
    assert_eq!(zeros, 6, "{:?}", report.modes);
    assert!((report.modes[6].eigenvalue / report.modes[7].eigenvalue - 1.0).abs() < 1e-9);
    let file = std::fs::read(folder.path().join("out/solution.vtu")).unwrap();
    let file = String::from_utf8_lossy(&file);
    assert!((1..=8).all(|number| file.contains(&format!("Name=\"mode_{number}\""))));
    assert!(!file.contains("Name=\"u\"") && !file.contains("mode_9"));
    let json = report.to_json();
    assert!(json.contains("\"eigenvalue\"") && json.contains("\"frequency\""));
}

#[test]
fn heat_in_a_cylinder_decays_as_its_half_section_says() {
    // A cylinder of radius 1 and height 1 that is cold all around: (j₀₁² + π²)/4 with the first zero of J₀.
    let text = DRUM
        .replace("degree = 2", "degree = 2\naxisymmetric = true")
        .replace("\"all\"", "\"x > 1 - 1e-9 || y < 1e-9 || y > 1 - 1e-9\"");
    let found = solve(&text.replace("count = 3", "count = 1")).modes[0].eigenvalue;
    let expected = (2.404_825_557_695_773_f64.powi(2) + PI * PI) / 4.0;
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} and {expected}");
}

#[test]
fn a_source_that_grows_with_u_lowers_the_rates_of_decay() {
    let shifted = solve(&DRUM.replace("capacity = 4", "capacity = 4\nlambda = -5")).modes;
    for (without, shifted) in solve(DRUM).modes.iter().zip(shifted) {
        assert!((without.eigenvalue - 1.25 - shifted.eigenvalue).abs() < 1e-6, "{without:?} {shifted:?}");
    }
}

#[test]
fn what_has_no_modes_is_refused_at_its_key() {
    let with = |text: &str, old: &str, new: &str| text.replacen(old, new, 1);
    let form =
        with(DRUM, "capacity = 4", "kind = \"form\"\nflux = \"grad(u)\"\ncapacity = 4\n[unknown]\nu = {}");
    for (text, key, told) in [
        (with(DRUM, "count = 3", "count = 0"), "modes.count", "take 1 or more"),
        (with(DRUM, "count = 3", "count = 300"), "modes.count", "take 1 to 225"),
        (with(DRUM, "capacity = 4", "source = 1"), "equation.source", "leave this out"),
        (with(DRUM, "capacity = 4", "capacity = \"x - 0.5\""), "equation.capacity", "not positive"),
        (with(DRUM, "capacity = 4", "kind = \"diffusion\""), "modes", "reaction-diffusion"),
        (with(DRUM, "capacity = 4", "lambda = \"u\""), "equation.lambda", "unknown name `u`"),
        (with(DRUM, "capacity = 4", "density = 4"), "equation.density", "elasticity"),
        (with(DRUM, "dirichlet = 0", "dirichlet = 1"), "boundary[0].dirichlet", "take 0"),
        (with(DRUM, "dirichlet = 0", "neumann = 1"), "boundary[0].neumann", "no load"),
        (
            with(DRUM, "dirichlet = 0", "robin = { coefficient = 1, value = 2 }"),
            "boundary[0].robin.value",
            "take 0",
        ),
        (with(DRUM, "[solver]", "[solver]\nmethod = \"cg\""), "solver.method", "method of their own"),
        (
            with(DRUM, "[solver]", "[solver]\nnonlinear_iterations = 3"),
            "solver.nonlinear_iterations",
            "equation is linear",
        ),
        (
            with(&form, "[solver]", "[solver]\nnonlinear_tolerance = 1e-3"),
            "solver.nonlinear_tolerance",
            "linear",
        ),
        (with(&form, "[solver]", "[[source]]\npoint = [0.5, 0.5]\ntotal = 1\n[solver]"), "source", "no load"),
        (with(&form, "dirichlet = 0", "total = 1"), "boundary[0].total", "no load"),
        (
            with(BAR, "[modes]", "[[boundary]]\nwhere = \"xmin\"\ntotal = [1, 0, 0]\n[modes]"),
            "boundary[0].total",
            "no load",
        ),
        (with(DRUM, "[solver]", "[solver]\nranks = 2"), "solver.ranks", "one rank"),
        (
            with(DRUM, "[solver]", "[output]\nfunctionals = [{ name = \"a\", kind = \"max\" }]\n[solver]"),
            "output.functionals",
            "leave them out",
        ),
        (with(BAR, "[modes]\ncount = 8", ""), "equation.density", "[modes]"),
        (
            with(
                BAR,
                "kind = \"elasticity\"\nyoung = 200e9\npoisson = 0.3\ndensity = 8000",
                "kind = \"convection-diffusion\"\nvelocity = [1, 0, 0]",
            ),
            "modes",
            "symmetric",
        ),
    ] {
        let (found, message) = refusal(&text);
        assert!(found == key && message.contains(told), "{found}: {message}\n{text}");
    }
}
