//! Tables of measurements in pages, rendered from the records in bench/results.
//!
//! A page encloses such a table by two comments. The first one has the name of the record and a template:
//!
//! ```text
//! <!-- table: NAME; CONDITION; CONDITION
//! | degree | product, ms | over deal.II |
//! |---|---|---|
//! | | {3 *1e3 seconds_min} | {.2 over_dealii} |
//! | {degree} | each degree; problem = bp5, cubes* |
//! | all threads | threads = 16 |
//! -->
//! ...
//! <!-- end of table -->
//! ```
//!
//! * The first two lines are the head of the table.
//! * A line with an empty first cell has the cells of the rows that follow. Braces are values of the record.
//! * Any other line is a row: its label and the conditions that select entries of the record. `each FIELD` repeats the row
//!   for each value of a field.
//! * A condition is `FIELD = TEXT` or `FIELD != TEXT`; `*` stands for any text.
//! * A value is `{DIGITS *FACTOR FIELD where CONDITION; CONDITION}`. `.2` is two decimals, `2` is two significant digits.
//!   `least`, `most`, `median`, `sum` or `count` before the field combines several entries; `FIELD at least OTHER` and
//!   `at most` take the field of the entry with the extreme value of another; `A / B` is a quotient. Conditions of a value replace those of
//!   its row and table on the same field.
//!
//! A cell is empty if the record has no such entry. A row or column without any value is an error.

mod record;
mod template;

use std::fs;
use std::path::{Path, PathBuf};

use crate::documents;
use record::Record;

/// The folder of the records.
const RECORDS: &str = "bench/results";
/// Begins the comment before a table.
const BEGIN: &str = "<!-- table:";
/// Ends that comment.
const END_OF_TEMPLATE: &str = "-->";
/// The comment after a table.
const END: &str = "<!-- end of table -->";

/// Renders the tables of all pages in place; true if all could be rendered.
pub fn update(root: &Path) -> bool {
    let mut is_sound = true;
    for page in pages(root) {
        let name = page.strip_prefix(root).unwrap_or(&page).display();
        let Ok(text) = fs::read_to_string(&page) else { continue };
        match rendered(&text, &|file| record(root, file)) {
            Ok(new) if new == text => {}
            Ok(new) => match fs::write(&page, new) {
                Ok(()) => println!("{name}: rendered"),
                Err(error) => {
                    println!("{name}: {error}");
                    is_sound = false;
                }
            },
            Err((line, error)) => {
                println!("{name}:{line}: {error}");
                is_sound = false;
            }
        }
    }
    is_sound
}

/// Returns, with page and line, the tables that differ from their records.
pub fn differences(root: &Path) -> Vec<String> {
    let difference = |page: PathBuf| {
        let text = fs::read_to_string(&page).unwrap_or_default();
        let (line, what) = match rendered(&text, &|file| record(root, file)) {
            Ok(new) => {
                let line = 1 + text.lines().zip(new.lines()).position(|(a, b)| a != b)?;
                (line, "the table differs from its record: cargo xtask tables".to_owned())
            }
            Err(at_line) => at_line,
        };
        Some(format!("{}:{line}: {what}", page.strip_prefix(root).unwrap_or(&page).display()))
    };
    pages(root).into_iter().filter_map(difference).collect()
}

/// Returns a page without the templates of its tables.
pub fn without_templates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        out.push_str(before);
        rest = after.split_once(END_OF_TEMPLATE).map_or("", |(_, after)| after);
    }
    (out + rest).replace(END, "")
}

/// The documents, and the page of the benchmarks.
fn pages(root: &Path) -> Vec<PathBuf> {
    let mut pages = documents::all(root);
    pages.push(root.join("bench/README.md"));
    pages
}

fn record(root: &Path, name: &str) -> Result<Vec<Record>, String> {
    let file = format!("{RECORDS}/{name}.json");
    let text = fs::read_to_string(root.join(&file)).map_err(|error| format!("{file}: {error}"))?;
    record::entries(name, &text).map_err(|error| format!("{file}: {error}"))
}

/// Returns the text of a page with its tables rendered; an error has the line of the template.
fn rendered(
    text: &str,
    record: &dyn Fn(&str) -> Result<Vec<Record>, String>,
) -> Result<String, (usize, String)> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(BEGIN) {
        let line = out.lines().count() + rest[..begin].lines().count() + 1;
        let lacks = |what: &str| (line, format!("the table has no `{what}`"));
        let template = &rest[begin + BEGIN.len()..];
        let (template, after) = template.split_once(END_OF_TEMPLATE).ok_or_else(|| lacks(END_OF_TEMPLATE))?;
        let (_, after) = after.split_once(END).ok_or_else(|| lacks(END))?;
        let table = template::table(template, record).map_err(|error| (line, error))?;
        out.push_str(&rest[..begin]);
        out.push_str(&[BEGIN, template, END_OF_TEMPLATE, "\n\n", &table, "\n", END].concat());
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"[
        {"problem": "cg", "parameters": {"ranks": 1}, "seconds_min": 0.0123},
        {"problem": "cg", "parameters": {"ranks": 2}, "seconds_min": 0.0065}]"#;
    const TEMPLATE: &str = "a\n\n<!-- table: r; problem = cg\n| ranks | ms | share |\n|---|---|---|\n| | {2 *1e3 seconds_min} | {.0 *50 seconds_min where ranks = 1 / seconds_min} % |\n| {ranks} | ranks = 2 |\n-->";
    const TABLE: &str =
        "\n\n| ranks | ms | share |\n|---|---|---|\n| 2 | 6.5 | 95 % |\n\n<!-- end of table -->\nb\n";

    fn of_page(text: &str) -> Result<String, (usize, String)> {
        rendered(text, &|name| record::entries(name, RECORD))
    }

    #[test]
    fn tables_are_replaced_by_what_the_record_has() {
        let page = format!("{TEMPLATE}{TABLE}");
        assert_eq!(of_page(&page.replace("6.5", "6.4")), Ok(page));
    }

    #[test]
    fn errors_have_the_line_of_the_template() {
        assert_eq!(of_page(TEMPLATE).unwrap_err().0, 3);
        let page = format!("{TEMPLATE}{TABLE}").replace("ranks = 2", "ranks = 3");
        assert_eq!(of_page(&page), Err((3, "no entry for `{ranks}`".to_owned())));
    }

    #[test]
    fn books_have_tables_without_templates() {
        let text = without_templates(&format!("{TEMPLATE}{TABLE}"));
        assert_eq!(text, "a\n\n\n\n| ranks | ms | share |\n|---|---|---|\n| 2 | 6.5 | 95 % |\n\n\nb\n");
    }
}
