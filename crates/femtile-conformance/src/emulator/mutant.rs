//! Kernels with something left out, which the emulator must notice.

/// What orders accesses of threads or blocks.
const BARRIERS: [&str; 3] = ["__syncthreads();", "__syncwarp();", "__threadfence();"];

/// The text without its barrier number `index`, counted over the whole text; none where there are fewer.
pub fn without_barrier(text: &str, index: usize) -> Option<String> {
    let mut places: Vec<(usize, &str)> = BARRIERS
        .iter()
        .flat_map(|barrier| text.match_indices(barrier))
        // Comments and definitions name barriers too.
        .filter(|(place, _)| {
            let line = text[..*place].rsplit('\n').next().unwrap_or_default();
            line.trim().is_empty()
        })
        .collect();
    places.sort_unstable();
    let (place, barrier) = *places.get(index)?;
    Some(format!("{};{}", &text[..place], &text[place + barrier.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_barrier_is_left_out_and_comments_are_not_counted() {
        let text = "// __syncthreads();\na;\n    __syncthreads();\n    __threadfence();\n";
        assert_eq!(
            without_barrier(text, 0).unwrap(),
            "// __syncthreads();\na;\n    ;\n    __threadfence();\n"
        );
        assert_eq!(
            without_barrier(text, 1).unwrap(),
            "// __syncthreads();\na;\n    __syncthreads();\n    ;\n"
        );
        assert_eq!(without_barrier(text, 2), None);
    }
}
