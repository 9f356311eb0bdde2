//! Systems along an axis that is split among ranks.
//!
//! The rows of ranks are joined only through a `Communicator`.

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::comm::Communicator;

use super::kernels::at_least;
use super::{Algorithm, Bands, BatchLayout, Ends, Lines, Tridiagonal, TridiagonalConfig, TridiagonalKernels};

/// Lines of ranks whose systems could not be solved.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a line that could not be solved is filled with NaN"]
pub struct SplitOutcome {
    /// The lines, the same on all ranks: their matrix or that of a rank's rows is singular to rounding, or an entry is not finite.
    pub failed: Vec<usize>,
}

/// Solves batches of tridiagonal systems of which each rank has consecutive rows, in the order of ranks, on processors.
///
/// $$ a_i u_{i-1} + b_i u_i + c_i u_{i+1} = d_i $$
///
/// With $A$ the rows of a rank, without what couples them to other ranks, $u = g + v u_l + w u_r$ for the last value $u_l$ of the
/// rank before and the first value $u_r$ of the next one, where $A g = d$, $A v = -a_0 e_0$ and $A w = -c_{n-1} e_{n-1}$. The
/// first and last rows of all ranks are a system for the values at the cuts, which every rank solves; with these on the right
/// side it solves its rows once more. $v$ and $w$ are computed once.
///
/// ```
/// use femtile_comm::{Comm, threads};
/// use femtile_device::{Buffer, Cpu};
/// use femtile_tridiagonal::split::SplitTridiagonal;
/// use femtile_tridiagonal::{BatchLayout, TridiagonalConfig};
///
/// // −u″ = 1 on four rows, two of each rank, zero beyond the ends, spacing 1.
/// let work = |comm: Comm| {
///     let cpu = Cpu::new(1)?;
///     let layout = BatchLayout::contiguous(&[2])?;
///     let band = |value| Buffer::from_vec(&cpu, vec![value; 2]);
///     let bands = [band(-1.0)?, band(2.0)?, band(-1.0)?];
///     let mut solver = SplitTridiagonal::new((&cpu, comm), &layout, 0, TridiagonalConfig::default(), bands)?;
///     let mut u = band(1.0)?;
///     assert!(solver.solve_in_place(&mut u)?.failed.is_empty());
///     Ok::<_, femtile_linalg::LinalgError>(u.to_host()?)
/// };
/// let u: Vec<f64> = threads::run(2, work, |comm| work(comm).map(drop))?;
/// assert!((u[0] - 2.0).abs() < 1e-14 && (u[1] - 3.0).abs() < 1e-14);
/// # Ok::<(), femtile_linalg::LinalgError>(())
/// ```
///
/// # Shapes
/// All ranks have as many lines; the rows of a rank are its own, one or more.
/// # Cost
/// Two solves with the rows of a rank, and one sum over ranks of two numbers a line and rank; two solves more at construction.
/// # Source
/// The SPIKE algorithm `[polizzi2006]`, section 2. Differs: solves again in place of keeping $v$ and $w$.
#[derive(Debug)]
pub struct SplitTridiagonal<T: Scalar, C: Communicator>
where
    Cpu: TridiagonalKernels<T>,
{
    comm: C,
    solver: Tridiagonal<T, Cpu>,
    required_len: usize,
    lines: Lines,
    bands: [Buffer<T, Cpu>; 3],
    work: Buffer<T, Cpu>,
    /// First and last rows of $v$ and $w$: `[n_ranks][n_lines]`.
    spikes: Vec<Spikes>,
}

/// First and last rows of $v$ and $w$ of a rank in one line.
#[derive(Debug, Clone, Copy)]
struct Spikes {
    /// $v_0$, $v_{n-1}$.
    left: [f64; 2],
    /// $w_0$, $w_{n-1}$.
    right: [f64; 2],
}

