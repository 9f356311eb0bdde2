//! Reaction and diffusion with conditions and elements of forms: the same results as with operators of their own, orders, refusals.

use std::f64::consts::{LN_2, TAU};

use femtile_case::{Case, CaseSystem, Embedding, Report, Silent, run};
use femtile_comm::{Comm, threads};
use femtile_mesh::generate::{SquareConfig, SquareSplit, square};
use femtile_mesh::{CellKind, Mesh};

use crate::exact::verify;
use crate::inside::{halves, is_close, refusal_on, solve_on};
use crate::sides::blocks;
use crate::{refusal, run_in, solve, try_solve};

/// The equation and its conditions on a mesh, with functionals that both ways have.
fn case(mesh: &str, equation: &str, more: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n{equation}\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = \"1 + 0.3*y\"\n\
         [[boundary]]\nwhere = \"xmax\"\nneumann = 0.7\n\
         [[boundary]]\nwhere = \"ymax\"\nrobin = {{ coefficient = \"1 + x\", value = 2 }}\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [\
         {{ name = \"mean\", kind = \"mean\" }}, {{ name = \"max\", kind = \"max\" }}, {{ name = \"l2\", kind = \"l2_norm\" }}, \
         {{ name = \"at\", kind = \"value_at\", points = [[0.31, 0.47], [0.9, 0.2]] }}{more}]\n"
    )
}

/// A source that gives nothing, which forms know alone.
const NOTHING: &str = "[[source]]\npoint = [0.5, 0.5]\ntotal = 0\n";

/// Solves with operators of the equation and as a form. Triangles have other points of quadrature as forms, which differ for formulas.
fn both(text: &str) {
    let has_other_points = !text.contains("quadrilateral") && text.contains("x^2");
    let tolerance = if has_other_points { 1e-5 } else { 1e-8 };
    let (own, form) = (solve(text), solve(&format!("{text}{NOTHING}")));
    assert_eq!(own.functionals.keys().collect::<Vec<_>>(), form.functionals.keys().collect::<Vec<_>>());
    for (name, expected) in &own.functionals {
        let found = form.functionals[name];
        assert!(
            (found - expected).abs() < tolerance * expected.abs().max(1.0),
            "{name}: {found} and {expected}\n{text}"
        );
    }
}

const STEADY: &str = ", { name = \"flux\", kind = \"flux\", where = \"all\" }, { name = \"in\", kind = \"flux\", where = \"xmin\" }, \
     { name = \"energy\", kind = \"energy\" }, { name = \"error\", kind = \"error_l2\", exact = \"x*y\" }, \
     { name = \"slope\", kind = \"error_h1\", exact = \"x*y\" }";

#[test]
fn forms_find_the_u_of_reaction_and_diffusion_for_all_kinds_of_coefficients() {
    let region = "[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n";
    for equation in [
        "[equation]\nsigma = 2\nlambda = 0.5\nsource = 3",
        "[equation]\nsigma = \"1 + x^2\"\nlambda = \"y\"\nsource = \"x\"",
        "[equation]\nsigma = [[2, 0.3], [0.3, \"1 + y\"]]",
        "[equation]\nsigma = { by_tag = { left = 2 }, default = \"1 + x\" }\nlambda = { by_tag = { left = 1 }, default = 0 }",
        "[equation]\nsigma = { intra = 0.17, extra = 0.62 }\nsource = 1",
    ] {
        for mesh in [
            "kind = \"square\", cells = [5, 7]",
            "kind = \"square\", cells = [4, 6], cell = \"quadrilateral\"",
        ] {
            let region = if equation.contains("left") { region } else { "" };
            both(&case(mesh, &format!("{region}{equation}"), STEADY));
        }
    }
    // Quadrilaterals of degree 3; their points of quadrature are those of forms.
    let equation = "[space]\ndegree = 3\n[equation]\nsigma = \"1 + x^2\"\nsource = \"x*y\"";
    both(&case("kind = \"square\", cells = [3, 2], cell = \"quadrilateral\"", equation, STEADY));
}

