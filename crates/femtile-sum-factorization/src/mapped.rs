//! Metrics computed at every point from the maps of the cubes.

use femtile_device::cpu::Wide;
use pulp::{Simd, WithSimd};

use crate::line::V;

/// $G = w \det J\, J^{-1} \sigma J^{-\mathsf{T}}$ and $\mu = w \lambda \det J$ by the map of each cube,
/// $$ J = \partial x / \partial \xi, \qquad x = \sum_{ijk} c_{ijk} f_i(\xi) f_j(\eta) f_k(\zeta), \qquad \det J > 0, $$
/// with σ and λ that are constant on each cube.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<'a, T> {
    /// Coefficients c, the first axis fastest: `[order + 1][order + 1][order + 1][3][lanes]`.
    pub coefficients: &'a [T],
    /// The highest degree of f. Up to degree two, $f_i(\xi) = \xi^i$.
    pub order: usize,
    /// f and f' at the points: `[n][order + 1]` each.
    pub tables: [&'a [T]; 2],
    /// Weights w of the points along an axis: `[n]`.
    pub weights: &'a [T],
    /// σ, one number or xx, yy, zz, yz, xz, xy: `[1 or 6][lanes]`; empty without the stiffness term.
    pub sigma: &'a [T],
    /// λ: `[lanes]`; empty without the mass term.
    pub lambda: &'a [T],
}

impl<T> Mapped<'_, T> {
    /// Returns the number of workspace values for a plane of points.
    pub fn workspace_len(&self, lanes: usize) -> usize {
        Self::workspace_of_order(self.order, lanes)
    }

    /// Returns the number of workspace values for polynomials of an order.
    pub fn workspace_of_order(order: usize, lanes: usize) -> usize {
        let k = order + 1;
        3 * (2 * k * k + 3 * k) * lanes
    }

    /// Returns whether all lengths fit `n` points per axis.
    pub(crate) fn fits(&self, n: usize, lanes: usize) -> bool {
        self.coefficients.len() == 3 * (self.order + 1).pow(3) * lanes
            && self.tables.iter().all(|table| table.len() == n * (self.order + 1))
            && self.weights.len() == n
            && [0, 1, 6].contains(&(self.sigma.len() / lanes))
            && self.sigma.len().is_multiple_of(lanes)
            && [0, lanes].contains(&self.lambda.len())
    }
}

/// The metric on a plane of points, applied in place.
pub(crate) struct MappedPlane<'a, T> {
    pub metric: Mapped<'a, T>,
    /// Index of the plane along the last axis.
    pub z: usize,
    /// Slopes, `[n][n][lanes]`, or empty.
    pub g: [&'a mut [T]; 3],
    /// Values; set to zero without λ.
    pub u: &'a mut [T],
    pub workspace: &'a mut [T],
}

/// A vector in space, for each lane.
type Triple<T, S> = [V<T, S>; 3];

/// Factors of the metric at a point: $G = s\, R \sigma R^\mathsf{T}$ and $\mu = v \lambda$.
struct AtPoint<T: Wide, S: Simd> {
    rows: [Triple<T, S>; 3],
    scale: V<T, S>,
    volume: V<T, S>,
}

impl<T: Wide> WithSimd for MappedPlane<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match self.metric.order {
            1 => self.by_polynomials::<S, 2>(simd),
            2 => self.by_polynomials::<S, 3>(simd),
            _ => self.by_polynomials::<S, 0>(simd),
        }
    }
}

