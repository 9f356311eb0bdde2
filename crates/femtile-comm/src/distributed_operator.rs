//! Distributed operators made of an operator on each rank's part of the mesh: all cells that touch its owned
//! unknowns.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::{Buffer, Scalar, parallel};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator, Transfer, need};

use crate::{Halo, RankKernels};

/// Unknowns per parallel task.
const UNKNOWNS: usize = 1 << 14;

/// The owned unknowns and ghosts among the unknowns of a part.
///
/// # Shapes
/// A part has `n_owned + n_ghosts` unknowns in its own order.
#[derive(Debug)]
pub struct LocalUnknowns {
    halo: Arc<Halo>,
    /// The unknown of the part of each owned unknown.
    owned: Vec<u32>,
    /// The unknown of the part of each ghost.
    ghosts: Vec<u32>,
    /// For each unknown of the part: its position among the owned unknowns, or `owned.len()` plus that among
    /// the ghosts.
    positions: Vec<u32>,
}

impl LocalUnknowns {
    /// Takes the owned unknowns and the ghosts of a part, in the order of `halo`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if their numbers differ from those of the halo, [`LinalgError::Setting`] if
    /// they do not name each unknown of the part exactly once.
    pub fn new(halo: Arc<Halo>, owned: Vec<u32>, ghosts: Vec<u32>) -> Result<Self, LinalgError> {
        need("owned", halo.n_owned(), owned.len())?;
        need("ghosts", halo.n_ghosts(), ghosts.len())?;
        let (n_owned, n) = (owned.len(), owned.len() + ghosts.len());
        let positions = parallel::map(n, UNKNOWNS, |_| AtomicU32::new(u32::MAX));
        let unknown = |number: usize| if number < n_owned { owned[number] } else { ghosts[number - n_owned] };
        let is_new = |number: usize| {
            let place = positions.get(unknown(number) as usize);
            place.is_some_and(|place| place.swap(number as u32, Relaxed) == u32::MAX)
        };
        if !parallel::all(n, UNKNOWNS, is_new) {
            let message = "an unknown is beyond the part, or given twice".into();
            return Err(LinalgError::Setting { field: "owned", message });
        }
        let positions = positions.into_iter().map(AtomicU32::into_inner).collect();
        Ok(Self { halo, owned, ghosts, positions })
    }

    /// Takes a part whose own order is that of `halo`: owned unknowns, then ghosts.
    ///
    /// # Errors
    /// As [`LocalUnknowns::new`].
    pub fn in_order(halo: Arc<Halo>) -> Result<Self, LinalgError> {
        let (n_owned, n_ghosts) = (halo.n_owned() as u32, halo.n_ghosts() as u32);
        Self::new(halo, (0..n_owned).collect(), (n_owned..n_owned + n_ghosts).collect())
    }

    /// Returns the halo.
    pub fn halo(&self) -> &Arc<Halo> {
        &self.halo
    }

    /// Returns the number of unknowns of the part.
    pub fn n(&self) -> usize {
        self.positions.len()
    }

    /// Returns the unknown of the part of each owned unknown.
    pub fn owned(&self) -> &[u32] {
        &self.owned
    }

    /// Returns the position of each unknown of the part in the list of owned unknowns followed by ghosts.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Refuses vectors of wrong lengths.
    pub(crate) fn need(&self, part: usize, owned: usize, ghosts: Option<usize>) -> Result<(), LinalgError> {
        need("part", self.n(), part)?;
        need("owned", self.owned.len(), owned)?;
        ghosts.map_or(Ok(()), |ghosts| need("ghosts", self.ghosts.len(), ghosts))
    }

    /// Returns the values on the part from the owned values; those of ghosts come from their owners.
    /// Collective.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if the length of the vector is wrong; [`LinalgError::Rank`].
    pub fn with_ghosts<T: Scalar>(&self, owned: &[T]) -> Result<Vec<T>, LinalgError> {
        let mut ghosts = vec![T::ZERO; self.ghosts.len()];
        self.halo.import(&mut ghosts, owned, &mut || ())?;
        let value = |unknown: usize| match (self.positions[unknown] as usize).checked_sub(owned.len()) {
            None => owned[self.positions[unknown] as usize],
            Some(ghost) => ghosts[ghost],
        };
        Ok(parallel::map(self.positions.len(), UNKNOWNS, value))
    }

    /// Returns the owned values from those on the part.
    ///
    /// # Panics
    /// If the length of the vector is wrong.
    pub fn restrict_to_owned<T: Scalar>(&self, part: &[T]) -> Vec<T> {
        parallel::map(self.owned.len(), UNKNOWNS, |at| part[self.owned[at] as usize])
    }
}

/// The product with the owned rows of an operator on a part of the mesh.
///
/// Vectors hold the owned unknowns. The part has all cells around these, so their rows are complete. Rows of
/// ghosts are incomplete and dropped.
///
/// # Cost
/// The cost of the part's operator, three passes over vectors for permutations, and [`Halo::n_sent`] values
/// sent.
/// # Source
/// `[kronbichler2022]`, section 5.3. Differs: there each cell belongs to one rank, and contributions are
/// sent; here cells at interfaces are computed by both ranks.
pub struct DistributedOperator<T: Scalar, D: RankKernels<T>> {
    part: Box<dyn LinearOperator<T, D>>,
    unknowns: Arc<LocalUnknowns>,
    link: D::Link,
    positions: D::Positions,
    work: Mutex<Work<T, D>>,
}

/// Vectors on the part, and of its ghosts.
struct Work<T: Scalar, D: RankKernels<T>> {
    x: Buffer<T, D>,
    y: Buffer<T, D>,
    ghosts: Buffer<T, D>,
}

