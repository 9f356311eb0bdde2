//! Positions of the columns of element terms in a row.

use pulp::Simd;

/// Columns compared at once.
pub const WINDOW: usize = 16;

/// SIMD search for a column in a short list.
pub trait FindColumn: Simd {
    /// Returns a bit mask of the columns that equal the wanted one.
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16;
}

impl FindColumn for pulp::Scalar {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        columns.iter().enumerate().map(|(i, &column)| u16::from(column == wanted) << i).sum()
    }
}

#[cfg(target_arch = "x86_64")]
impl FindColumn for pulp::x86::V3 {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        let wanted = self.avx._mm256_set1_epi32(wanted as i32);
        let halves: [std::arch::x86_64::__m256i; 2] = pulp::cast(*columns);
        let [low, high] = halves.map(|half| {
            let equal = self.avx2._mm256_cmpeq_epi32(half, wanted);
            self.avx._mm256_movemask_ps(self.avx._mm256_castsi256_ps(equal)) as u16
        });
        low | high << 8
    }
}

#[cfg(target_arch = "x86_64")]
impl FindColumn for pulp::x86::V4 {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        (*self).matches(columns, wanted)
    }
}

/// Adds terms to the entries of a row that contains all their columns; the row's own column is skipped.
///
/// `columns` and `values` start with the row and continue beyond it, so that a whole window can be compared: the first
/// match is in the row.
#[inline(always)]
pub fn add_to_row<S: FindColumn, const N: usize>(
    simd: S,
    columns: &[u32],
    values: &mut [f64],
    own: usize,
    wanted: &[u32; N],
    terms: &[f64; N],
) {
    let windows = (columns.first_chunk::<WINDOW>(), values.first_chunk_mut::<WINDOW>());
    let (Some(near_columns), Some(near_values)) = windows else {
        return (0..N).filter(|&b| b != own).for_each(|b| add_far(columns, values, wanted[b], terms[b]));
    };
    // Terms beyond the window; rarely any.
    let mut far = 0;
    for b in 0..N {
        if b != own {
            let found = simd.matches(near_columns, wanted[b]);
            if found == 0 {
                far |= 1 << b;
            } else {
                near_values[found.trailing_zeros() as usize % WINDOW] += terms[b];
            }
        }
    }
    if far != 0 {
        (0..N).filter(|&b| far >> b & 1 == 1).for_each(|b| add_far(columns, values, wanted[b], terms[b]));
    }
}

/// Adds one term by linear search.
#[cold]
fn add_far(columns: &[u32], values: &mut [f64], wanted: u32, term: f64) {
    values[find(columns, wanted)] += term;
}

/// Returns the position of a column in a list that contains it.
#[inline(always)]
pub fn find(columns: &[u32], wanted: u32) -> usize {
    columns.iter().position(|&column| column == wanted).unwrap_or(0)
}
