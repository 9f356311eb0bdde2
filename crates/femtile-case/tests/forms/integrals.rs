//! Integrals and means of formulas over cells and facets.

use std::f64::consts::{PI, TAU};

use femtile_mesh::CellKind;

use crate::inside::{ENDS, KINDS, LAPLACE, case, halves, is_close, refusal_on, solve_on};
use crate::{refusal, solve};

fn on_square(equation: &str, degree: u32, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [4, 3] }}\n[space]\ndegree = {degree}\n{equation}\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n[output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n"
    )
}

/// −Δu = −2 with u = x² + y.
const PARABOLA: &str = "[equation]\nsource = -2\nconstants = { k = 3 }\n[[boundary]]\nwhere = \"xmin\"\nflux = \"0*k\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"1 + y\"\n\
    [[boundary]]\nwhere = \"ymin\"\nneumann = -1\n[[boundary]]\nwhere = \"ymax\"\nneumann = 1\n";

#[test]
fn a_quadratic_solution_has_its_integrals_over_sides_and_cells() {
    let functionals = "{ name = \"side\", kind = \"integral\", where = \"xmax\" }, { name = \"mean\", kind = \"mean\", where = \"ymax\" }, \
        { name = \"flux\", kind = \"integral\", where = \"xmax\", formula = \"k*grad(u).normal\" }, \
        { name = \"square\", kind = \"mean\", where = \"xmax\", formula = \"u^2\" }, \
        { name = \"place\", kind = \"integral\", where = \"all\", formula = \"[x, y].normal\" }, \
        { name = \"moment\", kind = \"integral\", formula = \"x*u\" }, { name = \"slope\", kind = \"mean\", formula = \"grad(u).grad(u)\" }";
    let found = solve(&on_square(PARABOLA, 2, functionals)).functionals;
    for (name, expected) in [
        ("side", 1.5),
        ("mean", 4.0 / 3.0),
        ("flux", 6.0),
        ("square", 7.0 / 3.0),
        ("place", 2.0),
        ("moment", 0.5),
        ("slope", 7.0 / 3.0),
    ] {
        is_close(found[name], expected, name);
    }
    assert_eq!(found.len(), 7);
}

#[test]
fn facets_inside_count_once_and_gradients_are_those_of_the_named_side() {
    // u = 3/2 min(x, 2 − x): the wall at x = 1 has the height and the width 1.
    let functionals = "{ name = \"area\", kind = \"integral\", where = \"wall\", formula = \"1\" }, \
        { name = \"u\", kind = \"mean\", where = \"wall\" }, \
        { name = \"left\", kind = \"integral\", where = \"wall\", from = \"left\", formula = \"grad(u).normal\" }, \
        { name = \"right\", kind = \"integral\", where = \"wall\", from = \"right\", formula = \"grad(u).normal\" }";
    for kind in KINDS {
        let mesh = halves(kind);
        for degree in 1..=2 {
            let equation = format!("{LAPLACE}{ENDS}[[boundary]]\nwhere = \"wall\"\nflux = \"3\"\n");
            let found = solve_on(&mesh, &case(degree, &equation, functionals)).functionals;
            for (name, expected) in [("area", 1.0), ("u", 1.5), ("left", 1.5), ("right", 1.5)] {
                is_close(found[name], expected, &format!("{kind:?}, {degree}, {name}"));
            }
        }
    }
}

#[test]
fn both_values_at_an_interface_have_their_means() {
    let mesh = halves(CellKind::Triangle);
    let equation = format!(
        "{LAPLACE}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n\
         [[interface]]\nwhere = \"wall\"\nconductance = 0.5\n"
    );
    let functionals = "{ name = \"left\", kind = \"mean\", where = \"wall\", from = \"left\" }, { name = \"right\", kind = \"mean\", where = \"wall\", from = \"right\" }";
    let found = solve_on(&mesh, &case(1, &equation, functionals)).functionals;
    is_close(found["left"], 0.25, "left");
    is_close(found["right"], 0.75, "right");
    let without = case(1, &equation, "{ name = \"m\", kind = \"mean\", where = \"wall\" }");
    let (key, message) = refusal_on(&mesh, &without);
    assert!(key == "output.functionals[0].where" && message.contains("from"), "{key}: {message}");
}

