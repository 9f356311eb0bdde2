//! Which lines stand side by side in a panel, and how their rows come into lanes and go back.

use std::ops::Range;

use femtile_device::Scalar;

use super::stream::{is_aligned, stream_copy};
use crate::Lines;
use femtile_device::cpu::vector::Vector;

/// Rows of lanes to read: the value of (row, lane) at `first + row * stride + lane`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<T> {
    /// The first value.
    pub first: *const T,
    /// From one row to the next.
    pub stride: usize,
}

impl<T> Rows<T> {
    /// The value of a row and lane.
    ///
    /// # Safety
    /// There is such a value.
    #[inline(always)]
    pub unsafe fn at(&self, row: usize, lane: usize) -> *const T {
        // SAFETY: what the caller promises.
        unsafe { self.first.add(row * self.stride + lane) }
    }
}

/// Rows of lanes to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsMut<T> {
    /// The first value.
    pub first: *mut T,
    /// From one row to the next.
    pub stride: usize,
    /// Whether writes are non-temporal stores; every vector is aligned then.
    pub is_streamed: bool,
}

impl<T: Scalar> RowsMut<T> {
    /// Writes a vector.
    ///
    /// # Safety
    /// As [`Vector::store`], and as [`Vector::stream`] where rows are streamed.
    #[inline(always)]
    pub unsafe fn put<V: Vector<T>>(&self, row: usize, lane: usize, value: V) {
        // SAFETY: what the caller promises.
        unsafe {
            let to = self.first.add(row * self.stride + lane);
            if self.is_streamed { value.stream(to) } else { value.store(to) }
        }
    }
}

/// The layout of the lanes of a row in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// One behind the other, one for each lane: rows are used where they are.
    Direct,
    /// All lanes are the same value.
    Same,
    /// Lines are contiguous: squares are transposed.
    Transposed,
    /// In runs of neighbours.
    Runs,
}

/// Lanes that stand one behind the other.
#[derive(Debug, Clone, Copy)]
struct Run {
    lane: usize,
    start: usize,
    count: usize,
}

/// Where the lines of a panel begin in one array.
#[derive(Debug)]
pub(crate) struct Places {
    row_stride: usize,
    lanes: usize,
    first: usize,
    /// From one line to the next, where that is the same for all.
    pitch: Option<usize>,
    /// One for each lane, where lines are not spaced evenly; lanes without a line repeat the last line.
    starts: Vec<usize>,
    access: Access,
    runs: Vec<Run>,
}

impl Places {
    /// No lines yet, in an array whose rows are so far apart.
    pub fn new(row_stride: usize) -> Self {
        let (starts, runs) = (Vec::new(), Vec::new());
        Self { row_stride, lanes: 0, first: 0, pitch: None, starts, access: Access::Runs, runs }
    }

    /// Moves to `count` lines from `first` on, in `lanes` lanes; `steps` are the strides of the axes.
    pub fn set(&mut self, lines: &Lines, first: usize, [count, lanes]: [usize; 2], steps: [usize; 3]) {
        let counts = lines.axes.map(|axis| axis.count);
        let [_, middle, inner] = counts;
        let index = [first / inner / middle, first / inner % middle, first % inner];
        self.first = index.iter().zip(steps).map(|(i, step)| i * step).sum();
        self.lanes = lanes;
        let is_one_axis = index[2] + count <= inner;
        let is_whole = count == lanes;
        self.pitch = (is_one_axis && (is_whole || steps[2] == 0)).then_some(steps[2]);
        self.access = match self.pitch {
            Some(0) => Access::Same,
            Some(1) => Access::Direct,
            _ if self.row_stride == 1 => Access::Transposed,
            _ => Access::Runs,
        };
        if self.pitch.is_none() {
            self.list_starts(index, counts, steps, count);
            if self.starts.iter().all(|&start| start == self.first) {
                self.access = Access::Same;
            }
        }
        if matches!(self.access, Access::Runs | Access::Same) {
            self.list_runs(count);
        }
    }

    fn list_starts(&mut self, mut index: [usize; 3], counts: [usize; 3], steps: [usize; 3], count: usize) {
        let mut start = self.first;
        self.starts.clear();
        for _ in 0..count {
            self.starts.push(start);
            // The next line, carrying from the fastest axis to the slowest.
            for k in (0..3).rev() {
                index[k] += 1;
                start += steps[k];
                if index[k] < counts[k] || k == 0 {
                    break;
                }
                start -= counts[k] * steps[k];
                index[k] = 0;
            }
        }
        let last = self.starts[count - 1];
        self.starts.resize(self.lanes, last);
    }

    fn list_runs(&mut self, count: usize) {
        self.runs.clear();
        for lane in 0..self.lanes {
            let start = self.start(lane);
            match self.runs.last_mut() {
                Some(run) if lane < count && run.start + run.count == start => run.count += 1,
                _ => self.runs.push(Run { lane, start, count: 1 }),
            }
        }
    }

