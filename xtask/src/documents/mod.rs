//! Checks the documents: links and headings exist, commands exist, those of pages for users run, and tables of measurements
//! are those of their records.

mod blocks;
mod commands;
mod links;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::step::{built, cargo};
use crate::tables;
use blocks::{Piece, pieces};
pub use links::targets;

/// Builds the programs in the profile of the tests, so that little is rebuilt.
const BUILD: [&str; 10] = [
    "build",
    "--quiet",
    "--profile",
    "test",
    "--package",
    "femtile-cli",
    "--package",
    "femtile-bench",
    "--package",
    "femtile-research",
];

/// Prints broken links and commands of the documents; returns true when there are none.
pub fn report(root: &Path) -> bool {
    cargo().args(BUILD).status().is_ok_and(|status| status.success()) && report_built(root)
}

/// The same, asking the programs that the tests have built.
pub fn report_built(root: &Path) -> bool {
    let begun = Instant::now();
    let files = all(root);
    let (mut findings, mut commands, mut anchors) = (Vec::new(), BTreeSet::new(), links::Anchors::default());
    let mut seconds = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        let Ok(text) = fs::read_to_string(file) else {
            findings.push(format!("{name} cannot be read"));
            continue;
        };
        let broken = links::broken(file.parent().unwrap_or(root), file, &text, &mut anchors);
        findings.extend(broken.into_iter().map(|finding| format!("{name}: {finding}")));
        let pieces = pieces(&text);
        let blocks = pieces.iter().filter_map(Piece::block);
        commands.extend(blocks.flat_map(commands::shown).map(str::to_owned));
        if is_run(root, file) {
            match run(root, file, &pieces) {
                Ok((failed, own)) => {
                    findings.extend(failed.into_iter().map(|(what, why)| format!("{name}: `{what}`: {why}")));
                    seconds.extend(own);
                }
                Err(error) => findings.push(format!("{name}: its folder cannot be made: {error}")),
            }
        }
    }
    let program = &|| built(root, "femtile");
    for command in &commands {
        if let Err(reason) = commands::exists(root, command, program) {
            findings.push(format!("`{command}`: {reason}"));
        }
    }
    findings.extend(tables::differences(root));
    findings.iter().for_each(|finding| println!("{finding}"));
    seconds.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (seconds, command) in seconds.iter().take(5) {
        println!("{seconds:.1} s for `{command}`");
    }
    println!("{:.1} s in all", begun.elapsed().as_secs_f64());
    let outcome = if findings.is_empty() { "sound" } else { "broken" };
    println!("{} documents, {} commands: {outcome}", files.len(), commands.len());
    findings.is_empty()
}

/// The commands that failed, with the reason, and the seconds of all.
type Outcome = (Vec<(String, String)>, Vec<(f64, String)>);

fn run(root: &Path, file: &Path, pieces: &[Piece<'_>]) -> std::io::Result<Outcome> {
    let program = built(root, "femtile");
    let programs = Path::new(program.get_program()).parent().unwrap_or(root);
    let mut folder = commands::Folder::of(root, file, programs)?;
    let failed = pieces.iter().flat_map(|piece| folder.run(piece)).collect();
    Ok((failed, folder.seconds))
}

/// Returns whether the commands of a page are run: those of pages for users. Papers have full sizes, of hours; the tests run
/// them at small ones.
fn is_run(root: &Path, file: &Path) -> bool {
    let path = file.strip_prefix(root).unwrap_or(file);
    let of_developers = ["docs/developers", "docs/derivations"].iter().any(|folder| path.starts_with(folder));
    let is_of_users =
        path == Path::new("README.md") || path.starts_with("docs") || path.starts_with("examples");
    is_of_users && !of_developers
}

/// Returns all documents.
pub fn all(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        files.push(root.join(name));
    }
    for folder in ["docs", "papers", "examples"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}
