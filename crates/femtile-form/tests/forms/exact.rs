//! Forms whose solution is a given function.

use femtile_expression::Expression;
use femtile_form::{Coefficient, Equation, Form};

use crate::point::{Point, matrix, residual};
use crate::random::numbers;

const TEXT: &str = r#"
    unknown = { u = { components = 2 } }
    coefficients = { c = {} }
    define = "E = grad(u) + [[1, 0, 0], [0, 1, 0]]"
    [cells]
    energy = "c*log(1 + (E:E)^2) + u[0]*u[1]^2"
    flux = "(u*u')*E"
    source = "[x*u[1] - u_t[0], t*exp(u[0])]"
    capacity = "[2 + u[0], 0]"
    [boundary.leak]
    flux = "sin(u[0])*normal[0]*u + grad(u)*normal"
    [interior]
    source = "u - u_other"
    source_other = "if(u[0] > u_other[1], grad(u_other)*normal, u)"
"#;

/// Returns the form, without or with a solution.
fn form(exact: Option<&[&str; 2]>) -> Form {
    let equation = Equation::from_toml("own", TEXT).unwrap();
    let c = Expression::parse_in_time("1 + x*y + t").unwrap();
    let builder = equation.form(3).with("c", Coefficient::Expression(c)).unwrap();
    let builder = builder.on_boundary("leak", &[0], &[]).unwrap();
    let read = |text: &&str| Expression::parse_in_time(text).unwrap();
    match exact {
        None => builder.build().unwrap(),
        Some(texts) => builder.with_exact(texts.iter().map(read).collect()).build().unwrap(),
    }
}

#[test]
fn the_residual_vanishes_at_the_solution_and_the_tangent_is_that_of_the_equation() {
    let (own, manufactured) = (form(None), form(Some(&["x*y + t*x^2", "y*z"])));
    let point = Point::default();
    let ([x, y, z], t) = (point.x, point.time);
    let of_side = [x * y + t * x * x, y + 2.0 * t * x, x, 0.0, y * z, 0.0, z, y];
    for (own, manufactured) in own.integrals().iter().zip(manufactured.integrals()) {
        let (own, manufactured) = (&own.integrand, &manufactured.integrand);
        let at_exact = of_side.repeat(own.n_sides());
        let rate_of_exact = [x * x, 0.0];
        let shift = residual(own, &point, &at_exact, &rate_of_exact);
        assert!(shift.iter().any(|f| f.abs() > 0.1), "{shift:?}");
        for f in residual(manufactured, &point, &at_exact, &rate_of_exact) {
            assert!(f.abs() < 1e-14, "{f}");
        }
        let (u, rate) = (numbers(own.n_slots(), 5), numbers(2, 7));
        let [expected, found] = [own, manufactured].map(|form| residual(form, &point, &u, &rate));
        for ((expected, shift), found) in expected.iter().zip(&shift).zip(&found) {
            assert!((expected - shift - found).abs() < 1e-13, "{expected} - {shift} and {found}");
        }
        assert_eq!(own.class(), manufactured.class());
        assert_eq!(own.entries(), manufactured.entries());
        let [expected, found] = [own, manufactured].map(|form| matrix(form, &point, &u, &rate));
        assert_eq!(expected, found);
    }
}
