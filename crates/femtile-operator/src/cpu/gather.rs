//! Gather and scatter of the unknowns of a batch of cells.

use femtile_device::cpu::vector::prefetch;

use super::CpuOperator;
use super::basis::{LANES, Lanes};

/// Batches after the current one whose data are prefetched.
const AHEAD: usize = 3;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches what a product reads of a later batch.
///
/// # Shapes
/// `values: [n_batches][per_batch]`
#[inline(always)]
pub(super) fn prefetch_ahead<T>(values: &[T], batch: usize, per_batch: usize) {
    let per_line = LINE / size_of::<T>();
    for line in 0..per_batch.div_ceil(per_line) {
        // Addresses beyond the end are not read.
        prefetch(values.as_ptr().wrapping_add((batch + AHEAD) * per_batch + line * per_line));
    }
}

/// Calls a method with the numbers of shape functions and components as constants where they are frequent, else with zeros.
macro_rules! sized {
    ($operator:ident.$method:ident, $($argument:expr),+) => {
        match ($operator.basis.n, $operator.discrete.form().n_components()) {
            (4, 1) => $operator.$method::<4, 1>($($argument),+),
            (6, 1) => $operator.$method::<6, 1>($($argument),+),
            (10, 1) => $operator.$method::<10, 1>($($argument),+),
            (10, 3) => $operator.$method::<10, 3>($($argument),+),
            (20, 1) => $operator.$method::<20, 1>($($argument),+),
            (20, 3) => $operator.$method::<20, 3>($($argument),+),
            (_, 1) => $operator.$method::<0, 1>($($argument),+),
            (_, 2) => $operator.$method::<0, 2>($($argument),+),
            (_, 3) => $operator.$method::<0, 3>($($argument),+),
            _ => $operator.$method::<0, 0>($($argument),+),
        }
    };
}

impl CpuOperator<'_> {
    /// Gathers the coefficients of all components in a batch; lanes without a cell repeat the last one.
    ///
    /// # Shapes
    /// `u: [n_unknowns]`, `local: [n_components][n]`
    pub(super) fn gather(&self, batch: usize, u: &[f64], local: &mut [Lanes]) {
        sized!(self.gather_sized, batch, u, local);
    }

    /// Adds contributions to the unknowns of a batch, one cell after another.
    ///
    /// # Shapes
    /// `local: [n_components][n]`, `y: [n_unknowns]`
    pub(super) fn scatter_add(&self, batch: usize, local: &[Lanes], y: &mut [f64]) {
        sized!(self.scatter_sized, batch, local, y);
    }

    /// Adds the contributions of all cells to the unknowns of some degrees of freedom, in the order of the cells.
    ///
    /// # Shapes
    /// `found: [n_batches][n_components][n]`, `y`: the unknowns from `begin` on
    pub(super) fn add_places(&self, begin: usize, found: &[Lanes], y: &mut [f64]) {
        sized!(self.places_sized, begin, found, y);
    }

    fn places_sized<const N: usize, const C: usize>(&self, begin: usize, found: &[Lanes], y: &mut [f64]) {
        let [n, n_components] = self.sizes::<N, C>();
        for (i, y) in y.chunks_exact_mut(n_components).enumerate() {
            for &place in self.places.of(begin / n_components + i) {
                // Division of 32-bit numbers is faster, and by a constant faster still.
                let (cell, shape) = ((place / n as u32) as usize, (place % n as u32) as usize);
                let of_batch = &found[cell / LANES * (n * n_components)..][..n * n_components];
                for (component, y) in y.iter_mut().enumerate() {
                    *y += of_batch[component * n + shape][cell % LANES];
                }
            }
        }
    }

    /// Returns the numbers of shape functions and components: those given, or those of the operator in place of zeros.
    #[inline(always)]
    fn sizes<const N: usize, const C: usize>(&self) -> [usize; 2] {
        [if N > 0 { N } else { self.basis.n }, if C > 0 { C } else { self.discrete.form().n_components() }]
    }

    fn gather_sized<const N: usize, const C: usize>(&self, batch: usize, u: &[f64], local: &mut [Lanes]) {
        let [n, n_components] = self.sizes::<N, C>();
        assert!(u.len() == self.discrete.n_unknowns() && local.len() == n * n_components);
        let n_cells = self.discrete.space().n_cells();
        prefetch_ahead(&self.dofs, batch, LANES * n);
        // Vectors are put together in registers: loads of vectors wait for stores of their parts.
        if (batch + 1) * LANES <= n_cells {
            let dofs = &self.dofs[batch * LANES * n..][..LANES * n];
            self.cpu.simd().vectorize(
                #[inline(always)]
                || {
                    // Constants again, which the closure does not capture as such.
                    let n = if N > 0 { N } else { n };
                    let n_components = if C > 0 { C } else { n_components };
                    for k in 0..n {
                        for component in 0..n_components {
                            let mut values = [0.0; LANES];
                            for lane in 0..LANES {
                                // SAFETY: `dofs` has n entries for each lane. Degrees of freedom are below their number in space, of
                                // which each has n_components unknowns, as `prepare` checks.
                                values[lane] = unsafe {
                                    let dof = *dofs.get_unchecked(lane * n + k) as usize;
                                    *u.get_unchecked(dof * n_components + component)
                                };
                            }
                            // SAFETY: `local` has n entries for each component.
                            unsafe { *local.get_unchecked_mut(component * n + k) = values };
                        }
                    }
                },
            );
            return;
        }
        for lane in 0..LANES {
            let cell = (batch * LANES + lane).min(n_cells - 1);
            for (k, &dof) in self.dofs[cell * n..][..n].iter().enumerate() {
                for component in 0..n_components {
                    local[component * n + k][lane] = u[dof as usize * n_components + component];
                }
            }
        }
    }

    fn scatter_sized<const N: usize, const C: usize>(&self, batch: usize, local: &[Lanes], y: &mut [f64]) {
        let [n, n_components] = self.sizes::<N, C>();
        assert!(y.len() == self.discrete.n_unknowns() && local.len() == n * n_components);
        let n_cells = self.discrete.space().n_cells();
        for (lane, cell) in (batch * LANES..n_cells.min((batch + 1) * LANES)).enumerate() {
            let dofs = &self.dofs[cell * n..][..n];
            for k in 0..n {
                for component in 0..n_components {
                    // SAFETY: as in `gather_sized`.
                    unsafe {
                        let dof = *dofs.get_unchecked(k) as usize;
                        let from = local.get_unchecked(component * n + k).get_unchecked(lane);
                        *y.get_unchecked_mut(dof * n_components + component) += from;
                    }
                }
            }
        }
    }
}
