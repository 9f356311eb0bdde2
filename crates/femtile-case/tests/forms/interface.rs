//! Interfaces, across which u jumps.

use std::f64::consts::TAU;

use femtile_mesh::CellKind;

use crate::inside::{ENDS, FLUXES, KINDS, LAPLACE, case, halves, is_close, refusal_on, solve_on, tag_wall};

/// Conduction in two materials, u = 0 and 1 at the ends.
const SLABS: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { k = { by_tag = { left = 1, right = 7 } } }\nflux = \"k*grad(u)\"\n\
    [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 1\n";

fn interface(conductance: &str) -> String {
    format!("[[interface]]\nwhere = \"wall\"\nconductance = {conductance}\n")
}

#[test]
fn resistances_in_series_add_up() {
    for kind in KINDS {
        let mesh = halves(kind);
        let points =
            if mesh.dimension() == 2 { "[0.5, 0.4], [1.5, 0.4]" } else { "[0.5, 0.4, 0.3], [1.5, 0.4, 0.3]" };
        let functionals = format!("{FLUXES}, {{ name = \"at\", kind = \"value_at\", points = [{points}] }}");
        for degree in 1..=3 {
            for (h, tolerance, accuracy) in [(1e-6, "1e-13", 1e-9), (0.5, "1e-13", 1e-9), (1e6, "1e-9", 1e-5)]
            {
                let what = format!("{kind:?}, {degree}, {h}");
                let equation = format!("{SLABS}{}", interface(&format!("{h:e}")));
                let text = case(degree, &equation, &functionals);
                let report =
                    solve_on(&mesh, &text.replace("tolerance = 1e-13", &format!("tolerance = {tolerance}")));
                let found = &report.functionals;
                let q = 1.0 / (1.0 + 1.0 / 7.0 + 1.0 / h);
                for (name, expected) in [
                    ("wall", 0.0),
                    ("left", -q),
                    ("right", q),
                    ("xmin", -q),
                    ("xmax", q),
                    ("max", 1.0),
                    ("at[0]", 0.5 * q),
                    ("at[1]", 1.0 - 0.5 * q / 7.0),
                ] {
                    assert!(
                        (found[name] - expected).abs() < accuracy,
                        "{what}, {name}: {} and {expected}",
                        found[name]
                    );
                }
                assert!(report.solve.iterations < 80, "{what}: {} iterations", report.solve.iterations);
                let more = report.mesh.n_nodes - mesh.n_nodes();
                assert_eq!(more, mesh.points.iter().filter(|point| (point[0] - 1.0).abs() < 1e-9).count());
            }
        }
    }
}

#[test]
fn cylinders_in_contact_conduct_as_the_sum_of_their_resistances() {
    let h = 0.8;
    let resistance = (2.0_f64.ln() + 1.5_f64.ln() / 7.0) / TAU + 1.0 / (h * 2.0 * TAU);
    for kind in [CellKind::Triangle, CellKind::Quadrilateral] {
        let mut mesh = halves(kind);
        mesh.points.iter_mut().for_each(|point| point[0] += 1.0);
        for degree in 1..=3 {
            let text = case(
                degree,
                &format!(
                    "{SLABS}[[interface]]\nbetween = [\"left\", \"right\"]\nname = \"contact\"\nconductance = {h}\n"
                ),
                "{ name = \"q\", kind = \"flux\", where = \"xmax\" }, { name = \"contact\", kind = \"flux\", where = \"contact\", from = \"right\" }",
            );
            let error = |refine: u32| {
                let text =
                    text.replace("[space]", &format!("refine = {refine}\n[space]\naxisymmetric = true"));
                let found = solve_on(&mesh, &text).functionals;
                is_close(found["contact"], found["q"], "balance");
                (found["q"] * resistance - 1.0).abs()
            };
            let [coarse, fine] = [error(0), error(1)];
            let order = (coarse / fine).log2();
            // Fluxes have twice the order of the energy norm.
            assert!(order > 2.0 * f64::from(degree) - 0.5, "{kind:?}, {degree}: {order}, {coarse} {fine}");
        }
    }
}

