//! Phase change by a capacity that has the latent heat, against Neumann's solution of the one-phase problem of Stefan.

use std::collections::BTreeMap;

use crate::solve;

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
