//! Formulas for readers: texts that parse back, elements of MathML that are closed, and bounds.

use crate::common;

use femtile_expression::{Equality, Mathematics, Notation, ProgramBuilder, Symbol, Value};
use proptest::prelude::*;

const INPUTS: [&str; 3] = ["x", "y", "z"];

fn symbols() -> Vec<Symbol> {
    INPUTS.map(Symbol::new).into()
}

/// The formulas of texts, of the derivative of the first one and of its square; the first is a definition.
fn written(builder: &mut ProgramBuilder, texts: &[String]) -> (Mathematics, Vec<Value>) {
    let mut values: Vec<Value> = texts.iter().map(|text| builder.expression(text).unwrap()).collect();
    let definitions = [(Symbol::new("d"), values[0])];
    values.push(builder.derivative(values[0], builder.input(0)));
    values.push(builder.mul(values[0], values[0]));
    let named: Vec<(Symbol, Value)> =
        values.iter().enumerate().map(|(i, &value)| (Symbol::new(format!("r_{i}")), value)).collect();
    let inputs = symbols();
    let notation = Notation { inputs: &inputs, definitions: &definitions };
    (builder.mathematics(&named, notation), values)
}

/// Reads lines one after another; returns the values of those named `r_0`, `r_1` …
fn read(lines: &[Equality], n: usize) -> (ProgramBuilder, Vec<Value>) {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    for Equality { symbol, text, .. } in lines {
        builder.define(&symbol.to_string(), text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let values = (0..n).map(|i| builder.value(&format!("r_{i}")).unwrap()).collect();
    (builder, values)
}

/// Panics unless all elements are closed and hold text without letters of markup.
fn check_elements(mathml: &str) {
    let (mut open, mut rest) = (Vec::new(), mathml);
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        assert!(!text.contains('>'), "{mathml}");
        let end = rest.find('>').unwrap();
        let tag = &rest[at + 1..end];
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed), "{mathml}"),
            None => open.push(tag.split(' ').next().unwrap()),
        }
        rest = &rest[end + 1..];
        assert!(!open.is_empty() || rest.is_empty(), "more than one element: {mathml}");
    }
    assert!(open.is_empty() && rest.is_empty(), "{mathml}");
}

fn same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs());
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-12 * size
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn written_formulas_parse_back_to_equal_values(
        texts in prop::collection::vec(common::any_number(), 1..4),
        points in prop::collection::vec([-2.0..2.0f64, -2.0..2.0f64, -2.0..2.0f64], 5),
    ) {
        let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
        let (written, values) = written(&mut builder, &texts);
        prop_assume!(written.lines.is_some());
        let lines = written.lines.unwrap();
        let (back, read) = read(&lines, values.len());
        let (program, again) = (builder.finish(&values), back.finish(&read));
        let (mut expected, mut found) = (vec![f64::NAN; values.len()], vec![f64::NAN; values.len()]);
        for point in points {
            program.eval(&point, &mut expected);
            again.eval(&point, &mut found);
            for (expected, found) in expected.iter().zip(&found) {
                prop_assert!(same(*expected, *found), "{expected:e} and {found:e}: {lines:#?}");
            }
        }
        lines.iter().for_each(|line| check_elements(&line.mathml));
    }
}

/// The texts of lines.
fn lines(
    values: &[(Symbol, Value)],
    definitions: &[(Symbol, Value)],
    builder: &ProgramBuilder,
) -> Vec<String> {
    let inputs = symbols();
    let written = builder.mathematics(values, Notation { inputs: &inputs, definitions });
    let lines = written.lines.unwrap();
    lines.iter().map(|Equality { symbol, text, .. }| format!("{symbol} = {text}")).collect()
}

#[test]
fn shared_parts_and_definitions_have_a_line_before_they_are_used() {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    let j = builder.define("J", "x*y - z").unwrap();
    let p = builder.expression("log(J)*sin(x*y + 2*z) + 1/J").unwrap();
    let q = builder.expression("sin(x*y + 2*z)^2").unwrap();
    let named = |name: &str, entry: usize, value| (Symbol::new(name).entry(&[entry]), value);
    let values = [named("P", 0, p), named("P", 1, q), named("P", 2, p), named("P", 3, builder.constant(0.0))];
    let found = lines(&values, &[(Symbol::new("J"), j)], &builder);
    assert_eq!(
        found,
        [
            "J = x*y - z",
            "a_1 = sin(x*y + 2*z)",
            "P[0] = log(J)*a_1 + 1/J",
            "P[1] = a_1^2",
            "P[2] = P[0]",
            "P[3] = 0",
        ]
    );
    // The letter of parts is no letter of other names.
    let taken = [(Symbol::new("a_1"), j), (Symbol::new("b_x"), j)];
    assert!(lines(&values, &taken, &builder).iter().any(|line| line.starts_with("c_1 = sin")));
}

