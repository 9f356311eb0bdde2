//! The equation of a run as formulas.

use super::html::{escape, list};

/// The equation of a run, as it was written and as what follows from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EquationPart {
    /// Keys and texts as they were written.
    pub written: Vec<(String, String)>,
    /// The weak form, lines of MathML.
    pub weak_form: Vec<String>,
    /// Its integrands.
    pub formulas: Vec<FormulaTable>,
    /// The class of the tangent and what follows from it, in sentences.
    pub properties: Vec<String>,
}

/// Formulas under a heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormulaTable {
    /// The heading.
    pub heading: String,
    /// The formulas.
    pub rows: Vec<FormulaRow>,
    /// A sentence below them.
    pub note: String,
}

/// A name and its formula.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FormulaRow {
    /// The name, as an element of MathML.
    pub name: String,
    /// The formula, as an element of MathML.
    pub formula: String,
    /// Both as text.
    pub text: String,
}

impl EquationPart {
    /// Returns the content of the section.
    pub(super) fn html(&self) -> String {
        let written = self.written.iter().map(|(key, text)| {
            format!(
                "<dt><code>{}</code></dt><dd><pre tabindex=\"0\">{}</pre></dd>",
                escape(key),
                escape(text)
            )
        });
        let weak_form = self.weak_form.iter().map(|line| format!("<math display=\"block\">{line}</math>"));
        let formulas: String = self.formulas.iter().map(FormulaTable::html).collect();
        let properties = match list(&self.properties) {
            empty if empty.is_empty() => empty,
            properties => format!("<h3>Class of the tangent</h3>{properties}"),
        };
        format!(
            "<dl class=\"written\">{}</dl><div class=\"wide\">{}</div>{formulas}{properties}",
            written.collect::<String>(),
            weak_form.collect::<String>()
        )
    }
}

impl FormulaTable {
    fn html(&self) -> String {
        let rows = self.rows.iter().map(|FormulaRow { name, formula, .. }| {
            let [name, formula] = [name, formula].map(|math| format!("<td><math>{math}</math></td>"));
            format!("<tr>{name}<td>=</td>{formula}</tr>")
        });
        let table = match &self.rows[..] {
            [] => String::new(),
            all => {
                let text: Vec<&str> = all.iter().map(|row| row.text.as_str()).collect();
                format!(
                    "<div class=\"wide\"><table class=\"formulas\"><tbody>{}</tbody></table></div>\
                     <details><summary>As text</summary><pre tabindex=\"0\">{}</pre></details>",
                    rows.collect::<String>(),
                    escape(&text.join("\n"))
                )
            }
        };
        let note =
            if self.note.is_empty() { String::new() } else { format!("<p>{}</p>", escape(&self.note)) };
        format!("<h3>{}</h3>{table}{note}", escape(&self.heading))
    }
}
