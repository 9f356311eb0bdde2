//! Sources at points, and totals of fluxes spread over parts of the boundary.

use std::f64::consts::TAU;

use crate::{refusal, solve};

fn on(generate: &str, degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {generate} }}\n[space]\ndegree = {degree}\n{equation}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n[solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n"
    )
}

const LAPLACE: &str = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\n";

const EDGES: &str = "[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";

/// The flux through the whole boundary.
const ALL: &str = "{ name = \"all\", kind = \"flux\", where = \"all\" }";

#[test]
fn what_a_point_gives_flows_through_the_boundary() {
    let square = |cell: &str| format!("kind = \"square\", cells = [4, 5], cell = \"{cell}\"");
    let cube = |cell: &str| format!("kind = \"box\", cells = [3, 2, 2], cell = \"{cell}\"");
    // Within a cell, on an edge, at a node, in a cell of the boundary, on the boundary.
    let of_square = ["0.33, 0.47", "0.25, 0.47", "0.5, 0.4", "0.02, 0.01", "0, 0.5"];
    let of_cube = ["0.4, 0.3, 0.7", "0.4, 0.5, 0.5", "0.01, 0.3, 0.7"];
    let meshes = [
        (square("triangle"), of_square.to_vec()),
        (square("quadrilateral"), of_square.to_vec()),
        (cube("tetrahedron"), of_cube.to_vec()),
        (cube("hexahedron"), of_cube.to_vec()),
    ];
    for (mesh, points) in meshes {
        for (degree, point) in points.into_iter().flat_map(|point| [(1, point), (2, point)]) {
            let equation = format!("{LAPLACE}{EDGES}[[source]]\npoint = [{point}]\ntotal = 5\n");
            let found = solve(&on(&mesh, degree, &equation, ALL)).functionals["all"];
            assert!((found + 5.0).abs() < 1e-10, "{mesh}, {degree}, {point}: {found}");
        }
    }
}

#[test]
fn ranks_count_a_point_once() {
    let sources = "[[source]]\npoint = [0.5, 0.4]\ntotal = 5\n[[source]]\npoint = [0.3, 0.3]\ntotal = -2\n";
    let functionals = format!("{ALL}, {{ name = \"at\", kind = \"value_at\", point = [0.6, 0.5] }}");
    for flux in ["grad(u)", "(1 + u^2)*grad(u)"] {
        let equation = LAPLACE.replace("grad(u)", flux) + EDGES + sources;
        let one = on("kind = \"square\", cells = [6, 5]", 1, &equation, &functionals)
            + "nonlinear_tolerance = 1e-12\n";
        let one = if flux == "grad(u)" { one.replace("nonlinear_tolerance = 1e-12\n", "") } else { one };
        let [alone, three] = [solve(&one), solve(&format!("{one}ranks = 3\n"))];
        assert!((alone.functionals["all"] + 3.0).abs() < 1e-9, "{flux}: {}", alone.functionals["all"]);
        for (name, expected) in &alone.functionals {
            let found = three.functionals[name];
            assert!((found - expected).abs() < 1e-9, "{flux}, {name}: {found} and {expected}");
        }
    }
}

#[test]
fn away_from_a_point_the_error_is_that_of_a_smooth_solution() {
    // −log(r)/2π around a node of all meshes.
    let exact = "-log(hypot(x - 0.5, y - 0.5))/(2*pi)";
    let equation = format!(
        "{LAPLACE}[[boundary]]\nwhere = \"all\"\ndirichlet = \"{exact}\"\n[[source]]\npoint = [0.5, 0.5]\ntotal = 1\n"
    );
    let points: [[f64; 2]; 4] = [[0.8, 0.7], [0.2, 0.6], [0.35, 0.15], [0.9, 0.9]];
    let functionals = format!("{{ name = \"at\", kind = \"value_at\", points = {points:?} }}");
    for (cell, degree, n) in
        [("triangle", 1, 20), ("quadrilateral", 1, 20), ("triangle", 2, 10), ("quadrilateral", 2, 10)]
    {
        let error = |n: usize| {
            let mesh = format!("kind = \"square\", cells = [{n}, {n}], cell = \"{cell}\"");
            let found = solve(&on(&mesh, degree, &equation, &functionals)).functionals;
            let square = |(i, [x, y]): (usize, [f64; 2])| {
                (found[&format!("at[{i}]")] + (x - 0.5).hypot(y - 0.5).ln() / TAU).powi(2)
            };
            points.into_iter().enumerate().map(square).sum::<f64>().sqrt()
        };
        let [coarse, fine] = [n, 4 * n].map(error);
        let (order, expected) = ((coarse / fine).log2() / 2.0, f64::from(degree) + 1.0);
        // Of degree 2 some of the points are better than others.
        let is_more = degree == 1 && order > expected + 0.3;
        assert!(order > expected - 0.3 && !is_more, "{cell}, {degree}: {order}, {coarse} {fine}");
    }
}

