//! Equations with several unknowns, each with its elements.

use crate::{refusal, run_in, solve};

fn case(mesh: &str, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n{equation}\n[output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n"
    )
}

/// The flow of Kovasznay behind a grid, an exact solution of the Navier–Stokes equations, at the Reynolds number 40
/// (L. I. G. Kovasznay, Proc. Camb. Phil. Soc. 44 (1948) 58–62).
#[test]
fn a_flow_with_quadratic_velocities_and_linear_pressures_has_their_orders() {
    let of = |cell: &str, n: usize| {
        let mesh = format!(
            "kind = \"square\", cells = [{n}, {n}], lower = [-0.5, -0.5], upper = [0.5, 0.5], {cell}"
        );
        let equation = "[unknown]\nu = { components = 2, degree = 2 }\np = { degree = 1 }\n[equation]\nkind = \"form\"\n\
            constants = { nu = 0.025 }\nflux = { u = \"nu*grad(u) - p*identity\" }\nsource = { u = \"-grad(u)*u\", p = \"div(u)\" }\n\
            [[boundary]]\nwhere = \"all\"\ndirichlet = { u = [\"1 - exp(l*x)*cos(2*pi*y)\", \"l/(2*pi)*exp(l*x)*sin(2*pi*y)\"] }\n\
            [[boundary]]\nnodes = \"x < -0.5 + 1e-9 && y < -0.5 + 1e-9\"\ndirichlet = { p = \"-exp(2*l*x)/2\" }\n";
        let functionals = "{ name = \"e\", kind = \"error_l2\", exact = [\"-exp(2*l*x)/2\", \"1 - exp(l*x)*cos(2*pi*y)\", \
            \"l/(2*pi)*exp(l*x)*sin(2*pi*y)\"] }";
        let (re, tau) = (40.0_f64, std::f64::consts::TAU);
        let lambda = format!("({})", re / 2.0 - (re * re / 4.0 + tau * tau).sqrt());
        let text = case(&mesh, equation, functionals).replace("l*x", &format!("{lambda}*x"));
        let report = solve(&text.replace("l/(2*pi)", &format!("{lambda}/(2*pi)")));
        ["e[p]", "e[u[0]]", "e[u[1]]"].map(|name| report.functionals[name])
    };
    for cell in ["cell = \"triangle\"", "cell = \"quadrilateral\""] {
        let (coarse, fine) = (of(cell, 6), of(cell, 12));
        let order = |i: usize| (coarse[i] / fine[i]).log2();
        let orders = [0, 1, 2].map(order);
        assert!(orders[0] > 1.8 && orders[1] > 2.7 && orders[2] > 2.7, "{cell}: {orders:?}, {fine:?}");
    }
}

#[test]
fn a_saddle_point_is_solved_from_its_energy() {
    let text = |n: usize| {
        case(
            &format!("kind = \"square\", cells = [{n}, {n}]"),
            "[unknown]\nu = { components = 2, degree = 2 }\np = { degree = 1 }\n[equation]\nkind = \"form\"\nconstants = { mu = 0.1 }\n\
             define = \"strain = sym(grad(u))\"\nenergy = \"mu*strain:strain - p*div(u)\"\n\
             source = { u = [\"2*pi^2*mu*sin(pi*x)*cos(pi*y) + cos(x)*sin(y)\", \"-2*pi^2*mu*cos(pi*x)*sin(pi*y) + sin(x)*cos(y)\"] }\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = { u = [\"sin(pi*x)*cos(pi*y)\", \"-cos(pi*x)*sin(pi*y)\"] }\n\
             [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = { p = 0 }\n",
            "{ name = \"e\", kind = \"error_l2\", exact = [\"sin(x)*sin(y)\", \"sin(pi*x)*cos(pi*y)\", \"-cos(pi*x)*sin(pi*y)\"] }",
        )
    };
    let [coarse, fine] = [10, 20].map(|n| solve(&text(n)));
    // Iterations do not grow as the mesh is refined.
    assert_eq!(coarse.solve.preconditioner, Some("amg"));
    let [of_coarse, of_fine] = [&coarse, &fine].map(|report| report.solve.iterations);
    assert!(of_fine < 130 && of_fine <= of_coarse * 3 / 2, "{of_coarse} and {of_fine}");
    let order = |name: &str| (coarse.functionals[name] / fine.functionals[name]).log2();
    assert!(
        order("e[u[0]]") > 2.7 && order("e[u[1]]") > 2.7 && order("e[p]") > 1.7,
        "{:?}",
        fine.functionals
    );
}

