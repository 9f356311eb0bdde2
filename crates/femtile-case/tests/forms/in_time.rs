//! Equations of the case in time: `kind = "form"` with `[time]`.

use std::path::Path;

use femtile_case::file::{CaseFile, Entry, OfUnknowns};
use femtile_case::{Case, Report, Silent, run, verify};

use crate::stop_at::StopAt;
use crate::{refusal, solve};

/// A case on a square with an equation and conditions, steps and functionals.
fn on(mesh: &str, degree: u32, equation: &str, time: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n[space]\ndegree = {degree}\n{equation}\n[time]\n{time}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n"
    )
}

const SQUARE: &str = "kind = \"square\", cells = [6, 5]";
const CUBE: &str = "kind = \"box\", cells = [3, 2, 2], cell = \"hexahedron\"";
const SCHEMES: [&str; 4] = ["implicit-euler", "bdf2", "sdirk2", "crank-nicolson"];

#[test]
fn heat_as_text_is_the_built_in_equation() {
    let conditions = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"sin(t)*y\"\n";
    let built_in = format!(
        "[equation]\nkind = \"diffusion\"\ndiffusion = \"1 + x\"\ncapacity = \"2 + y\"\nreaction = -0.5\nsource = \"cos(3*t)*x\"\ninitial = \"x*y\"\n\
         {conditions}[[boundary]]\nwhere = \"xmax\"\nrobin = {{ coefficient = 2, value = \"y + t\" }}\n[[boundary]]\nwhere = \"ymax\"\nneumann = 0.25\n"
    );
    let text = format!(
        "[unknown]\nT = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ k = \"1 + x\", q = \"cos(3*t)\" }}\n\
         flux = \"k*grad(T)\"\nsource = \"q*x - 0.5*T\"\ncapacity = \"2 + y\"\ninitial = \"x*y\"\n\
         {conditions}[[boundary]]\nwhere = \"xmax\"\nflux = \"2*(y + t - T)\"\n[[boundary]]\nwhere = \"ymax\"\nflux = \"0.25\"\n"
    );
    let functionals = "{ name = \"mean\", kind = \"mean\" }, { name = \"norm\", kind = \"l2_norm\" }";
    // On triangles the products of three polynomials have other quadrature rules.
    for (mesh, degree, capacity) in [(SQUARE, 1, "2"), (CUBE, 2, "2 + y")] {
        let [built_in, text] = [&built_in, &text].map(|equation| equation.replace("2 + y", capacity));
        for method in SCHEMES {
            let time = format!("method = \"{method}\"\nend = 0.7\nsteps = 9");
            let [expected, found] =
                [&built_in, &text].map(|equation| solve(&on(mesh, degree, equation, &time, functionals)));
            for (name, expected) in &expected.functionals {
                let found = found.functionals[name];
                assert!((found / expected - 1.0).abs() < 1e-10, "{mesh}, {method}: {found} and {expected}");
            }
        }
    }
}

#[test]
fn the_rate_in_a_source_is_a_capacity() {
    let of = |terms: &str| {
        let equation = format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n{terms}\ninitial = \"x\"\n"
        );
        let time = "end = 0.2\nsteps = 5";
        solve(&on(SQUARE, 1, &equation, time, "{ name = \"norm\", kind = \"l2_norm\" }")).functionals["norm"]
    };
    let expected = of("source = \"x*t\"\ncapacity = \"1 + u^2\"");
    let found = of("source = \"x*t - (1 + u^2)*u_t\"");
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} and {expected}");
}

/// The error at the end of u = (1 + t²)(1 + x) with a conductivity and a capacity that depend on u, linear in space.
fn error(method: &str, steps: usize) -> f64 {
    // u_t (1 + u²) − ∂x((1 + u) ∂x u) with ∂x u = a = 1 + t² is u_t (1 + u²) − a².
    let equation = "[unknown]\nu = { degree = 2 }\n[equation]\nkind = \"form\"\ndefine = \"a = 1 + t^2; w = a*(1 + x)\"\nflux = \"(1 + u)*grad(u)\"\n\
         source = \"2*t*(1 + x)*(1 + w^2) - a^2\"\ncapacity = \"1 + u^2\"\ninitial = \"1 + x\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"1 + t^2\"\n[[boundary]]\nwhere = \"xmax\"\nflux = \"(1 + w)*a\"\n";
    let time = format!("method = \"{method}\"\nend = 1\nsteps = {steps}");
    let functionals = "{ name = \"error\", kind = \"error_l2\", exact = \"(1 + t^2)*(1 + x)\" }";
    let text = on("kind = \"square\", cells = [4, 2]", 2, equation, &time, functionals)
        + "nonlinear_tolerance = 1e-12\n";
    solve(&text).functionals["error"]
}

