use std::ops::Range;

use femtile::device::cpu::SharedMut;
use femtile::device::{Buffer, Cpu, Scalar};
use femtile::linalg::hooks::Hook;
use femtile::linalg::{LinalgError, need_product};

use super::{Jds, JdsKernels};
use crate::formats::HookKernels;

/// Rows whose sums stay in the nearest cache while their entries are added column by column.
const ROWS: usize = 256;
/// Minimum number of chunks of rows for one thread.
const MIN_CHUNKS: usize = 16;

impl<T: Scalar> JdsKernels<T> for Cpu {
    fn jds_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Jds<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need_product([a.rows.len(), a.n_cols], y.len(), x.len())?;
        self.hook_rows(y, x, hook, |y| {
            let (n, x) = (y.len(), x.as_slice());
            let shared = SharedMut::new(y.as_mut_slice());
            self.for_ranges(n.div_ceil(ROWS), MIN_CHUNKS, |chunks| {
                for chunk in chunks {
                    let places = chunk * ROWS..((chunk + 1) * ROWS).min(n);
                    let sums = self.vectorize(
                        #[inline(always)]
                        || sum_rows(places.clone(), a, x),
                    );
                    for (&row, sum) in a.rows.as_slice()[places].iter().zip(sums) {
                        // SAFETY: each row stands at one place, and each place is visited once.
                        unsafe { shared.range(row as usize..row as usize + 1)[0] = sum };
                    }
                }
            });
            Ok(())
        })
    }
}

/// Sums of the rows at up to `ROWS` places, the first of which is the longest.
#[inline(always)]
fn sum_rows<T: Scalar>(places: Range<usize>, a: &Jds<T, Cpu>, x: &[T]) -> [T; ROWS] {
    let (columns, values) = (a.columns.as_slice(), a.values.as_slice());
    let longest = a.lengths.as_slice()[places.start] as usize;
    let mut sums = [T::ZERO; ROWS];
    for ends in a.starts.as_slice()[..=longest].windows(2) {
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        let entries = start + places.start..(start + places.end).min(end);
        for (sum, (&column, &value)) in
            sums.iter_mut().zip(columns[entries.clone()].iter().zip(&values[entries]))
        {
            // The column of padding lies beyond the end of every x.
            if let Some(&x) = x.get(column as usize) {
                *sum += value * x;
            }
        }
    }
    sums
}
