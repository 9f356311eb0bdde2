//! Geometric multigrid on a box that is divided among ranks.
//!
//! The box is divided by layers of cells across its last axis, so the part of a vector is contiguous. The
//! grid of a rank (`BoxGrid::layers`) is a box with two or three layers of other ranks below and above. The
//! kernels of one rank work on it unchanged. On the sides that cut the box, vectors have true values; kernels
//! treat these as Dirichlet values.
//!
//! A patch or a row reads at most one layer further per colour. The planes that a rank owns therefore have
//! the bits of a single rank, except for the order of sums. Exchanges after each colour would be eight per
//! step; additional layers cost less up to some tens of ranks. Properties of the whole grid (thin axes,
//! widths for estimates, colours) come from the `whole` of a part. The mesh is divided by the same layers
//! (`Boxes::of_ranks` of `femtile-solve`), so nearly all values stay on their rank between Krylov method and
//! cycle.

mod exchange;
mod level;
mod slabs;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::{Comm, Halo, LocalUnknowns, RankKernels};
use femtile_device::{Buffer, Scalar, parallel};
use femtile_linalg::precondition::ResidualSize;
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, Preconditioner, need};

use crate::grid::BoxGrid;
use crate::kernels::BoxKernels;
use crate::level::{Vectors, Workspace};
use crate::{Multigrid, MultigridConfig, MultigridError, PostOrder, Smoother, check_coarsening};
use exchange::Exchange;
use level::{Division, Local, LocalLevel, PartLevel, PartVectors};
pub use slabs::Slabs;

/// Unknowns up to which every rank has a whole level: as few as for algebraic multigrid.
const FEW: usize = 10_000;
/// The share of the work of a rank on the finest level that it may do on collected ones, more than its part of them.
const SHARE: f64 = 0.15;
/// If a rank with its ghost layers has at most this share of the layers of a level, the level is distributed.
const PART: f64 = 0.8;
/// Nodes of a parallel task.
const NODES: usize = 1 << 14;

/// One distributed V-cycle with a zero initial guess, as [`GeometricMultigrid`](crate::GeometricMultigrid) on
/// one rank.
///
/// A rank owns layers of cells across the last axis ([`Slabs`]) and has ghost layers of its neighbours. The
/// ghost layers suffice for one step of the smoother and one restriction without communication. Ghost values
/// are exchanged once per step. Polynomials need fewer layers, and exchanges between their products. So the
/// cycle equals that of one rank except for rounding, and for the eigenvalue that smoothers of mapped cells
/// estimate: ranks take the largest one of their layers.
///
/// Below some size a level is collected, and every rank runs the rest of the cycle. The number of kinds of
/// coefficient jumps with exact local solves is limited. On a grid with more kinds, no patch is solved
/// exactly, and iterations may differ from those of one rank.
///
/// On GPUs, other ranks read its buffers until their values have arrived. Before one rank drops it, all ranks
/// must have met in a collective call, as at [`Comm::with_gpu`].
///
/// # Cost
/// That of one rank on its layers and two or three ghost layers on each side inside the box; for polynomials
/// two or three ghost layers above. Each distributed level needs four exchanges of these, and six more
/// between the products of polynomials.
/// # Source
/// The cycle: `[cui2024]`, Alg. 2.1.
pub struct DistributedMultigrid<T: Scalar, D: BoxKernels<T> + RankKernels<T>> {
    device: D,
    /// Divided levels, the finest first.
    levels: Vec<PartLevel<T, D>>,
    collected: Multigrid<T, D>,
    /// Brings the right side of the collected level to all ranks.
    collect: Exchange<T, D>,
    post: PostOrder,
    unknowns: LocalUnknowns,
    link: D::Link,
    numbers: D::Positions,
    work: Mutex<Work<T, D>>,
    size: ResidualSize,
    grids: Vec<BoxGrid>,
}

struct Work<T: Scalar, D: BoxKernels<T>> {
    levels: Vec<PartVectors<T, D>>,
    collected: Workspace<T, D>,
    /// Owned values, and ghost values, in the order of the solver.
    owned: Buffer<T, D>,
    ghosts: Buffer<T, D>,
}

