//! Tables as text for kernels.

use std::fmt::Write;

/// A header with arrays in constant memory, read at places that are known when a kernel is compiled.
pub(super) fn text(tables: &[(&str, Vec<f64>)]) -> String {
    let mut text = String::from("#pragma once\n#include \"femtile.cuh\"\n");
    for (name, entries) in tables {
        // An array has an entry at least.
        let _ = write!(text, "__constant__ T {name}[{}] = {{", entries.len().max(1));
        entries.iter().for_each(|entry| {
            let _ = write!(text, "(T){entry:e}, ");
        });
        text.push_str("};\n");
    }
    text
}
