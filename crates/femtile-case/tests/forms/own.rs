//! Equations of the case: `kind = "form"`.

use crate::{refusal, solve};

/// Solves a case on a square or a cube with an equation and conditions.
fn on(mesh: &str, degree: u32, equation: &str) -> String {
    format!(
        "[mesh]\ngenerate = {{ {mesh} }}\n[space]\ndegree = {degree}\n{equation}\n\
         [output]\nplot = false\nvtu = false\nfunctionals = [{{ name = \"mean\", kind = \"mean\" }}, {{ name = \"norm\", kind = \"l2_norm\" }}]\n\
         [solver]\ndevice = \"cpu\"\ntolerance = 1e-13\n"
    )
}

fn agree(mesh: &str, degree: u32, built_in: &str, text: &str) {
    let [expected, found] = [built_in, text].map(|equation| solve(&on(mesh, degree, equation)));
    assert_eq!(found.solve.preconditioner, expected.solve.preconditioner);
    for (name, expected) in &expected.functionals {
        let found = found.functionals[name];
        assert!((found / expected - 1.0).abs() < 1e-10, "{mesh}, {degree}, {name}: {found} and {expected}");
    }
}

const SQUARE: &str = "kind = \"square\", cells = [6, 5]";
const CUBE: &str = "kind = \"box\", cells = [4, 3, 3], cell = \"hexahedron\"";

#[test]
fn convection_and_diffusion_as_text_is_the_built_in_equation() {
    let conditions = "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n";
    for (mesh, velocity) in [(SQUARE, "[\"y\", \"-x\"]"), (CUBE, "[\"y\", \"-x\", 0.5]")] {
        let built_in = format!(
            "[equation]\nkind = \"convection-diffusion\"\nsigma = \"1 + x\"\nvelocity = {velocity}\nlambda = 0.5\nsource = \"sin(3*x)\"\n\
             {conditions}[[boundary]]\nwhere = \"xmax\"\nrobin = {{ coefficient = 2, value = \"y\" }}\n[[boundary]]\nwhere = \"ymax\"\nneumann = 0.25\n"
        );
        let text = format!(
            "[unknown]\nc = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ D = \"1 + x\", b = {velocity}, r = 0.5 }}\n\
             flux = \"D*grad(c)\"\nsource = \"sin(3*x) - b.grad(c) - r*c\"\n\
             {conditions}[[boundary]]\nwhere = \"xmax\"\nflux = \"2*(y - c)\"\n[[boundary]]\nwhere = \"ymax\"\nflux = \"0.25\"\n"
        );
        (1..=2).for_each(|degree| agree(mesh, degree, &built_in, &text));
    }
}

#[test]
fn elasticity_as_text_is_the_built_in_equation() {
    for (mesh, zeros, force, third) in
        [(SQUARE, "[0, 0]", "[1, -2]", ""), (CUBE, "[0, 0, 0]", "[1, -2, \"x\"]", ", \"x\"")]
    {
        let built_in = format!(
            "[equation]\nkind = \"elasticity\"\nyoung = \"10 + x\"\npoisson = 0.3\nsource = {force}\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = {zeros}\n[[boundary]]\nwhere = \"xmax\"\npressure = 0.5\n\
             [[boundary]]\nwhere = \"ymax\"\ntraction = [0.1, \"x\"{third}]\n"
        );
        let traction = if third.is_empty() { "[0.1, x]" } else { "[0.1, x, x]" };
        let text = format!(
            "[unknown]\nu = {{ components = \"dimension\" }}\n[equation]\nkind = \"form\"\nconstants = {{ E = \"10 + x\", nu = 0.3 }}\n\
             define = \"\"\"\nmu = E/(2*(1 + nu))  # the shear modulus\nlam = E*nu/((1 + nu)*(1 - 2*nu))\neps = sym(grad(u))\n\"\"\"\n\
             energy = \"mu*eps:eps + lam/2*tr(eps)^2\"\nsource = {force}\n\
             [[boundary]]\nwhere = \"xmin\"\ndirichlet = {zeros}\n[[boundary]]\nwhere = \"xmax\"\nflux = \"-0.5*normal\"\n\
             [[boundary]]\nwhere = \"ymax\"\nflux = \"{traction}\"\n"
        );
        (1..=2).for_each(|degree| agree(mesh, degree, &built_in, &text));
        // The same as a flux.
        let flux = text.replace(
            "energy = \"mu*eps:eps + lam/2*tr(eps)^2\"",
            "flux = \"2*mu*eps + lam*div(u)*identity\"",
        );
        agree(mesh, 1, &built_in, &flux);
    }
}

