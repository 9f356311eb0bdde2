//! Elimination forwards and backwards over the rows of a panel, a lane of a vector for each system.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::{Buffer, Cpu, Scalar};

use super::LINE;
use super::ahead::Ahead;
use super::panel::{Rows, RowsMut};
use crate::{BandRule, Bands, BatchProblem};
use femtile_device::cpu::vector::Vector;

/// Vectors of a row that go forwards, or back, at once: their chains are independent.
pub(crate) const CHUNK: usize = 4;

/// Cache lines that each of both sweeps prefetches with a chunk, so that together they prefetch as much as one reads.
#[inline(always)]
fn prefetched<T: Scalar, V: Vector<T>>() -> usize {
    (CHUNK * V::LANES * size_of::<T>() / LINE / 2).max(1)
}

/// Index of the state value with the row behind, in back substitution.
pub(crate) const BEHIND: usize = 0;

/// One way to eliminate, a vector of systems at a time; what it must remember lies in memory of its own.
pub(crate) trait Elimination<T: Scalar, V: Vector<T>> {
    /// Values that are kept of each row between the sweeps.
    const SLOTS: usize;
    /// Values that go along from row to row.
    const STATE: usize;
    /// Whether the last row must be known at the beginning.
    const KEEPS_LAST_ROW: bool = false;

    /// Takes the lower, diagonal, upper and right values of the last row, where they must be known.
    ///
    /// # Safety
    /// `at` is in memory of these sizes.
    unsafe fn begin(_at: At<T>, _last_row: [V; 4]) {}

    /// Eliminates the first row, given as its lower, diagonal, upper and right values; where all is sound.
    ///
    /// # Safety
    /// `at` is in memory of these sizes.
    unsafe fn first(at: At<T>, row: [V; 4]) -> V::Mask;

    /// Eliminates a row behind the first; where all is sound.
    ///
    /// # Safety
    /// `at` is in memory of these sizes, and all rows before were eliminated.
    unsafe fn forward(at: At<T>, row: [V; 4]) -> V::Mask;

    /// Ends the way forwards, at the last row; where all is sound and all values are finite.
    ///
    /// # Safety
    /// All rows were eliminated.
    unsafe fn turn(at: At<T>) -> V::Mask;

    /// The solution of a row, which is also left in the state at [`BEHIND`]; rows come in order from the last.
    ///
    /// # Safety
    /// The way forwards was ended.
    unsafe fn backward(at: At<T>) -> V;
}

/// A row of a vector of systems, and its places in memory.
#[derive(Clone, Copy)]
pub(crate) struct At<T> {
    /// Which row.
    pub row: usize,
    /// Rows of a system.
    pub n: usize,
    step: isize,
    kept: *mut T,
    state: *mut T,
}

impl<T: Scalar> At<T> {
    /// Returns the same systems at the row before.
    #[inline(always)]
    pub fn previous(self) -> Self {
        Self { row: self.row - 1, kept: self.kept.wrapping_offset(-self.step), ..self }
    }

    /// Returns the values stored for this row.
    ///
    /// # Safety
    /// `slot` is less than the number of values stored for each row, and the value was stored.
    #[inline(always)]
    pub unsafe fn kept<V: Vector<T>>(self, slot: usize) -> V {
        // SAFETY: what the caller promises.
        unsafe { V::load(self.kept.add(slot * V::LANES)) }
    }

    /// Keeps a value of this row.
    ///
    /// # Safety
    /// `slot` is less than the number of values kept per row.
    #[inline(always)]
    pub unsafe fn keep<V: Vector<T>>(self, slot: usize, value: V) {
        // SAFETY: what the caller promises.
        unsafe { value.store(self.kept.add(slot * V::LANES)) }
    }

    /// Returns a value of the state of the sweep.
    ///
    /// # Safety
    /// `number` is less than the number of state values, and the value was stored.
    #[inline(always)]
    pub unsafe fn state<V: Vector<T>>(self, number: usize) -> V {
        // SAFETY: what the caller promises.
        unsafe { V::load(self.state.add(number * V::LANES)) }
    }

    /// Sets a value of the state of the sweep.
    ///
    /// # Safety
    /// `number` is less than the number of state values.
    #[inline(always)]
    pub unsafe fn set_state<V: Vector<T>>(self, number: usize, value: V) {
        // SAFETY: what the caller promises.
        unsafe { value.store(self.state.add(number * V::LANES)) }
    }
}

/// The memory of a panel on its way; all that belongs to a vector of lanes stands together.
#[derive(Clone, Copy)]
pub(crate) struct Memory<T> {
    /// Lanes of the panel.
    pub lanes: usize,
    /// Rows of a system.
    pub n: usize,
    /// Values that are kept of the first row.
    pub kept: *mut T,
    /// From one row to the next among them.
    pub step: isize,
    /// Values that go along with each lane.
    pub state: *mut T,
}

impl<T: Scalar> Memory<T> {
    #[inline(always)]
    fn at<V: Vector<T>, E: Elimination<T, V>>(self, row: usize, lane: usize) -> At<T> {
        At {
            row,
            n: self.n,
            step: self.step,
            kept: self.kept.wrapping_offset(row as isize * self.step).wrapping_add(lane * E::SLOTS),
            state: self.state.wrapping_add(lane * E::STATE),
        }
    }