#[test]
fn solutions_with_a_jump_converge_at_the_order_of_smooth_ones() {
    // u = sin x cos y, and more by its flux over h on the right.
    let (h, right) = (0.5, "(sin(x) + cos(1)/0.5)*cos(y)");
    let mut equation = String::from(
        "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nconstants = { jump = { by_tag = { left = 0, right = 1.0806046117362795 } } }\n\
         flux = \"grad(u)\"\nsource = \"(2*sin(x) + jump)*cos(y)\"\n",
    );
    for side in ["xmin", "ymin", "ymax"] {
        equation +=
            &format!("[[boundary]]\nwhere = \"{side}\"\nfrom = \"left\"\ndirichlet = \"sin(x)*cos(y)\"\n");
    }
    for side in ["xmax", "ymin", "ymax"] {
        equation += &format!("[[boundary]]\nwhere = \"{side}\"\nfrom = \"right\"\ndirichlet = \"{right}\"\n");
    }
    equation += &interface(&h.to_string());
    let exact = "(sin(x) + cos(1)*(1 + (x - 1)/abs(x - 1)))*cos(y)";
    let functionals = format!("{{ name = \"error\", kind = \"error_l2\", exact = \"{exact}\" }}");
    for kind in KINDS {
        let mesh = halves(kind);
        let (degrees, level) = if mesh.dimension() == 2 { (1..=3, 1) } else { (1..=2, 0) };
        for degree in degrees {
            let error = |refine: u32| {
                let text = case(degree, &equation, &functionals)
                    .replace("[space]", &format!("refine = {refine}\n[space]"));
                solve_on(&mesh, &text).functionals["error"]
            };
            let [coarse, fine] = [level, level + 1].map(error);
            let (order, expected) = ((coarse / fine).log2(), f64::from(degree) + 1.0);
            assert!((order - expected).abs() < 0.35, "{kind:?}, {degree}: {order}, {coarse} {fine}");
        }
    }
}

#[test]
fn an_interface_that_ends_inside_lies_between_a_cut_and_no_cut() {
    for kind in [CellKind::Triangle, CellKind::Quadrilateral, CellKind::Hexahedron] {
        let mut mesh = halves(kind);
        mesh.facets.tags.iter_mut().filter(|tag| **tag == 9).for_each(|tag| *tag = 11);
        tag_wall(&mut mesh, 9, &|[_, y, _]| y < 0.7);
        let sides = ["left", "right"].map(|from| {
            format!(", {{ name = \"all {from}\", kind = \"flux\", where = 11, from = \"{from}\" }}")
        });
        let flux = |interface: &str| {
            let text = case(2, &format!("{SLABS}{interface}"), &format!("{FLUXES}{}", sides.concat()));
            let found = solve_on(&mesh, &text.replace("tolerance = 1e-13", "tolerance = 1e-11")).functionals;
            is_close(found["xmin"] + found["xmax"], 0.0, "balance");
            // At the end of the interface alone the sides share what flows in another way.
            is_close(found["all left"] + found["all right"], 0.0, "sides");
            is_close(found["all right"], found["xmax"], "right");
            found["xmax"]
        };
        let (insulated, half, perfect) =
            (flux(&interface("0")), flux(&interface("1")), flux(&interface("1e5")));
        let without = flux("");
        is_close(without, 1.0 / (1.0 + 1.0 / 7.0), "without");
        assert!((perfect - without).abs() < 1e-3, "{kind:?}: {perfect} and {without}");
        assert!(
            0.1 < insulated && insulated + 0.02 < half && half + 0.02 < without,
            "{kind:?}: {insulated} {half} {without}"
        );
    }
}

#[test]
fn without_conductance_both_sides_are_alone() {
    let mesh = halves(CellKind::Triangle);
    let found = solve_on(&mesh, &case(2, &format!("{SLABS}{}", interface("0")), FLUXES)).functionals;
    for name in ["left", "right", "xmin", "xmax"] {
        assert!(found[name].abs() < 1e-10, "{name}: {}", found[name]);
    }
    let held = format!("{LAPLACE}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 3\n");
    let (key, message) = refusal_on(&mesh, &case(1, &format!("{held}{}", interface("0")), ""));
    assert!(key == "boundary" && message.contains("in the part of the mesh with"), "{key}: {message}");
    let mean = "{ name = \"mean\", kind = \"mean\" }";
    let found = solve_on(&mesh, &case(1, &format!("{held}{}", interface("2")), mean)).functionals;
    is_close(found["mean"], 3.0, "held across the interface");
    let (key, message) = refusal_on(&mesh, &case(1, &format!("{LAPLACE}{}", interface("2")), ""));
    assert!(key == "boundary" && message.contains("nothing determines u"), "{key}: {message}");
}

