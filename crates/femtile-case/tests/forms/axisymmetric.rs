//! Bodies of revolution: the mesh is a half section, x the distance from the axis.

use std::f64::consts::{LN_2, PI, TAU};

use femtile_case::Report;

use crate::exact::verify;
use crate::{refusal, solve};

/// A case on a rectangle of the half plane.
fn on(generate: &str, degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", {generate} }}\n[space]\ndegree = {degree}\naxisymmetric = true\n{equation}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n"
    )
}

/// The gap between the conductors of a cable, of radii 1 and 2 and length 3.
fn gap(n: usize, cell: &str) -> String {
    format!("cells = [{n}, {n}], lower = [1, 0], upper = [2, 3], cell = \"{cell}\"")
}

const LAPLACE: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nenergy = \"grad(u).grad(u)/2\"\n";

const VOLTAGE: &str =
    "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"log(2)\"\n";

#[test]
fn the_voltage_between_coaxial_conductors_has_the_orders_of_theory() {
    let functionals = "{ name = \"l2\", kind = \"error_l2\", exact = \"log(x)\" }, { name = \"h1\", kind = \"error_h1\", exact = \"log(x)\" }, \
         { name = \"energy\", kind = \"energy\" }, { name = \"in\", kind = \"flux\", where = \"xmax\" }, { name = \"out\", kind = \"flux\", where = \"xmin\" }";
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 1), ("quadrilateral", 3)] {
        let of = |n: usize| -> Report {
            solve(&on(&gap(n, cell), degree, &format!("{LAPLACE}{VOLTAGE}"), functionals))
        };
        let [coarse, fine] = [of(4), of(8)].map(|report| report.functionals);
        for (name, expected) in [("l2", degree + 1), ("h1", degree)] {
            let order = (coarse[name] / fine[name]).log2();
            assert!((order - f64::from(expected)).abs() < 0.15, "{cell}, {degree}, {name}: {order}");
        }
        // The charge is 2π L, the energy half of it times the voltage; its error is half of the square of that of the gradient.
        let (charge, energy_error) = (TAU * 3.0, fine["h1"].powi(2) / 2.0);
        let bound = 1.05 * energy_error + 1e-9;
        assert!((fine["energy"] - charge * LN_2 / 2.0).abs() < bound, "{cell}, {degree}: {}", fine["energy"]);
        assert!((fine["in"] - charge).abs() < 2.0 * bound / LN_2, "{cell}, {degree}: {}", fine["in"]);
        assert!((fine["in"] + fine["out"]).abs() < 1e-9);
    }
}

