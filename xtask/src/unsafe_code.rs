//! `unsafe` occurs only where the plan allows it.

use std::fs;
use std::path::Path;

use crate::cite::collect;

/// Names of files and folders of kernels of a device.
const DEVICES: [&str; 4] = ["cpu.rs", "cuda.rs", "cpu", "cuda"];

/// Crates and files with `unsafe` of their own, and the reason.
const PLACES: [(&str, &str); 12] = [
    ("crates/femtile-device", "memory, threads and the functions of the NVIDIA driver"),
    ("crates/femtile-conformance", "the emulator calls compiled kernels; tests of unsafe functions"),
    ("crates/femtile-python", "arrays of other packages, by the array interfaces and DLPack"),
    ("crates/femtile-mpi", "an outstanding transfer borrows its buffer"),
    ("crates/femtile-comm/src/ghosted.rs", "threads write disjoint entries of the vector with ghosts"),
    ("crates/femtile-comm/src/kernels", "launches, and pointers into the memory of peer GPUs"),
    (
        "crates/femtile-linalg/src/krylov/merged_cg/products.rs",
        "threads update disjoint rows beside a product",
    ),
    ("crates/femtile-multigrid/src/cell_patches/mod.rs", "threads write disjoint patches"),
    ("crates/femtile-multigrid/src/mapped/cells.rs", "threads write disjoint cells"),
    ("crates/femtile-multigrid/src/rows", "threads write disjoint rows of the grid"),
    ("crates/femtile-multigrid/src/smoother/vertex_patch.rs", "threads write disjoint patches of a color"),
    ("crates/femtile-research", "kernels of formats that are compared"),
];

/// Prints `unsafe` outside of these places, and places without any; true when there is neither.
pub fn report(root: &Path) -> bool {
    let mut files = Vec::new();
    collect(&root.join("crates"), &mut files);
    let mut unused: Vec<&str> = PLACES.iter().map(|(place, _)| *place).collect();
    let mut ok = true;
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "rs")) {
        let Ok(text) = fs::read_to_string(file) else { continue };
        let Some(number) = text.lines().position(is_unsafe) else { continue };
        let path = file.strip_prefix(root).unwrap_or(file);
        let (is_test, is_kernel) = (has_part(path, &["tests"]), has_part(path, &DEVICES));
        unused.retain(|place| !path.starts_with(place));
        if !is_test && !is_kernel && !PLACES.iter().any(|(place, _)| path.starts_with(place)) {
            println!("{}:{}: `unsafe` belongs into kernels (cpu, cuda)", path.display(), number + 1);
            ok = false;
        }
    }
    for place in unused {
        println!("{place}: no `unsafe` there; take it off the list of xtask/src/unsafe_code.rs");
        ok = false;
    }
    ok
}

fn has_part(path: &Path, names: &[&str]) -> bool {
    path.iter().any(|part| names.iter().any(|name| part == *name))
}

/// Returns whether a line of source has an unsafe block, function or implementation.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"].iter().any(|word| code.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_unsafe_code() {
        assert!(is_unsafe("    let x = unsafe { read(p) };"));
        assert!(is_unsafe("pub unsafe fn read() {"));
        assert!(!is_unsafe("/// `unsafe { … }`"));
        assert!(!is_unsafe("#![deny(unsafe_op_in_unsafe_fn)]"));
    }
}