#[test]
fn bodies_of_revolution_sheets_vectors_and_several_unknowns_have_them() {
    let linear = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = \"y\"\n";
    let functionals = "{ name = \"side\", kind = \"integral\", where = \"xmax\" }, { name = \"mean\", kind = \"mean\", where = \"ymax\", formula = \"x\" }";
    let text = on_square(linear, 1, functionals);
    let found = solve(&text.replace("[space]", "[space]\naxisymmetric = true")).functionals;
    is_close(found["side"], TAU * 0.5, "side");
    is_close(found["mean"], 2.0 / 3.0, "mean");
    let found = solve(&text.replace("[space]", "[space]\nthickness = \"2 + y\"")).functionals;
    is_close(found["side"], 1.0 + 1.0 / 3.0, "side of a sheet");
    let elastic = "[equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0.3\n[[boundary]]\nwhere = \"all\"\ndirichlet = [\"x\", \"2*y\"]\n";
    let functionals = "{ name = \"m\", kind = \"mean\", where = \"xmax\" }, { name = \"n\", kind = \"integral\", where = \"ymax\", formula = \"u.normal\" }, \
        { name = \"tr\", kind = \"mean\", formula = \"div(u)\" }";
    let found = solve(&on_square(elastic, 1, functionals)).functionals;
    for (name, expected) in [("m[0]", 1.0), ("m[1]", 1.0), ("n", 2.0), ("tr", 3.0)] {
        is_close(found[name], expected, name);
    }
    let two = "[unknown]\nu = {}\nT = {}\n[equation]\nkind = \"form\"\nflux = { u = \"grad(u)\", T = \"grad(T)\" }\n\
        [[boundary]]\nwhere = \"all\"\ndirichlet = { u = \"x\", T = \"2*y\" }\n";
    let functionals = "{ name = \"p\", kind = \"integral\", where = \"xmax\", formula = \"u*T\" }, { name = \"m\", kind = \"mean\", where = \"ymax\" }";
    let found = solve(&on_square(two, 1, functionals)).functionals;
    for (name, expected) in [("p", 1.0), ("m[u]", 0.5), ("m[T]", 2.0)] {
        is_close(found[name], expected, name);
    }
    // The area of a sphere, and its moment.
    let sphere = "[mesh]\ngenerate = { kind = \"sphere\", h = 0.4, cell = \"quadrilateral\", order = 3 }\n[space]\ndegree = 3\n[equation]\nlambda = 1\nsource = 1\n\
        [solver]\ndevice = \"cpu\"\n[output]\nplot = false\nvtu = false\nfunctionals = [{ name = \"a\", kind = \"integral\", formula = \"x^2\" }]\n";
    assert!((solve(sphere).functionals["a"] - 4.0 * PI / 3.0).abs() < 1e-4);
}

#[test]
fn they_are_traced_in_time() {
    let equation = "[equation]\nkind = \"diffusion\"\ninitial = \"x\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"x\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[time]\nmethod = \"bdf2\"\nend = 1\nsteps = 2\n";
    let functionals = "{ name = \"m\", kind = \"integral\", where = \"ymax\", formula = \"t*u\" }, { name = \"c\", kind = \"integral\", formula = \"u*x\" }";
    let found = solve(&on_square(equation, 1, functionals)).functionals;
    is_close(found["m"], 0.5, "m");
    is_close(found["c"], 1.0 / 3.0, "c");
}

#[test]
fn formulas_and_places_that_make_no_sense_are_refused() {
    let of = |functional: &str| refusal(&on_square(PARABOLA, 1, functional));
    for (functional, key, expected) in [
        ("{ name = \"a\", kind = \"integral\", where = \"nowhere\" }", "where", "nowhere"),
        ("{ name = \"a\", kind = \"mean\", where = \"xmax\", formula = \"v\" }", "formula", "v"),
        ("{ name = \"a\", kind = \"mean\", formula = \"grad(u)\" }", "formula", ""),
        ("{ name = \"a\", kind = \"mean\", where = \"xmax\", formula = \"grad(u)\" }", "formula", ""),
        ("{ name = \"a\", kind = \"mean\", formula = \"normal[0]\" }", "formula", "normal"),
        ("{ name = \"a\", kind = \"mean\", from = \"left\" }", "from", "`where`"),
    ] {
        let (found, message) = of(functional);
        assert!(
            found == format!("output.functionals[0].{key}") && message.contains(expected),
            "{functional}: {found}: {message}"
        );
    }
    let grid = "[mesh]\ngenerate = { kind = \"grid\", nodes = [5, 5] }\n[equation]\nkind = \"diffusion\"\ninitial = 1\n[time]\nend = 1\nsteps = 2\n\
        [output]\nplot = false\nfunctionals = [{ name = \"a\", kind = \"mean\", formula = \"u^2\" }]\n";
    let (key, message) = refusal(grid);
    assert!(
        key == "output.functionals[0].formula" && message.contains("finite elements"),
        "{key}: {message}"
    );
    // Of the side of facets inside the mesh.
    let mesh = halves(CellKind::Quadrilateral);
    let text = case(
        1,
        &format!("{LAPLACE}{ENDS}"),
        "{ name = \"g\", kind = \"integral\", where = \"wall\", formula = \"grad(u).normal\" }",
    );
    let (key, message) = refusal_on(&mesh, &text);
    assert!(key == "output.functionals[0].where" && message.contains("from"), "{key}: {message}");
}
