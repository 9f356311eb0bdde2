//! Errors and their messages.

use femtile_form::{Coefficient, Equation, FormError};
use femtile_mesh::Field;
use femtile_mesh::generate::{BoxConfig, box_mesh};

fn told(result: Result<impl Sized, FormError>) -> String {
    result.err().unwrap().to_string()
}

#[test]
fn equations_that_cannot_be_read_name_the_place() {
    let read =
        |text: &str| told(Equation::from_toml("mine", text).and_then(|equation| equation.form(2).build()));
    let head = "description = \"\"\nunknown = [\"u\"]\n";
    for (text, expected) in [
        ("[cells]\nsource = [\"u + w\"]", "equation mine: cells.source[0]: "),
        (
            "[cells]\nsource = [\"u\", \"u\"]",
            "equation mine: cells: 2 formulas of the source for 1 components",
        ),
        (
            "[cells]\nflux = [[\"u_x\"]]",
            "equation mine: cells: the flux needs 1 rows (components) of 3 formulas",
        ),
        ("[define]\na = \"b\"\nb = \"a\"\n[cells]\nsource = [\"a\"]", "equation mine: define.a: "),
        ("[define]\nu = \"2\"\n[cells]\nsource = [\"u\"]", "equation mine: define.u: "),
        ("[cells]\nsauce = [\"u\"]", "equation mine: "),
        ("[cells]\nenergy = \"u_x^\"", "equation mine: cells.energy: "),
    ] {
        let found = read(&format!("{head}{text}"));
        assert!(found.starts_with(expected), "{found}");
    }
    assert!(told(Equation::named("elastisity")).contains("known are reaction-diffusion, diffusion"));
}

#[test]
fn definitions_may_stand_in_any_order() {
    let text = "description = \"\"\nunknown = [\"u\"]\n[define]\na = \"2*b\"\nb = \"3*c\"\nc = \"u\"\n[cells]\nsource = [\"a\"]";
    let form = Equation::from_toml("ordered", text).unwrap().form(2).build().unwrap();
    let found =
        crate::point::residual(&form.integrals()[0].integrand, &Default::default(), &[0.5, 0.0, 0.0], &[0.0]);
    assert_eq!(found[0], 3.0);
}

#[test]
fn coefficients_that_do_not_fit_are_named() {
    let elasticity = Equation::named("elasticity").unwrap();
    let found = told(elasticity.form(3).with("yung", 1.0));
    assert_eq!(found, "yung: the equation does not have it; known are plane_stress, poisson, source, young");
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
