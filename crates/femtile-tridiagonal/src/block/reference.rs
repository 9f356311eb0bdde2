//! Plain loops over one system at a time: the oracle.

use femtile_device::{Buffer, HostDevice, Reference, Scalar};
use femtile_linalg::LinalgError;

use super::{BlockBands, BlockProblem, BlockShape, BlockTridiagonalKernels};
use crate::{Algorithm, Stability, Work};

impl<T: Scalar> BlockTridiagonalKernels<T> for Reference {
    fn block_choice(&self, problem: &BlockProblem) -> Result<Algorithm, LinalgError> {
        host_choice(problem, "the reference device")
    }

    fn block_solve(
        &self,
        problem: &BlockProblem,
        u: &mut Buffer<T, Self>,
        bands: BlockBands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        if problem.check(u, bands, d, work)? {
            solve_each(problem, u, bands, d, work);
        }
        Ok(())
    }
}

/// The algorithms that plain loops implement.
pub(super) fn host_choice(problem: &BlockProblem, device: &str) -> Result<Algorithm, LinalgError> {
    match problem.algorithm {
        Algorithm::Auto | Algorithm::Thomas => Ok(Algorithm::Thomas),
        Algorithm::Pcr => Ok(Algorithm::Pcr),
        other => Err(LinalgError::Setting {
            field: "algorithm",
            message: format!("{device} has `thomas` and `pcr` for blocks, not `{other}`"),
        }),
    }
}

/// System by system.
pub(super) fn solve_each<T: Scalar, D: HostDevice>(
    problem: &BlockProblem,
    u: &mut Buffer<T, D>,
    bands: BlockBands<'_, T, D>,
    d: Option<&Buffer<T, D>>,
    work: &mut Work<T, D>,
) {
    let (shape, bands) = (problem.shape, slices(bands));
    for system in 0..shape.n_systems {
        let right: &[T] = d.unwrap_or(u).as_slice();
        let one = BlockSystem::of(&shape, bands, &|place| &right[place..place + shape.block], system);
        let solved = match problem.algorithm {
            Algorithm::Pcr => one.pcr(problem.stability),
            _ => one.thomas(problem.stability),
        };
        let n_values = shape.n_rows * shape.block;
        let values = solved.unwrap_or_else(|row| {
            note(work.status.as_mut_slice(), &shape, system, row);
            vec![T::from_f64(f64::NAN); n_values]
        });
        for (row, values) in values.chunks_exact(shape.block).enumerate() {
            let place = shape.place(row, system) * shape.block;
            u.as_mut_slice()[place..place + shape.block].copy_from_slice(values);
        }
    }
}

/// The three bands as slices.
pub(super) fn slices<'a, T: Scalar, D: HostDevice>(bands: BlockBands<'a, T, D>) -> [&'a [T]; 3] {
    [bands.lower, bands.diagonal, bands.upper].map(Buffer::as_slice)
}

/// Counts a system that failed.
pub(super) fn note(status: &mut [u64], shape: &BlockShape, system: usize, row: usize) {
    status[0] += 1;
    status[1] = status[1].min((system * shape.n_rows + row) as u64);
}

/// One system: block row after block row, entries row-major.
#[derive(Debug, Clone)]
pub(super) struct BlockSystem<T> {
    m: usize,
    n: usize,
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<T>,
    d: Vec<T>,
}