/// Temperature that grows along x bends a free body without stresses: $u = \alpha g\,(x^2 - y^2, 2 x y)/2$ for T = g x.
#[test]
fn heat_bends_a_body_without_stresses() {
    let text = case(
        "kind = \"square\", cells = [5, 4], upper = [2, 1]",
        "[unknown]\nu = { components = 2, degree = 2 }\nT = { degree = 1 }\n[equation]\nkind = \"form\"\n\
         constants = { mu = 38, lam = 57, alpha = 1e-3, k = 2 }\n\
         define = \"\"\"\nstrain = sym(grad(u)) - alpha*T*identity\nstress = 2*mu*strain + lam*tr(strain)*identity\n\"\"\"\n\
         flux = { u = \"stress\", T = \"k*grad(T)\" }\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = { T = 0 }\n[[boundary]]\nwhere = \"xmax\"\nflux = { T = \"6\" }\n\
         [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = { u = [0, 0] }\n\
         [[boundary]]\nnodes = \"x < 1e-9 && y > 1 - 1e-9\"\ndirichlet = { u = [-0.0015, 0] }\n",
        "{ name = \"e\", kind = \"error_l2\", exact = [\"3*x\", \"0.0015*(x^2 - y^2)\", \"0.003*x*y\"] }, { name = \"top\", kind = \"max\" }",
    );
    let report = solve(&text);
    assert!((report.functionals["top[T]"] - 6.0).abs() < 1e-8, "{:?}", report.functionals);
    for (name, scale) in [("e[T]", 6.0), ("e[u[0]]", 6e-3), ("e[u[1]]", 6e-3)] {
        assert!(report.functionals[name] < 1e-8 * scale, "{name}: {:?}", report.functionals);
    }
}

/// Fluxes of Dirichlet sides balance the sources, for an unknown of degree 1 beside one of degree 2 too.
#[test]
fn fluxes_of_unknowns_of_all_degrees_balance_the_sources() {
    let text = case(
        "kind = \"square\", cells = [5, 4]",
        "[unknown]\nu = { components = 2, degree = 2 }\nT = { degree = 1 }\n[equation]\nkind = \"form\"\n\
         flux = { u = \"grad(u)\", T = \"(2 + x)*grad(T)\" }\nsource = { u = [\"T\", 1], T = \"12*x*y\" }\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = { u = [\"x*y\", 0], T = \"x^2*y\" }\n",
        "{ name = \"in\", kind = \"flux\", where = \"all\" }, { name = \"sum\", kind = \"integral\" }",
    );
    let found = solve(&text).functionals;
    assert!((found["in[T]"] + 3.0).abs() < 1e-9 && (found["in[u[1]]"] + 1.0).abs() < 1e-9, "{found:?}");
    assert!((found["in[u[0]]"] + found["sum[T]"]).abs() < 1e-9, "{found:?}");
}

/// The sign of the equation of the pressure does not matter.
#[test]
fn a_saddle_point_of_the_other_sign_takes_as_many_iterations() {
    let of = |sign: &str| {
        solve(&case(
            "kind = \"square\", cells = [8, 8]",
            &format!(
                "[unknown]\nu = {{ components = 2, degree = 2 }}\np = {{ degree = 1 }}\n[equation]\nkind = \"form\"\n\
                 flux = {{ u = \"grad(u) - p*identity\" }}\nsource = {{ u = [\"y^2\", 0], p = \"{sign}div(u)\" }}\n\
                 [[boundary]]\nwhere = \"all\"\ndirichlet = {{ u = [0, 0] }}\n\
                 [[boundary]]\nnodes = \"x < 1e-9 && y < 1e-9\"\ndirichlet = {{ p = 0 }}\n"
            ),
            "{ name = \"m\", kind = \"max\" }",
        ))
    };
    let [plus, minus] = ["", "-"].map(of);
    assert!((plus.functionals["m[p]"] - minus.functionals["m[p]"]).abs() < 1e-8);
    let [plus, minus] = [plus, minus].map(|report| report.solve.iterations);
    assert!(minus <= plus + plus / 2 + 5, "{plus} and {minus}");
}

#[test]
fn multigrid_that_cannot_be_set_up_leaves_the_system_to_gmres_with_the_diagonal() {
    // Waves: real and imaginary part, above the first eigenvalue.
    let text = case(
        "kind = \"square\", cells = [8, 8]",
        "[unknown]\nu = { components = 2, degree = 2 }\n[equation]\nkind = \"form\"\nconstants = { k = 3 }\n\
         flux = \"grad(u)\"\nsource = \"k^2*u\"\n[[boundary]]\nwhere = \"x > 1 - 1e-9\"\nflux = \"[-k*u[1], k*u[0]]\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [1, 0]\n",
        "{ name = \"e\", kind = \"error_l2\", exact = [\"cos(3*x)\", \"sin(3*x)\"] }",
    );
    let report = solve(&text);
    assert!(
        report.functionals["e[0]"] < 0.02 && report.functionals["e[1]"] < 0.02,
        "{:?}",
        report.functionals
    );
    assert!(
        report.warnings.iter().any(|warning| warning.contains("gmres took the diagonal"))
            || report.solve.preconditioner == Some("amg")
    );
}

