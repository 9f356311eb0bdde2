//! The page of a report: one file that needs no network.

mod bibliography;
mod equation;
mod html;
mod pack;
mod roofline;
mod study;
mod svg;
mod view;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

pub use bibliography::bibtex;
pub use equation::{EquationPart, FormulaRow, FormulaTable};
pub use roofline::{Roofline, Work};
pub use study::StudyPage;
pub use view::View;

use crate::number::short;
use html::{Document, escape, facts, list, section, table};

/// The script of the view, built by `cargo xtask assets` from `page/`.
const SCRIPT: &str = include_str!("../../assets/report.js");
/// The licences of what is in the script.
const LICENCES: &str = include_str!("../../assets/LICENSES.txt");
/// The controls of the view.
const CONTROLS: &str = include_str!("../../page/view.html");

/// A condition on a part of the boundary.
#[derive(Debug, Clone, PartialEq)]
pub struct ConditionRow {
    /// The part, as the case names it.
    pub place: String,
    /// Dirichlet, Neumann or another.
    pub kind: String,
    /// Its values.
    pub value: String,
    /// Number of facets, where it is known.
    pub n_facets: Option<usize>,
    /// Their area, or length in two dimensions.
    pub area: Option<f64>,
}

/// A level of multigrid.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelRow {
    /// Rows of its matrix, or unknowns.
    pub n_rows: usize,
    /// Non-zeros, where there is a matrix.
    pub n_nonzeros: Option<usize>,
    /// The format of its matrix and other remarks.
    pub remarks: String,
}

/// The content of the page of a report.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The name of the case.
    pub title: String,
    /// The outcome in a sentence.
    pub outcome: String,
    /// Names and values.
    pub facts: Vec<(String, String)>,
    /// The name of the field in the view.
    pub label: String,
    /// The view.
    pub view: Option<View>,
    /// The picture in place of the view where it cannot be opened, as a PNG file.
    pub picture: Vec<u8>,
    /// Relative residuals, and the tolerance.
    pub residuals: Vec<f64>,
    /// The tolerance; 0 for none.
    pub tolerance: f64,
    /// The levels of multigrid, the finest first.
    pub levels: Vec<LevelRow>,
    /// Seconds of each stage.
    pub seconds: Vec<(String, f64)>,
    /// Work below the limits of the device.
    pub roofline: Option<Roofline>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The equation, where it is one of formulas.
    pub equation: Option<EquationPart>,
    /// Conditions on the boundary.
    pub conditions: Vec<ConditionRow>,
    /// The text of the case file.
    pub case: String,
    /// Keys of the references of methods.
    pub citations: Vec<String>,
    /// Version of Femtile.
    pub version: String,
}

impl Page {
    /// Returns the page.
    pub fn html(&self) -> String {
        let sections = [
            section("warnings", "Warnings", &list(&self.warnings)),
            section("solution", "Solution", &self.solution()),
            section("summary", "Summary", &facts(&self.facts)),
            section(
                "equation",
                "Equation",
                &self.equation.as_ref().map_or(String::new(), EquationPart::html),
            ),
            section("conditions", "Conditions on the boundary", &self.conditions()),
            section(
                "convergence",
                "Convergence",
                &svg::convergence(&self.residuals, self.tolerance).unwrap_or_default(),
            ),
            section("levels", "Levels of multigrid", &self.levels()),
            section("times", "Where the time went", &self.times()),
            section("roofline", "Roofline", &self.roofline.as_ref().map_or(String::new(), roofline)),
            section("case", "Case file", &format!("<pre tabindex=\"0\">{}</pre>", escape(&self.case))),
            section("citations", "Methods used, to cite", &self.citations()),
        ];
        let data = self.view.as_ref().map(|view| view.data(&self.label).to_string()).unwrap_or_default();
        // Inside a script, `</script` ends the element and `<!--<script` keeps it from ending; strings alone have this letter.
        let data = data.replace('<', "\\u003c");
        let (script, licences) = if data.is_empty() {
            (String::new(), String::new())
        } else {
            (
                format!(
                    "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n"
                ),
                format!(
                    "<details><summary>Licences of the view</summary><pre>{}</pre></details>",
                    escape(LICENCES)
                ),
            )
        };
        let document = Document {
            title: &self.title,
            outcome: &self.outcome,
            sections: &sections,
            version: &self.version,
            foot: &licences,
            scripts: &script,
        };
        document.html()
    }

