//! Gradients at all points, a metric G applied at each point, and the transposed gradients. G holds σ, the Jacobian and the
//! quadrature weight.

use femtile_device::cpu::Wide;
use femtile_device::cpu::vector::prefetch;
use pulp::{Simd, WithSimd};

use crate::line::{Repeated, V};
use crate::mapped::{Mapped, MappedPlane};
use crate::separable::{cube_mut, plane_mut};

/// Bytes of a cache line.
const CACHE_LINE: usize = 64;

/// The metric applied to the slopes g and the values u at the points of a rule: $h = G g$, $v = \mu u$, G symmetric.
#[derive(Debug, Clone, Copy)]
pub enum Metric<'a, T> {
    /// The same at all points but for quadrature weights, which are products of 1-D weights.
    Constant {
        /// xx, yy, zz, yz, xz, xy and μ: `[7][lanes]`.
        entries: &'a [T],
        /// Weights along an axis: `[n]`.
        weights: &'a [T],
        /// Whether the form has a mass term μ.
        has_mass: bool,
    },
    /// Stored at each point, multiplied by its weight.
    Stored {
        /// xx, yy, zz, yz, xz, xy and, with a mass term, μ: `[n][n][n][6 or 7][lanes]`.
        entries: &'a [T],
        /// Whether the form has a mass term μ.
        has_mass: bool,
    },
    /// Computed at each point from the map.
    Mapped(Mapped<'a, T>),
}

impl<T> Metric<'_, T> {
    /// Returns whether the form has a mass term μ.
    pub fn has_mass(&self) -> bool {
        match self {
            Self::Constant { has_mass, .. } | Self::Stored { has_mass, .. } => *has_mass,
            Self::Mapped(mapped) => !mapped.lambda.is_empty(),
        }
    }

    /// Returns the number of workspace values besides slopes.
    pub(crate) fn workspace_len(&self, lanes: usize) -> usize {
        if let Self::Mapped(mapped) = self { mapped.workspace_len(lanes) } else { 0 }
    }

    /// Returns whether all lengths fit `n` points per axis.
    pub(crate) fn fits(&self, n: usize, lanes: usize) -> bool {
        match *self {
            Self::Constant { entries, weights, .. } => entries.len() == 7 * lanes && weights.len() == n,
            Self::Stored { entries, has_mass } => {
                entries.len() == n * n * n * (6 + usize::from(has_mass)) * lanes
            }
            Self::Mapped(ref mapped) => !mapped.sigma.is_empty() && mapped.fits(n, lanes),
        }
    }
}