#[test]
fn schemes_have_their_order_for_nonlinear_forms() {
    for (method, order) in [("implicit-euler", 1.0), ("sdirk2", 2.0)] {
        let [coarse, fine] = [20, 40].map(|steps| error(method, steps));
        let found = (coarse / fine).log2();
        assert!((found - order).abs() < 0.15, "{method}: {coarse}, {fine}, order {found}");
    }
    // Quadratic polynomials in time are exact for BDF2 after its first step.
    assert!(error("bdf2", 20) < 1e-3);
}

#[test]
fn bdf2_has_order_two_for_nonlinear_forms() {
    let error = |steps: usize| {
        let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + u^2)*grad(u)\"\n\
             source = \"cos(t) + sin(t)^3 - u^3\"\ncapacity = \"1\"\ninitial = 0\n";
        // Of u' = cos t + sin³ t − u³ the solution is sin t.
        let time = format!("end = 1\nsteps = {steps}");
        let exact = "{ name = \"error\", kind = \"error_l2\", exact = \"sin(t)\" }";
        let text = on(SQUARE, 1, equation, &time, exact) + "nonlinear_tolerance = 1e-12\n";
        solve(&text).functionals["error"]
    };
    let [coarse, fine] = [40, 80].map(error);
    let order = (coarse / fine).log2();
    assert!((order - 2.0).abs() < 0.1, "{coarse}, {fine}, order {order}");
}

#[test]
fn steps_by_a_tolerance_keep_it() {
    for tolerance in [1e-2, 1e-4] {
        let equation = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nflux = \"0.1*grad(u)\"\n\
             source = \"[-u[0]^2*u[1], u[0]^2*u[1] - 3*(u[1] - sin(2*t))]\"\ncapacity = 1\ninitial = [1, 0.5]\n";
        let exactly = |time: &str| {
            let text = on(SQUARE, 1, equation, time, "{ name = \"mean\", kind = \"mean\" }");
            solve(&(text + "nonlinear_tolerance = 1e-11\n"))
        };
        let expected = exactly("method = \"sdirk2\"\nend = 1.5\nsteps = 2000");
        let found = exactly(&format!("end = 1.5\ntolerance = {tolerance}"));
        for component in ["mean[0]", "mean[1]"] {
            let error = (found.functionals[component] - expected.functionals[component]).abs();
            assert!(error < tolerance, "{component}: {error} beyond {tolerance}");
        }
        assert!(found.time.unwrap().steps < 1000);
    }
}

#[test]
fn a_jump_at_the_end_leaves_a_rate() {
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\ninitial = 1\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"if(t < 1, 1, 2)\"\n";
    for method in ["bdf2", "sdirk2", "implicit-euler"] {
        let time = format!("method = \"{method}\"\nend = 1\ntolerance = 1e-3\ntraces = {{ every = 0.25 }}");
        let numbers =
            "{ name = \"flux\", kind = \"flux\", where = \"xmin\" }, { name = \"mean\", kind = \"mean\" }";
        let folder = tempfile::tempdir().unwrap();
        let case = case(folder.path(), &on(SQUARE, 1, equation, &time, numbers));
        let report = run(&case, &mut Silent).unwrap();
        let rows = traces(&case);
        assert_eq!(report.time.unwrap().stop, "finished", "{method}");
        // What flows in during the last step heats the cells at the side.
        let flux = report.functionals["flux"];
        assert!(flux > 1.0 && report.functionals["mean"] > 1.0, "{method}: {flux}");
        assert!(rows.len() == 5 && rows[4] == [1.0, flux, report.functionals["mean"]], "{method}: {rows:?}");
    }
}

