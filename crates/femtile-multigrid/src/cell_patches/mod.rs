//! Cell patches: sets of neighbouring cells on which an operator, a transfer or a vertex-patch smoother works; their
//! kinds, colours and schedule.
//!
//! An operator has patches of one cell, a smoother the cells around a vertex, or all cells along a thin axis.
//! Patches of one colour are independent, fill SIMD lanes and are shared among threads, so the bits do not depend
//! on the number of threads.

#[allow(unsafe_code)]
mod cpu;
mod schedule;
mod span;

use std::ops::Range;

use femtile_device::Cpu;
use femtile_device::cpu::{SharedMut, Source};
use femtile_sum_factorization::{SumFactorization, lanes};

use crate::grid::{BoxGrid, all};
use crate::smoother::{PostOrder, scale};
pub(crate) use cpu::{MOST_LANES, gather, scatter};
use schedule::{Row, row_order, rows_per_batch};
pub(crate) use span::{ByOpen, Span, Spans, cells, vertex_patches, whole};

/// Patches of one kind, processed together in SIMD lanes. Any two share at most nodes of their boundaries.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// The kind of the patches along each axis.
    pub kinds: [usize; 3],
    /// Whether the lower and upper end along each axis is open: whether the patch has the unknowns there.
    pub open: [[bool; 2]; 3],
    /// Whether some cell is in no patch that comes later.
    pub is_last: bool,
    /// The first node of each patch.
    pub firsts: &'a [u32],
    /// The first node of each patch in the other grid of [`CellPatches::with_other_grid`].
    pub others: &'a [u32],
}

/// Most kinds kept: more than those of a slab between free sides.
const MAX_KINDS: usize = 12;

/// A cache of data by kind of patch, emptied when full.
pub(crate) struct KindCache<L>(Vec<([usize; 3], L)>);

impl<L> KindCache<L> {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the data of these kinds, created by `make` if absent.
    pub fn of(&mut self, kinds: [usize; 3], make: impl FnOnce() -> L) -> &L {
        let Self(known) = self;
        let place = known.iter().position(|(of, _)| *of == kinds).unwrap_or_else(|| {
            if known.len() == MAX_KINDS {
                known.clear();
            }
            known.push((kinds, make()));
            known.len() - 1
        });
        &known[place].1
    }
}

/// Rows of consecutive nodes along x, by offsets from the first node of a patch.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub offsets: Vec<u32>,
    /// Nodes per row.
    pub len: usize,
}

impl Rows {
    /// The nodes of a patch from `first` on, `[len, n, m]` along the axes with these strides.
    pub fn new(strides: [usize; 3], first: [usize; 3], [len, n, m]: [usize; 3]) -> Self {
        let offset = |at: [usize; 3]| {
            (0..3).map(|axis| (first[axis] + at[axis]) * strides[axis]).sum::<usize>() as u32
        };
        Self { offsets: all([1, n, m]).map(offset).collect(), len }
    }

    /// No rows.
    pub fn none() -> Self {
        Self { offsets: Vec::new(), len: 0 }
    }

    /// Interleaves `n` rows of this list with `n` rows of another of the same length, until both end.
    pub fn interleaved(&self, others: &Self, n: usize) -> Self {
        let pairs = self.offsets.chunks(n).zip(others.offsets.chunks(n));
        Self { offsets: pairs.flat_map(|(own, other)| [own, other].concat()).collect(), len: self.len }
    }

    /// Returns the number of nodes in all rows.
    pub fn n_nodes(&self) -> usize {
        self.offsets.len() * self.len
    }
}