#[test]
fn integrals_are_those_of_the_body() {
    // u = 1 − r² in a cylinder of radius 1 and height 2 that contains its axis.
    let equation = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = 4\n\
         [[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n";
    let functionals = "{ name = \"integral\", kind = \"integral\" }, { name = \"mean\", kind = \"mean\" }, \
         { name = \"norm\", kind = \"l2_norm\" }, { name = \"axis\", kind = \"value_at\", point = [0, 1] }, \
         { name = \"flux\", kind = \"flux\", where = \"all\" }, { name = \"error\", kind = \"error_h1\", exact = \"1 - x^2\" }";
    for cell in ["triangle", "quadrilateral"] {
        let mesh = format!("cells = [3, 2], upper = [1, 2], cell = \"{cell}\"");
        let text = on(&mesh, 2, equation, functionals);
        for text in [text.clone(), text.replace("tolerance", "ranks = 2\ntolerance")] {
            let report = solve(&text);
            assert!((report.mesh.volume - TAU).abs() < 1e-12, "{}", report.mesh.volume);
            let expected = [
                ("integral", PI),
                ("mean", 0.5),
                ("norm", (TAU / 3.0).sqrt()),
                ("axis", 1.0),
                ("flux", -4.0 * TAU),
                ("error", 0.0),
            ];
            for (name, expected) in expected {
                let found = report.functionals[name];
                assert!((found - expected).abs() < 1e-9, "{cell}, {name}: {found}");
            }
        }
    }
}

#[test]
fn convection_and_diffusion_around_an_axis_are_the_built_in_equation() {
    let conditions = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\n";
    let functionals = "{ name = \"mean\", kind = \"mean\" }, { name = \"norm\", kind = \"l2_norm\" }";
    let built_in = format!(
        "[equation]\nkind = \"convection-diffusion\"\nsigma = \"1 + x\"\nvelocity = [\"y\", 2]\nlambda = 0.5\nsource = 1\n\
         {conditions}robin = {{ coefficient = 2, value = \"y\" }}\n"
    );
    let text = format!(
        "[unknown]\nc = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ b = [\"y\", 2] }}\nflux = \"(1 + x)*grad(c)\"\nsource = \"1 - b.grad(c) - c/2\"\n\
         {conditions}flux = \"2*(y - c)\"\n"
    );
    let [expected, found] =
        [&built_in, &text].map(|text| solve(&on(&gap(4, "triangle"), 2, text, functionals)).functionals);
    for (name, expected) in &expected {
        assert!((found[name] / expected - 1.0).abs() < 1e-9, "{name}");
    }
}

const MODULI: &str = "constants = { E = 10, nu = 0.3 }\ndefine = \"mu = E/(2*(1 + nu)); lam = E*nu/((1 + nu)*(1 - 2*nu)); eps = sym(grad(u))\"\n";

#[test]
fn a_thick_cylinder_under_pressure_is_that_of_lame() {
    // Radii 1 and 2, pressure 1 inside, no strain along the axis.
    let (young, poisson) = (10.0, 0.3);
    let factor = (1.0 + poisson) / young / 3.0;
    let exact = format!("\"{factor}*((1 - 2*{poisson})*x + 4/x)\", \"0\"");
    let functionals = format!(
        "{{ name = \"l2\", kind = \"error_l2\", exact = [{exact}] }}, {{ name = \"h1\", kind = \"error_h1\", exact = [{exact}] }}, \
         {{ name = \"energy\", kind = \"energy\" }}, {{ name = \"force\", kind = \"flux\", where = \"ymax\" }}"
    );
    let supports = "[[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0]\n[[boundary]]\nwhere = \"ymax\"\ndirichlet = [\"free\", 0]\n";
    let built_in = format!(
        "[equation]\nkind = \"elasticity\"\nyoung = {young}\npoisson = {poisson}\n{supports}[[boundary]]\nwhere = \"xmin\"\npressure = 1\n"
    );
    let text = |cells: &str| {
        format!(
            "[unknown]\nu = {{ components = \"dimension\" }}\n[equation]\nkind = \"form\"\n{MODULI}{cells}\n{supports}\
             [[boundary]]\nwhere = \"xmin\"\nflux = \"-normal\"\n"
        )
    };
    let energy = text("energy = \"mu*eps:eps + lam/2*div(u)^2\"");
    let flux = text("flux = \"2*mu*eps + lam*tr(grad(u))*identity\"");
    for (cell, degree) in [("triangle", 1), ("quadrilateral", 2)] {
        let of = |n: usize, equation: &str, functionals: &str| {
            solve(&on(&gap(n, cell), degree, equation, functionals)).functionals
        };
        let [coarse, fine] = [8, 16].map(|n| of(n, &built_in, &functionals));
        for (name, expected) in [("l2[0]", degree + 1), ("h1[0]", degree)] {
            let order = (coarse[name] / fine[name]).log2();
            assert!((order - f64::from(expected)).abs() < 0.2, "{cell}, {degree}, {name}: {order}");
        }
        // Along the axis the stress is 2ν/3 everywhere, over an area of 3π; half of the work of the pressure is the energy.
        let (force, work) = (fine["force[1]"], PI * 3.0 * factor * (5.0 - 2.0 * poisson));
        assert!((force / (2.0 * poisson * PI) - 1.0).abs() < 0.01, "{force}");
        assert!((fine["energy"] / work - 1.0).abs() < 0.01, "{} {work}", fine["energy"]);
        let without_energy = functionals.replace("{ name = \"energy\", kind = \"energy\" }, ", "");
        for found in [of(16, &energy, &functionals), of(16, &flux, &without_energy)] {
            for (name, found) in found {
                let scale = if name.ends_with("1]") { 1e-9 } else { 0.0 };
                assert!((found - fine[&name]).abs() <= 1e-8 * fine[&name].abs() + scale, "{name}: {found}");
            }
        }
    }
}

#[test]
fn the_hoop_stress_of_a_full_cylinder_is_that_of_its_edge() {
    // Under the pressure 1 all around, free along the axis: rr = θθ = −1, zz = 0 everywhere, on the axis too.
    let text = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\n[[boundary]]\nwhere = \"ymin\"\ndirichlet = [\"free\", 0]\n\
         [[boundary]]\nwhere = \"xmax\"\npressure = 1\n";
    let folder = tempfile::tempdir().unwrap();
    let text = on("cells = [3, 2]", 2, text, "").replace("vtu = false", "vtu = true");
    crate::run_in(folder.path(), &text).unwrap();
    let mesh = femtile_mesh::io::read(&folder.path().join("out/solution.vtu")).unwrap();
    let stress = &mesh.node_fields["stress"];
    for stress in stress.values.chunks_exact(6) {
        for (found, expected) in stress.iter().zip([-1.0, 0.0, -1.0, 0.0, 0.0, 0.0]) {
            assert!((found - expected).abs() < 1e-8, "{stress:?}");
        }
    }
}

#[test]
fn manufactured_solutions_have_the_orders_of_theory() {
    let scalar = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"(1 + u^2)*grad(u)\"\nsource = \"1 - u^3\"\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\nflux = \"1 - u\"\n";
    let rubber = "[unknown]\nu = { components = \"dimension\" }\n[equation]\nkind = \"form\"\nconstants = { mu = 80, lam = 120 }\n\
         define = \"F = identity + grad(u); J = det(F)\"\nenergy = \"mu/2*(tr(F'*F) - 3) - mu*log(J) + lam/2*log(J)^2\"\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = [0, 0]\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, \"free\"]\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"-5*J*inv(F)'*normal\"\n";
    for (cell, degree) in [("triangle", 1), ("triangle", 2), ("quadrilateral", 1), ("quadrilateral", 2)] {
        let mesh = format!("cells = [4, 4], cell = \"{cell}\"");
        verify(&on(&mesh, degree, scalar, ""), "u = cos(x^2)*(0.5 + y)^2", 3);
        verify(&on(&mesh, degree, rubber, ""), "u = 0.2*[sin(2*x)*y, x^2*y + y^2]", 3);
    }
    let elasticity = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\nsource = [1, \"x\"]\n\
         [[boundary]]\nwhere = \"xmax\"\ndirichlet = [0, 0]\n[[boundary]]\nwhere = \"ymax\"\ntraction = [1, 0]\n";
    verify(&on("cells = [4, 4]", 2, elasticity, ""), "u = [sin(2*x)*y, cos(x^2*y)]", 3);
}

#[test]
fn a_stabilised_flow_along_an_axis_keeps_its_order() {
    let text = "[unknown]\nc = {}\n[equation]\nkind = \"form\"\nconstants = { b = [0, 1] }\nflux = \"1e-3*grad(c)\"\nsource = \"-b.grad(c)\"\nstabilise = \"supg\"\n\
         [[boundary]]\nwhere = \"ymin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n";
    verify(&on("cells = [8, 8]", 1, text, ""), "c = cos(2*x)*sin(1 + 2*y)", 3);
}

#[test]
fn heat_in_time_decays_as_it_does_in_a_cylinder() {
    let text = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\ncapacity = 1\nsource = \"(3 + x^2)*exp(-t)\"\n\
         initial = \"1 - x^2\"\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n[time]\nend = 1\n";
    let functionals = "{ name = \"integral\", kind = \"integral\" }";
    for steps in ["steps = 50", "tolerance = 1e-5"] {
        let report = solve(&on("cells = [3, 1]", 2, &format!("{text}{steps}\n"), functionals));
        let (found, expected) = (report.functionals["integral"], PI / 2.0 * (-1.0_f64).exp());
        assert!((found / expected - 1.0).abs() < 1e-3, "{steps}: {found} and {expected}");
    }
}

#[test]
fn a_body_that_is_free_along_its_axis_is_refused_and_no_other() {
    let text = |support: &str| {
        let equation = format!(
            "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\n[[boundary]]\nwhere = \"xmin\"\npressure = 1\n{support}"
        );
        on(&gap(3, "triangle"), 1, &equation, "{ name = \"max\", kind = \"max\" }")
    };
    let (key, message) = refusal(&text(""));
    assert!(key == "boundary" && message.contains("one of many: translation along y;"), "{key}: {message}");
    let one = "[[boundary]]\nnodes = \"x < 1 + 1e-9 && y < 1e-9\"\ndirichlet = [\"free\", 0]\n";
    assert!(solve(&text(one)).functionals["max[0]"] > 0.1);
}

#[test]
fn what_is_no_half_section_is_refused() {
    let good = on(&gap(2, "triangle"), 1, &format!("{LAPLACE}{VOLTAGE}"), "");
    solve(&good);
    let space = "generate = { kind = \"box\", cells = [2, 2, 2] }";
    for (from, to, key, expected) in [
        (
            "lower = [1, 0]",
            "lower = [-1, 0]",
            "space.axisymmetric",
            "the axis x = 0 cuts the mesh: node 0 is at (-1, 0); mesh the half with x ≥ 0 alone",
        ),
        (good.lines().nth(1).unwrap(), space, "space.axisymmetric", "is for meshes in the plane"),
        (
            "u = {}",
            "u = { components = 3 }",
            "unknown.u.components",
            "could be a vector in space or three numbers",
        ),
        (
            "kind = \"form\"\n",
            "kind = \"form\"\nconstants = { K = [[1, 0], [0, 1]] }\n",
            "equation.constants.K",
            "give 3 × 3 entries: the third axis is the way around",
        ),
        (
            "energy = \"grad(u).grad(u)/2\"",
            "flux = \"grad(u) + [0, 0, 1]\"",
            "equation.flux",
            "the entry there must be 0",
        ),
        (
            "u = {}\n[equation]\nkind = \"form\"\nenergy = \"grad(u).grad(u)/2\"",
            "u = { components = \"dimension\" }\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = [0, 0, \"y\"]",
            "equation.source",
            "the entry there must be 0",
        ),
        (
            "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nenergy = \"grad(u).grad(u)/2\"\n",
            "[equation]\nkind = \"elasticity\"\nyoung = 1\npoisson = 0.3\nplane = \"strain\"\n",
            "equation.plane",
            "has stress and strain around its axis",
        ),
        (
            "grad(u).grad(u)/2",
            "[1, 0].grad(u)",
            "equation.energy",
            "`[1, 0]` is a vector of 2 and `grad(u)` a vector of 3",
        ),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let (found, message) = refusal(&text);
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
}

#[test]
fn constants_and_capacities_may_have_the_third_axis() {
    let conditions = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    let flow = |b: &str| {
        format!(
            "[unknown]\nc = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ b = {b} }}\nflux = \"grad(c)\"\n\
             source = \"1 - b.b*c - b.grad(c)\"\n{conditions}"
        )
    };
    let mean = |equation: &str| {
        let functionals = "{ name = \"mean\", kind = \"mean\" }";
        solve(&on(&gap(3, "triangle"), 1, equation, functionals)).functionals["mean"]
    };
    let [two, zero, three] = ["[1, 2]", "[1, 2, 0]", "[1, 2, 3]"].map(|b| mean(&flow(b)));
    assert!((two - zero).abs() < 1e-12 && two - three > 0.01, "{two} {zero} {three}");

    let moving = |capacity: &str| {
        format!(
            "[unknown]\nu = {{ components = \"dimension\" }}\n[equation]\nkind = \"form\"\nflux = \"2*sym(grad(u))\"\n\
             source = [0, 1]\ncapacity = {capacity}\n{conditions}[time]\nend = 0.1\nsteps = 2\n"
        )
    };
    let height = |capacity: &str| {
        let functionals = "{ name = \"v\", kind = \"max\" }";
        solve(&on(&gap(3, "triangle"), 1, &moving(capacity), functionals)).functionals["v[1]"]
    };
    let expected = height("3");
    for capacity in ["\"3*identity\"", "[3, 3, 3]", "[3, 3]", "[[3, 0, 0], [0, 3, 0], [0, 0, 1]]"] {
        let found = height(capacity);
        assert!(expected > 1e-3 && (found - expected).abs() < 1e-12, "{capacity}: {found} {expected}");
    }
}