#[test]
fn forms_find_the_u_of_coefficients_that_depend_on_it() {
    for equation in [
        "[equation]\nsigma = \"1 + u^2\"\nlambda = \"0.1*u^2\"\nsource = \"x - u\"",
        "[equation]\nsigma = [[\"2 + u^2\", 0], [0, 1]]",
        "[[region]]\nname = \"left\"\nwhere = \"x < 0.5\"\n[equation]\nsigma = { by_tag = { left = \"1 + u^2\" }, default = 3 }",
    ] {
        let more = ", { name = \"flux\", kind = \"flux\", where = \"all\" }";
        let text = case("kind = \"square\", cells = [5, 4], cell = \"quadrilateral\"", equation, more);
        both(&text.replace("tolerance = 1e-13", "tolerance = 1e-13\nnonlinear_tolerance = 1e-12"));
    }
}

#[test]
fn forms_advance_diffusion_as_its_own_operators() {
    for equation in [
        "capacity = 2\ndiffusion = \"1 + x\"\nreaction = -0.3\nsource = \"t\"",
        "diffusion = [[2, 0.3], [0.3, 1]]\nreaction = \"0.1*sin(t)\"\ninitial = \"1 + x*y\"",
        "capacity = \"1 + u^2\"\ndiffusion = \"1 + 0.1*u\"\nreaction = \"-u\"\nsource = \"-u^2\"\ninitial = 1",
    ] {
        for method in ["bdf2", "sdirk2", "crank-nicolson", "implicit-euler"] {
            let equation = format!(
                "[equation]\nkind = \"diffusion\"\n{equation}\n[time]\nmethod = \"{method}\"\nend = 0.5\nsteps = 5\n"
            );
            let text = case("kind = \"square\", cells = [5, 4], cell = \"quadrilateral\"", &equation, "");
            let is_nonlinear = equation.contains("u^2");
            both(&match is_nonlinear {
                true => text.replace("tolerance = 1e-13", "tolerance = 1e-12\nnonlinear_tolerance = 1e-11"),
                false => text,
            });
        }
    }
}