#[test]
fn constants_by_tag_fields_and_tensors_enter_formulas() {
    let region = "[[region]]\nname = \"right\"\nwhere = \"x > 0.5\"\n";
    let dirichlet = "[[boundary]]\nwhere = \"all\"\ndirichlet = \"x\"\n";
    let sigma = "{ by_tag = { right = 5 }, default = 1 }";
    let built_in = format!(
        "{region}[equation]\nkind = \"convection-diffusion\"\nvelocity = [0, 0]\nsigma = {sigma}\nsource = 1\n{dirichlet}"
    );
    let text = format!(
        "{region}[unknown]\nu = {{ degree = 2 }}\n[equation]\nkind = \"form\"\nconstants = {{ k = {sigma} }}\nflux = \"k*grad(u)\"\nsource = 1\n{dirichlet}"
    );
    let [expected, found] =
        [(&built_in, 2), (&text, 2)].map(|(equation, degree)| solve(&on(SQUARE, degree, equation)));
    assert!((found.functionals["mean"] / expected.functionals["mean"] - 1.0).abs() < 1e-10);
    let tensor = "[[2, 0.5], [0.5, 1]]";
    let built_in = format!(
        "[equation]\nkind = \"convection-diffusion\"\nvelocity = [1, 0]\nsigma = {tensor}\nsource = 1\n{dirichlet}"
    );
    let text = format!(
        "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ K = {tensor}, b = [1, 0] }}\nflux = \"K*grad(u)\"\nsource = \"1 - b.grad(u)\"\n{dirichlet}"
    );
    agree(SQUARE, 1, &built_in, &text);
}

#[test]
fn branches_of_an_energy_that_are_not_taken_have_no_say() {
    let conditions =
        "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 0\n[[boundary]]\nwhere = \"xmax\"\nflux = \"g\"\n";
    let of = |equation: &str| {
        let text = format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nconstants = {{ g = 2 }}\n{equation}\n{conditions}"
        );
        solve(&(on(SQUARE, 2, &text) + "nonlinear_tolerance = 1e-11\n")).functionals["mean"]
    };
    let energy = of(
        "energy = \"grad(u).grad(u)/2 + if(u > 0.3, (u - 0.3)^1.5, 0) + if(x < 2, u^2, sqrt(x - 2)*u^2)\"\nsource = 1",
    );
    let flux = of("flux = \"grad(u)\"\nsource = \"1 - 2*u - if(u > 0.3, 1.5*(u - 0.3)^0.5, 0)\"");
    assert!((energy / flux - 1.0).abs() < 1e-8, "{energy} and {flux}");
}

