//! Convection and diffusion: orders of convergence, and a boundary layer.

use femtile_expression::Expression;
use femtile_form::{Coefficient, Equation, Form};
use femtile_mesh::CellKind;
use femtile_mesh::generate::DeformConfig;

use crate::meshes::{KINDS, mesh};
use crate::problems::{AXES, errors, formula, orders};

fn convection(dimension: usize, sigma: f64, velocity: &[Expression], source: Expression) -> Form {
    let equation = Equation::named("convection-diffusion").unwrap();
    let velocity: Vec<Coefficient> =
        velocity[..dimension].iter().cloned().map(Coefficient::Expression).collect();
    let builder = equation.form(dimension).with("sigma", sigma).unwrap().with("velocity", velocity).unwrap();
    builder.with("source", Coefficient::Expression(source)).unwrap().build().unwrap()
}

#[test]
fn solutions_converge_with_the_orders_of_theory() {
    let velocity = [formula("1 + y"), formula("-x"), formula("0.5")];
    for kind in KINDS {
        let d = kind.dimension();
        let exact = if d == 2 { formula("sin(2*x)*exp(y)") } else { formula("sin(2*x)*exp(y)*cos(z)") };
        let sigma = Expression::constant(0.5);
        let terms = (0..d).map(|axis| {
            let slope = exact.derivative(AXES[axis]);
            &(&velocity[axis] * &slope) - &(&sigma * &slope.derivative(AXES[axis]))
        });
        let source = terms.reduce(|sum, term| &sum + &term).unwrap();
        let form = convection(d, 0.5, &velocity, source);
        assert!(!form.is_symmetric());
        for degree in 1..=3 {
            let cells = if d == 2 {
                [8, 16]
            } else if degree == 1 {
                [5, 10]
            } else {
                [2, 4]
            };
            let deformation = (!kind.is_simplex()).then_some(DeformConfig { amplitude: 0.05, order: degree });
            let of = |n: usize| {
                errors(&mesh(kind, [n; 3], deformation), degree, &form, std::slice::from_ref(&exact))
            };
            let found = orders(of(cells[0]), of(cells[1]), 2.0);
            let p = degree as f64;
            assert!(found[0] > p + 0.8 && found[1] > p - 0.2, "{kind}, degree {degree}: {found:?}");
        }
    }
}

#[test]
fn a_resolved_boundary_layer_is_that_of_the_exact_solution() {
    // −σu'' + u' = 0, u(0) = 0, u(1) = 1.
    let exact = formula("(exp(x/0.1) - 1)/(exp(1/0.1) - 1)");
    let velocity = [formula("1"), formula("0")];
    let form = convection(2, 0.1, &velocity, Expression::constant(0.0));
    let of = |n: usize| {
        errors(&mesh(CellKind::Quadrilateral, [n, 1, 1], None), 4, &form, std::slice::from_ref(&exact))
    };
    let (coarse, fine) = (of(8), of(16));
    assert!(fine[0] < 2e-6, "{fine:?}");
    assert!(orders(coarse, fine, 2.0)[0] > 4.6, "{coarse:?}, {fine:?}");
}