impl<T, D> DistributedMultigrid<T, D>
where
    T: Scalar,
    D: BoxKernels<T> + RankKernels<T>,
{
    /// Sets up levels below a finest grid as [`Multigrid::from_finest`]. `nodes` has the node of each unknown
    /// that the rank owns: those of its planes of `Slabs::new` for the layers across the last axis.
    /// Collective.
    ///
    /// # Errors
    /// As [`Multigrid::from_finest`]; [`MultigridError::Entries`] if a rank owns other nodes.
    pub fn new(
        device: &D,
        comm: &Comm,
        of: (&BoxGrid, &[u32]),
        config: MultigridConfig,
    ) -> Result<Self, MultigridError> {
        Self::dividing(device, comm, of, config, FEW)
    }

    /// As [`DistributedMultigrid::new`], collecting levels of up to `few` unknowns. Collective.
    ///
    /// # Errors
    /// As [`DistributedMultigrid::new`].
    pub fn dividing(
        device: &D,
        comm: &Comm,
        (finest, nodes): (&BoxGrid, &[u32]),
        config: MultigridConfig,
        few: usize,
    ) -> Result<Self, MultigridError> {
        check_coarsening(finest)?;
        let grids: Vec<BoxGrid> = std::iter::successors(Some(finest.clone()), BoxGrid::coarsened).collect();
        let divisions = divided::<T, D>(device, comm.n_ranks(), (&grids, few), config.smoother);
        let last = &divisions[divisions.len() - 1];
        // Errors of one rank end the others before messages of the set-up.
        let local = || -> Result<_, MultigridError> {
            let of_pair =
                |pair: &[Division]| LocalLevel::new(device, comm, [&pair[1], &pair[0]], config.smoother);
            let levels = divisions.windows(2).map(of_pair).collect::<Result<Vec<_>, _>>()?;
            let collected = Multigrid::from_finest(device, &last.grid, config)?;
            let workspace = collected.workspace()?;
            Ok((levels, collected, workspace))
        };
        let (made, collected, workspace) = agreed(comm, local())?;
        let (mut levels, mut vectors) = (Vec::new(), Vec::new());
        for (mut of_level, division) in made.into_iter().zip(&divisions) {
            share_largest::<T, D>(device, comm, &mut of_level.level.smoother)?;
            levels.push(PartLevel { exchange: division.exchange(device, comm)?, local: of_level.level });
            vectors.push(of_level.vectors);
        }
        let collect = last.exchange(device, comm)?;
        let unknowns = unknowns(comm, &divisions[0], nodes)?;
        let zeros = |n: usize| Buffer::zeros(device, n);
        let work = Work {
            levels: vectors,
            collected: workspace,
            owned: zeros(nodes.len())?,
            ghosts: zeros(unknowns.n() - nodes.len())?,
        };
        let above = divisions[..divisions.len() - 1].iter().map(|division| division.grid.clone());
        Ok(Self {
            grids: above.chain(collected.grids().rev().cloned()).collect(),
            device: device.clone(),
            levels,
            collected,
            collect,
            post: config.post,
            link: device.link(unknowns.halo())?,
            numbers: device.positions(&unknowns)?,
            unknowns,
            work: Mutex::new(work),
            size: ResidualSize::default(),
        })
    }

    /// Returns the grids of all levels, the finest first.
    pub fn grids(&self) -> &[BoxGrid] {
        &self.grids
    }

    /// Returns the number of levels that are divided.
    pub fn n_divided(&self) -> usize {
        self.levels.len()
    }

    /// Runs a cycle from `level` on, whose vectors come first, for its right side, with the values of others.
    fn cycle(
        &self,
        level: usize,
        vectors: &mut [PartVectors<T, D>],
        collected: &mut Workspace<T, D>,
    ) -> Result<(), LinalgError> {
        let (Some(of_level), Some((own, next))) = (self.levels.get(level), vectors.split_first_mut()) else {
            return self.collected.recorded_cycle(collected);
        };
        let (device, PartVectors { x, b, coarse }) = (&self.device, own);
        let PartLevel { local: Local { smoother, transfer, below }, exchange } = of_level;
        let of_next = self.levels.get(level + 1).map(|next| &next.exchange);
        let mut refresh = |x: &mut Buffer<T, D>| exchange.refresh(x);
        device.fill(x, T::ZERO)?;
        device.box_smooth_part(smoother, (x, b), (PostOrder::Same, true), &mut refresh)?;
        refresh(x)?;
        device.box_restrict_residual(transfer, coarse, b, x)?;
        let [_, side] = self.finest_of(next, collected);
        device.put(side, *below, (coarse, 0..coarse.len()))?;
        of_next.unwrap_or(&self.collect).refresh(side)?;
        self.cycle(level + 1, next, collected)?;
        let [solution, _] = self.finest_of(next, collected);
        of_next.map_or(Ok(()), |exchange| exchange.refresh(solution))?;
        device.section(coarse, solution, *below)?;
        device.box_prolongate(transfer, x, coarse)?;
        refresh(x)?;
        device.box_smooth_part(smoother, (x, b), (self.post, false), &mut refresh)
    }

    /// Returns the solution and the right side of the first of these levels, or of the collected level.
    fn finest_of<'w>(
        &self,
        vectors: &'w mut [PartVectors<T, D>],
        collected: &'w mut Workspace<T, D>,
    ) -> [&'w mut Buffer<T, D>; 2] {
        match vectors.first_mut() {
            Some(PartVectors { x, b, .. }) => [x, b],
            None => {
                let Vectors { x, b } = self.collected.finest(collected);
                [x, b]
            }
        }
    }
}

