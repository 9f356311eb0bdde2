//! Which lines stand side by side in a panel, and how their rows come into lanes and go back.

use std::ops::Range;

use femtile_device::Scalar;

use super::sweep::LINE;
use super::vector::{Vector, prefetch};
use crate::tridiagonal::{LineAxis, Lines};

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
    /// Whether writes go past the cache; every vector is aligned then.
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

/// How the lanes of a row lie in an array.
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
    /// One for each lane; lanes without a line repeat the last line.
    pub starts: Vec<usize>,
    row_stride: usize,
    access: Access,
    runs: Vec<Run>,
}

impl Places {
    /// Room for the starts of `lanes` lines.
    pub fn new(lanes: usize, row_stride: usize) -> Self {
        Self { starts: vec![0; lanes], row_stride, access: Access::Runs, runs: Vec::with_capacity(lanes) }
    }

    /// Moves to `count` lines from `first` on; `stride` tells which stride of an axis counts.
    pub fn set(&mut self, lines: &Lines, first: usize, count: usize, stride: impl Fn(&LineAxis) -> usize) {
        let steps = lines.axes.each_ref().map(&stride);
        let counts = lines.axes.map(|axis| axis.count);
        let [_, middle, inner] = counts;
        let mut index = [first / inner / middle, first / inner % middle, first % inner];
        let mut start: usize = index.iter().zip(steps).map(|(i, step)| i * step).sum();
        self.runs.clear();
        for lane in 0..count {
            self.starts[lane] = start;
            match self.runs.last_mut() {
                Some(run) if run.start + run.count == start => run.count += 1,
                _ => self.runs.push(Run { lane, start, count: 1 }),
            }
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
        self.starts[count..].fill(last);
        let lanes = self.starts.len();
        self.access = if self.runs.len() == 1 && count == lanes {
            Access::Direct
        } else if self.starts.iter().all(|&other| other == last) {
            Access::Same
        } else if self.row_stride == 1 {
            Access::Transposed
        } else {
            Access::Runs
        };
        self.runs.extend((count..lanes).map(|lane| Run { lane, start: last, count: 1 }));
    }

    /// Whether rows need no staging.
    pub fn is_direct(&self) -> bool {
        self.access == Access::Direct
    }

    /// Whether lines are contiguous and stand apart.
    pub fn is_transposed(&self) -> bool {
        self.access == Access::Transposed
    }

    /// The rows of `source`: where they are, or copied to `stage`, which holds `rows.len()` rows of all lanes.
    ///
    /// # Safety
    /// All entries of these rows and lines can be read, and the stage be written.
    #[inline(always)]
    pub unsafe fn read<T: Scalar, V: Vector<T>>(
        &self,
        source: *const T,
        rows: Range<usize>,
        stage: *mut T,
    ) -> Rows<T> {
        let (lanes, row_stride) = (self.starts.len(), self.row_stride);
        if self.access == Access::Direct {
            // SAFETY: the first row exists.
            let first = unsafe { source.add(self.starts[0] + rows.start * row_stride) };
            return Rows { first, stride: row_stride };
        }
        // A band with stride zero is the same in every row.
        let n_rows = if row_stride == 0 { 1 } else { rows.len() };
        // SAFETY: the caller promises that sources can be read and the stage can be written.
        unsafe {
            match self.access {
                Access::Same => {
                    for k in 0..n_rows {
                        let value = *source.add(self.starts[0] + (rows.start + k) * row_stride);
                        for lane in (0..lanes).step_by(V::LANES) {
                            V::splat(value).store(stage.add(k * lanes + lane));
                        }
                    }
                }
                Access::Transposed => self.transpose_in::<T, V>(source.add(rows.start), n_rows, stage),
                _ => {
                    for k in 0..n_rows {
                        let row = source.add((rows.start + k) * row_stride);
                        for run in &self.runs {
                            copy::<T, V>(row.add(run.start), stage.add(k * lanes + run.lane), run.count);
                        }
                    }
                }
            }
        }
        Rows { first: stage, stride: if row_stride == 0 { 0 } else { lanes } }
    }

    #[inline(always)]
    unsafe fn transpose_in<T: Scalar, V: Vector<T>>(&self, source: *const T, n_rows: usize, stage: *mut T) {
        let lanes = self.starts.len();
        let squared = n_rows / V::LANES * V::LANES;
        // SAFETY: as in `read`, whose caller promises that all lines hold these rows.
        unsafe {
            for first in (0..lanes).step_by(V::LANES) {
                let starts = &self.starts[first..first + V::LANES];
                for row in (0..squared).step_by(V::LANES) {
                    V::transpose(
                        #[inline(always)]
                        |i| source.add(starts[i] + row),
                        #[inline(always)]
                        |j| stage.add((row + j) * lanes + first),
                    );
                }
            }
            for row in squared..n_rows {
                for (lane, start) in self.starts.iter().enumerate() {
                    *stage.add(row * lanes + lane) = *source.add(start + row);
                }
            }
        }
    }

    /// Asks for rows of `source` that lie `ahead` entries beyond those of this panel.
    ///
    /// Nothing is asked for where lanes are gathered.
    #[inline(always)]
    pub fn prefetch<T>(&self, source: *const T, rows: Range<usize>, ahead: usize) {
        let step = LINE / size_of::<T>();
        match self.access {
            Access::Transposed => {
                for start in &self.starts {
                    for row in rows.clone().step_by(step) {
                        prefetch(source.wrapping_add(start + row).wrapping_add(ahead));
                    }
                }
            }
            Access::Direct => {
                for row in rows {
                    let first =
                        source.wrapping_add(self.starts[0] + row * self.row_stride).wrapping_add(ahead);
                    for lane in (0..self.starts.len()).step_by(step) {
                        prefetch(first.wrapping_add(lane));
                    }
                }
            }
            _ => {}
        }
    }

    /// Where the solution of these rows is to be written: in place, or to the stage, for [`Places::write`].
    ///
    /// # Safety
    /// All entries of these rows can be written, and are aligned where they are to be streamed.
    #[inline(always)]
    pub unsafe fn target<T>(
        &self,
        u: *mut T,
        rows: &Range<usize>,
        stage: *mut T,
        is_streamed: bool,
    ) -> RowsMut<T> {
        if self.access == Access::Direct {
            // SAFETY: the first row exists.
            let first = unsafe { u.add(self.starts[0] + rows.start * self.row_stride) };
            return RowsMut { first, stride: self.row_stride, is_streamed };
        }
        RowsMut { first: stage, stride: self.starts.len(), is_streamed: false }
    }

    /// Copies the first `count` lanes of the stage into their lines, which begin at `start(lane)`.
    ///
    /// # Safety
    /// All entries of these rows can be written.
    #[inline(always)]
    pub unsafe fn write<T: Scalar, V: Vector<T>>(
        &self,
        u: *mut T,
        rows: Range<usize>,
        count: usize,
        stage: *const T,
        start: impl Fn(usize) -> usize,
    ) {
        let (lanes, n_rows) = (self.starts.len(), rows.len());
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
            let line = |lane: usize| u.add(start(lane) + rows.start);
            let (squared, full) = (n_rows / V::LANES * V::LANES, count / V::LANES * V::LANES);
            for row in (0..squared).step_by(V::LANES) {
                for first in (0..full).step_by(V::LANES) {
                    V::transpose(
                        #[inline(always)]
                        |i| stage.add((row + i) * lanes + first),
                        #[inline(always)]
                        |j| line(first + j).add(row),
                    );
                }
            }
            for row in 0..n_rows {
                for lane in if row < squared { full..count } else { 0..count } {
                    *line(lane).add(row) = *stage.add(row * lanes + lane);
                }
            }
        }
    }
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
