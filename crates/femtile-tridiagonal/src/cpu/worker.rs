//! Panels of lines, one after the other, on each thread.

use std::marker::PhantomData;
use std::ops::Range;

use femtile_device::{Cpu, Scalar};

use super::ahead::{Ahead, Stretch};
use super::panel::{Places, Rows, stream_line};
use super::plan::Plan;
use super::sweep::{Backward, Batch, Elimination, Forward, Memory, Source, sweep};
use super::{LINE, MIN_ENTRIES, failures};
use crate::BandRule;
use femtile_device::cpu::vector::{Lanes, Vector, fence};

/// Bytes of each array between what is prefetched and what is read, where rows are used where they are.
const DISTANCE: usize = 6144;

/// A panel on its way forwards or back.
struct Panel<T> {
    /// Its lines; none before the first and behind the last panel.
    lines: Range<usize>,
    /// Where the lines begin in `d` and `u`.
    places: Places,
    memory: Memory<T>,
    /// Lines that fail, and their rows.
    failed: Vec<(usize, usize)>,
}

impl<T: Scalar> Panel<T> {
    fn is_none(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether whole lines of the solution are collected before they are written.
    #[inline(always)]
    fn is_whole(&self) -> bool {
        self.places.is_transposed() && self.lines.len() == self.memory.lanes
    }
}

/// The memory of one thread, and the two panels that it is at.
struct Worker<'a, 'b, T, V, E> {
    batch: &'a Batch<'b, T>,
    plan: &'a Plan,
    /// The panel that goes forwards.
    front: Panel<T>,
    /// The panel before it, which goes back meanwhile.
    back: Panel<T>,
    /// Where the bands of the first of them begin.
    band_places: Places,
    /// Five blocks of rows: the bands, the right side and the solution.
    stages: [*mut T; 5],
    /// Whole lines of the solution on their way past the cache.
    whole_lines: *mut T,
    kind: PhantomData<(V, E)>,
}

/// Values of memory for each thread, in pieces that begin at lines of the cache: what is kept, what goes along with
/// either panel, five stages and whole lines.
fn pieces<T: Lanes, V: Vector<T>, E: Elimination<T, V>>(batch: &Batch<'_, T>, plan: &Plan) -> [usize; 9] {
    let (n, lanes) = (batch.problem.lines.length, plan.lanes.next_multiple_of(V::LANES));
    let is_contiguous = batch.problem.lines.stride == 1;
    let whole = if plan.is_streamed && is_contiguous { lanes * n.next_multiple_of(16) } else { 0 };
    // The last block may be longer, by less than a vector.
    let stage = (plan.block + V::LANES) * lanes;
    let (kept, state) = (E::SLOTS * n * lanes, E::STATE * lanes);
    [kept, state, state, stage, stage, stage, stage, stage, whole]
        .map(|piece| piece.next_multiple_of(LINE / size_of::<T>()))
}

/// The distribution of panels and workspace over threads.
pub(super) struct Shares {
    parts: usize,
    pieces: [usize; 9],
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
        let numbers = n_panels * part / parts..n_panels * (part + 1) / parts;
        // SAFETY: panels do not share lines, and the caller promises the instructions of the vectors.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || worker.solve(numbers),
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
        [kept, state, state_back, a, b, c, d, u, whole_lines]: [*mut T; 9],
    ) -> Self {
        let lines = &batch.problem.lines;
        let (n, pitch) = (lines.length, plan.lanes.next_multiple_of(V::LANES));
        let step = E::SLOTS * pitch;
        let last = kept.wrapping_add((n - 1) * step);
        let panel = |kept, step, state| Panel {
            lines: 0..0,
            places: Places::new(lines.stride),
            memory: Memory { lanes: 0, n, kept, step, state },
            failed: Vec::new(),
        };
        // Where panels do not overlap, nothing needs a place of its own.
        let (back, u) = if plan.block > 1 {
            (panel(kept, step as isize, state_back), d)
        } else {
            (panel(last, -(step as isize), state_back), u)
        };
        Self {
            batch,
            plan,
            front: panel(kept, step as isize, state),
            back,
            band_places: Places::new(lines.band_stride),
            stages: [a, b, c, d, u],
            whole_lines,
            kind: PhantomData,
        }
    }