    /// Takes the last row to the beginning, `[lower, diagonal, upper, right]`.
    ///
    /// # Safety
    /// The memory has the sizes that the elimination states; a row of all lanes can be read.
    #[inline(always)]
    pub unsafe fn begin<V: Vector<T>, E: Elimination<T, V>>(self, last: [Rows<T>; 4]) {
        for lane in (0..self.lanes).step_by(V::LANES) {
            // SAFETY: what the caller promises.
            unsafe { E::begin(self.at::<V, E>(0, lane), load_row(&last, 0, lane)) }
        }
    }

    /// Ends the way forwards; whether everything was sound.
    ///
    /// # Safety
    /// All rows were eliminated.
    #[inline(always)]
    pub unsafe fn turn<V: Vector<T>, E: Elimination<T, V>>(self, mut sound: V::Mask) -> bool {
        for lane in (0..self.lanes).step_by(V::LANES) {
            // SAFETY: what the caller promises.
            sound = V::both(sound, unsafe { E::turn(self.at::<V, E>(self.n - 1, lane)) });
        }
        V::is_everywhere(sound)
    }

    /// Returns whether what [`Elimination::backward`] gave last is finite.
    ///
    /// # Safety
    /// There was a row.
    #[inline(always)]
    pub unsafe fn is_finite<V: Vector<T>, E: Elimination<T, V>>(self) -> bool {
        let mut is_finite = true;
        for lane in (0..self.lanes).step_by(V::LANES) {
            // SAFETY: what the caller promises.
            is_finite &= V::is_everywhere(unsafe { self.at::<V, E>(0, lane).state::<V>(BEHIND) }.finite());
        }
        is_finite
    }
}

/// Rows of one panel on the way forwards, which come in order.
pub(crate) struct Forward<T> {
    /// Its memory.
    pub memory: Memory<T>,
    /// The rows.
    pub rows: Range<usize>,
    /// Their lower, diagonal, upper and right values.
    pub from: [Rows<T>; 4],
}

impl<T: Scalar> Forward<T> {
    /// Eliminates all rows, in some lanes; where all is sound.
    #[inline(always)]
    unsafe fn eliminate<V: Vector<T>, E: Elimination<T, V>>(
        &self,
        lanes: Range<usize>,
        ahead: &mut Ahead<T>,
        mut sound: V::Mask,
    ) -> V::Mask {
        let begins = self.rows.start == 0 && !self.rows.is_empty();
        // SAFETY: what the caller of `sweep` promises.
        unsafe {
            if begins {
                ahead.step(prefetched::<T, V>());
                for lane in lanes.clone().step_by(V::LANES) {
                    let (at, values) = (self.memory.at::<V, E>(0, lane), load_row(&self.from, 0, lane));
                    sound = V::both(sound, E::first(at, values));
                }
            }
            for k in usize::from(begins)..self.rows.len() {
                ahead.step(prefetched::<T, V>());
                if lanes.len() == CHUNK * V::LANES {
                    for vector in 0..CHUNK {
                        sound = self.eliminate_vector::<V, E>(k, lanes.start + vector * V::LANES, sound);
                    }
                } else {
                    for lane in lanes.clone().step_by(V::LANES) {
                        sound = self.eliminate_vector::<V, E>(k, lane, sound);
                    }
                }
            }
        }
        sound
    }

    /// Eliminates a row behind the first in a vector of lanes.
    #[inline(always)]
    unsafe fn eliminate_vector<V: Vector<T>, E: Elimination<T, V>>(
        &self,
        k: usize,
        lane: usize,
        sound: V::Mask,
    ) -> V::Mask {
        let at = self.memory.at::<V, E>(self.rows.start + k, lane);
        // SAFETY: what the caller of `sweep` promises.
        unsafe { V::both(sound, E::forward(at, load_row(&self.from, k, lane))) }
    }
}

/// Rows of one panel on the way back, which come in order from the last.
pub(crate) struct Backward<T> {
    /// Its memory.
    pub memory: Memory<T>,
    /// The rows.
    pub rows: Range<usize>,
    /// Where the solution is written.
    pub to: RowsMut<T>,
}

impl<T: Scalar> Backward<T> {
    /// Writes the solution of all rows, in some lanes.
    #[inline(always)]
    unsafe fn substitute<V: Vector<T>, E: Elimination<T, V>>(
        &self,
        lanes: Range<usize>,
        ahead: &mut Ahead<T>,
    ) {
        for k in 0..self.rows.len() {
            ahead.step(prefetched::<T, V>());
            // SAFETY: what the caller of `sweep` promises.
            unsafe {
                if lanes.len() == CHUNK * V::LANES {
                    for vector in 0..CHUNK {
                        self.substitute_vector::<V, E>(k, lanes.start + vector * V::LANES);
                    }
                } else {
                    for lane in lanes.clone().step_by(V::LANES) {
                        self.substitute_vector::<V, E>(k, lane);
                    }
                }
            }
        }
    }