/// Takes the largest eigenvalue that any rank has estimated on its layers of a level, if the smoother needs one. Collective.
fn share_largest<T: Scalar, D: BoxKernels<T>>(
    device: &D,
    comm: &Comm,
    smoother: &mut D::BoxSmoother,
) -> Result<(), MultigridError> {
    let own = device.box_largest(smoother);
    let all = comm.all_gather(&[own.unwrap_or(0.0)])?;
    let largest = all.into_iter().flatten().fold(0.0, f64::max);
    if own.is_some() { device.box_set_largest(smoother, largest) } else { Ok(()) }
}

/// Returns the result of a rank, or an error on all ranks if one has failed.
fn agreed<R>(comm: &Comm, made: Result<R, MultigridError>) -> Result<R, MultigridError> {
    let flags = comm.all_gather(&[u64::from(made.is_err())])?;
    match flags.iter().position(|flag| flag.contains(&1)) {
        Some(rank) if made.is_ok() => {
            let message = "could not set up its levels of geometric multigrid".into();
            Err(LinalgError::Rank { rank, message }.into())
        }
        _ => made,
    }
}

/// Divides the grids of levels, the finest first; the last one that is taken is whole on every rank.
fn divided<T: Scalar, D: BoxKernels<T>>(
    device: &D,
    n_ranks: usize,
    (grids, few): (&[BoxGrid], usize),
    smoother: Smoother,
) -> Vec<Division> {
    let finest = &grids[0];
    let last = finest.dimension() - 1;
    let needs = grids.iter().map(|grid| BoxKernels::<T>::box_layers(device, grid, smoother));
    let most = needs.fold([0; 2], |most, need| [0, 1].map(|side| most[side].max(need[side])));
    let n_layers = |grid: &BoxGrid| grid.widths(last).len();
    let mut slabs = Slabs::new(n_layers(finest), n_ranks);
    let mut divisions: Vec<Division> = Vec::new();
    for (number, grid) in grids.iter().enumerate() {
        if let Some(finer) = number.checked_sub(1) {
            slabs = slabs.joined(n_layers(&grids[finer]) / n_layers(grid));
        }
        let layers: Vec<_> = (0..n_ranks).map(|rank| slabs.extended(rank, most)).collect();
        let longest = layers.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        let work = n_ranks as f64 * grid.n_unknowns() as f64;
        let is_whole = number + 1 == grids.len()
            || grid.n_unknowns() <= few
            || work <= SHARE * finest.n_unknowns() as f64
            || longest as f64 > PART * n_layers(grid) as f64
            || slabs.fewest() == 0
            || grid.thin_axes()[last];
        let layers = if is_whole { vec![0..n_layers(grid); n_ranks] } else { layers };
        divisions.push(Division { grid: grid.clone(), slabs: slabs.clone(), layers });
        if is_whole {
            break;
        }
    }
    divisions
}

