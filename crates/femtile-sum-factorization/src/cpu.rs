use femtile_device::Cpu;
use femtile_device::cpu::vector::Lanes;
use femtile_device::cpu::{SimdLevel, Wide};
use pulp::{Simd, WithSimd};

use super::gradient::{Gradient, Metric};
use super::line::{Act, Mirrored, Plain, V};
use super::lumped::Lumped;
use super::mapped::{Mapped, MappedPlane};
use super::separable::Separable;
use super::{Factor, Parity};

/// Returns the number of tensors side by side, the SIMD width.
pub fn lanes<T: Wide>(cpu: &Cpu) -> usize {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => T::lanes::<pulp::x86::V3>(),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => T::lanes::<pulp::x86::V4>(),
        _ => 1,
    }
}

/// Products of all lines with a table whose sizes are compile-time constants.
struct Lines<'a, T, A, const M: usize, const N: usize> {
    table: &'a A,
    inner: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Wide, A: Act<T, M, N>, const M: usize, const N: usize> WithSimd for Lines<'_, T, A, M, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { table, inner, .. } = self;
        let x: &[T::Vector<S>] = bytemuck::cast_slice(self.x);
        let y: &mut [T::Vector<S>] = bytemuck::cast_slice_mut(self.y);
        let n_outer = x.len() / (N * inner);
        assert!(x.len() == n_outer * N * inner && y.len() == n_outer * M * inner);
        for outer in 0..n_outer {
            for k in 0..inner {
                let (from, to) = (outer * N * inner + k, outer * M * inner + k);
                // SAFETY: from + j inner is less than (outer + 1) N inner, which is the length of x at most.
                let line = std::array::from_fn(|j| unsafe { *x.get_unchecked(from + j * inner) });
                for (i, found) in table.act(simd, &line).into_iter().enumerate() {
                    // SAFETY: as above, with M and y.
                    unsafe { *y.get_unchecked_mut(to + i * inner) = found };
                }
            }
        }
    }
}

/// Products with a table of any size; they may be subtracted from the output.
struct AnyLines<'a, T> {
    factor: &'a Factor<T>,
    inner: usize,
    x: &'a [T],
    y: &'a mut [T],
    subtracts: bool,
}

/// Most rows of a table computed at once, so that each loaded value serves all of them.
const ROWS: usize = 8;

impl<T: Wide> WithSimd for AnyLines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { factor: &Factor { n_rows, n_cols, ref entries, .. }, inner, subtracts, .. } = self;
        let x: &[T::Vector<S>] = bytemuck::cast_slice(self.x);
        let y: &mut [T::Vector<S>] = bytemuck::cast_slice_mut(self.y);
        for (x, y) in x.chunks_exact(n_cols * inner).zip(y.chunks_exact_mut(n_rows * inner)) {
            let mut first = 0;
            while first < n_rows {
                let left = n_rows - first;
                let n = if left < 2 * ROWS { left.div_ceil(left.div_ceil(ROWS)) } else { ROWS };
                let rows = (&entries[first * n_cols..][..n * n_cols], inner, subtracts);
                let y = &mut y[first * inner..][..n * inner];
                match n {
                    1 => some_rows::<T, S, 1>(simd, rows, x, y),
                    2 => some_rows::<T, S, 2>(simd, rows, x, y),
                    3 => some_rows::<T, S, 3>(simd, rows, x, y),
                    4 => some_rows::<T, S, 4>(simd, rows, x, y),
                    5 => some_rows::<T, S, 5>(simd, rows, x, y),
                    6 => some_rows::<T, S, 6>(simd, rows, x, y),
                    7 => some_rows::<T, S, 7>(simd, rows, x, y),
                    _ => some_rows::<T, S, ROWS>(simd, rows, x, y),
                }
                first += n;
            }
        }
    }
}

/// Multiplies R rows of a table with the lines of one tensor.
#[inline(always)]
fn some_rows<T: Wide, S: Simd, const R: usize>(
    simd: S,
    (entries, inner, subtracts): (&[T], usize, bool),
    x: &[V<T, S>],
    y: &mut [V<T, S>],
) {
    let n_cols = entries.len() / R;
    assert!(x.len() == n_cols * inner && y.len() == R * inner);
    for k in 0..inner {
        let mut sums = [T::splat(simd, T::ZERO); R];
        for j in 0..n_cols {
            // SAFETY: j inner + k is less than n_cols inner, the length of x.
            let value = unsafe { *x.get_unchecked(j * inner + k) };
            for r in 0..R {
                // SAFETY: the table has R rows of as many entries.
                let entry = unsafe { *entries.get_unchecked(r * n_cols + j) };
                sums[r] = T::plus_product(simd, sums[r], T::splat(simd, entry), value);
            }
        }
        for r in 0..R {
            // SAFETY: y has R inner vectors.
            let to = unsafe { y.get_unchecked_mut(r * inner + k) };
            *to = if subtracts { T::minus(simd, *to, sums[r]) } else { sums[r] };
        }
    }
}