#[test]
fn radiation_across_a_gap_depends_on_both_sides() {
    // q = (b⁴ − a⁴)/2 with a = 1 + q at the left of the gap, b = 2 − q at the right.
    let mut q = 1.0;
    for _ in 0..100 {
        let (a, b): (f64, f64) = (1.0 + q, 2.0 - q);
        q -= (q - 0.5 * (b.powi(4) - a.powi(4))) / (1.0 + 2.0 * (b.powi(3) + a.powi(3)));
    }
    let ends = ENDS.replacen("dirichlet = 0", "dirichlet = 1", 1).replace("dirichlet = 0", "dirichlet = 2");
    let gap = interface("\"(u^2 + u_other^2)*(u + u_other)/2\"");
    for kind in KINDS {
        let mesh = halves(kind);
        for from in ["left", "right"] {
            let text = case(2, &format!("{LAPLACE}initial = 1\n{ends}{gap}from = \"{from}\"\n"), FLUXES)
                + "nonlinear_tolerance = 1e-13\n";
            let found = solve_on(&mesh, &text).functionals;
            is_close(found["right"], q, &format!("{kind:?}, {from}"));
            is_close(found["left"], -q, &format!("{kind:?}, {from}"));
        }
        let (key, message) = refusal_on(&mesh, &case(1, &format!("{LAPLACE}{ends}{gap}"), ""));
        assert!(key == "interface[0]" && message.contains("`from = "), "{key}: {message}");
    }
    // A conductance that is not the same both ways is that of the side of u.
    let mesh = halves(CellKind::Triangle);
    let text = |from: &str| {
        case(1, &format!("{LAPLACE}initial = 1\n{ends}{}from = \"{from}\"\n", interface("\"u\"")), FLUXES)
            + "nonlinear_tolerance = 1e-13\n"
    };
    for (from, of_right) in [("left", false), ("right", true)] {
        let q = solve_on(&mesh, &text(from)).functionals["right"];
        let (a, b) = (1.0 + q, 2.0 - q);
        is_close(q, if of_right { b } else { a } * (b - a), from);
    }
}

#[test]
fn a_soft_joint_takes_its_part_of_the_stretch() {
    for kind in KINDS {
        let mesh = halves(kind);
        let [zeros, pulled] =
            if mesh.dimension() == 2 { ["[0, 0]", "[1, 0]"] } else { ["[0, 0, 0]", "[1, 0, 0]"] };
        let body = format!(
            "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = {zeros}\n\
             [[boundary]]\nwhere = \"xmax\"\ndirichlet = {pulled}\n[[interface]]\nwhere = \"wall\"\nstiffness = 4\n"
        );
        for degree in 1..=2 {
            let found = solve_on(&mesh, &case(degree, &body, FLUXES)).functionals;
            let force = 1.0 / (0.2 + 0.25);
            is_close(found["xmax[0]"], force, &format!("{kind:?}, {degree}"));
            is_close(found["left[0]"], -force, &format!("{kind:?}, {degree}"));
            assert!(found["xmax[1]"].abs() < 1e-10);
        }
    }
}

#[test]
fn in_time_what_leaves_one_side_enters_the_other() {
    let equation = format!(
        "{}capacity = 3\nsource = \"on\"\n{}[time]\nend = 2\nsteps = 4\n",
        SLABS
            .split("[[boundary]]")
            .next()
            .unwrap()
            .replace("k = {", "on = { by_tag = { left = 1, right = 0 } }, k = {"),
        interface("0.5")
    );
    let functionals = "{ name = \"all\", kind = \"integral\" }, { name = \"min\", kind = \"min\" }, { name = \"max\", kind = \"max\" }";
    for kind in KINDS {
        let found = solve_on(&halves(kind), &case(1, &equation, functionals)).functionals;
        is_close(found["all"], 2.0 / 3.0, &format!("{kind:?}"));
        assert!(0.0 < found["min"] && found["min"] + 0.1 < found["max"], "{kind:?}: {found:?}");
    }
}

