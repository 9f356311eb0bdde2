use femtile_device::Cpu;
use femtile_device::cpu::SharedMut;
use femtile_tensor::Contract;

use crate::axis::Banded;
use crate::grid::BoxGrid;

/// Values that a thread makes at least.
const MIN_VALUES: usize = 4096;

/// The embedding of functions on a grid into those on the refined one, and its transpose, axis by axis.
///
/// # Source
/// `[cui2024]`, section 2.1.
#[derive(Debug, Clone)]
pub(crate) struct Transfer<T> {
    coarse: BoxGrid,
    up: [Banded<T>; 3],
    down: [Banded<T>; 3],
}

impl<T: Contract> Transfer<T> {
    /// From a grid to the one with its cells halved.
    pub fn new(coarse: &BoxGrid) -> Self {
        let up = [0, 1, 2].map(|axis| match coarse.widths(axis).len() {
            0 => Banded::one(),
            cells => Banded::embedding(coarse.degree(), cells),
        });
        let down = up.each_ref().map(Banded::transpose);
        Self { coarse: coarse.clone(), up, down }
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$.
    pub fn prolongate(&self, cpu: &Cpu, fine: &mut [T], coarse: &[T]) {
        let (mut from, mut sizes) = (coarse.to_vec(), self.coarse.nodes());
        for axis in [2, 1] {
            (from, sizes) = stretched(cpu, &self.up[axis], axis, sizes, &from);
        }
        along(cpu, &self.up[0], 1, &from, fine, true);
    }

    /// $r_{\ell-1} = I^\mathsf{T} r_\ell$ on nodes inside.
    pub fn restrict(&self, cpu: &Cpu, coarse: &mut [T], fine: &[T]) {
        let sizes = self.up.each_ref().map(|up| up.rows.len());
        let (from, sizes) = stretched(cpu, &self.down[0], 0, sizes, fine);
        let (from, sizes) = stretched(cpu, &self.down[1], 1, sizes, &from);
        along(cpu, &self.down[2], sizes[0] * sizes[1], &from, coarse, false);
        self.coarse.clear_boundary(coarse);
    }
}

/// A matrix applied along an axis of a tensor: the result and its sizes.
fn stretched<T: Contract>(
    cpu: &Cpu,
    matrix: &Banded<T>,
    axis: usize,
    mut sizes: [usize; 3],
    x: &[T],
) -> (Vec<T>, [usize; 3]) {
    sizes[axis] = matrix.rows.len();
    let mut y = vec![T::ZERO; sizes.iter().product()];
    along(cpu, matrix, sizes[..axis].iter().product(), x, &mut y, false);
    (y, sizes)
}

/// $y_{o i k} = \sum_j a_{ij} x_{o j k}$, or added to y; `inner` is the number of entries along the faster axes.
fn along<T: Contract>(cpu: &Cpu, a: &Banded<T>, inner: usize, x: &[T], y: &mut [T], adds: bool) {
    let n_rows = a.rows.len();
    let n_stripes = y.len() / inner;
    let shared = SharedMut::new(y);
    cpu.for_ranges(n_stripes, MIN_VALUES.div_ceil(inner), |stripes| {
        #[allow(unsafe_code)]
        // SAFETY: ranges of stripes of different threads do not meet.
        let y = unsafe { shared.range(stripes.start * inner..stripes.end * inner) };
        cpu.vectorize(
            #[inline(always)]
            || {
                for (stripe, y) in stripes.zip(y.chunks_exact_mut(inner)) {
                    let (first, entries) = &a.rows[stripe % n_rows];
                    let first = (stripe / n_rows * a.n_cols + first) * inner;
                    if !adds {
                        y.fill(T::ZERO);
                    }
                    for (entry, x) in entries.iter().zip(x[first..].chunks_exact(inner)) {
                        for (y, x) in y.iter_mut().zip(x) {
                            *y += *entry * *x;
                        }
                    }
                }
            },
        );
    });
}
