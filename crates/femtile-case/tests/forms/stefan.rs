//! Phase change by a capacity that has the latent heat, against Neumann's solution of the one-phase problem of Stefan.

use std::collections::BTreeMap;

use crate::{refusal, solve};

/// Ice at the melting point 0, heated to 1 at its end: the functionals at t = 1. Latent heat, conductivity and capacity are 1; the
/// latent heat is taken up around the temperature m.
fn melted(n_cells: usize, m: f64) -> BTreeMap<String, f64> {
    let report = solve(&format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [{n_cells}, 1], upper = [2, 0.1] }}\n[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\n\
         constants = {{ L = 1, m = {m}, w = {} }}\ndefine = \"bump = exp(-((u - m)/w)^2)/(w*sqrt(pi))\"\ncapacity = \"1 + L*bump\"\n\
         flux = \"grad(u)\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[time]\nend = 1\ntolerance = 1e-2\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"heat\", kind = \"integral\" }}, \
         {{ name = \"at\", kind = \"value_at\", point = [0.5, 0] }}]\n[solver]\ndevice = \"cpu\"\n",
        m / 3.0
    ));
    assert_eq!(report.time.as_ref().unwrap().stop, "finished");
    report.functionals
}

#[test]
fn the_front_of_melting_ice_approaches_that_of_neumann_with_the_range_of_melting() {
    // u = 1 − erf(x/2)/erf(λ) up to x = 2λ, with √π λ exp(λ²) erf(λ) = 1: λ = 0.62006, erf(λ) = 0.619460, erf(1/4) = 0.276326.
    let exact = [("heat", 0.1 * 0.581_428_88), ("at", 1.0 - 0.276_326_39 / 0.619_459_58)];
    let [wide, narrow] = [(50, 0.12), (100, 0.06)].map(|(n_cells, m)| melted(n_cells, m));
    for (name, exact) in exact {
        let (coarse, fine) = (wide[name] - exact, narrow[name] - exact);
        let order = (coarse / fine).log2();
        assert!((order - 1.0).abs() < 0.25, "{name}: {order}, {coarse} {fine}");
        assert!(
            fine.abs() < 0.06 * exact && (2.0 * fine - coarse).abs() < 0.015 * exact,
            "{name}: {coarse} {fine}"
        );
    }
}

/// Heat that enters a material with the content u + u³/3 + tanh(3u), in large steps.
fn warmed(method: &str, content: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ kind = \"square\", cells = [8, 2], upper = [2, 0.5] }}\n[space]\ndegree = 2\n[unknown]\nu = {{}}\nheld = {{}}\n\
         [equation]\nkind = \"form\"\ndefine = \"heat = u + u^3/3 + tanh(3*u)\"\n{content}\n\
         flux = {{ u = \"(1 + u^2)*grad(u)\" }}\nsource = {{ u = \"0.3\", held = \"heat - held\" }}\ninitial = {{ u = \"x - 1\" }}\n\
         [[boundary]]\nwhere = \"xmin\"\nflux = {{ u = \"1\" }}\n[time]\nmethod = \"{method}\"\nend = 2\nsteps = 4\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"integral\", kind = \"integral\" }}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-12\nnonlinear_tolerance = 1e-12\n"
    )
}

#[test]
fn a_content_changes_by_what_flows_in_for_any_length_of_steps() {
    // The content at the start is odd around x = 1; 0.3 enters over the area 1 and 1 over the height 0.5, for a time of 2.
    let of =
        |method: &str, content: &str| solve(&warmed(method, content)).functionals["integral[held]"] - 1.6;
    for method in ["bdf2", "sdirk2", "implicit-euler"] {
        let found = of(method, "enthalpy = { u = \"heat\" }");
        assert!(found.abs() < 1e-9, "{method}: {found}");
        let with_capacity = of(method, "capacity = { u = \"1 + u^2 + 3*(1 - tanh(3*u)^2)\" }");
        assert!(with_capacity.abs() > 1e-4, "{method}: {with_capacity}");
    }
    let (key, message) = refusal(&warmed("crank-nicolson", "enthalpy = { u = \"heat\" }"));
    assert!(key == "time.method" && message.contains("components without a rate"), "{key}: {message}");
}

#[test]
fn a_content_is_refused_where_it_has_no_meaning() {
    let good = warmed("bdf2", "enthalpy = { u = \"heat\" }");
    for (from, to, key, expected) in [
        ("{ u = \"heat\" }", "{ v = \"heat\" }", "equation.enthalpy.v", "there is no unknown"),
        ("{ u = \"heat\" }", "{ u = \"t*heat\" }", "equation.enthalpy", "not on t"),
        ("u = \"0.3\"", "u = \"0.3 - u_t\"", "equation.enthalpy", "leave the rate"),
        ("u = {}", "u = { components = 2 }", "equation.enthalpy", "of a vector is an array"),
        ("enthalpy", "capacity = { u = 1 }\nenthalpy", "equation.enthalpy", "leave one of them out"),
        ("[time]\nmethod = \"bdf2\"\nend = 2\nsteps = 4\n", "", "equation.enthalpy", "give a [time] section"),
    ] {
        let (found, message) = refusal(&good.replace(from, to));
        assert!(found == key && message.contains(expected), "{to}: {found}: {message}");
    }
    let other = "[mesh]\ngenerate = { kind = \"square\", cells = [2, 2] }\n[equation]\nenthalpy = \"u\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let (key, message) = refusal(other);
    assert!(
        key == "equation.enthalpy" && message.contains("belongs to `kind = \"form\"`"),
        "{key}: {message}"
    );
}
