use std::ops::Range;

/// A syntax error of an expression or a condition, with its place in the text.
///
/// `Display` gives `message`, then the advice; [`ExpressionError::pointed`] draws the place as well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .advice.as_ref().map(|advice| format!("; {advice}")).unwrap_or_default())]
#[non_exhaustive]
pub struct ExpressionError {
    /// The reason.
    pub message: String,
    /// A suggestion, where there is one.
    pub advice: Option<String>,
    /// Bytes of the text that the message is about; empty at a place where something is missing.
    pub span: Range<usize>,
}

impl ExpressionError {
    /// An error about some bytes of a text.
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        *Self::new(span, message)
    }

    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { message: message.into(), advice: None, span })
    }

    pub(crate) fn advise(mut self: Box<Self>, advice: impl Into<String>) -> Box<Self> {
        self.advice = Some(advice.into());
        self
    }

    /// The line of `text` that the error lies in, and below it a row of `^` under the offending part.
    ///
    /// `text` is what was parsed; the span is cut to the line it begins in.
    ///
    /// ```
    /// use femtile_expression::Expression;
    /// let text = "2*sinn(x)";
    /// let error = Expression::parse(text).unwrap_err();
    /// assert_eq!(error.pointed(text), "2*sinn(x)\n  ^^^^");
    /// ```
    pub fn pointed(&self, text: &str) -> String {
        let start = floor_boundary(text, self.span.start);
        let end = floor_boundary(text, self.span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let indent = text[line_start..start].chars().count();
        let width = text[start..end.min(line_end)].chars().count().max(1);
        format!("{}\n{}{}", &text[line_start..line_end], " ".repeat(indent), "^".repeat(width))
    }
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// At most 40 characters of `text`, for quoting it in a message.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}