#[test]
fn simplices_have_degrees_to_6_with_their_orders() {
    let exact = "sin(2*x)*exp(y)";
    let text = |mesh: &str, degree: u32| {
        format!(
            "[mesh]\ngenerate = {{ {mesh} }}\n[space]\ndegree = {degree}\n[equation]\nlambda = 1\nsource = \"4*{exact}\"\n\
             [[boundary]]\nwhere = \"all\"\ndirichlet = \"{exact}\"\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n\
             [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"l2\", kind = \"error_l2\", exact = \"{exact}\" }}, \
             {{ name = \"h1\", kind = \"error_h1\", exact = \"{exact}\" }}]\n"
        )
    };
    let plane = |n: usize| format!("kind = \"square\", cells = [{n}, {n}]");
    let space = |n: usize| format!("kind = \"box\", cells = [{n}, {n}, {n}]");
    type Generate<'a> = &'a dyn Fn(usize) -> String;
    let plane = [2, 3, 6].map(|degree| (&plane as Generate<'_>, 4, degree));
    let space = [2, 3].map(|degree| (&space as Generate<'_>, 2, degree));
    for (mesh, n, degree) in plane.into_iter().chain(space) {
        let [coarse, fine] = [n, 2 * n].map(|n| solve(&text(&mesh(n), degree)).functionals);
        for (name, expected) in [("l2", degree + 1), ("h1", degree)] {
            let order = (coarse[name] / fine[name]).log2();
            assert!((order - f64::from(expected)).abs() < 0.35, "{}, {degree}: {name} {order}", mesh(n));
        }
    }
}

#[test]
fn a_mesh_file_of_simplices_is_read_before_its_degree_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let text = |file: &str, ranks: usize| {
        format!(
            "[mesh]\nfile = \"{file}\"\n[space]\ndegree = 2\n[equation]\nsource = 1\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n\
             [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\nranks = {ranks}\n[output]\nplot = false\nvtu = false\n\
             functionals = [{{ name = \"mean\", kind = \"mean\" }}]\n"
        )
    };
    let found: Vec<f64> = [
        (SquareSplit::Quadrilateral, "q.vtu", 1),
        (SquareSplit::Triangles, "t.vtu", 1),
        (SquareSplit::Triangles, "t.vtu", 2),
    ]
    .into_iter()
    .map(|(split, name, ranks)| {
        let mesh = square(&SquareConfig { cells: [16, 16], split, ..SquareConfig::default() }).unwrap();
        femtile_mesh::io::vtu::write(&folder.path().join(name), &mesh, &[], &[]).unwrap();
        run_in(folder.path(), &text(name, ranks)).unwrap().functionals["mean"]
    })
    .collect();
    assert!((found[1] / found[0] - 1.0).abs() < 1e-3 && (found[2] - found[1]).abs() < 1e-10, "{found:?}");
}

#[test]
fn the_wall_of_a_pipe_has_its_profile_as_a_half_section() {
    // log(r) between radii 1 and 2; the heat that flows through a length of 3 is 2π·3.
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 2)] {
        let text = |n: usize| {
            format!(
                "[mesh]\ngenerate = {{ kind = \"square\", cells = [{n}, {n}], lower = [1, 0], upper = [2, 3], cell = \"{cell}\" }}\n\
                 [space]\ndegree = {degree}\naxisymmetric = true\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
                 [[boundary]]\nwhere = \"xmax\"\ndirichlet = {LN_2}\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n\
                 [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"flux\", kind = \"flux\", where = \"xmax\" }}, \
                 {{ name = \"l2\", kind = \"error_l2\", exact = \"log(x)\" }}]\n"
            )
        };
        let [coarse, fine] = [8, 16].map(|n| solve(&text(n)).functionals);
        let order = (coarse["l2"] / fine["l2"]).log2();
        assert!((order - f64::from(degree) - 1.0).abs() < 0.2, "{cell}, {degree}: {order}");
        assert!((fine["flux"] / (3.0 * TAU) - 1.0).abs() < 1e-3, "{cell}, {degree}: {}", fine["flux"]);
    }
}

#[test]
fn what_points_and_sides_give_stays_in_an_insulated_body() {
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [5, 4], upper = [2, 1] }\n[space]\ndegree = 2\n\
         [equation]\nkind = \"diffusion\"\ncapacity = 3\nconstants = { q = 0.5 }\n[[source]]\npoint = [0.3, 0.6]\ntotal = 5\n\
         [[boundary]]\nwhere = \"xmin\"\ntotal = 2\n[[boundary]]\nwhere = \"ymax\"\nflux = \"q*t\"\n\
         [time]\nmethod = \"crank-nicolson\"\nend = 2\nsteps = 4\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{ name = \"integral\", kind = \"integral\" }]\n";
    // 7 in each unit of time, and 0.5 t over a length of 2.
    let found = solve(text).functionals["integral"];
    assert!((found - (14.0 + 2.0) / 3.0).abs() < 1e-9, "{found}");
}

#[test]
fn the_orders_of_fluxes_that_depend_on_u_are_verified() {
    for (mesh, degree) in [
        ("kind = \"square\", cells = [3, 3]", 2),
        ("kind = \"square\", cells = [3, 3], cell = \"quadrilateral\"", 1),
        ("kind = \"box\", cells = [2, 2, 2]", 2),
        ("kind = \"box\", cells = [2, 2, 2], cell = \"hexahedron\"", 2),
    ] {
        let text = format!(
            "[mesh]\ngenerate = {{ {mesh} }}\n[space]\ndegree = {degree}\n\
             [equation]\nsigma = \"1 + 0.2*u^2\"\nlambda = \"x\"\nconstants = {{ h = 0.7 }}\n\
             [[boundary]]\nwhere = \"all\"\nrobin = {{ coefficient = \"1 + u^2\", value = 2 }}\n\
             [[boundary]]\nwhere = \"xmin\"\nflux = \"h*(2 - u^4)\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n\
             [solver]\ndevice = \"cpu\"\n"
        );
        verify(&text, "u = 1 + 0.3*sin(x + 2*y)", 3);
    }
}