#[test]
fn a_component_without_a_rate_follows_the_others() {
    // 0 = u₁ − u₀², u₀' = −u₁ with u₀ = 1/(1 + t).
    for method in ["implicit-euler", "bdf2", "sdirk2"] {
        let equation = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nsource = \"[-u[1], u[0]^2 - u[1]]\"\n\
             capacity = [1, 0]\ninitial = [1, 1]\n";
        let time = format!("method = \"{method}\"\nend = 1\nsteps = 50");
        let found =
            solve(&on(SQUARE, 1, equation, &time, "{ name = \"mean\", kind = \"mean\" }")).functionals;
        let (bound, [u, w]) = (
            if method == "implicit-euler" { 5e-3 } else { 1e-4 },
            [0, 1].map(|i| found[&format!("mean[{i}]")]),
        );
        assert!((u - 0.5).abs() < bound && (w - u * u).abs() < 1e-8, "{method}: {u}, {w}");
    }
}

#[test]
fn a_capacity_that_is_a_matrix_couples_rates() {
    // C u' = C (1, −2) has the solution t (1, −2).
    let equation = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nsource = [\"2 - 1*2\", \"1 - 3*2\"]\ncapacity = [[2, 1], [1, 3]]\n";
    let time = "end = 2\nsteps = 4";
    let found = solve(&on(SQUARE, 1, equation, time, "{ name = \"mean\", kind = \"mean\" }")).functionals;
    assert!((found["mean[0]"] - 2.0).abs() < 1e-9 && (found["mean[1]"] + 4.0).abs() < 1e-9, "{found:?}");
}

fn case(folder: &Path, text: &str) -> Case {
    let mut case = Case::parse(&folder.join("case.toml"), text.into()).unwrap();
    case.file.output.directory = folder.join("out");
    case
}

/// The rows of the table of traces.
fn traces(case: &Case) -> Vec<Vec<f64>> {
    let table = std::fs::read_to_string(case.file.output.directory.join("traces.csv")).unwrap();
    table.lines().skip(1).map(|row| row.split(',').map(|text| text.parse().unwrap()).collect()).collect()
}

#[test]
fn the_energy_of_allen_and_cahn_decreases_and_is_traced() {
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nenergy = \"0.002*grad(u).grad(u)/2 + (1 - u^2)^2/4\"\ncapacity = 1\n\
         initial = \"0.3*sin(7*x)*cos(5*y) + 0.05\"\n";
    let functionals = "{ name = \"energy\", kind = \"energy\" }, { name = \"points\", kind = \"value_at\", points = [[0.5, 0.5], [0, 0]] }";
    let time = "end = 8\nsteps = 40\ntraces = { every = 0.5 }\nframes = [0, 8]";
    let folder = tempfile::tempdir().unwrap();
    let case =
        case(folder.path(), &on("kind = \"square\", cells = [12, 12]", 1, equation, time, functionals));
    let report = run(&case, &mut Silent).unwrap();
    let rows = traces(&case);
    assert_eq!((rows.len(), rows[0].len()), (17, 4));
    assert!(rows.windows(2).all(|pair| pair[1][1] < pair[0][1]), "{rows:?}");
    assert!(rows[16][1] < 0.5 * rows[0][1] && rows[16][1] == report.functionals["energy"]);
    assert!(report.files.contains_key("frames/u_0001.vtu"));
    assert_eq!(verify(&case.file.output.directory).unwrap(), []);
}

#[test]
fn the_balance_of_two_chemicals_that_react_holds_in_each_step() {
    let initial = "exp(-((x - 0.1)^2 + (y - 0.15)^2)/0.002)";
    let equation = format!(
        "[unknown]\nc = {{ components = 2 }}\n[equation]\nkind = \"form\"\nconstants = {{ feed = 0.04, kill = 0.06 }}\n\
         define = \"D = [[2e-5, 0], [0, 1e-5]]; r = c[0]*c[1]^2\"\nflux = \"D*grad(c)\"\n\
         source = \"[feed*(1 - c[0]) - r, r - (feed + kill)*c[1]]\"\ncapacity = 1\ninitial = [\"1 - 0.5*{initial}\", \"0.25*{initial}\"]\n"
    );
    let mesh = "kind = \"square\", cells = [8, 8], upper = [0.3, 0.3], cell = \"quadrilateral\"";
    let time = "method = \"implicit-euler\"\nend = 60\nsteps = 20\ntraces = { every = 3 }";
    let functionals = "{ name = \"mean\", kind = \"mean\" }, { name = \"most\", kind = \"max\" }";
    let folder = tempfile::tempdir().unwrap();
    let text = on(mesh, 2, &equation, time, functionals) + "nonlinear_tolerance = 1e-12\n";
    let case = case(folder.path(), &text);
    run(&case, &mut Silent).unwrap();
    let rows = traces(&case);
    assert_eq!(rows.len(), 21);
    for pair in rows.windows(2) {
        let ([_, u0, v0, ..], [_, u, v, ..]) = (&pair[0][..], &pair[1][..]) else { panic!("{pair:?}") };
        let (rate, flows) = ((u + v - u0 - v0) / 3.0, 0.04 * (1.0 - u) - 0.1 * v);
        assert!((rate - flows).abs() < 1e-11, "{rate} and {flows}");
    }
    // The reaction spreads: its product grows, the one that it consumes becomes less.
    assert!(rows[20][2] > 1.5 * rows[5][2] && rows[20][1] < rows[5][1], "{rows:?}");
}

#[test]
fn an_interrupted_run_goes_on_to_the_same_bits() {
    let nonlinear = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nconstants = { D = [[1, 0], [0, 0.5]] }\nflux = \"D*grad(u)\"\n\
         source = \"[1 - u[0]^2*u[1], u[0]^2*u[1] - u[1]]\"\ncapacity = 1\ninitial = [\"1 + x\", \"y\"]\n";
    let linear = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + t)*grad(u)\"\nsource = 1\ncapacity = 1\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"t\"\n";
    let content = nonlinear.replace("capacity = 1", "enthalpy = \"[u[0] + u[0]^3, 2*u[1]]\"");
    for (equation, solver) in
        [(nonlinear, "preconditioner = \"amg\""), (nonlinear, ""), (linear, ""), (content.as_str(), "")]
    {
        for steps in ["steps = 20", "tolerance = 1e-3"] {
            let time = format!("end = 1\n{steps}\ntraces = {{ every = 0.25 }}\ncheckpoint = {{ steps = 6 }}");
            let mean = "{ name = \"mean\", kind = \"mean\" }";
            let text = on(SQUARE, 1, equation, &time, mean) + solver + "\n";
            let [whole, cut] = [0, 1].map(|_| tempfile::tempdir().unwrap());
            let report: Report = run(&case(whole.path(), &text), &mut Silent).unwrap();
            let mut parts = case(cut.path(), &text);
            assert_eq!(run(&parts, &mut StopAt::new(0.4)).unwrap().time.unwrap().stop, "interrupted");
            parts.file.time.as_mut().unwrap().restart = true;
            let second = run(&parts, &mut Silent).unwrap();
            assert_eq!(second.functionals, report.functionals, "{solver}, {steps}");
            assert_eq!(second.files, report.files, "{steps}");
        }
    }
}

