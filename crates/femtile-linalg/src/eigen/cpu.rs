use std::ops::Range;

use femtile_device::{Buffer, Cpu, parallel};

use super::kernels::length;
use super::{BlockKernels, Dense};
use crate::vector::cpu::map_blocks_of;
use crate::vector::sum::{BLOCK, block_dot, n_blocks, pieces};
use crate::{LinalgError, need};

type Vector = Buffer<f64, Cpu>;

impl BlockKernels for Cpu {
    fn gram(&self, x: &[&Vector], y: &[&Vector]) -> Result<Dense, LinalgError> {
        let n = x.first().map_or(0, |x| x.len());
        x.iter().try_for_each(|x| need("x", n, x.len()))?;
        y.iter().try_for_each(|y| need("y", n, y.len()))?;
        let [x, y] = [x, y].map(|vectors| vectors.iter().map(|v| v.as_slice()).collect::<Vec<_>>());
        let of_block = |block: usize| {
            let rows = block * BLOCK..((block + 1) * BLOCK).min(n);
            self.vectorize(
                #[inline(always)]
                || gram_of(&x, &y, rows),
            )
        };
        let mut partials = parallel::map(n_blocks(n), 1, of_block);
        while partials.len() > 1 {
            let mut pairs = partials.into_iter();
            let mut sums = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(mut sum) = pairs.next() {
                let other = pairs.next().unwrap_or_default();
                sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
                sums.push(sum);
            }
            partials = sums;
        }
        let values = partials.pop().unwrap_or_else(|| vec![0.0; x.len() * y.len()]);
        Ok(Dense::of_values(y.len(), values))
    }

    fn multiply(&self, x: &[&Vector], c: &Dense) -> Result<Vec<Vector>, LinalgError> {
        let n = length(x, c)?;
        let x: Vec<&[f64]> = x.iter().map(|x| x.as_slice()).collect();
        let zeros = |_| Buffer::zeros(self, n).map_err(LinalgError::from);
        let mut y = (0..c.n_columns()).map(zeros).collect::<Result<Vec<Vector>, _>>()?;
        map_blocks_of(
            self,
            n,
            y.iter_mut().map(Buffer::as_mut_slice).collect(),
            #[inline(always)]
            |rows, y| multiply_block(y, &x, c, rows),
        );
        Ok(y)
    }
}

/// The products of all pairs over one block. Each piece stays in the nearest caches meanwhile.
#[inline(always)]
fn gram_of(x: &[&[f64]], y: &[&[f64]], rows: Range<usize>) -> Vec<f64> {
    let mut sums = vec![0.0; x.len() * y.len()];
    for piece in pieces(rows.len()) {
        let place = rows.start + piece.start..rows.start + piece.end;
        for (x, sums) in x.iter().zip(sums.chunks_exact_mut(y.len().max(1))) {
            for (y, sum) in y.iter().zip(sums) {
                *sum += block_dot(&x[place.clone()], &y[place.clone()]);
            }
        }
    }
    sums
}

/// The combinations of one block, whose parts of `y` are zero.
#[inline(always)]
fn multiply_block(y: &mut [&mut [f64]], x: &[&[f64]], c: &Dense, rows: Range<usize>) {
    for piece in pieces(rows.len()) {
        let place = rows.start + piece.start..rows.start + piece.end;
        for (j, y) in y.iter_mut().enumerate() {
            let y = &mut y[piece.clone()];
            let mut sources = x.chunks_exact(4);
            let mut i = 0;
            for four in &mut sources {
                let [a, b, d, e] = [four[0], four[1], four[2], four[3]].map(|x| &x[place.clone()]);
                let factors = [c[(i, j)], c[(i + 1, j)], c[(i + 2, j)], c[(i + 3, j)]];
                add_four(y, [a, b, d, e], factors);
                i += 4;
            }
            for (k, x) in sources.remainder().iter().enumerate() {
                let factor = c[(i + k, j)];
                y.iter_mut().zip(&x[place.clone()]).for_each(|(y, x)| *y += factor * x);
            }
        }
    }
}

#[inline(always)]
fn add_four(y: &mut [f64], x: [&[f64]; 4], factors: [f64; 4]) {
    let n = y.len();
    let x = x.map(|x| &x[..n]);
    for i in 0..n {
        y[i] += (factors[0] * x[0][i] + factors[1] * x[1][i]) + (factors[2] * x[2][i] + factors[3] * x[3][i]);
    }
}
