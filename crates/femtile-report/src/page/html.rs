//! Pieces of HTML.

use std::fmt::Write;

/// Returns text with the letters of HTML replaced.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns a section under a heading; nothing without content.
pub(super) fn section(id: &str, heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{heading}</h2>{content}</section>\n"
    )
}

/// Returns a table with a heading for each column; nothing without rows.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
    headings.iter().for_each(|heading| {
        let _ = write!(html, "<th scope=\"col\">{heading}</th>");
    });
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        row.iter().for_each(|cell| {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        });
        html += "</tr>";
    }
    html + "</tbody></table></div>"
}

/// Returns a list of names and values.
pub(super) fn facts(facts: &[(String, String)]) -> String {
    let pairs = facts
        .iter()
        .map(|(name, value)| format!("<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value)));
    format!("<dl class=\"facts\">{}</dl>", pairs.collect::<String>())
}

/// Returns a list of sentences; nothing without any.
pub(super) fn list(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items = sentences.iter().map(|sentence| format!("<li>{}</li>", escape(sentence)));
    format!("<ul>{}</ul>", items.collect::<String>())
}