#[test]
fn checkpoints_of_other_sides_and_interfaces_are_refused() {
    let form =
        "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\ninitial = \"x\"\n";
    let sides = "[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\njump = 1\n";
    let halves = "[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n[[region]]\nname = \"right\"\nwhere = \"x >= 0.5\"\n\
                  [[interface]]\nbetween = [\"left\", \"right\"]\nconductance = 1\n";
    type Change = fn(&mut CaseFile);
    let changes: [(&str, Change); 3] = [
        (sides, |file| file.periodic[0].jump = None),
        (sides, |file| file.periodic.clear()),
        (halves, |file| file.interface[0].conductance = Some(OfUnknowns::One(Entry::Number(2.0)))),
    ];
    for (conditions, change) in changes {
        let time = "end = 1\nsteps = 20\ncheckpoint = { steps = 6 }";
        let text = on(SQUARE, 1, &format!("{form}{conditions}"), time, "");
        let folder = tempfile::tempdir().unwrap();
        let mut case = case(folder.path(), &text);
        run(&case, &mut StopAt::new(0.4)).unwrap();
        case.file.time.as_mut().unwrap().restart = true;
        let mut other = case.clone();
        change(&mut other.file);
        let error = run(&other, &mut Silent).unwrap_err().to_string();
        assert!(error.contains("another equation, boundary or space"), "{error}");
        assert_eq!(run(&case, &mut Silent).unwrap().time.unwrap().stop, "finished");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    let good = "[unknown]\nu = { components = 2 }\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = \"2*t + 1\"\ninitial = [1, \"x\"]\n";
    let (time, mean) = ("method = \"bdf2\"\nend = 1\nsteps = 2", "{ name = \"mean\", kind = \"mean\" }");
    let good = on(SQUARE, 1, good, time, mean);
    solve(&good);
    for (from, to, expected) in [
        ("\"bdf2\"", "\"adi\"", "time.method: \"adi\" is for grids: take \"bdf2\""),
        ("\"bdf2\"", "\"strang\"", "time.method: splitting is for kind"),
        (
            "\"bdf2\"",
            "\"crank-nicolson\"",
            "time.method: \"crank-nicolson\" is not for a capacity that depends on t",
        ),
        ("steps = 2", "steps = 0", "time.steps: at least one"),
        ("steps = 2", "steps = 2\nmass = \"lumped\"", "time.mass: a form has its consistent mass matrix"),
        ("capacity = \"2*t + 1\"\n", "", "equation: an equation in time needs the factor of ∂u/∂t"),
        (
            "\"2*t + 1\"",
            "[1, 2, 3]",
            "equation.capacity: this is a vector of 3, where the capacity needs a number, a vector of 2 or a matrix of 2 × 2",
        ),
        ("\"2*t + 1\"", "{ field = \"c\" }", "equation.capacity: of a form it is a formula"),
        ("[1, \"x\"]", "[1, \"x\", 2]", "equation.initial: "),
        (
            "[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 2\n",
            "",
            "equation.capacity: is the factor of ∂u/∂t: give a [time] or a [modes] section",
        ),
        ("[time]", "[continuation]\n[time]", "continuation: load steps are for a steady equation"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let (key, message) = refusal(&text);
        let found = format!("{key}: {message}");
        assert!(found.contains(expected), "{to}: {found}");
    }
    let text = good.replace("\"bdf2\"", "\"crank-nicolson\"").replace("2*t + 1", "1");
    solve(&text);
    let (key, message) = refusal(&text.replace("kind = \"mean\"", "kind = \"flux\", where = \"all\""));
    assert!(key == "output.functionals[0]" && message.contains("bdf2"), "{key}: {message}");
}

/// The traces of a case.
fn traced(text: &str) -> Vec<Vec<f64>> {
    let folder = tempfile::tempdir().unwrap();
    let case = case(folder.path(), text);
    run(&case, &mut Silent).unwrap();
    traces(&case)
}

fn is_close(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 1e-9, "{what}: {found} and {expected}");
}

#[test]
fn fluxes_are_exact_where_the_solution_is() {
    // u = x²/2 + t, with 1 in at xmax; the side of values gets what its nodes store beside it.
    for (mesh, methods) in [(SQUARE, &SCHEMES[..3]), (CUBE, &SCHEMES[1..2])] {
        for (capacity, flux) in [("capacity = 1", "grad(u)"), ("enthalpy = \"2*u\"", "2*grad(u)")] {
            let equation = format!(
                "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"{flux}\"\n{capacity}\ninitial = \"x^2/2\"\n\
                 [[boundary]]\nwhere = \"xmin\"\ndirichlet = \"t\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"t + 1/2\"\n"
            );
            let functionals = ["xmin", "xmax", "all"]
                .map(|side| format!("{{ name = \"{side}\", kind = \"flux\", where = \"{side}\" }}"));
            for method in methods {
                let time =
                    format!("method = \"{method}\"\nend = 0.5\nsteps = 4\ntraces = {{ every = 0.0625 }}");
                let rows = traced(&on(mesh, 2, &equation, &time, &functionals.join(", ")));
                assert!(rows.len() == 9 && rows[0][1].is_nan());
                let factor = if capacity.contains("enthalpy") { 2.0 } else { 1.0 };
                for row in &rows[1..] {
                    // Every other row lies between two steps.
                    for (found, expected) in row[1..].iter().zip([0.0, factor, factor]) {
                        is_close(*found, expected, &format!("{mesh}, {method}, {capacity}, t = {}", row[0]));
                    }
                }
            }
        }
    }
}

#[test]
fn what_flows_in_balances_the_content_in_each_step() {
    // The second unknown is the content of the first one, projected onto the elements.
    let equation = |terms: &str| {
        format!(
            "[unknown]\nu = {{ components = 2 }}\n[equation]\nkind = \"form\"\nflux = \"[[1 + x, 0], [0, 0]]*grad(u)\"\n{terms}\n\
             initial = [\"x*y\", 0]\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [\"sin(5*t)*y\", \"free\"]\n\
             [[boundary]]\nwhere = \"xmax\"\nflux = \"[2*(t - u[0]), 0]\"\n"
        )
    };
    let linear = equation("capacity = [\"2 + y\", 0]\nsource = \"[3*y, (2 + y)*u[0] - u[1]]\"");
    let content = equation("enthalpy = \"[u[0] + u[0]^3/3, 0]\"\nsource = \"[3*y, u[0] + u[0]^3/3 - u[1]]\"");
    let functionals =
        "{ name = \"content\", kind = \"integral\" }, { name = \"all\", kind = \"flux\", where = \"all\" }";
    let (h, source) = (0.1, 1.5);
    for equation in [&linear, &content] {
        for (mesh, degree) in [(SQUARE, 1), (CUBE, 2)] {
            for method in ["implicit-euler", "bdf2"] {
                let time = format!("method = \"{method}\"\nend = 0.6\nsteps = 6\ntraces = {{ every = {h} }}");
                let rows = traced(
                    &(on(mesh, degree, equation, &time, functionals) + "nonlinear_tolerance = 1e-13\n"),
                );
                // Columns are t, both integrals, both fluxes.
                let content = |row: usize| rows[row][2];
                for (row, fluxes) in rows.iter().enumerate().skip(3) {
                    let rate = match method {
                        "bdf2" => (1.5 * content(row) - 2.0 * content(row - 1) + 0.5 * content(row - 2)) / h,
                        _ => (content(row) - content(row - 1)) / h,
                    };
                    is_close(fluxes[3] + source, rate, &format!("{mesh}, {method}, {row}"));
                }
            }
        }
    }
}

#[test]
fn steps_of_two_stages_balance_the_content_as_well() {
    // With the same flux in both stages the content grows by it: u is uniform, and what xmin gets is stored.
    for capacity in ["capacity = 2", "enthalpy = \"2*u\""] {
        let equation = format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"x\"\n{capacity}\n\
             [[boundary]]\nwhere = \"xmax\"\nflux = \"3\"\n[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\n\
             [[boundary]]\nwhere = \"xmin\"\nfloating = true\ntotal = 1\n"
        );
        let functionals = "{ name = \"content\", kind = \"integral\" }, { name = \"all\", kind = \"flux\", where = \"all\" }, \
            { name = \"xmin\", kind = \"flux\", where = \"xmin\" }, { name = \"ymin\", kind = \"flux\", where = \"ymin\" }, \
            { name = \"ymax\", kind = \"flux\", where = \"ymax\" }";
        for method in &SCHEMES[..3] {
            let time = format!("method = \"{method}\"\nend = 0.4\nsteps = 4\ntraces = {{ every = 0.1 }}");
            let rows = traced(&on(SQUARE, 2, &equation, &time, functionals));
            for pair in rows.windows(2) {
                let rate = 2.0 * (pair[1][1] - pair[0][1]) / 0.1;
                for (found, expected) in [(rate, 4.5), (pair[1][2], 4.0), (pair[1][3], 1.0)] {
                    is_close(found, expected, &format!("{method}, {capacity}: {pair:?}"));
                }
                is_close(pair[1][4] + pair[1][5], 0.0, method);
            }
        }
    }
}

#[test]
fn a_run_that_cannot_go_on_says_where_and_why() {
    // The source has no value after t = 1/2.
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nsource = \"1/(1 - t) + sqrt(0.5 - t)*u\"\ncapacity = 1\ninitial = 1\n";
    let text = on(SQUARE, 1, equation, "end = 1\nsteps = 10", "");
    let report = crate::try_solve(&text).unwrap();
    assert_eq!(report.time.as_ref().unwrap().stop, "solver-failed");
    let told = report.warnings.last().unwrap();
    assert!(told.contains("at t = 0.5") && told.contains("NaN in cell"), "{told}");
}