impl<T: Scalar> BlockSystem<T> {
    /// A copy of system number `system`; `right` gives the M right sides at a place of their array.
    ///
    /// Blocks that couple to rows beyond the ends count as zero, whatever their values.
    pub(super) fn of<'a>(
        shape: &BlockShape,
        bands: [&[T]; 3],
        right: &dyn Fn(usize) -> &'a [T],
        system: usize,
    ) -> Self {
        let (m, n) = (shape.block, shape.n_rows);
        let gather = |band: &[T], unused: usize| {
            let mut blocks = Vec::with_capacity(n * m * m);
            for row in 0..n {
                let place = shape.place(row, system) * m * m;
                blocks.extend_from_slice(&band[place..place + m * m]);
            }
            blocks[unused * m * m..].iter_mut().take(m * m).for_each(|entry| *entry = T::ZERO);
            blocks
        };
        let d = (0..n).flat_map(|row| right(shape.place(row, system) * m).iter().copied()).collect();
        let [a, b, c] = bands;
        Self { m, n, a: gather(a, 0), b: gather(b, n), c: gather(c, n - 1), d }
    }

    /// `[laszlo2016]`, Alg. 12; `Err` is the block row whose pivot fails.
    pub(super) fn thomas(&self, stability: Stability) -> Result<Vec<T>, usize> {
        let (m, n) = (self.m, self.n);
        let (mut c_star, mut u) = (self.c.clone(), self.d.clone());
        for row in 0..n {
            let mut pivot_block = self.block(&self.b, row);
            let (before, from) = c_star.split_at_mut(row * m * m);
            let (u_before, u_from) = u.split_at_mut(row * m);
            let (c, d) = (&mut from[..m * m], &mut u_from[..m]);
            if row > 0 {
                let a = self.block(&self.a, row);
                subtract_product(&mut pivot_block, &a, &before[(row - 1) * m * m..], m);
                subtract_product(d, &a, &u_before[(row - 1) * m..], 1);
            }
            gauss_jordan(&mut pivot_block, &self.diagonal(row), stability, &mut [(c, m), (d, 1)])
                .map_err(|()| row)?;
        }
        for row in (0..n.saturating_sub(1)).rev() {
            let (now, next) = u.split_at_mut((row + 1) * m);
            subtract_product(&mut now[row * m..], &c_star[row * m * m..(row + 1) * m * m], &next[..m], 1);
        }
        Ok(u)
    }

    /// Block cyclic reduction without a backward pass: `[laszlo2016]`, Alg. 2 with blocks for numbers.
    ///
    /// Rows are kept with a unit diagonal; each step couples every row to those twice as far.
    pub(super) fn pcr(&self, stability: Stability) -> Result<Vec<T>, usize> {
        let (m, n) = (self.m, self.n);
        let mut now = self.clone();
        for row in 0..n {
            let mut pivot_block = self.block(&self.b, row);
            now.normalise(row, &mut pivot_block, &self.diagonal(row), stability)?;
        }
        let mut reach = 1;
        while reach < n {
            let mut next = Self { a: vec![T::ZERO; n * m * m], c: vec![T::ZERO; n * m * m], ..now.clone() };
            for row in 0..n {
                let mut pivot_block = identity(m);
                let neighbours = [
                    (&now.a, row.checked_sub(reach)),
                    (&now.c, Some(row + reach).filter(|&other| other < n)),
                ];
                for (coupling, other) in neighbours {
                    let Some(other) = other else { continue };
                    let factor = now.block(coupling, row);
                    let (near, far) = if other < row { (&now.c, &now.a) } else { (&now.a, &now.c) };
                    subtract_product(&mut pivot_block, &factor, &near[other * m * m..], m);
                    subtract_product(&mut next.d[row * m..], &factor, &now.d[other * m..], 1);
                    let coupled = if other < row { &mut next.a } else { &mut next.c };
                    subtract_product(&mut coupled[row * m * m..], &factor, &far[other * m * m..], m);
                }
                next.normalise(row, &mut pivot_block, &vec![T::ONE; m], stability)?;
            }
            now = next;
            reach *= 2;
        }
        Ok(now.d)
    }

    /// Divides a row by its pivot block from the left.
    fn normalise(
        &mut self,
        row: usize,
        pivot_block: &mut [T],
        diagonal: &[T],
        stability: Stability,
    ) -> Result<(), usize> {
        let (m, blocks) = (self.m, row * self.m * self.m..(row + 1) * self.m * self.m);
        let (a, c) = (&mut self.a[blocks.clone()], &mut self.c[blocks]);
        let d = &mut self.d[row * m..(row + 1) * m];
        gauss_jordan(pivot_block, diagonal, stability, &mut [(a, m), (c, m), (d, 1)]).map_err(|()| row)
    }

    fn block(&self, band: &[T], row: usize) -> Vec<T> {
        band[row * self.m * self.m..(row + 1) * self.m * self.m].to_vec()
    }

    /// The diagonal of a diagonal block, which pivots are compared with.
    fn diagonal(&self, row: usize) -> Vec<T> {
        (0..self.m).map(|k| self.b[row * self.m * self.m + k * (self.m + 1)]).collect()
    }
}

fn identity<T: Scalar>(m: usize) -> Vec<T> {
    (0..m * m).map(|place| if place % (m + 1) == 0 { T::ONE } else { T::ZERO }).collect()
}

/// The first M rows of `y` minus A times the first M rows of `x`; rows have `width` entries.
fn subtract_product<T: Scalar>(y: &mut [T], a: &[T], x: &[T], width: usize) {
    let m = a.len().isqrt();
    for i in 0..m {
        for k in 0..m {
            for j in 0..width {
                y[i * width + j] -= a[i * m + k] * x[k * width + j];
            }
        }
    }
}

/// Solves W X = R for several right sides (entries, width) in place, which then hold X.
///
/// Fails where a pivot is not finite, or not larger than the rounding of the entry of `diagonal` that it came from
/// (with pivoting: is zero), or where the last right side's solution is not finite.
fn gauss_jordan<T: Scalar>(
    w: &mut [T],
    diagonal: &[T],
    stability: Stability,
    right: &mut [(&mut [T], usize)],
) -> Result<(), ()> {
    let m = diagonal.len();
    for k in 0..m {
        let mut least = T::EPSILON * diagonal[k].abs();
        if stability == Stability::PartialPivoting {
            least = T::ZERO;
            let larger = |best: usize, row: usize| w[row * m + k].abs() > w[best * m + k].abs();
            let chosen = (k + 1..m).fold(k, |best, row| if larger(best, row) { row } else { best });
            (0..m).for_each(|j| w.swap(k * m + j, chosen * m + j));
            for (x, width) in right.iter_mut() {
                (0..*width).for_each(|j| x.swap(k * *width + j, chosen * *width + j));
            }
        }
        let pivot = w[k * m + k];
        if !(pivot.abs() > least && pivot.is_finite()) {
            return Err(());
        }
        divide_row(w, k, m, pivot);
        right.iter_mut().for_each(|(x, width)| divide_row(x, k, *width, pivot));
        for i in (0..m).filter(|&i| i != k) {
            let factor = w[i * m + k];
            subtract_row(w, i, k, m, factor);
            right.iter_mut().for_each(|(x, width)| subtract_row(x, i, k, *width, factor));
        }
    }
    let is_finite = right.last().is_none_or(|(x, _)| x[..m].iter().all(|x| x.is_finite()));
    if is_finite { Ok(()) } else { Err(()) }
}

fn divide_row<T: Scalar>(x: &mut [T], row: usize, width: usize, pivot: T) {
    x[row * width..(row + 1) * width].iter_mut().for_each(|x| *x /= pivot);
}

fn subtract_row<T: Scalar>(x: &mut [T], row: usize, other: usize, width: usize, factor: T) {
    for j in 0..width {
        x[row * width + j] -= factor * x[other * width + j];
    }
}
