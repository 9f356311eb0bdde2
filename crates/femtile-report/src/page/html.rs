//! Pieces of HTML.

use std::fmt::Write;

/// The style of the page.
const STYLE: &str = include_str!("../../page/report.css");
/// Forbids everything that is not in the page itself.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:";

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
pub(super) fn table(headings: &[impl AsRef<str>], rows: &[impl AsRef<[String]>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=\"wide\"><table><thead><tr>");
    headings.iter().for_each(|heading| {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(heading.as_ref()));
    });
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        row.as_ref().iter().for_each(|cell| {
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

/// The parts of a page.
#[derive(Default)]
pub(super) struct Document<'a> {
    pub title: &'a str,
    /// The sentence below the title.
    pub outcome: &'a str,
    /// Sections as HTML.
    pub sections: &'a [String],
    /// Version of Femtile.
    pub version: &'a str,
    /// HTML that follows the version at the foot.
    pub foot: &'a str,
    /// Elements of scripts at the end of the body.
    pub scripts: &'a str,
}

impl Document<'_> {
    /// Returns the page.
    pub fn html(&self) -> String {
        let Self { foot, scripts, .. } = self;
        let title = escape(self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title} – Femtile</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <header><h1>{title}</h1><p>{}</p></header>\n<main>\n{}</main>\n\
             <footer><p>Femtile {}</p>{foot}</footer>\n{scripts}</body>\n</html>\n",
            escape(self.outcome),
            self.sections.concat(),
            escape(self.version)
        )
    }
}
