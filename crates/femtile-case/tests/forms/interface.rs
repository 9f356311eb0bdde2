//! Interfaces, across which u jumps.

use std::f64::consts::TAU;

use femtile_mesh::{CellKind, Mesh};

use crate::inside::{
    ENDS, FLUXES, KINDS, LAPLACE, WALL, case, halves, is_close, refusal_on, solve_on, tag_wall,
};

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
    let functionals = "{ name = \"all\", kind = \"integral\" }, { name = \"min\", kind = \"min\" }, { name = \"max\", kind = \"max\" }, \
        { name = \"left\", kind = \"flux\", where = \"wall\", from = \"left\" }, { name = \"right\", kind = \"flux\", where = \"wall\", from = \"right\" }";
    for kind in KINDS {
        let found = solve_on(&halves(kind), &case(1, &equation, functionals)).functionals;
        is_close(found["left"] + found["right"], 0.0, &format!("{kind:?}: wall"));
        assert!(found["left"] > 0.01, "{kind:?}: {found:?}");
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

#[test]
fn a_flux_of_its_own_flows_from_the_second_side_into_the_first() {
    let functionals =
        format!("{FLUXES}, {{ name = \"low\", kind = \"mean\", where = \"wall\", from = \"left\" }}");
    for kind in KINDS {
        let mesh = halves(kind);
        let of = |interface: &str| {
            let equation = format!("{SLABS}[[interface]]\nwhere = \"wall\"\nfrom = \"left\"\n{interface}\n");
            solve_on(&mesh, &case(2, &equation, &functionals)).functionals
        };
        let (own, expected) = (of("flux = \"0.5*(u_other - u)\""), of("conductance = 0.5"));
        for (name, expected) in &expected {
            is_close(own[name], *expected, name);
        }
        // A diode: u_other − u = ln(1 + q).
        let found = of("flux = \"exp(u_other - u) - 1\"");
        let mut q = 0.5;
        for _ in 0..50 {
            q -= (q * (1.0 + 1.0 / 7.0) + f64::ln_1p(q) - 1.0) / (1.0 + 1.0 / 7.0 + 1.0 / (1.0 + q));
        }
        for (name, expected) in [("left", -q), ("right", q), ("xmax", q), ("low", q)] {
            assert!(
                (found[name] - expected).abs() < 1e-6,
                "{kind:?}, {name}: {} and {expected}",
                found[name]
            );
        }
        // The other way round it takes another flux.
        let equation = format!(
            "{SLABS}[[interface]]\nbetween = [\"right\", \"left\"]\nname = \"wall\"\nflux = \"0.5*(u_other - u)\"\n"
        );
        let mut cut = mesh.clone();
        cut.tag_names.retain(|_, name| name != "wall");
        let found = solve_on(&cut, &case(1, &equation, FLUXES)).functionals;
        is_close(found["xmax"], expected["xmax"], "between");
    }
}

#[test]
fn layers_have_a_stiffness_along_the_normal_and_another_across_it() {
    let ends = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    for kind in KINDS {
        let mesh = halves(kind);
        let d = mesh.dimension();
        let vector =
            |x: &str, y: &str| if d == 2 { format!("[{x}, {y}]") } else { format!("[{x}, {y}, \"0\"]") };
        let wall = "[[interface]]\nwhere = \"wall\"\nstiffness = { normal = 5, tangential = \"2\" }\n";
        let elastic = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n";
        // A bar of length 2, drawn by 3.
        let equation =
            format!("{elastic}{ends}{wall}[[boundary]]\nwhere = \"xmax\"\ntraction = {}\n", vector("3", "0"));
        let found =
            solve_on(&mesh, &case(1, &equation, "{ name = \"end\", kind = \"mean\", where = \"xmax\" }"))
                .functionals;
        is_close(found["end[0]"], 0.6 + 3.0 / 5.0, &format!("{kind:?}, drawn"));
        // Sheared by 1 with the shear modulus 5.
        let t = 1.0 / (2.0 / 5.0 + 1.0 / 2.0);
        let (plus, minus) = (vector(&format!("{t}"), "0"), vector(&format!("{}", -t), "0"));
        let equation = format!(
            "{elastic}{ends}{wall}[[boundary]]\nwhere = \"xmax\"\ndirichlet = {}\n[[boundary]]\nwhere = \"ymax\"\ntraction = {plus}\n\
             [[boundary]]\nwhere = \"ymin\"\ntraction = {minus}\n",
            vector("0", "1")
        );
        let found =
            solve_on(&mesh, &case(1, &equation, "{ name = \"f\", kind = \"flux\", where = \"xmax\" }"))
                .functionals;
        is_close(found["f[1]"], t, &format!("{kind:?}, sheared"));
    }
}

#[test]
fn fluxes_across_interfaces_without_a_side_or_beside_a_conductance_are_refused() {
    let mesh = halves(CellKind::Triangle);
    let of = |interface: &str| {
        refusal_on(&mesh, &case(1, &format!("{SLABS}[[interface]]\nwhere = \"wall\"\n{interface}\n"), FLUXES))
    };
    for (interface, key, expected) in [
        ("flux = \"u_other - u\"", "interface[0].flux", "from"),
        (
            "from = \"left\"\nflux = \"u_other - u\"\nconductance = 1",
            "interface[0].flux",
            "leave one of them out",
        ),
        ("from = \"left\"\nflux = { v = \"1\" }", "interface[0].flux", "there is none of `u`"),
        ("from = \"left\"\nflux = \"w - u\"", "interface[0]", "w"),
        ("stiffness = { normal = 1, tangential = 1 }", "interface[0].stiffness", "has `conductance`"),
    ] {
        let (found, message) = of(interface);
        assert!(found == key && message.contains(expected), "{interface}: {found}: {message}");
    }
    let elastic = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let text = case(
        1,
        &format!("{elastic}[[interface]]\nwhere = \"wall\"\nstiffness = {{ normal = 1, tangential = -1 }}\n"),
        "",
    );
    let (key, message) = refusal_on(&mesh, &text);
    assert!(
        key == "interface[0].stiffness.tangential" && message.contains("not negative"),
        "{key}: {message}"
    );
}

/// Both halves with nodes of their own; their sides at the wall have the tags `a` and `b`.
fn apart(kind: CellKind) -> Mesh {
    let mut mesh = halves(kind);
    let pairs = mesh.tagged_inner_facets(|_| true);
    mesh.split(&pairs).unwrap();
    let d = mesh.dimension();
    mesh.tag_names.retain(|_, name| name != "wall");
    let (n, old) = (mesh.kind.facets()[0].len(), std::mem::take(&mut mesh.facets));
    for (nodes, tag) in old.nodes.chunks_exact(n).zip(old.tags).filter(|(_, tag)| *tag != WALL) {
        mesh.facets.nodes.extend(nodes);
        mesh.facets.tags.push(tag);
    }
    for pair in pairs {
        for side in pair {
            let is_left = mesh.cell_tags[side.cell as usize] == 1;
            let nodes: Vec<u32> = mesh.side(side).collect();
            mesh.facets.nodes.extend(nodes);
            mesh.facets.tags.push(if is_left { 11 } else { 12 });
        }
    }
    mesh.tag_names.extend([((d - 1, 11), "a".into()), ((d - 1, 12), "b".into())]);
    mesh
}

#[test]
fn parts_that_touch_have_the_solution_of_a_mesh_that_is_cut() {
    let functionals = "{ name = \"a\", kind = \"flux\", where = \"a\", from = \"left\" }, { name = \"b\", kind = \"flux\", where = \"b\", from = \"right\" }, \
        { name = \"all\", kind = \"flux\", where = \"all\" }, { name = \"low\", kind = \"mean\", where = \"a\", from = \"left\" }, { name = \"high\", kind = \"mean\", where = \"b\", from = \"right\" }";
    for kind in KINDS {
        let mesh = apart(kind);
        for degree in 1..=2 {
            let equation = format!("{SLABS}[[interface]]\nsides = [\"a\", \"b\"]\nconductance = 0.5\n");
            let found = solve_on(&mesh, &case(degree, &equation, functionals)).functionals;
            let q = 1.0 / (1.0 + 1.0 / 7.0 + 2.0);
            for (name, expected) in [("a", -q), ("b", q), ("all", 0.0), ("low", q), ("high", 3.0 * q)] {
                is_close(found[name], expected, &format!("{kind:?}, {degree}, {name}"));
            }
        }
    }
}

#[test]
fn sides_that_do_not_match_are_refused_with_the_distance() {
    let text = |sides: &str| case(1, &format!("{SLABS}[[interface]]\n{sides}\nconductance = 0.5\n"), "");
    let mut mesh = apart(CellKind::Triangle);
    let (key, message) = refusal_on(&mesh, &text("sides = [\"a\", \"a\"]"));
    assert!(key == "interface[0].sides" && message.contains("the same facets"), "{key}: {message}");
    let (key, message) = refusal_on(&mesh, &text("sides = [\"a\", \"b\"]\nwhere = \"a\""));
    assert!(key == "interface[0]" && message.contains("`sides`"), "{key}: {message}");
    let (key, message) = refusal_on(&mesh, &text("sides = [\"a\", \"b\"]\nfrom = \"left\""));
    assert!(key == "interface[0].from" && message.contains("leave this out"), "{key}: {message}");
    // A gap of 0.25.
    for cell in (0..mesh.n_cells()).filter(|&cell| mesh.cell_tags[cell] == 2) {
        let nodes = mesh.cell(cell).to_vec();
        for node in nodes {
            let x = &mut mesh.points[node as usize][0];
            *x = if *x < 10.0 { *x + 10.25 } else { *x };
        }
    }
    mesh.points.iter_mut().for_each(|point| point[0] -= if point[0] > 10.0 { 10.0 } else { 0.0 });
    let (key, message) = refusal_on(&mesh, &text("sides = [\"a\", \"b\"]"));
    assert!(key == "interface[0].sides" && message.contains("2.500e-1 away"), "{key}: {message}");
}

#[test]
fn each_side_of_parts_that_touch_has_conditions_and_functionals_by_its_tag() {
    let touch =
        |conductance: &str| format!("[[interface]]\nsides = [\"a\", \"b\"]\nconductance = {conductance}\n");
    let functionals = "{ name = \"a\", kind = \"flux\", where = \"a\" }, { name = \"b\", kind = \"flux\", where = \"b\" }, \
        { name = \"low\", kind = \"mean\", where = \"a\" }, { name = \"high\", kind = \"mean\", where = \"b\" }, \
        { name = \"area\", kind = \"integral\", formula = \"u*normal[0]\", where = \"b\" }";
    for kind in KINDS {
        let mut mesh = apart(kind);
        let q = 1.0 / (1.0 + 1.0 / 7.0 + 2.0);
        let found = solve_on(&mesh, &case(2, &format!("{SLABS}{}", touch("0.5")), functionals)).functionals;
        for (name, expected) in [("a", q), ("b", -q), ("low", q), ("high", 3.0 * q), ("area", -3.0 * q)] {
            is_close(found[name], expected, &format!("{kind:?}, {name}"));
        }
        // 3 divides between the resistance 1 of its half and 1 + 1 of contact and the other half.
        let ends = "{ name = \"xmin\", kind = \"flux\", where = \"xmin\" }, { name = \"xmax\", kind = \"flux\", where = \"xmax\" }";
        for (condition, flows) in [
            ("where = \"a\"\nneumann = 3", [-2.0, -1.0]),
            ("where = \"b\"\nneumann = 3", [-1.0, -2.0]),
            ("where = \"b\"\nflux = \"-3*normal[0]\"", [-1.0, -2.0]),
            ("where = \"b\"\ntotal = 3", [-1.0, -2.0]),
        ] {
            let equation = format!("[equation]\nsigma = 1\n{ENDS}{}[[boundary]]\n{condition}\n", touch("1"));
            let found = solve_on(&mesh, &case(2, &equation, ends)).functionals;
            is_close(found["xmin"], flows[0], condition);
            is_close(found["xmax"], flows[1], condition);
        }
        // Both parts have the same tag of cells.
        mesh.cell_tags.fill(1);
        let ends = ENDS.replace("where = \"xmax\"\ndirichlet = 0", "where = \"xmax\"\ndirichlet = 1");
        let functionals = "{ name = \"a\", kind = \"flux\", where = \"a\", from = \"left\" }, { name = \"b\", kind = \"flux\", where = \"b\", from = \"left\" }";
        let found =
            solve_on(&mesh, &case(1, &format!("{LAPLACE}{ends}{}", touch("0.5")), functionals)).functionals;
        is_close(found["a"], -0.25, "a from its part");
        is_close(found["b"], 0.25, "b from its part");
    }
}

#[test]
fn parts_that_an_interface_does_not_hold_are_refused() {
    let mesh = halves(CellKind::Triangle);
    let two = "[unknown]\nT = {}\nc = {}\n[equation]\nkind = \"form\"\nflux = { T = \"grad(T)\", c = \"grad(c)\" }\n\
        [[boundary]]\nwhere = \"xmin\"\ndirichlet = { T = 0, c = 0 }\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = { T = 1 }\n";
    let held = format!("{LAPLACE}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 3\n");
    let own = |flux: &str| format!("[[interface]]\nwhere = \"wall\"\nfrom = \"left\"\nflux = \"{flux}\"\n");
    let elastic = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let stiffness = |tangential: &str| {
        format!(
            "{elastic}[[interface]]\nwhere = \"wall\"\nstiffness = {{ normal = 5e6, tangential = {tangential} }}\n"
        )
    };
    for (equation, expected) in [
        (format!("{two}{}", interface("{ T = 5, c = 0 }")), "a constant of c"),
        (stiffness("0"), "translation along y"),
        (format!("{held}{}", own("5*u")), "in the part of the mesh with"),
        // Conserved, but without a value in both parts: the data need not balance.
        (format!("{LAPLACE}{}", own("u_other - y*u")), "nothing determines u"),
    ] {
        let (key, message) = refusal_on(&mesh, &case(1, &equation, ""));
        assert!(key == "boundary" && message.contains(expected), "{equation}: {key}: {message}");
    }
    let mut oblique = mesh.clone();
    oblique.points.iter_mut().for_each(|[x, y, _]| (*x, *y) = (0.8 * *x - 0.6 * *y, 0.6 * *x + 0.8 * *y));
    let (_, message) = refusal_on(&oblique, &case(1, &stiffness("0"), ""));
    assert!(message.contains("free to move"), "{message}");
    // The second one has no tangent at small u.
    let root = held.replace("dirichlet = 3", "dirichlet = 200").replace("flux =", "initial = 200\nflux =");
    for equation in [
        format!("{two}{}", interface("{ T = 5, c = 1e-6 }")),
        format!("{root}{}", own("sqrt(u_other - 100) - sqrt(u - 100)")),
    ] {
        solve_on(&mesh, &case(1, &equation, ""));
    }
    for mesh in [&mesh, &oblique] {
        solve_on(mesh, &case(1, &stiffness("1"), "").replace("tolerance = 1e-13", "tolerance = 1e-8"));
    }
}

#[test]
fn a_stiffness_that_depends_on_the_normal_has_a_side() {
    let mesh = halves(CellKind::Quadrilateral);
    let equation = |from: &str| {
        format!(
            "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n\
             [[boundary]]\nwhere = \"xmax\"\ntraction = [3, 0]\n\
             [[interface]]\nwhere = \"wall\"\n{from}stiffness = {{ normal = \"5 + normal[0]\", tangential = 2 }}\n"
        )
    };
    let (key, message) = refusal_on(&mesh, &case(1, &equation(""), ""));
    assert!(key == "interface[0]" && message.contains("`from = "), "{key}: {message}");
    for (from, stiffness) in [("left", 6.0), ("right", 4.0)] {
        let text = case(
            1,
            &equation(&format!("from = \"{from}\"\n")),
            "{ name = \"end\", kind = \"mean\", where = \"xmax\" }",
        );
        is_close(solve_on(&mesh, &text).functionals["end[0]"], 0.6 + 3.0 / stiffness, from);
    }
}