    /// Where the line of a lane begins.
    #[inline(always)]
    pub fn start(&self, lane: usize) -> usize {
        match self.pitch {
            Some(pitch) => self.first + lane * pitch,
            None => self.starts[lane],
        }
    }

    /// Returns whether rows need no staging.
    pub fn is_direct(&self) -> bool {
        self.access == Access::Direct
    }

    /// Returns whether lines are contiguous and stand apart.
    pub fn is_transposed(&self) -> bool {
        self.access == Access::Transposed
    }

    /// The rows of `source`: where they are, or copied to `stage`, which holds `rows.len()` rows of all lanes.
    ///
    /// # Safety
    /// All entries of these rows and lines can be read, and the stage be written; the processor has the instructions.
    #[inline(always)]
    pub unsafe fn read<T: Scalar, V: Vector<T>>(
        &self,
        source: *const T,
        rows: Range<usize>,
        stage: *mut T,
    ) -> Rows<T> {
        let (lanes, row_stride) = (self.lanes, self.row_stride);
        if self.access == Access::Direct {
            // SAFETY: the first row exists.
            let first = unsafe { source.add(self.first + rows.start * row_stride) };
            return Rows { first, stride: row_stride };
        }
        // A band with stride zero is the same in every row.
        let n_rows = if row_stride == 0 { 1 } else { rows.len() };
        // SAFETY: what the caller promises.
        unsafe {
            match self.access {
                Access::Same => {
                    for k in 0..n_rows {
                        let value = *source.add(self.first + (rows.start + k) * row_stride);
                        for lane in (0..lanes).step_by(V::LANES) {
                            V::splat(value).store(stage.add(k * lanes + lane));
                        }
                    }
                }
                _ => self.stage::<T, V>(source, rows.start, n_rows, stage),
            }
        }
        Rows { first: stage, stride: if row_stride == 0 { 0 } else { lanes } }
    }

