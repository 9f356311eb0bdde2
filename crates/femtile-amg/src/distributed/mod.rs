//! Multigrid for a matrix whose rows are divided among ranks.
//!
//! Aggregates stay within a rank; smoothed prolongators and modes of slivers reach across borders. Levels are
//! distributed like the matrix until the next one is small. Every rank collects that level, and has it and those below
//! whole.
//!
//! For the choice of aggregates, off-rank entries are added to the diagonal. Modes of slivers cross borders:
//! all ranks gather the rows of such clusters and find the same modes (`modes.rs`). Smoothers, the smoothing of
//! prolongators and the Galerkin product use the whole matrix. So prolongators cross borders, and restriction
//! adds to unknowns of other ranks. Prolongators that end at borders would cost more iterations.
//!
//! With several rows per node, or several vectors of the near-nullspace, an aggregate becomes a node of the next level with
//! a row for each vector. Nodes are owned, and are ghosts, as a whole.
//!
//! If one rank has to continue on the host, all ranks do. Collected levels have the same bits on every rank.

pub(crate) mod border;
pub(crate) mod exchange;
mod gather;
pub(crate) mod modes;
pub(crate) mod product;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use femtile_comm::{Halo, OwnedRows};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use crate::builder::{Builder, FEW, near_nullspace_of, thresholds_of};
use crate::coarsen::Step;
use crate::kernels::{AmgKernels, Nodes};
use crate::level::LevelMatrix;
use crate::setup::rank_matrix::{RankMatrix, maxima, on_all, totals};
use crate::setup::rows::to_unit;
use crate::setup::tentative::NearNullspace;
use crate::{AmgConfig, AmgError, Smoother};

/// Limits below which a level is collected: its number of rows, or its number of global entries as a share of
/// those of the first level.
const FEW_ROWS: usize = 10_000;
const SHARE: f64 = 0.15;

