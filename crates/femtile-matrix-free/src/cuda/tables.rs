//! Tables of an element with a rule, as text for a kernel.

use std::fmt::Write;

use femtile_element::tensor::Lagrange;

use femtile_fem::geometry::CellRule;

/// Whether nodes and points are the same.
pub(super) fn is_collocated(degree: usize, rule: CellRule) -> bool {
    Lagrange::gauss_lobatto(degree).nodes() == rule.rule(degree).0
}

/// The header `tables.cuh`: values of shapes at the points, slopes at the points of polynomials through the points, the
/// points and their weights.
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

/// A header with tables in constant memory.
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
