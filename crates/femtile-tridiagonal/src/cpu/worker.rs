//! Panels of lines, one after the other, on each thread.

use std::marker::PhantomData;
use std::ops::Range;

use femtile_device::Cpu;

use super::ahead::Ahead;
use super::panel::{Places, Rows};
use super::plan::Plan;
use super::stream::{self, stream_copy};
use super::sweep::{Batch, Elimination, Memory, Source};
use super::{LINE, MIN_ENTRIES, failures};
use crate::BandRule;
use femtile_device::cpu::vector::{Lanes, Vector, fence};

/// The memory of one thread, and the panel that it is at.
struct Worker<'a, 'b, T, V, E> {
    batch: &'a Batch<'b, T>,
    plan: &'a Plan,
    /// Where the lines begin in `d` and `u`, and in the bands.
    places: Places,
    band_places: Places,
    memory: Memory<T>,
    /// Four blocks of rows: the bands and the right side, or the solution.
    stages: [*mut T; 4],
    /// Whole lines of the solution on their way past the cache.
    whole_lines: *mut T,
    /// The first line of the panel that follows.
    next: usize,
    kind: PhantomData<(V, E)>,
}

/// Values of memory for each thread, in pieces that begin at lines of the cache: what is kept, what goes along, four
/// stages and whole lines.
fn pieces<T: Lanes, V: Vector<T>, E: Elimination<T, V>>(batch: &Batch<'_, T>, plan: &Plan) -> [usize; 7] {
    let (n, lanes) = (batch.problem.lines.length, plan.lanes.next_multiple_of(V::LANES));
    let is_contiguous = batch.problem.lines.stride == 1;
    let whole = if plan.is_streamed && is_contiguous { lanes * n.next_multiple_of(16) } else { 0 };
    // The last block may be longer, by less than a vector.
    let stage = (plan.block + V::LANES) * lanes;
    [E::SLOTS * n * lanes, E::STATE * lanes, stage, stage, stage, stage, whole]
        .map(|piece| piece.next_multiple_of(LINE / size_of::<T>()))
}

/// The distribution of panels and workspace over threads.
pub(super) struct Shares {
    parts: usize,
    pieces: [usize; 7],
}

impl Shares {
    pub(super) fn new<T: Lanes, V: Vector<T>, E: Elimination<T, V>>(
        cpu: &Cpu,
        batch: &Batch<'_, T>,
        plan: &Plan,
    ) -> Self {
        let lines = &batch.problem.lines;
        let most = (lines.length * lines.n_lines() / MIN_ENTRIES).max(1);
        let parts = cpu.threads().min(plan.n_panels()).min(most);
        Self { parts, pieces: pieces::<T, V, E>(batch, plan) }
    }

    /// Values of memory for each part.
    fn each(&self) -> usize {
        self.pieces.iter().sum()
    }

    /// Values of memory for all parts, wherever they begin in a line of the cache.
    pub(super) fn len<T>(&self) -> usize {
        self.parts * self.each() + LINE / size_of::<T>()
    }
}

/// Solves all lines by one elimination on vectors of one kind.
///
/// # Safety
/// `memory` holds [`Shares::len`] values for this batch and plan, and the arrays of the batch hold every entry of every
/// line; the processor has the instructions of the vectors.
pub(super) unsafe fn solve_panels<T: Lanes, V: Vector<T>, E: Elimination<T, V>>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    plan: &Plan,
    (shares, memory): (&Shares, *mut T),
) {
    let n_panels = plan.n_panels();
    let (parts, pieces, each) = (shares.parts, shares.pieces, shares.each());
    let base = Shared(memory);
    let work = |part: usize| {
        if part >= parts {
            return;
        }
        let base = &base;
        // SAFETY: the memory holds `each` values for each part behind the next line of the cache.
        let mut next = unsafe { base.0.add(base.0.align_offset(LINE) + part * each) };
        let places = pieces.map(|piece| {
            let place = next;
            next = next.wrapping_add(piece);
            place
        });
        let mut worker = Worker::<T, V, E>::new(batch, plan, places);
        let end = n_panels * (part + 1) / parts;
        // SAFETY: panels do not share lines, and the caller promises the instructions of the vectors.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || {
                    for number in n_panels * part / parts..end {
                        worker.next =
                            if number + 1 < end { plan.panel(number + 1).start } else { usize::MAX };
                        worker.solve(plan.panel(number));
                    }
                },
            );
        }
        fence();
    };
    if parts == 1 { work(0) } else { cpu.for_threads(work) }
}