    fn solution(&self) -> String {
        let label = escape(&self.label);
        let picture = if self.picture.is_empty() {
            String::new()
        } else {
            let data = BASE64_STANDARD.encode(&self.picture);
            format!("<img id=\"picture\" alt=\"The field {label}\" src=\"data:image/png;base64,{data}\">")
        };
        let controls = if self.view.is_some() { CONTROLS.replace("{label}", &label) } else { String::new() };
        controls + &picture
    }

    fn conditions(&self) -> String {
        let rows: Vec<[String; 5]> = self
            .conditions
            .iter()
            .map(|row| {
                let ConditionRow { place, kind, value, n_facets, area } = row;
                let n_facets = n_facets.map_or("–".into(), |n| n.to_string());
                [place.clone(), kind.clone(), value.clone(), n_facets, area.map_or("–".into(), short)]
            })
            .collect();
        table(&["where", "condition", "value", "facets", "area or length"], &rows)
    }

    fn levels(&self) -> String {
        let finest = self.levels.first().map_or(1, |level| level.n_rows.max(1)) as f64;
        let rows: Vec<[String; 4]> = self
            .levels
            .iter()
            .enumerate()
            .map(|(i, LevelRow { n_rows, n_nonzeros, remarks })| {
                let nonzeros = n_nonzeros.map_or("–".into(), |n| n.to_string());
                [i.to_string(), n_rows.to_string(), nonzeros, remarks.clone()]
            })
            .collect();
        if rows.is_empty() {
            return String::new();
        }
        let bars = self.levels.iter().map(|level| {
            let width = 100.0 * level.n_rows as f64 / finest;
            format!("<div class=\"level\" style=\"width:{width:.2}%\"></div>")
        });
        format!(
            "<div class=\"levels\" aria-hidden=\"true\">{}</div>{}",
            bars.collect::<String>(),
            table(&["level", "rows", "non-zeros", "remarks"], &rows)
        )
    }

    fn times(&self) -> String {
        let total: f64 = self.seconds.iter().map(|(_, seconds)| seconds).sum();
        if total <= 0.0 {
            return String::new();
        }
        let share = |seconds: f64| 100.0 * seconds / total;
        let parts = self.seconds.iter().enumerate().map(|(i, (name, seconds))| {
            let width = share(*seconds);
            format!("<div class=\"stage s{i}\" style=\"width:{width:.2}%\" title=\"{}\"></div>", escape(name))
        });
        let items = self.seconds.iter().enumerate().map(|(i, (name, seconds))| {
            let percent = share(*seconds);
            format!(
                "<li><span class=\"key s{i}\"></span>{} {seconds:.3} s ({percent:.0} %)</li>",
                escape(name)
            )
        });
        format!(
            "<div class=\"stages\" aria-hidden=\"true\">{}</div><ul class=\"keys\">{}</ul><p>{total:.3} s in all, until \
             this page was made.</p>",
            parts.collect::<String>(),
            items.collect::<String>()
        )
    }

    fn citations(&self) -> String {
        let mut keys: Vec<&String> = self.citations.iter().collect();
        keys.sort();
        keys.dedup();
        let items = keys.into_iter().map(|key| {
            let found = bibliography::reference(key);
            let (text, doi) = found.map_or((key.clone(), None), |found| (found.text, found.doi));
            let link = doi.map_or(String::new(), |doi| {
                let doi = escape(&doi);
                format!(" <a href=\"https://doi.org/{doi}\">doi:{doi}</a>")
            });
            format!("<li>{}.{link}</li>", escape(&text))
        });
        let items: String = items.collect();
        if items.is_empty() {
            return items;
        }
        format!("<ul>{items}</ul><p><code>femtile cite report.json</code> prints them in BibTeX.</p>")
    }
}

