//! Elimination forwards and backwards over panels of lines, a lane of a vector for each.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::{Cpu, Scalar};

use super::panel::{Places, Rows, RowsMut};
use super::stream::{self, stream_copy};
use super::vector::{Lanes, Vector, fence};
use crate::tridiagonal::reference::solve_line;
use crate::tridiagonal::{BandRule, Problem};

/// One way to eliminate, with the state of W vectors of systems.
pub(crate) trait Elimination<T: Scalar, V: Vector<T>, const W: usize>: Sized {
    /// Values that are kept of each row between the sweeps.
    const SLOTS: usize;
    /// Whether the last row must be known at the beginning.
    const KEEPS_LAST_ROW: bool;

    /// The state before the first row; `last_row` holds the lower, diagonal, upper and right values of all lanes.
    ///
    /// # Safety
    /// The processor has the instructions; the last row can be read where it is kept.
    unsafe fn begin(last_row: *const T) -> Self;

    /// Eliminates `rows`, which come in order, and keeps what the way back needs.
    ///
    /// # Safety
    /// The bands and `d` hold these rows for W vectors, and `scratch` [`Elimination::SLOTS`] values for each row
    /// and lane from the first row of the systems on.
    unsafe fn forward(
        &mut self,
        rows: Range<usize>,
        n: usize,
        bands: [Rows<T>; 3],
        d: Rows<T>,
        scratch: *mut T,
    );

    /// Ends the way forwards; whether all pivots were sound and all values finite.
    ///
    /// # Safety
    /// As [`Elimination::forward`].
    unsafe fn turn(&mut self, n: usize, scratch: *mut T) -> bool;

    /// Writes the solution of `rows`, which come in order from the last; whether its first row is finite.
    ///
    /// # Safety
    /// `scratch` is what [`Elimination::forward`] left; `u` can be written.
    unsafe fn backward(&mut self, rows: Range<usize>, n: usize, scratch: *const T, u: RowsMut<T>) -> bool;
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
    pub problem: &'a Problem,
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

impl<T: Scalar> Batch<'_, T> {
    /// Whether the solution overwrites the right side.
    pub fn is_in_place(&self) -> bool {
        std::ptr::eq(self.u, self.d)
    }

    fn note_failure(&self, line: usize, row: usize) {
        self.n_failed.fetch_add(1, Ordering::Relaxed);
        let key = (line * self.problem.lines.length + row) as u64;
        self.first_failed.fetch_min(key, Ordering::Relaxed);
    }
}

/// The memory of one thread, and the panel that it is at.
struct Worker<'a, 'b, T: Scalar, V, E, const W: usize> {
    batch: &'a Batch<'b, T>,
    /// Where the lines of the panel begin in `d` and `u`, and in the bands.
    places: Places,
    band_places: Places,
    /// What is kept between the sweeps.
    kept: *mut T,
    /// Four blocks of rows: the bands and the right side, or the solution.
    stages: [*mut T; 4],
    /// The last row of all lanes.
    last_row: *mut T,
    /// Whole lines of the solution on their way past the cache.
    lines: *mut T,
    block: usize,
    /// How far the next panel lies behind this one, in `d` and in the bands.
    ahead: usize,
    band_ahead: usize,
    failed: Vec<(usize, usize)>,
    kind: PhantomData<(V, E)>,
}

/// Values of memory for each thread, in pieces that begin at lines of the cache.
fn pieces(n: usize, slots: usize, lanes: usize, block: usize, has_lines: bool) -> [usize; 7] {
    let stage = block * lanes;
    let lines = if has_lines { lanes * n.next_multiple_of(16) } else { 0 };
    [slots * n * lanes, stage, stage, stage, stage, 4 * lanes, lines]
}

/// How a batch is cut.
pub(crate) struct Plan {
    /// Lines before the first whole panel, so that panels begin at lines of the cache.
    pub head: usize,
    /// Lanes of a panel.
    pub lanes: usize,
    /// Rows that are staged at once.
    pub block: usize,
    /// Whether solutions go past the cache.
    pub is_streamed: bool,
}

impl Plan {
    fn n_panels(&self, n_lines: usize) -> usize {
        usize::from(self.head > 0) + (n_lines - self.head).div_ceil(self.lanes)
    }

    fn panel(&self, number: usize, n_lines: usize) -> Range<usize> {
        if self.head == 0 {
            let first = number * self.lanes;
            return first..(first + self.lanes).min(n_lines);
        }
        if number == 0 {
            return 0..self.head;
        }
        let first = self.head + (number - 1) * self.lanes;
        first..(first + self.lanes).min(n_lines)
    }
}

