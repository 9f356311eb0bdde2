//! Sums of rows in SIMD vectors.

use femtile_device::Scalar;
use femtile_device::cpu::vector::Vector;

/// Vectors of a row that are summed at once: two sums each, enough to hide the latency of a multiply-add.
const BLOCK: usize = 4;

/// Calls `$block` for blocks of vectors that cover `$n` entries; the last vector may overlap the one before.
macro_rules! cover {
    ($v:ident, $n:expr, |$at:ident, $count:ident| $block:expr) => {{
        let (n, lanes) = ($n, $v::LANES);
        let mut $at = 0;
        while $at + BLOCK * lanes <= n {
            const $count: usize = BLOCK;
            $block;
            $at += BLOCK * lanes;
        }
        while $at < n {
            const $count: usize = 1;
            $at = $at.min(n - lanes);
            $block;
            $at += lanes;
        }
    }};
}

/// $a = \sum_t m_t x_t$ and $b = \sum_t k_t x_t$ for rows $x_t$ of `n` entries, `stride` apart.
///
/// # Safety
/// The processor has the instructions; n is at least [`Vector::LANES`], `n` entries can be read at each row and written to both
/// sums, which no other thread accesses.
#[inline(always)]
pub(super) unsafe fn sum_slabs<T: Scalar, V: Vector<T>>(
    n: usize,
    (x, stride): (*const T, usize),
    [mass, stiffness]: [&[T]; 2],
    [a, b]: [*mut T; 2],
) {
    // SAFETY: as the caller promises.
    unsafe {
        cover!(V, n, |at, COUNT| {
            let mut sums = [[V::splat(T::ZERO); COUNT]; 2];
            for (t, (m, k)) in mass.iter().zip(stiffness).enumerate() {
                let (m, k) = (V::splat(*m), V::splat(*k));
                for u in 0..COUNT {
                    let x = V::load(x.add(t * stride + at + u * V::LANES));
                    sums[0][u] = sums[0][u].plus_product(m, x);
                    sums[1][u] = sums[1][u].plus_product(k, x);
                }
            }
            for u in 0..COUNT {
                sums[0][u].store(a.add(at + u * V::LANES));
                sums[1][u].store(b.add(at + u * V::LANES));
            }
        });
    }
}

/// $a = \sum_t m_t p_t$ and $b = \sum_t k_t p_t + m_t q_t$ for rows $p_t$ and $q_t$.
///
/// # Safety
/// As [`sum_slabs`]; `row(t)` returns both rows.
#[inline(always)]
pub(super) unsafe fn sum_rows<T: Scalar, V: Vector<T>>(
    n: usize,
    row: impl Fn(usize) -> [*const T; 2],
    [mass, stiffness]: [&[T]; 2],
    [a, b]: [*mut T; 2],
) {
    // SAFETY: as the caller promises.
    unsafe {
        cover!(V, n, |at, COUNT| {
            let mut sums = [[V::splat(T::ZERO); COUNT]; 2];
            for (t, (m, k)) in mass.iter().zip(stiffness).enumerate() {
                let ([p, q], m, k) = (row(t), V::splat(*m), V::splat(*k));
                for u in 0..COUNT {
                    let p = V::load(p.add(at + u * V::LANES));
                    let q = V::load(q.add(at + u * V::LANES));
                    sums[0][u] = sums[0][u].plus_product(m, p);
                    sums[1][u] = sums[1][u].plus_product(k, p).plus_product(m, q);
                }
            }
            for u in 0..COUNT {
                sums[0][u].store(a.add(at + u * V::LANES));
                sums[1][u].store(b.add(at + u * V::LANES));
            }
        });
    }
}

/// $y_i = \sum_t k_{ti} a_{i + t} + m_{ti} b_{i + t}$ for diagonals of `n` entries.
///
/// # Safety
/// As [`sum_slabs`]; a and b have one more entry per diagonal.
#[inline(always)]
pub(super) unsafe fn sum_diagonals<T: Scalar, V: Vector<T>>(
    n: usize,
    n_diagonals: usize,
    [mass, stiffness]: [*const T; 2],
    [a, b]: [*const T; 2],
    y: *mut T,
) {
    // SAFETY: as the caller promises.
    unsafe {
        cover!(V, n, |at, COUNT| {
            let mut sums = [[V::splat(T::ZERO); COUNT]; 2];
            for t in 0..n_diagonals {
                for u in 0..COUNT {
                    let i = at + u * V::LANES;
                    let (k, m) = (V::load(stiffness.add(t * n + i)), V::load(mass.add(t * n + i)));
                    sums[0][u] = sums[0][u].plus_product(k, V::load(a.add(i + t)));
                    sums[1][u] = sums[1][u].plus_product(m, V::load(b.add(i + t)));
                }
            }
            for u in 0..COUNT {
                sums[0][u].add(sums[1][u]).store(y.add(at + u * V::LANES));
            }
        });
    }
}