/// A pointer to memory that threads have shares of.
struct Shared<T>(*mut T);

// SAFETY: every thread uses a share of its own.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<'a, 'b, T: Lanes, V: Vector<T>, E: Elimination<T, V>> Worker<'a, 'b, T, V, E> {
    fn new(
        batch: &'a Batch<'b, T>,
        plan: &'a Plan,
        [kept, state, a, b, c, d, whole_lines]: [*mut T; 7],
    ) -> Self {
        let lines = &batch.problem.lines;
        Self {
            batch,
            plan,
            places: Places::new(lines.stride),
            band_places: Places::new(lines.band_stride),
            memory: Memory { lanes: 0, n: lines.length, kept, state },
            stages: [a, b, c, d],
            whole_lines,
            next: usize::MAX,
            kind: PhantomData,
        }
    }

    /// Solves a panel.
    ///
    /// # Safety
    /// No other thread writes these lines; the processor has the instructions.
    #[inline(always)]
    unsafe fn solve(&mut self, panel: Range<usize>) {
        let (lines, lanes) = (&self.batch.problem.lines, panel.len().next_multiple_of(V::LANES));
        let count = [panel.len(), lanes];
        self.memory.lanes = lanes;
        self.places.set(lines, panel.start, count, |axis| axis.stride);
        self.band_places.set(lines, panel.start, count, |axis| axis.band_stride);
        // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
        unsafe {
            let (mut failed, mut ahead) = (Vec::new(), self.ahead());
            if !self.eliminate(&panel, &mut ahead) {
                failed = failures::look_for(self.batch, panel.clone());
            }
            if !self.go_back(panel.len(), &mut ahead) || !failed.is_empty() {
                fence();
                failures::mark(self.batch, panel, &failed);
            }
        }
    }

    /// Returns the number of blocks of rows.
    #[inline(always)]
    fn n_blocks(&self) -> usize {
        let (n, block) = (self.memory.n, self.plan.block);
        if block == 1 { n } else { n.saturating_sub(V::LANES) / block + 1 }
    }

    /// The rows of a block; unless there is a block for each row, the last one has at least a vector of them, where
    /// systems are not shorter.
    #[inline(always)]
    fn block(&self, number: usize) -> Range<usize> {
        let first = number * self.plan.block;
        first..if number + 1 == self.n_blocks() { self.memory.n } else { first + self.plan.block }
    }

    /// The way forwards; whether all was sound.
    #[inline(always)]
    unsafe fn eliminate(&mut self, panel: &Range<usize>, ahead: &mut Ahead<T>) -> bool {
        let n = self.memory.n;
        // SAFETY: the caller's promises; stages hold a block of rows.
        unsafe {
            if E::KEEPS_LAST_ROW {
                let last = self.read(panel, n - 1..n);
                self.memory.begin::<V, E>(last);
            }
            let mut sound = V::splat(T::ZERO).always();
            for number in 0..self.n_blocks() {
                let rows = self.block(number);
                let from = self.read(panel, rows.clone());
                sound = self.memory.forward::<V, E>(rows, from, ahead, sound);
            }
            self.memory.turn::<V, E>(sound)
        }
    }

    /// The way back; whether the first row of the solution is finite.
    #[inline(always)]
    unsafe fn go_back(&mut self, count: usize, ahead: &mut Ahead<T>) -> bool {
        let (u, lines, stage) = (self.batch.u, &self.batch.problem.lines, self.stages[3]);
        let (n, is_streamed, pitch) =
            (lines.length, self.plan.is_streamed, lines.length.next_multiple_of(16));
        let whole = is_streamed && self.places.is_transposed() && count == self.memory.lanes;
        let streams = is_streamed && stream::is_aligned(u, self.places.start(0), lines.stride);
        for number in (0..self.n_blocks()).rev() {
            let rows = self.block(number);
            // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
            unsafe {
                let places = &self.places;
                let target = places.target(u, &rows, stage, streams);
                self.memory.backward::<V, E>(rows.clone(), target, ahead);
                if whole {
                    places.write::<T, V>(self.whole_lines, rows, count, stage, |lane| lane * pitch);
                } else if !places.is_direct() {
                    places.write::<T, V>(u, rows, count, stage, |lane| places.start(lane));
                }
            }
        }
        if whole {
            for lane in 0..count {
                // SAFETY: as above.
                unsafe {
                    let to = u.add(self.places.start(lane));
                    stream_copy::<T, V>(self.whole_lines.add(lane * pitch), to, n);
                }
            }
        }
        // SAFETY: there was a row.
        unsafe { self.memory.is_finite::<V, E>() }
    }

    /// Returns the memory of the next panel to prefetch.
    #[inline(always)]
    fn ahead(&self) -> Ahead<T> {
        let lines = &self.batch.problem.lines;
        let pieces = self.places.pieces(lines.length).filter(|_| self.next < usize::MAX);
        let d = self.batch.d.wrapping_add(lines.start(self.next.min(lines.n_lines() - 1)));
        match (pieces, self.batch.bands) {
            (None, _) => Ahead::NOTHING,
            (Some(pieces), Source::Arrays(bands))
                if self.band_places.pieces(lines.length) == Some(pieces) =>
            {
                let [a, b, c] = bands.map(|band| band.wrapping_add(lines.band_start(self.next)));
                Ahead::new([a, b, c, d], pieces)
            }
            (Some(pieces), _) => Ahead::new([d; 4], pieces),
        }
    }

    /// The bands and right sides of some rows.
    #[inline(always)]
    unsafe fn read(&self, panel: &Range<usize>, rows: Range<usize>) -> [Rows<T>; 4] {
        // SAFETY: the caller's promises.
        let d = unsafe { self.places.read::<T, V>(self.batch.d, rows.clone(), self.stages[3]) };
        let [lower, diagonal, upper] = match self.batch.bands {
            // Three calls by hand: a closure of the library's would not be compiled for these vectors.
            // SAFETY: the caller's promises.
            Source::Arrays([lower, diagonal, upper]) => unsafe {
                let (places, [a, b, c, _]) = (&self.band_places, self.stages);
                [
                    places.read::<T, V>(lower, rows.clone(), a),
                    places.read::<T, V>(diagonal, rows.clone(), b),
                    places.read::<T, V>(upper, rows, c),
                ]
            },
            // SAFETY: the stages hold a block of rows of all lanes, and belong to this thread.
            Source::Rule(rule) => unsafe { self.form(rule, panel, rows) },
        };
        [lower, diagonal, upper, d]
    }

    /// Bands from a rule; lanes without a line repeat the last one.
    #[inline(never)]
    unsafe fn form(&self, rule: &dyn BandRule<T>, panel: &Range<usize>, rows: Range<usize>) -> [Rows<T>; 3] {
        let (lanes, count) = (self.memory.lanes, panel.len());
        // SAFETY: the stages hold a block of rows of all lanes, do not overlap, and belong to this thread.
        let [mut lower, mut diagonal, mut upper] =
            [0, 1, 2].map(|k| unsafe { std::slice::from_raw_parts_mut(self.stages[k], rows.len() * lanes) });
        let len = rows.len() * count;
        let n_rows = rows.len();
        rule.fill(panel.clone(), rows, &mut lower[..len], &mut diagonal[..len], &mut upper[..len]);
        if count < lanes {
            for band in [&mut lower, &mut diagonal, &mut upper] {
                for row in (0..n_rows).rev() {
                    band.copy_within(row * count..(row + 1) * count, row * lanes);
                    let last = band[row * lanes + count - 1];
                    band[row * lanes + count..(row + 1) * lanes].fill(last);
                }
            }
        }
        [0, 1, 2].map(|k| Rows { first: self.stages[k].cast_const(), stride: lanes })
    }
}