#[test]
fn a_well_draws_the_water_down_as_thiem_says() {
    // An aquifer of transmissivity 0.02 m²/s, a well that takes 0.01 m³/s, and the head 10 m at a distance of 100 m.
    let (transmissivity, pumped) = (0.02, 0.01);
    let head = |r: f64| 10.0 + pumped / (TAU * transmissivity) * (r / 100.0).ln();
    let equation = format!(
        "[unknown]\nhead = {{ degree = 2 }}\n[equation]\nkind = \"form\"\nconstants = {{ T = {transmissivity} }}\nflux = \"T*grad(head)\"\n\
         [[boundary]]\nwhere = \"all\"\ndirichlet = \"10 + {}*log(hypot(x, y)/100)\"\n[[source]]\npoint = [0, 0]\ntotal = -{pumped}\n",
        pumped / (TAU * transmissivity)
    );
    let mesh = "kind = \"square\", cells = [40, 40], lower = [-100, -100], upper = [100, 100]";
    let functionals = "{ name = \"near\", kind = \"value_at\", point = [30, 0] }, { name = \"far\", kind = \"value_at\", point = [50, 50] }";
    let found = solve(&on(mesh, 2, &equation, functionals).replace("[space]\ndegree = 2\n", "")).functionals;
    for (name, r) in [("near", 30.0), ("far", 50.0_f64.hypot(50.0))] {
        assert!((found[name] - head(r)).abs() < 1e-4, "{name}: {} and {}", found[name], head(r));
    }
}

#[test]
fn a_well_in_an_aquifer_without_end_draws_it_down_in_time_as_theis_says() {
    // 4πT/Q times the drawdown at the distance r is W(r²S/(4Tt)), the exponential integral E₁ [theis1935]. In the tables of
    // hydrologists W(0.1) = 1.8229 and W(1) = 0.2194. A quarter of the aquifer has a quarter of the well in its corner.
    let function = |u: f64| {
        let terms = (1..20).scan(-1.0, |term, k| {
            *term *= -u / f64::from(k);
            Some(*term / f64::from(k))
        });
        terms.sum::<f64>() - u.ln() - 0.577_215_664_901_532_9
    };
    assert!((function(0.1) - 1.8229).abs() < 5e-5 && (function(1.0) - 0.2194).abs() < 5e-5);
    let (transmissivity, storage, time) = (0.02, 1e-3, 0.125);
    let equation = format!(
        "[equation]\nkind = \"diffusion\"\ncapacity = {storage}\ndiffusion = {transmissivity}\n\
         [[source]]\npoint = [0, 0]\ntotal = {}\n[time]\nmethod = \"bdf2\"\nend = {time}\nsteps = 50\n",
        0.25 * 2.0 * TAU * transmissivity
    );
    // At a distance of 9 m nothing is felt yet.
    let mesh = "kind = \"square\", cells = [36, 36], upper = [9, 9], cell = \"quadrilateral\"";
    let far = [10_f64.sqrt() * 0.8, 10_f64.sqrt() * 0.6];
    let functionals = format!(
        "{{ name = \"near\", kind = \"value_at\", point = [1, 0] }}, {{ name = \"far\", kind = \"value_at\", point = {far:?} }}"
    );
    let found = solve(&on(mesh, 2, &equation, &functionals)).functionals;
    for (name, r) in [("near", 1.0_f64), ("far", far[0].hypot(far[1]))] {
        let expected = function(r * r * storage / (4.0 * transmissivity * time));
        assert!((found[name] / expected - 1.0).abs() < 4e-4, "{name}: {} and {expected}", found[name]);
    }
}

#[test]
fn in_time_a_point_gives_its_total_in_each_unit_of_time() {
    let equation = format!(
        "{LAPLACE}capacity = 3\n[[source]]\npoint = [0.3, 0.6]\ntotal = 5\n[time]\nend = 2\nsteps = 4\n"
    );
    let integral = "{ name = \"integral\", kind = \"integral\" }";
    for method in ["bdf2", "sdirk2", "crank-nicolson", "implicit-euler"] {
        let text = equation.clone() + &format!("method = \"{method}\"\n");
        let found =
            solve(&on("kind = \"square\", cells = [5, 5]", 1, &text, integral)).functionals["integral"];
        assert!((found - 10.0 / 3.0).abs() < 1e-8, "{method}: {found}");
    }
}

