//! Names of regions and fields, escaped for printing and writing.

use std::borrow::Cow;

/// Returns `name` with each control character as its escape, such as `\u{1b}`.
///
/// A terminal would obey them, and XML 1.0 cannot hold most of them at all.
pub(super) fn printable(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    if name.chars().all(is_plain) {
        return name.into();
    }
    let mut text = String::with_capacity(2 * name.len());
    for c in name.chars() {
        if is_plain(c) { text.push(c) } else { text.extend(c.escape_default()) }
    }
    text.into()
}

/// Returns `name` as the value of an attribute of XML.
pub(super) fn xml_name(name: &str) -> String {
    quick_xml::escape::escape(printable(name)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes_and_others_stay() {
        assert_eq!(printable("Wärme <&> 熱"), "Wärme <&> 熱");
        assert_eq!(printable("\u{1b}[2J\0\t\u{9b}\u{ffff}"), r"\u{1b}[2J\u{0}\t\u{9b}\u{ffff}");
    }
}
