//! The class of a tangent.

use femtile_expression::{Expression, Names};
use femtile_form::Dependence::{ByCell, ByPoint, Constant, WithState, Zero};
use femtile_form::{Argument, Class, Coefficient, Equation, Form, Storage};
use femtile_mesh::Field;

fn formula(text: &str) -> Coefficient {
    Coefficient::Expression(Expression::parse_with(text, &Names { time: true, others: &["u"] }).unwrap())
}

fn form(name: &str, dimension: usize, arguments: &[(&str, Argument)]) -> Form {
    let equation = Equation::named(name).unwrap();
    let mut builder = equation.form(dimension);
    for (name, value) in arguments {
        builder = builder.with(name, value.clone()).unwrap();
    }
    builder.build().unwrap()
}

fn class(name: &str, dimension: usize, arguments: &[(&str, Argument)]) -> Class {
    *form(name, dimension, arguments).integrals()[0].integrand.class()
}

#[test]
fn dependence_of_diffusion_is_that_of_its_coefficient() {
    let field = Coefficient::CellField(Field { n_components: 1, values: vec![1.0; 4] });
    let by_tag = Coefficient::ByTag([(1, 2.0.into()), (2, 3.0.into())].into());
    let by_tag_and_point = Coefficient::ByTag([(1, 2.0.into()), (2, formula("x"))].into());
    let tensor = Coefficient::Tensor([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 1.0]]);
    for (sigma, dependence, isotropic) in [
        (Coefficient::Constant(2.0), Constant, true),
        (formula("1 + t"), Constant, true),
        (field, ByCell, true),
        (by_tag, ByCell, true),
        (by_tag_and_point, ByPoint, true),
        (formula("1 + x*y"), ByPoint, true),
        (tensor, Constant, false),
    ] {
        for dimension in [2, 3] {
            let class = class("reaction-diffusion", dimension, &[("sigma", sigma.clone().into())]);
            assert_eq!((class.diffusion, class.isotropic), (dependence, isotropic), "{sigma:?}");
            assert_eq!((class.reaction, class.convection, class.drift), (Zero, Zero, Zero));
            assert!(class.is_diffusion_reaction() && class.is_linear());
        }
    }
}

#[test]
fn a_conductivity_of_the_state_drifts_and_is_not_symmetric() {
    let class =
        class("reaction-diffusion", 3, &[("sigma", formula("1 + u^2").into()), ("lambda", 2.0.into())]);
    assert_eq!((class.diffusion, class.drift, class.reaction), (WithState, WithState, Constant));
    assert!(!class.symmetric && !class.is_linear() && !class.is_diffusion_reaction());
}

#[test]
fn a_source_of_the_state_is_a_reaction() {
    let class = class("reaction-diffusion", 2, &[("source", formula("exp(u)").into())]);
    assert_eq!((class.reaction, class.drift), (WithState, Zero));
    assert!(class.symmetric && class.is_diffusion_reaction());
}

#[test]
fn convection_is_not_symmetric() {
    let velocity = vec![formula("y"), formula("-x")];
    let class = class("convection-diffusion", 2, &[("velocity", velocity.into())]);
    assert_eq!((class.convection, class.diffusion), (ByPoint, Constant));
    assert!(!class.symmetric && class.is_linear());
    let still = self::class("convection-diffusion", 2, &[("velocity", vec![0.0.into(), 0.0.into()].into())]);
    assert!(still.symmetric && still.convection == Zero);
}

#[test]
fn elasticity_couples_components_symmetrically() {
    for dimension in [2, 3] {
        let class =
            class("elasticity", dimension, &[("young", formula("1 + x").into()), ("poisson", 0.25.into())]);
        assert!(class.symmetric && class.couples_components && !class.isotropic && class.is_linear());
        assert_eq!((class.reaction, class.diffusion), (Zero, ByPoint));
    }
}

#[test]
fn time_makes_a_mass_matrix_through_the_shift() {
    let class = class("diffusion", 3, &[]);
    assert_eq!((class.reaction, class.diffusion), (Constant, Constant));
    assert!(class.is_diffusion_reaction());
}

#[test]
fn the_rate_is_found_where_it_stands() {
    let storage = |components: &str, cells: &str| {
        let text = format!("unknown = {{ u = {components} }}\ncells = {cells}");
        Equation::from_toml("own", &text).unwrap().form(2).build().unwrap().storage()
    };
    for (cells, has_rate, capacity, is_in_time) in [
        ("{ flux = \"grad(u)\" }", false, Zero, false),
        ("{ capacity = \"2\" }", true, Constant, false),
        ("{ capacity = \"1 + x*t\" }", true, ByPoint, true),
        ("{ capacity = \"1 + u^2\", source = \"t\" }", true, WithState, false),
        ("{ source = \"x - 3*u_t\" }", true, Constant, false),
        ("{ source = \"u_t^2\" }", true, WithState, false),
    ] {
        let found = storage("{}", cells);
        let expected = Storage { components: vec![has_rate], capacity, is_in_time };
        assert_eq!(found, expected, "{cells}");
    }
    let two = |cells: &str| storage("{ components = 2 }", cells).components;
    assert_eq!(two("{ capacity = \"3\" }"), [true, true]);
    assert_eq!(two("{ capacity = \"[0, 1]\" }"), [false, true]);
    assert_eq!(two("{ capacity = \"[[0, 1], [0, 0]]\" }"), [false, true]);
}
