//! Links between pages, and the headings that they lead to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::blocks::prose;

/// Returns what is wrong with the links of a page in `folder`.
pub fn broken(folder: &Path, page: &Path, text: &str, anchors: &mut Anchors) -> Vec<String> {
    let mut findings = Vec::new();
    for target in targets(&prose(text)) {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if path.is_empty() { page.to_owned() } else { folder.join(path) };
        if !file.exists() {
            findings.push(format!("the link to {target} leads nowhere"));
        } else if !anchor.is_empty() && is_page(&file) && !anchors.of(&file).iter().any(|own| own == anchor) {
            findings.push(format!("the link to {target}: there is no such heading"));
        }
    }
    findings
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// Returns the targets of relative links, with their anchors.
pub fn targets(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(' '))
}

/// The anchors of the headings of pages, read once.
#[derive(Default)]
pub struct Anchors(BTreeMap<PathBuf, Vec<String>>);

impl Anchors {
    fn of(&mut self, file: &Path) -> &[String] {
        self.0
            .entry(file.to_owned())
            .or_insert_with(|| anchors(&fs::read_to_string(file).unwrap_or_default()))
    }
}

/// Returns the anchors of all headings; one that occurs again has a number.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        let level = line.bytes().take_while(|&byte| byte == b'#').count();
        if is_fenced || !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let anchor = anchor(line[level..].trim());
        let again = anchors.iter().filter(|own| **own == anchor).count();
        anchors.push(if again == 0 { anchor } else { format!("{anchor}-{again}") });
    }
    anchors
}

/// Returns the anchor of a heading: letters and digits in lower case, a hyphen for each space.
fn anchor(heading: &str) -> String {
    // Of a link its text alone.
    let mut parts = heading.split("](");
    let mut text = parts.next().unwrap_or_default().to_owned();
    text.extend(parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest)));
    let text = text.to_lowercase();
    let kept = text.chars().filter_map(|c| match c {
        ' ' | '-' => Some('-'),
        _ if c.is_alphanumeric() || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_links_are_followed() {
        let text = "[a](docs/a.md#part) [b](https://example.org) [c](#here) f](x y)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["docs/a.md#part", "#here"]);
    }

    #[test]
    fn anchors_are_those_of_headings() {
        let text = "# `[mesh]`: one of `file`\n## A\n```\n# no\n```\n## A\n### u_t = ∇·(D∇u)\n";
        assert_eq!(anchors(text), ["mesh-one-of-file", "a", "a-1", "u_t--du"]);
    }
}
