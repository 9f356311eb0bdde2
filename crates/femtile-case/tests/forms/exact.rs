//! Orders of the errors of cases with data that are made for a given solution.

use std::path::Path;

use femtile_case::{Case, CaseError, Convergence, Silent, Verdict, verify_exact};

pub fn try_verify(text: &str, exact: &[&str], n_levels: u32) -> Result<Convergence, CaseError> {
    let case = Case::parse(Path::new("case.toml"), text.into())?;
    let exact: Vec<String> = exact.iter().map(|text| (*text).to_owned()).collect();
    verify_exact(&case, &exact, n_levels, &mut Silent)
}

/// Verifies a case whose orders are within 0.25 of those of theory, on both sides.
pub fn verify(text: &str, exact: &str, n_levels: u32) -> Convergence {
    let found = try_verify(text, &[exact], n_levels).unwrap();
    assert_eq!(found.verdict, Verdict::Verified, "{text}: {found:?}");
    let (last, expected) = (found.levels.last().and_then(|level| level.order).unwrap(), found.expected);
    assert!(
        (last.l2 - expected.l2).abs() < 0.25 && (last.h1 - expected.h1).abs() < 0.25,
        "{text}: {found:?}"
    );
    found
}

fn case(mesh: &str, unknown: &str, equation: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n[solver]\ndevice = \"cpu\"\nmax_iterations = 3000\n[unknown]\n{unknown}\n\
         [equation]\nkind = \"form\"\n{equation}"
    )
}

fn square(n: usize, cell: &str) -> String {
    format!("kind = \"square\", cells = [{n}, {n}], cell = \"{cell}\"")
}

fn cube(n: usize, cell: &str) -> String {
    format!("kind = \"box\", cells = [{n}, {n}, {n}], cell = \"{cell}\"")
}

const CONVECTION: &str = "constants = { D = \"1 + x\", r = 0.5 }\nflux = \"D*grad(c)\"\nsource = \"1 - y*grad(c)[0] + x*grad(c)[1] - r*c\"\n\
     [[boundary]]\nwhere = \"xmin\"\ndirichlet = 7\n[[boundary]]\nwhere = \"xmax\"\nflux = \"2*(y - c)\"\n";

#[test]
fn convection_and_diffusion_with_a_robin_condition_has_the_orders_of_theory() {
    for cell in ["triangle", "quadrilateral"] {
        for degree in [1, 2] {
            let unknown = format!("c = {{ degree = {degree} }}");
            let text = case(&square(6, cell), &unknown, CONVECTION);
            let found = verify(&text, "c = sin(2*x)*exp(y)", 3);
            assert_eq!((found.degree, found.levels.len()), (degree, 3));
            assert!(found.levels.iter().all(|level| level.newton_iterations.is_none()));
        }
    }
    for cell in ["tetrahedron", "hexahedron"] {
        for (degree, n) in [(1, 4), (2, 2)] {
            let unknown = format!("c = {{ degree = {degree} }}");
            verify(&case(&cube(n, cell), &unknown, CONVECTION), "c = sin(2*x)*exp(y)*(1 + z)", 3);
        }
    }
}

#[test]
fn nonlinear_diffusion_has_the_orders_of_theory() {
    let equation = "flux = \"(1 + u^2)*grad(u)\"\nsource = \"-u^3\"\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n\
         [[boundary]]\nwhere = \"ymax\"\nflux = \"1 - u^4\"\n";
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 1), ("quadrilateral", 3)] {
        let text = case(&square(4, cell), &format!("u = {{ degree = {degree} }}"), equation);
        let found = verify(&text, "u = cos(x)*(0.5 + y)^2", 3);
        assert!(found.levels.iter().all(|level| level.newton_iterations > Some(1)), "{found:?}");
    }
}

const RUBBER: &str = "constants = { mu = 80, lam = 120 }\ndefine = \"F = identity + grad(u); J = det(F)\"\n\
     energy = \"mu/2*tr(F'*F) - mu*log(J) + lam/2*log(J)^2\"\n";

