use std::fmt;

use femtile_device::Scalar;
use femtile_linalg::LinalgError;

use super::{BatchLayout, Ends};

/// The diagonal dominance of the rows of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Dominance {
    /// Rows with $|b_i| < |a_i| + |c_i|$, or with an entry that is not a number; repeated rows count once.
    pub n_weak: u64,
    /// Number of rows examined, repeated ones once.
    pub n_rows: u64,
    /// The least $(|b_i| - |a_i| - |c_i|) / |b_i|$, infinitely negative where a diagonal entry is zero or an entry is
    /// not a number; 1 where there are no rows.
    pub least_margin: f64,
    /// Where that is, as an index of the array; 0 along axes on which bands repeat.
    pub weakest: Vec<usize>,
}

impl Dominance {
    /// Returns whether no row is weak, so that elimination needs no pivoting.
    pub fn is_dominant(&self) -> bool {
        self.n_weak == 0
    }
}

impl fmt::Display for Dominance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_weak, n_rows, least_margin, weakest } = self;
        if self.is_dominant() {
            write!(
                f,
                "all {n_rows} rows are diagonally dominant, the weakest, {weakest:?}, by {least_margin:.3} of its \
                 diagonal"
            )
        } else {
            write!(
                f,
                "{n_weak} of {n_rows} rows are not diagonally dominant, the weakest is {weakest:?} with \
                 (|b| - |a| - |c|) / |b| = {least_margin:.3}: solve with partial pivoting"
            )
        }
    }
}

/// Looks how dominant the diagonals of a batch are; bands are lower, diagonal and upper, on the host.
///
/// $$ \min_i \frac{|b_i| - |a_i| - |c_i|}{|b_i|} $$
///
/// # Shapes
/// Bands have the shape of `layout` and strides of their own, 0 where they repeat.
/// # Cost
/// Reads the bands once, in the order of memory; entries that repeat along other axes are read once.
/// # Errors
/// [`LinalgError::Setting`] when there is no such axis or the number of strides is wrong; [`LinalgError::Length`] when
/// a band is too short.
/// # Source
/// `[laszlo2016]`, section 2.1, for what elimination without pivoting assumes.
pub fn check<T: Scalar>(
    layout: &BatchLayout,
    band_strides: &[usize],
    axis: usize,
    ends: Ends,
    bands: [&[T]; 3],
) -> Result<Dominance, LinalgError> {
    layout.lines(axis)?;
    let band_layout = BatchLayout::repeating(layout.shape(), band_strides)?;
    for (field, band) in ["lower", "diagonal", "upper"].into_iter().zip(bands) {
        let (expected, found) = (band_layout.required_len(), band.len());
        if found < expected {
            return Err(LinalgError::Length { field, expected, found });
        }
    }
    let mut dominance = Dominance { n_weak: 0, n_rows: 0, least_margin: 1.0, weakest: Vec::new() };
    if layout.n_entries() == 0 {
        return Ok(dominance);
    }
    let repeats = |k: usize| k != axis && band_strides[k] == 0;
    let counts: Vec<usize> =
        (0..band_strides.len()).map(|k| if repeats(k) { 1 } else { layout.shape()[k] }).collect();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&k| std::cmp::Reverse(band_strides[k]));
    dominance.n_rows = counts.iter().product::<usize>() as u64;
    let last = layout.shape()[axis] - 1;
    let mut index = vec![0; counts.len()];
    for _ in 0..dominance.n_rows {
        let at: usize = index.iter().zip(band_strides).map(|(i, stride)| i * stride).sum();
        let [a, b, c] = bands.map(|band| band[at].to_f64().abs());
        let a = if ends == Ends::Open && index[axis] == 0 { 0.0 } else { a };
        let c = if ends == Ends::Open && index[axis] == last { 0.0 } else { c };
        let margin = (b - a - c) / b;
        let margin = if margin.is_nan() { f64::NEG_INFINITY } else { margin };
        dominance.n_weak += u64::from(margin < 0.0);
        if margin < dominance.least_margin || dominance.weakest.is_empty() {
            (dominance.least_margin, dominance.weakest) = (margin, index.clone());
        }
        for &k in order.iter().rev() {
            index[k] += 1;
            if index[k] < counts[k] {
                break;
            }
            index[k] = 0;
        }
    }
    Ok(dominance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weakest_row_is_found_wherever_it_lies() {
        let layout = BatchLayout::contiguous(&[2, 3, 5]).unwrap();
        for axis in 0..3 {
            let (a, mut b, c) = (vec![1.0_f32; 30], vec![-2.5; 30], vec![1.0; 30]);
            let found = check(&layout, layout.strides(), axis, Ends::Open, [&a, &b, &c]).unwrap();
            assert!(found.is_dominant() && found.n_rows == 30, "{found}");
            b[1 + 5 * (1 + 3)] = 0.5;
            let found = check(&layout, layout.strides(), axis, Ends::Periodic, [&a, &b, &c]).unwrap();
            assert_eq!((found.n_weak, found.weakest.as_slice()), (1, &[1, 1, 1][..]));
            assert!((found.least_margin + 3.0).abs() < 1e-6);
        }
    }

    #[test]
    fn entries_beyond_open_ends_do_not_count() {
        let layout = BatchLayout::contiguous(&[3]).unwrap();
        let (a, b, c) = ([f64::NAN, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, f64::NAN]);
        let of = |ends| check(&layout, &[1], 0, ends, [&a, &b, &c]).unwrap();
        assert!(of(Ends::Open).is_dominant() && of(Ends::Open).least_margin == 0.0);
        assert_eq!((of(Ends::Periodic).n_weak, of(Ends::Periodic).least_margin), (2, f64::NEG_INFINITY));
    }

    #[test]
    fn rows_that_repeat_are_looked_at_once() {
        let layout = BatchLayout::contiguous(&[1000, 4]).unwrap();
        let found = check(&layout, &[0, 0], 1, Ends::Open, [&[-1.0_f64], &[1.9], &[-1.0]]).unwrap();
        assert_eq!((found.n_rows, found.n_weak, found.weakest.as_slice()), (4, 2, &[0, 1][..]));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_nothing_is_dominant() {
        let layout = BatchLayout::contiguous(&[2, 0]).unwrap();
        assert!(check::<f64>(&layout, &[1, 1], 1, Ends::Open, [&[], &[], &[]]).unwrap().is_dominant());
        let layout = BatchLayout::contiguous(&[2, 2]).unwrap();
        let one: &[f64] = &[1.0];
        assert!(check(&layout, &[2, 1], 1, Ends::Open, [one; 3]).is_err());
        assert!(check(&layout, &[2, 1], 2, Ends::Open, [&[1.0; 4]; 3]).is_err());
    }
}
