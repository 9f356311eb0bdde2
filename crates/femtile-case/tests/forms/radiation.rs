//! Radiation: fluxes through the boundary with the fourth power of u, against published and exact results.

use crate::{solve, try_solve};

/// The constant of Stefan and Boltzmann as the benchmarks have it, W/(m²K⁴).
const BOLTZMANN: f64 = 5.67e-8;

fn on(generate: &str, degree: u32, equation: &str, functionals: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {generate} }}\n[space]\ndegree = {degree}\n{equation}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{functionals}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\n"
    )
}

const SQUARES: &str = "kind = \"square\", cells = [10, 1], upper = [0.1, 0.01], cell = \"quadrilateral\"";
const TRIANGLES: &str = "kind = \"square\", cells = [10, 1], upper = [0.1, 0.01]";

/// A bar of 0.1 m whose hot end has 1000 K and whose other end radiates into surroundings of 300 K.
fn nafems_t2() -> String {
    format!(
        "[equation]\nsigma = 55.6\nconstants = {{ eps = 0.98, s = {BOLTZMANN}, T_out = 300 }}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 1000\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"eps*s*(T_out^4 - u^4)\"\n"
    )
}

#[test]
fn the_end_of_a_radiating_bar_has_the_temperature_of_nafems_t2() {
    // [nafems1990], test T2: 927.0 K at the end. Linear elements have the exact solution,
    // with 55.6 (1000 - T)/0.1 = 0.98 s (T⁴ - 300⁴).
    let functionals = "{ name = \"end\", kind = \"value_at\", point = [0.1, 0.005] }, { name = \"out\", kind = \"flux\", where = \"xmax\" }, \
         { name = \"in\", kind = \"flux\", where = \"xmin\" }";
    for (mesh, degree) in [(TRIANGLES, 1), (TRIANGLES, 2), (SQUARES, 1), (SQUARES, 3)] {
        let report = solve(&(on(mesh, degree, &nafems_t2(), functionals) + "nonlinear_tolerance = 1e-11\n"));
        let found = &report.functionals;
        assert!((found["end"] - 927.0).abs() < 0.05, "{mesh}, {degree}: {}", found["end"]);
        let radiated = 0.98 * BOLTZMANN * (found["end"].powi(4) - 300f64.powi(4));
        assert!((55.6 * (1000.0 - found["end"]) / 0.1 / radiated - 1.0).abs() < 1e-8);
        assert!((found["in"] + found["out"]).abs() < 1e-8 * found["in"], "{found:?}");
        assert!((found["in"] / (0.01 * radiated) - 1.0).abs() < 1e-8, "{found:?}");
        assert!(report.solve.nonlinear.as_ref().unwrap().iterations < 12);
    }
}

#[test]
fn a_bar_that_is_heated_in_waves_has_the_temperature_of_nafems_t3() {
    // [nafems1990], test T3: 100 sin(πt/40) °C at one end, 0 °C at the other; 36.60 °C at 0.02 m from the first after 32 s.
    let functionals = "{ name = \"at\", kind = \"value_at\", point = [0.08, 0.005] }";
    let equation = "[equation]\nkind = \"diffusion\"\ncapacity = 3171600\ndiffusion = 35\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"100*sin(pi*t/40)\"\n\
         [time]\nmethod = \"bdf2\"\nend = 32\nsteps = 256\n";
    for (mesh, degree) in [(SQUARES, 2), (TRIANGLES, 2), (TRIANGLES, 3)] {
        let found = solve(&on(mesh, degree, equation, functionals)).functionals["at"];
        assert!((found - 36.60).abs() < 0.02, "{mesh}, {degree}: {found}");
    }
}

#[test]
fn a_bare_steam_pipe_loses_the_heat_of_the_textbook() {
    // [incropera2007], example 1.2: a pipe 70 mm thick at 200 °C in a room at 25 °C loses 577 W by convection, with 15 W/(m²K), and 421 W by
    // radiation, with the emissivity 0.8, for each metre of length. A wall of 5 mm of copper takes 0.06 K of it.
    let equation = format!(
        "axisymmetric = true\n[equation]\nsigma = 400\nconstants = {{ h = 15, eps = 0.8, s = {BOLTZMANN}, T_room = 298 }}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = 473\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"h*(T_room - u) + eps*s*(T_room^4 - u^4)\"\n"
    );
    let functionals =
        "{ name = \"lost\", kind = \"flux\", where = \"xmax\" }, { name = \"outside\", kind = \"min\" }";
    for (cell, degree) in [("triangle", 2), ("quadrilateral", 1)] {
        let mesh = format!(
            "kind = \"square\", cells = [4, 2], lower = [0.03, 0], upper = [0.035, 1], cell = \"{cell}\""
        );
        let text = on(&mesh, degree, &equation, functionals) + "nonlinear_tolerance = 1e-11\n";
        let found = solve(&text).functionals;
        assert!((found["lost"] + 577.0 + 421.0).abs() < 1.0, "{cell}: {found:?}");
        let area = 2.0 * std::f64::consts::PI * 0.035;
        let given = |u: f64| 15.0 * (u - 298.0) + 0.8 * BOLTZMANN * (u.powi(4) - 298f64.powi(4));
        assert!((found["lost"] / (area * given(found["outside"])) + 1.0).abs() < 1e-6, "{cell}: {found:?}");
        // The logarithm of the ratio of the radii is the resistance of the wall.
        let through =
            2.0 * std::f64::consts::PI * 400.0 * (473.0 - found["outside"]) / (35.0_f64 / 30.0).ln();
        assert!((found["lost"] / through + 1.0).abs() < 1e-3, "{cell}: {found:?} {through}");
    }
}