    /// Writes the solution of a row in a vector of lanes.
    #[inline(always)]
    unsafe fn substitute_vector<V: Vector<T>, E: Elimination<T, V>>(&self, k: usize, lane: usize) {
        let row = self.rows.end - 1 - k;
        // SAFETY: what the caller of `sweep` promises.
        unsafe { self.to.put(row - self.rows.start, lane, E::backward(self.memory.at::<V, E>(row, lane))) }
    }
}

/// Eliminates rows of one panel while another goes back, a chunk of a row in turn: memory is read and written at an
/// even rate, and the chains of one hide the latency of the other. Returns where all is sound.
///
/// # Safety
/// Both memories have the sizes that the elimination states; rows can be read and written; the way forwards of the panel
/// that goes back was ended, and what it has kept lies elsewhere, or at rows that went back.
#[inline(always)]
pub(crate) unsafe fn sweep<T: Scalar, V: Vector<T>, E: Elimination<T, V>>(
    front: &Forward<T>,
    back: &Backward<T>,
    ahead: &mut Ahead<T>,
    mut sound: V::Mask,
) -> V::Mask {
    // A copy of its own stays in registers.
    let mut next = *ahead;
    let lanes = if front.rows.is_empty() { 0 } else { front.memory.lanes };
    let lanes_back = if back.rows.is_empty() { 0 } else { back.memory.lanes };
    let chunk = CHUNK * V::LANES;
    for first in (0..lanes.max(lanes_back)).step_by(chunk) {
        // SAFETY: what the caller promises.
        unsafe {
            if first < lanes_back {
                back.substitute::<V, E>(first..lanes_back.min(first + chunk), &mut next);
            }
            if first < lanes {
                sound = front.eliminate::<V, E>(first..lanes.min(first + chunk), &mut next, sound);
            }
        }
    }
    *ahead = next;
    sound
}

/// A vector of each of four arrays.
#[inline(always)]
unsafe fn load_row<T: Scalar, V: Vector<T>>(from: &[Rows<T>; 4], row: usize, lane: usize) -> [V; 4] {
    let [lower, diagonal, upper, right] = from;
    // SAFETY: the caller promises rows of all lanes.
    unsafe {
        [
            V::load(lower.at(row, lane)),
            V::load(diagonal.at(row, lane)),
            V::load(upper.at(row, lane)),
            V::load(right.at(row, lane)),
        ]
    }
}

/// The bands of a batch.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a, T> {
    /// Lower, diagonal and upper band.
    Arrays([*const T; 3]),
    /// Formed when they are needed.
    Rule(&'a dyn BandRule<T>),
}

/// A batch whose lines threads share out.
pub(crate) struct Batch<'a, T> {
    pub problem: &'a BatchProblem,
    /// The solution; the same array as `d` in place.
    pub u: *mut T,
    pub d: *const T,
    pub bands: Source<'a, T>,
    /// Lines that failed.
    pub n_failed: AtomicU64,
    /// The least `line * length + row` of them.
    pub first_failed: AtomicU64,
}

// SAFETY: threads write different lines of `u`, and the other arrays are only read.
unsafe impl<T: Sync> Sync for Batch<'_, T> {}

impl<'a, T: Scalar> Batch<'a, T> {
    /// Of the arrays of a solver; in place where `d` is none.
    pub fn new(
        problem: &'a BatchProblem,
        u: &mut Buffer<T, Cpu>,
        bands: Bands<'a, T, Cpu>,
        d: Option<&Buffer<T, Cpu>>,
    ) -> Self {
        let u = u.as_mut_slice().as_mut_ptr();
        let bands = match bands {
            Bands::Arrays { lower, diagonal, upper } => {
                Source::Arrays([lower, diagonal, upper].map(|band| band.as_slice().as_ptr()))
            }
            Bands::Rule(rule) => Source::Rule(rule),
        };
        let d = d.map_or(u.cast_const(), |d| d.as_slice().as_ptr());
        Self::of_pointers(problem, u, d, bands)
    }

    /// Of arrays by their addresses; in place where `d` is `u`.
    pub fn of_pointers(problem: &'a BatchProblem, u: *mut T, d: *const T, bands: Source<'a, T>) -> Self {
        Self { problem, u, d, bands, n_failed: AtomicU64::new(0), first_failed: AtomicU64::new(u64::MAX) }
    }

    /// Returns whether the solution overwrites the right side.
    pub fn is_in_place(&self) -> bool {
        std::ptr::eq(self.u, self.d)
    }

    /// Counts a line that failed, and remembers the first.
    pub fn note_failure(&self, line: usize, row: usize) {
        self.n_failed.fetch_add(1, Ordering::Relaxed);
        let key = (line * self.problem.lines.length + row) as u64;
        self.first_failed.fetch_min(key, Ordering::Relaxed);
    }

    /// The number of lines that failed, and the least `line * length + row` among them.
    pub fn failures(&self) -> (u64, u64) {
        (self.n_failed.load(Ordering::Relaxed), self.first_failed.load(Ordering::Relaxed))
    }
}