/// Runs the work if the processor has SIMD vectors; returns whether it has.
fn with_vectors(cpu: &Cpu, work: impl WithSimd<Output = ()>) -> bool {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if let Some(simd) = pulp::x86::V3::try_new() => Simd::vectorize(simd, work),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if let Some(simd) = pulp::x86::V4::try_new() => Simd::vectorize(simd, work),
        _ => return false,
    }
    true
}

/// Runs the work with the SIMD width that [`lanes`] returns.
fn with_lanes(cpu: &Cpu, work: impl WithSimd<Output = ()>) {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if let Some(simd) = pulp::x86::V3::try_new() => Simd::vectorize(simd, work),
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if let Some(simd) = pulp::x86::V4::try_new() => Simd::vectorize(simd, work),
        _ => Simd::vectorize(pulp::Scalar::new(), work),
    }
}

fn lines<T: Wide, A: Act<T, M, N>, const M: usize, const N: usize>(
    cpu: &Cpu,
    table: &A,
    inner: usize,
    x: &[T],
    y: &mut [T],
) -> bool {
    with_vectors(cpu, Lines::<T, A, M, N> { table, inner, x, y })
}

/// Returns a table with compile-time sizes, or none if its sizes differ.
fn sized<T, const M: usize, const N: usize>(entries: &[T]) -> Option<&[[T; N]; M]> {
    entries.as_chunks::<N>().0.as_array()
}

fn mirrored<T: Wide, const M: usize, const N: usize>(
    cpu: &Cpu,
    factor: &Factor<T>,
    inner: usize,
    x: &[T],
    y: &mut [T],
) -> bool {
    let (Some(even), Some(odd)) = (sized::<T, M, N>(&factor.halves[0]), sized(&factor.halves[1])) else {
        return false;
    };
    if factor.parity == Parity::Odd {
        lines(cpu, &Mirrored::<T, M, N, true> { even, odd }, inner, x, y)
    } else {
        lines(cpu, &Mirrored::<T, M, N, false> { even, odd }, inner, x, y)
    }
}

fn square<T: Wide, const N: usize>(
    cpu: &Cpu,
    factor: &Factor<T>,
    inner: usize,
    x: &[T],
    y: &mut [T],
) -> bool {
    match sized::<T, N, N>(&factor.entries) {
        Some(entries) if factor.parity == Parity::None => lines(cpu, &Plain(entries), inner, x, y),
        _ => mirrored::<T, N, N>(cpu, factor, inner, x, y),
    }
}

fn halves_of<T, const N: usize>(factor: &Factor<T>) -> Option<[&[[T; N]; N]; 2]> {
    Some([sized(&factor.halves[0])?, sized(&factor.halves[1])?])
}

fn separable<T: Wide, const N: usize>(
    cpu: &Cpu,
    [mass, stiffness]: [&Factor<T>; 2],
    coefficients: &[T],
    x: &mut [T],
    scratch: &mut [T],
) -> bool {
    let Some(stiffness) = halves_of::<T, N>(stiffness) else { return false };
    let (first, second) = scratch.split_at_mut(x.len());
    if let Some(mass) = mass.diagonal.as_array() {
        return with_vectors(cpu, Lumped::<T, N> { stiffness, mass, coefficients, x, scratch: first });
    }
    let Some(mass) = halves_of::<T, N>(mass) else { return false };
    let scratch = [first, &mut second[..x.len()]];
    with_vectors(cpu, Separable { mass, stiffness, coefficients, x, scratch })
}

fn gradient<T: Wide, const N: usize>(
    cpu: &Cpu,
    [slope, transposed]: [&Factor<T>; 2],
    metric: Metric<'_, T>,
    u: &mut [T],
    scratch: &mut [T],
) -> bool {
    let (Some(slope), Some(transposed)) = (halves_of::<T, N>(slope), halves_of(transposed)) else {
        return false;
    };
    let workspace_len = metric.workspace_len(lanes::<T>(cpu));
    let scratch = &mut scratch[..u.len() + 2 * (u.len() / N) + workspace_len];
    with_vectors(cpu, Gradient { slope, transposed, metric, u, scratch })
}