#[test]
fn springs_of_a_body_are_fluxes() {
    // A bar of length 2 and stiffness 10 that is pulled by 3 against springs of stiffness 4.
    let text = "[mesh]\ngenerate = { kind = \"square\", cells = [4, 2], upper = [2, 1] }\n[space]\ndegree = 2\n\
         [equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\nconstants = { k = 4 }\n\
         [[boundary]]\nwhere = \"xmin\"\nflux = \"-k*u\"\n[[boundary]]\nwhere = \"xmax\"\ntraction = [3, 0]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n[output]\nplot = false\nvtu = false\n\
         functionals = [{ name = \"ends\", kind = \"value_at\", points = [[0, 0.5], [2, 0.5]] }]\n";
    let found = solve(text).functionals;
    for (name, expected) in [("ends[0][0]", 0.75), ("ends[1][0]", 1.35), ("ends[1][1]", 0.0)] {
        assert!((found[name] - expected).abs() < 1e-9, "{name}: {}", found[name]);
    }
}

#[test]
fn ranks_find_the_u_of_one() {
    let equation = "[space]\ndegree = 2\n[equation]\nsigma = \"1 + x\"\nlambda = 0.2\n[[source]]\npoint = [0.3, 0.6]\ntotal = 2";
    let text = case("kind = \"square\", cells = [6, 5]", equation, STEADY);
    let [one, three] = [solve(&text), solve(&text.replace("tolerance", "ranks = 3\ntolerance"))];
    for (name, expected) in &one.functionals {
        assert!(
            (three.functionals[name] - expected).abs() < 1e-9,
            "{name}: {} and {expected}",
            three.functionals[name]
        );
    }
}

