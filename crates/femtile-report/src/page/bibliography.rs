//! References of methods, from `references.bib`.

/// The references of the project, in BibTeX.
const REFERENCES: &str = include_str!("../../references.bib");

/// Returns the entry of a key in BibTeX; none where there is no such key.
pub fn bibtex(key: &str) -> Option<&'static str> {
    let entries =
        REFERENCES.match_indices('@').filter(|(at, _)| *at == 0 || REFERENCES[..*at].ends_with('\n'));
    entries.map(|(at, _)| &REFERENCES[at..]).find_map(|text| {
        let (_, after) = text.split_once('{')?;
        let (found, _) = after.split_once(',')?;
        if found.trim() != key {
            return None;
        }
        // An entry ends with the brace that closes its first one.
        let mut depth = 0;
        let end = text.char_indices().find(|(_, letter)| {
            depth += match letter {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0 && *letter == '}'
        })?;
        Some(&text[..=end.0])
    })
}

/// A reference as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub text: String,
    pub doi: Option<String>,
}

/// Returns authors, title, place and year of an entry; none where there is no such key.
pub(super) fn reference(key: &str) -> Option<Reference> {
    let entry = bibtex(key)?;
    let field = |name: &str| field(entry, name);
    let authors =
        field("author").map(|names| names.split(" and ").map(turned).collect::<Vec<_>>().join(", "));
    let place = ["journal", "booktitle", "publisher", "howpublished", "institution"]
        .iter()
        .find_map(|name| field(name));
    let parts = [authors, field("title"), place, field("year")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(". ");
    Some(Reference { text, doi: field("doi") })
}

/// Returns a field without braces.
fn field(entry: &str, name: &str) -> Option<String> {
    let line = entry.lines().find_map(|line| {
        let (found, value) = line.split_once('=')?;
        (found.trim() == name).then_some(value)
    })?;
    let plain: String = line.trim().trim_end_matches(',').chars().filter(|c| !"{}".contains(*c)).collect();
    Some(plain.replace("--", "–").replace("\\&", "&"))
}

/// Returns `Given Family` of `Family, Given`.
fn turned(name: &str) -> String {
    match name.split_once(", ") {
        Some((family, given)) => format!("{given} {family}"),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_bibliography_is_found_whole_with_authors_and_year() {
        let keys: Vec<&str> = REFERENCES
            .lines()
            .filter_map(|line| line.strip_prefix('@')?.split_once('{')?.1.strip_suffix(','))
            .collect();
        assert!(keys.len() > 20);
        for key in keys {
            let entry = bibtex(key).unwrap();
            assert_eq!(entry.matches('{').count(), entry.matches('}').count(), "{key}");
            assert!(!entry[1..].contains("\n@"), "{key}: {entry}");
            let reference = reference(key).unwrap();
            assert!(reference.text.matches(". ").count() >= 2, "{key}: {}", reference.text);
        }
    }

    #[test]
    fn a_key_that_is_not_there_has_no_entry() {
        assert_eq!((bibtex("nobody1900"), bibtex("")), (None, None));
    }
}
