use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Cpu, Scalar};
use femtile_element::tensor::Table;

use crate::axis::embedding;
use crate::grid::BoxGrid;

/// Prolongation I between a grid and its refinement along some axes (the embedding of coarse functions), and restriction,
/// its transpose, row by row.
///
/// Cells of slabs are shared among threads, and neighbouring ones are not processed at the same time, so results have the same
/// bits for any number of threads.
///
/// # Cost
/// Each vector once; per fine node k + 1 products along x, half as many across rows, a quarter across slabs.
/// # Source
/// `[cui2024]`, section 2.1.
#[derive(Debug, Clone)]
pub struct RowTransfer<T> {
    cpu: Cpu,
    coarse: BoxGrid,
    /// Along x, across rows, across slabs.
    axes: [Axis<T>; 3],
}

/// The transfer along an axis.
#[derive(Debug, Clone)]
struct Axis<T> {
    degree: usize,
    n_cells: usize,
    /// Fine nodes of a coarse cell without the last.
    n_own: usize,
    /// Values of the coarse shape functions at the fine nodes of a cell: `[n_own + 1][k + 1]`.
    values: Vec<T>,
}

impl<T: Scalar> Axis<T> {
    fn new(degree: usize, n_cells: usize, n_fine_cells: usize) -> Self {
        if n_cells == 0 {
            return Self { degree: 0, n_cells: 1, n_own: 1, values: vec![T::ONE] };
        }
        let n_parts = n_fine_cells / n_cells;
        let Table { entries, .. } = embedding(degree, n_parts);
        Self {
            degree,
            n_cells,
            n_own: n_parts * degree,
            values: entries.into_iter().map(T::from_f64).collect(),
        }
    }

    /// The number of cells, rounded up to whole vectors, so that no loop over cells has a remainder.
    fn padded(&self) -> usize {
        self.n_cells.next_multiple_of(LANES)
    }

    /// The number of coarse nodes.
    fn n_coarse(&self) -> usize {
        self.degree * self.n_cells + 1
    }

    /// The number of fine nodes.
    fn n_fine(&self) -> usize {
        if self.degree == 0 { 1 } else { self.n_own * self.n_cells + 1 }
    }

    /// Whether fine and coarse nodes are the same.
    fn is_identity(&self) -> bool {
        self.n_own == self.degree || self.degree == 0
    }

    /// Returns the first coarse node with a non-zero shape function at a fine node, and the values of the
    /// shape functions from it on.
    #[inline(always)]
    fn parents(&self, fine: usize) -> (usize, &[T]) {
        let cell = (fine / self.n_own).min(self.n_cells - 1);
        let (place, n) = (fine - cell * self.n_own, self.degree + 1);
        let (first, values) = (cell * self.degree, &self.values[place * n..(place + 1) * n]);
        if place == 0 {
            (first, &values[..1])
        } else if place == self.n_own {
            (first + self.degree, &values[self.degree..])
        } else if self.is_identity() {
            (first + place, &values[place..=place])
        } else {
            (first, values)
        }
    }

    /// The fine nodes of a coarse cell, the last one with the last cell alone.
    fn fine_of_cell(&self, cell: usize) -> Range<usize> {
        let begin = cell * self.n_own;
        if cell + 1 == self.n_cells { begin..self.n_fine() } else { begin..begin + self.n_own }
    }
}

/// A multiple of the lanes of every vector.
const LANES: usize = 16;

/// Workspace of a thread.
struct Room<T> {
    /// Coarse rows of a slab.
    slab: Vec<T>,
    /// A coarse row.
    row: Vec<T>,
    /// Nodes at the same place of all cells: of coarse cells `[k + 1][padded + 1]`, and of one place in fine ones `[padded]`.
    places: Vec<T>,
    sums: Vec<T>,
}

