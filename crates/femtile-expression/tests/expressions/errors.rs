//! Messages about invalid expressions; no input causes a panic.

use crate::common;

use femtile_expression::{Condition, Expression, ExpressionError};
use proptest::prelude::*;

fn error(text: &str) -> ExpressionError {
    match Expression::parse(text) {
        Err(error) => error,
        Ok(expression) => panic!("{text} was read as {expression}"),
    }
}

#[test]
fn errors_name_the_place_and_what_is_wrong_there() {
    for (text, place, message) in [
        ("", "", "empty"),
        ("   ", "   ", "empty"),
        ("2*sinn(x)", "sinn", "unknown function `sinn`"),
        ("1 + foo", "foo", "unknown name `foo`"),
        ("2x", "x", "operator is missing before `x`"),
        ("2(x)", "(", "operator is missing"),
        ("(x) y", "y", "operator is missing"),
        ("(1 2)", "2", "operator is missing"),
        ("x(1)", "x", "`x` is not a function"),
        ("sin", "sin", "`sin` is a function"),
        ("sin x", "sin", "`sin` is a function"),
        ("(x + 1", "(", "never closed"),
        ("sin(x", "(", "never closed"),
        ("x + 1)", ")", "closes nothing"),
        ("x +", "", "ends where"),
        ("x * / y", "/", "`/` stands where"),
        ("()", ")", "`)` stands where"),
        ("sin()", "sin()", "takes 1 argument, not 0"),
        ("sin(x, y)", "sin(x, y)", "takes 1 argument, not 2"),
        ("atan2(x)", "atan2(x)", "takes 2 arguments, not 1"),
        ("max(x)", "max(x)", "takes 2 arguments or more, not 1"),
        ("if(x < 1, 2)", "if(x < 1, 2)", "takes 3 arguments"),
        ("if(x, 1, 2)", "x", "a number where a condition"),
        ("1 + (x < 2)", "(x < 2)", "true or false where a number"),
        ("x < 2", "x < 2", "true or false where a number"),
        ("(x < y) < z", "(x < y)", "true or false where a number"),
        ("-(x < 1)", "(x < 1)", "true or false where a number"),
        ("x + not y", "not", "`not` stands where"),
        ("1,5", ",", "comma"),
        ("(1,5)", ",", "comma"),
        ("1.5.2", "1.5.", "not a number"),
        ("1e999", "1e999", "too large"),
        ("x = 1", "=", "unexpected character"),
        ("x²", "²", "unexpected character"),
        ("|x|", "|", "unexpected character"),
        ("x $ y", "$", "unexpected character"),
        ("2e", "e", "operator is missing"),
        ("ä + x", "ä", "unknown name"),
    ] {
        let error = error(text);
        assert_eq!(&text[error.span.clone()], place, "{text}: {error}");
        assert!(error.message.contains(message), "{text}: {error}");
    }
    let error = Condition::parse("x + 1").unwrap_err();
    assert_eq!(error.span, 0..5);
    assert!(error.message.contains("a number where a condition"), "{error}");
}

#[test]
fn misspelt_names_are_answered_with_the_nearest_known_one() {
    for (text, suggestion) in [
        ("sinn(x)", "sin"),
        ("Sin(x)", "sin"),
        ("sen(x)", "sin"),
        ("sqr(x)", "sqrt"),
        ("arcsin(x)", "asin"),
        ("arctan2(x, y)", "atan2"),
        ("lgo(x)", "log"),
        ("fabs(x)", "abs"),
        ("X + 1", "x"),
        ("PI", "pi"),
        ("True", "true"),
    ] {
        let error = error(text);
        let advice = error.advice.clone().unwrap_or_default();
        assert!(advice.contains(&format!("did you mean `{suggestion}`?")), "{text}: {error}");
    }
    for text in ["temperature", "t", "q(x)", "r"] {
        assert!(!error(text).to_string().contains("did you mean"), "{text}: {}", error(text));
    }
    assert!(error("foo(x)").to_string().contains("the functions are sin, cos, tan,"));
}

#[test]
fn a_unit_behind_a_number_is_told_to_be_left_out() {
    for (text, advice) in [
        ("200 W/mK", "numbers have no unit here: write 200"),
        ("2.5 W/(m K)", "write 2.5"),
        ("20 °C", "no unit"),
        ("200 [W/m/K]", "no unit"),
        // Names that are known are factors.
        ("200 x", "a product is written 200*x"),
    ] {
        assert!(error(text).to_string().contains(advice), "{text}: {}", error(text));
    }
}

