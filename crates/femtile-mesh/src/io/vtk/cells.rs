//! `CELLS`, in the form of version 5 (offsets and indices) or before (each cell led by its length).

use super::array::{Encoding, Number};
use super::attributes::next_is;
use crate::MeshError;
use crate::io::scanner::Scanner;

/// Nodes of all cells, as in the file.
pub(super) enum Cells {
    /// `ends[i]` is the end of the nodes of cell `i − 1`; `ends[0]` is 0.
    Offsets { ends: Vec<i64>, nodes: Vec<i64> },
    /// Length of a cell, its nodes, length of the next, …
    Counted { n_cells: usize, stream: Vec<i64> },
}

impl Cells {
    /// Reads the data after the word `CELLS`.
    pub(super) fn read(scanner: &mut Scanner<'_>, encoding: Encoding) -> Result<Self, MeshError> {
        let n: usize = scanner.integer("the number of cells")?;
        let size: usize = scanner.integer("the size of the list of cells")?;
        if !next_is(scanner, "OFFSETS") {
            let stream = Number::I32.integers(scanner, encoding, size, "nodes of cells")?;
            return Ok(Self::Counted { n_cells: n, stream });
        }
        scanner.word();
        let ends = Number::parse(scanner)?.integers(scanner, encoding, n, "offsets")?;
        if !scanner.expect("`CONNECTIVITY`")?.eq_ignore_ascii_case(b"CONNECTIVITY") {
            return Err(scanner.error("`CONNECTIVITY` should follow the offsets"));
        }
        let nodes = Number::parse(scanner)?.integers(scanner, encoding, size, "nodes of cells")?;
        Ok(Self::Offsets { ends, nodes })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Offsets { ends, .. } => ends.len().saturating_sub(1),
            Self::Counted { n_cells, .. } => *n_cells,
        }
    }

    /// Passes the nodes of each cell on, in order.
    ///
    /// # Errors
    /// Errors of `each`, and a message when lengths do not match.
    pub(super) fn for_each<E: From<String>>(
        &self,
        mut each: impl FnMut(usize, &[i64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let wrong = |cell| E::from(format!("the length of cell {cell} does not fit the list of cells"));
        match self {
            Self::Offsets { ends, nodes } => {
                for (cell, ends) in ends.windows(2).enumerate() {
                    let begin = usize::try_from(ends[0]).map_err(|_| wrong(cell))?;
                    let end = usize::try_from(ends[1]).map_err(|_| wrong(cell))?;
                    each(cell, nodes.get(begin..end).ok_or_else(|| wrong(cell))?)?;
                }
            }
            Self::Counted { n_cells, stream } => {
                let mut rest = &stream[..];
                for cell in 0..*n_cells {
                    let (&length, tail) = rest.split_first().ok_or_else(|| wrong(cell))?;
                    let length = usize::try_from(length).map_err(|_| wrong(cell))?;
                    let (nodes, tail) = tail.split_at_checked(length).ok_or_else(|| wrong(cell))?;
                    each(cell, nodes)?;
                    rest = tail;
                }
            }
        }
        Ok(())
    }
}