impl<T: Wide> MappedPlane<'_, T> {
    /// Evaluates the map by sums along one axis after another: `K` powers, or any functions for `K = 0`.
    #[inline(always)]
    fn by_polynomials<S: Simd, const K: usize>(self, simd: S) {
        let Self { metric, z, g, u, workspace } = self;
        let Mapped { coefficients, order, tables, .. } = metric;
        let k = if K == 0 { order + 1 } else { K };
        let n = metric.weights.len();
        let row_of = |table: usize, at: usize| &tables[table][at * k..][..k];
        let coefficients = triples::<T, S>(coefficients);
        let (values, rest) = triples_mut::<T, S>(workspace).split_at_mut(k * k);
        let (slopes, rest) = rest.split_at_mut(k * k);
        for at in 0..k * k {
            values[at] = value::<T, S, K>(simd, row_of(0, z), coefficients, (at, k * k));
            slopes[at] = slope::<T, S, K>(simd, row_of(1, z), coefficients, (at, k * k));
        }
        let (along_x, rest) = rest.split_at_mut(k);
        let (along_y, along_z) = rest.split_at_mut(k);
        let along_z = &mut along_z[..k];
        let mut points = Points::<T, S>::new(simd, metric, g, u);
        for y in 0..n {
            let (f, df) = (row_of(0, y), row_of(1, y));
            for i in 0..k {
                along_x[i] = value::<T, S, K>(simd, f, values, (i, k));
                along_y[i] = slope::<T, S, K>(simd, df, values, (i, k));
                along_z[i] = value::<T, S, K>(simd, f, slopes, (i, k));
            }
            let of_row = metric.weights[z] * metric.weights[y];
            for x in 0..n {
                let (f, df) = (row_of(0, x), row_of(1, x));
                // Columns of J.
                let jx = slope::<T, S, K>(simd, df, along_x, (0, 1));
                let jy = value::<T, S, K>(simd, f, along_y, (0, 1));
                let jz = value::<T, S, K>(simd, f, along_z, (0, 1));
                // Rows of det J times its inverse.
                let rows =
                    [cross::<T, S>(simd, jy, jz), cross::<T, S>(simd, jz, jx), cross::<T, S>(simd, jx, jy)];
                let determinant = dot3::<T, S>(simd, jx, rows[0]);
                let weight = T::splat(simd, of_row * metric.weights[x]);
                let scale = T::quotient(simd, weight, determinant);
                let volume = T::product(simd, weight, determinant);
                points.act(y * n + x, AtPoint { rows, scale, volume });
            }
        }
    }
}

/// Values and slopes on a plane, and the coefficients.
struct Points<'a, T: Wide, S: Simd> {
    simd: S,
    g: Option<[&'a mut [V<T, S>]; 3]>,
    u: &'a mut [V<T, S>],
    sigma: &'a [V<T, S>],
    lambda: Option<V<T, S>>,
}

impl<'a, T: Wide, S: Simd> Points<'a, T, S> {
    #[inline(always)]
    fn new(simd: S, metric: Mapped<'a, T>, g: [&'a mut [T]; 3], u: &'a mut [T]) -> Self {
        let sigma: &[V<T, S>] = bytemuck::cast_slice(metric.sigma);
        let lambda: &[V<T, S>] = bytemuck::cast_slice(metric.lambda);
        let g = (!sigma.is_empty()).then(|| g.map(|g| bytemuck::cast_slice_mut(g)));
        Self { simd, g, u: bytemuck::cast_slice_mut(u), sigma, lambda: lambda.first().copied() }
    }

    /// Applies the metric at a point.
    #[inline(always)]
    fn act(&mut self, at: usize, AtPoint { rows, scale, volume }: AtPoint<T, S>) {
        let simd = self.simd;
        if let Some([gx, gy, gz]) = &mut self.g {
            let mut flux = product::<T, S>(simd, transposed::<T, S>(rows), [gx[at], gy[at], gz[at]]);
            let mut scale = scale;
            match *self.sigma {
                [sigma] => scale = T::product(simd, scale, sigma),
                [xx, yy, zz, yz, xz, xy] => {
                    flux = product::<T, S>(simd, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], flux);
                }
                _ => {}
            }
            let [x, y, z] = product::<T, S>(simd, rows, flux);
            gx[at] = T::product(simd, scale, x);
            gy[at] = T::product(simd, scale, y);
            gz[at] = T::product(simd, scale, z);
        }
        self.u[at] = match self.lambda {
            Some(lambda) => T::product(simd, self.u[at], T::product(simd, volume, lambda)),
            None => T::splat(simd, T::ZERO),
        };
    }
}