impl<H: Scalar, D: AmgKernels<H>> Builder<'_, H, D> {
    /// Adds the levels that are divided among ranks, and returns the matrix below them with its near-nullspace. Collective.
    pub fn divided(
        &mut self,
        (a, halo): (&OwnedRows<f64, D>, &Arc<Halo>),
        mut b: NearNullspace,
        is_constant: bool,
    ) -> Result<(RankMatrix<H>, NearNullspace), AmgError> {
        let (config, comm) = (self.config, halo.comm());
        let counts = totals(comm, [halo.n_owned(), a.own.n_nonzeros() + a.border.n_nonzeros()])?;
        let is_for_device = config.max_levels > 1 && config.block_size == 1 && is_constant;
        let rows = if is_for_device { self.rows_on_device(a, halo)? } else { None };
        let made = rows.map(|rows| self.coarsen_on_device(rows, halo, None)).transpose()?.flatten();
        let (mut matrix, mut nodes) = match made {
            Some((next, of_next, nodes)) => {
                b = of_next;
                (next, Some(nodes))
            }
            None => {
                let (matrix, scale) = RankMatrix::of(a, halo)?;
                self.scale = scale;
                (matrix, None)
            }
        };
        while let Some(counts) = self.is_divided(&matrix, counts[1])? {
            let is_large = counts.iter().zip(FEW).any(|(&count, few)| count > few * comm.n_ranks());
            if let Some(of_level) = nodes.take().filter(|_| is_large) {
                let (rows, halo) = (matrix.split(self.device)?, Arc::clone(&matrix.halo));
                if let Some((next, of_next, more)) = self.coarsen_on_device(rows, &halo, Some(of_level))? {
                    (matrix, b, nodes) = (next, of_next, Some(more));
                    continue;
                }
            }
            let fine = self.checked(matrix, b)?;
            (matrix, b) = match self.coarsen(fine)? {
                Step::Next(matrix, b) => (matrix, b),
                Step::Kept(fine) => return Ok(fine.into_parts()),
            };
        }
        Ok((matrix, b))
    }

    /// Returns the rows of the first level on the device, in the precision of levels; none, on all ranks alike, if hosts set it
    /// up. Collective.
    fn rows_on_device(
        &mut self,
        a: &OwnedRows<f64, D>,
        halo: &Halo,
    ) -> Result<Option<OwnedRows<H, D>>, LinalgError> {
        if !self.device.amg_is_set_up_here() {
            return Ok(None);
        }
        let ([few_rows, few_entries], n) = (FEW, a.own.n_nonzeros() + a.border.n_nonzeros());
        let is_large = a.own.n_rows() > few_rows || n > few_entries;
        let parts = [&a.own, &a.border];
        let [own, border] = parts.map(|part| self.device.amg_largest(part.values()));
        let (own, border) = (own?, border?);
        if !on_all(halo.comm(), is_large && own.is_finite() && border.is_finite())? {
            return Ok(None);
        }
        let [largest] = maxima(halo.comm(), [own.max(border)])?;
        self.scale = to_unit(largest);
        let in_precision = |part: &Csr<f64, D>| {
            let mut values = Buffer::zeros(self.device, part.n_nonzeros())?;
            self.device.convert(&mut values, self.scale, part.values())?;
            part.with_values::<H>(values)
        };
        Ok(Some(OwnedRows { own: in_precision(&a.own)?, border: in_precision(&a.border)? }))
    }

    /// Adds a level that the device sets up; returns the matrix of the next one, its near-nullspace and its nodes. None, on all
    /// ranks alike, if hosts set it up. Collective.
    #[allow(clippy::type_complexity)]
    fn coarsen_on_device(
        &mut self,
        rows: OwnedRows<H, D>,
        halo: &Arc<Halo>,
        nodes: Option<Nodes<D>>,
    ) -> Result<Option<(RankMatrix<H>, NearNullspace, Nodes<D>)>, AmgError> {
        let thresholds = thresholds_of(self.config.strength, self.number());
        let (device, of_rank) = (self.device, (&rows, halo));
        let Some(made) = device.amg_coarsen_on_ranks(of_rank, nodes.as_ref(), thresholds, self.config)?
        else {
            return Ok(None);
        };
        let (next, nodes) = self.add(LevelMatrix::of_rank(rows, halo)?, made)?;
        let b = NearNullspace::of_weights(nodes.weights.to_host().map_err(LinalgError::from)?);
        Ok(Some((next, b, nodes)))
    }

    /// Returns the global rows and entries of the next level if it is divided as well. `entries_of_first`
    /// are those of the first level. Collective.
    fn is_divided(
        &self,
        matrix: &RankMatrix<H>,
        entries_of_first: usize,
    ) -> Result<Option<[usize; 2]>, LinalgError> {
        let comm = matrix.halo.comm();
        let counts = totals(comm, [matrix.n_owned(), matrix.n_nonzeros()])?;
        // Coarse rows have several times the entries of fine ones.
        let entries_of_all = counts[1] as f64 * comm.n_ranks() as f64;
        let is_small = counts[0] <= FEW_ROWS || entries_of_all <= SHARE * entries_of_first as f64;
        let is_last = self.number() + 1 >= self.config.max_levels;
        let is_wanted = !is_small || self.number() == 0;
        Ok((is_wanted && !is_last).then_some(counts))
    }
}

/// Refuses settings that levels on several ranks do not support.
pub(crate) fn check_for_ranks(config: &AmgConfig) -> Result<(), AmgError> {
    config.check()?;
    if config.coarse_space.is_some() {
        let message = "several ranks have no level that is known: leave it out".into();
        return Err(AmgError::Setting { field: "coarse_space", message });
    }
    if matches!(config.smoother, Smoother::Chebyshev { .. } | Smoother::Jacobi { .. }) {
        return Ok(());
    }
    let message = "several ranks smooth by \"chebyshev\" or \"jacobi\"".into();
    Err(AmgError::Setting { field: "smoother", message })
}

/// Returns the near-nullspace of the rows of a rank: the given one, or constants. Collective.
pub(crate) fn near_nullspace_of_rank(
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
