//! Fluxes, sources and tangents as formulas.

use femtile_form::{Argument, Coefficient, Derivation, Equation};

fn lines(written: &femtile_expression::Mathematics) -> Vec<String> {
    let lines = written.lines.as_ref().unwrap().iter();
    lines.map(|line| format!("{} = {}", line.symbol, line.text)).collect()
}

#[test]
fn an_energy_has_a_flux_and_a_tangent_with_the_names_of_coefficients_and_definitions() {
    let text = r#"
        unknown = { u = {} }
        define = "s = 1 + grad(u).grad(u)"
        [coefficients]
        k = {}
        one = {}
        [cells]
        energy = "one*k*sqrt(s)"
        source = "-u"
    "#;
    let equation = Equation::from_toml("film", text).unwrap();
    let form = equation.form(2).with("k", 3.5).unwrap().with("one", 1.0).unwrap();
    let derivations = form.derivations().unwrap();
    let [Derivation { term: None, residual, tangent, .. }] = &derivations[..] else {
        panic!("{derivations:?}")
    };
    let found = lines(residual);
    assert_eq!(found[0], "s = 1 + (grad(u)[0]^2 + grad(u)[1]^2)");
    assert!(
        found.iter().any(|line| line.starts_with("flux[0] = ") && line.contains("grad(u)[0]")),
        "{found:?}"
    );
    assert!(
        found.iter().any(|line| line.contains('k')) && !found.iter().any(|line| line.contains("3.5")),
        "{found:?}"
    );
    assert_eq!(found.last().unwrap(), "source = -u");
    let found = lines(tangent);
    assert!(
        found.iter().any(|line| line.starts_with("dflux[0] = ") && line.contains("grad(du)[0]")),
        "{found:?}"
    );
    assert_eq!(found.last().unwrap(), "dsource = -du");
}

#[test]
fn each_term_on_the_boundary_stands_once_and_unknowns_have_their_names() {
    let text = r#"
        unknown = { u = { components = "dimension" }, p = {} }
        [coefficients]
        b = { shape = "vector" }
        K = { shape = "tensor" }
        [cells]
        flux = { u = "sym(grad(u)) - p*identity", p = "K*grad(p)" }
        source = { u = "b", p = "div(u)" }
        capacity = { p = "2" }
        [boundary.pressure]
        coefficients = { value = {} }
        flux = { u = "-value*normal" }
    "#;
    let equation = Equation::from_toml("flow", text).unwrap();
    let vector = Argument::Vector(vec![Coefficient::Constant(4.0), Coefficient::Constant(0.0)]);
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0; 3]]);
    let mut form = equation.form(2).with("b", vector).unwrap().with("K", tensor).unwrap();
    for facets in [[0], [1]] {
        form = form.on_boundary("pressure", &facets, &[("value", 3.0.into())]).unwrap();
    }
    let derivations = form.derivations().unwrap();
    assert_eq!(
        derivations.iter().map(|own| own.term.as_deref()).collect::<Vec<_>>(),
        [None, Some("pressure")]
    );
    let found = lines(&derivations[0].residual);
    for line in [
        "flux_u[0, 0] = grad(u)[0, 0] - p",
        "flux_p[0] = K[0, 0]*grad(p)[0] + K[0, 1]*grad(p)[1]",
        "source_u[0] = b[0]",
        "source_p = grad(u)[0, 0] + grad(u)[1, 1] - 2*p_t",
    ] {
        assert!(found.contains(&line.to_owned()), "{line}: {found:#?}");
    }
    // Zeros are left out.
    assert!(!found.iter().any(|line| line.starts_with("source_u[1]")), "{found:#?}");
    assert!(lines(&derivations[0].tangent).iter().any(|line| line.ends_with("2*(alpha*dp)")), "{found:#?}");
    assert_eq!(
        lines(&derivations[1].residual),
        ["flux_u[0] = -value*normal[0]", "flux_u[1] = -value*normal[1]"]
    );
    assert_eq!(derivations[1].tangent.lines.as_ref().map(Vec::len), Some(0));
}

#[test]
fn the_shift_has_a_name_that_is_free() {
    let text = r#"
        unknown = { u = {} }
        [coefficients]
        alpha = {}
        [cells]
        flux = "alpha*grad(u)"
        capacity = "2"
    "#;
    let equation = Equation::from_toml("heat", text).unwrap();
    let form = equation.form(2).with("alpha", 3.0).unwrap();
    let [derivation] = &form.derivations().unwrap()[..] else { panic!("one integral") };
    assert_eq!(derivation.shift, "alpha_1");
    let found = lines(&derivation.tangent);
    assert!(found.contains(&"dflux[0] = alpha*grad(du)[0]".to_owned()), "{found:?}");
    assert!(found.last().unwrap().contains("alpha_1*du"), "{found:?}");
    let modes = form.without_capacity(true).derivations().unwrap();
    assert!(!lines(&modes[0].residual).iter().any(|line| line.contains("u_t")), "{modes:?}");
}

#[test]
fn the_last_value_by_tag_has_no_condition() {
    let text = r#"
        unknown = { u = {} }
        [coefficients]
        k = {}
        [cells]
        flux = "k*grad(u)"
    "#;
    let equation = Equation::from_toml("layers", text).unwrap();
    let formula = |text: &str| Coefficient::Expression(text.parse().unwrap());
    let parts = [(1, formula("1 + x")), (2, formula("2 + y"))].into();
    let form = equation.form(2).with("k", Coefficient::ByTag(parts)).unwrap();
    let found = lines(&form.derivations().unwrap()[0].residual).join("; ");
    assert!(found.contains("tag") && found.contains("1 + x") && found.contains("2 + y"), "{found}");
    assert!(!found.contains("0/0") && !found.contains("NaN"), "{found}");
}
