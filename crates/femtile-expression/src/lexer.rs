//! The lexer.

use std::ops::Range;

use crate::error::{ExpressionError, quote};
use crate::node::Binary;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'t> {
    Number(f64),
    Name(&'t str),
    /// An operator between two operands; `Subtract` also stands before one.
    Operator(Binary),
    Not,
    Open,
    Close,
    Comma,
    /// `.` between two vectors.
    Dot,
    /// `:` between two matrices.
    Colon,
    /// `'` behind an array.
    Prime,
    OpenBracket,
    CloseBracket,
    End,
}

/// Splits a text into tokens.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Whether the symbols of arrays are known.
    has_arrays: bool,
}

/// Operators by spelling; a longer one stands before those it begins with.
const SYMBOLS: [(&str, Token<'static>); 22] = [
    ("**", Token::Operator(Binary::Power)),
    ("<=", Token::Operator(Binary::LessEqual)),
    (">=", Token::Operator(Binary::GreaterEqual)),
    ("==", Token::Operator(Binary::Equal)),
    ("!=", Token::Operator(Binary::NotEqual)),
    ("&&", Token::Operator(Binary::And)),
    ("||", Token::Operator(Binary::Or)),
    ("≤", Token::Operator(Binary::LessEqual)),
    ("≥", Token::Operator(Binary::GreaterEqual)),
    ("≠", Token::Operator(Binary::NotEqual)),
    ("−", Token::Operator(Binary::Subtract)),
    ("+", Token::Operator(Binary::Add)),
    ("-", Token::Operator(Binary::Subtract)),
    ("*", Token::Operator(Binary::Multiply)),
    ("/", Token::Operator(Binary::Divide)),
    ("^", Token::Operator(Binary::Power)),
    ("<", Token::Operator(Binary::Less)),
    (">", Token::Operator(Binary::Greater)),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// The operators of arrays.
const ARRAY_SYMBOLS: [(&str, Token<'static>); 5] = [
    (".", Token::Dot),
    (":", Token::Colon),
    ("'", Token::Prime),
    ("[", Token::OpenBracket),
    ("]", Token::CloseBracket),
];

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str, has_arrays: bool) -> Self {
        Self { text, at: 0, has_arrays }
    }

    /// Returns the next token and its span.
    pub(crate) fn next(&mut self) -> Result<(Token<'t>, Range<usize>), Box<ExpressionError>> {
        let rest = self.text[self.at..].trim_start();
        let start = self.text.len() - rest.len();
        let (token, length) = match rest.chars().next() {
            None => (Token::End, 0),
            Some(first) if first.is_ascii_digit() || starts_with_fraction(rest) => number(rest, start)?,
            Some(first) if first.is_alphabetic() || first == '_' => {
                let length = rest
                    .find(|c: char| !(c.is_alphabetic() || c.is_ascii_digit() || c == '_'))
                    .unwrap_or(rest.len());
                (word(&rest[..length]), length)
            }
            Some(first) => {
                let of_arrays = ARRAY_SYMBOLS.iter().filter(|_| self.has_arrays);
                match SYMBOLS.iter().chain(of_arrays).find(|(symbol, _)| rest.starts_with(symbol)) {
                    Some(&(symbol, token)) => (token, symbol.len()),
                    None => return Err(unexpected(first, start)),
                }
            }
        };
        self.at = start + length;
        Ok((token, start..self.at))
    }
}

/// Operators that are spelt as words.
fn word(name: &str) -> Token<'_> {
    match name {
        "and" => Token::Operator(Binary::And),
        "or" => Token::Operator(Binary::Or),
        "not" => Token::Not,
        _ => Token::Name(name),
    }
}

fn starts_with_fraction(text: &str) -> bool {
    matches!(text.as_bytes(), [b'.', digit, ..] if digit.is_ascii_digit())
}

/// A number at the start of `text`: digits with a point anywhere among or beside them, then `e`, a sign and digits.
///
/// An `e` without digits behind it is left to be read as a name.
fn number(text: &str, start: usize) -> Result<(Token<'static>, usize), Box<ExpressionError>> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1;
        length += digits(length);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits((length + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let span = start..start + length;
    if bytes.get(length) == Some(&b'.') {
        return Err(ExpressionError::new(
            start..start + length + 1,
            format!("{} is not a number", quote(&text[..=length])),
        )
        .advise("a number has one decimal point, as in 1.5 or .5 or 2e-3"));
    }
    match text[..length].parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), length)),
        Ok(_) => {
            Err(ExpressionError::new(span, format!("the number {} is too large", quote(&text[..length])))
                .advise("the largest is about 1.8e308"))
        }
        Err(_) => Err(ExpressionError::new(span, format!("{} is not a number", quote(&text[..length])))),
    }
}

fn unexpected(character: char, start: usize) -> Box<ExpressionError> {
    let span = start..start + character.len_utf8();
    let error = ExpressionError::new(span, format!("unexpected character `{}`", character.escape_debug()));
    match character {
        '=' => error.advise("a comparison for equality is written =="),
        '&' => error.advise("write `and` or &&"),
        '|' => error.advise("write `or` or ||; an absolute value is abs(x)"),
        '·' | '×' | '⋅' => error.advise("a product is written *"),
        '÷' | ':' => error.advise("a quotient is written /"),
        '²' | '³' => error.advise("a power is written x^2"),
        '%' => error.advise("there is no remainder; x - floor(x) gives the fractional part"),
        '[' | '{' => error.advise("only round parentheses group, and numbers have no unit here"),
        '°' | 'µ' | 'Ω' => error.advise("numbers have no unit here"),
        ';' => error.advise("arguments are separated by commas"),
        '?' => error.advise("a choice is written if(condition, a, b)"),
        '.' => error.advise("a decimal point needs a digit beside it"),
        _ => error,
    }
}
