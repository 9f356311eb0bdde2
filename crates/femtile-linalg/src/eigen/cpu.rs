use std::ops::Range;

use femtile_device::{Buffer, Cpu, parallel};

use super::kernels::{common_length, length};
use super::{BlockKernels, Dense};
use crate::LinalgError;
use crate::vector::cpu::map_blocks_of;
use crate::vector::sum::{BLOCK, n_blocks, pieces};

type Vector = Buffer<f64, Cpu>;

impl BlockKernels for Cpu {
    fn gram(&self, x: &[&Vector], y: &[&Vector]) -> Result<Dense, LinalgError> {
        let n = common_length(x, y)?;
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

/// Lanes of a sum.
const LANES: usize = 8;

/// The products of all pairs over one block. Each piece stays in the nearest caches meanwhile.
#[inline(always)]
fn gram_of(x: &[&[f64]], y: &[&[f64]], rows: Range<usize>) -> Vec<f64> {
    let mut sums = vec![0.0; x.len() * y.len()];
    for piece in pieces(rows.len()) {
        let place = rows.start + piece.start..rows.start + piece.end;
        let mut i = 0;
        while i + 2 <= x.len() {
            add_rows([i, i + 1], x, y, &place, &mut sums);
            i += 2;
        }
        if i < x.len() {
            add_rows([i], x, y, &place, &mut sums);
        }
    }
    sums
}

/// Adds the products of some vectors of X with all of Y.
#[inline(always)]
fn add_rows<const I: usize>(
    own: [usize; I],
    x: &[&[f64]],
    y: &[&[f64]],
    place: &Range<usize>,
    sums: &mut [f64],
) {
    let x = own.map(|i| &x[i][place.clone()]);
    let mut add = |i: usize, j: usize, sum: f64| sums[own[i] * y.len() + j] += sum;
    let mut j = 0;
    while j + 4 <= y.len() {
        let products = products_of(x, [0, 1, 2, 3].map(|k| &y[j + k][place.clone()]));
        (0..I).for_each(|i| (0..4).for_each(|k| add(i, j + k, products[i][k])));
        j += 4;
    }
    for (j, y) in y.iter().enumerate().skip(j) {
        let products = products_of(x, [&y[place.clone()]]);
        (0..I).for_each(|i| add(i, j, products[i][0]));
    }
}

/// The products of the pairs of two sets. Row k belongs to lane k mod [`LANES`]; lanes are added in pairs.
#[inline(always)]
fn products_of<const I: usize, const J: usize>(x: [&[f64]; I], y: [&[f64]; J]) -> [[f64; J]; I] {
    let mut sums = [[[0.0; LANES]; J]; I];
    let (of_x, of_y) = (x.map(|x| x.as_chunks::<LANES>()), y.map(|y| y.as_chunks::<LANES>()));
    let n = of_x[0].0.len();
    let (chunks_x, chunks_y) = (of_x.map(|x| &x.0[..n]), of_y.map(|y| &y.0[..n]));
    for chunk in 0..n {
        let b = chunks_y.map(|y| y[chunk]);
        for (sums, x) in sums.iter_mut().zip(&chunks_x) {
            let a = x[chunk];
            for (sum, b) in sums.iter_mut().zip(&b) {
                // Whole arrays, so that the compiler keeps them in vector registers.
                *sum = std::array::from_fn(|lane| sum[lane] + a[lane] * b[lane]);
            }
        }
    }
    let add = |i: usize, j: usize| {
        let mut lanes = sums[i][j];
        for (lane, (x, y)) in of_x[i].1.iter().zip(of_y[j].1).enumerate() {
            lanes[lane] += x * y;
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        ((a + b) + (c + d)) + ((e + f) + (g + h))
    };
    std::array::from_fn(|i| std::array::from_fn(|j| add(i, j)))
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