    /// Solves panels; where rows are used where they are, each goes forwards while the one before goes back.
    ///
    /// # Safety
    /// No other thread writes these lines; the processor has the instructions.
    #[inline(always)]
    unsafe fn solve(&mut self, numbers: Range<usize>) {
        let panel = |number| if number < numbers.end { self.plan.panel(number) } else { 0..0 };
        let is_staged = self.plan.block > 1;
        // One step more, in which the last panel goes back.
        for number in numbers.start..numbers.end + usize::from(!is_staged) {
            self.begin(panel(number));
            let mut ahead = self.ahead(panel(number + 1));
            // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
            unsafe {
                self.advance(&mut ahead);
                if is_staged {
                    self.begin(0..0);
                    self.advance(&mut ahead);
                }
            }
        }
    }

    /// One panel goes forwards, the other back; then the first is the one to go back.
    #[inline(always)]
    unsafe fn advance(&mut self, ahead: &mut Ahead<T>) {
        // SAFETY: what the caller of `solve` promises.
        unsafe {
            let is_sound = self.sweep(ahead);
            if !self.back.is_none() {
                self.end_back();
            }
            if !is_sound {
                self.front.failed = failures::look_for(self.batch, self.front.lines.clone());
            }
        }
        std::mem::swap(&mut self.front, &mut self.back);
    }

    /// Takes the lines of the next panel.
    #[inline(always)]
    fn begin(&mut self, panel: Range<usize>) {
        let (lines, lanes) = (&self.batch.problem.lines, panel.len().next_multiple_of(V::LANES));
        let (first, count) = (panel.start, [panel.len(), lanes]);
        self.front.memory.lanes = lanes;
        self.front.lines = panel;
        self.front.failed.clear();
        if !self.front.is_none() {
            self.front.places.set(lines, first, count, lines.axes.each_ref().map(|axis| axis.stride));
            self.band_places.set(lines, first, count, lines.axes.each_ref().map(|axis| axis.band_stride));
        }
    }

    /// Returns the number of blocks of rows.
    #[inline(always)]
    fn n_blocks(&self) -> usize {
        let (n, block) = (self.front.memory.n, self.plan.block);
        if block == 1 { n } else { n.saturating_sub(V::LANES) / block + 1 }
    }

    /// The rows of a block; unless there is a block for each row, the last one has at least a vector of them, where
    /// systems are not shorter.
    #[inline(always)]
    fn block(&self, number: usize) -> Range<usize> {
        let first = number * self.plan.block;
        let is_last = number + 1 == self.n_blocks();
        first..if is_last { self.front.memory.n } else { first + self.plan.block }
    }

    /// One panel forwards, another back; whether all is sound in the first.
    #[inline(always)]
    unsafe fn sweep(&mut self, ahead: &mut Ahead<T>) -> bool {
        let (goes_on, goes_back) = (!self.front.is_none(), !self.back.is_none());
        let n = self.front.memory.n;
        let nothing = Rows { first: std::ptr::null(), stride: 0 };
        // SAFETY: the caller's promises; stages hold a block of rows.
        unsafe {
            if E::KEEPS_LAST_ROW && goes_on {
                let last = self.read(n - 1..n);
                self.front.memory.begin::<V, E>(last);
            }
            let mut sound = V::splat(T::ZERO).always();
            for number in 0..self.n_blocks() {
                let rows = if goes_on { self.block(number) } else { 0..0 };
                let rows_back = if goes_back { self.block(self.n_blocks() - 1 - number) } else { 0..0 };
                let from = if goes_on { self.read(rows.clone()) } else { [nothing; 4] };
                let to =
                    self.back.places.target(self.batch.u, &rows_back, self.stages[4], self.plan.is_streamed);
                let front = Forward { memory: self.front.memory, rows, from };
                let back = Backward { memory: self.back.memory, rows: rows_back.clone(), to };
                sound = sweep::<T, V, E>(&front, &back, ahead, sound);
                if goes_back {
                    self.write(rows_back);
                }
            }
            !goes_on || self.front.memory.turn::<V, E>(sound)
        }
    }

    /// Writes rows of the solution that are staged.
    #[inline(always)]
    unsafe fn write(&self, rows: Range<usize>) {
        let (places, count, stage) = (&self.back.places, self.back.lines.len(), self.stages[4]);
        let pitch = self.whole_pitch();
        // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
        unsafe {
            if self.plan.is_streamed && self.back.is_whole() {
                places.write::<T, V>((self.whole_lines, Some(pitch)), rows, count, stage);
            } else if places.is_direct() {
                if self.plan.is_streamed {
                    places.stream_rows::<T, V>(self.batch.u, rows, stage);
                }
            } else {
                places.write::<T, V>((self.batch.u, None), rows, count, stage);
            }
        }
    }

    /// From one of the whole lines to the next.
    #[inline(always)]
    fn whole_pitch(&self) -> usize {
        self.front.memory.n.next_multiple_of(16)
    }

