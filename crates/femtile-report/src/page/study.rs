//! The page of a study: its orders, its plot and its table.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::html::{Document, escape, facts, section, table};

/// The content of the page of a study.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StudyPage {
    /// Its title.
    pub title: String,
    /// The sentence below it.
    pub outcome: String,
    /// Observed orders and other numbers, by name.
    pub facts: Vec<(String, String)>,
    /// The plot as SVG; without one there is no picture.
    pub plot: Option<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows of the table, with a text for each column.
    pub rows: Vec<Vec<String>>,
    /// The text of the case file.
    pub case: String,
    /// Version of Femtile.
    pub version: String,
}

impl StudyPage {
    /// Returns the page, one file that needs no network.
    pub fn html(&self) -> String {
        // As a picture, whose texts are no part of the page.
        let picture = self.plot.as_ref().map(|svg| {
            let data = BASE64_STANDARD.encode(svg);
            format!("<img alt=\"Errors by size\" src=\"data:image/svg+xml;base64,{data}\">")
        });
        let known = if self.facts.is_empty() { String::new() } else { facts(&self.facts) };
        let sections = [
            section("orders", "Orders", &known),
            section("plot", "Errors", &picture.unwrap_or_default()),
            section("table", "Runs", &table(&self.columns, &self.rows)),
            section("case", "Case file", &format!("<pre tabindex=\"0\">{}</pre>", escape(&self.case))),
        ];
        let document = Document {
            title: &self.title,
            outcome: &self.outcome,
            sections: &sections,
            version: &self.version,
            ..Document::default()
        };
        document.html()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_study_are_escaped_and_what_it_lacks_has_no_section() {
        let page = StudyPage {
            title: "a < b".into(),
            columns: vec!["equation.source".into(), "<script>".into()],
            rows: vec![vec!["x<y".into(), String::new()]],
            case: "# </pre>".into(),
            ..StudyPage::default()
        };
        let html = page.html();
        for text in [
            "<h1>a &lt; b</h1>",
            "<th scope=\"col\">&lt;script&gt;</th>",
            "<td>x&lt;y</td>",
            "# &lt;/pre&gt;",
        ] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(
            !html.contains("id=\"plot\"") && !html.contains("id=\"orders\"") && !html.contains("<script")
        );
        let plotted = StudyPage { plot: Some("<svg/>".into()), ..page }.html();
        assert!(plotted.contains("src=\"data:image/svg+xml;base64,PHN2Zy8+\""), "{plotted}");
    }
}