#[test]
fn short_texts_do_not_ask_for_endless_work() {
    let nested = (0..40).fold("sqrt(1 + x*y)".to_owned(), |inner, _| format!("div(grad({inner}))"));
    let long = format!("[{}]", vec!["u"; 400].join(", "));
    for source in [nested, format!("tr(({long}*{long}')*({long}*{long}'))")] {
        let text = format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"grad(u)\"\nsource = \"{source}\"\n"
        );
        let (key, message) = refusal(&on(SQUARE, 1, &text));
        assert!(key == "equation.source" && message.contains("more than 100000 operations"), "{message}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    let good = "[unknown]\nu = { components = \"dimension\" }\n[equation]\nkind = \"form\"\nconstants = { E = 3 }\ndefine = \"\"\"\neps = sym(grad(u))\np = E*tr(eps)\n\"\"\"\n\
         energy = \"E*eps:eps + p*div(u)\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n[[boundary]]\nwhere = \"xmax\"\nflux = \"-normal\"\n";
    solve(&on(SQUARE, 1, good));
    for (from, to, expected) in [
        (
            "eps:eps",
            "eps:u",
            "equation.energy: `E*eps` is a matrix of 2 × 2 and `u` a vector of 2, which cannot be joined by `:`",
        ),
        (
            "E*eps:eps",
            "E*eps",
            "equation.energy: `E*eps` is a matrix of 2 × 2 and `p*div(u)` a number, which cannot be added",
        ),
        ("E*tr(eps)", "E*tr(epps)", "equation.define: unknown name `epps`; did you mean `eps`?"),
        ("\"-normal\"", "\"-nromal\"", "boundary[1].flux: unknown name `nromal`; did you mean `normal`?"),
        ("\"-normal\"", "\"1\"", "boundary[1].flux: this is a number, where the flux needs a vector of 2"),
        ("{ E = 3 }", "{ E = 3, F = 4 }", "equation.constants.F: no formula uses it"),
        (
            "{ E = 3 }",
            "{ E = 3, normal = 4 }",
            "equation.constants.normal: the name normal has a meaning of its own",
        ),
        (
            "u = { components = \"dimension\" }",
            "u = { components = 17 }",
            "unknown.u.components: a vector has 1 to 16",
        ),
        ("\"-normal\"", "\"-t*normal\"", "equation: a formula uses t, which load steps raise"),
        ("+ p*div(u)", "+ p*div(u) + u_t.u", "equation: energy: it cannot depend on the rate"),
        ("{ E = 3 }", "{ E = \"3*u\" }", "equation.constants.E: "),
        ("[unknown]\nu = { components = \"dimension\" }\n", "", "unknown: a form needs its unknown"),
        ("energy = \"E*eps:eps + p*div(u)\"\n", "", "equation: a form needs an `energy`"),
        (
            "kind = \"form\"\n",
            "kind = \"form\"\nyoung = 3\n",
            "equation.young: belongs to other equations; form has `constants`, `define`, `energy`, `flux`, `source`, `capacity`, `enthalpy`, `initial` and `stabilise`",
        ),
        (
            "flux = \"-normal\"",
            "traction = [1, 0]",
            "boundary[1].traction: form has `dirichlet`, `flux`, `total` and `floating`",
        ),
        ("kind = \"form\"", "kind = \"elasticity\"", "unknown: belongs to `kind = \"form\"`"),
        (
            "kind = \"form\"",
            "kind = \"reaction-diffusion\"",
            "unknown: belongs to `kind = \"form\"`; other equations name their unknown u",
        ),
        ("div(u)", "grad(grad(u))", "equation.energy: "),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let (key, message) = refusal(&on(SQUARE, 1, &text));
        let found = format!("{key}: {message}");
        assert!(found.contains(expected), "{to}: {found}");
    }
}

#[test]
fn the_place_of_a_mistake_in_several_lines_is_its_line() {
    let text = "[unknown]\nu = {}\n[equation]\nkind = \"form\"\ndefine = \"\"\"\na = 1\nb = a + grda(u)\n\"\"\"\nflux = \"b*grad(u)\"\n[[boundary]]\nwhere = \"all\"\ndirichlet = 0\n";
    let text = on(SQUARE, 1, text);
    let Err(femtile_case::CaseError::Input { span: Some(span), .. }) = crate::try_solve(&text) else {
        panic!("a mistake is taken")
    };
    assert_eq!(&text[span], "grda");
}

#[test]
fn an_energy_without_a_value_at_rest_is_named_with_its_place() {
    let text = "[unknown]\nu = { components = \"dimension\" }\n[equation]\nkind = \"form\"\nenergy = \"log(div(u) - 1)\"\n\
         [[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n";
    let error = crate::try_solve(&on(SQUARE, 1, text)).unwrap_err().to_string();
    assert!(
        error.contains("the energy density of the integral over the cells is NaN in cell 0 at ("),
        "{error}"
    );
}

#[test]
fn energies_that_rotations_change_and_stresses_at_rest_are_told() {
    let warnings = |energy: &str, force: &str| {
        let text = format!(
            "[unknown]\nu = {{ components = \"dimension\" }}\n[equation]\nkind = \"form\"\nconstants = {{ mu = {{ by_tag = {{ 0 = 3 }} }} }}\n\
             define = \"F = identity + grad(u); J = det(F); E = (F'*F - identity)/2; eps = sym(grad(u))\"\nenergy = \"mu*({energy})\"\n\
             source = [0, {force}]\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0]\n"
        );
        solve(&on(SQUARE, 1, &text)).warnings
    };
    for energy in ["(tr(F'*F) - 2)/2 - log(J) + log(J)^2", "E:E + tr(E)^2", "eps:eps + tr(eps)^2"] {
        assert_eq!(warnings(energy, "0.01"), [""; 0], "{energy}");
    }
    let told = warnings("eps:eps + (eps:eps)^2", "0.01");
    assert!(
        told.len() == 1 && told[0].starts_with("energy: it changes when the body is turned, by "),
        "{told:?}"
    );
    assert!(told[0].contains("if u is a displacement") && told[0].contains("use F'*F"), "{told:?}");
    let told = warnings("E:E + tr(E)^2 + 0.01*tr(E)", "0.01");
    assert!(told.len() == 1 && told[0].contains("stresses where u is zero"), "{told:?}");
}

#[test]
fn nonlinear_forms_converge_on_ranks_and_in_load_steps() {
    let text = "[unknown]\nu = { components = \"dimension\" }\n[equation]\nkind = \"form\"\ndefine = \"F = identity + grad(u); J = det(F)\"\n\
         energy = \"(tr(F'*F) - 3)/2 - log(J) + log(J)^2\"\n[[boundary]]\nwhere = \"xmin\"\ndirichlet = [0, 0, 0]\n\
         [[boundary]]\nwhere = \"xmax\"\nflux = \"[0, 0.1*t, 0]\"\n[[boundary]]\nwhere = \"ymax\"\nflux = \"-0.2*t*det(F)*inv(F)'*normal\"\n\
         [continuation]\nsteps = 2\n";
    let one = on(CUBE, 1, text);
    let alone = solve(&one);
    let nonlinear = alone.solve.nonlinear.as_ref().unwrap();
    assert_eq!(nonlinear.load_steps.iter().map(|step| step.t).collect::<Vec<_>>(), [0.5, 1.0]);
    assert!(nonlinear.iterations < 16, "{}", nonlinear.iterations);
    let two = solve(&format!("{one}ranks = 2\n"));
    for (name, expected) in &alone.functionals {
        let found = two.functionals[name];
        assert!((found - expected).abs() < 1e-7 * (1.0 + expected.abs()), "{name}: {found} and {expected}");
    }
}

#[test]
fn a_conductivity_of_u_as_text_is_that_of_the_built_in_equation() {
    let conditions =
        "[[boundary]]\nwhere = \"xmin\"\ndirichlet = 1\n[[boundary]]\nwhere = \"xmax\"\ndirichlet = \"y\"\n";
    for (mesh, degree) in [(SQUARE, 1), (CUBE, 2)] {
        let built_in = format!("[equation]\nsigma = \"1 + u^2\"\nsource = 1\n{conditions}");
        let text = format!(
            "[unknown]\nu = {{}}\n[equation]\nkind = \"form\"\nflux = \"(1 + u^2)*grad(u)\"\nsource = 1\n{conditions}"
        );
        let precise = |equation: &str| solve(&(on(mesh, degree, equation) + "nonlinear_tolerance = 1e-12\n"));
        let [expected, found] = [precise(&built_in), precise(&text)];
        for (name, expected) in &expected.functionals {
            assert!((found.functionals[name] / expected - 1.0).abs() < 1e-9, "{mesh}, {degree}, {name}");
        }
    }
}
