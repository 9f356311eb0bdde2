//! Multigrid for a matrix whose rows are divided among ranks.
//!
//! Aggregates stay within a rank; smoothed prolongators and modes of slivers reach across borders. Levels are
//! distributed like the matrix until the next one is small. Every rank collects that level and continues
//! alone with [`Amg`].
//!
//! For the choice of aggregates, off-rank entries are added to the diagonal. Modes of slivers cross borders:
//! all ranks gather the rows of such clusters and find the same modes (`modes/`). Smoothers, the smoothing of
//! prolongators and the Galerkin product use the whole matrix. So prolongators cross borders, and restriction
//! adds to unknowns of other ranks. Prolongators that end at borders would cost more iterations.
//!
//! With several rows per node, or several vectors of the near-nullspace, an aggregate becomes a node of the next level with
//! a row for each vector. Nodes are owned, and are ghosts, as a whole.
//!
//! If one rank has to continue on the host, all ranks do. Collected levels have the same bits on every rank.

mod coarsen;
mod collected;
pub(crate) mod exchange;
pub(crate) mod level;
mod modes;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::{Comm, Halo, OwnedRows, RankKernels};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::precondition::polynomial::Iterate;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner, need};

use crate::builder::{FEW, near_nullspace_of};
use crate::kernels::AmgKernels;
use crate::setup::tentative::NearNullspace;
use crate::{AmgConfig, AmgError, Cycle, LevelShape, Smoother};
pub use coarsen::RankCoarse;
use coarsen::{Coarsened, coarsen};
use collected::Collected;
use level::RankLevel;
pub use level::RankMatrix;

/// Limits below which a level is collected: its number of rows, or its number of global entries as a share of
/// those of the first level.
const FEW_ROWS: usize = 10_000;
const SHARE: f64 = 0.15;

/// One V cycle of smoothed-aggregation multigrid over the ranks of a communicator.
///
/// Its iterations are those of [`Amg`](crate::Amg), except that aggregates do not reach across borders of
/// ranks.
///
/// # Cost
/// As [`Amg`](crate::Amg), and one ghost exchange per product on a distributed level, and one collection of
/// the first level that is not distributed.
/// # Source
/// Smoothed aggregation: `[vanek1996]`; on several processors: named as future work in `[fu2014]`, section 7.
pub struct DistributedAmg<H: Scalar, D: AmgKernels<H> + RankKernels<H>> {
    levels: Vec<RankLevel<H, D>>,
    collected: Collected<H, D>,
    /// The first matrix is the given one times this power of two.
    scale: f64,
    /// Of the levels, and of the one that is collected.
    vectors: Mutex<Vec<Iterate<H, D>>>,
    size: ResidualSize,
    shapes: Vec<LevelShape>,
}

impl<H: Scalar, D: AmgKernels<H> + RankKernels<H>> std::fmt::Debug for DistributedAmg<H, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DistributedAmg").field("shapes", &self.shapes).finish_non_exhaustive()
    }
}

impl<H: Scalar, D> DistributedAmg<H, D>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    /// Sets up the levels of a symmetric positive (semi)definite matrix: for one row per node and constants on the device if
    /// it supports this, else on the host. Collective.
    ///
    /// `near_nullspace` holds the rank's rows of vectors that the smoother hardly changes, `n_vectors` values per row;
    /// constants by default. Nodes of several rows belong to one rank, and are ghosts of another, with all of their rows.
    ///
    /// # Errors
    /// As [`Hierarchy::new`](crate::Hierarchy::new); [`AmgError::Setting`] for smoothers other than polynomials, cycles other
    /// than V, nodes that are divided among ranks and vectors that differ in number; [`LinalgError::Rank`].
    pub fn new(
        device: &D,
        a: &OwnedRows<f64, D>,
        halo: &Arc<Halo>,
        near_nullspace: Option<&[f64]>,
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        check(config)?;
        let b = near_nullspace_of_rank(halo, near_nullspace, config)?;
        let DistributedLevels { levels, mut shapes, matrix, b, scale } =
            DistributedLevels::new(device, a, halo, (b, near_nullspace.is_none()), config)?;
        let collected = Collected::new(device, &matrix, &b, levels.len(), config)?;
        shapes.extend_from_slice(collected.shapes());
        let sizes = levels.iter().map(|level| level.a.n_rows()).chain([matrix.n_owned()]);
        let vectors = sizes.map(|n| Iterate::zeros(device, n)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            levels,
            collected,
            scale,
            vectors: Mutex::new(vectors),
            size: ResidualSize::default(),
            shapes,
        })
    }

    /// Returns the global sizes of all levels, the finest first.
    pub fn shapes(&self) -> &[LevelShape] {
        &self.shapes
    }
}