impl<T: Scalar> RowTransfer<T> {
    /// Creates the transfer; each axis of `fine` has the same number of cells as that of `coarse`, or twice
    /// the number.
    pub fn new(cpu: &Cpu, coarse: &BoxGrid, fine: &BoxGrid) -> Self {
        let axes = if coarse.dimension() == 2 { [0, 2, 1] } else { [0, 1, 2] };
        let axis =
            |axis: usize| Axis::new(coarse.degree(), coarse.widths(axis).len(), fine.widths(axis).len());
        Self { cpu: cpu.clone(), coarse: coarse.clone(), axes: axes.map(axis) }
    }

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$.
    ///
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn prolongate(&self, fine: &mut [T], coarse: &[T]) {
        self.check(fine.len(), coarse.len());
        let [along, across, over] = &self.axes;
        let (n, n_rows) = (along.n_fine(), across.n_fine());
        let fine = SharedMut::new(fine);
        self.cpu.for_ranges(over.n_fine(), 1, |range| {
            let mut room = self.room();
            for slab in range {
                // SAFETY: each slab belongs to one range.
                let to = unsafe { fine.range(slab * n_rows * n..(slab + 1) * n_rows * n) };
                self.cpu.vectorize(
                    #[inline(always)]
                    || self.prolongate_slab(to, coarse, slab, &mut room),
                );
            }
        });
    }

    #[inline(always)]
    fn prolongate_slab(&self, to: &mut [T], coarse: &[T], slab: usize, room: &mut Room<T>) {
        let [along, across, over] = &self.axes;
        let (n, n_slab) = (along.n_coarse(), along.n_coarse() * across.n_coarse());
        let (first, values) = over.parents(slab);
        room.slab.fill(T::ZERO);
        for (k, value) in values.iter().enumerate() {
            add(&mut room.slab, *value, &coarse[(first + k) * n_slab..][..n_slab]);
        }
        for (row, to) in to.chunks_exact_mut(along.n_fine()).enumerate() {
            let (first, values) = across.parents(row);
            room.row.fill(T::ZERO);
            for (k, value) in values.iter().enumerate() {
                add(&mut room.row, *value, &room.slab[(first + k) * n..][..n]);
            }
            along.add_interpolated(to, &room.row, &mut room.places, &mut room.sums);
        }
    }

    /// $b_{\ell-1} = I^\mathsf{T} b_\ell$ on unknowns; b is zero at Dirichlet nodes.
    ///
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn restrict(&self, coarse: &mut [T], b: &[T]) {
        self.check(b.len(), coarse.len());
        coarse.fill(T::ZERO);
        let [along, across, over] = &self.axes;
        let n_slab = along.n_coarse() * across.n_coarse();
        let shared = SharedMut::new(coarse);
        for parity in [0, 1] {
            self.cpu.for_ranges((over.n_cells + 1 - parity) / 2, 1, |range| {
                let mut room = self.room();
                for cell in range.map(|place| 2 * place + parity) {
                    let slabs = cell * over.degree..(cell + 1) * over.degree + 1;
                    // SAFETY: cells of the same parity share no slab.
                    let to = unsafe { shared.range(slabs.start * n_slab..slabs.end * n_slab) };
                    self.cpu.vectorize(
                        #[inline(always)]
                        || self.restrict_cell(to, b, cell, &mut room),
                    );
                }
            });
        }
        self.coarse.clear_given(coarse);
    }

    /// Adds the contribution of a cell of slabs to its coarse slabs.
    #[inline(always)]
    fn restrict_cell(&self, to: &mut [T], b: &[T], cell: usize, room: &mut Room<T>) {
        let [along, across, over] = &self.axes;
        let (n, n_slab, n_rows) = (along.n_coarse(), room.slab.len(), across.n_fine());
        for slab in over.fine_of_cell(cell) {
            room.slab.fill(T::ZERO);
            for row in 0..n_rows {
                let from = &b[(slab * n_rows + row) * along.n_fine()..][..along.n_fine()];
                along.restrict(&mut room.row, from, &mut room.places, &mut room.sums);
                let (first, values) = across.parents(row);
                for (k, value) in values.iter().enumerate() {
                    add(&mut room.slab[(first + k) * n..][..n], *value, &room.row);
                }
            }
            let (first, values) = over.parents(slab);
            for (k, value) in values.iter().enumerate() {
                add(&mut to[(first + k - cell * over.degree) * n_slab..][..n_slab], *value, &room.slab);
            }
        }
    }