/// Solves all lines by one elimination on vectors of one kind.
pub(crate) fn solve_panels<T: Lanes, V: Vector<T>, E: Elimination<T, V, W>, const W: usize>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    plan: &Plan,
    memory: &mut dyn FnMut(usize) -> Result<*mut T, crate::LinalgError>,
) -> Result<(), crate::LinalgError> {
    let lines = &batch.problem.lines;
    let (n, n_lines) = (lines.length, lines.n_lines());
    let n_panels = plan.n_panels(n_lines);
    let parts = cpu.threads().min(n_panels).min((n * n_lines / MIN_ENTRIES).max(1));
    let line_of_cache = LINE / size_of::<T>();
    let pieces = pieces(n, E::SLOTS, W * V::LANES, plan.block, plan.is_streamed && lines.stride == 1);
    let each: usize = pieces.iter().map(|piece| piece.next_multiple_of(line_of_cache)).sum();
    let base = Shared(memory(parts * each + line_of_cache)?);
    let work = |part: usize| {
        if part >= parts {
            return;
        }
        let base = &base;
        // SAFETY: the memory holds `each` values for each part behind the next line of the cache.
        let mut next = unsafe { base.0.add(base.0.align_offset(LINE) + part * each) };
        let places = pieces.map(|piece| {
            let place = next;
            next = next.wrapping_add(piece.next_multiple_of(line_of_cache));
            place
        });
        let mut worker = Worker::<T, V, E, W>::new(batch, places, plan.block);
        cpu.vectorize(
            #[inline(always)]
            || {
                for number in n_panels * part / parts..n_panels * (part + 1) / parts {
                    // SAFETY: panels do not share lines, and the device has the level of the vectors.
                    unsafe { worker.solve(plan.panel(number, n_lines), plan) };
                }
            },
        );
        fence();
    };
    if parts == 1 {
        work(0)
    } else {
        cpu.for_threads(work)
    }
    Ok(())
}

/// Entries below which a further thread costs more than it brings.
const MIN_ENTRIES: usize = 8192;

/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// A pointer to memory that threads have shares of.
struct Shared<T>(*mut T);

