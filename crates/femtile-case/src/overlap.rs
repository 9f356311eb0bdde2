//! Conditions that take parts of the boundary from others.

use crate::Case;
use crate::place::Key;

/// Warnings about `[[boundary]]` entries whose parts, as `holds[entry]` lists them, a later entry names as well.
///
/// An entry for `all` that keeps some of its parts is a default, and nothing is said of it.
pub(crate) fn warnings(case: &Case, holds: &[Vec<u32>], n_parts: usize, noun: &str) -> Vec<String> {
    let mut winners = vec![0; n_parts];
    for (entry, parts) in holds.iter().enumerate() {
        parts.iter().for_each(|&part| winners[part as usize] = entry);
    }
    let mut found = Vec::new();
    for (entry, parts) in holds.iter().enumerate() {
        let mut lost = vec![0; holds.len()];
        parts.iter().for_each(|&part| lost[winners[part as usize]] += 1);
        let n_kept = std::mem::take(&mut lost[entry]);
        let is_default = case.file.boundary[entry].r#where == "all" && n_kept > 0;
        let takers = lost.iter().enumerate().filter(|&(_, &n)| n > 0 && !is_default);
        found.extend(takers.map(|(taker, n)| {
            let (taker, loser, all) = (name(case, taker), name(case, entry), parts.len());
            let left = if n_kept == 0 { ", which then holds nowhere" } else { "" };
            format!(
                "{taker} takes {n} of the {all} {noun} of {loser}{left}: where conditions overlap, the last one holds; put \
                 the one that shall hold last, or narrow the `where` of the other"
            )
        }));
    }
    found
}

/// `boundary[1] (line 7, robin on "all")`.
fn name(case: &Case, entry: usize) -> String {
    let section = &case.file.boundary[entry];
    let kind = match (&section.dirichlet, &section.neumann, &section.robin) {
        (Some(_), ..) => "dirichlet",
        (_, Some(_), _) => "neumann",
        (.., Some(_)) => "robin",
        _ => "periodic",
    };
    let path: [Key; 3] = ["boundary".into(), entry.into(), "where".into()];
    let line = case.line(&path).map_or_else(String::new, |line| format!("line {line}, "));
    format!("boundary[{entry}] ({line}{kind} on \"{}\")", section.r#where)
}
