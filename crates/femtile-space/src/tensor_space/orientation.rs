/// Orientation of the axes of a cell relative to those of its given corners: axis `a` runs along the given axis
/// `axes[a]`, backwards if `flips[a]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orientation {
    /// The given axis of each axis; the third is 2 in two dimensions.
    pub axes: [u8; 3],
    /// Whether the axis runs backwards.
    pub flips: [bool; 3],
}

impl Orientation {
    /// The given axes.
    pub const IDENTITY: Self = Self { axes: [0, 1, 2], flips: [false; 3] };

    /// Returns the place in the given axes of an entry of a tensor with `n` entries per axis, the first axis fastest.
    #[inline]
    pub fn given(&self, index: [usize; 3], n: usize) -> usize {
        let mut given = [0; 3];
        for a in 0..3 {
            given[self.axes[a] as usize] = if self.flips[a] { n - 1 - index[a] } else { index[a] };
        }
        given[0] + n * (given[1] + n * given[2])
    }

    /// Returns whether it turns a right-handed cell into a left-handed one.
    pub fn is_mirrored(&self) -> bool {
        let [a, b, c] = self.axes;
        let is_odd = (a > b) ^ (a > c) ^ (b > c);
        self.flips.iter().fold(is_odd, |mirrored, flip| mirrored ^ flip)
    }
}