// SAFETY: every thread uses a share of its own.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<'a, 'b, T: Lanes, V: Vector<T>, E: Elimination<T, V, W>, const W: usize> Worker<'a, 'b, T, V, E, W> {
    fn new(batch: &'a Batch<'b, T>, [kept, a, b, c, d, last_row, lines]: [*mut T; 7], block: usize) -> Self {
        let of = &batch.problem.lines;
        Self {
            batch,
            places: Places::new(W * V::LANES, of.stride),
            band_places: Places::new(W * V::LANES, of.band_stride),
            kept,
            stages: [a, b, c, d],
            last_row,
            lines,
            block,
            ahead: 0,
            band_ahead: 0,
            failed: Vec::new(),
            kind: PhantomData,
        }
    }

    /// Solves a panel.
    ///
    /// # Safety
    /// No other thread writes these lines; the processor has the instructions.
    #[inline(always)]
    unsafe fn solve(&mut self, panel: Range<usize>, plan: &Plan) {
        let is_streamed = plan.is_streamed;
        let (lines, n) = (&self.batch.problem.lines, self.batch.problem.lines.length);
        self.places.set(lines, panel.start, panel.len(), |axis| axis.stride);
        self.band_places.set(lines, panel.start, panel.len(), |axis| axis.band_stride);
        let next = panel.end.min(lines.n_lines() - 1);
        self.ahead = lines.start(next).wrapping_sub(lines.start(panel.start));
        self.band_ahead = lines.band_start(next).wrapping_sub(lines.band_start(panel.start));
        let block = self.block;
        // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
        unsafe {
            let mut state = self.eliminate(&panel, block);
            if !state.turn(n, self.kept) {
                self.look_for_failures(&panel);
            }
            let whole = is_streamed && self.places.is_transposed() && panel.len() == W * V::LANES;
            let mut is_finite = true;
            for first in (0..n).step_by(block).rev() {
                let rows = first..(first + block).min(n);
                let u = self.batch.u;
                if let Source::Arrays([_, _, upper]) = self.batch.bands {
                    self.band_places.prefetch(upper, rows.clone(), self.band_ahead);
                }
                self.places.prefetch(self.batch.d, rows.clone(), self.ahead);
                let streams = is_streamed && stream::is_aligned(u, &self.places.starts, lines.stride);
                let target = self.places.target(u, &rows, self.stages[3], streams);
                is_finite = state.backward(rows.clone(), n, self.kept, target);
                if whole {
                    let (to, pitch) = (self.lines, n.next_multiple_of(16));
                    self.places.write::<T, V>(to, rows, panel.len(), self.stages[3], |lane| lane * pitch);
                } else if !self.places.is_direct() {
                    let starts = &self.places.starts;
                    self.places.write::<T, V>(u, rows, panel.len(), self.stages[3], |lane| starts[lane]);
                }
            }
            if whole {
                for (lane, start) in self.places.starts.iter().enumerate() {
                    let from = self.lines.add(lane * n.next_multiple_of(16));
                    stream_copy::<T, V>(from, self.batch.u.add(*start), n);
                }
            }
            if !is_finite || !self.failed.is_empty() {
                fence();
                self.mark_failures(&panel);
            }
        }
    }

    /// The way forwards.
    #[inline(always)]
    unsafe fn eliminate(&mut self, panel: &Range<usize>, block: usize) -> E {
        let n = self.batch.problem.lines.length;
        // SAFETY: the caller's promises; stages hold a block of rows, and `kept` all of them.
        unsafe {
            if E::KEEPS_LAST_ROW {
                let ([lower, diagonal, upper], d) = self.read(panel, n - 1..n);
                for (k, rows) in [lower, diagonal, upper, d].into_iter().enumerate() {
                    for lane in (0..W * V::LANES).step_by(V::LANES) {
                        V::load(rows.at(0, lane)).store(self.last_row.add(k * W * V::LANES + lane));
                    }
                }
            }
            let mut state = E::begin(self.last_row);
            for first in (0..n).step_by(block) {
                let rows = first..(first + block).min(n);
                if let Source::Arrays([lower, diagonal, _]) = self.batch.bands {
                    self.band_places.prefetch(lower, rows.clone(), self.band_ahead);
                    self.band_places.prefetch(diagonal, rows.clone(), self.band_ahead);
                }
                let (bands, d) = self.read(panel, rows.clone());
                state.forward(rows, n, bands, d, self.kept);
            }
            state
        }
    }

    /// The bands and right sides of some rows.
    #[inline(always)]
    unsafe fn read(&mut self, panel: &Range<usize>, rows: Range<usize>) -> ([Rows<T>; 3], Rows<T>) {
        // SAFETY: the caller's promises.
        let d = unsafe { self.places.read::<T, V>(self.batch.d, rows.clone(), self.stages[3]) };
        let bands = match self.batch.bands {
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
        (bands, d)
    }

    /// Bands from a rule; lanes without a line repeat the last one.
    #[inline(never)]
    unsafe fn form(
        &mut self,
        rule: &dyn BandRule<T>,
        panel: &Range<usize>,
        rows: Range<usize>,
    ) -> [Rows<T>; 3] {
        let (lanes, count) = (W * V::LANES, panel.len());
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

    /// Finds the lines of a panel that fail, line by line, while their right sides are still there.
    #[cold]
    #[inline(never)]
    unsafe fn look_for_failures(&mut self, panel: &Range<usize>) {
        let problem = self.batch.problem;
        for (lane, line) in panel.clone().enumerate() {
            // SAFETY: the caller's promises: this thread alone has these lines.
            let [a, b, c, d] = unsafe { self.gather(lane, line) };
            if let Err(row) = solve_line(problem, &a, &b, &c, &d) {
                self.failed.push((lane, row));
            }
        }
    }

    /// The bands and the right side of one line.
    unsafe fn gather(&self, lane: usize, line: usize) -> [Vec<T>; 4] {
        let lines = &self.batch.problem.lines;
        let column = |source: *const T, start: usize, stride: usize| {
            // SAFETY: these entries lie within the arrays, as the caller of the solve promises.
            (0..lines.length).map(|row| unsafe { *source.add(start + row * stride) }).collect::<Vec<T>>()
        };
        let d = column(self.batch.d, self.places.starts[lane], lines.stride);
        let mut of_line =
            [vec![T::ZERO; lines.length], vec![T::ZERO; lines.length], vec![T::ZERO; lines.length]];
        match self.batch.bands {
            Source::Arrays(bands) => {
                of_line = bands.map(|band| column(band, self.band_places.starts[lane], lines.band_stride));
            }
            Source::Rule(rule) => {
                let [lower, diagonal, upper] = &mut of_line;
                rule.fill(line..line + 1, 0..lines.length, lower, diagonal, upper);
            }
        }
        let [a, b, c] = of_line;
        [a, b, c, d]
    }

    /// Fills lines that failed with NaN, those whose solution left the range of numbers included.
    #[cold]
    #[inline(never)]
    unsafe fn mark_failures(&mut self, panel: &Range<usize>) {
        let lines = &self.batch.problem.lines;
        for lane in 0..panel.len() {
            let start = self.places.starts[lane];
            // SAFETY: this thread alone has these lines.
            let entry = |row: usize| unsafe { self.batch.u.add(start + row * lines.stride) };
            let found = self.failed.iter().find(|failed| failed.0 == lane).map(|failed| failed.1);
            // SAFETY: as above.
            let left_range = || (0..lines.length).rev().find(|&row| !unsafe { *entry(row) }.is_finite());
            if let Some(row) = found.or_else(left_range) {
                self.batch.note_failure(panel.start + lane, row);
                for row in 0..lines.length {
                    // SAFETY: as above.
                    unsafe { *entry(row) = T::from_f64(f64::NAN) };
                }
            }
        }
        self.failed.clear();
    }
}