/// Which nodes of its vector on the finest level a rank owns, in the order of the solver. Collective.
fn unknowns(comm: &Comm, finest: &Division, nodes: &[u32]) -> Result<LocalUnknowns, MultigridError> {
    let (slabs, n_plane) = (&finest.slabs, finest.n_plane());
    let of_rank = |rank: usize| {
        let planes = slabs.planes(finest.grid.degree(), rank);
        n_plane * planes.start..n_plane * planes.end
    };
    let (own, all) = (of_rank(comm.rank()), finest.nodes(comm.rank()));
    let is_found = parallel::map(own.len(), NODES, |_| AtomicBool::new(false));
    parallel::for_each(nodes.len(), NODES, |at| {
        let place = (nodes[at] as usize).checked_sub(own.start);
        if let Some(is_found) = place.and_then(|place| is_found.get(place)) {
            is_found.store(true, Relaxed);
        }
    });
    let here = is_found.iter().filter(|is_found| is_found.load(Relaxed)).count();
    let is_right = u64::from(here != own.len() || nodes.len() != own.len());
    if comm.all_gather(&[is_right])?.into_iter().flatten().any(|wrong| wrong > 0) {
        return Err(MultigridError::Entries { field: "nodes", expected: own.len(), found: here });
    }
    let of_others = (0..slabs.n_ranks()).filter(|&other| other != comm.rank()).flat_map(|other| {
        let theirs = of_rank(other);
        let begin = theirs.start.max(all.start);
        (begin..theirs.end.min(all.end).max(begin)).map(move |node| (other as u32, node as u64))
    });
    let ghosts: Vec<(u32, u64)> = of_others.collect();
    let ids: Vec<u64> = parallel::map(nodes.len(), NODES, |at| u64::from(nodes[at]));
    let halo = Arc::new(Halo::new(comm, &ids, &ghosts)?);
    let place = |node: u64| (node as usize - all.start) as u32;
    let owned = parallel::map(ids.len(), NODES, |at| place(ids[at]));
    let ghosts = ghosts.iter().map(|&(_, node)| place(node)).collect();
    Ok(LocalUnknowns::new(halo, owned, ghosts)?)
}

impl<T, D> Preconditioner<f64, D> for DistributedMultigrid<T, D>
where
    T: Scalar,
    D: BoxKernels<T> + RankKernels<T>,
{
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        let n = self.unknowns.owned().len();
        need("z", n, z.len())?;
        need("r", n, r.len())?;
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { levels, collected, owned, ghosts } = &mut *work;
        let (device, size, of) = (&self.device, self.size.get(), (&self.unknowns, &self.numbers));
        Convert::<f64, T>::convert(device, owned, 1.0 / size, r)?;
        let link = (&**self.unknowns.halo(), &self.link);
        RankKernels::<T>::import(device, link, ghosts, owned, &mut || Ok(()))?;
        let [_, side] = self.finest_of(levels, collected);
        device.spread(of, side, owned, Some(ghosts))?;
        self.cycle(0, levels, collected)?;
        let [solution, _] = self.finest_of(levels, collected);
        device.take(of, owned, solution, None)?;
        Convert::<T, f64>::convert(device, z, size, owned)
    }

    /// The last call applies to all concurrent solves, whose residual norms should be similar.
    fn set_residual_norm(&self, norm: f64) {
        self.size.set(norm);
    }
}
