//! Words, numbers and signs of EasyML.

use crate::CardiacError;
use crate::ionic::source::Source;

/// A part of a text and the byte at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl Token<'_> {
    pub fn is_name(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    pub fn is_number(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_digit())
            || (self.text.starts_with('.') && self.text.len() > 1)
    }
}

/// Splits a text; comments are `// …`, `# …` and `/* … */`.
pub fn tokens(source: &Source) -> Result<Vec<Token<'_>>, CardiacError> {
    let text = &source.text;
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") || first == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").ok_or_else(|| source.error(at, "this comment has no end"))? + 2
        } else {
            let length = length_of(rest).ok_or_else(|| source.error(at, format!("unexpected `{first}`")))?;
            found.push(Token { text: &rest[..length], at });
            length
        };
        at += length;
    }
    Ok(found)
}

/// Bytes of the token that a text begins with.
fn length_of(text: &str) -> Option<usize> {
    let count = |is_part: &dyn Fn(u8) -> bool, from: usize| {
        text.as_bytes()[from..].iter().take_while(|&&byte| is_part(byte)).count()
    };
    let bytes = text.as_bytes();
    let (first, second) = (bytes[0], bytes.get(1).copied().unwrap_or(b' '));
    if first.is_ascii_alphabetic() || first == b'_' {
        return Some(count(&|byte| byte.is_ascii_alphanumeric() || byte == b'_', 0));
    }
    if first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit()) {
        let mantissa = count(&|byte| byte.is_ascii_digit() || byte == b'.', 0);
        let is_exponent = matches!(bytes.get(mantissa), Some(b'e' | b'E'));
        let sign = usize::from(matches!(bytes.get(mantissa + 1), Some(b'+' | b'-')));
        let digits = if is_exponent { count(&|byte| byte.is_ascii_digit(), mantissa + 1 + sign) } else { 0 };
        return Some(if digits > 0 { mantissa + 1 + sign + digits } else { mantissa });
    }
    if ["==", "!=", "<=", ">=", "&&", "||"].iter().any(|sign| text.starts_with(sign)) {
        return Some(2);
    }
    b"=;.,(){}?:+-*/<>!^%".contains(&first).then_some(1)
}
