//! The Galerkin product $P^\mathsf{T} A P$, the matrix of the next level.

use femtile_device::Scalar;

use super::rows::{Pieces, Row, RowAccess, Rows, sort_row};

/// Returns the Galerkin product $P^\mathsf{T} A P$, columns of its rows ascending; `r` is the transpose of `p`.
///
/// # Source
/// Products row by row with a table of places: `[gustavson1978]`.
pub(crate) fn galerkin<T: Scalar>(a: &Rows<T>, p: &Rows<T>, r: &Rows<T>) -> Rows<T> {
    let ap = product(a, p, |_, _, _| ());
    product(r, &ap, sort_row).join()
}

/// Returns A B after applying `finish` to each of its rows.
///
/// Terms of an entry are added by the order of the row of A, so its bits do not depend on the number of threads.
fn product<T: Scalar>(
    a: &impl RowAccess<T>,
    b: &impl RowAccess<T>,
    finish: impl Fn(&mut [u32], &mut [T], &mut Vec<(u32, T)>) + Sync,
) -> Pieces<T> {
    let scratch = || (Row::new(b.n_cols()), Vec::new());
    Pieces::build([a.n_rows(), b.n_cols()], scratch, |(sums, pairs), row, out| {
        let (middles, factors) = a.row(row);
        sums.start(middles.iter().map(|&middle| b.row(middle as usize).0.len()).sum());
        for (&middle, &factor) in middles.iter().zip(factors) {
            let (columns, values) = b.row(middle as usize);
            sums.add(columns, values, factor);
        }
        let (columns, values) = sums.entries();
        finish(columns, values, pairs);
        out.extend(columns, values);
    })
}