#[test]
fn vectors_and_bodies_of_revolution_have_sources_at_points() {
    let body = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n\
         [[source]]\npoint = [0.7, 0.4]\ntotal = [1, -2]\n";
    let found = solve(&on("kind = \"square\", cells = [4, 4]", 2, body, ALL)).functionals;
    assert!((found["all[0]"] + 1.0).abs() < 1e-9 && (found["all[1]"] - 2.0).abs() < 1e-9, "{found:?}");
    let ring = format!(
        "{LAPLACE}[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n[[source]]\npoint = [0.4, 0.4]\ntotal = 5\n"
    );
    let text = on("kind = \"square\", cells = [4, 4]", 1, &ring, ALL);
    let found = solve(&text.replace("degree = 1", "degree = 1\naxisymmetric = true")).functionals["all"];
    assert!((found + 5.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_total_is_spread_evenly_over_its_part_of_the_boundary() {
    let fluxes = "{ name = \"in\", kind = \"flux\", where = \"ymin\" }, { name = \"out\", kind = \"flux\", where = \"xmax\" }, { name = \"mean\", kind = \"mean\" }";
    let held = "[[boundary]]\nwhere = \"xmax\"\ndirichlet = 0\n[[boundary]]\nwhere = \"ymin\"\n";
    let built_in = "[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0]\n";
    let square = "kind = \"square\", cells = [4, 3], upper = [2, 1]";
    for (equation, name) in [(LAPLACE, "flux = \"2.5\""), (built_in, "neumann = 2.5")] {
        for (degree, axisymmetric) in [(1, false), (2, false), (1, true), (2, true)] {
            let of = |condition: &str| {
                let text = on(square, degree, &format!("{equation}{held}{condition}\n"), fluxes);
                let is_turned = format!("degree = {degree}\naxisymmetric = {axisymmetric}");
                solve(&text.replace(&format!("degree = {degree}"), &is_turned)).functionals
            };
            // The side has the length 2, the disc the area 4π.
            let total = if axisymmetric { 5.0 * TAU } else { 5.0 };
            let [spread, given] = [of(&format!("total = {total}")), of(name)];
            assert!(
                (spread["in"] - total).abs() < 1e-10 && (spread["out"] + total).abs() < 1e-9,
                "{spread:?}"
            );
            assert!((spread["mean"] / given["mean"] - 1.0).abs() < 1e-10);
        }
    }
    let force = "[equation]\nkind = \"elasticity\"\nyoung = 10\npoisson = 0.3\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n\
         [[boundary]]\nwhere = \"xmax\"\ntotal = [3, 0, -2]\n";
    let reaction = "{ name = \"held\", kind = \"flux\", where = \"xmin\" }";
    let found = solve(&on("kind = \"box\", cells = [2, 2, 2], upper = [2, 0.5, 0.4]", 1, force, reaction))
        .functionals;
    for (name, expected) in [("held[0]", -3.0), ("held[1]", 0.0), ("held[2]", 2.0)] {
        assert!((found[name] - expected).abs() < 1e-9, "{name}: {}", found[name]);
    }
}

#[test]
fn totals_without_meaning_are_refused_with_their_place() {
    let good = on(
        "kind = \"square\", cells = [4, 4]",
        1,
        &format!(
            "{LAPLACE}[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ntotal = 3\n[[source]]\npoint = [0.5, 0.5]\ntotal = 5\n"
        ),
        "",
    );
    solve(&good);
    let turned = "degree = 1\naxisymmetric = true";
    for (from, to, key, expected) in [
        ("[0.5, 0.5]", "[1.25, 0.5]", "source[0].point", "2.5e-1 from the nearest cell"),
        ("[0.5, 0.5]", "[1]", "source[0].point", "two or three coordinates"),
        ("total = 5", "total = [5, 1]", "source[0].total", "2"),
        ("total = 5", "total = inf", "source[0].total", "is inf; it must be finite"),
        ("total = 5", "total = { v = 5 }", "source[0].total.v", "there is no unknown `v`"),
        (
            "total = 3",
            "total = 3\nflux = \"1\"",
            "boundary[1]",
            "exactly one of `dirichlet`, `flux`, `total` and `floating`",
        ),
        (
            "total = 3",
            "total = 3\ndirichlet = 1",
            "boundary[1]",
            "exactly one of `dirichlet`, `flux`, `total` and `floating`",
        ),
        ("total = 3", "total = [3, 4]", "boundary[1].total", "2"),
        (
            "u = {}",
            "u = { components = 2 }",
            "boundary[1].total",
            "give an array with an entry for each of the 2 components",
        ),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let (found, message) = refusal(&text);
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
    let axis = good
        .replace("degree = 1", turned)
        .replace("xmax", "x < 1e-9")
        .replace("where = \"xmin\"", "where = \"xmax\"");
    let (key, message) = refusal(&axis);
    assert!(key == "boundary[1].total" && message.contains("has none: it is the axis"), "{key}: {message}");
}
