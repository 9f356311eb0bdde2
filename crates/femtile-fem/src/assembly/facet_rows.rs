//! Facet terms, sorted by row.

use rayon::prelude::*;

use crate::forms::FacetTerm;

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
    /// Sorts the terms of facets by row, then by facet.
    pub fn new(terms: &[FacetTerm]) -> Self {
        // (row, facet, column, value)
        let mut entries: Vec<(u32, u32, u32, f64)> = Vec::new();
        for (facet, term) in terms.iter().enumerate() {
            let loads = term.matrix.dofs.iter().zip(&term.load).map(|(&row, &load)| (row, RIGHT_SIDE, load));
            let all = loads.chain(term.entries());
            entries.extend(all.map(|(row, column, value)| (row, facet as u32, column, value)));
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
    use crate::forms::FacetMatrix;

    #[test]
    fn rows_list_loads_and_entries_by_ascending_facet() {
        let term = |facet: u32, dofs: [u32; 2], load: [f64; 2], entries: &[f64]| {
            let matrix = FacetMatrix { dofs: dofs.to_vec(), entries: entries.to_vec() };
            FacetTerm { facet, load: load.to_vec(), matrix }
        };
        let terms = [term(0, [5, 2], [1.0, 2.0], &[]), term(1, [2, 3], [7.0, 8.0], &[4.0, 6.0, 6.0, 5.0])];
        let found = FacetRows::new(&terms);
        assert_eq!(found.rows, [2, 3, 5]);
        assert_eq!(found.begin, [0, 4, 7, 8]);
        assert_eq!(found.columns, [RIGHT_SIDE, RIGHT_SIDE, 2, 3, RIGHT_SIDE, 2, 3, RIGHT_SIDE]);
        assert_eq!(found.values, [2.0, 7.0, 4.0, 6.0, 8.0, 6.0, 5.0, 1.0]);
        assert_eq!(FacetRows::new(&[]), FacetRows { begin: vec![0], ..FacetRows::default() });
    }
}
