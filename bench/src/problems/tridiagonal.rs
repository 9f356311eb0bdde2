//! Random diagonally dominant tridiagonal and block tridiagonal systems.

use std::ops::Range;

use femtile::device::Scalar;

/// Values repeat after this many entries: a prime, so that no length of a system falls in with it.
const PERIOD: usize = 8191;
/// Off-diagonal entries are at most this much; the diagonal is 1, so that a few dozen solves in place, each of which
/// makes the solution the next right side, neither grow beyond all numbers nor decay to denormal ones.
const COUPLING: f64 = 0.3;

/// An array of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchArray {
    /// Coefficients of the previous row.
    Lower,
    /// The diagonal.
    Diagonal,
    /// Coefficients of the next row.
    Upper,
    /// The right side.
    Rhs,
}

impl BatchArray {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Lower, Self::Diagonal, Self::Upper, Self::Rhs];
}

/// The first `len` entries of an array of a batch, whatever the shape of the batch.
pub fn entries<T: Scalar>(part: BatchArray, len: usize) -> Vec<T> {
    match part {
        BatchArray::Lower => repeated(1, len, -COUPLING..COUPLING),
        BatchArray::Diagonal => vec![T::ONE; len],
        BatchArray::Upper => repeated(2, len, -COUPLING..COUPLING),
        BatchArray::Rhs => repeated(3, len, -1.0..1.0),
    }
}

/// The same for blocks of `block` rows: the diagonal blocks are those of the unit matrix plus small entries.
pub fn block_entries<T: Scalar>(part: BatchArray, block: usize, n_blocks: usize) -> Vec<T> {
    let coupling = COUPLING / block as f64;
    match part {
        BatchArray::Lower => repeated(1, n_blocks * block * block, -coupling..coupling),
        BatchArray::Upper => repeated(2, n_blocks * block * block, -coupling..coupling),
        BatchArray::Rhs => repeated(3, n_blocks * block, -1.0..1.0),
        BatchArray::Diagonal => {
            let mut values = repeated(4, n_blocks * block * block, -coupling..coupling);
            for entries in values.chunks_exact_mut(block * block) {
                entries.iter_mut().step_by(block + 1).for_each(|entry| *entry += T::ONE);
            }
            values
        }
    }
}

fn repeated<T: Scalar>(seed: u64, len: usize, range: Range<f64>) -> Vec<T> {
    let mut state = seed;
    let period: Vec<T> = (0..PERIOD.min(len))
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
            T::from_f64(range.start + (range.end - range.start) * unit)
        })
        .collect();
    let mut values = Vec::with_capacity(len);
    while values.len() < len {
        values.extend_from_slice(&period[..PERIOD.min(len - values.len())]);
    }
    values
}

/// Thomas' algorithm as one writes it down, along contiguous systems; `c_star` holds one of them.
///
/// # Source
/// `[laszlo2016]`, Alg. 1; their naive solver.
pub fn plain_thomas<T: Scalar>(u: &mut [T], bands: [&[T]; 3], length: usize, c_star: &mut [T]) {
    let [lower, diagonal, upper] = bands;
    for (line, u) in u.chunks_exact_mut(length).enumerate() {
        let rows = line * length..(line + 1) * length;
        let (a, b, c) = (&lower[rows.clone()], &diagonal[rows.clone()], &upper[rows]);
        let mut previous = T::ZERO;
        for i in 0..length {
            let (c_before, a) = if i == 0 { (T::ZERO, T::ZERO) } else { (c_star[i - 1], a[i]) };
            let r = T::ONE / (b[i] - a * c_before);
            previous = r * (u[i] - a * previous);
            u[i] = previous;
            c_star[i] = r * c[i];
        }
        for i in (0..length - 1).rev() {
            previous = u[i] - c_star[i] * previous;
            u[i] = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_dominant_and_repeat() {
        let [a, c]: [Vec<f64>; 2] =
            [BatchArray::Lower, BatchArray::Upper].map(|part| entries(part, 3 * PERIOD + 5));
        assert!(a.iter().zip(&c).all(|(a, c)| a.abs() + c.abs() < 0.6 + 1e-12));
        assert_eq!(a[7], a[PERIOD + 7]);
        assert!(entries::<f32>(BatchArray::Rhs, 0).is_empty());
        let blocks: Vec<f64> = block_entries(BatchArray::Diagonal, 3, 100);
        assert!(blocks.chunks(9).all(|b| (0..3).all(|i| b[4 * i] > 0.5)));
    }

    #[test]
    fn the_plain_loop_solves() {
        let (length, n) = (7, 21);
        let [a, b, c, d] = BatchArray::ALL.map(|part| entries::<f64>(part, n));
        let mut u = d.clone();
        plain_thomas(&mut u, [&a, &b, &c], length, &mut [0.0; 7]);
        for i in 0..n {
            let mut row = b[i] * u[i];
            if i % length > 0 {
                row += a[i] * u[i - 1];
            }
            if i % length + 1 < length {
                row += c[i] * u[i + 1];
            }
            assert!((row - d[i]).abs() < 1e-14);
        }
    }
}
