//! Tables of an element with a rule, as source text for a kernel.

use std::fmt::Write;

use femtile_element::tensor::Lagrange;
use femtile_space::geometry::CellRule;

/// Returns whether nodes and points coincide.
pub(super) fn is_collocated(degree: usize, rule: CellRule) -> bool {
    Lagrange::gauss_lobatto(degree).nodes() == rule.rule(degree).0
}

/// Returns the header `tables.cuh`: values of shape functions at the points, slopes at the points of polynomials
/// through the points, the points and their weights.
pub(super) fn text(degree: usize, rule: CellRule) -> String {
    let (points, weights) = rule.rule(degree);
    let values = Lagrange::gauss_lobatto(degree).values(&points);
    let slopes = Lagrange::new(points.clone()).slopes(&points);
    header(&[
        ("VALUES", &values.entries),
        ("SLOPES", &slopes.entries),
        ("NODES", &points),
        ("WEIGHTS", &weights),
    ])
}

/// Returns the header `diagonal_tables.cuh`: products, entry by entry, of values with values, slopes with values and
/// slopes with slopes of shape functions at the points.
pub(super) fn of_diagonal(degree: usize, rule: CellRule) -> String {
    let (points, _) = rule.rule(degree);
    let shapes = Lagrange::gauss_lobatto(degree);
    let (values, slopes) = (shapes.values(&points).entries, shapes.slopes(&points).entries);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect::<Vec<f64>>();
    let squares = [product(&values, &values), product(&slopes, &values), product(&slopes, &slopes)];
    header(&[("SQUARES", &squares.concat())])
}

/// Returns a header with tables in constant memory.
pub(super) fn header(tables: &[(&str, &[f64])]) -> String {
    let mut text = String::from("#pragma once\n#include \"femtile.cuh\"\n");
    for (name, entries) in tables {
        let _ = write!(text, "__constant__ T {name}[{}] = {{", entries.len());
        entries.iter().for_each(|entry| {
            let _ = write!(text, "(T){entry:e}, ");
        });
        text.push_str("};\n");
    }
    text
}
