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

/// Some lines in the lanes of W vectors, in one of several groups that move row by row together.
struct Group<T: Scalar, E> {
    lines: Range<usize>,
    /// Where the lines begin in `d` and `u`, and in the bands.
    places: Places,
    band_places: Places,
    state: E,
    /// What is kept between the sweeps.
    kept: *mut T,
    /// Lanes that failed, with their rows.
    failed: Vec<(usize, usize)>,
}

/// The memory of one thread, and the groups that it is at.
struct Worker<'a, 'b, T: Scalar, V, E, const W: usize> {
    batch: &'a Batch<'b, T>,
    plan: &'a Plan,
    groups: Vec<Group<T, E>>,
    /// Four blocks of rows: the bands and the right side, or the solution.
    stages: [*mut T; 4],
    /// The last row of all lanes.
    last_row: *mut T,
    /// Whole lines of the solution on their way past the cache.
    lines: *mut T,
    kind: PhantomData<V>,
}

/// Values of memory for each thread, in pieces that begin at lines of the cache.
fn pieces(n: usize, slots: usize, lanes: usize, plan: &Plan, has_lines: bool) -> [usize; 7] {
    let stage = plan.block * lanes;
    let lines = if has_lines { lanes * n.next_multiple_of(16) } else { 0 };
    [plan.groups * slots * n * lanes, stage, stage, stage, stage, 4 * lanes, lines]
}

/// How a batch is cut.
pub(crate) struct Plan {
    /// Lines before the first whole panel, so that panels begin at lines of the cache.
    pub head: usize,
    /// Lanes of a group.
    pub lanes: usize,
    /// Groups side by side in a panel.
    pub groups: usize,
    /// Rows that are staged at once.
    pub block: usize,
    /// Rows that a group goes on by itself where nothing is staged.
    pub direct_block: usize,
    /// Whether solutions go past the cache.
    pub is_streamed: bool,
}

impl Plan {
    /// Lines of a whole panel.
    fn width(&self) -> usize {
        self.groups * self.lanes
    }

    fn n_panels(&self, n_lines: usize) -> usize {
        usize::from(self.head > 0) + (n_lines - self.head).div_ceil(self.width())
    }