    /// Ends the way back: the solution is where it belongs, and lines that fail are marked.
    #[inline(always)]
    unsafe fn end_back(&mut self) {
        let (back, n, pitch) = (&self.back, self.back.memory.n, self.whole_pitch());
        // SAFETY: the caller's promises; the memory holds whole lines of a panel.
        unsafe {
            if self.plan.is_streamed && back.is_whole() {
                for lane in 0..back.lines.len() {
                    let to = self.batch.u.add(back.places.start(lane));
                    stream_line::<T, V>(self.whole_lines.add(lane * pitch), to, n);
                }
            }
            if !back.memory.is_finite::<V, E>() || !back.failed.is_empty() {
                fence();
                failures::mark(self.batch, back.lines.clone(), &back.failed);
            }
        }
    }

    /// Returns what is to be prefetched while a panel goes forwards that `next` follows.
    #[inline(always)]
    fn ahead(&self, next: Range<usize>) -> Ahead<T> {
        let places = &self.front.places;
        let pieces = places.pieces(self.front.memory.n).filter(|_| !self.front.is_none());
        let Some(pieces) = pieces else { return Ahead::new(Stretch::NOTHING, Stretch::NOTHING) };
        let then = if next.is_empty() { Stretch::NOTHING } else { self.stretch(next.start, pieces) };
        if places.is_transposed() {
            return Ahead::new(then, Stretch::NOTHING);
        }
        Ahead::new(self.stretch(self.front.lines.start, pieces), then).skip(DISTANCE / LINE)
    }

    /// Where a panel lies whose pieces are as those of the one at hand.
    #[inline(always)]
    fn stretch(&self, first: usize, pieces: [usize; 3]) -> Stretch<T> {
        let lines = &self.batch.problem.lines;
        let d = self.batch.d.wrapping_add(lines.start(first));
        match self.batch.bands {
            Source::Arrays(bands) if self.band_places.pieces(lines.length) == Some(pieces) => {
                let [a, b, c] = bands.map(|band| band.wrapping_add(lines.band_start(first)));
                Stretch::new([a, b, c, d], pieces)
            }
            _ => Stretch::new([d; 4], pieces),
        }
    }

    /// The bands and right sides of some rows of the panel that goes forwards.
    #[inline(always)]
    unsafe fn read(&self, rows: Range<usize>) -> [Rows<T>; 4] {
        // SAFETY: the caller's promises.
        let d = unsafe { self.front.places.read::<T, V>(self.batch.d, rows.clone(), self.stages[3]) };
        let [lower, diagonal, upper] = match self.batch.bands {
            // Three calls by hand: a closure of the library's would not be compiled for these vectors.
            // SAFETY: the caller's promises.
            Source::Arrays([lower, diagonal, upper]) => unsafe {
                let (places, [a, b, c, ..]) = (&self.band_places, self.stages);
                [
                    places.read::<T, V>(lower, rows.clone(), a),
                    places.read::<T, V>(diagonal, rows.clone(), b),
                    places.read::<T, V>(upper, rows, c),
                ]
            },
            // SAFETY: the stages hold a block of rows of all lanes, and belong to this thread.
            Source::Rule(rule) => unsafe {
                let [a, b, c, ..] = self.stages;
                form(rule, (self.front.lines.clone(), self.front.memory.lanes), rows, [a, b, c])
            },
        };
        [lower, diagonal, upper, d]
    }
}

/// Writes bands from a rule to stages; lanes without a line repeat the last one.
///
/// # Safety
/// Each stage holds these rows of all lanes; stages do not overlap, and belong to this thread.
#[inline(never)]
unsafe fn form<T: Scalar>(
    rule: &dyn BandRule<T>,
    (panel, lanes): (Range<usize>, usize),
    rows: Range<usize>,
    stages: [*mut T; 3],
) -> [Rows<T>; 3] {
    let count = panel.len();
    // SAFETY: what the caller promises.
    let [mut lower, mut diagonal, mut upper] =
        stages.map(|stage| unsafe { std::slice::from_raw_parts_mut(stage, rows.len() * lanes) });
    let len = rows.len() * count;
    let n_rows = rows.len();
    rule.fill(panel, rows, &mut lower[..len], &mut diagonal[..len], &mut upper[..len]);
    if count < lanes {
        for band in [&mut lower, &mut diagonal, &mut upper] {
            for row in (0..n_rows).rev() {
                band.copy_within(row * count..(row + 1) * count, row * lanes);
                let last = band[row * lanes + count - 1];
                band[row * lanes + count..(row + 1) * lanes].fill(last);
            }
        }
    }
    stages.map(|stage| Rows { first: stage.cast_const(), stride: lanes })
}