#[test]
fn modes_of_two_bodies_in_contact() {
    // cos ωx on the left, its mirror with the other sign on the right: ω tan ω = 2h.
    let h = 0.5;
    let (mut low, mut high) = (0.0_f64, 1.5_f64);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if middle * middle.tan() < 2.0 * h { low = middle } else { high = middle }
    }
    let equation = format!("{LAPLACE}capacity = 1\n{}[modes]\ncount = 2\n", interface(&h.to_string()));
    let text = case(3, &equation, "").replace("tolerance = 1e-13", "tolerance = 1e-10");
    let report = solve_on(&halves(CellKind::Quadrilateral), &text);
    let found: Vec<f64> = report.modes.iter().map(|mode| mode.eigenvalue).collect();
    assert!(found[0].abs() < 1e-8 && (found[1] / (low * low) - 1.0).abs() < 1e-6, "{found:?}");
}

#[test]
fn several_unknowns_have_a_conductance_each() {
    let two = "[unknown]\na = {}\nb = {}\n[equation]\nkind = \"form\"\nflux = { a = \"grad(a)\", b = \"grad(b)\" }\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = { a = 0, b = 0 }\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = { a = 1, b = 1 }\n";
    let mesh = halves(CellKind::Triangle);
    let q = "{ name = \"q\", kind = \"flux\", where = \"xmax\" }";
    let found =
        solve_on(&mesh, &case(1, &format!("{two}{}", interface("{ a = 0.5, b = \"x\" }")), q)).functionals;
    is_close(found["q[a]"], 0.25, "a");
    is_close(found["q[b]"], 1.0 / 3.0, "b");
    for (value, expected) in [
        ("2", "there is none of `a`"),
        ("{ a = 2 }", "there is none of `b`"),
        ("{ a = 2, b = 1, c = 1 }", "there is no unknown `c`"),
    ] {
        let (key, message) = refusal_on(&mesh, &case(1, &format!("{two}{}", interface(value)), ""));
        assert!(
            key.starts_with("interface[0].conductance") && message.contains(expected),
            "{key}: {message}"
        );
    }
}