    fn panel(&self, number: usize, n_lines: usize) -> Range<usize> {
        match (self.head, number) {
            (1.., 0) => 0..self.head,
            (head, _) => {
                let first = head + (number - usize::from(head > 0)) * self.width();
                first..(first + self.width()).min(n_lines)
            }
        }
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
    let pieces = pieces(n, E::SLOTS, W * V::LANES, plan, plan.is_streamed && lines.stride == 1);
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
        let mut worker = Worker::<T, V, E, W>::new(batch, plan, places);
        cpu.vectorize(
            #[inline(always)]
            || {
                for number in n_panels * part / parts..n_panels * (part + 1) / parts {
                    // SAFETY: panels do not share lines, and the device has the level of the vectors.
                    unsafe { worker.solve(plan.panel(number, n_lines)) };
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
    fn new(
        batch: &'a Batch<'b, T>,
        plan: &'a Plan,
        [kept, a, b, c, d, last_row, lines]: [*mut T; 7],
    ) -> Self {
        let (of, lanes) = (&batch.problem.lines, W * V::LANES);
        let group = |number: usize| Group {
            lines: 0..0,
            places: Places::new(lanes, of.stride),
            band_places: Places::new(lanes, of.band_stride),
            // SAFETY: the device has the level of the vectors; without a last row the state is none of a system.
            state: unsafe { E::begin(last_row) },
            kept: kept.wrapping_add(number * E::SLOTS * of.length * lanes),
            failed: Vec::new(),
        };
        let groups = (0..plan.groups).map(group).collect();
        Self { batch, plan, groups, stages: [a, b, c, d], last_row, lines, kind: PhantomData }
    }

    /// Solves a panel.
    ///
    /// # Safety
    /// No other thread writes these lines; the processor has the instructions.
    #[inline(always)]
    unsafe fn solve(&mut self, panel: Range<usize>) {
        let (batch, n) = (self.batch, self.batch.problem.lines.length);
        let count = panel.len().div_ceil(W * V::LANES);
        let mut groups = std::mem::take(&mut self.groups);
        let (at, _) = groups.split_at_mut(count);
        let mut is_direct = matches!(batch.bands, Source::Arrays(_));
        for (number, group) in at.iter_mut().enumerate() {
            let first = panel.start + number * W * V::LANES;
            group.lines = first..(first + W * V::LANES).min(panel.end);
            group.places.set(&batch.problem.lines, first, group.lines.len(), |axis| axis.stride);
            group.band_places.set(&batch.problem.lines, first, group.lines.len(), |axis| axis.band_stride);
            is_direct &= group.places.is_direct() && group.band_places.is_direct();
        }
        let block = if is_direct { self.plan.direct_block } else { self.plan.block };
        // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
        unsafe {
            self.eliminate(at, block);
            for group in at.iter_mut() {
                if !group.state.turn(n, group.kept) {
                    look_for_failures(batch, group);
                }
            }
            self.go_back(at, block);
        }
        self.groups = groups;
    }

    /// The way forwards.
    #[inline(always)]
    unsafe fn eliminate(&mut self, groups: &mut [Group<T, E>], block: usize) {
        let n = self.batch.problem.lines.length;
        // SAFETY: the caller's promises; stages hold a block of rows, and `kept` all of them.
        unsafe {
            for group in groups.iter_mut() {
                if E::KEEPS_LAST_ROW {
                    let ([lower, diagonal, upper], d) = self.read(group, n - 1..n);
                    for (k, rows) in [lower, diagonal, upper, d].into_iter().enumerate() {
                        for lane in (0..W * V::LANES).step_by(V::LANES) {
                            V::load(rows.at(0, lane)).store(self.last_row.add(k * W * V::LANES + lane));
                        }
                    }
                }
                group.state = E::begin(self.last_row);
            }
            for first in (0..n).step_by(block) {
                let rows = first..(first + block).min(n);
                for number in 0..groups.len() {
                    if number + 1 < groups.len() {
                        self.prefetch(&groups[number + 1], rows.clone(), 0, [true; 4]);
                    } else if groups.len() > 1 {
                        let next = rows.end..(rows.end + block).min(n);
                        self.prefetch(&groups[0], next, 0, [true; 4]);
                    } else {
                        // The next panel's first arrays now, the others on the way back.
                        self.prefetch(&groups[0], rows.clone(), 1, [true, true, false, false]);
                    }
                    let group = &mut groups[number];
                    let (bands, d) = self.read(group, rows.clone());
                    group.state.forward(rows.clone(), n, bands, d, group.kept);
                }
            }
        }
    }

    /// The way back.
    #[inline(always)]
    unsafe fn go_back(&mut self, groups: &mut [Group<T, E>], block: usize) {
        let (u, lines, stage) = (self.batch.u, &self.batch.problem.lines, self.stages[3]);
        let (n, is_streamed, pitch) =
            (lines.length, self.plan.is_streamed, lines.length.next_multiple_of(16));
        let mut is_finite = true;
        let is_alone = groups.len() == 1;
        for first in (0..n).step_by(block).rev() {
            let rows = first..(first + block).min(n);
            for group in groups.iter_mut() {
                if is_alone {
                    self.prefetch(group, rows.clone(), 1, [false, false, true, true]);
                }
                let (places, count) = (&group.places, group.lines.len());
                let whole = is_streamed && places.is_transposed() && count == W * V::LANES;
                let streams = is_streamed && stream::is_aligned(u, &places.starts, lines.stride);
                // SAFETY: the caller's promises; rows and lanes lie within the arrays and this thread's memory.
                unsafe {
                    let target = places.target(u, &rows, stage, streams);
                    let finite = group.state.backward(rows.clone(), n, group.kept, target);
                    is_finite &= finite || first > 0;
                    if whole {
                        places.write::<T, V>(self.lines, rows.clone(), count, stage, |lane| lane * pitch);
                    } else if !places.is_direct() {
                        places.write::<T, V>(u, rows.clone(), count, stage, |lane| places.starts[lane]);
                    }
                    if whole && first == 0 {
                        for (lane, start) in places.starts.iter().enumerate() {
                            stream_copy::<T, V>(self.lines.add(lane * pitch), u.add(*start), n);
                        }
                    }
                }
            }
        }
        if !is_finite || groups.iter().any(|group| !group.failed.is_empty()) {
            fence();
            for group in groups {
                // SAFETY: this thread alone has these lines.
                unsafe { mark_failures(self.batch, group) };
            }
        }
    }

    /// Asks for some rows of the bands and right sides of a group, `ahead` panels of one group further on.
    #[inline(always)]
    fn prefetch(&self, group: &Group<T, E>, rows: Range<usize>, ahead: usize, which: [bool; 4]) {
        let lines = &self.batch.problem.lines;
        let next = (group.lines.start + ahead * self.plan.lanes).min(lines.n_lines() - 1);
        if let Source::Arrays(bands) = self.batch.bands {
            let distance = if ahead == 0 { 0 } else { lines.band_start(next) };
            let distance = if ahead == 0 { 0 } else { distance.wrapping_sub(group.band_places.starts[0]) };
            for k in 0..3 {
                if which[k] {
                    group.band_places.prefetch(bands[k], rows.clone(), distance);
                }
            }
        }
        if which[3] {
            let distance =
                if ahead == 0 { 0 } else { lines.start(next).wrapping_sub(group.places.starts[0]) };
            group.places.prefetch(self.batch.d, rows, distance);
        }
    }

    /// The bands and right sides of some rows.
    #[inline(always)]
    unsafe fn read(&self, group: &Group<T, E>, rows: Range<usize>) -> ([Rows<T>; 3], Rows<T>) {
        // SAFETY: the caller's promises.
        let d = unsafe { group.places.read::<T, V>(self.batch.d, rows.clone(), self.stages[3]) };
        let bands = match self.batch.bands {
            // Three calls by hand: a closure of the library's would not be compiled for these vectors.
            // SAFETY: the caller's promises.
            Source::Arrays([lower, diagonal, upper]) => unsafe {
                let (places, [a, b, c, _]) = (&group.band_places, self.stages);
                [
                    places.read::<T, V>(lower, rows.clone(), a),
                    places.read::<T, V>(diagonal, rows.clone(), b),
                    places.read::<T, V>(upper, rows, c),
                ]
            },
            // SAFETY: the stages hold a block of rows of all lanes, and belong to this thread.
            Source::Rule(rule) => unsafe { self.form(rule, &group.lines, rows) },
        };
        (bands, d)
    }

    /// Bands from a rule; lanes without a line repeat the last one.
    #[inline(never)]
    unsafe fn form(&self, rule: &dyn BandRule<T>, panel: &Range<usize>, rows: Range<usize>) -> [Rows<T>; 3] {
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
}

/// Finds the lines of a group that fail, line by line, while their right sides are still there.
#[cold]
#[inline(never)]
unsafe fn look_for_failures<T: Scalar, E>(batch: &Batch<'_, T>, group: &mut Group<T, E>) {
    for (lane, line) in group.lines.clone().enumerate() {
        // SAFETY: the caller's promises: this thread alone has these lines.
        let [a, b, c, d] = unsafe { gather(batch, group, lane, line) };
        if let Err(row) = solve_line(batch.problem, &a, &b, &c, &d) {
            group.failed.push((lane, row));
        }
    }
}

/// The bands and the right side of one line.
unsafe fn gather<T: Scalar, E>(
    batch: &Batch<'_, T>,
    group: &Group<T, E>,
    lane: usize,
    line: usize,
) -> [Vec<T>; 4] {
    let lines = &batch.problem.lines;
    let column = |source: *const T, start: usize, stride: usize| {
        // SAFETY: these entries lie within the arrays, as the caller of the solve promises.
        (0..lines.length).map(|row| unsafe { *source.add(start + row * stride) }).collect::<Vec<T>>()
    };
    let d = column(batch.d, group.places.starts[lane], lines.stride);
    let [a, b, c] = match batch.bands {
        Source::Arrays(bands) => {
            bands.map(|band| column(band, group.band_places.starts[lane], lines.band_stride))
        }
        Source::Rule(rule) => {
            let mut of_line =
                [vec![T::ZERO; lines.length], vec![T::ZERO; lines.length], vec![T::ZERO; lines.length]];
            let [lower, diagonal, upper] = &mut of_line;
            rule.fill(line..line + 1, 0..lines.length, lower, diagonal, upper);
            of_line
        }
    };
    [a, b, c, d]
}

/// Fills lines that failed with NaN, those whose solution left the range of numbers included.
#[cold]
#[inline(never)]
unsafe fn mark_failures<T: Scalar, E>(batch: &Batch<'_, T>, group: &mut Group<T, E>) {
    let lines = &batch.problem.lines;
    for lane in 0..group.lines.len() {
        let start = group.places.starts[lane];
        // SAFETY: this thread alone has these lines.
        let entry = |row: usize| unsafe { batch.u.add(start + row * lines.stride) };
        let found = group.failed.iter().find(|failed| failed.0 == lane).map(|failed| failed.1);
        // SAFETY: as above.
        let left_range = || (0..lines.length).rev().find(|&row| !unsafe { *entry(row) }.is_finite());
        if let Some(row) = found.or_else(left_range) {
            batch.note_failure(group.lines.start + lane, row);
            for row in 0..lines.length {
                // SAFETY: as above.
                unsafe { *entry(row) = T::from_f64(f64::NAN) };
            }
        }
    }
    group.failed.clear();
}
