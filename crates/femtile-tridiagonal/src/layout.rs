//! Where the entries of arrays lie, and the lines along one of their axes.

use femtile_linalg::LinalgError;
/// Most dimensions that an array may have.
pub const MAX_DIMENSIONS: usize = 4;

/// The strided layout of an array of one to four dimensions: the entry with index $i$ is at $\sum_k i_k s_k$.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchLayout {
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl BatchLayout {
    /// Row-major without gaps: the last axis is contiguous.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there are no dimensions, or more than [`MAX_DIMENSIONS`].
    pub fn contiguous(shape: &[usize]) -> Result<Self, LinalgError> {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        Self::with_strides(shape, &strides)
    }

    /// With a stride in entries for each axis, so that rows may be padded and axes stand in any order.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the numbers of axes differ or are out of range, or when two entries may share a
    /// place.
    pub fn with_strides(shape: &[usize], strides: &[usize]) -> Result<Self, LinalgError> {
        let layout = Self::repeating(shape, strides)?;
        let axes = shape.iter().zip(strides).map(|(&n, &stride)| (n, stride));
        if let Some((axis, reached)) = sharing_axis(axes) {
            let message = format!(
                "axis {axis} of the shape {shape:?} has stride {}, but the axes inside it reach {reached} \
                 entries: entries would share places; give it a stride of {} or more",
                strides[axis],
                reached + 1
            );
            return Err(LinalgError::Setting { field: "strides", message });
        }
        Ok(layout)
    }

    /// With strides that may be zero, which repeats values along an axis; for arrays that are only read.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the numbers of axes differ or are out of range.
    pub fn repeating(shape: &[usize], strides: &[usize]) -> Result<Self, LinalgError> {
        if !(1..=MAX_DIMENSIONS).contains(&shape.len()) {
            let message = format!("{} dimensions; arrays have 1 to {MAX_DIMENSIONS}", shape.len());
            return Err(LinalgError::Setting { field: "shape", message });
        }
        if strides.len() != shape.len() {
            let message = format!("{} strides for the {} axes of {shape:?}", strides.len(), shape.len());
            return Err(LinalgError::Setting { field: "strides", message });
        }
        let reach = |(&n, &stride): (&usize, &usize)| n.saturating_sub(1).checked_mul(stride);
        let extents: Option<Vec<usize>> = shape.iter().zip(strides).map(reach).collect();
        let total = extents.and_then(|all| all.into_iter().try_fold(1_usize, usize::checked_add));
        let entries = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if total.is_none() || entries.is_none() {
            let message = format!("an array of shape {shape:?} with strides {strides:?} is too large");
            return Err(LinalgError::Setting { field: "shape", message });
        }
        Ok(Self { shape: shape.to_vec(), strides: strides.to_vec() })
    }

    /// Entries along each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides in entries.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Number of entries.
    pub fn n_entries(&self) -> usize {
        self.shape.iter().product()
    }

    /// Least length of a buffer that holds the array.
    pub fn required_len(&self) -> usize {
        if self.n_entries() == 0 {
            return 0;
        }
        1 + self.shape.iter().zip(&self.strides).map(|(&n, &stride)| (n - 1) * stride).sum::<usize>()
    }

    /// The lines along `axis`; bands lie as the array does.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there is no such axis.
    pub fn lines(&self, axis: usize) -> Result<Lines, LinalgError> {
        self.lines_with_bands(axis, &self.strides)
    }

    /// The lines along `axis`, with strides of their own for the bands.
    pub(crate) fn lines_with_bands(&self, axis: usize, bands: &[usize]) -> Result<Lines, LinalgError> {
        if axis >= self.shape.len() {
            let message = format!("there is no axis {axis} in the shape {:?}", self.shape);
            return Err(LinalgError::Setting { field: "axis", message });
        }
        let mut axes = [LineAxis::default(); MAX_DIMENSIONS - 1];
        let mut used = 0;
        for other in self.other_axes(axis) {
            let (count, stride, band_stride) = (self.shape[other], self.strides[other], bands[other]);
            let inner = LineAxis { count, stride, band_stride };
            match axes[..used].last_mut() {
                Some(outer) if outer.continues(&inner) => outer.merge(&inner),
                _ => {
                    axes[used] = inner;
                    used += 1;
                }
            }
        }
        axes.rotate_right(MAX_DIMENSIONS - 1 - used);
        Ok(Lines { length: self.shape[axis], stride: self.strides[axis], band_stride: bands[axis], axes })
    }

    /// All axes but one and those of a single entry, by falling stride.
    fn other_axes(&self, axis: usize) -> Vec<usize> {
        let mut others: Vec<usize> =
            (0..self.shape.len()).filter(|&k| k != axis && self.shape[k] != 1).collect();
        others.sort_by_key(|&k| std::cmp::Reverse(self.strides[k]));
        others
    }

    /// The index of an entry by its line along `axis` and its row.
    pub(crate) fn index(&self, axis: usize, mut line: usize, row: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape.len()];
        index[axis] = row;
        for other in self.other_axes(axis).into_iter().rev() {
            index[other] = line % self.shape[other];
            line /= self.shape[other];
        }
        index
    }
}