impl<T: Scalar, D: RankKernels<T>> DistributedOperator<T, D> {
    /// Takes the operator on the part.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if its number of unknowns is not that of the part; errors of the device.
    pub fn new(
        part: Box<dyn LinearOperator<T, D>>,
        unknowns: Arc<LocalUnknowns>,
    ) -> Result<Self, LinalgError> {
        need("rows", unknowns.n(), part.n_rows())?;
        need("columns", unknowns.n(), part.n_cols())?;
        let device = part.device();
        let zeros = |n| Buffer::zeros(device, n);
        let (n, n_ghosts) = (unknowns.n(), unknowns.ghosts.len());
        let work = Mutex::new(Work { x: zeros(n)?, y: zeros(n)?, ghosts: zeros(n_ghosts)? });
        let (link, positions) = (device.link(&unknowns.halo)?, device.positions(&unknowns)?);
        Ok(Self { part, unknowns, link, positions, work })
    }
}

impl<T: Scalar, D: RankKernels<T>> LinearOperator<T, D> for DistributedOperator<T, D> {
    fn n_rows(&self) -> usize {
        self.unknowns.owned.len()
    }

    fn n_cols(&self) -> usize {
        self.n_rows()
    }

    fn device(&self) -> &D {
        self.part.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let n = self.n_rows();
        need("y", n, y.len())?;
        need("x", n, x.len())?;
        hook.pre(0..n);
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let Work { x: part_x, y: part_y, ghosts } = &mut *work;
        let (device, of) = (self.device(), (&*self.unknowns, &self.positions));
        device.import((&self.unknowns.halo, &self.link), ghosts, x, &mut || Ok(()))?;
        device.spread(of, part_x, x, Some(ghosts))?;
        self.part.apply(part_y, part_x)?;
        device.take(of, y, part_y, Some((hook, x)))
    }
}

/// A distributed transfer between two levels, made of a transfer on each rank's part of the mesh.
///
/// # Cost
/// The cost of the part's transfer, two passes over each vector for permutations, and one halo exchange.
pub struct DistributedTransfer<T: Scalar, D: RankKernels<T>> {
    part: Box<dyn Transfer<T, D>>,
    coarse: PartLevel<T, D>,
    fine: PartLevel<T, D>,
}

/// A level of a transfer.
struct PartLevel<T: Scalar, D: RankKernels<T>> {
    unknowns: Arc<LocalUnknowns>,
    link: D::Link,
    positions: D::Positions,
    /// Vectors on the part, and of its ghosts.
    work: Mutex<[Buffer<T, D>; 2]>,
}

impl<T: Scalar, D: RankKernels<T>> PartLevel<T, D> {
    fn new(device: &D, unknowns: Arc<LocalUnknowns>) -> Result<Self, LinalgError> {
        let zeros = |n| Buffer::zeros(device, n);
        let work = Mutex::new([zeros(unknowns.n())?, zeros(unknowns.ghosts.len())?]);
        let (link, positions) = (device.link(&unknowns.halo)?, device.positions(&unknowns)?);
        Ok(Self { unknowns, link, positions, work })
    }

    /// Calls `work` with the vectors on the part.
    fn with<R>(&self, work: impl FnOnce(&mut Buffer<T, D>, &mut Buffer<T, D>) -> R) -> R {
        let mut vectors = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [part, ghosts] = &mut *vectors;
        work(part, ghosts)
    }

    /// Writes owned values and ghosts in the order of the part.
    fn spread(
        &self,
        (part, ghosts): (&mut Buffer<T, D>, &mut Buffer<T, D>),
        owned: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        let device = owned.device();
        device.import((&self.unknowns.halo, &self.link), ghosts, owned, &mut || Ok(()))?;
        device.spread((&self.unknowns, &self.positions), part, owned, Some(ghosts))
    }

    fn take(&self, owned: &mut Buffer<T, D>, part: &Buffer<T, D>) -> Result<(), LinalgError> {
        part.device().take((&self.unknowns, &self.positions), owned, part, None)
    }
}

impl<T: Scalar, D: RankKernels<T>> DistributedTransfer<T, D> {
    /// Takes the transfer on the part, which must have all cells around the owned unknowns of both levels.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if its numbers of unknowns are not those of the levels; errors of the device.
    pub fn new(
        device: &D,
        part: Box<dyn Transfer<T, D>>,
        [coarse, fine]: [Arc<LocalUnknowns>; 2],
    ) -> Result<Self, LinalgError> {
        need("coarse", coarse.n(), part.n_coarse())?;
        need("fine", fine.n(), part.n_fine())?;
        Ok(Self { part, coarse: PartLevel::new(device, coarse)?, fine: PartLevel::new(device, fine)? })
    }
}

impl<T: Scalar, D: RankKernels<T>> Transfer<T, D> for DistributedTransfer<T, D> {
    fn n_fine(&self) -> usize {
        self.fine.unknowns.owned.len()
    }

    fn n_coarse(&self) -> usize {
        self.coarse.unknowns.owned.len()
    }

    fn prolongate(&self, x: &mut Buffer<T, D>, e: &Buffer<T, D>) -> Result<(), LinalgError> {
        let device = e.device();
        self.coarse.with(|coarse, ghosts| {
            self.coarse.spread((coarse, ghosts), e)?;
            self.fine.with(|fine, _| {
                device.spread((&self.fine.unknowns, &self.fine.positions), fine, x, None)?;
                self.part.prolongate(fine, coarse)?;
                self.fine.take(x, fine)
            })
        })
    }

    fn restrict(&self, b: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.fine.with(|fine, ghosts| {
            self.fine.spread((fine, ghosts), r)?;
            self.coarse.with(|coarse, _| {
                self.part.restrict(coarse, fine)?;
                self.coarse.take(b, coarse)
            })
        })
    }
}
