//! Coefficients of every kind have the values of [`Coefficient::tensor_at`] in an integrand.

use femtile_expression::Expression;
use femtile_form::{Coefficient, Equation, Input, PointFunction};
use femtile_mesh::Field;

use crate::point::{Point, residual};

fn formula(text: &str) -> Expression {
    Expression::parse(text).unwrap()
}

/// Coefficients of every kind, with whether they are scalars.
fn samples() -> Vec<Coefficient> {
    let field = |n: usize| {
        let values = (0..5 * n).map(|i| 0.5 + (i * i % 7) as f64).collect();
        Coefficient::CellField(Field { n_components: n, values })
    };
    let entries = std::array::from_fn(|i| std::array::from_fn(|j| formula(&format!("{i} + x*{j} - y"))));
    let tensor = Coefficient::Tensor([[2.0, 0.5, 0.25], [-0.5, 3.0, 0.75], [0.125, 1.5, 4.0]]);
    let parts = |kinds: [Coefficient; 3]| Coefficient::ByTag([-1, 0, 7].into_iter().zip(kinds).collect());
    vec![
        2.5.into(),
        formula("1 + x*z").into(),
        Coefficient::Function(PointFunction::new(|[x, y, z]| x - 2.0 * y + 3.0 * z)),
        field(1),
        parts([1.5.into(), 2.0.into(), 0.0.into()]),
        parts([formula("x").into(), 2.0.into(), field(1)]),
        field(3),
        field(6),
        field(9),
        tensor.clone(),
        Coefficient::TensorExpression(Box::new(entries)),
        parts([tensor, field(6), formula("y").into()]),
    ]
}

#[test]
fn diffusion_multiplies_the_gradient_by_any_kind_of_tensor() {
    let equation = Equation::named("reaction-diffusion").unwrap();
    for sigma in samples() {
        for dimension in [2, 3] {
            let form = equation.form(dimension).with("sigma", sigma.clone()).unwrap().build().unwrap();
            let integrand = &form.integrals()[0].integrand;
            for (cell, tag) in [(0, -1), (2, 0), (4, 7)] {
                let point = Point { cell, tag, ..Point::default() };
                let gradient = [0.5, -1.25, 2.0];
                let state: Vec<f64> = [0.75].iter().chain(&gradient[..dimension]).copied().collect();
                let found = residual(integrand, &point, &state, &[0.0]);
                let tensor = sigma.tensor_at(cell, tag, point.x);
                for (row, found) in found[1..].iter().enumerate() {
                    let products = (0..dimension).map(|column| tensor[row][column] * gradient[column]);
                    let expected: f64 = products.sum();
                    assert!((found - expected).abs() < 1e-14, "{sigma:?}: {found}, {expected}");
                }
            }
        }
    }
}

#[test]
fn reactions_and_sources_take_any_kind_of_scalar() {
    let equation = Equation::named("reaction-diffusion").unwrap();
    for scalar in samples().into_iter().filter(Coefficient::is_scalar) {
        let builder =
            equation.form(3).with("lambda", scalar.clone()).unwrap().with("source", scalar.clone()).unwrap();
        let form = builder.build().unwrap();
        for (cell, tag) in [(0, -1), (2, 0), (4, 7)] {
            let point = Point { cell, tag, ..Point::default() };
            let found = residual(&form.integrals()[0].integrand, &point, &[3.0, 0.0, 0.0, 0.0], &[0.0])[0];
            let expected = 2.0 * scalar.scalar_at(cell, tag, point.x);
            assert!((found - expected).abs() < 1e-14, "{scalar:?}");
        }
    }
}

#[test]
fn vectors_are_given_by_components_or_by_a_field() {
    let equation = Equation::named("convection-diffusion").unwrap();
    let field = Field { n_components: 3, values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0] };
    let form = equation.form(3).with("velocity", Coefficient::CellField(field)).unwrap().build().unwrap();
    let point = Point { cell: 1, ..Point::default() };
    let found = residual(&form.integrals()[0].integrand, &point, &[0.0, 1.0, 10.0, 100.0], &[0.0]);
    assert_eq!(found[0], 654.0);
    let components: Vec<Coefficient> = vec![formula("x").into(), 2.0.into()];
    let form = equation.form(2).with("velocity", components).unwrap().build().unwrap();
    let found = residual(&form.integrals()[0].integrand, &point, &[0.0, 1.0, 10.0], &[0.0]);
    assert_eq!(found[0], 20.3);
}

#[test]
fn elasticity_gives_the_stress_of_hookes_law() {
    let equation = Equation::named("elasticity").unwrap();
    let form = equation.form(3).with("young", 10.0).unwrap().with("poisson", 0.25).unwrap().build().unwrap();
    // λ = 4, μ = 4; the gradient of a displacement by rows, after its value.
    let gradient = [[1.0, 2.0, 0.0], [0.0, -1.0, 0.5], [1.0, 0.5, 2.0]];
    let state: Vec<f64> = gradient.iter().flat_map(|row| [9.0, row[0], row[1], row[2]]).collect();
    let found = residual(&form.integrals()[0].integrand, &Point::default(), &state, &[0.0; 3]);
    for i in 0..3 {
        assert_eq!(found[4 * i], 0.0);
        for j in 0..3 {
            let trace = if i == j { 4.0 * 2.0 } else { 0.0 };
            let expected = trace + 4.0 * (gradient[i][j] + gradient[j][i]);
            assert!((found[4 * i + 1 + j] - expected).abs() < 1e-14, "{i} {j}");
        }
    }
}

#[test]
fn plane_stress_has_no_stress_across_the_plane() {
    let equation = Equation::named("elasticity").unwrap();
    let builder = equation.form(2).with("young", 10.0).unwrap().with("poisson", 0.25).unwrap();
    let form = builder.with("plane_stress", 1.0).unwrap().build().unwrap();
    // Stretched along x by one, free along y: σ_xx = E/(1 − ν²).
    let found = residual(
        &form.integrals()[0].integrand,
        &Point::default(),
        &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        &[0.0; 2],
    );
    assert!((found[1] - 10.0 / (1.0 - 0.0625)).abs() < 1e-14, "{found:?}");
}

#[test]
fn pressure_acts_against_the_normal() {
    let equation = Equation::named("elasticity").unwrap();
    let builder = equation.form(3).with("young", 1.0).unwrap().with("poisson", 0.0).unwrap();
    let form = builder.on_boundary("pressure", &[4], &[("value", 2.0.into())]).unwrap().build().unwrap();
    let integrand = &form.integrals()[1].integrand;
    assert!(integrand.inputs().contains(&Input::Normal(2)));
    let found = residual(integrand, &Point::default(), &[0.0; 12], &[0.0; 3]);
    assert_eq!([found[0], found[4], found[8]], [1.2, 0.0, 1.6]);
}