impl<T: Scalar, C: Communicator> SplitTridiagonal<T, C>
where
    Cpu: TridiagonalKernels<T>,
{
    /// Takes the rows of a rank of all lines along `axis`: the lower, diagonal and upper bands, in the layout of right sides. All
    /// ranks call it.
    ///
    /// The first of the lower entries couples to the rank before, the last of the upper ones to the next rank; the first and last
    /// ranks do not read theirs.
    ///
    /// # Errors
    /// [`LinalgError::Length`] for arrays that are too short; [`LinalgError::Setting`] where a rank has no rows or ranks have
    /// different numbers of lines, for periodic ends and algorithms that processors lack; those of the sums.
    pub fn new(
        (cpu, comm): (&Cpu, C),
        layout: &BatchLayout,
        axis: usize,
        config: TridiagonalConfig,
        bands: [Buffer<T, Cpu>; 3],
    ) -> Result<Self, LinalgError> {
        let invalid = |field, message: &str| Err(LinalgError::Setting { field, message: message.into() });
        let lines = layout.lines(axis)?;
        let required_len = layout.required_len();
        for (field, band) in ["lower", "diagonal", "upper"].into_iter().zip(&bands) {
            at_least(field, required_len, band.len())?;
        }
        let solver = Tridiagonal::new(cpu, layout, axis, config)?;
        let mut own = vec![lines.n_lines() as f64, lines.length as f64];
        own.push(f64::from(u8::from(config.ends == Ends::Periodic)));
        let all = gathered(cpu, &comm, &own)?;
        if all.chunks_exact(3).any(|of_rank| of_rank[0] != own[0] || of_rank[1] == 0.0) {
            return invalid("layout", "every rank has one row or more, of as many lines as the others");
        }
        if all.chunks_exact(3).any(|of_rank| of_rank[2] != 0.0) {
            return invalid("ends", "lines that are split among ranks have open ends");
        }
        let work = Buffer::zeros(cpu, required_len)?;
        let mut made = Self { comm, solver, required_len, lines, bands, work, spikes: Vec::new() };
        let sides = [made.spike(0, 0)?, made.spike(2, made.lines.length - 1)?];
        let own: Vec<f64> =
            sides[0].iter().zip(&sides[1]).flat_map(|(v, w)| [v[0], v[1], w[0], w[1]]).collect();
        let spikes = gathered(cpu, &made.comm, &own)?;
        let of_line = |s: &[f64]| Spikes { left: [s[0], s[1]], right: [s[2], s[3]] };
        made.spikes = spikes.chunks_exact(4).map(of_line).collect();
        Ok(made)
    }

    /// The algorithm that solves the rows of a rank.
    pub fn algorithm(&self) -> Algorithm {
        self.solver.algorithm()
    }

    /// Solves, `u` holding the right sides of the rank before. All ranks call it.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where `u` is too short; those of the sums.
    pub fn solve_in_place(&mut self, u: &mut Buffer<T, Cpu>) -> Result<SplitOutcome, LinalgError> {
        at_least("u", self.required_len, u.len())?;
        let [lower, diagonal, upper] = &self.bands;
        let bands = Bands::Arrays { lower, diagonal, upper };
        // Lines that fail are NaN, which the values at the cuts show.
        let _ = self.solver.solve(&mut self.work, bands, u)?;
        let own: Vec<f64> = self.ends(&self.work).into_iter().flatten().collect();
        let ends = gathered(self.work.device(), &self.comm, &own)?;
        let (rank, n_lines, n_ranks) = (self.comm.rank(), self.lines.n_lines(), self.comm.n_ranks());
        let (mut failed, mut rows, last) = (Vec::new(), Vec::new(), self.lines.length - 1);
        for line in 0..n_lines {
            let of_rank = |rank: usize| {
                let at = rank * n_lines + line;
                ([ends[2 * at], ends[2 * at + 1]], self.spikes[at])
            };
            let (near, is_finite) = neighbours((0..n_ranks).map(of_rank), rank, &mut rows);
            if !is_finite {
                failed.push(line);
            }
            let start = self.lines.start(line);
            for (row, band, value) in [(0, lower, near[0]), (last, upper, near[1])] {
                let at = start + row * self.lines.stride;
                if let Some(value) = value {
                    u.as_mut_slice()[at] -= band.as_slice()[at] * T::from_f64(value);
                }
                if !is_finite {
                    u.as_mut_slice()[at] = T::from_f64(f64::NAN);
                }
            }
        }
        let _ = self.solver.solve_in_place(u, bands)?;
        Ok(SplitOutcome { failed })
    }

    /// The first and last values of each line.
    fn ends(&self, values: &Buffer<T, Cpu>) -> Vec<[f64; 2]> {
        let (values, last) = (values.as_slice(), (self.lines.length - 1) * self.lines.stride);
        let of_line = |line| {
            let start = self.lines.start(line);
            [values[start].to_f64(), values[start + last].to_f64()]
        };
        (0..self.lines.n_lines()).map(of_line).collect()
    }

    /// The first and last values of $v$, from the lower band and the first `row`, or of $w$, from the upper one and the last row.
    fn spike(&mut self, band: usize, row: usize) -> Result<Vec<[f64; 2]>, LinalgError> {
        let (lines, band) = (&self.lines, &self.bands[band]);
        let mut right = Buffer::zeros(self.work.device(), self.required_len)?;
        for line in 0..lines.n_lines() {
            let at = lines.start(line) + row * lines.stride;
            right.as_mut_slice()[at] = T::ZERO - band.as_slice()[at];
        }
        let [lower, diagonal, upper] = &self.bands;
        let _ = self.solver.solve_in_place(&mut right, Bands::Arrays { lower, diagonal, upper })?;
        Ok(self.ends(&right))
    }
}

