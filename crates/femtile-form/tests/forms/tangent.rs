//! The tangent is the derivative of the residual, of random equations as well.

use femtile_expression::{Expression, Names};
use femtile_form::{Argument, Coefficient, Equation, Form, Integrand};
use proptest::prelude::*;

use crate::point::{Point, matrix, residual, tangent};

/// Formulas of given names, smooth and bounded together with their derivatives for inputs of size one.
fn formula(names: Vec<String>) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![proptest::sample::select(names), (-20i32..20).prop_map(|n| format!("({}/8)", n)),];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} + {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} - {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}*{b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}/(2 + ({b})^2)")),
            inner.clone().prop_map(|a| format!("sin({a})")),
            inner.clone().prop_map(|a| format!("exp(-({a})^2)")),
            inner.prop_map(|a| format!("sqrt(1 + ({a})^2)")),
        ]
    })
}

/// The text of an equation with random formulas: components, and formulas of cells, boundary, both sides of interior facets.
fn equation() -> impl Strategy<Value = (usize, String)> {
    (1usize..=3).prop_flat_map(|n| {
        let components: Vec<String> = (0..n).map(|c| format!("v{c}")).collect();
        let state = |sides: &[&str]| -> Vec<String> {
            let of = |side: &&str| {
                let side = (*side).to_owned();
                let names = components.clone().into_iter();
                names.flat_map(move |name| {
                    ["", "_x", "_y", "_z"].map(|axis| format!("{name}{side}{axis}"))
                })
            };
            sides.iter().flat_map(of).collect()
        };
        let with = |names: Vec<String>, more: &[&str]| -> Vec<String> {
            names.into_iter().chain(more.iter().map(|name| (*name).to_owned())).collect()
        };
        let rates = components.iter().map(|name| format!("{name}_t"));
        let cell_names: Vec<String> = with(state(&[""]), &["x", "y", "z", "t", "c"]).into_iter().chain(rates).collect();
        let facet_names = with(state(&[""]), &["x", "n_x", "n_y", "n_z"]);
        let interior_names = with(state(&["", "_other"]), &["x", "n_x", "n_z"]);
        let source = |names: &[String]| proptest::collection::vec(formula(names.to_vec()), n);
        let flux = |names: &[String]| {
            proptest::collection::vec(proptest::collection::vec(formula(names.to_vec()), 3), n)
        };
        (
            source(&cell_names),
            flux(&cell_names),
            source(&facet_names),
            source(&interior_names),
            source(&interior_names),
            flux(&interior_names),
        )
            .prop_map(move |(source, flux, on_boundary, first, second, flux_second)| {
                let text = format!(
                    "description = \"random\"\nunknown = {components:?}\n[coefficients]\nc = {{}}\n\
                     [cells]\nsource = {source:?}\nflux = {flux:?}\n\
                     [boundary.random]\nsource = {on_boundary:?}\n\
                     [interior]\nsource = {first:?}\nsource_other = {second:?}\nflux_other = {flux_second:?}\n"
                );
                (n, text)
            })
    })
}

/// Numbers of size one.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Compares the tangent of an integrand with central differences and with its matrix.
fn compare(integrand: &Integrand, n_components: usize, seed: u64) -> Result<(), TestCaseError> {
    const STEP: f64 = 1e-5;
    let n = integrand.n_slots();
    let point = Point { shift: 1.75, ..Point::default() };
    let state = numbers(n, seed);
    let direction = numbers(n, seed ^ 0x5555);
    let rate = numbers(n_components, seed ^ 0xAAAA);
    let moved = |step: f64| {
        let along = |(at, by): (&f64, &f64)| at + step * by;
        let state: Vec<f64> = state.iter().zip(&direction).map(along).collect();
        let values = direction.iter().step_by(n / n_components / integrand.n_sides());
        let rate: Vec<f64> = rate.iter().zip(values).map(|(at, by)| at + step * point.shift * by).collect();
        residual(integrand, &point, &state, &rate)
    };
    let (forward, backward) = (moved(STEP), moved(-STEP));
    let found = tangent(integrand, &point, &state, &rate, &direction);
    let matrix = matrix(integrand, &point, &state, &rate);
    for row in 0..n {
        let difference = (forward[row] - backward[row]) / (2.0 * STEP);
        let product: f64 = matrix[row].iter().zip(&direction).map(|(a, b)| a * b).sum();
        let size: f64 = 1.0 + matrix[row].iter().map(|entry| entry.abs()).sum::<f64>();
        prop_assert!(
            (found[row] - product).abs() < 1e-12 * size,
            "{} and {product} in row {row}",
            found[row]
        );
        prop_assert!(
            (found[row] - difference).abs() < 1e-5 * size * size,
            "{} and {difference} in row {row}",
            found[row]
        );
    }
    if integrand.class().symmetric {
        for (row, entries) in matrix.iter().enumerate() {
            for (column, entry) in entries.iter().enumerate() {
                prop_assert_eq!(*entry, matrix[column][row]);
            }
        }
    }
    Ok(())
}

