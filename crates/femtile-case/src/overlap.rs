//! Warnings about conditions that lose facets, to others or because they lie inside, with their lines.

use femtile_solve::{Discretization, Key, Overlap};

use crate::Case;

/// Returns the warnings about conditions of a problem that take facets or nodes from others, or whose tags are on inner facets too.
pub(crate) fn warnings_of(case: &Case, problem: &Discretization<'_>) -> Vec<String> {
    let of_facets = warnings(case, problem.overlaps(), "facets");
    let inside = problem.inner_facets().iter().map(|inner| inner.warning(|entry| name(case, entry)));
    [of_facets, warnings(case, problem.node_overlaps(), "nodes"), inside.collect()].concat()
}

/// Returns a warning for each overlap; `noun` is the name of the parts.
pub(crate) fn warnings(case: &Case, overlaps: &[Overlap], noun: &str) -> Vec<String> {
    overlaps.iter().map(|overlap| overlap.warning(|entry| name(case, entry), noun)).collect()
}

/// Returns a warning for each region that takes cells from another.
pub(crate) fn warnings_of_regions(case: &Case, overlaps: &[Overlap]) -> Vec<String> {
    let name = |entry: usize| {
        let path: [Key; 3] = ["region".into(), entry.into(), "where".into()];
        let line = case.line(&path).map_or_else(String::new, |line| format!("line {line}, "));
        format!("region[{entry}] ({line}\"{}\")", case.file.region[entry].name)
    };
    overlaps.iter().map(|overlap| overlap.warning(name, "cells")).collect()
}

/// `boundary[1] (line 7, robin on "all")`.
fn name(case: &Case, entry: usize) -> String {
    let section = &case.file.boundary[entry];
    let kind = section.condition();
    let (key, place) = section.place();
    let preposition = if key == "nodes" { "at" } else { "on" };
    let path: [Key; 3] = ["boundary".into(), entry.into(), key.into()];
    let line = case.line(&path).map_or_else(String::new, |line| format!("line {line}, "));
    format!("boundary[{entry}] ({line}{kind} {preposition} \"{place}\")")
}