#[test]
fn mathematics_has_fractions_powers_and_few_parentheses() {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    let mut plain = |text: &str| {
        let value = builder.expression(text).unwrap();
        let inputs =
            [Symbol::new("u").entry(&[0]).derivative('x'), Symbol::new("mu"), Symbol::new("u").variation()];
        let notation = Notation { inputs: &inputs, definitions: &[] };
        let lines = builder.mathematics(&[(Symbol::new("r"), value)], notation).lines.unwrap();
        let mathml = &lines.last().unwrap().mathml;
        check_elements(mathml);
        mathml.clone()
    };
    let slope = "<mfrac><mrow><mi>∂</mi><msub><mi>u</mi><mrow><mn>0</mn></mrow></msub></mrow>\
                 <mrow><mi>∂</mi><mi>x</mi></mrow></mfrac>";
    let (mu, du) = ("<mi>μ</mi>", "<mrow><mi>δ</mi><mi>u</mi></mrow>");
    let times = "<mo>\u{2062}</mo><mspace width=\"0.17em\"></mspace>";
    for (text, expected) in [
        ("x/y", format!("<mfrac><mrow>{slope}</mrow><mrow>{mu}</mrow></mfrac>")),
        (
            "x^2",
            format!(
                "<msup><mrow><mrow><mo>(</mo>{slope}<mo>)</mo></mrow></mrow><mrow><mn>2</mn></mrow></msup>"
            ),
        ),
        ("y^-1", format!("<mfrac><mrow><mn>1</mn></mrow><mrow>{mu}</mrow></mfrac>")),
        ("y + -2*z", format!("{mu}<mo>−</mo><mn>2</mn>{times}{du}")),
        ("y - (x + z)", format!("{mu}<mo>−</mo><mrow><mo>(</mo>{slope}<mo>+</mo>{du}<mo>)</mo></mrow>")),
        ("y*(x + z)", format!("{mu}{times}<mrow><mo>(</mo>{slope}<mo>+</mo>{du}<mo>)</mo></mrow>")),
        (
            "log1p(y)",
            format!("<mi>ln</mi><mo>\u{2061}</mo><mrow><mo>(</mo><mn>1</mn><mo>+</mo>{mu}<mo>)</mo></mrow>"),
        ),
        ("y^1.5", format!("<msup><mrow>{mu}</mrow><mrow><mn>3/2</mn></mrow></msup>")),
    ] {
        assert_eq!(plain(text), format!("<mrow>{expected}</mrow>"), "{text}");
    }
    assert!(plain("if(x < y and not z > 1, 1, 2)").contains("<mtext>otherwise</mtext>"));
}

#[test]
fn names_and_texts_cannot_end_an_element() {
    let mut builder = ProgramBuilder::new(&["x"]).unwrap();
    let value = builder.expression("if(x < 1, x, 2)").unwrap();
    let inputs = [Symbol::new("</mi><script>&")];
    let notation = Notation { inputs: &inputs, definitions: &[] };
    let lines = builder.mathematics(&[(Symbol::new("<b>"), value)], notation).lines.unwrap();
    for mathml in [lines[0].mathml.clone(), lines[0].symbol.mathml()] {
        assert!(!mathml.contains("<script") && !mathml.contains("<b>"), "{mathml}");
        check_elements(&mathml);
    }
    assert!(lines[0].mathml.contains("&lt;/mi&gt;&lt;script&gt;&amp;"));
}

#[test]
fn formulas_that_nobody_reads_are_counted() {
    let mut builder = ProgramBuilder::new(&INPUTS).unwrap();
    let long = (0..500).map(|i| format!("sin({i} + x)")).collect::<Vec<_>>().join(" + ");
    let value = builder.expression(&long).unwrap();
    let inputs = symbols();
    let notation = Notation { inputs: &inputs, definitions: &[] };
    let written = builder.mathematics(&[(Symbol::new("r"), value)], notation);
    assert_eq!(written, Mathematics { n_operations: 500 + 499 + 499, lines: None });
    // As many lines as there are values.
    let many: Vec<(Symbol, Value)> =
        (0..61).map(|i| (Symbol::new("r").entry(&[i]), builder.input(0))).collect();
    assert_eq!(builder.mathematics(&many, notation), Mathematics { n_operations: 0, lines: None });
    assert_eq!(builder.mathematics(&many[..60], notation).lines.unwrap().len(), 60);
}
