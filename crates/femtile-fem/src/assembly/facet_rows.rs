//! Facet terms, sorted by row.

use rayon::prelude::*;

use crate::forms::{FACET_ENTRIES, FacetTerm};

/// The column number of entries of the right side.
pub(super) const RIGHT_SIDE: u32 = u32::MAX;

/// Facet terms by row, in a row by ascending facet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FacetRows {
    pub rows: Vec<u32>,
    /// Offset of the entries of each row, and the end of the last row.
    pub begin: Vec<u32>,
    /// The column of each entry; [`RIGHT_SIDE`] for loads.
    pub columns: Vec<u32>,
    pub values: Vec<f64>,
}

impl FacetRows {
    /// Sorts the terms of facets with `n_corners` corners by row, then by facet.
    pub fn new(terms: &[FacetTerm], n_corners: usize) -> Self {
        // (row, facet, column, value)
        let mut entries: Vec<(u32, u32, u32, f64)> = Vec::new();
        for (facet, term) in terms.iter().enumerate() {
            let mut push = |row, column, value| entries.push((row, facet as u32, column, value));
            (0..n_corners).for_each(|a| push(term.nodes[a], RIGHT_SIDE, term.load[a]));
            for (&value, (a, b)) in term.matrix.iter().zip(FACET_ENTRIES) {
                // A flux has no matrix, and the third corner of a segment does not exist.
                if value != 0.0 && a < n_corners && b < n_corners {
                    push(term.nodes[a], term.nodes[b], value);
                    if a != b {
                        push(term.nodes[b], term.nodes[a], value);
                    }
                }
            }
        }
        entries.par_sort_by_key(|&(row, facet, ..)| (row, facet));
        let mut found = Self { begin: vec![0], ..Self::default() };
        for group in entries.chunk_by(|a, b| a.0 == b.0) {
            found.rows.push(group[0].0);
            found.columns.extend(group.iter().map(|entry| entry.2));
            found.values.extend(group.iter().map(|entry| entry.3));
            found.begin.push(found.columns.len() as u32);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_list_loads_and_entries_by_ascending_facet() {
        let term = |nodes, matrix, load| FacetTerm { facet: 0, nodes, matrix, load, reacts: false };
        let terms = [
            term([5, 2, 2], [0.0; 6], [1.0, 2.0, 0.0]),
            term([2, 3, 3], [4.0, 5.0, 0.0, 6.0, 0.0, 0.0], [7.0, 8.0, 0.0]),
        ];
        let found = FacetRows::new(&terms, 2);
        assert_eq!(found.rows, [2, 3, 5]);
        assert_eq!(found.begin, [0, 4, 7, 8]);
        assert_eq!(found.columns, [RIGHT_SIDE, RIGHT_SIDE, 2, 3, RIGHT_SIDE, 3, 2, RIGHT_SIDE]);
        assert_eq!(found.values, [2.0, 7.0, 4.0, 6.0, 8.0, 5.0, 6.0, 1.0]);
        assert_eq!(FacetRows::new(&[], 3), FacetRows { begin: vec![0], ..FacetRows::default() });
    }
}
