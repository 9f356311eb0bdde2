//! Operators that a rank applies to a part of a mesh: all cells that touch its unknowns.

use std::sync::{Arc, Mutex, PoisonError};

use femtile_device::{Buffer, Cpu, Scalar, parallel};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::sum::BLOCK;
use femtile_linalg::{LinalgError, LinearOperator, Transfer, need};

use crate::Halo;

/// Which unknowns of a part a rank owns, and which are its ghosts.
///
/// # Shapes
/// A part has `n_owned + n_ghosts` unknowns, in an order of its own.
#[derive(Debug)]
pub struct PartUnknowns {
    halo: Arc<Halo>,
    /// The unknown of the part of each one that the rank owns.
    owned: Vec<u32>,
    /// That of each ghost.
    ghosts: Vec<u32>,
    /// The ghost or owned unknown of each one of the part: ghosts from `owned.len()` on.
    numbers: Vec<u32>,
}

/// Unknowns that a thread copies at a time.
const COPIED: usize = 1 << 13;

impl PartUnknowns {
    /// Takes the unknowns of a part that the rank owns, and its ghosts, in the order of `halo`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where there are others, [`LinalgError::Setting`] where they are not each unknown of the part once.
    pub fn new(halo: Arc<Halo>, owned: Vec<u32>, ghosts: Vec<u32>) -> Result<Self, LinalgError> {
        need("owned", halo.n_owned(), owned.len())?;
        need("ghosts", halo.n_ghosts(), ghosts.len())?;
        let mut numbers = vec![u32::MAX; owned.len() + ghosts.len()];
        for (&unknown, number) in owned.iter().chain(&ghosts).zip(0..) {
            match numbers.get_mut(unknown as usize) {
                Some(place) if *place == u32::MAX => *place = number,
                _ => {
                    let message = format!("unknown {unknown} is beyond the part, or given twice");
                    return Err(LinalgError::Setting { field: "owned", message });
                }
            }
        }
        Ok(Self { halo, owned, ghosts, numbers })
    }

    /// Returns the exchange of its ghosts.
    pub fn halo(&self) -> &Arc<Halo> {
        &self.halo
    }

    /// Returns the number of unknowns of the part.
    pub fn n(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the unknown of the part of each one that the rank owns.
    pub fn owned(&self) -> &[u32] {
        &self.owned
    }

    /// Returns the place of each unknown of the part among the owned ones, then the ghosts.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Writes owned values and those of other ranks in the order of the part. All ranks call it.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where the values do not fit; [`LinalgError::Rank`].
    pub fn spread<T: Scalar>(&self, part: &mut [T], owned: &[T]) -> Result<(), LinalgError> {
        need("part", self.n(), part.len())?;
        need("owned", self.owned.len(), owned.len())?;
        let mut ghosts = vec![T::ZERO; self.ghosts.len()];
        let own = &mut *part;
        self.halo.import(&mut ghosts, owned, &mut || self.put(own, owned))?;
        self.ghosts.iter().zip(ghosts).for_each(|(&unknown, ghost)| part[unknown as usize] = ghost);
        Ok(())
    }

    /// Writes owned values in the order of the part, with zeros at ghosts.
    fn put<T: Scalar>(&self, part: &mut [T], owned: &[T]) {
        parallel::for_chunks_mut(part, COPIED, |begin, values| {
            for (value, &number) in values.iter_mut().zip(&self.numbers[begin..]) {
                *value = owned.get(number as usize).copied().unwrap_or(T::ZERO);
            }
        });
    }

    /// Returns the values of a part in its order from those that the rank owns. All ranks call it.
    ///
    /// # Errors
    /// As [`PartUnknowns::spread`].
    pub fn of_part<T: Scalar>(&self, owned: &[T]) -> Result<Vec<T>, LinalgError> {
        let mut part = vec![T::ZERO; self.n()];
        self.spread(&mut part, owned)?;
        Ok(part)
    }

    /// Writes the owned ones among the values of a part.
    ///
    /// # Panics
    /// Where the values do not fit.
    pub fn take<T: Scalar>(&self, owned: &mut [T], part: &[T]) {
        parallel::for_chunks_mut(owned, COPIED, |begin, values| {
            let unknowns = &self.owned[begin..];
            values.iter_mut().zip(unknowns).for_each(|(value, &unknown)| *value = part[unknown as usize]);
        });
    }
}

/// The product with the rows of a rank, of an operator on its part of a mesh.
///
/// Vectors hold the unknowns of the rank. The operator of the part has all cells of these, so their rows are complete; those
/// of ghosts are not, and left out.
///
/// # Cost
/// As that of the part, three passes over vectors to change their order, and [`Halo::n_sent`] values sent.
/// # Source
/// The cells of a rank: `[kronbichler2022]`, section 5.3, where contributions are sent in place of values read twice.
pub struct PartOperator<T: Scalar> {
    part: Box<dyn LinearOperator<T, Cpu>>,
    unknowns: Arc<PartUnknowns>,
    work: Mutex<[Buffer<T, Cpu>; 2]>,
}

impl<T: Scalar> PartOperator<T> {
    /// Takes the operator of a part.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where it has another number of unknowns.
    pub fn new(
        part: Box<dyn LinearOperator<T, Cpu>>,
        unknowns: Arc<PartUnknowns>,
    ) -> Result<Self, LinalgError> {
        need("rows", unknowns.n(), part.n_rows())?;
        need("columns", unknowns.n(), part.n_cols())?;
        let zeros = || Buffer::zeros(part.device(), unknowns.n());
        let work = Mutex::new([zeros()?, zeros()?]);
        Ok(Self { part, unknowns, work })
    }
}

impl<T: Scalar> LinearOperator<T, Cpu> for PartOperator<T> {
    fn n_rows(&self) -> usize {
        self.unknowns.owned.len()
    }