/// Applies a mapped metric plane by plane; `g` may be empty.
fn mapped<T: Wide>(cpu: &Cpu, metric: Mapped<'_, T>, g: [&mut [T]; 3], u: &mut [T], workspace: &mut [T]) {
    let n = metric.weights.len();
    let len = u.len() / n;
    let mut g = g.map(|g| g.chunks_exact_mut(len));
    for (z, u) in u.chunks_exact_mut(len).enumerate() {
        let g = g.each_mut().map(|planes| planes.next().unwrap_or_default());
        with_lanes(cpu, MappedPlane { metric, z, g, u, workspace });
    }
}

/// A scalar type with compiled kernels: along lines for each size up to degree ten, on whole cubes up to degree eight.
pub trait SumFactorization: Wide + Lanes {
    /// [`super::contract`], for lengths that match.
    fn contract_lines(cpu: &Cpu, factor: &Factor<Self>, inner: usize, x: &[Self], y: &mut [Self]);

    /// [`super::subtract_contraction`], for lengths that match.
    fn subtract_lines(cpu: &Cpu, factor: &Factor<Self>, inner: usize, x: &[Self], y: &mut [Self]);

    /// [`super::separable`], for lengths that match; returns whether a kernel exists for the size.
    fn separable_cubes(
        cpu: &Cpu,
        matrices: [&Factor<Self>; 2],
        coefficients: &[Self],
        x: &mut [Self],
        scratch: &mut [Self],
    ) -> bool;

    /// [`super::gradient`], for lengths that match; returns whether a kernel exists for the size.
    fn gradient_cubes(
        cpu: &Cpu,
        slopes: [&Factor<Self>; 2],
        metric: Metric<'_, Self>,
        u: &mut [Self],
        scratch: &mut [Self],
    ) -> bool;

    /// [`super::act_mapped`], for lengths that match.
    fn act_mapped(
        cpu: &Cpu,
        metric: Mapped<'_, Self>,
        g: [&mut [Self]; 3],
        u: &mut [Self],
        scratch: &mut [Self],
    );
}

macro_rules! contract {
    ($t:ident: lines $($n:literal)*; cubes $($m:literal)*) => {
        impl SumFactorization for $t {
            fn contract_lines(cpu: &Cpu, factor: &Factor<$t>, inner: usize, x: &[$t], y: &mut [$t]) {
                let is_done = match (factor.n_rows, factor.n_cols) {
                    $(
                        ($n, $n) => square::<$t, $n>(cpu, factor, inner, x, y),
                        (m, $n) if m == $n + 1 => mirrored::<$t, { $n + 1 }, $n>(cpu, factor, inner, x, y),
                        ($n, n) if n == $n + 1 => mirrored::<$t, $n, { $n + 1 }>(cpu, factor, inner, x, y),
                    )*
                    _ => false,
                };
                if !is_done {
                    with_lanes(cpu, AnyLines { factor, inner, x, y, subtracts: false });
                }
            }

            fn subtract_lines(cpu: &Cpu, factor: &Factor<$t>, inner: usize, x: &[$t], y: &mut [$t]) {
                with_lanes(cpu, AnyLines { factor, inner, x, y, subtracts: true });
            }

            fn separable_cubes(
                cpu: &Cpu,
                matrices: [&Factor<$t>; 2],
                coefficients: &[$t],
                x: &mut [$t],
                scratch: &mut [$t],
            ) -> bool {
                let n = matrices[0].n_rows;
                matrices.iter().all(|matrix| matrix.is_square(n, Parity::Even))
                    && match n {
                        $($m => separable::<$t, $m>(cpu, matrices, coefficients, x, scratch),)*
                        _ => false,
                    }
            }

            fn gradient_cubes(
                cpu: &Cpu,
                slopes: [&Factor<$t>; 2],
                metric: Metric<'_, $t>,
                u: &mut [$t],
                scratch: &mut [$t],
            ) -> bool {
                let n = slopes[0].n_rows;
                slopes.iter().all(|slope| slope.is_square(n, Parity::Odd))
                    && match n {
                        $($m => gradient::<$t, $m>(cpu, slopes, metric, u, scratch),)*
                        _ => false,
                    }
            }

            fn act_mapped(
                cpu: &Cpu,
                metric: Mapped<'_, $t>,
                g: [&mut [$t]; 3],
                u: &mut [$t],
                scratch: &mut [$t],
            ) {
                mapped(cpu, metric, g, u, scratch);
            }
        }
    };
}

// Cubes up to degree eight: larger ones exceed the L1 cache, and their compile time grows with the square of their
// size.
contract!(f32: lines 2 3 4 5 6 7 8 9 10 11; cubes 2 3 4 5 6 7 8 9);
contract!(f64: lines 2 3 4 5 6 7 8 9 10 11; cubes 2 3 4 5 6 7 8 9);