#[test]
fn unknowns_by_name_are_the_components_of_one() {
    let rest = "[[boundary]]\nwhere = \"xmin\"\n";
    let by_name = format!(
        "[unknown]\na = {{ degree = 2 }}\nb = {{ degree = 2 }}\n[equation]\nkind = \"form\"\n\
         flux = {{ a = \"(1 + b^2)*grad(a)\", b = \"grad(b) + 0.1*grad(a)\" }}\nsource = {{ a = \"1 - a*b\", b = \"x - b\" }}\n\
         initial = {{ b = \"0.1*y\" }}\n{rest}dirichlet = {{ a = \"y\" }}\n[[boundary]]\nwhere = \"xmax\"\nflux = {{ b = \"1 - b^2\" }}\n"
    );
    let one = format!(
        "[unknown]\nc = {{ components = 2, degree = 2 }}\n[equation]\nkind = \"form\"\n\
         define = \"\"\"\nA = grad(c)\nq = [1 + c[1]^2, 1]\n\"\"\"\n\
         flux = \"[[q[0]*A[0, 0], q[0]*A[0, 1]], [A[1, 0] + 0.1*A[0, 0], A[1, 1] + 0.1*A[0, 1]]]\"\n\
         source = [\"1 - c[0]*c[1]\", \"x - c[1]\"]\ninitial = [0, \"0.1*y\"]\n{rest}dirichlet = [\"y\", \"free\"]\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"[0, 1 - c[1]^2]\"\n"
    );
    let mean = "{ name = \"m\", kind = \"mean\" }";
    let [named, vector] = [by_name, one].map(|equation| {
        solve(&(case("kind = \"square\", cells = [5, 4]", &equation, mean) + "nonlinear_tolerance = 1e-11\n"))
    });
    for (name, component) in [("m[a]", "m[0]"), ("m[b]", "m[1]")] {
        let [named, vector] = [named.functionals[name], vector.functionals[component]];
        assert!((named / vector - 1.0).abs() < 1e-9, "{name}: {named} and {vector}");
    }
}

#[test]
fn results_have_the_names_of_the_unknowns() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [3, 3] }\n[unknown]\nu = { components = 2, degree = 2 }\nT = {}\n\
        [equation]\nkind = \"form\"\nflux = { u = \"grad(u)\", T = \"grad(T)\" }\nsource = { u = [1, \"T\"], T = 1 }\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n\
        [output]\nfunctionals = [{ name = \"cut\", kind = \"along\", from = [0, 0.5], to = [1, 0.5], points = 3 }]\n";
    let (key, message) = refusal(text);
    assert!(key == "boundary[0].dirichlet" && message.contains("{ T = …, u = … }"), "{key}: {message}");
    let text = text.replace("dirichlet = 0", "dirichlet = { u = 0, T = 0 }");
    run_in(folder.path(), &text).unwrap();
    let out = folder.path().join("out");
    let table = std::fs::read_to_string(out.join("cut.csv")).unwrap();
    assert!(table.starts_with("s,x,y,T,u[0],u[1]\n"), "{table}");
    let vtu = std::fs::read(out.join("solution.vtu")).unwrap();
    let vtu = String::from_utf8_lossy(&vtu);
    for name in ["Name=\"u\" NumberOfComponents=\"3\"", "Name=\"T\""] {
        assert!(vtu.contains(name), "{name}");
    }
}

#[test]
fn mistakes_with_several_unknowns_are_named() {
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [3, 3] }\n[unknown]\nu = { components = 2, degree = 2 }\nT = {}\n\
        [equation]\nkind = \"form\"\nflux = { u = \"grad(u)\", T = \"grad(T)\" }\nsource = { T = 1 }\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = { u = [0, 0], T = 0 }\n[solver]\ndevice = \"cpu\"\n";
    solve(text);
    for (from, to, expected) in [
        (
            "T = \"grad(T)\" }",
            "S = \"grad(T)\" }",
            "equation.flux.S: there is no unknown `S`; [unknown] has T, u",
        ),
        (
            "source = { T = 1 }",
            "source = 1",
            "equation.source: there are several unknowns: give a table with one for each, { T = …, u = … }",
        ),
        ("T = 0 }", "T = \"y/0\" }", "boundary[0].dirichlet: is NaN at"),
        ("u = [0, 0], T", "u = [0, 0, 0], T", "boundary[0].dirichlet.u: "),
        ("T = \"grad(T)\" }", "T = \"grad(u)\" }", "equation.flux.T: this is a matrix of 2 × 2"),
        (
            "T = {}",
            "T = { degree = 3 }",
            "unknown.u.degree: beside unknowns of degree 3 others have this degree or 1",
        ),
        ("T = {}", "T = { components = 15 }", "unknown: all together have at most 16 components"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let (key, message) = refusal(&changed);
        let found = format!("{key}: {message}");
        assert!(found.starts_with(expected) || message.starts_with(expected), "{found}, not {expected}");
    }
    let square = "[mesh]\ngenerate = { kind = \"square\", cells = [3, 3] }\n[equation]\nsource = { feild = \"f\" }\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let (key, message) = refusal(square);
    assert!(key == "equation.source" && message.contains("kind = \"form\""), "{key}: {message}");
}