    fn n_cols(&self) -> usize {
        self.n_rows()
    }

    fn device(&self) -> &Cpu {
        self.part.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, Cpu>,
        x: &Buffer<T, Cpu>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        let n = self.n_rows();
        need("y", n, y.len())?;
        need("x", n, x.len())?;
        hook.pre(0..n);
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [part_y, part_x] = &mut *work;
        self.unknowns.spread(part_x.as_mut_slice(), x.as_slice())?;
        self.part.apply(part_y, part_x)?;
        let (x, part_y) = (x.as_slice(), part_y.as_slice());
        parallel::for_chunks_mut(y.as_mut_slice(), BLOCK, |begin, y| {
            let rows = begin..begin + y.len();
            let unknowns = &self.unknowns.owned[rows.clone()];
            y.iter_mut().zip(unknowns).for_each(|(y, &unknown)| *y = part_y[unknown as usize]);
            hook.post(rows.clone(), &x[rows], y);
        });
        Ok(())
    }
}

/// A transfer between two levels of a rank, of one on its part of the mesh.
///
/// # Cost
/// As that of the part, two passes over each vector to change their order, and an exchange of ghosts.
pub struct PartTransfer<T: Scalar> {
    part: Box<dyn Transfer<T, Cpu>>,
    coarse: Arc<PartUnknowns>,
    fine: Arc<PartUnknowns>,
    /// Vectors of the part: coarse and fine.
    work: Mutex<[Buffer<T, Cpu>; 2]>,
}

impl<T: Scalar> PartTransfer<T> {
    /// Takes the transfer of a part, which has all cells of the unknowns of the rank on both levels.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where it has other numbers of unknowns.
    pub fn new(
        device: &Cpu,
        part: Box<dyn Transfer<T, Cpu>>,
        [coarse, fine]: [Arc<PartUnknowns>; 2],
    ) -> Result<Self, LinalgError> {
        need("coarse", coarse.n(), part.n_coarse())?;
        need("fine", fine.n(), part.n_fine())?;
        let zeros = |n| Buffer::zeros(device, n);
        let work = Mutex::new([zeros(coarse.n())?, zeros(fine.n())?]);
        Ok(Self { part, coarse, fine, work })
    }
}

impl<T: Scalar> Transfer<T, Cpu> for PartTransfer<T> {
    fn n_fine(&self) -> usize {
        self.fine.owned.len()
    }

    fn n_coarse(&self) -> usize {
        self.coarse.owned.len()
    }

    fn prolongate(&self, x: &mut Buffer<T, Cpu>, e: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        need("x", self.n_fine(), x.len())?;
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [coarse, fine] = &mut *work;
        self.coarse.spread(coarse.as_mut_slice(), e.as_slice())?;
        self.fine.put(fine.as_mut_slice(), x.as_slice());
        self.part.prolongate(fine, coarse)?;
        self.fine.take(x.as_mut_slice(), fine.as_slice());
        Ok(())
    }

    fn restrict(&self, b: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>) -> Result<(), LinalgError> {
        need("b", self.n_coarse(), b.len())?;
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let [coarse, fine] = &mut *work;
        self.fine.spread(fine.as_mut_slice(), r.as_slice())?;
        self.part.restrict(coarse, fine)?;
        self.coarse.take(b.as_mut_slice(), coarse.as_slice());
        Ok(())
    }
}
