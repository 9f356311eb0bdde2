//! Random equations.

use femtile_expression::{Expression, Names};
use femtile_form::{Coefficient, Equation, Form};
use proptest::prelude::*;

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
pub fn equation() -> impl Strategy<Value = (usize, String)> {
    (1usize..=3).prop_flat_map(|n| {
        let components: Vec<String> = (0..n).map(|c| format!("v{c}")).collect();
        let state = |sides: &[&str]| -> Vec<String> {
            let of = |side: &&str| {
                let side = (*side).to_owned();
                let names = components.clone().into_iter();
                names.flat_map(move |name| ["", "_x", "_y", "_z"].map(|axis| format!("{name}{side}{axis}")))
            };
            sides.iter().flat_map(of).collect()
        };
        let with = |names: Vec<String>, more: &[&str]| -> Vec<String> {
            names.into_iter().chain(more.iter().map(|name| (*name).to_owned())).collect()
        };
        let rates = components.iter().map(|name| format!("{name}_t"));
        let cell_names: Vec<String> =
            with(state(&[""]), &["x", "y", "z", "t", "c"]).into_iter().chain(rates).collect();
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
                let by_unknown = |formulas: Vec<String>| {
                    let named = formulas.iter().enumerate().map(|(c, formula)| format!("v{c} = {formula:?}"));
                    format!("{{ {} }}", named.collect::<Vec<_>>().join(", "))
                };
                // The last axis is that of space alone.
                let rows = |flux: Vec<Vec<String>>| {
                    by_unknown(
                        flux.iter().map(|row| format!("[{}, {}|, {}|]", row[0], row[1], row[2])).collect(),
                    )
                };
                let scalars = by_unknown_scalars(n);
                let text = format!(
                    "unknown = {scalars}\n[coefficients]\nc = {{}}\n[cells]\nsource = {}\nflux = {}\n\
                     [boundary.random]\nflux = {}\n\
                     [interior]\nsource = {}\nsource_other = {}\nflux_other = {}\n",
                    by_unknown(source),
                    rows(flux),
                    by_unknown(on_boundary),
                    by_unknown(first),
                    by_unknown(second),
                    rows(flux_second),
                );
                (n, text)
            })
    })
}

fn by_unknown_scalars(n: usize) -> String {
    let all: Vec<String> = (0..n).map(|c| format!("v{c} = {{}}")).collect();
    format!("{{ {} }}", all.join(", "))
}

/// The definitions that give entries of derivatives and of the normal names; those along z are zero in the plane.
fn definitions(n: usize, dimension: usize) -> String {
    let mut lines = vec!["used = c".to_owned()];
    let entry =
        |of: &str, axis: usize| if axis < dimension { format!("{of}[{axis}]") } else { "0".to_owned() };
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        for unknown in (0..n).flat_map(|c| [format!("v{c}"), format!("v{c}_other")]) {
            lines.push(format!("{unknown}_{name} = {}", entry(&format!("grad({unknown})"), axis)));
        }
        lines.push(format!("n_{name} = {}", entry("normal", axis)));
    }
    lines.join("\n")
}

/// Returns numbers of size one that look random.
pub fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Returns one of three kinds of coefficients: a number, a function of x, u and t, or by tag (0 and 3).
pub fn coefficient(kind: usize) -> Coefficient {
    let formula = |text: &str| {
        Coefficient::Expression(Expression::parse_with(text, &Names { time: true, others: &["u"] }).unwrap())
    };
    match kind {
        0 => Coefficient::Constant(0.75),
        1 => formula("1 + x*sin(u) + t"),
        _ => Coefficient::ByTag([(0, formula("exp(-u^2)*y")), (3, Coefficient::Constant(2.0))].into()),
    }
}

/// Returns the form of a random equation, with its term on some boundary facets.
pub fn form_of(text: &str, dimension: usize, c: Coefficient, facets: &[u32]) -> Form {
    // A row of the flux without its last entry in the plane.
    let text: String = match dimension {
        2 => text.split('|').step_by(2).collect(),
        _ => text.replace('|', ""),
    };
    let n = (0..3).filter(|c| text.contains(&format!("v{c} = {{}}"))).count();
    let text = format!("define = {:?}\n{text}", definitions(n, dimension));
    let equation = Equation::from_toml("random", &text).unwrap();
    let builder = equation.form(dimension).with("c", c).unwrap();
    builder.on_boundary("random", facets, &[]).unwrap().build().unwrap()
}