// No closures around arithmetic below: a closure that is not inlined is compiled without vector instructions.

/// Returns $\sum_j f_j x_{b + j s}$ for b and s of `places`; with `K` powers the first is one.
#[inline(always)]
fn value<T: Wide, S: Simd, const K: usize>(
    simd: S,
    f: &[T],
    x: &[Triple<T, S>],
    places: (usize, usize),
) -> Triple<T, S> {
    sum::<T, S, K>(simd, f, 0, x, places)
}

/// Returns the same sum with slopes for f; with `K` powers the first is zero and the second one.
#[inline(always)]
fn slope<T: Wide, S: Simd, const K: usize>(
    simd: S,
    f: &[T],
    x: &[Triple<T, S>],
    places: (usize, usize),
) -> Triple<T, S> {
    sum::<T, S, K>(simd, f, usize::from(K != 0), x, places)
}

/// Sums from entry `first` on, which is one for powers.
#[inline(always)]
fn sum<T: Wide, S: Simd, const K: usize>(
    simd: S,
    f: &[T],
    first: usize,
    x: &[Triple<T, S>],
    (begin, step): (usize, usize),
) -> Triple<T, S> {
    let mut sum = x[begin + first * step];
    if K == 0 {
        let factor = T::splat(simd, f[first]);
        for d in 0..3 {
            sum[d] = T::product(simd, factor, sum[d]);
        }
    }
    for j in first + 1..if K == 0 { f.len() } else { K } {
        let (factor, x) = (T::splat(simd, f[j]), x[begin + j * step]);
        for d in 0..3 {
            sum[d] = T::plus_product(simd, sum[d], factor, x[d]);
        }
    }
    sum
}

#[inline(always)]
fn dot3<T: Wide, S: Simd>(simd: S, a: Triple<T, S>, b: Triple<T, S>) -> V<T, S> {
    let sum = T::plus_product(simd, T::product(simd, a[0], b[0]), a[1], b[1]);
    T::plus_product(simd, sum, a[2], b[2])
}

/// Multiplies a matrix, given by rows, with a vector.
#[inline(always)]
fn product<T: Wide, S: Simd>(simd: S, rows: [Triple<T, S>; 3], x: Triple<T, S>) -> Triple<T, S> {
    [dot3::<T, S>(simd, rows[0], x), dot3::<T, S>(simd, rows[1], x), dot3::<T, S>(simd, rows[2], x)]
}

#[inline(always)]
fn transposed<T: Wide, S: Simd>([a, b, c]: [Triple<T, S>; 3]) -> [Triple<T, S>; 3] {
    [[a[0], b[0], c[0]], [a[1], b[1], c[1]], [a[2], b[2], c[2]]]
}

/// Returns $a b - c d$.
#[inline(always)]
fn minor<T: Wide, S: Simd>(simd: S, a: V<T, S>, b: V<T, S>, c: V<T, S>, d: V<T, S>) -> V<T, S> {
    T::minus_product(simd, T::product(simd, a, b), c, d)
}

#[inline(always)]
fn cross<T: Wide, S: Simd>(simd: S, a: Triple<T, S>, b: Triple<T, S>) -> Triple<T, S> {
    [
        minor::<T, S>(simd, a[1], b[2], a[2], b[1]),
        minor::<T, S>(simd, a[2], b[0], a[0], b[2]),
        minor::<T, S>(simd, a[0], b[1], a[1], b[0]),
    ]
}

#[inline(always)]
fn triples<T: Wide, S: Simd>(values: &[T]) -> &[Triple<T, S>] {
    bytemuck::cast_slice::<T, V<T, S>>(values).as_chunks::<3>().0
}

#[inline(always)]
fn triples_mut<T: Wide, S: Simd>(values: &mut [T]) -> &mut [Triple<T, S>] {
    bytemuck::cast_slice_mut::<T, V<T, S>>(values).as_chunks_mut::<3>().0
}