/// The first axis, given by entries and stride, along which entries may share places, and what those inside it reach; none
/// where all entries are apart.
fn sharing_axis(axes: impl Iterator<Item = (usize, usize)>) -> Option<(usize, usize)> {
    let mut axes: Vec<_> = axes.enumerate().filter(|(_, (n, _))| *n > 1).collect();
    axes.sort_by_key(|(_, (_, stride))| *stride);
    let mut reached = 0;
    for (axis, (n, stride)) in axes {
        if stride <= reached {
            return Some((axis, reached));
        }
        reached += (n - 1) * stride;
    }
    None
}

/// An axis along which lines stand side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineAxis {
    /// Returns the number of lines.
    pub count: usize,
    /// From one to the next, in entries.
    pub stride: usize,
    /// From one to the next in the bands, in entries.
    pub band_stride: usize,
}

impl Default for LineAxis {
    fn default() -> Self {
        Self { count: 1, stride: 0, band_stride: 0 }
    }
}

impl LineAxis {
    /// Returns whether this axis goes on where `inner` ends, so that both are one.
    fn continues(&self, inner: &Self) -> bool {
        self.stride == inner.count * inner.stride && self.band_stride == inner.count * inner.band_stride
    }

    fn merge(&mut self, inner: &Self) {
        *self = Self { count: self.count * inner.count, ..*inner };
    }
}

/// The lines of an array along one axis: each is a system of equations.
///
/// Lines are numbered in the order of memory: the other axes by falling stride, the last of them fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// Entries of a line.
    pub length: usize,
    /// From one entry of a line to the next.
    pub stride: usize,
    /// From one row of the bands to the next.
    pub band_stride: usize,
    /// The other axes, slowest first; those that are not needed have one entry, and stand first.
    pub axes: [LineAxis; MAX_DIMENSIONS - 1],
}

impl Lines {
    /// Number of lines.
    pub fn n_lines(&self) -> usize {
        self.axes.iter().map(|axis| axis.count).product()
    }

    /// Where a line begins.
    pub fn start(&self, line: usize) -> usize {
        self.sum(line, |axis| axis.stride)
    }

    /// Where the bands of a line begin.
    pub fn band_start(&self, line: usize) -> usize {
        self.sum(line, |axis| axis.band_stride)
    }

