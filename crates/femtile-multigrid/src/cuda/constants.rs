//! Tables as source text of kernels.

use std::fmt::Write;

/// Returns a header with arrays in constant memory, indexed by compile-time constants.
pub(super) fn text(tables: &[(&str, Vec<f64>)]) -> String {
    let mut text = String::from("#pragma once\n#include \"femtile.cuh\"\n");
    for (name, entries) in tables {
        // An array has at least one entry.
        let _ = write!(text, "__constant__ T {name}[{}] = {{", entries.len().max(1));
        entries.iter().for_each(|entry| {
            let _ = write!(text, "(T){entry:e}, ");
        });
        text.push_str("};\n");
    }
    text
}
