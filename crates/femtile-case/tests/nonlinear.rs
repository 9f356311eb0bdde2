//! Coefficients that depend on u, from case files: results, reports, refusals.

#[path = "shared/stop_at.rs"]
mod stop_at;

use std::path::Path;

use femtile_case::{Case, Silent, run};
use stop_at::StopAt;

fn case(folder: &Path, text: &str) -> Case {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

/// −∇·((1 + u²)∇u) = f with the solution 1 + x² y.
fn steady(equation: &str, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [16, 16] }}\n\
         [equation]\nsigma = \"1 + u^2\"\n{equation}\n\
         source = \"-(1 + (1 + x^2*y)^2)*2*y - 2*(1 + x^2*y)*(4*x^2*y^2 + x^4)\"\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = \"1 + x^2*y\"\n\
         [solver]\n{solver}\n\
         [output]\nfunctionals = [{{ name = \"error\", kind = \"error_l2\", exact = \"1 + x^2*y\" }}]\n"
    )
}

/// A front of u_t = ∇·(D(u)∇u) + (1 − u) u + f.
fn in_time(time: &str, solver: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [8, 6] }}\n\
         [equation]\nkind = \"diffusion\"\ndiffusion = \"0.02*(1 + u)\"\nreaction = \"1 - u\"\n\
         source = \"0.1*sin(t)\"\ninitial = \"exp(-8*(x^2 + y^2))\"\n\
         [[boundary]]\nwhere = \"xmax\"\nrobin = {{ coefficient = \"1 + t\", value = 0 }}\n\
         [time]\nmethod = \"bdf2\"\nend = 2\n{time}\n\
         [solver]\n{solver}\n\
         [output]\nfunctionals = [{{ name = \"mean\", kind = \"mean\" }}, {{ name = \"max\", kind = \"max\" }}]\n"
    )
}

#[test]
fn newton_and_picard_are_reported_with_their_residuals() {
    let mut errors = Vec::new();
    for (name, most) in [("newton", 8), ("picard", 40)] {
        let folder = tempfile::tempdir().unwrap();
        let solver = format!("nonlinear = \"{name}\"\nnonlinear_tolerance = 1e-10");
        let case = case(folder.path(), &steady("initial = 1", &solver));
        let report = run(&case, &mut Silent).unwrap();
        let nonlinear = report.solve.nonlinear.as_ref().unwrap();
        assert_eq!((nonlinear.method, nonlinear.residuals.len()), (name, nonlinear.iterations + 1));
        assert!(
            nonlinear.iterations <= most && *nonlinear.residuals.last().unwrap() < 1e-10,
            "{nonlinear:?}"
        );
        assert!(report.citations.iter().any(|key| key == "eisenstat1996"));
        let text = std::fs::read_to_string(case.file.output.directory.join("report.json")).unwrap();
        assert!(text.contains(&format!("\"method\": \"{name}\"")), "{text}");
        errors.push(report.functionals["error"]);
    }
    assert!(errors[0] < 1e-3 && (errors[0] - errors[1]).abs() < 1e-9, "{errors:?}");
}

#[test]
fn iterations_that_do_not_converge_are_warned_of_and_results_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), &steady("", "nonlinear_iterations = 1"));
    let report = run(&case, &mut Silent).unwrap();
    let said = report.warnings.join("; ");
    assert!(said.contains("limit of iterations") && said.contains("at unknown"), "{said}");
    assert_eq!(report.solve.stop.name(), "max_iterations");
    assert!(case.file.output.directory.join("solution.vtu").exists());
}