    /// Least lengths of the array and of its bands; none where there are no entries.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when entries of the array share places, or are too many to count.
    pub(crate) fn required_len(&self) -> Result<Option<[usize; 2]>, LinalgError> {
        let along = LineAxis { count: self.length, stride: self.stride, band_stride: self.band_stride };
        let axes: Vec<LineAxis> = std::iter::once(along).chain(self.axes).collect();
        if axes.iter().any(|axis| axis.count == 0) {
            return Ok(None);
        }
        let refuse = |message: &str| Err(LinalgError::Setting { field: "lines", message: message.into() });
        let reach = |stride: fn(&LineAxis) -> usize| {
            let extents = axes.iter().map(|axis| (axis.count - 1).checked_mul(stride(axis)));
            extents.chain([Some(1)]).try_fold(0_usize, |sum, extent| sum.checked_add(extent?))
        };
        let n_entries = axes.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.count));
        let lengths = reach(|axis| axis.stride).zip(reach(|axis| axis.band_stride));
        let Some((lengths, _)) = lengths.zip(n_entries) else {
            return refuse("there are more entries than memory can hold");
        };
        if sharing_axis(axes.iter().map(|axis| (axis.count, axis.stride))).is_some() {
            return refuse("entries share places; take the lines of an array in which no value repeats");
        }
        Ok(Some([lengths.0, lengths.1]))
    }

    fn sum(&self, mut line: usize, stride: impl Fn(&LineAxis) -> usize) -> usize {
        let mut start = 0;
        for axis in self.axes.iter().rev() {
            start += line % axis.count * stride(axis);
            line /= axis.count;
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_row_major_array_are_numbered_row_major_over_the_other_axes() {
        let layout = BatchLayout::contiguous(&[2, 3, 4]).unwrap();
        let lines = layout.lines(1).unwrap();
        assert_eq!((lines.length, lines.stride, lines.n_lines()), (3, 4, 8));
        let starts: Vec<_> = (0..8).map(|line| lines.start(line)).collect();
        assert_eq!(starts, [0, 1, 2, 3, 12, 13, 14, 15]);
        assert_eq!(layout.index(1, 6, 2), [1, 2, 2]);
    }

    #[test]
    fn axes_without_a_gap_between_them_are_merged() {
        let lines = BatchLayout::contiguous(&[5, 6, 7, 8]).unwrap().lines(3).unwrap();
        assert_eq!(lines.axes[2], LineAxis { count: 210, stride: 8, band_stride: 8 });
        assert_eq!(lines.axes[..2], [LineAxis::default(); 2]);
        let padded = BatchLayout::with_strides(&[5, 6, 7], &[60, 9, 1]).unwrap().lines(2).unwrap();
        assert_eq!((padded.axes[1].count, padded.axes[2].count), (5, 6));
    }

    #[test]
    fn any_order_of_axes_gives_lines_in_the_order_of_memory() {
        let layout = BatchLayout::with_strides(&[2, 3, 4], &[1, 2, 6]).unwrap();
        let lines = layout.lines(1).unwrap();
        let starts: Vec<_> = (0..8).map(|line| lines.start(line)).collect();
        assert_eq!(starts, [0, 1, 6, 7, 12, 13, 18, 19]);
        assert_eq!(layout.index(1, 3, 2), [1, 2, 1]);
    }

    #[test]
    fn entries_that_share_places_are_refused_with_what_to_do() {
        let error = BatchLayout::with_strides(&[4, 4], &[3, 1]).unwrap_err().to_string();
        assert!(error.contains("axis 0") && error.contains("stride of 4"), "{error}");
        assert!(BatchLayout::with_strides(&[4, 1], &[1, 0]).is_ok());
        assert!(BatchLayout::contiguous(&[1; 5]).is_err() && BatchLayout::contiguous(&[]).is_err());
        assert!(BatchLayout::contiguous(&[usize::MAX, 3]).is_err());
    }

    #[test]
    fn an_array_without_entries_needs_no_memory() {
        for shape in [[0, 3], [3, 0]] {
            let layout = BatchLayout::contiguous(&shape).unwrap();
            assert_eq!(layout.required_len(), 0);
            assert!((0..2).all(|axis| {
                let lines = layout.lines(axis).unwrap();
                lines.length * lines.n_lines() == 0
            }));
        }
    }
}
