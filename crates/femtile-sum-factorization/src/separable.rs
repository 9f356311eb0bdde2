//! Operators that are sums of tensor products of 1-D matrices.

use femtile_device::cpu::Wide;
use pulp::{Simd, WithSimd};

use crate::line::{V, combined, dot, split};

/// $y = (c_0\, K_x M_y M_z + c_1\, M_x K_y M_z + c_2\, M_x M_y K_z + c_3\, M_x M_y M_z)\, x$ in place, for matrices
/// that are symmetric about their centre.
///
/// Takes seven 1-D products instead of twelve: products along the first axis serve all terms, and sums are taken before
/// the next axis.
pub(crate) struct Separable<'a, T, const N: usize> {
    /// Halves of M and halves of K.
    pub mass: [&'a [[T; N]; N]; 2],
    pub stiffness: [&'a [[T; N]; N]; 2],
    /// `[4][lanes]`.
    pub coefficients: &'a [T],
    /// `[N][N][N][lanes]`.
    pub x: &'a mut [T],
    /// Two buffers as long as `x`.
    pub scratch: [&'a mut [T]; 2],
}

/// Halves of a sum of products: the even parts of the first half of the rows, then the odd parts.
type Halves<T, S, const N: usize> = [[V<T, S>; N]; 2];

impl<T: Wide, const N: usize> Separable<'_, T, N> {
    /// Returns the even and odd parts of a matrix times the sums and differences of a line.
    #[inline(always)]
    fn halves<S: Simd>(simd: S, matrix: [&[[T; N]; N]; 2], line: &Halves<T, S, N>) -> Halves<T, S, N> {
        let mut found = [[T::splat(simd, T::ZERO); N]; 2];
        for i in 0..N.div_ceil(2) {
            found[0][i] = dot::<T, S, N>(simd, &matrix[0][i], &line[0], N.div_ceil(2));
        }
        for i in 0..N / 2 {
            found[1][i] = dot::<T, S, N>(simd, &matrix[1][i], &line[1], N / 2);
        }
        found
    }

    /// Adds a multiple of halves to others.
    #[inline(always)]
    fn add<S: Simd>(simd: S, to: &mut Halves<T, S, N>, factor: V<T, S>, halves: &Halves<T, S, N>) {
        for i in 0..N.div_ceil(2) {
            to[0][i] = T::plus_product(simd, to[0][i], factor, halves[0][i]);
        }
        for i in 0..N / 2 {
            to[1][i] = T::plus_product(simd, to[1][i], factor, halves[1][i]);
        }
    }

    #[inline(always)]
    fn scale<S: Simd>(simd: S, halves: &mut Halves<T, S, N>, factor: V<T, S>) {
        for i in 0..N.div_ceil(2) {
            halves[0][i] = T::product(simd, factor, halves[0][i]);
        }
        for i in 0..N / 2 {
            halves[1][i] = T::product(simd, factor, halves[1][i]);
        }
    }
}

impl<T: Wide, const N: usize> WithSimd for Separable<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { mass, stiffness, coefficients, x, scratch: [with_k, with_m] } = self;
        let factors: &[V<T, S>] = bytemuck::cast_slice(coefficients);
        let &[c0, c1, c2, c3] = factors else { return };
        let x = cube_mut::<T, S, N>(x);
        let (with_k, with_m) = (cube_mut::<T, S, N>(with_k), cube_mut::<T, S, N>(with_m));
        for z in 0..N {
            for y in 0..N {
                let line = split::<T, S, N>(simd, &x[z][y]);
                with_k[z][y] = combined::<T, S, N, false>(simd, &Self::halves::<S>(simd, stiffness, &line));
                with_m[z][y] = combined::<T, S, N, false>(simd, &Self::halves::<S>(simd, mass, &line));
            }
            for k in 0..N {
                let of_k = split::<T, S, N>(simd, &std::array::from_fn(|y| with_k[z][y][k]));
                let of_m = split::<T, S, N>(simd, &std::array::from_fn(|y| with_m[z][y][k]));
                let all_mass = Self::halves::<S>(simd, mass, &of_m);
                let mut sum = Self::halves::<S>(simd, mass, &of_k);
                Self::scale::<S>(simd, &mut sum, c0);
                Self::add::<S>(simd, &mut sum, c1, &Self::halves::<S>(simd, stiffness, &of_m));
                Self::add::<S>(simd, &mut sum, c3, &all_mass);
                let sum = combined::<T, S, N, false>(simd, &sum);
                let all_mass = combined::<T, S, N, false>(simd, &all_mass);
                for y in 0..N {
                    (with_k[z][y][k], with_m[z][y][k]) = (sum[y], all_mass[y]);
                }
            }
        }
        for y in 0..N {
            for k in 0..N {
                let of_sum = split::<T, S, N>(simd, &std::array::from_fn(|z| with_k[z][y][k]));
                let of_m = split::<T, S, N>(simd, &std::array::from_fn(|z| with_m[z][y][k]));
                let mut found = Self::halves::<S>(simd, mass, &of_sum);
                Self::add::<S>(simd, &mut found, c2, &Self::halves::<S>(simd, stiffness, &of_m));
                let found = combined::<T, S, N, false>(simd, &found);
                for z in 0..N {
                    x[z][y][k] = found[z];
                }
            }
        }
    }
}

/// Returns values as a tensor with three axes.
#[inline(always)]
pub(crate) fn cube_mut<T: Wide, S: Simd, const N: usize>(x: &mut [T]) -> &mut [[[V<T, S>; N]; N]; N] {
    let vectors: &mut [V<T, S>] = bytemuck::cast_slice_mut(x);
    let planes = vectors.as_chunks_mut::<N>().0.as_chunks_mut::<N>().0;
    planes.as_chunks_mut::<N>().0.first_mut().expect("the caller gives as many values as a tensor has")
}

/// Returns values as a tensor with two axes.
#[inline(always)]
pub(crate) fn plane_mut<T: Wide, S: Simd, const N: usize>(x: &mut [T]) -> &mut [[V<T, S>; N]; N] {
    let lines = bytemuck::cast_slice_mut::<T, V<T, S>>(x).as_chunks_mut::<N>().0;
    lines.as_chunks_mut::<N>().0.first_mut().expect("the caller gives as many values as a tensor has")
}
