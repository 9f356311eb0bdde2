//! Where the columns of terms are among those of a row.

use pulp::Simd;

/// Columns looked at together.
pub const WINDOW: usize = 16;

/// Finds columns among a few.
pub trait FindColumn: Simd {
    /// One bit for each of the columns, set where it is the wanted one.
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

/// Adds terms to the entries of a row whose columns are known to be there; the own column is left out.
///
/// `columns` and `values` begin with the row and go on beyond it, so that a whole window can be looked at:
/// the first match is in the row.
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
    // Which of the terms lie beyond the window; seldom any.
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

/// Adds one term by looking at one column after another.
#[cold]
fn add_far(columns: &[u32], values: &mut [f64], wanted: u32, term: f64) {
    values[find(columns, wanted)] += term;
}

/// Position of a column that is there.
#[inline(always)]
pub fn find(columns: &[u32], wanted: u32) -> usize {
    columns.iter().position(|&column| column == wanted).unwrap_or(0)
}
