//! Random texts of the grammar.

use proptest::prelude::*;

/// Any text of the grammar: every function, operator and condition, with and without needless parentheses.
pub fn any_number() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => prop::sample::select(vec!["x", "y", "z"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["pi", "e", "0", "1", "2", "-1", "0.5", ".25", "3.", "1e-9", "7E+3", "1e300"])
            .prop_map(str::to_owned),
        1 => (-1e3..1e3f64).prop_map(|value| format!("{value}")),
        1 => (-20..20i32).prop_map(|value| format!("{value}")),
    ];
    leaf.prop_recursive(6, 48, 3, |inner| {
        prop_oneof![
            6 => (inner.clone(), binary_operator(), inner.clone()).prop_map(|(a, op, b)| format!("({a}){op}({b})")),
            3 => (inner.clone(), binary_operator(), inner.clone()).prop_map(|(a, op, b)| format!("{a}{op}{b}")),
            1 => inner.clone().prop_map(|a| format!("-{a}")),
            1 => inner.clone().prop_map(|a| format!("({a})")),
            2 => (inner.clone(), -34..34i32).prop_map(|(a, n)| format!("({a})^{n}")),
            6 => (unary_function(), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            3 => (binary_function(), inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            2 => (condition_of(inner.clone()), inner.clone(), inner).prop_map(|(c, a, b)| format!("if({c}, {a}, {b})")),
        ]
    })
}

/// Any condition of the grammar.
pub fn any_condition() -> impl Strategy<Value = String> {
    condition_of(any_number().boxed())
}

fn condition_of(number: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = String> {
    let comparison = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    let leaf = prop_oneof![
        8 => (number.clone(), comparison.clone(), number.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
        2 => (number.clone(), comparison, number).prop_map(|(a, op, b)| format!("0 < {a} {op} {b}")),
        1 => prop::sample::select(vec!["true", "false"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let junction = prop::sample::select(vec!["and", "or", "&&", "||"]);
        prop_oneof![
            2 => (inner.clone(), junction.clone(), inner.clone()).prop_map(|(a, op, b)| format!("({a}) {op} ({b})")),
            2 => (inner.clone(), junction, inner.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
            1 => inner.prop_map(|a| format!("not ({a})")),
        ]
    })
}

/// Texts whose values and slopes stay moderate for coordinates in (-1, 1), and that have no kink there.
pub fn smooth_number() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["x", "y", "z"]).prop_map(str::to_owned),
        1 => (-2.0..2.0f64).prop_map(|value| format!("{value:.3}")),
        1 => Just("pi".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let bounded = inner.clone().prop_map(|a| format!("sin({a})"));
        prop_oneof![
            3 => (inner.clone(), prop::sample::select(vec!["+", "-", "*"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a}){op}({b})")),
            1 => (inner.clone(), bounded.clone()).prop_map(|(a, b)| format!("({a})/(2 + {b})")),
            2 => (prop::sample::select(vec!["sin", "cos", "atan", "tanh"]), inner.clone())
                .prop_map(|(name, a)| format!("{name}({a})")),
            2 => (
                prop::sample::select(vec!["exp", "expm1", "exprel", "log1p", "sinh", "cosh", "tan", "asin", "acos"]),
                bounded.clone(),
            )
                .prop_map(|(name, a)| format!("{name}(0.9*{a})")),
            2 => (prop::sample::select(vec!["log", "log10", "sqrt"]), bounded.clone())
                .prop_map(|(name, a)| format!("{name}(1.5 + {a})")),
            1 => (bounded.clone(), -5..6i32).prop_map(|(a, n)| format!("(2 + {a})^{n}")),
            1 => (bounded.clone(), bounded.clone()).prop_map(|(a, b)| format!("(1.5 + {a})^{b}")),
            1 => bounded.clone().prop_map(|a| format!("2^{a}")),
            1 => (bounded.clone(), bounded.clone()).prop_map(|(a, b)| format!("hypot({a}, 2 + {b})")),
            1 => (bounded.clone(), bounded).prop_map(|(a, b)| format!("atan2({a}, 2 + {b})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("if(x < 2 and y > -2, {a}, {b})")),
        ]
    })
}

fn binary_operator() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["+", "-", "*", "/", "^", "**", " + ", " - "])
}

fn unary_function() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "expm1", "exprel", "log",
        "ln", "log1p", "log10", "sqrt", "abs", "sign", "floor", "ceil",
    ])
}

fn binary_function() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["atan2", "hypot", "min", "max", "pow"])
}
