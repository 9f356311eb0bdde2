//! Elimination forwards and backwards over the rows of a panel, a lane of a vector for each system.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::{Buffer, Cpu, Scalar};

use super::ahead::Ahead;
use super::panel::{Rows, RowsMut};
use crate::{BandRule, Bands, BatchProblem};
use femtile_device::cpu::vector::Vector;

/// Bytes of a row between two prefetches of a sweep, so that both sweeps together prefetch the whole next panel.
const STEP: usize = 128;

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
    lanes: usize,
    kept: *mut T,
    state: *mut T,
}

impl<T: Scalar> At<T> {
    /// Returns the same systems at the row before, where `slots` values are stored for each row.
    #[inline(always)]
    pub fn previous(self, slots: usize) -> Self {
        Self { row: self.row - 1, kept: self.kept.wrapping_sub(slots * self.lanes), ..self }
    }

    /// Returns the values stored for this row.
    ///
    /// # Safety
    /// `slot` is less than the number of values stored for each row, and the value was stored.
    #[inline(always)]
    pub unsafe fn kept<V: Vector<T>>(self, slot: usize) -> V {
        // SAFETY: what the caller promises.
        unsafe { V::load(self.kept.add(slot * self.lanes)) }
    }

    /// Keeps a value of this row.
    ///
    /// # Safety
    /// `slot` is less than the number of values kept per row.
    #[inline(always)]
    pub unsafe fn keep<V: Vector<T>>(self, slot: usize, value: V) {
        // SAFETY: what the caller promises.
        unsafe { value.store(self.kept.add(slot * self.lanes)) }
    }

    /// Returns a value of the state of the sweep.
    ///
    /// # Safety
    /// `number` is less than the number of state values, and the value was stored.
    #[inline(always)]
    pub unsafe fn state<V: Vector<T>>(self, number: usize) -> V {
        // SAFETY: what the caller promises.
        unsafe { V::load(self.state.add(number * self.lanes)) }
    }

    /// Sets a value of the state of the sweep.
    ///
    /// # Safety
    /// `number` is less than the number of state values.
    #[inline(always)]
    pub unsafe fn set_state<V: Vector<T>>(self, number: usize, value: V) {
        // SAFETY: what the caller promises.
        unsafe { value.store(self.state.add(number * self.lanes)) }
    }
}

/// The memory of the panel that a thread is at.
#[derive(Clone, Copy)]
pub(crate) struct Memory<T> {
    /// Lanes of the panel.
    pub lanes: usize,
    /// Rows of a system.
    pub n: usize,
    /// Values that are kept of each row and lane.
    pub kept: *mut T,
    /// Values that go along with each lane.
    pub state: *mut T,
}

impl<T: Scalar> Memory<T> {
    #[inline(always)]
    fn at(self, row: usize, slots: usize, lane: usize) -> At<T> {
        At {
            row,
            n: self.n,
            lanes: self.lanes,
            kept: self.kept.wrapping_add(row * slots * self.lanes + lane),
            state: self.state.wrapping_add(lane),
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
            unsafe { E::begin(self.at(0, E::SLOTS, lane), load_row(&last, 0, lane)) }
        }
    }

    /// Eliminates `rows`, which come in order, `[lower, diagonal, upper, right]`; where all is sound.
    ///
    /// # Safety
    /// The memory has the sizes that the elimination states; these rows of all lanes can be read.
    #[inline(always)]
    pub unsafe fn forward<V: Vector<T>, E: Elimination<T, V>>(
        self,
        rows: Range<usize>,
        from: [Rows<T>; 4],
        ahead: &mut Ahead<T>,
        mut sound: V::Mask,
    ) -> V::Mask {
        // A copy of its own stays in registers.
        let mut next = *ahead;
        for (k, row) in rows.enumerate() {
            self.for_lanes::<V>(
                &mut next,
                #[inline(always)]
                |lane| {
                    let at = self.at(row, E::SLOTS, lane);
                    // SAFETY: what the caller promises.
                    unsafe {
                        let values = load_row(&from, k, lane);
                        let is_sound = if row == 0 { E::first(at, values) } else { E::forward(at, values) };
                        sound = V::both(sound, is_sound);
                    }
                },
            );
        }
        *ahead = next;
        sound
    }

    /// Calls `act` for each vector of lanes and prefetches the next panel meanwhile.
    #[inline(always)]
    fn for_lanes<V: Vector<T>>(self, next: &mut Ahead<T>, mut act: impl FnMut(usize)) {
        let step = STEP / size_of::<T>();
        let whole = self.lanes / step * step;
        for first in (0..whole).step_by(step) {
            next.step();
            for lane in (0..step).step_by(V::LANES) {
                act(first + lane);
            }
        }
        for lane in (whole..self.lanes).step_by(V::LANES) {
            act(lane);
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
            sound = V::both(sound, unsafe { E::turn(self.at(self.n - 1, E::SLOTS, lane)) });
        }
        V::is_everywhere(sound)
    }

    /// Writes the solution of `rows`, which come in order from the last.
    ///
    /// # Safety
    /// The way forwards was ended; `u` can be written.
    #[inline(always)]
    pub unsafe fn backward<V: Vector<T>, E: Elimination<T, V>>(
        self,
        rows: Range<usize>,
        u: RowsMut<T>,
        ahead: &mut Ahead<T>,
    ) {
        // A copy of its own stays in registers.
        let mut next = *ahead;
        for (k, row) in rows.enumerate().rev() {
            self.for_lanes::<V>(
                &mut next,
                #[inline(always)]
                // SAFETY: what the caller promises.
                |lane| unsafe { u.put(k, lane, E::backward(self.at(row, E::SLOTS, lane))) },
            );
        }
        *ahead = next;
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
            is_finite &= V::is_everywhere(unsafe { self.at(0, E::SLOTS, lane).state::<V>(BEHIND) }.finite());
        }
        is_finite
    }
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
