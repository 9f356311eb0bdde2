//! Formulas of pages as MathML, which browsers show without scripts and fonts from elsewhere.

use pulldown_latex::config::DisplayMode;
use pulldown_latex::{Parser, RenderConfig, Storage, push_mathml};

/// Replaces `$…$` and `$$…$$` outside of code by MathML.
///
/// # Errors
/// The first formula that cannot be read, with the reason.
pub fn with_mathml(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut at_line_start = true;
    while let Some(c) = rest.chars().next() {
        let code = if at_line_start { code_lines(rest) } else { 0 };
        let code = if code > 0 { code } else { code_span(rest) };
        if code > 0 {
            out.push_str(&rest[..code]);
            at_line_start = rest[..code].ends_with('\n');
            rest = &rest[code..];
        } else if let Some((formula, after, mode)) = formula(rest) {
            out.push_str(&mathml(formula, mode)?);
            (rest, at_line_start) = (after, false);
        } else {
            out.push(c);
            at_line_start = c == '\n';
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(out)
}

/// Returns the length of the block of code that a line begins; an indented one is taken line by line.
fn code_lines(text: &str) -> usize {
    if text.starts_with("    ") {
        return text.find('\n').map_or(text.len(), |end| end + 1);
    }
    if !text.starts_with("```") {
        return 0;
    }
    match text.find("\n```") {
        Some(end) => text[end + 1..].find('\n').map_or(text.len(), |line| end + 1 + line + 1),
        None => text.len(),
    }
}

/// Returns the length of the span of code that begins here.
fn code_span(text: &str) -> usize {
    let ticks = text.bytes().take_while(|&byte| byte == b'`').count();
    let fence = &text[..ticks];
    match text[ticks..].find(fence) {
        Some(end) if ticks > 0 => ticks + end + ticks,
        _ => ticks,
    }
}

/// Returns the formula that begins here, and the text behind it.
fn formula(text: &str) -> Option<(&str, &str, DisplayMode)> {
    if let Some(rest) = text.strip_prefix("$$") {
        let (formula, after) = rest.split_once("$$")?;
        return Some((formula, after, DisplayMode::Block));
    }
    let rest = text.strip_prefix('$')?;
    let (formula, after) = rest.split_once('$')?;
    let is_formula = !formula.starts_with(char::is_whitespace) && !formula.ends_with(char::is_whitespace);
    (is_formula && !formula.is_empty()).then_some((formula, after, DisplayMode::Inline))
}

/// Returns a formula in MathML, on one line and without characters that Markdown reads.
fn mathml(formula: &str, display_mode: DisplayMode) -> Result<String, String> {
    let storage = Storage::new();
    let events: Vec<_> = Parser::new(formula, &storage).collect();
    if let Some(Err(error)) = events.iter().find(|event| event.is_err()) {
        return Err(format!("the formula {}: {error}", formula.trim()));
    }
    let mut out = String::new();
    let config = RenderConfig { display_mode, ..RenderConfig::default() };
    push_mathml(&mut out, events.into_iter(), config).map_err(|error| error.to_string())?;
    // The crate forgets a space between two attributes of large brackets.
    let escaped = out.replace("\"minsize", "\" minsize");
    let escaped = escaped.chars().map(|c| match c {
        '*' => "&#42;".into(),
        '_' => "&#95;".into(),
        '|' => "&#124;".into(),
        '`' => "&#96;".into(),
        '[' => "&#91;".into(),
        '\\' => "&#92;".into(),
        '\n' => " ".into(),
        _ => c.to_string(),
    });
    Ok(escaped.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_replaced_and_code_is_not() {
        let text = "`$a$` and $b_1$:\n```\n$c$\n```\n    $d$\n$$\ne\n$$\n";
        let out = with_mathml(text).unwrap();
        for kept in ["`$a$`", "\n$c$\n", "    $d$\n"] {
            assert!(out.contains(kept), "{out}");
        }
        assert!(!out.contains("b_1") && out.matches("<math").count() == 2, "{out}");
        assert!(out.contains("display=\"block\""), "{out}");
    }

    #[test]
    fn attributes_of_large_brackets_are_separated() {
        assert!(with_mathml(r"$\bigl(a\bigr)$").unwrap().contains("\" minsize"));
    }

    #[test]
    fn amounts_of_money_are_no_formulas() {
        assert_eq!(with_mathml("5 $ and 6 $").unwrap(), "5 $ and 6 $");
    }

    #[test]
    fn a_wrong_formula_is_named() {
        assert!(with_mathml(r"$\frac{a$").unwrap_err().contains(r"\frac{a"));
    }
}