/// All patches of a grid, in $2^d$ colours: the parities of the patch index along x, y and z are the bits of the colour.
///
/// A slab of patches is processed row by row, each row as soon as the rows it depends on are done. Its values
/// are therefore read from memory once instead of once per colour. Slabs of even index, then those of odd
/// index, are shared among threads. Results are those of processing colour by colour.
///
/// # Source
/// `[cui2024]`, Figure 2, for the colours.
#[derive(Debug, Clone)]
pub(crate) struct CellPatches<L> {
    /// Data of each kind along each axis.
    pub kinds: [Vec<L>; 3],
    places: [Vec<Place>; 3],
    /// Node offsets from one cell to the next along each axis, in this grid and the other.
    steps: [[usize; 3]; 2],
}

/// Properties common to all patches at one index along an axis.
#[derive(Debug, Clone, Copy)]
struct Place {
    kind: usize,
    /// The first cell.
    cell: usize,
    open: [bool; 2],
    /// Whether a cell along this axis is in no patch that comes later, in forward and reversed order.
    is_last: [bool; 2],
}

impl<L: Sync> CellPatches<L> {
    /// Creates the patches of these spans of cells. `make` receives the axis, the widths of the cells of a
    /// kind and which of its ends are open.
    pub fn new(grid: &BoxGrid, spans: &Spans, make: impl Fn(usize, &[f64], [bool; 2]) -> L) -> Self {
        let mut kinds: [Vec<L>; 3] = Default::default();
        let mut places: [Vec<Place>; 3] = Default::default();
        for axis in 0..3 {
            let mut known: Vec<(&[f64], [bool; 2])> = Vec::new();
            for (place, span) in spans[axis].iter().enumerate() {
                let key = (&grid.widths(axis)[span.cells.clone()], span.open);
                let kind = known.iter().position(|known| *known == key).unwrap_or(known.len());
                if kind == known.len() {
                    known.push(key);
                    kinds[axis].push(make(axis, key.0, key.1));
                }
                let is_last = [false, true].map(|is_reversed| has_last(&spans[axis], place, is_reversed));
                places[axis].push(Place { kind, cell: span.cells.start, open: span.open, is_last });
            }
        }
        let steps = [grid.strides().map(|stride| grid.degree() * stride), [0; 3]];
        Self { kinds, places, steps }
    }

    /// Adds the first nodes of patches in another grid, whose cells lie `steps` nodes apart along each axis.
    pub fn with_other_grid(mut self, steps: [usize; 3]) -> Self {
        self.steps[1] = steps;
        self
    }

