use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::hooks::Hook;
use femtile::linalg::vector::map_blocks;
use femtile::linalg::{LinalgError, need_product};

use super::{Ell, EllKernels};

/// Rows whose sums stay in the nearest cache while their entries are added column by column.
const ROWS: usize = 256;

impl<T: Scalar> EllKernels<T> for Cpu {
    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.n_rows, a.n_cols], y.len(), x.len())?;
        let (n, x, is_square) = (a.n_rows, x.as_slice(), a.n_rows == a.n_cols);
        if is_square {
            hook.pre(0..n);
        }
        map_blocks(
            self,
            n,
            [y.as_mut_slice()],
            #[inline(always)]
            |rows, [y]| {
                for (chunk, y) in y.chunks_mut(ROWS).enumerate() {
                    sum_rows(y, rows.start + chunk * ROWS, a, x);
                }
                if is_square {
                    hook.post(rows.clone(), &x[rows], y);
                }
            },
        );
        Ok(())
    }
}

/// Sums of the rows from `first_row` on, as many as there are in y.
#[inline(always)]
fn sum_rows<T: Scalar>(y: &mut [T], first_row: usize, a: &Ell<T, Cpu>, x: &[T]) {
    let threads = a.config.threads_per_row;
    let longest = a.lengths.as_ref().map(|lengths| &lengths.as_slice()[first_row..first_row + y.len()]);
    let longest = longest.map(|lengths| lengths.iter().max().map_or(0, |&length| length as usize));
    let steps = longest.map_or(a.steps, |longest| longest.div_ceil(threads));
    y.fill(T::ZERO);
    for step in 0..steps {
        let begin = a.place(first_row, step * threads);
        let entries = begin..begin + y.len() * threads;
        let columns = a.columns.as_slice()[entries.clone()].chunks_exact(threads);
        let values = a.values.as_slice()[entries].chunks_exact(threads);
        for (y, (columns, values)) in y.iter_mut().zip(columns.zip(values)) {
            for (&column, &value) in columns.iter().zip(values) {
                // The column of padding lies beyond the end of every x.
                if let Some(&x) = x.get(column as usize) {
                    *y += value * x;
                }
            }
        }
    }
}