#[test]
fn a_thin_fin_gives_off_what_its_first_integral_says() {
    // k t T'' = e s T⁴ in a fin of half the thickness t that radiates into the cold: (T')² = 2 e s/(5 k t) (T⁵ - T_tip⁵), T' = 0 at the
    // tip.
    let (k, eps, thickness, base) = (200.0, 0.9, 1e-3, 800f64);
    let equation = format!(
        "[equation]\nsigma = {k}\ninitial = {base}\nconstants = {{ eps = {eps}, s = {BOLTZMANN} }}\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = {base}\n[[boundary]]\nwhere = \"ymax\"\nflux = \"-eps*s*u^4\"\n"
    );
    let functionals = "{ name = \"tip\", kind = \"value_at\", point = [0.2, 0.001] }, { name = \"in\", kind = \"flux\", where = \"xmin\" }, \
         { name = \"out\", kind = \"flux\", where = \"ymax\" }";
    for (cell, degree) in [("triangle", 2), ("quadrilateral", 2), ("triangle", 3)] {
        let mesh =
            format!("kind = \"square\", cells = [40, 1], upper = [0.2, {thickness}], cell = \"{cell}\"");
        let text = on(&mesh, degree, &equation, functionals) + "nonlinear_tolerance = 1e-11\n";
        let found = solve(&text).functionals;
        let slope =
            (2.0 * eps * BOLTZMANN / (5.0 * k * thickness) * (base.powi(5) - found["tip"].powi(5))).sqrt();
        assert!(
            (found["in"] / (k * thickness * slope) - 1.0).abs() < 1e-3,
            "{cell}, {degree}: {found:?}, {slope}"
        );
        assert!((found["in"] + found["out"]).abs() < 1e-8 * found["in"], "{found:?}");
        assert!(found["tip"] < 0.8 * base, "{}", found["tip"]);
    }
}

#[test]
fn a_body_that_conducts_well_cools_by_radiation_as_its_mean_does() {
    // c V dT/dt = -e s A T⁴: T⁻³ grows by 3 e s A/(c V) in each unit of time.
    let (capacity, start, end) = (1e4, 1000f64, 400.0);
    let equation = format!(
        "[equation]\nkind = \"diffusion\"\ncapacity = {capacity}\ndiffusion = 1e7\ninitial = {start}\nconstants = {{ s = {BOLTZMANN} }}\n\
         [[boundary]]\nwhere = \"all\"\nflux = \"-0.8*s*u^4\"\n[time]\nmethod = \"bdf2\"\nend = {end}\ntolerance = 1e-5\n"
    );
    // A square of side 2 has the area 4 and the circumference 8.
    let expected = (start.powi(-3) + 3.0 * 0.8 * BOLTZMANN * 2.0 / capacity * end).powf(-1.0 / 3.0);
    for (cell, degree) in [("triangle", 2), ("quadrilateral", 1)] {
        let mesh = format!("kind = \"square\", cells = [2, 2], upper = [2, 2], cell = \"{cell}\"");
        let found =
            solve(&on(&mesh, degree, &equation, "{ name = \"mean\", kind = \"mean\" }")).functionals["mean"];
        assert!(
            (found / expected - 1.0).abs() < 1e-4 && expected < 0.9 * start,
            "{cell}: {found} and {expected}"
        );
    }
}

#[test]
fn what_radiation_alone_holds_begins_above_zero() {
    // 1000 W/m² enter and are radiated: s T⁴ = 1000 + s 300⁴ on the other side.
    let equation = format!(
        "[equation]\nsigma = 55.6\n[[boundary]]\nwhere = \"xmin\"\nneumann = 1000\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"{BOLTZMANN}*(300^4 - u^4)\"\n"
    );
    let text = on(TRIANGLES, 2, &equation, "{ name = \"out\", kind = \"min\" }");
    let report = try_solve(&text).unwrap();
    assert!(
        report.warnings.iter().any(|warning| warning.contains("began at zero: give `initial`")),
        "{:?}",
        report.warnings
    );
    let found = solve(&text.replace("sigma", "initial = 300\nsigma")).functionals["out"];
    let expected = (1000.0 / BOLTZMANN + 300f64.powi(4)).powf(0.25);
    assert!((found / expected - 1.0).abs() < 1e-7, "{found} and {expected}");
}