#[test]
fn the_place_is_drawn_under_its_own_line() {
    let text = "x +\n  π*foo*(2 +\n y)";
    assert_eq!(error(text).pointed(text), "  π*foo*(2 +\n    ^^^");
    assert_eq!(error("x +").pointed("x +"), "x +\n   ^");
    assert_eq!(error(text).pointed(""), "\n^");
}

#[test]
fn nesting_is_limited_and_harmless_on_a_small_stack() {
    let within = 190;
    let hostile: Vec<String> =
        ["(", "sin(", "2^", "-(", "if(x<1,1,", "0 or 0 and 0 < 0 + 0*2^(", "not (", "!(!"]
            .iter()
            .flat_map(|opening| [opening.repeat(100_000), format!("{}x", opening.repeat(100_000))])
            .collect();
    let check = move || {
        for text in &hostile {
            assert!(Expression::parse(text).is_err());
            assert!(Condition::parse(text).is_err());
        }
        let deep = format!("{}x{}", "sin(".repeat(within), ")".repeat(within));
        let expression = Expression::parse(&deep).unwrap();
        assert_eq!(expression.to_string(), deep);
        assert!(expression.eval([0.5; 3]).is_finite());
        let climbing = format!("{}x{}", "1 + 1*2^(".repeat(within / 2), ")".repeat(within / 2));
        assert!(Expression::parse(&climbing).is_ok());
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check).unwrap();
    thread.join().unwrap();
    assert!(error(&"(".repeat(300)).message.contains("nested more than 200 levels"));
}

#[test]
fn chains_of_any_length_are_read_or_refused_without_recursion() {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(|| {
        for (first, link) in
            [("x", "+x"), ("1", "+1"), ("x", "*sin(y)"), ("x", "-x"), ("x<1", " and x<1"), ("-", "-")]
        {
            let text = format!("{first}{}", link.repeat(100_000));
            let refused = Expression::parse(&text).unwrap_err();
            assert!(refused.message.contains("more than 10000"), "{refused}");
        }
        let text = format!("x{}", "/2+x*y".repeat(1_600));
        let expression = Expression::parse(&text).unwrap();
        let slope = expression.derivative(femtile_expression::Variable::X);
        let second = slope.derivative(femtile_expression::Variable::Y);
        assert!(slope.eval([0.5; 3]).is_finite() && second.eval([0.5; 3]).is_finite());
        assert_eq!(Expression::parse(&expression.to_string()).unwrap(), expression);
        let mut out = [f64::NAN];
        expression.tape().eval_block(&mut out, &[0.5], &[0.5], &[], &mut Default::default());
        assert_eq!(out[0], expression.eval([0.5; 3]));
        let minus = format!("{}x", "-".repeat(9_000));
        assert_eq!(Expression::parse(&minus).unwrap().to_string(), "x");
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn a_printed_derivative_that_is_too_long_ends_in_an_ellipsis() {
    let product = format!("sin(x){}", "*sin(x*y)*cos(x)".repeat(500));
    let slope = Expression::parse(&product).unwrap().derivative(femtile_expression::Variable::X);
    let text = slope.to_string();
    assert!(text.ends_with('…') && text.len() < 1_000_000);
    assert!(Expression::parse(&text).is_err());
}

fn check_any_text(text: &str) {
    for result in [Expression::parse(text).map(drop), Condition::parse(text).map(drop)] {
        if let Err(error) = result {
            assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error:?}");
            assert!(error.pointed(text).contains('^'));
            assert!(error.to_string().len() < 1_000);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_text_of_any_characters_panics(text in any::<String>()) {
        check_any_text(&text);
    }

    #[test]
    fn no_text_of_likely_characters_panics(text in "[-+*/^()<>=!&|., xyzepisnqrtifor0-9.²π]{0,60}") {
        check_any_text(&text);
    }

    #[test]
    fn no_mutation_of_a_sound_text_panics(
        text in common::any_number(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..6usize, any::<char>()), 1..5),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (at, action, character) in cuts {
            let at = at.index(characters.len() + 1);
            match action {
                0 => characters.insert(at, character),
                1 => characters.insert(at, *['(', ')', ',', '-', '^', '<', 'e', '.'].get(at % 8).unwrap_or(&' ')),
                2 => characters.truncate(at),
                3 if at < characters.len() => { characters.remove(at); }
                4 => characters.rotate_left(at),
                _ => { let tail = characters[at..].to_vec(); characters.extend(tail); }
            }
        }
        check_any_text(&characters.into_iter().collect::<String>());
    }
}
