//! Errors and their messages.

use femtile_form::{Coefficient, Equation, FormError};
use femtile_mesh::Field;
use femtile_mesh::generate::{BoxConfig, box_mesh};

fn told(result: Result<impl Sized, FormError>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn equations_that_cannot_be_read_name_the_place() {
    let read = |text: &str| {
        let built = Equation::from_toml("mine", text).and_then(|equation| {
            let mut builder = equation.form(2);
            for name in equation.coefficients() {
                builder = builder.with(name, 1.0)?;
            }
            builder.build()
        });
        told(built)
    };
    let head = "unknown = { u = {} }\n";
    for (text, expected) in [
        (
            "cells = { source = \"u + w\" }",
            "equation mine: source: unknown name `w`; the names are x, y, z, t, identity, u, u_t, pi",
        ),
        (
            "cells = { source = \"grad(u)\" }",
            "equation mine: source: this is a vector of 2, where the source needs a number\ngrad(u)\n^^^^^^^",
        ),
        (
            "cells = { flux = \"u\" }",
            "equation mine: flux: this is a number, where the flux needs a vector of 2",
        ),
        (
            "cells = { energy = \"grad(u)*grad(u)\" }",
            "equation mine: energy: `grad(u)` is a vector of 2 and `grad(u)` a vector of 2, which cannot be multiplied; the scalar product is written a.b",
        ),
        ("cells = { flux = { w = \"u\" } }", "equation mine: flux.w: there is no unknown w; there are u"),
        (
            "cells = { flux = \"grad(grad(u).grad(u))\" }",
            "equation mine: flux: `grad(grad(u).grad(u))` does not fit a number; there are no second derivatives of u",
        ),
        ("cells = { source = \"normal.grad(u)\" }", "equation mine: source: unknown name `normal`"),
        ("define = \"a = b; b = a\"", "equation mine: define.a: unknown name `b`"),
        ("define = \"u = 2\"", "equation mine: define.u: the name `u` is given twice"),
        ("define = \"2*u\"", "equation mine: define: `2*u` is no definition"),
        ("cells = { sauce = \"u\" }", "equation mine: TOML parse error"),
        ("cells = { energy = \"u^\" }", "equation mine: energy: the text ends where a number"),
        ("coefficients = { c = {} }\ncells = { energy = \"cc\" }", "c: no formula uses it"),
        (
            "coefficients = { tr = {} }\ncells = { source = \"tr\" }",
            "equation mine: coefficients.tr: `tr` is a function",
        ),
    ] {
        let found = read(&format!("{head}{text}")).replace("; did you mean", "");
        assert!(found.starts_with(expected), "{found}");
    }
    let two = "unknown = { a = {}, b = { components = 2 } }\ncells = { source = \"a\" }";
    assert!(read(two).contains("one formula for several unknowns; give one for each of a, b"));
    assert!(read("unknown = {}").contains("unknown: at least one is needed"));
    assert!(
        read("unknown = { u = { components = 0 } }").contains("unknown.u: a vector has 1 to 16 components")
    );
    assert!(told(Equation::named("elastisity")).contains("known are reaction-diffusion, diffusion"));
}

#[test]
fn coefficients_that_do_not_fit_are_named() {
    let elasticity = Equation::named("elasticity").unwrap();
    let found = told(elasticity.form(3).with("yung", 1.0));
    assert_eq!(
        found,
        "yung: the equation does not have it; known are expansion, plane_stress, poisson, reference_temperature, source, temperature, young"
    );
    assert_eq!(told(elasticity.form(3).with("young", 1.0).unwrap().build()), "poisson: it has no value");
    let complete = || elasticity.form(3).with("young", 1.0).unwrap().with("poisson", 0.3).unwrap();
    let found = told(complete().with("source", 1.0).unwrap().build());
    assert_eq!(found, "source: it must be a vector of 3 components");
    let found = told(complete().with("source", vec![Coefficient::Constant(1.0); 2]).unwrap().build());
    assert_eq!(found, "source: a vector needs 3 scalars");
    let tensor = Coefficient::Tensor([[1.0; 3]; 3]);
    assert_eq!(told(complete().with("young", tensor).unwrap().build()), "young: it must be a scalar");
    let found = told(complete().on_boundary("traktion", &[], &[]));
    assert_eq!(found, "traktion: the equation does not have it; known are pressure, spring, traction");
}

#[test]
fn data_that_do_not_cover_a_mesh_are_named() {
    let mut mesh = box_mesh(&BoxConfig { cells: [2, 2, 1], ..BoxConfig::default() }).unwrap();
    let n = mesh.n_cells();
    mesh.cell_tags = (0..n).map(|cell| (cell % 3) as i32).collect();
    let equation = Equation::named("reaction-diffusion").unwrap();
    let check = |lambda: Coefficient| {
        let form = equation.form(3).with("lambda", lambda).unwrap().build().unwrap();
        form.integrals()[0].integrand.check(&mesh)
    };
    let some = Coefficient::ByTag([(0, 1.0.into()), (1, 2.0.into())].into());
    assert_eq!(told(check(some)), "lambda: no value for cells with tag 2; tags with a value: 0, 1");
    let short = Coefficient::CellField(Field { n_components: 1, values: vec![1.0; n - 1] });
    assert!(told(check(short)).starts_with("lambda: a field of "));
    assert!(check(Coefficient::ByTag((0..3).map(|tag| (tag, 1.0.into())).collect())).is_ok());
}
