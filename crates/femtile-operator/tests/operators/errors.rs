//! Errors and their messages.

use femtile_device::Cpu;
use femtile_expression::Expression;
use femtile_form::{Coefficient, Equation, FormError};
use femtile_mesh::CellKind;
use femtile_mesh::check::boundary_facets;
use femtile_operator::{CpuOperator, DiscreteForm, OperatorError, State, reference};
use femtile_space::{LinearConstraints, Space};

use crate::meshes::mesh;

#[test]
fn values_that_are_not_finite_name_the_cell_the_point_and_the_inputs() {
    let mesh = mesh(CellKind::Quadrilateral, [3, 3, 1], None);
    let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, 2).unwrap());
    let sigma = Coefficient::Expression(Expression::parse("sqrt(x - 0.4)").unwrap());
    let equation = Equation::named("reaction-diffusion").unwrap();
    let form = equation.form(2).with("sigma", sigma).unwrap().build().unwrap();
    let discrete = DiscreteForm::new(&space, &form, &boundary).unwrap();
    let operator = CpuOperator::new(discrete, &Cpu::new(1).unwrap()).unwrap();
    let u = vec![1.0; space.n_dofs()];
    let mut r = vec![0.0; u.len()];
    let pattern = operator.pattern(&LinearConstraints::none(u.len())).unwrap();
    let failures = [
        reference::residual(&discrete, &State::of(&u), &mut r).unwrap_err(),
        operator.residual(&State::of(&u), &mut r).unwrap_err(),
        operator.assemble(&State::of(&u), pattern).unwrap_err(),
    ];
    for failure in failures {
        let OperatorError::Form(FormError::IntegrandNotFinite { domain, cell, point, inputs, .. }) = &failure
        else {
            panic!("{failure}");
        };
        assert_eq!(*domain, "the cells");
        assert!(mesh.cell(*cell).iter().any(|&node| mesh.points[node as usize][0] < 0.4) && point[0] < 0.4);
        assert!(
            inputs.contains(&format!("x = {}", point[0])) && inputs.contains("grad(u)[1] = "),
            "{inputs}"
        );
    }
}

#[test]
fn vectors_facets_and_dimensions_that_do_not_fit_are_named() {
    let mesh = mesh(CellKind::Triangle, [2, 1, 1], None);
    let (boundary, space) = (boundary_facets(&mesh), Space::new(&mesh, 1).unwrap());
    let elasticity = Equation::named("elasticity").unwrap();
    let builder = |d: usize| elasticity.form(d).with("young", 1.0).unwrap().with("poisson", 0.3).unwrap();
    let solid = builder(3).build().unwrap();
    let told = |error: OperatorError| error.to_string();
    assert_eq!(
        told(DiscreteForm::new(&space, &solid, &boundary).unwrap_err()),
        "a form in 3 dimensions on a mesh of 2"
    );
    let beyond = boundary.len() as u32;
    let pressed =
        builder(2).on_boundary("pressure", &[beyond], &[("value", 1.0.into())]).unwrap().build().unwrap();
    let expected = format!("there is no facet {beyond}: the boundary has {beyond} facets");
    assert_eq!(told(DiscreteForm::new(&space, &pressed, &boundary).unwrap_err()), expected);
    let plane = builder(2).build().unwrap();
    let discrete = DiscreteForm::new(&space, &plane, &boundary).unwrap();
    let n = discrete.n_unknowns();
    assert_eq!(n, 2 * mesh.n_nodes());
    let operator = CpuOperator::new(discrete, &Cpu::new(1).unwrap()).unwrap();
    let short = vec![0.0; n - 1];
    let failure = operator.apply(&State::default(), &short, &mut vec![0.0; n]).unwrap_err();
    assert_eq!(told(failure), format!("direction has {} entries; the space has {n} unknowns", n - 1));
    assert!(matches!(
        operator.residual(&State::of(&short), &mut vec![0.0; n]),
        Err(OperatorError::Length { .. })
    ));
    assert!(matches!(operator.pattern(&LinearConstraints::none(3)), Err(OperatorError::Mismatch(_))));
    // A pattern of another space, with values that fit it.
    let quadratic = Space::new(&mesh, 2).unwrap();
    let larger =
        CpuOperator::new(DiscreteForm::new(&quadratic, &plane, &boundary).unwrap(), &Cpu::new(1).unwrap())
            .unwrap();
    let own = operator.pattern(&LinearConstraints::none(n)).unwrap();
    let failure = larger.refill(&State::default(), &own, &mut vec![0.0; own.n_nonzeros()]).unwrap_err();
    assert!(told(failure).starts_with(&format!("pattern has {n} entries; the space has ")));
}
