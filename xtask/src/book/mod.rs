//! The book: the pages of docs/SUMMARY.md as HTML that needs no network, made by mdBook.
//!
//! Pages keep their places in a copy of the folders, so that their links hold there as they do in the repository.

mod math;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::Checks;
use crate::{documents, tables};

/// The folder, below the root, that mdBook reads.
const SOURCE: &str = "target/book-source";
/// The table of contents; its links are relative to its folder.
const SUMMARY: &str = "docs/SUMMARY.md";
/// Files that mdBook needs beside the pages.
const SETTINGS: [(&str, &str); 2] = [("docs/book.toml", "book.toml"), ("docs/book.css", "book.css")];

/// Makes the book in target/book; true where that went well.
pub fn report(root: &Path) -> bool {
    let mut checks = Checks::default();
    check(&mut checks, root);
    checks.finish()
}

/// Copies the pages, and lets mdBook make the book where it is installed.
pub fn check(checks: &mut Checks, root: &Path) {
    let mut is_ready = false;
    checks.step("pages of the book", |_| {
        is_ready = stage(root).map_err(|error| println!("{error}")).is_ok();
        is_ready
    });
    if !is_ready {
        return;
    }
    let version = Command::new("mdbook").arg("--version").stdin(Stdio::null()).output();
    if version.is_err() {
        checks.skip("book", "mdbook is not installed: cargo install --locked mdbook");
        return;
    }
    let mut build = Command::new("mdbook");
    build.args(["build", SOURCE]).current_dir(root);
    checks.program("book", build);
}

/// Fills the folder that mdBook reads.
fn stage(root: &Path) -> Result<(), String> {
    let target = root.join(SOURCE);
    let _ = fs::remove_dir_all(&target);
    let summary = read(&root.join(SUMMARY))?;
    let pages: BTreeSet<PathBuf> =
        documents::targets(&summary).filter_map(|link| inside(Path::new("docs"), link)).collect();
    complete(root, &pages)?;
    write(&target.join("SUMMARY.md"), &from_root(&summary))?;
    for (from, to) in SETTINGS {
        copy(&root.join(from), &target.join(to))?;
    }
    for page in &pages {
        let text = read(&root.join(page))?;
        let text = math::with_mathml(&tables::without_templates(&text))
            .map_err(|error| format!("{}: {error}", page.display()))?;
        write(&target.join(page), &linked(root, page, &text, &pages)?)?;
    }
    println!("{} pages", pages.len());
    Ok(())
}

/// Returns the table of contents with links from the root.
fn from_root(summary: &str) -> String {
    let mut parts = summary.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let page = inside(Path::new("docs"), link).unwrap_or_default();
        out.push_str(&format!("]({}){rest}", page.display()));
    }
    out
}

/// Checks that no page of docs is missing from the contents.
fn complete(root: &Path, pages: &BTreeSet<PathBuf>) -> Result<(), String> {
    let all = documents::all(root);
    let mut own = all.iter().filter_map(|file| file.strip_prefix(root).ok());
    let is_missing =
        |page: &&Path| page.starts_with("docs") && *page != Path::new(SUMMARY) && !pages.contains(*page);
    match own.find(is_missing) {
        Some(page) => Err(format!("{SUMMARY} lacks {}", page.display())),
        None => Ok(()),
    }
}

/// Copies the files that a page links to, and takes the links from what the book does not have.
fn linked(root: &Path, page: &Path, text: &str, pages: &BTreeSet<PathBuf>) -> Result<String, String> {
    let folder = page.parent().unwrap_or(Path::new(""));
    let mut out = text.to_owned();
    let targets: BTreeSet<&str> = documents::targets(text).filter(|link| !link.starts_with('#')).collect();
    for link in targets {
        let path = link.split('#').next().unwrap_or_default();
        let Some(file) = inside(folder, path) else { continue };
        if pages.contains(&file) {
            continue;
        }
        let readme = file.join("README.md");
        if pages.contains(&readme) {
            let target = format!("]({}/README.md)", path.trim_end_matches('/'));
            out = out.replace(&format!("]({link})"), &target);
        } else if root.join(&file).is_file() && file.extension().is_none_or(|extension| extension != "md") {
            copy(&root.join(&file), &root.join(SOURCE).join(&file))?;
        } else {
            out = without_link(&out, link);
        }
    }
    Ok(out)
}

/// Replaces `[text](link)` by its text.
fn without_link(text: &str, link: &str) -> String {
    let end = format!("]({link})");
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(&end) {
        let begin = before.rfind('[').unwrap_or_default();
        out.push_str(&before[..begin]);
        out.push_str(before.get(begin + 1..).unwrap_or_default());
        rest = after;
    }
    out + rest
}

/// Returns the path from the root that a link in `folder` leads to, where it stays inside.
fn inside(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir if !path.pop() => return None,
            _ => {}
        }
    }
    Some(path)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_have_links_from_the_root() {
        let out = from_root("[a](../README.md)\n- [b](README.md)\n");
        assert_eq!(out, "[a](README.md)\n- [b](docs/README.md)\n");
    }

    #[test]
    fn links_lead_from_the_folder_of_their_page() {
        assert_eq!(inside(Path::new("docs/a"), "../../papers/b.md"), Some("papers/b.md".into()));
        assert_eq!(inside(Path::new("docs"), "../../c"), None);
    }

    #[test]
    fn links_out_of_the_book_leave_their_text() {
        assert_eq!(without_link("see [a] and [`b`](../b), [c](d)", "../b"), "see [a] and `b`, [c](d)");
    }
}