/// The levels that are divided among ranks, and the matrix below them.
struct DistributedLevels<H: Scalar, D: RankKernels<H>> {
    levels: Vec<RankLevel<H, D>>,
    shapes: Vec<LevelShape>,
    matrix: RankMatrix<H>,
    /// The near-nullspace of that.
    b: NearNullspace,
    /// As [`DistributedAmg::scale`].
    scale: f64,
}

impl<H: Scalar, D> DistributedLevels<H, D>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    fn new(
        device: &D,
        a: &OwnedRows<f64, D>,
        halo: &Arc<Halo>,
        (b, is_constant): (NearNullspace, bool),
        config: &AmgConfig,
    ) -> Result<Self, AmgError> {
        let counts = totals(halo.comm(), [halo.n_owned(), a.own.n_nonzeros() + a.border.n_nonzeros()])?;
        let is_for_kernels = config.max_levels > 1 && config.block_size == 1 && is_constant;
        let first = if is_for_kernels { device.amg_first_of_ranks(a, halo, config)? } else { None };
        let (levels, shapes, mut is_on_device) = (Vec::new(), Vec::new(), first.is_some());
        let mut divided = match first {
            Some((RankCoarse { level, matrix, b, n_aggregates }, scale)) => {
                let mut divided = Self { levels, shapes, matrix, b, scale };
                divided.push(counts, level, n_aggregates)?;
                divided
            }
            None => {
                let (matrix, scale) = RankMatrix::of(a, halo)?;
                Self { levels, shapes, matrix, b, scale }
            }
        };
        while let Some(counts) = divided.is_divided(counts[1], config)? {
            let number = divided.levels.len();
            let mut made = None;
            if is_on_device && is_for_device(counts, halo.comm().n_ranks()) {
                made = device.amg_next_of_ranks(&divided.matrix, &divided.b.values, (number, config))?;
                is_on_device = made.is_some();
            }
            let made = match made {
                Some(made) => made,
                None => match coarsen(device, divided.matrix.take(), &divided.b, number, config)? {
                    Coarsened::Next(made) => *made,
                    Coarsened::Kept(matrix) => {
                        divided.matrix = matrix;
                        break;
                    }
                },
            };
            let RankCoarse { level, matrix, b, n_aggregates } = made;
            (divided.matrix, divided.b) = (matrix, b);
            divided.push(counts, level, n_aggregates)?;
        }
        Ok(divided)
    }

    /// Returns the global rows and entries of the next level if it is distributed as well. `entries_of_first`
    /// are those of the first level.
    fn is_divided(
        &self,
        entries_of_first: usize,
        config: &AmgConfig,
    ) -> Result<Option<[usize; 2]>, LinalgError> {
        let comm = self.matrix.halo.comm();
        let counts = totals(comm, [self.matrix.n_owned(), self.matrix.n_nonzeros()])?;
        // Coarse rows have several times the entries of fine ones.
        let entries_of_all = counts[1] as f64 * comm.n_ranks() as f64;
        let is_small = counts[0] <= FEW_ROWS || entries_of_all <= SHARE * entries_of_first as f64;
        let is_last = self.levels.len() + 1 >= config.max_levels;
        let is_wanted = !is_small || self.levels.is_empty();
        Ok((is_wanted && !is_last).then_some(counts))
    }

    fn push(
        &mut self,
        [n_rows, n_nonzeros]: [usize; 2],
        level: RankLevel<H, D>,
        n_aggregates: usize,
    ) -> Result<(), LinalgError> {
        let comm = self.matrix.halo.comm();
        let [n_aggregates, n_prolongator] =
            totals(comm, [n_aggregates, level.transfer.prolongation.n_nonzeros()])?;
        self.shapes.push(LevelShape { n_rows, n_nonzeros, n_aggregates, n_patches: 0, n_prolongator });
        self.levels.push(level);
        Ok(())
    }
}

/// Returns whether a level with these global numbers of rows and entries is large enough for kernels.
fn is_for_device(counts: [usize; 2], n_ranks: usize) -> bool {
    counts.iter().zip(FEW).any(|(&count, few)| count > few * n_ranks)
}