#[test]
fn a_neo_hookean_body_has_the_orders_of_theory() {
    let unknown = |degree: usize| format!("u = {{ components = \"dimension\", degree = {degree} }}");
    // A pressure that follows the body, and a component that is free.
    let plane = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0]\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"-5*J*inv(F)'*normal\"\n";
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 1), ("quadrilateral", 2)] {
        let text = case(&square(4, cell), &unknown(degree), &(RUBBER.to_owned() + plane));
        verify(&text, "u = 0.2*[sin(2*x)*y, x*y^2 + sin(x)]", 3);
    }
    let space = RUBBER.to_owned() + "[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n";
    for (cell, degree, n) in [("tetrahedron", 1, 2), ("hexahedron", 2, 2)] {
        let text = case(&cube(n, cell), &unknown(degree), &space);
        verify(&text, "u = 0.2*[sin(x)*y, x*y^2, x*sin(z)]", 3);
    }
    // In load steps the function may grow with t.
    let text = case(
        &square(4, "triangle"),
        &unknown(2),
        &(RUBBER.to_owned() + plane + "[continuation]\nsteps = 2\n"),
    );
    let [grown, at_once] =
        ["u = t/5*[sin(2*x)*y, x*y]", "u = [sin(2*x)*y, x*y]/5"].map(|exact| verify(&text, exact, 2));
    let [grown, at_once] = [grown, at_once].map(|found| found.levels[1].error);
    assert!((grown.l2 / at_once.l2 - 1.0).abs() < 1e-6, "{grown:?} {at_once:?}");
}

