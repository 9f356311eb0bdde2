//! Sums of tensor products in which the mass matrices are diagonal.

use femtile_device::cpu::Wide;
use pulp::{Simd, WithSimd};

use crate::line::{Repeated, V};
use crate::separable::cube_mut;

/// [`crate::separable`] for a diagonal M, as nodes that are the points of the rule give it.
///
/// Takes three 1-D products instead of seven.
pub(crate) struct Lumped<'a, T, const N: usize> {
    /// Halves of K.
    pub stiffness: [&'a [[T; N]; N]; 2],
    /// The diagonal of M.
    pub mass: &'a [T; N],
    /// `[4][lanes]`.
    pub coefficients: &'a [T],
    /// `[N][N][N][lanes]`.
    pub x: &'a mut [T],
    /// As long as `x`.
    pub scratch: &'a mut [T],
}

impl<T: Wide, const N: usize> WithSimd for Lumped<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { stiffness, mass, coefficients, x, scratch } = self;
        let stiffness = Repeated::<T, S, N, false>::new(simd, stiffness);
        let mass: [V<T, S>; N] = std::array::from_fn(|k| T::splat(simd, mass[k]));
        let factors: &[V<T, S>] = bytemuck::cast_slice(coefficients);
        let &[c0, c1, c2, c3] = factors else { return };
        let has_mass = coefficients[coefficients.len() / 4 * 3..].iter().any(|&c| c != T::ZERO);
        let (x, sums) = (cube_mut::<T, S, N>(x), cube_mut::<T, S, N>(scratch));
        for z in 0..N {
            let [of_x, of_y, of_mass] = [c0, c1, c3].map(|c| T::product(simd, mass[z], c));
            for k in 0..N {
                let weight = T::product(simd, of_y, mass[k]);
                let found = stiffness.act(simd, &std::array::from_fn(|y| x[z][y][k]));
                for y in 0..N {
                    sums[z][y][k] = T::product(simd, weight, found[y]);
                }
            }
            for y in 0..N {
                let weight = T::product(simd, of_x, mass[y]);
                let found = stiffness.act(simd, &x[z][y]);
                for k in 0..N {
                    sums[z][y][k] = T::plus_product(simd, sums[z][y][k], weight, found[k]);
                }
                if has_mass {
                    let volume = T::product(simd, of_mass, mass[y]);
                    for k in 0..N {
                        let mu = T::product(simd, volume, mass[k]);
                        sums[z][y][k] = T::plus_product(simd, sums[z][y][k], mu, x[z][y][k]);
                    }
                }
            }
        }
        for y in 0..N {
            let of_z = T::product(simd, mass[y], c2);
            for k in 0..N {
                let weight = T::product(simd, of_z, mass[k]);
                let found = stiffness.act(simd, &std::array::from_fn(|z| x[z][y][k]));
                for z in 0..N {
                    x[z][y][k] = T::plus_product(simd, sums[z][y][k], weight, found[z]);
                }
            }
        }
    }
}