#[test]
fn what_forms_lack_is_refused_with_the_key_that_makes_one() {
    let steady =
        case("kind = \"square\", cells = [4, 4], cell = \"quadrilateral\"", "[equation]\nsigma = 2", "");
    let steady = format!("{steady}{NOTHING}");
    let in_time =
        steady.replace("sigma = 2", "kind = \"diffusion\"\n[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 2");
    let of = "(with [[source]] the equation is solved as a form)";
    for (text, from, to, key, expected) in [
        (&steady, "plot = false", "plot = false\nfields = [\"stress\"]", "output.fields[0]", "elasticity"),
        (&steady, "vtu = false", "vtu = \"pieces\"", "output.vtu", of),
        (&steady, "[solver]", "[solver]\npreconditioner = \"gmg\"", "solver.preconditioner", of),
        (&steady, "[solver]", "[solver]\noperator = \"matrix-free\"", "solver.operator", of),
        (&steady, "[solver]", "[solver]\nmetric = \"stored\"", "solver.metric", of),
        (&steady, "[solver]", "[solver]\nnonlinear_tolerance = 1e-3", "solver.nonlinear_tolerance", of),
        (&steady, "[equation]", "[space]\ncomponents = 2\n[equation]", "space.components", of),
        (&steady, "[equation]", "[space]\nquadrature = \"gauss-fine\"\n[equation]", "space.quadrature", of),
        (&steady, "sigma = 2", "sigma = 2\nlambda = -1", "equation.lambda", "is -1"),
        (&steady, "sigma = 2", "sigma = -2", "equation.sigma", "positive definite"),
        (
            &steady,
            "sigma = 2",
            "sigma = 2\ncapacity = 1",
            "equation.capacity",
            "belongs to `kind = \"diffusion\"`",
        ),
        (&steady, "sigma = 2", "sigma = 2\ninitial = 1", "equation.initial", "the first iterate"),
        (
            &steady,
            "sigma = 2",
            "sigma = 2\nyoung = 1",
            "equation.young",
            "belongs to `kind = \"elasticity\"`",
        ),
        (
            &steady,
            "sigma = 2",
            "sigma = 2\nconstants = { sigma = 1 }",
            "equation.constants.sigma",
            "a meaning of its own",
        ),
        (
            &steady,
            "sigma = 2",
            "sigma = 2\nconstants = { k = 1 }",
            "equation.constants.k",
            "no formula uses it",
        ),
        (
            &steady,
            "dirichlet = \"1 + 0.3*y\"",
            "dirichlet = \"u\"",
            "boundary[0].dirichlet",
            "u, the solution",
        ),
        (&steady, "neumann = 0.7", "flux = \"k*u\"", "boundary[1].flux", "unknown name `k`"),
        (
            &steady,
            "neumann = 0.7",
            "flux = { u = \"1\" }",
            "boundary[1].flux",
            "a table of values by unknown",
        ),
        (
            &steady,
            "neumann = 0.7",
            "traction = [1, 0]",
            "boundary[1].traction",
            "belongs to `kind = \"elasticity\"`",
        ),
        (&in_time, "steps = 2", "steps = 2\nmass = \"lumped\"", "time.mass", of),
        (
            &in_time,
            "\"diffusion\"",
            "\"diffusion\"\nsigma = 2",
            "equation.sigma",
            "the coefficients here are capacity",
        ),
        (
            &in_time,
            "\"diffusion\"",
            "\"diffusion\"\ncapacity = -1",
            "equation.capacity",
            "has to be positive",
        ),
        (&in_time, "\"diffusion\"", "\"diffusion\"\ncapacity = \"1 + t\"", "equation.capacity", "not on t"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(&changed, text, "{from}");
        let (found, message) = refusal(&changed);
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
    let degree = steady
        .replace(NOTHING, "")
        .replace(", cell = \"quadrilateral\"", "")
        .replace("[equation]", "[space]\ndegree = 2\n[equation]");
    let (_, message) = refusal(&degree.replace("vtu = false", "vtu = \"pieces\""));
    assert!(
        message.contains("(with `degree` 2 on triangle cells the equation is solved as a form)"),
        "{message}"
    );
    let (_, message) = refusal(&degree.replace("degree = 2", "degree = 7"));
    assert!(message.contains("take 1 to 6"), "{message}");
}

/// The same equation by its kind and as a text, steady and in time.
const STEADY_EQUATIONS: [&str; 2] = [
    "[equation]\nsigma = 2\nlambda = 0.5\nsource = \"1 + y\"\n",
    "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"2*grad(u)\"\nsource = \"1 + y - 0.5*u\"\n",
];
const EQUATIONS_IN_TIME: [&str; 2] = [
    "[equation]\nkind = \"diffusion\"\ndiffusion = 2\nreaction = -0.5\nsource = \"1 + y\"\n",
    "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"2*grad(u)\"\nsource = \"1 + y - 0.5*u\"\ncapacity = 1\n",
];
const TIME: &str = "[time]\nmethod = \"bdf2\"\nend = 0.5\nsteps = 5\n";

const NUMBERS: &str = "{ name = \"mean\", kind = \"mean\" }, { name = \"max\", kind = \"max\" }, { name = \"l2\", kind = \"l2_norm\" }, { name = \"whole\", kind = \"integral\" }";

fn are_same([found, expected]: [Report; 2], what: &str) {
    assert_eq!(found.functionals.keys().collect::<Vec<_>>(), expected.functionals.keys().collect::<Vec<_>>());
    for (name, expected) in &expected.functionals {
        let found = found.functionals[name];
        assert!(
            (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{what}, {name}: {found} and {expected}"
        );
    }
    let fluxes = |report: &Report| report.matrix.as_ref().map_or(Vec::new(), |matrix| matrix.fluxes.concat());
    assert_eq!(fluxes(&found).len(), fluxes(&expected).len(), "{what}");
    for (found, expected) in fluxes(&found).into_iter().zip(fluxes(&expected)) {
        is_close(found, expected, what);
    }
}

#[test]
fn reaction_and_diffusion_have_the_conditions_of_forms() {
    let config = SquareConfig { cells: [5, 4], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    let plain = square(&config).unwrap();
    let (halved, stacked) = (halves(CellKind::Triangle), blocks("quadrilateral", 1, 3));
    let fixed = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n";
    let on_wall = |condition: &str| format!("{fixed}[[boundary]]\nwhere = \"wall\"\n{condition}\n");
    let wall = ", { name = \"left\", kind = \"flux\", where = \"wall\", from = \"left\" }";
    let xmin = ", { name = \"in\", kind = \"flux\", where = \"xmin\" }";
    let cases: [(&Mesh, String, &str); 8] = [
        (
            &plain,
            format!("{fixed}[[periodic]]\nfrom = \"ymin\"\nto = \"ymax\"\njump = 0.3\n")
                .replace("= 1", "= \"1 + 0.3*y\""),
            xmin,
        ),
        (&plain, format!("{fixed}[[boundary]]\nwhere = \"xmax\"\nfloating = true\ntotal = 2\n"), xmin),
        (
            &stacked,
            "[[boundary]]\nwhere = \"ymin\"\ndirichlet = 1\n[[tie]]\nfrom = \"ymax\"\nto = \"upper-ymin\"\n"
                .into(),
            ", { name = \"in\", kind = \"flux\", where = \"ymin\" }",
        ),
        (&halved, format!("{fixed}[[interface]]\nwhere = \"wall\"\nconductance = 3\n"), wall),
        (
            &halved,
            format!(
                "{fixed}[[interface]]\nbetween = [1, 2]\nname = \"contact\"\nconductance = \"1 + u^2\"\n"
            ),
            xmin,
        ),
        (&halved, on_wall("flux = \"2 - u\"\nfrom = \"left\""), wall),
        (&halved, on_wall("flux = \"2 - u^3\"\nfrom = \"right\""), wall),
        (&halved, on_wall("dirichlet = 0.5"), wall),
    ];
    for (mesh, conditions, flux) in &cases {
        let solver = if conditions.contains('^') { "nonlinear_tolerance = 1e-12\n" } else { "" };
        let text = |equation: &str, functionals: &str| {
            format!("{}{solver}", crate::inside::case(2, &format!("{equation}{conditions}"), functionals))
        };
        let functionals = format!("{NUMBERS}{flux}");
        are_same(STEADY_EQUATIONS.map(|own| solve_on(mesh, &text(own, &functionals))), conditions);
        let in_time = |own: &str| {
            text(&format!("{own}{TIME}"), NUMBERS).replace("tolerance = 1e-13", "tolerance = 1e-12")
        };
        let reports = EQUATIONS_IN_TIME.map(|own| {
            crate::inside::try_solve_on(mesh, &in_time(own))
                .unwrap_or_else(|error| panic!("{conditions}: {error}"))
        });
        are_same(reports, conditions);
    }
    let matrix = |own: &str| {
        let text = crate::inside::case(1, &format!("{own}{fixed}"), NUMBERS);
        solve_on(&plain, &text.replace("[output]", "[output]\nmatrix = [\"xmin\", \"xmax\"]"))
    };
    let reports = STEADY_EQUATIONS.map(matrix);
    assert!(reports[0].matrix.is_some());
    are_same(reports, "matrix");
    for own in [STEADY_EQUATIONS, EQUATIONS_IN_TIME] {
        let time = if own == EQUATIONS_IN_TIME { TIME } else { "" };
        let thick = |own: &str| {
            let text = crate::inside::case(2, &format!("{own}{fixed}{time}"), NUMBERS);
            crate::inside::try_solve_on(&plain, &text.replace("[space]", "[space]\nthickness = \"1 + x\""))
                .unwrap()
        };
        are_same(own.map(thick), "thickness");
        let on_sphere = |own: &str| {
            let mesh = "generate = { kind = \"sphere\", h = 0.4, cell = \"quadrilateral\", order = 2 }\n";
            let text = crate::inside::case(2, &format!("{own}{time}"), NUMBERS);
            try_solve(
                &text
                    .replace("[mesh]\n", &format!("[mesh]\n{mesh}"))
                    .replace("[output]", "[output]\nplot = false\nvtu = false"),
            )
            .unwrap()
        };
        are_same(own.map(on_sphere), "sphere");
    }
    // Convection and diffusion at rest are the same too.
    let at_rest = STEADY_EQUATIONS[0]
        .replace("[equation]", "[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0]");
    let (mesh, conditions, _) = &cases[3];
    let both = [STEADY_EQUATIONS[0], &at_rest]
        .map(|own| solve_on(mesh, &crate::inside::case(2, &format!("{own}{conditions}"), NUMBERS)));
    are_same(both, "at rest");
}

#[test]
fn energies_and_integrals_know_interfaces_and_thickness() {
    let fixed = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n";
    let mesh = halves(CellKind::Quadrilateral);
    let energy = |conditions: &str| {
        let text = crate::inside::case(
            2,
            &format!("{}{fixed}{conditions}", STEADY_EQUATIONS[0]),
            &format!("{NUMBERS}, {{ name = \"energy\", kind = \"energy\" }}"),
        );
        solve_on(&mesh, &text.replace("tolerance = 1e-13", "tolerance = 1e-9")).functionals
    };
    // An interface that conducts well is none.
    let (with, without) = (energy("[[interface]]\nwhere = \"wall\"\nconductance = 1e7\n"), energy(""));
    for (name, expected) in &without {
        assert!((with[name] / expected - 1.0).abs() < 1e-5, "{name}: {} and {expected}", with[name]);
    }
    let thick = |thickness: &str| {
        let text = crate::inside::case(2, &format!("{}{fixed}", STEADY_EQUATIONS[0]), NUMBERS);
        solve_on(&mesh, &text.replace("[space]", &format!("[space]\nthickness = {thickness}"))).functionals["whole"]
    };
    is_close(thick("3"), 3.0 * thick("1"), "thickness");
}

#[test]
fn settings_of_newton_need_a_flux_that_depends_on_u() {
    let mesh = halves(CellKind::Triangle);
    let own = "[equation]\nsigma = 2\ninitial = 1\n";
    let fixed = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n";
    let of = |condition: &str| {
        crate::inside::case(1, &format!("{own}{fixed}{condition}"), "") + "nonlinear_tolerance = 1e-10\n"
    };
    for condition in [
        "[[boundary]]\nwhere = \"wall\"\nfrom = \"left\"\nflux = \"1 - u^2\"\n",
        "[[boundary]]\nwhere = \"xmax\"\nfrom = \"right\"\nrobin = { coefficient = \"1 + u^2\", value = 2 }\n",
        "[[boundary]]\nwhere = \"xmax\"\nfrom = \"right\"\nneumann = \"1 - u^3\"\n",
        "[[interface]]\nbetween = [\"left\", \"right\"]\nconductance = \"1 + u_other^2\"\n",
    ] {
        assert!(solve_on(&mesh, &of(condition)).solve.nonlinear.is_some(), "{condition}");
    }
    for condition in [
        "[[boundary]]\nwhere = \"wall\"\nfrom = \"left\"\nflux = \"100\"\n",
        "[[boundary]]\nwhere = \"xmax\"\nflux = \"sin(y)*normal[0]\"\n",
        "[[interface]]\nwhere = \"wall\"\nconductance = 2\n",
    ] {
        let (key, message) = refusal_on(&mesh, &of(condition));
        assert!(
            key == "equation.initial" && message.contains("first iterate"),
            "{condition}: {key}: {message}"
        );
        let (key, message) = refusal_on(&mesh, &of(condition).replace("initial = 1\n", ""));
        assert!(
            key == "solver.nonlinear_tolerance" && message.contains("linear"),
            "{condition}: {key}: {message}"
        );
    }
    let table = "[[interface]]\nwhere = \"wall\"\nconductance = { u = 5 }\n";
    let (key, message) = refusal_on(&mesh, &of(table));
    assert!(
        key == "interface[0].conductance" && message.contains("a table of values by unknown"),
        "{key}: {message}"
    );
}

#[test]
fn ranks_agree_on_facets_inside_a_mesh_that_one_of_them_has_read() {
    let folder = tempfile::tempdir().unwrap();
    femtile_mesh::io::write(&folder.path().join("halves.msh"), &halves(CellKind::Tetrahedron)).unwrap();
    let text = format!(
        "[mesh]\nfile = \"halves.msh\"\n{}[[boundary]]\nwhere = \"wall\"\ndirichlet = 1\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{NUMBERS}]\n",
        STEADY_EQUATIONS[0]
    );
    let found = |n: usize| {
        let work = |comm: Comm| {
            let embedding = Embedding { writes_files: false, comm: Some(comm), ..Embedding::default() };
            let path = folder.path().join("case.toml");
            run(&Case::parse_embedded(&path, text.clone(), Vec::new(), embedding)?, &mut Silent)
        };
        threads::run(n, work, |comm| work(comm).map(drop)).unwrap()
    };
    are_same([found(2), run_in(folder.path(), &text).unwrap()], "ranks");
}

#[test]
fn a_mesh_that_was_read_decides_for_verification_and_systems() {
    let folder = tempfile::tempdir().unwrap();
    for (name, split) in [("t.vtu", SquareSplit::Triangles), ("q.vtu", SquareSplit::Quadrilateral)] {
        let mesh = square(&SquareConfig { cells: [4, 4], split, ..SquareConfig::default() }).unwrap();
        femtile_mesh::io::vtu::write(&folder.path().join(name), &mesh, &[], &[]).unwrap();
        let text = format!(
            "[mesh]\nfile = \"{name}\"\n[space]\ndegree = 2\n[equation]\nlambda = 1\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n\
             [solver]\ndevice = \"cpu\"\n"
        );
        let case = || Case::parse(&folder.path().join("case.toml"), text.clone()).unwrap();
        let verified = femtile_case::verify_exact(&case(), &["u = sin(2*x)*y".into()], 2, &mut Silent);
        let made = CaseSystem::new(case(), &mut Silent);
        if name == "t.vtu" {
            assert!(verified.unwrap().verdict.is_good());
            let error = made.err().unwrap().to_string();
            assert!(error.contains("without `degree` 2 on triangle cells"), "{error}");
        } else {
            assert!(verified.unwrap_err().to_string().contains("--exact makes data for"));
            assert!(made.is_ok());
        }
    }
}

#[test]
fn a_flux_through_facets_inside_makes_diffusion_in_time_a_form() {
    let text = |method: &str| {
        let equation = format!(
            "[equation]\nkind = \"diffusion\"\ndiffusion = 2\ninitial = \"x\"\n\
             [[boundary]]\nwhere = \"wall\"\nneumann = 3\n[time]\nmethod = \"{method}\"\nend = 0.1\nsteps = 4\n"
        );
        crate::inside::case(1, &equation, "{ name = \"wall\", kind = \"flux\", where = \"wall\" }")
    };
    let without_condition =
        |method: &str| text(method).replace("[[boundary]]\nwhere = \"wall\"\nneumann = 3\n", "");
    let mesh = halves(CellKind::Triangle);
    is_close(solve_on(&mesh, &text("bdf2")).functionals["wall"], 3.0, "with a source");
    is_close(solve_on(&mesh, &without_condition("bdf2")).functionals["wall"], 0.0, "without");
    let (key, message) = refusal_on(&mesh, &without_condition("crank-nicolson"));
    assert!(key.starts_with("output.functionals[0]"), "{key}: {message}");
}