/// The last value of the rank before and the first one of the next, from the first and last values of all ranks in one line; and
/// whether all values at the cuts are finite. `rows` is workspace.
fn neighbours(
    ranks: impl Iterator<Item = ([f64; 2], Spikes)>,
    rank: usize,
    rows: &mut Vec<[f64; 4]>,
) -> ([Option<f64>; 2], bool) {
    // last_r = alpha_r + beta_r first_{r+1}.
    let (mut alpha, mut beta) = (0.0, 0.0);
    rows.clear();
    for (r, ([first, last], spikes)) in ranks.enumerate() {
        let left = if r == 0 { [0.0; 2] } else { spikes.left };
        let pivot = 1.0 - left[0] * beta;
        let (own, next) = ((first + left[0] * alpha) / pivot, spikes.right[0] / pivot);
        let before = (alpha, beta);
        alpha = last + left[1] * (before.0 + before.1 * own);
        beta = spikes.right[1] + left[1] * before.1 * next;
        rows.push([own, next, alpha, beta]);
    }
    let (mut found, mut is_finite, mut next) = ([None; 2], true, 0.0);
    let n = rows.len();
    for (r, &[own, of_next, alpha, beta]) in rows.iter().enumerate().rev() {
        // Beyond the last rank there is nothing.
        let (own, last) = if r + 1 == n { (own, alpha) } else { (own + of_next * next, alpha + beta * next) };
        is_finite &= own.is_finite() && last.is_finite();
        if r == rank + 1 {
            found[1] = Some(own);
        }
        if r + 1 == rank {
            found[0] = Some(last);
        }
        next = own;
    }
    (found, is_finite)
}

/// The numbers of all ranks, as many of each.
fn gathered<C: Communicator>(cpu: &Cpu, comm: &C, own: &[f64]) -> Result<Vec<f64>, LinalgError> {
    let mut all = vec![0.0; own.len() * comm.n_ranks()];
    let begin = own.len() * comm.rank();
    all[begin..begin + own.len()].copy_from_slice(own);
    let mut all = Buffer::from_vec(cpu, all)?;
    comm.sum(&mut all)?;
    Ok(all.to_host()?)
}