#[test]
fn equations_of_the_library_have_the_orders_of_theory() {
    let mesh = format!(
        "[mesh]\ngenerate = {{ {} }}\n[space]\ndegree = 2\n[solver]\ndevice = \"cpu\"\n",
        square(4, "triangle")
    );
    let elasticity = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\nsource = [1, \"x\"]\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n[[boundary]]\nwhere = \"xmax\"\ntraction = [1, 0]\n";
    verify(&(mesh.clone() + elasticity), "u = [sin(2*x), cos(x*y)]", 3);
    let convection = "[equation]\nkind = \"convection-diffusion\"\nvelocity = [1, \"x\"]\nsource = \"1/(1 + x)\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\nrobin = { coefficient = 2, value = 1 }\n";
    verify(&(mesh + convection), "u = exp(x)*sin(y)", 3);
}

#[test]
fn ranks_have_the_same_errors() {
    let text = case(&square(4, "quadrilateral"), "c = { degree = 2 }", CONVECTION);
    let [one, two] = [text.clone(), text.replace("[unknown]", "ranks = 2\n[unknown]")]
        .map(|text| verify(&text, "c = sin(2*x)*y", 2));
    for (one, two) in one.levels.iter().zip(&two.levels) {
        assert!((one.error.l2 / two.error.l2 - 1.0).abs() < 1e-6, "{one:?} {two:?}");
    }
}

#[test]
fn functions_of_the_space_have_no_errors_but_rounding() {
    let text = case(&square(3, "triangle"), "c = { degree = 2 }", CONVECTION);
    for exact in ["c = x^2 - x*y + 3", "c = 2"] {
        let found = try_verify(&text, &[exact], 3).unwrap();
        assert_eq!(found.verdict, Verdict::Rounding, "{found:?}");
        assert!(found.levels.iter().all(|level| level.error.l2 < 1e-9 && level.error.h1 < 1e-9), "{found:?}");
    }
}

#[test]
fn low_orders_are_told_with_their_reason() {
    let verdict = |text: &str, exact: &str, n_levels| try_verify(text, &[exact], n_levels).unwrap().verdict;
    let text = case(&square(5, "triangle"), "c = { degree = 2 }", CONVECTION);
    assert_eq!(verdict(&text, "c = abs(x - 0.43)*y", 3), Verdict::NotSmooth);
    // Heat that flows in as the gradient asks for has no bound by the gradients in the cells.
    let outside = text.replace("2*(y - c)", "-3*normal.grad(c)");
    let conditions = vec!["`boundary[1].flux`".to_owned()];
    assert_eq!(verdict(&outside, "c = sin(2*x)*exp(y)", 3), Verdict::Boundary { conditions });
    // Linear triangles lock: their displacements that keep the volume are too few.
    let nearly_incompressible = "energy = \"sym(grad(u)):sym(grad(u)) + 1e5*div(u)^2\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let locking = case(&square(4, "triangle"), "u = { components = 2 }", nearly_incompressible);
    assert_eq!(verdict(&locking, "u = [sin(3*x)*cos(3*y), -cos(3*x)*sin(3*y)]", 3), Verdict::Cells);
    let interrupted = text.replace("3000", "3\npreconditioner = \"none\"");
    let Verdict::NotConverged { level: 0, reason } = verdict(&interrupted, "c = sin(x)", 2) else {
        panic!("no reason")
    };
    assert!(reason.contains("max_iterations"), "{reason}");
    let nonlinear =
        text.replace("- r*c", "- r*c^3").replace("max_iterations = 3000", "nonlinear_iterations = 1");
    let Verdict::NotConverged { level: 0, reason } = verdict(&nonlinear, "c = sin(x)", 2) else {
        panic!("no reason")
    };
    assert!(reason.contains("iteration"), "{reason}");
}

#[test]
fn mistakes_of_the_function_are_named() {
    let scalar = case(&square(2, "triangle"), "c = {}", CONVECTION);
    let vector = case(
        &square(2, "triangle"),
        "u = { components = 2 }",
        "flux = \"grad(u)\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n",
    );
    let stationary = "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2] }\n[equation]\nsource = 1\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let in_time = scalar.clone() + "[time]\nend = 1\nsteps = 2\n";
    let in_time = in_time.replace("flux = \"D", "capacity = 1\nflux = \"D");
    for (text, exact, expected) in [
        (&scalar, &["d = x"][..], "--exact \"d = x\": there is no unknown `d`; the case has `c`"),
        (&scalar, &["sin(x)"], "write NAME = FORMULA, such as c = sin(pi*x)*y"),
        (&scalar, &["c = [x, y]"], "this is a vector of 2, where `c` is a number"),
        (
            &vector,
            &["u = x"],
            "this is a number, where `u` is a vector of 2: give an entry for each component",
        ),
        (&scalar, &["c = sinn(x)"], "unknown function `sinn`; did you mean `sin`?"),
        (&scalar, &["c = x*t"], "t is raised from 0 to 1 by load steps: give [continuation]"),
        (&scalar, &["c = x", "c = y"], "`c` is given twice"),
        (&scalar, &["c = log(x)"], "--exact: the function is -inf at (0, "),
        (&scalar, &["c = sqrt(max(x - 0.5, 0))"], "--exact: the gradient of the function is NaN at (0."),
        (&scalar, &["c = D*x"], "unknown name `D`"),
        (&scalar, &[], "--exact: give also a function for `c`"),
        (&stationary.to_owned(), &["u = x"], "equation.kind: --exact makes data for `form`"),
        (&in_time, &["c = x"], "time: --exact makes data for steady problems"),
    ] {
        let error = try_verify(text, exact, 2).unwrap_err().to_string();
        assert!(error.contains(expected), "{exact:?}: {error}");
    }
    let error = try_verify(&scalar, &["c = x"], 1).unwrap_err().to_string();
    assert!(error.starts_with("--levels 1: orders need two levels"), "{error}");
}

#[test]
fn interfaces_have_the_orders_of_theory_for_a_function_without_a_jump() {
    let regions = "[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n[[region]]\nname = \"right\"\nwhere = \"x > 0.5\"\n";
    let interface =
        "[[interface]]\nbetween = [\"left\", \"right\"]\nflux = \"(1 + u^2)*(u_other - u) + u*u_other\"\n";
    let equation = format!(
        "flux = \"(1 + u^2)*grad(u)\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\nflux = \"-u\"\n{regions}{interface}"
    );
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 2)] {
        let found = verify(
            &case(&square(6, cell), &format!("u = {{ degree = {degree} }}"), &equation),
            "u = 1 + sin(x + y)",
            3,
        );
        // The mesh is cut.
        let nodes = |n: usize| (degree * n + 1) * (degree * n + 2);
        assert_eq!(found.levels[0].n_unknowns, nodes(6));
    }
}
