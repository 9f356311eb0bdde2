//! The tangent is the derivative of the residual, of random equations as well.

use femtile_expression::{Expression, Names};
use femtile_form::{Argument, Coefficient, Equation, Integrand};
use proptest::prelude::*;

use crate::point::{Point, matrix, residual, tangent};
use crate::random::{coefficient, equation, form_of, numbers};

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn tangents_of_random_equations_are_derivatives(
        (n, text) in equation(), dimension in 2usize..=3, seed in any::<u64>(), kind in 0usize..3,
    ) {
        let form = form_of(&text, dimension, coefficient(kind), &[0]);
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
    let text = "unknown = { u = {} }\ncells = { energy = \"sqrt(1 + grad(u).grad(u))\", source = \"-u\" }";
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

/// Neo-Hookean energy: the first Piola–Kirchhoff stress is $\mu(F - F^{-T}) + \lambda\log J\,F^{-T}$.
#[test]
fn a_neo_hookean_energy_has_its_stress_and_a_symmetric_tangent() {
    const TEXT: &str = r#"
        unknown = { u = { components = "dimension" } }
        define = "F = identity + grad(u); J = det(F)"
        cells = { energy = "3/2*(tr(F'*F) - 3) - 3*log(J) + 5/2*log(J)^2" }
    "#;
    for d in [2, 3] {
        let form = Equation::from_toml("neo-hookean", TEXT).unwrap().form(d).build().unwrap();
        let integrand = &form.integrals()[0].integrand;
        let class = integrand.class();
        assert!(class.symmetric && class.couples_components && !class.is_linear());
        let mut state = numbers(integrand.n_slots(), 7);
        state.iter_mut().for_each(|entry| *entry *= 0.2);
        let at = |i: usize, j: usize| state[i * (1 + d) + 1 + j] + f64::from(i == j);
        let (inverse, j) = inverse(d, &at);
        let found = residual(integrand, &Point::default(), &state, &vec![0.0; d]);
        for i in 0..d {
            for k in 0..d {
                // F⁻ᵀ has the transposed entries.
                let inverse = inverse[k][i];
                let expected = 3.0 * (at(i, k) - inverse) + 5.0 * j.ln() * inverse;
                let entry = found[i * (1 + d) + 1 + k];
                assert!((entry - expected).abs() < 1e-13, "{entry} and {expected}");
            }
        }
        compare(integrand, d, 11).unwrap();
    }
}

/// The inverse of a matrix by Gauss–Jordan elimination without pivots, and its determinant.
fn inverse(d: usize, at: &dyn Fn(usize, usize) -> f64) -> (Vec<Vec<f64>>, f64) {
    let mut rows: Vec<Vec<f64>> =
        (0..d).map(|i| (0..d).map(|j| at(i, j)).chain((0..d).map(|j| f64::from(i == j))).collect()).collect();
    let mut determinant = 1.0;
    for k in 0..d {
        let pivot = rows[k][k];
        determinant *= pivot;
        rows[k].iter_mut().for_each(|entry| *entry /= pivot);
        let row = rows[k].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = other[k];
            other.iter_mut().zip(&row).for_each(|(entry, by)| *entry -= factor * by);
        }
    }
    (rows.into_iter().map(|row| row[d..].to_vec()).collect(), determinant)
}