    fn room(&self) -> Room<T> {
        let [along, across, _] = &self.axes;
        let zeros = |n: usize| vec![T::ZERO; n];
        Room {
            slab: zeros(along.n_coarse() * across.n_coarse()),
            row: zeros(along.n_coarse()),
            places: zeros((along.degree + 1) * (along.padded() + 1)),
            sums: zeros(along.padded()),
        }
    }

    fn check(&self, n_fine: usize, n_coarse: usize) {
        let n = |of: fn(&Axis<T>) -> usize| self.axes.iter().map(of).product::<usize>();
        assert!((n_fine, n_coarse) == (n(Axis::n_fine), n(Axis::n_coarse)), "values of the nodes");
    }
}

impl<T: Scalar> Axis<T> {
    /// Adds the values of coarse functions to a fine row.
    ///
    /// Sums over cells, one local node at a time: SIMD vectors hold the same local node of neighbouring
    /// cells.
    #[inline(always)]
    fn add_interpolated(&self, to: &mut [T], from: &[T], places: &mut [T], sums: &mut [T]) {
        if self.is_identity() {
            return add(to, T::ONE, from);
        }
        let (k, n, padded) = (self.degree, self.n_cells, self.padded());
        for (j, place) in places.chunks_exact_mut(padded + 1).take(k).enumerate() {
            take_every(place, &from[j..], k);
        }
        for (i, values) in self.values.chunks_exact(k + 1).take(self.n_own).enumerate() {
            set(sums, values[0], &places[..padded]);
            for j in 1..k {
                add(sums, values[j], &places[j * (padded + 1)..][..padded]);
            }
            add(sums, values[k], &places[1..=padded]);
            for (to, sum) in to[i..].iter_mut().step_by(self.n_own).zip(&sums[..n]) {
                *to += *sum;
            }
        }
        to[n * self.n_own] += from[n * k];
    }

    /// The transpose of [`Self::add_interpolated`]; overwrites the coarse row.
    #[inline(always)]
    fn restrict(&self, to: &mut [T], from: &[T], places: &mut [T], sums: &mut [T]) {
        if self.is_identity() {
            return to.copy_from_slice(from);
        }
        let (k, n, padded) = (self.degree, self.n_cells, self.padded());
        places.fill(T::ZERO);
        for (i, values) in self.values.chunks_exact(k + 1).take(self.n_own).enumerate() {
            take_every(&mut sums[..n], &from[i..], self.n_own);
            for (j, value) in values.iter().enumerate() {
                add(&mut places[j * (padded + 1)..][..padded], *value, sums);
            }
        }
        for (j, place) in places.chunks_exact(padded + 1).take(k).enumerate() {
            for (to, value) in to[j..].iter_mut().step_by(k).zip(place) {
                *to = *value;
            }
        }
        for (to, value) in to[k..].iter_mut().step_by(k).zip(&places[k * (padded + 1)..][..n]) {
            *to += *value;
        }
        to[n * k] += from[n * self.n_own];
    }
}

/// Copies every `step`-th value.
#[inline(always)]
fn take_every<T: Scalar>(to: &mut [T], from: &[T], step: usize) {
    for (to, from) in to.iter_mut().zip(from.iter().step_by(step)) {
        *to = *from;
    }
}

/// $y = \alpha x$.
#[inline(always)]
fn set<T: Scalar>(y: &mut [T], alpha: T, x: &[T]) {
    let x = &x[..y.len()];
    for i in 0..y.len() {
        y[i] = alpha * x[i];
    }
}

/// $y \leftarrow y + \alpha x$.
#[inline(always)]
fn add<T: Scalar>(y: &mut [T], alpha: T, x: &[T]) {
    let x = &x[..y.len()];
    for i in 0..y.len() {
        y[i] += alpha * x[i];
    }
}