/// $u \leftarrow \sum_a D_a^\mathsf{T} h_a + v$ in place, with $g_a = D_a u$.
pub(crate) struct Gradient<'a, T, const N: usize> {
    /// Halves of D and of its transpose, which are antisymmetric about their centre.
    pub slope: [&'a [[T; N]; N]; 2],
    pub transposed: [&'a [[T; N]; N]; 2],
    pub metric: Metric<'a, T>,
    /// `[N][N][N][lanes]`.
    pub u: &'a mut [T],
    /// Workspace: the length of `u`, two planes, and the workspace of the metric.
    pub scratch: &'a mut [T],
}

/// Values or slopes at the points of a plane.
type Plane<T, S, const N: usize> = [[V<T, S>; N]; N];

/// Applies G to a gradient at a point.
#[inline(always)]
fn act_at<T: Wide, S: Simd>(
    simd: S,
    [xx, yy, zz, yz, xz, xy]: [V<T, S>; 6],
    g: [V<T, S>; 3],
) -> [V<T, S>; 3] {
    let row =
        |a, b, c| T::plus_product(simd, T::plus_product(simd, T::product(simd, a, g[0]), b, g[1]), c, g[2]);
    [row(xx, xy, xz), row(xy, yy, yz), row(xz, yz, zz)]
}

impl<T: Wide, const N: usize> Gradient<'_, T, N> {
    /// Applies the metric on a plane of points; values have no meaning afterwards without a mass term.
    #[inline(always)]
    fn act<S: Simd>(
        simd: S,
        metric: &Metric<'_, T>,
        z: usize,
        u: &mut Plane<T, S, N>,
        [gx, gy, gz]: [&mut Plane<T, S, N>; 3],
        workspace: &mut [T],
    ) {
        match *metric {
            Metric::Mapped(metric) => {
                let g = [gx, gy, gz].map(|g| bytemuck::cast_slice_mut(g.as_flattened_mut()));
                let u = bytemuck::cast_slice_mut(u.as_flattened_mut());
                // A separate function: one instance serves cubes of all sizes.
                simd.vectorize(MappedPlane { metric, z, g, u, workspace });
            }
            Metric::Stored { entries, has_mass } => {
                let entries: &[V<T, S>] = bytemuck::cast_slice(entries);
                let width = if has_mass { 7 } else { 6 };
                let plane = &entries[z * N * N * width..(z + 1) * N * N * width];
                let per_line = (CACHE_LINE / size_of::<V<T, S>>()).max(1);
                for (at, entries) in plane.chunks_exact(width).enumerate() {
                    let (y, k) = (at / N, at % N);
                    let &[xx, yy, zz, yz, xz, xy, ..] = entries else { return };
                    // Prefetches the next plane, or the next cells, which follow in memory.
                    for entry in (0..width).step_by(per_line) {
                        prefetch(entries.as_ptr().wrapping_add(N * N * width + entry));
                    }
                    let g = [gx[y][k], gy[y][k], gz[y][k]];
                    [gx[y][k], gy[y][k], gz[y][k]] = act_at::<T, S>(simd, [xx, yy, zz, yz, xz, xy], g);
                    if has_mass {
                        u[y][k] = T::product(simd, u[y][k], entries[6]);
                    }
                }
            }
            Metric::Constant { entries, weights, has_mass } => {
                let entries: &[V<T, S>] = bytemuck::cast_slice(entries);
                let &[xx, yy, zz, yz, xz, xy, mu] = entries else { return };
                for y in 0..N {
                    for k in 0..N {
                        let weight = T::splat(simd, weights[z] * weights[y] * weights[k]);
                        let g = [gx[y][k], gy[y][k], gz[y][k]].map(|g| T::product(simd, weight, g));
                        [gx[y][k], gy[y][k], gz[y][k]] = act_at::<T, S>(simd, [xx, yy, zz, yz, xz, xy], g);
                        if has_mass {
                            u[y][k] = T::product(simd, u[y][k], T::product(simd, weight, mu));
                        }
                    }
                }
            }
        }
    }
}

impl<T: Wide, const N: usize> WithSimd for Gradient<'_, T, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { slope, transposed, metric, u, scratch } = self;
        let slope = Repeated::<T, S, N, true>::new(simd, slope);
        let transposed = Repeated::<T, S, N, true>::new(simd, transposed);
        let has_mass = metric.has_mass();
        let (gz, planes) = scratch.split_at_mut(u.len());
        let (gx, rest) = planes.split_at_mut(u.len() / N);
        let (gy, workspace) = rest.split_at_mut(u.len() / N);
        let (u, gz) = (cube_mut::<T, S, N>(u), cube_mut::<T, S, N>(gz));
        let (gx, gy) = (plane_mut::<T, S, N>(gx), plane_mut::<T, S, N>(gy));
        for y in 0..N {
            for k in 0..N {
                let found = slope.act(simd, &std::array::from_fn(|z| u[z][y][k]));
                for z in 0..N {
                    gz[z][y][k] = found[z];
                }
            }
        }
        for z in 0..N {
            let plane = &mut u[z];
            for y in 0..N {
                gx[y] = slope.act(simd, &plane[y]);
            }
            for k in 0..N {
                let found = slope.act(simd, &std::array::from_fn(|y| plane[y][k]));
                for y in 0..N {
                    gy[y][k] = found[y];
                }
            }
            Self::act::<S>(simd, &metric, z, plane, [gx, gy, &mut gz[z]], workspace);
            for y in 0..N {
                let found = transposed.act(simd, &gx[y]);
                for k in 0..N {
                    plane[y][k] = if has_mass { T::plus(simd, plane[y][k], found[k]) } else { found[k] };
                }
            }
            for k in 0..N {
                let found = transposed.act(simd, &std::array::from_fn(|y| gy[y][k]));
                for y in 0..N {
                    plane[y][k] = T::plus(simd, plane[y][k], found[y]);
                }
            }
        }
        for y in 0..N {
            for k in 0..N {
                let found = transposed.act(simd, &std::array::from_fn(|z| gz[z][y][k]));
                for z in 0..N {
                    u[z][y][k] = T::plus(simd, u[z][y][k], found[z]);
                }
            }
        }
    }
}
