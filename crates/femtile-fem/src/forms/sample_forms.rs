//! Coefficients of every kind, for checks that compile their kernels.

use std::collections::BTreeMap;

use femtile_expression::{Expression, Names};
use femtile_mesh::Field;

use super::{Coefficient, CudaForm, Slopes};

fn formula(text: &str) -> Coefficient {
    Expression::parse(text).map_or(Coefficient::Constant(f64::NAN), Coefficient::Expression)
}

fn field(n_components: usize) -> Coefficient {
    Coefficient::CellField(Field { n_components, values: Vec::new() })
}

fn tensor_formula(texts: [[&str; 3]; 3]) -> Coefficient {
    let entry = |text| Expression::parse(text).unwrap_or_else(|_| Expression::constant(f64::NAN));
    Coefficient::TensorExpression(Box::new(texts.map(|row| row.map(entry))))
}

fn by_tag<const N: usize>(parts: [Coefficient; N]) -> Coefficient {
    Coefficient::ByTag((0..).zip(parts).collect::<BTreeMap<_, _>>())
}

/// Returns conductivity, reaction and source, of each kind at least once.
fn every_kind() -> Vec<[Coefficient; 3]> {
    let constant = Coefficient::Constant;
    let tensor = || Coefficient::Tensor([[2.0, 0.5, 0.0], [0.5, 2.0, 0.0], [0.0, 0.0, 1.0]]);
    let wave = || formula("2 + sin(pi*x)*cos(pi*y) + exp(-z^2)");
    let rotated =
        || tensor_formula([["2 + x", "0.3*y", "0"], ["0.3*y", "1 + x^2", "0.1"], ["0", "0.1", "3"]]);
    // Together, these use every function of formulas.
    let choices = || {
        formula(
            "if(x == y and not z > 1 or x != 2, sign(x) + floor(y), ceil(z)) + min(x, y) + max(y, abs(z))",
        )
    };
    let roots = || formula("sqrt(x) + log(y) + log10(z) + hypot(x, y) + x^y + z^-3");
    let angles =
        || formula("tan(x) + asin(y) + acos(z) + atan(x) + atan2(y, z) + sinh(x) + cosh(y) + tanh(z)");
    vec![
        [choices(), roots(), constant(1.0)],
        [constant(1.0), constant(0.0), angles()],
        [constant(1.0), constant(0.0), constant(1.0)],
        [constant(1.0), constant(2.0), wave()],
        [wave(), wave(), wave()],
        [field(1), field(1), field(1)],
        [by_tag([constant(1.0), wave(), field(1)]), by_tag([constant(0.0), wave()]), wave()],
        [tensor(), constant(0.0), constant(1.0)],
        [tensor(), constant(1.0), wave()],
        [rotated(), formula("x + 2*y"), wave()],
        [field(3), constant(1.0), constant(0.0)],
        [field(6), constant(0.0), field(1)],
        [field(9), wave(), constant(1.0)],
        [by_tag([constant(1.0), tensor(), wave(), rotated(), field(6)]), constant(0.0), constant(1.0)],
        [field(6), constant(0.0), constant(0.0)],
    ]
}

/// Visits a form of every kind in two and three dimensions, with the number of the kind and of the corners of a cell.
pub fn for_every_form(mut visit: impl FnMut(usize, usize, &CudaForm<'_>)) {
    let kinds = every_kind();
    for dimension in [2, 3] {
        for (k, [sigma, lambda, source]) in kinds.iter().enumerate() {
            if let Some(form) = CudaForm::new(dimension, sigma, lambda, source) {
                visit(k, dimension + 1, &form);
            }
        }
    }
}

/// Returns a coefficient that depends on the time and on u.
fn in_state(text: &str) -> Coefficient {
    let names = Names { time: true, others: &["u"] };
    Expression::parse_with(text, &names).map_or(Coefficient::Constant(f64::NAN), Coefficient::Expression)
}

/// Visits linearizations with every derivative in two and three dimensions, with the number of corners of a cell.
pub fn for_every_linearization(mut visit: impl FnMut(usize, &CudaForm<'_>)) {
    let constant = Coefficient::Constant;
    let conductivity = || in_state("1 + u^2 + t*x");
    let tensor = || {
        let entry = |text| Expression::parse_with(text, &Names { time: true, others: &["u"] });
        let entry = |text| entry(text).unwrap_or_else(|_| Expression::constant(f64::NAN));
        let rows = [["2 + u^2", "0.1*x", "0"], ["0.1*x", "3 + t", "0"], ["0", "0", "2 + exp(-u)"]];
        Coefficient::TensorExpression(Box::new(rows.map(|row| row.map(entry))))
    };
    let kinds = [
        [conductivity(), in_state("u"), in_state("x - u^3")],
        [tensor(), constant(-1.0), constant(1.0)],
        [by_tag([constant(1.0), conductivity()]), field(1), in_state("exp(u)")],
        [constant(1.0), in_state("t"), in_state("sin(t)")],
    ];
    for dimension in [2, 3] {
        for [sigma, lambda, source] in &kinds {
            let slope = |of: &Coefficient| of.uses_unknown().then(|| of.slope());
            let slopes = Slopes { sigma: slope(sigma), lambda: slope(lambda), source: slope(source) };
            if let Some(form) = CudaForm::linearized(dimension, [sigma, lambda, source], &slopes) {
                visit(dimension + 1, &form);
            }
        }
    }
}
