//! The size of the project: lines and public items of each crate, the program, and the CPU time of its build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::cargo;

/// Where the sizes of the present state are recorded.
const RECORD: &str = "xtask/sizes.txt";

/// Crates whose sources are checks.
const CHECKS: [&str; 2] = ["crates/femtile-conformance", "xtask"];
/// Crates of measurements and of what only papers need.
const MEASUREMENTS: [&str; 2] = ["crates/femtile-research", "bench"];

/// Prints the sizes beside the recorded ones.
pub fn report(root: &Path) -> bool {
    let recorded = read(root);
    for (name, value) in measured(root) {
        let before = recorded.get(&name).copied();
        let change = before.map_or(0, |before| value as i64 - before as i64);
        println!("{name:<48} {value:>10} {:>10} {change:>+8}", before.map_or("-".into(), |b| b.to_string()));
    }
    true
}

/// Builds the program from nothing, and records its size, the CPU time of the build and all other sizes.
pub fn record(root: &Path) -> bool {
    let target = root.join("target/sizes");
    let _ = fs::remove_dir_all(&target);
    let before = cpu_seconds();
    let built = cargo()
        .args(["build", "--release", "--locked", "--bin", "femtile"])
        .env("CARGO_TARGET_DIR", &target)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return false;
    }
    // Cargo does not strip a package with an `opt-level` of its own.
    let stripped = target.join("femtile");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(target.join("release/femtile")).status();
    if !strip.is_ok_and(|status| status.success()) {
        return false;
    }
    let mut sizes = measured(root);
    let size = fs::metadata(&stripped).map_or(0, |file| file.len());
    sizes.insert("build: stripped program, kB".into(), size / 1000);
    if let (Some(before), Some(after)) = (before, cpu_seconds()) {
        sizes.insert("build: CPU time, s".into(), after - before);
    }
    let lines: String = sizes.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    fs::write(root.join(RECORD), lines).is_ok() && report(root)
}

fn read(root: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(root.join(RECORD)).unwrap_or_default();
    let entry = |line: &str| {
        let (name, value) = line.rsplit_once(" = ")?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(entry).collect()
}

/// Returns the number of lines and public items of each crate, and their sums.
fn measured(root: &Path) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let folders = crates.filter_map(|entry| Some(format!("crates/{}", entry.file_name().to_str()?)));
    for folder in folders.chain(["bench".into(), "xtask".into()]) {
        let count = Count::of(&root.join(&folder), false);
        let group = match folder.as_str() {
            name if CHECKS.contains(&name) => "tests",
            name if MEASUREMENTS.contains(&name) => "research and bench",
            _ => "product",
        };
        *sizes.entry(format!("all: lines of {group}")).or_default() += count.lines;
        *sizes.entry("all: lines of tests".into()).or_default() += count.of_tests;
        if group == "product" {
            *sizes.entry("all: public items".into()).or_default() += count.public;
        }
        sizes.insert(format!("{folder}: lines"), count.lines);
        sizes.insert(format!("{folder}: public items"), count.public);
    }
    sizes
}

/// The size of a folder.
#[derive(Debug, Default, PartialEq)]
struct Count {
    /// Lines of source outside of tests.
    lines: u64,
    of_tests: u64,
    /// Items that are `pub` without restriction.
    public: u64,
}

impl Count {
    fn of(folder: &Path, are_tests: bool) -> Self {
        let mut count = Self::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let of_tests =
                are_tests || path.file_stem().is_some_and(|name| name == "tests" || name == "benches");
            if path.is_dir() {
                let of_folder = Self::of(&path, of_tests);
                count.lines += of_folder.lines;
                count.of_tests += of_folder.of_tests;
                count.public += of_folder.public;
            } else if path.extension().is_some_and(|e| e == "rs" || e == "cu" || e == "cuh" || e == "h") {
                count.add(&fs::read_to_string(&path).unwrap_or_default(), of_tests);
            }
        }
        count
    }

    /// Adds a file; what follows `#[cfg(test)]` before a module is a test.
    fn add(&mut self, text: &str, are_tests: bool) {
        let n_lines = text.lines().count() as u64;
        let n_source = match text.find("#[cfg(test)]\nmod tests {") {
            _ if are_tests => 0,
            Some(end) => text[..end].lines().count() as u64,
            None => n_lines,
        };
        self.lines += n_source;
        self.of_tests += n_lines - n_source;
        let source = text.lines().take(n_source as usize);
        self.public += source.filter(|line| is_public(line)).count() as u64;
    }
}

/// Returns whether a line begins a public item; re-exports and fields are none.
fn is_public(line: &str) -> bool {
    let Some(item) = line.trim_start().strip_prefix("pub ") else { return false };
    let words = ["fn", "const", "unsafe", "struct", "enum", "trait", "type", "static", "mod", "union"];
    words.iter().any(|word| item.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
}

/// Returns the CPU time of this process's children that have ended, on Linux.
fn cpu_seconds() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<u64>().ok();
    // The kernel counts a hundred ticks a second whatever its own clock.
    Some((ticks(13)? + ticks(14)?) / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_are_counted_apart() {
        let mut count = Count::default();
        count.add("pub fn a() {}\nfn b() {}\n#[cfg(test)]\nmod tests {\n    pub fn c() {}\n}\n", false);
        assert_eq!(count, Count { lines: 2, of_tests: 4, public: 1 });
    }

    #[test]
    fn fields_and_restricted_items_are_not_public_items() {
        assert!(is_public("    pub const fn length(&self) -> usize {"));
        assert!(!is_public("    pub length: usize,"));
        assert!(!is_public("pub(crate) fn length() {"));
    }
}