#[test]
fn interfaces_without_meaning_are_refused_with_their_place() {
    let mesh = halves(CellKind::Triangle);
    let good = case(1, &format!("{SLABS}{}", interface("2")), "");
    solve_on(&mesh, &good);
    let line = "where = \"wall\"\nconductance = 2";
    for (from, to, key, expected) in [
        (line, "conductance = 2", "interface[0]", "give `where`"),
        (
            line,
            "where = \"wall\"\nbetween = [\"left\", \"right\"]\nconductance = 2",
            "interface[0]",
            "give `where`",
        ),
        (line, "where = \"wall\"", "interface[0]", "the key `conductance` is missing"),
        (line, "where = \"wall\"\nstiffness = 2", "interface[0].stiffness", "has `conductance`"),
        (line, "where = \"wall\"\nname = \"w\"\nconductance = 2", "interface[0].name", "leave this out"),
        (line, "where = \"gap\"\nconductance = 2", "interface[0].where", "there is no tag `gap`"),
        (line, "where = \"xmin\"\nconductance = 2", "interface[0].where", "on no facet between cells"),
        (
            line,
            "between = [\"left\", \"middle\"]\nconductance = 2",
            "interface[0].between[1]",
            "no cell has the tag `middle`",
        ),
        (line, "between = [\"left\", \"left\"]\nconductance = 2", "interface[0].between", "the same cells"),
        (
            line,
            "between = [\"left\", \"right\"]\nname = \"wall\"\nconductance = 2",
            "interface[0].name",
            "choose another one",
        ),
        ("conductance = 2", "conductance = -2", "interface[0].conductance", "not negative"),
        ("conductance = 2", "conductance = inf", "interface[0].conductance", "must be finite"),
        (
            "conductance = 2",
            "conductance = \"y - 0.5\"",
            "interface[0].conductance",
            "must be finite and not negative",
        ),
        ("conductance = 2", "conductance = \"2*w\"", "interface[0]", "w"),
        (
            line,
            "where = \"wall\"\nconductance = 2\n[[interface]]\nwhere = \"wall\"\nconductance = 1",
            "interface[1]",
            "one of an earlier interface",
        ),
        (
            line,
            "where = \"wall\"\nfrom = \"middle\"\nconductance = 2",
            "interface[0].from",
            "no cell has the tag `middle`",
        ),
        (
            line,
            "where = \"wall\"\nconductance = 2\n[[boundary]]\nwhere = \"wall\"\nflux = \"1\"",
            "boundary[2].where",
            "whose sides have a value each",
        ),
        ("device = \"cpu\"", "device = \"cpu\"\nranks = 2", "solver.ranks", "computed by one rank"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let (found, message) = refusal_on(&mesh, &text);
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
    let mut mixed = mesh;
    let end = mixed.facets.tags.iter().position(|&tag| tag == 1).unwrap();
    mixed.facets.tags[end] = 9;
    let (key, message) = refusal_on(&mixed, &good);
    assert!(key == "interface[0].where" && message.contains("on 1 facets with one cell"), "{key}: {message}");
}

#[test]
fn a_source_on_one_side_of_an_interface_is_of_that_side() {
    let mesh = halves(CellKind::Hexahedron);
    let heated = "[[boundary]]\nwhere = \"wall\"\nfrom = \"left\"\nflux = \"3\"\n";
    let found =
        solve_on(&mesh, &case(2, &format!("{LAPLACE}{ENDS}{}{heated}", interface("1")), FLUXES)).functionals;
    // 3 divides between the resistance 1 of the left and 1 + 1 of contact and right.
    for (name, expected) in
        [("wall", 3.0), ("xmin", -2.0), ("xmax", -1.0), ("left", -2.0), ("right", -1.0), ("max", 2.0)]
    {
        is_close(found[name], expected, name);
    }
}

#[test]
fn an_interface_that_reaches_periodic_sides_keeps_its_jump() {
    for kind in KINDS {
        let mut mesh = halves(kind);
        let n = if mesh.dimension() == 2 { 6.0 } else { 4.0 };
        mesh.points.iter_mut().for_each(|[x, _, _]| *x = (*x * n * 0.5).round() / (n * 0.5));
        let axes = if mesh.dimension() == 2 { "y" } else { "yz" };
        let sides: String =
            axes.chars().map(|a| format!("[[periodic]]\nfrom = \"{a}min\"\nto = \"{a}max\"\n")).collect();
        for (h, degree) in [(0.0, 1), (0.0, 2), (2.0, 2)] {
            let text = case(degree, &format!("{SLABS}{}{sides}", interface(&h.to_string())), FLUXES);
            let found = solve_on(&mesh, &text).functionals;
            let q = if h == 0.0 { 0.0 } else { 1.0 / (1.0 + 1.0 / 7.0 + 1.0 / h) };
            for (name, expected) in [("left", -q), ("right", q), ("xmin", -q), ("xmax", q)] {
                is_close(found[name], expected, &format!("{kind:?}, {degree}, {h}, {name}"));
            }
        }
    }
}

#[test]
fn an_interface_of_two_thicknesses_is_refused() {
    let mesh = halves(CellKind::Triangle);
    for (place, thickness, is_refused) in [
        ("where = \"wall\"", "{ by_tag = { left = 1, right = 2 } }", true),
        ("between = [\"left\", \"right\"]", "{ by_tag = { left = 1, right = 2 } }", true),
        ("between = [\"left\", \"right\"]", "\"1 + x\"", false),
    ] {
        let text = case(1, &format!("{SLABS}[[interface]]\n{place}\nconductance = 2\n"), "");
        let text = text.replace("degree = 1", &format!("degree = 1\nthickness = {thickness}"));
        if is_refused {
            let (key, message) = refusal_on(&mesh, &text);
            assert!(key == "interface[0]" && message.contains("the thickness differs"), "{key}: {message}");
        } else {
            solve_on(&mesh, &text);
        }
    }
}
