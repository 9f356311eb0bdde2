//! The page for users, `docs/expressions.md`, against the parser.

use femtile_expression::{Condition, Expression};

const PAGE: &str = include_str!("../../../../docs/expressions.md");

/// Lines of the fenced blocks of one language.
fn fenced(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = PAGE.split(&opening).skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<_> = blocks.flat_map(str::lines).collect();
    assert!(!lines.is_empty(), "no block of {language}");
    lines
}

#[test]
fn every_example_of_the_page_parses() {
    for line in fenced("expression") {
        assert!(Expression::parse(line).is_ok(), "{line}");
    }
    for line in fenced("condition") {
        assert!(Condition::parse(line).is_ok(), "{line}");
    }
}

#[test]
fn the_page_names_every_function_and_constant() {
    let advice = Expression::parse("unknown").unwrap_err().advice.unwrap_or_default();
    let names = advice.replace("the names are", "").replace("the functions are", "").replace(';', ",");
    let names: Vec<_> = names.split(',').map(str::trim).collect();
    assert!(names.len() > 25);
    for name in names {
        assert!(PAGE.contains(&format!("`{name}`")) || PAGE.contains(&format!("`{name}(")), "{name}");
    }
}

#[test]
fn the_error_on_the_page_is_the_one_that_is_given() {
    let lines = fenced("text");
    let error = Expression::parse(lines[0]).unwrap_err();
    assert_eq!(error.pointed(lines[0]), lines[..2].join("\n"));
    assert!(error.to_string().starts_with(lines[2].trim_end_matches(" …")), "{error}");
}

#[test]
fn the_rust_of_the_page_gives_the_source_of_a_manufactured_solution() {
    use femtile_expression::Variable;
    let u = Expression::parse("sin(pi*x)*cosh(y)").unwrap();
    let sigma = Expression::parse("1 + x^2").unwrap();
    let flux = |variable| (&sigma * &u.derivative(variable)).derivative(variable);
    let source = -&(&flux(Variable::X) + &flux(Variable::Y));
    let by_hand = "(1 + x^2)*(pi^2 - 1)*sin(pi*x)*cosh(y) - 2*x*pi*cos(pi*x)*cosh(y)";
    let by_hand = Expression::parse(by_hand).unwrap();
    for point in [[0.1, 0.2, 0.0], [0.7, -1.3, 0.0], [-2.0, 0.5, 0.0]] {
        let (source, by_hand) = (source.eval(point), by_hand.eval(point));
        assert!((source - by_hand).abs() < 1e-12 * (1.0 + by_hand.abs()), "{source} against {by_hand}");
    }
}