    /// Calls `work` with all patches in batches, and with a workspace per thread.
    pub fn sweep<T: SumFactorization, R>(
        &self,
        cpu: &Cpu,
        order: PostOrder,
        workspace: impl Fn() -> R + Sync,
        work: impl Fn(&mut R, &Batch<'_>) + Sync,
    ) {
        let n_lanes = lanes::<T>(cpu);
        let [n_x, n_rows, n_slabs] = self.places.each_ref().map(Vec::len);
        // In two dimensions rows take the place of slabs.
        let (rows, slabs, axis) = if n_slabs == 1 { (1, n_rows, 1) } else { (n_rows, n_slabs, 2) };
        let rows = row_order(rows, order, rows_per_batch(n_x / 2, n_lanes));
        for parity in parities(order) {
            let n = (slabs + 1 - parity) / 2;
            if n == 0 {
                continue;
            }
            cpu.for_ranges(n, 1, |range| {
                let mut workspace = workspace();
                for slab in range {
                    for rows in &rows {
                        let at = |row: Row| {
                            if axis == 2 { [row, 2 * slab + parity] } else { [2 * slab + parity, 0] }
                        };
                        let rows: Vec<[usize; 2]> = rows.iter().map(|row| at(*row)).collect();
                        self.for_rows(&rows, (order, n_lanes), &mut |batch| work(&mut workspace, batch));
                    }
                }
            });
        }
    }

    /// $z \leftarrow z + \sum_j R_j^\mathsf{T} W \tilde A_j^{-1} W R_j r$ (additive Schwarz): $R_j$ restricts to the
    /// inner nodes of patch j, `solve` applies $\tilde A_j^{-1}$ to values in lanes, `patch` returns the inner nodes and
    /// the weights W in lanes.
    pub fn add_corrections<'p, T: SumFactorization, R>(
        &self,
        cpu: &Cpu,
        patch: impl Fn(&Batch<'_>) -> (&'p Rows, &'p [T]) + Sync,
        z: &mut [T],
        r: &[T],
        workspace: impl Fn() -> R + Sync,
        solve: impl Fn(&mut R, &mut Vec<T>, &Batch<'_>) + Sync,
    ) {
        let (z, r) = (SharedMut::new(z), Source::new(r));
        let workspace = || (Vec::new(), workspace());
        self.sweep::<T, _>(cpu, PostOrder::Same, workspace, |(values, workspace), batch| {
            let (inside, weights) = patch(batch);
            values.resize(weights.len(), T::ZERO);
            #[allow(unsafe_code)]
            // SAFETY: r is not written.
            unsafe {
                gather(cpu, inside, batch.firsts, values, r);
            }
            scale(cpu, values, weights);
            solve(workspace, values, batch);
            scale(cpu, values, weights);
            #[allow(unsafe_code)]
            // SAFETY: patches processed at the same time share no inner node.
            unsafe {
                scatter(cpu, inside, batch.firsts, values, &z, |to, value| *to += value);
            }
        });
    }

    /// Processes the patches of rows at these indices along y and z, no two of which are neighbours.
    fn for_rows(
        &self,
        rows: &[[usize; 2]],
        (order, n_lanes): (PostOrder, usize),
        work: &mut dyn FnMut(&Batch<'_>),
    ) {
        let [x, y, z] = &self.places;
        let kinds = |row: &[usize; 2]| [y[row[0]].kind, z[row[1]].kind];
        let is_last = |at: [usize; 3]| {
            (0..3).all(|axis| self.places[axis][at[axis]].is_last[usize::from(order != PostOrder::Same)])
        };
        for rows in rows.chunk_by(|one, other| kinds(one) == kinds(other)) {
            for parity in parities(order) {
                for kind in 0..self.kinds[0].len() {
                    let along = (parity..x.len()).step_by(2).filter(|place| x[*place].kind == kind);
                    let all = rows.iter().flat_map(|row| along.clone().map(|place| [place, row[0], row[1]]));
                    let all: Vec<[usize; 3]> = all.collect();
                    for patches in all.chunks(n_lanes) {
                        let [firsts, others] = self.steps.map(|steps| {
                            let first = |at: &[usize; 3]| {
                                (0..3)
                                    .map(|axis| steps[axis] * self.places[axis][at[axis]].cell)
                                    .sum::<usize>()
                            };
                            let mut firsts = [0; MOST_LANES];
                            firsts.iter_mut().zip(patches).for_each(|(to, at)| *to = first(at) as u32);
                            firsts
                        });
                        let [of_y, of_z] = kinds(&rows[0]);
                        work(&Batch {
                            kinds: [kind, of_y, of_z],
                            open: [0, 1, 2].map(|axis| self.places[axis][patches[0][axis]].open),
                            is_last: patches.iter().any(|at| is_last(*at)),
                            firsts: &firsts[..patches.len()],
                            others: &others[..patches.len()],
                        });
                    }
                }
            }
        }
    }
}

/// Returns whether a cell of a patch is in no patch that comes later.
fn has_last(spans: &[Span], place: usize, is_reversed: bool) -> bool {
    let comes_later = (place % 2 == 1) == is_reversed;
    let near =
        [place.checked_sub(1), Some(place + 1)].into_iter().flatten().filter_map(|near| spans.get(near));
    let is_in = |cell: usize| near.clone().any(|span| comes_later && span.cells.contains(&cell));
    let Range { start, end } = spans[place].cells;
    start == end || (start..end).any(|cell| !is_in(cell))
}

/// Returns the parities in processing order.
fn parities(order: PostOrder) -> [usize; 2] {
    if order == PostOrder::Same { [0, 1] } else { [1, 0] }
}
