//! Every key that is cited exists in `references.bib`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Prints citations of unknown keys; true when there are none.
pub fn report(root: &Path) -> bool {
    let Ok(bibliography) = fs::read_to_string(root.join("references.bib")) else {
        println!("references.bib is missing");
        return false;
    };
    let known = keys(&bibliography);
    let mut files = Vec::new();
    for folder in ["crates", "bench", "docs", "papers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    let mut ok = true;
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        for (number, line) in text.lines().enumerate() {
            for key in cited(line).filter(|key| !known.contains(*key)) {
                println!("{}:{}: [{key}] is not in references.bib", file.display(), number + 1);
                ok = false;
            }
        }
    }
    println!("{} keys known, citations {}", known.len(), if ok { "sound" } else { "broken" });
    ok
}

fn keys(bibliography: &str) -> BTreeSet<&str> {
    let entries = bibliography.lines().filter(|line| line.starts_with('@'));
    entries.filter_map(|line| line.split(['{', ',']).nth(1)).collect()
}

/// Appends the sources and pages below a folder.
pub(crate) fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md" || e == "cu") {
            files.push(path);
        }
    }
}

/// Words in brackets that look like a key: lower-case letters, then a year.
fn cited(line: &str) -> impl Iterator<Item = &str> {
    line.split('[').skip(1).filter_map(|rest| rest.split(']').next()).filter(|word| {
        let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() == letters.len() + 4
            && letters.len() > 1
            && letters.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_citations_are_found() {
        assert_eq!(
            keys("@article{cui2024,\n title={x}}\n@book{saad2003,\n"),
            BTreeSet::from(["cui2024", "saad2003"])
        );
        let found: Vec<_> = cited("see `[cui2024], Alg. 1`, x[i], [mem] and [2024] [Cui2024]").collect();
        assert_eq!(found, ["cui2024"]);
    }
}