fn roofline(roofline: &Roofline) -> String {
    let Some(chart) = roofline.chart() else { return String::new() };
    let rows: Vec<[String; 4]> = roofline
        .work
        .iter()
        .map(|work| {
            [
                work.name.clone(),
                format!("{:.3}", work.intensity()),
                format!("{:.1} GB/s ({:.0} %)", work.gb_per_s(), 100.0 * work.gb_per_s() / roofline.gb_per_s),
                format!("{:.2} Gflop/s", work.gflop_per_s()),
            ]
        })
        .collect();
    chart + &table(&["work", "operations a byte", "of the bandwidth", "rate"], &rows) + &list(&roofline.notes)
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, box_mesh};

    use super::*;
    use crate::Body;

    fn page() -> Page {
        let body =
            Body::of_mesh(&box_mesh(&BoxConfig { cells: [4; 3], ..BoxConfig::default() }).unwrap()).unwrap();
        let mut view = View::new(&body).unwrap();
        for time in [0.0, 0.5, 1.0] {
            let values: Vec<f64> = body.points().iter().map(|p| p[0] + time * p[2]).collect();
            view.push(Some(time), &values);
        }
        Page {
            title: "a < b".into(),
            view: Some(view),
            case: "[mesh]\n# </script>".into(),
            ..Page::default()
        }
    }

    #[test]
    fn a_page_refers_to_nothing_outside_of_it() {
        let html = Page { citations: vec!["adams2003".into()], ..page() }.html();
        let outside = html.match_indices("https://").map(|(at, _)| &html[at..(at + 60).min(html.len())]);
        let style_and_text = html.split("<script>").next().unwrap();
        for link in style_and_text.match_indices("https://").map(|(at, _)| &style_and_text[at - 6..at + 20]) {
            assert!(link.starts_with("href=\"https://doi.org"), "{link}");
        }
        assert!(outside.count() > 0 && html.contains("default-src 'none'"));
    }

    #[test]
    fn a_page_of_a_million_cells_stays_below_25_megabytes() {
        let mesh = box_mesh(&BoxConfig { cells: [55; 3], ..BoxConfig::default() }).unwrap();
        let body = Body::of_mesh(&mesh).unwrap();
        let mut view = View::new(&body).unwrap();
        let field = |[x, y, z]: &[f64; 3]| (17.0 * x).sin() * (11.0 * y + z * z).cos() + x * z;
        view.push(None, &body.points().iter().map(field).collect::<Vec<f64>>());
        let n_bytes = Page { view: Some(view), ..Page::default() }.html().len();
        println!("{} cells, {:.2} MB", mesh.n_cells(), 1e-6 * n_bytes as f64);
        assert!(mesh.n_cells() > 990_000 && n_bytes < 25_000_000, "{n_bytes}");
    }

    #[test]
    fn text_of_the_case_cannot_end_the_page() {
        let html = page().html();
        assert!(html.contains("<h1>a &lt; b</h1>") && html.contains("# &lt;/script&gt;"));
    }

    #[test]
    fn texts_of_an_equation_are_escaped_and_its_formulas_are_not() {
        let math = "<mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow>";
        let row = FormulaRow { name: "<mi>f</mi>".into(), formula: math.into(), text: "f = a < b".into() };
        let table = FormulaTable { heading: "x < y".into(), rows: vec![row], note: String::new() };
        let long =
            FormulaTable { heading: "long".into(), note: "9 operations".into(), ..FormulaTable::default() };
        let equation = EquationPart {
            written: vec![("define".into(), "a = if(u < 1, 2, \"3\") # </pre><script>".into())],
            formulas: vec![table, long],
            properties: vec!["It is <symmetric>.".into()],
            ..EquationPart::default()
        };
        let html = Page { equation: Some(equation), ..Page::default() }.html();
        let (_, section) = html.split_once("<section id=\"equation\"").unwrap();
        let (section, _) = section.split_once("</section>").unwrap();
        assert!(section.contains("if(u &lt; 1, 2, &quot;3&quot;) # &lt;/pre&gt;&lt;script&gt;"), "{section}");
        assert!(section.contains("<h3>x &lt; y</h3>") && section.contains("f = a &lt; b"), "{section}");
        assert!(section.contains(&format!("<td><math>{math}</math></td>")), "{section}");
        assert!(
            section.contains("<h3>long</h3><p>9 operations</p>") && section.contains("&lt;symmetric&gt;")
        );
        assert_eq!(section.matches("<table").count(), 1);
    }

    #[test]
    fn the_label_of_a_view_neither_ends_nor_swallows_its_script() {
        for label in ["<!--<script>", "</script>", "<!--"] {
            let page = Page { label: label.into(), ..page() };
            let html = page.html();
            let (_, rest) = html.split_once("id=\"data\">").unwrap();
            let (data, _) = rest.split_once("</script>\n<script>").unwrap();
            assert!(!data.contains('<'), "{label}");
            let data: serde_json::Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["label"], label);
        }
    }

    #[test]
    fn sections_without_content_are_left_out() {
        let html = Page::default().html();
        for id in [
            "warnings",
            "equation",
            "conditions",
            "convergence",
            "levels",
            "times",
            "roofline",
            "citations",
            "data",
        ] {
            assert!(!html.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }

    #[test]
    fn the_range_of_a_view_is_that_of_all_times() {
        assert_eq!(page().view.unwrap().range(), [0.0, 2.0]);
    }
}
