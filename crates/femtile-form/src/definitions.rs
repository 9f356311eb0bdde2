//! Definitions in a text: `name = formula`, one in a line or separated by `;`.

use femtile_expression::ExpressionError;

/// Splits a text into names and formulas. Lines may continue inside parentheses and
/// brackets.
pub(crate) fn definitions(text: &str) -> Result<Vec<(&str, &str)>, ExpressionError> {
    let mut found = Vec::new();
    for part in parts(text) {
        let assignment = part.match_indices('=').find(|(at, _)| {
            let [before, after] = [part[..*at].chars().next_back(), part[at + 1..].chars().next()];
            !matches!(before, Some('=' | '<' | '>' | '!')) && after != Some('=')
        });
        let Some((at, _)) = assignment else {
            let start = part.as_ptr().addr() - text.as_ptr().addr();
            let message = format!("`{part}` is no definition; it is written name = formula");
            return Err(ExpressionError::at(start..start + part.len(), message));
        };
        found.push((part[..at].trim(), part[at + 1..].trim()));
    }
    Ok(found)
}

/// Returns a text with blanks in place of comments, as long as before.
pub(crate) fn without_comments(text: &str) -> String {
    let blank = |line: &str| match line.find('#') {
        Some(at) => format!("{}{}", &line[..at], " ".repeat(line.len() - at)),
        None => line.to_owned(),
    };
    text.split('\n').map(blank).collect::<Vec<_>>().join("\n")
}

/// Returns whether a name stands in a text.
pub(crate) fn has_word(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
}

fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            ';' => depth = 0,
            '\n' if depth == 0 => {}
            '(' | '[' => {
                depth += 1;
                continue;
            }
            ')' | ']' => {
                depth = depth.saturating_sub(1);
                continue;
            }
            _ => continue,
        }
        parts.push(&text[start..at]);
        start = at + character.len_utf8();
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::{definitions, without_comments};

    #[test]
    fn lines_semicolons_comments_and_brackets_divide_a_text() {
        let text = "a = 1; b = 2 # two; c = 3\n\n# nothing\nA = [[a, b], # first row\n  [b, a]]\nd = if(a <= b, 1, 2)\ne=a==b;";
        let text = &without_comments(text);
        let found = definitions(text).unwrap();
        let expected = [
            ("a", "1"),
            ("b", "2"),
            ("A", "[[a, b],            \n  [b, a]]"),
            ("d", "if(a <= b, 1, 2)"),
            ("e", "a==b"),
        ];
        assert_eq!(found, expected);
        assert!(definitions("a = 1\nb + 2").unwrap_err().message.starts_with("`b + 2` is no definition"));
        assert!(definitions("a <= 1").is_err());
        assert_eq!(definitions("").unwrap(), []);
    }
}