fn form_of(text: &str, dimension: usize, c: Coefficient) -> Form {
    let equation = Equation::from_toml("random", text).unwrap();
    let builder = equation.form(dimension).with("c", c).unwrap();
    builder.on_boundary("random", &[0], &[]).unwrap().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn tangents_of_random_equations_are_derivatives(
        (n, text) in equation(), dimension in 2usize..=3, seed in any::<u64>(), kind in 0..3,
    ) {
        let c = match kind {
            0 => Coefficient::Constant(0.75),
            1 => Coefficient::Expression(
                Expression::parse_with("1 + x*sin(u) + t", &Names { time: true, others: &["u"] }).unwrap(),
            ),
            _ => Coefficient::ByTag([
                (0, Coefficient::Expression(Expression::parse_with("exp(-u^2)*y", &Names { time: false, others: &["u"] }).unwrap())),
                (3, Coefficient::Constant(2.0)),
            ].into()),
        };
        let form = form_of(&text, dimension, c);
        prop_assert_eq!(form.integrals().len(), 3);
        for integral in form.integrals() {
            compare(&integral.integrand, n, seed)?;
        }
    }

    #[test]
    fn tangents_of_the_library_are_derivatives(dimension in 2usize..=3, seed in any::<u64>()) {
        for name in Equation::names() {
            let equation = Equation::named(name).unwrap();
            let n = equation.n_components(dimension);
            let of = Expression::parse_with("2 + x^2 + u^2/4", &Names { time: false, others: &["u"] }).unwrap();
            let mut builder = equation.form(dimension);
            for coefficient in equation.coefficients() {
                let vector = vec![Coefficient::Expression(of.clone()); dimension];
                let scalar = Argument::from(Coefficient::Expression(of.clone()));
                let as_vector = builder.clone().with(coefficient, vector).unwrap();
                let is_vector = ["velocity"].contains(&coefficient) || name == "elasticity" && coefficient == "source";
                builder = if is_vector { as_vector } else { builder.with(coefficient, scalar).unwrap() };
            }
            if name == "elasticity" {
                builder = builder.with("poisson", 0.3).unwrap().with("plane_stress", f64::from(dimension == 2)).unwrap();
            }
            let form = builder.build().unwrap();
            compare(&form.integrals()[0].integrand, n, seed)?;
        }
    }
}

#[test]
fn an_energy_stands_for_its_derivatives() {
    let text = "description = \"minimal surface\"\nunknown = [\"u\"]\n[cells]\nenergy = \"sqrt(1 + u_x^2 + u_y^2)\"\nsource = [\"u\"]\n";
    let form = Equation::from_toml("surface", text).unwrap().form(2).build().unwrap();
    let integrand = &form.integrals()[0].integrand;
    let state = [0.5, 0.75, -1.25];
    let root = (1.0f64 + 0.75 * 0.75 + 1.25 * 1.25).sqrt();
    let found = residual(integrand, &Point::default(), &state, &[0.0]);
    let expected = [0.5, 0.75 / root, -1.25 / root];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{found:?}");
    let mut energy = [f64::NAN];
    let inputs = crate::point::inputs(integrand, &Point::default(), &state, &[0.0], &[0.0; 3]);
    integrand.energy().unwrap().eval(&inputs, &mut energy);
    assert!((energy[0] - root).abs() < 1e-15);
}
