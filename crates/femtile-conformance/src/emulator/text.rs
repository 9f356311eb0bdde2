//! Analysis of the source of a kernel without compiling it: its entries and its barriers.

use std::ops::Range;

/// The text with comments blanked out, every byte in its place.
fn code(text: &str) -> Vec<u8> {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    while at < code.len() {
        let rest = &text.as_bytes()[at..];
        let comment = match rest {
            [b'/', b'/', ..] => rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', ..] => {
                rest[2..].windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
            }
            _ => 0,
        };
        code[at..at + comment].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at += comment.max(1);
    }
    code
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The names in a stretch of code, with their places.
fn names(code: &[u8], from: usize) -> impl Iterator<Item = Range<usize>> {
    let mut at = from;
    std::iter::from_fn(move || {
        let begin = at + code.get(at..)?.iter().position(|&byte| is_name(byte))?;
        let length = code[begin..].iter().position(|&byte| !is_name(byte)).unwrap_or(code.len() - begin);
        at = begin + length;
        Some(begin..at)
    })
}

/// The place behind the parenthesis that closes the one at or after `from`, if that comes next but for spaces.
fn parentheses(code: &[u8], from: usize) -> Option<usize> {
    let begin = from + code.get(from..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let mut depth = 0usize;
    for (at, byte) in code.iter().enumerate().skip(begin) {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > begin).then_some(at + 1);
        }
    }
    None
}

/// Names of the kernels: functions that are `extern "C" __global__`.
pub(super) fn entries(text: &str) -> Vec<String> {
    let code = code(text);
    let mut entries = Vec::new();
    let mut is_kernel = false;
    let mut behind = 0;
    for name in names(&code, 0) {
        if name.start < behind {
            continue;
        }
        let word = &code[name.clone()];
        let open = parentheses(&code, name.end);
        match (word, open) {
            (b"__global__", _) => is_kernel = true,
            (b"__launch_bounds__", Some(end)) => behind = end,
            (_, Some(_)) if is_kernel => {
                entries.push(String::from_utf8_lossy(word).into_owned());
                is_kernel = false;
            }
            _ => {}
        }
    }
    entries
}

/// Statements that order accesses of threads or blocks.
const BARRIERS: [&[u8]; 3] = [b"__syncthreads", b"__syncwarp", b"__threadfence"];

/// The barriers of a text, without their semicolons.
fn barriers(text: &str) -> Vec<Range<usize>> {
    let code = code(text);
    let calls = names(&code, 0).filter(|name| BARRIERS.contains(&&code[name.clone()]));
    calls.filter_map(|name| Some(name.start..parentheses(&code, name.end)?)).collect()
}

/// The text without its barrier or fence number `index`, counted over the whole text; none where there are fewer.
pub fn without_barrier(text: &str, index: usize) -> Option<String> {
    let barrier = barriers(text).get(index)?.clone();
    Some([&text[..barrier.start], &text[barrier.end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_behind_comments_and_bounds() {
        let text = r#"
            // extern "C" __global__ void none(int a);
            extern "C" __global__ void first(int a) { f(a); }
            /* extern "C" __global__ void neither( */
            extern "C" __global__ void
            __launch_bounds__(ROWS * (2 + 1)) second (const double* x,
                int n) {}
            __device__ void helper(int a) {}
        "#;
        assert_eq!(entries(text), ["first", "second"]);
        assert!(entries("").is_empty() && entries("__global__").is_empty());
    }

    #[test]
    fn each_barrier_is_taken_out_alone() {
        let text =
            "a; __syncthreads(); // __syncthreads();\n if (b) __syncwarp(f(1));\nn = __syncthreads_or(1);";
        assert_eq!(barriers(text).len(), 2);
        let first = "a; ; // __syncthreads();\n if (b) __syncwarp(f(1));\nn = __syncthreads_or(1);";
        assert_eq!(without_barrier(text, 0).as_deref(), Some(first));
        let second = "a; __syncthreads(); // __syncthreads();\n if (b) ;\nn = __syncthreads_or(1);";
        assert_eq!(without_barrier(text, 1).as_deref(), Some(second));
        assert_eq!(without_barrier(text, 2), None);
    }

    #[test]
    fn texts_that_end_too_early_are_read_to_their_end() {
        for text in
            ["/*", "//", "/", "__syncthreads(", "__global__ void f(", "__launch_bounds__((", ")", "/**/"]
        {
            assert_eq!(barriers(text).len() + entries(text).len(), 0, "{text}");
        }
    }
}