/// Refuses settings that distributed levels do not support.
fn check(config: &AmgConfig) -> Result<(), AmgError> {
    config.check()?;
    let wrong = |field, message: &str| Err(AmgError::Setting { field, message: message.into() });
    if !matches!(config.smoother, Smoother::Chebyshev { .. } | Smoother::Jacobi { .. }) {
        return wrong("smoother", "several ranks smooth by \"chebyshev\" or \"jacobi\"");
    }
    if config.cycle != Cycle::V {
        return wrong("cycle", "several ranks go through their levels in V cycles: use \"v\"");
    }
    Ok(())
}

/// Returns the near-nullspace of the rows of a rank: the given one, or constants. Collective.
fn near_nullspace_of_rank(
    halo: &Halo,
    given: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<NearNullspace, AmgError> {
    let (n, block) = (halo.n_owned(), config.block_size);
    let imports = halo.imports().iter().map(|(_, ghosts)| ghosts.len());
    let exports = halo.exports().iter().map(|(_, rows)| rows.len());
    let is_whole = imports.chain(exports).chain([n]).all(|n| n.is_multiple_of(block));
    let here = near_nullspace_of(n, given.filter(|_| n > 0), config);
    // A rank without rows has the vectors of the others.
    let n_vectors = here.as_ref().map_or(0, |b| if n > 0 { b.n_vectors } else { usize::MAX });
    let all = halo.comm().all_gather(&[n_vectors as u64, u64::from(is_whole)])?;
    let wrong = |field, message: &str| Err(AmgError::Setting { field, message: message.into() });
    if all.iter().any(|of_rank| of_rank[1] == 0) {
        return wrong("block_size", "a node has rows on several ranks: give each node to one of them");
    }
    let counts = || all.iter().map(|of_rank| of_rank[0]).filter(|&n| n != usize::MAX as u64);
    let most = counts().max().unwrap_or(1);
    match here {
        Ok(b) if counts().all(|n| n == most) => Ok(NearNullspace { n_vectors: most as usize, ..b }),
        Ok(_) => {
            wrong("near_nullspace", "ranks have different numbers of vectors, or another rank has wrong ones")
        }
        Err(error) => Err(error),
    }
}

/// Returns the global sums of counts.
pub(crate) fn totals<const N: usize>(comm: &Comm, counts: [usize; N]) -> Result<[usize; N], LinalgError> {
    let all = comm.all_gather(&counts.map(|n| n as u64))?;
    Ok(std::array::from_fn(|i| all.iter().map(|of_rank| of_rank[i] as usize).sum()))
}

/// Runs one cycle from zero over the distributed levels and the collected ones below.
fn cycle<H: Scalar, D>(
    (levels, collected): (&[RankLevel<H, D>], &Collected<H, D>),
    vectors: &mut [Iterate<H, D>],
) -> Result<(), LinalgError>
where
    D: AmgKernels<H> + Convert<H, H> + RankKernels<H>,
{
    let Some((finest, coarser)) = vectors.split_first_mut() else { return Ok(()) };
    let Some((level, rest)) = levels.split_first() else {
        return collected.solve(&mut finest.x, &finest.b);
    };
    let RankLevel { a, steps, inverse_diagonal, transfer } = level;
    finest.relax_from_zero(a, steps, inverse_diagonal)?;
    finest.residual(a)?;
    transfer.restrict(&mut coarser[0].b, &finest.next)?;
    cycle((rest, collected), coarser)?;
    transfer.correct(&mut finest.x, &mut finest.product, &coarser[0].x)?;
    finest.relax(a, steps, inverse_diagonal)
}

impl<T: Scalar, H: Scalar, D> Preconditioner<T, D> for DistributedAmg<H, D>
where
    D: AmgKernels<H> + Convert<T, H> + Convert<H, T> + Convert<H, H> + RankKernels<H>,
{
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let mut vectors = self.vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let n = vectors[0].b.len();
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let (device, size) = (r.device().clone(), self.size.get());
        Convert::<T, H>::convert(&device, &mut vectors[0].b, 1.0 / size, r)?;
        cycle((&self.levels, &self.collected), &mut vectors)?;
        Convert::<H, T>::convert(&device, z, self.scale * size, &vectors[0].x)
    }

    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}