#[test]
fn fronts_grow_to_their_bound_with_either_mass_matrix() {
    let mut means = Vec::new();
    for (time, solver) in [
        ("steps = 40", ""),
        ("steps = 40\nmass = \"lumped\"", ""),
        ("tolerance = 1e-3", ""),
        ("steps = 40", "nonlinear = \"picard\"\npreconditioner = \"amg\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let report = run(&case(folder.path(), &in_time(time, solver)), &mut Silent).unwrap();
        assert_eq!(report.time.as_ref().unwrap().stop, "finished");
        assert!(report.solve.nonlinear.as_ref().unwrap().iterations >= 20);
        assert!(report.functionals["max"] < 1.05, "{:?}", report.functionals);
        means.push(report.functionals["mean"]);
    }
    let (least, most) = means.iter().fold((f64::MAX, 0.0f64), |(a, b), m| (a.min(*m), b.max(*m)));
    assert!(most - least < 0.01 * most && least > 0.1, "{means:?}");
}

#[test]
fn several_ranks_have_the_functionals_of_one() {
    let exact = "tolerance = 1e-12\nnonlinear_tolerance = 1e-11\ndevice = \"cpu\"";
    let quadrilaterals = "cell = \"quadrilateral\", cells";
    let texts = [
        steady("initial = 1", exact),
        steady("initial = 1", exact).replace("cells", quadrilaterals) + "[space]\ndegree = 2\n",
        in_time("steps = 6", exact),
        in_time("steps = 6\nmass = \"lumped\"", exact),
        in_time("steps = 6", exact).replace("cells", quadrilaterals) + "[space]\ndegree = 2\n",
    ];
    for text in texts {
        let on = |ranks: &str| {
            let folder = tempfile::tempdir().unwrap();
            let text = text.replace("[solver]", &format!("[solver]\n{ranks}"));
            run(&case(folder.path(), &text), &mut Silent).unwrap()
        };
        let alone = on("");
        for n in [2, 3] {
            let report = on(&format!("ranks = {n}"));
            assert_eq!(report.ranks.as_ref().unwrap().n_ranks, n);
            assert!(report.solve.nonlinear.is_some());
            for (name, value) in &alone.functionals {
                let found = report.functionals[name];
                assert!(
                    (found - value).abs() <= 1e-8 * value.abs().max(1e-3),
                    "{n} ranks, {name}: {found} {value}"
                );
            }
        }
    }
}

#[test]
fn wrong_settings_and_names_are_refused_with_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: String, words: &[&str]| {
        let said = match Case::parse(&folder.path().join("case.toml"), text.clone()) {
            Err(error) => error.to_string(),
            Ok(_) => run(&case(folder.path(), &text), &mut Silent).unwrap_err().to_string(),
        };
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
    };
    let plain = || steady("", "");
    refused(steady("", "nonlinear = \"secant\""), &["newton", "picard"]);
    refused(steady("", "nonlinear_tolerance = 2"), &["solver.nonlinear_tolerance", "between 0 and 1"]);
    refused(steady("", "nonlinear_iterations = 0"), &["solver.nonlinear_iterations"]);
    refused(steady("", "preconditioner = \"gmg\""), &["solver."]);
    refused(plain().replace("1 + u^2", "1 + u^2 + t"), &["equation.sigma", "t, the time"]);
    refused(
        plain().replace("dirichlet = \"1 + x^2*y\"", "dirichlet = \"u\""),
        &["dirichlet", "u, the solution"],
    );
    // The first iterate belongs to coefficients that depend on u.
    refused(steady("initial = 1", "").replace("1 + u^2", "1 + x^2"), &["equation.initial", "first iterate"]);
    // A conductivity that is negative at the first iterate.
    refused(plain().replace("1 + u^2", "u - 3"), &["equation.sigma", "where u is"]);
    refused(in_time("steps = 10\nmass = \"diagonal\"", ""), &["consistent", "lumped"]);
    refused(in_time("steps = 10", "").replace("1 - u\"", "1 - v\""), &["equation.reaction", "`v`"]);
    let of_degree_2 = in_time("steps = 10\nmass = \"lumped\"", "")
        .replace("cells = [8, 6]", "cells = [8, 6], cell = \"quadrilateral\"");
    refused(of_degree_2 + "[space]\ndegree = 2\n", &["time.mass", "degree 2"]);
    let on_a_grid = in_time("steps = 10\nmass = \"lumped\"", "")
        .replace("kind = \"square\", cells", "kind = \"grid\", nodes")
        .replace("\"bdf2\"", "\"adi\"");
    refused(on_a_grid, &["time.mass"]);
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    for steps in ["steps = 30", "tolerance = 1e-3"] {
        let time = format!("{steps}\ntraces = {{ every = 0.25 }}\ncheckpoint = {{ steps = 7 }}");
        let text = in_time(&time, "preconditioner = \"amg\"");
        let [whole, cut] = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let report = run(&case(whole.path(), &text), &mut Silent).unwrap();
        let mut parts = case(cut.path(), &text);
        let first = run(&parts, &mut StopAt::new(0.8)).unwrap();
        assert_eq!(first.time.as_ref().unwrap().stop, "interrupted");
        parts.file.time.as_mut().unwrap().restart = true;
        let second = run(&parts, &mut Silent).unwrap();
        assert_eq!((second.functionals, second.files), (report.functionals, report.files), "{steps}");
    }
}
