use std::process::ExitCode;

use crate::arguments::ReproduceOptions;
use crate::failure::Failure;
use crate::print;

/// The papers, by key of references.bib, and what each gives Femtile.
const PAPERS: [(&str, &str); 5] = [
    ("cui2024", "multigrid with vertex-patch smoothers"),
    ("kronbichler2022", "conjugate gradients merged into matrix-free operators"),
    ("laszlo2016", "batched tridiagonal and block-tridiagonal solvers"),
    ("fu2014", "the pipeline of finite elements with algebraic multigrid"),
    ("wong2015", "ELL-WARP sparse products and cardiac simulation"),
];

/// `femtile reproduce`.
pub fn run(options: &ReproduceOptions) -> Result<ExitCode, Failure> {
    let list =
        PAPERS.map(|(key, what)| format!("{key:<16} {what}; no item can be reproduced yet\n")).concat();
    let Some(key) = &options.key else { return print(&list) };
    if !PAPERS.iter().any(|(known, _)| known == key) {
        return Err(Failure::message(format!("there is no paper `{key}`; the papers are:\n{list}")));
    }
    let item = options.item.as_deref().unwrap_or("any item");
    Err(Failure::message(format!("{item} of {key} cannot be reproduced yet: see papers/{key}/README.md")))
}