    /// Copies rows to the stage; compiled once per kind of vectors, not with each elimination.
    ///
    /// # Safety
    /// As [`Places::read`].
    unsafe fn stage<T: Scalar, V: Vector<T>>(
        &self,
        source: *const T,
        first_row: usize,
        n_rows: usize,
        stage: *mut T,
    ) {
        // SAFETY: what the caller promises.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || self.stage_by_vectors::<T, V>(source, first_row, n_rows, stage),
            );
        }
    }

    #[inline(always)]
    unsafe fn stage_by_vectors<T: Scalar, V: Vector<T>>(
        &self,
        source: *const T,
        first_row: usize,
        n_rows: usize,
        stage: *mut T,
    ) {
        let (lanes, row_stride) = (self.lanes, self.row_stride);
        // SAFETY: the caller promises that sources can be read and the stage can be written.
        unsafe {
            if self.access == Access::Transposed {
                return self.transpose_in::<T, V>(source.add(first_row), n_rows, stage);
            }
            for k in 0..n_rows {
                let row = source.add((first_row + k) * row_stride);
                for run in &self.runs {
                    copy::<T, V>(row.add(run.start), stage.add(k * lanes + run.lane), run.count);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn transpose_in<T: Scalar, V: Vector<T>>(&self, source: *const T, n_rows: usize, stage: *mut T) {
        let lanes = self.lanes;
        for first in (0..lanes).step_by(V::LANES) {
            let mut lines = [source; MOST_LANES];
            for (i, line) in lines[..V::LANES].iter_mut().enumerate() {
                *line = source.wrapping_add(self.start(first + i));
            }
            for row in squares(n_rows, V::LANES) {
                // SAFETY: as in `read`, whose caller promises that all lines hold these rows.
                unsafe {
                    V::transpose(
                        #[inline(always)]
                        |i| lines[i].add(row),
                        #[inline(always)]
                        |j| stage.add((row + j) * lanes + first),
                    );
                }
            }
            for row in 0..if n_rows < V::LANES { n_rows } else { 0 } {
                for (i, line) in lines[..V::LANES].iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { *stage.add(row * lanes + first + i) = *line.add(row) };
                }
            }
        }
    }

    /// The panel as pieces of memory without gaps, where it lies so: values of a piece, from the begin of one to that of
    /// the next, and how many there are; `n` rows a system.
    pub fn pieces(&self, n: usize) -> Option<[usize; 3]> {
        match (self.access, self.pitch) {
            (Access::Transposed, Some(pitch)) => Some([self.lanes * pitch, 0, 1]),
            (Access::Direct, _) => Some([self.lanes, self.row_stride, n]),
            _ => None,
        }
    }

    /// Where the solution of these rows is to be written: in place, or to the stage, for [`Places::write`].
    ///
    /// # Safety
    /// All entries of these rows can be written.
    #[inline(always)]
    pub unsafe fn target<T>(
        &self,
        u: *mut T,
        rows: &Range<usize>,
        stage: *mut T,
        past_cache: bool,
    ) -> RowsMut<T> {
        if self.access == Access::Direct && (!past_cache || self.is_aligned(u)) {
            // SAFETY: the first row exists.
            let first = unsafe { u.add(self.first + rows.start * self.row_stride) };
            return RowsMut { first, stride: self.row_stride, is_streamed: past_cache };
        }
        RowsMut { first: stage, stride: self.lanes, is_streamed: false }
    }

    /// Returns whether all rows begin lines of the cache.
    #[inline(always)]
    fn is_aligned<T>(&self, u: *const T) -> bool {
        is_aligned(u, self.first, self.row_stride)
    }

    /// Copies rows from the stage past the cache, unless they were written in place.
    ///
    /// # Safety
    /// Rows are used where they are, all entries of these can be written; the processor has the instructions.
    #[inline(always)]
    pub unsafe fn stream_rows<T: Scalar, V: Vector<T>>(
        &self,
        u: *mut T,
        rows: Range<usize>,
        stage: *const T,
    ) {
        if self.is_aligned(u) {
            return;
        }
        for (k, row) in rows.enumerate() {
            // SAFETY: what the caller promises; the stage holds these rows.
            unsafe {
                let to = u.add(self.first + row * self.row_stride);
                stream_line::<T, V>(stage.add(k * self.lanes), to, self.lanes);
            }
        }
    }

    /// Copies the first `count` lanes of the stage into their lines, which begin `pitch` values apart in `u`, or else where
    /// this panel lies; compiled once per kind of vectors.
    ///
    /// # Safety
    /// All entries of these rows can be written; the processor has the instructions.
    pub unsafe fn write<T: Scalar, V: Vector<T>>(
        &self,
        (u, pitch): (*mut T, Option<usize>),
        rows: Range<usize>,
        count: usize,
        stage: *const T,
    ) {
        // SAFETY: what the caller promises.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || self.write_by_vectors::<T, V>((u, pitch), rows, count, stage),
            );
        }
    }

    #[inline(always)]
    unsafe fn write_by_vectors<T: Scalar, V: Vector<T>>(
        &self,
        (u, pitch): (*mut T, Option<usize>),
        rows: Range<usize>,
        count: usize,
        stage: *const T,
    ) {
        let start = |lane: usize| pitch.map_or_else(|| self.start(lane), |pitch| lane * pitch);
        let (lanes, n_rows) = (self.lanes, rows.len());
        // SAFETY: the caller promises that the entries can be written; the stage holds these rows.
        unsafe {
            if self.access != Access::Transposed {
                for k in 0..n_rows {
                    let row = u.add((rows.start + k) * self.row_stride);
                    for run in self.runs.iter().filter(|run| run.lane < count) {
                        copy::<T, V>(stage.add(k * lanes + run.lane), row.add(run.start), run.count);
                    }
                }
                return;
            }
            let full = count / V::LANES * V::LANES;
            for first in (0..full).step_by(V::LANES) {
                let mut lines = [u; MOST_LANES];
                for (j, line) in lines[..V::LANES].iter_mut().enumerate() {
                    *line = u.add(start(first + j) + rows.start);
                }
                for row in squares(n_rows, V::LANES) {
                    V::transpose(
                        #[inline(always)]
                        |i| stage.add((row + i) * lanes + first),
                        #[inline(always)]
                        |j| lines[j].add(row),
                    );
                }
            }
            for lane in if n_rows < V::LANES { 0 } else { full }..count {
                let line = u.add(start(lane) + rows.start);
                for row in 0..n_rows {
                    *line.add(row) = *stage.add(row * lanes + lane);
                }
            }
        }
    }
}

/// [`stream_copy`], compiled once per kind of vectors.
///
/// # Safety
/// As [`stream_copy`].
pub(crate) unsafe fn stream_line<T: Scalar, V: Vector<T>>(from: *const T, to: *mut T, count: usize) {
    // SAFETY: what the caller promises.
    unsafe {
        V::vectorize(
            #[inline(always)]
            || stream_copy::<T, V>(from, to, count),
        );
    }
}

/// Most lanes of a vector.
const MOST_LANES: usize = 16;

/// The first rows of squares that cover `n_rows` rows, the last of them shifted back so that it ends with the rows;
/// none where there are fewer rows than a square has.
#[inline(always)]
fn squares(n_rows: usize, size: usize) -> impl Iterator<Item = usize> {
    let last = n_rows.saturating_sub(size);
    let count = if n_rows < size { 0 } else { n_rows.div_ceil(size) };
    (0..count).map(
        #[inline(always)]
        move |k| (k * size).min(last),
    )
}

/// Copies neighbours, most of them in vectors; a call of the library's copy costs more than they do.
#[inline(always)]
unsafe fn copy<T: Scalar, V: Vector<T>>(from: *const T, to: *mut T, count: usize) {
    let whole = count / V::LANES * V::LANES;
    // SAFETY: the caller lets `count` values be read and written, and the processor has the instructions.
    unsafe {
        for k in (0..whole).step_by(V::LANES) {
            V::load(from.add(k)).store(to.add(k));
        }
        for k in whole..count {
            *to.add(k) = *from.add(k);
        }
    }
}
