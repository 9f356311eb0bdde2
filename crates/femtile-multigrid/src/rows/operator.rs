use std::ops::Range;

use femtile_device::Cpu;
use femtile_device::cpu::vector::{Lanes, Plain, Vector};
use femtile_device::cpu::{Aligned, SharedMut, SimdLevel};

use super::bands::{Band, Bands};
use super::kernels::{sum_diagonals, sum_rows, sum_slabs};
use crate::axis::unknowns;
use crate::grid::BoxGrid;

/// Bytes of x that a tile of rows reads for a slab: they stay in the second cache while the next slabs read them again.
const TILE_BYTES: usize = 512 << 10;

/// The operator $K_x M_y M_z + M_x K_y M_z + M_x M_y K_z$ on a box of rectangles with coefficient one, row by row.
///
/// A slab is a plane of rows of nodes; in two dimensions it has a single row. A tile is a range of rows of all slabs. For each
/// slab of a tile the rows of $M_z x$ and $K_z x$ are kept for as long as sums across y need them.
///
/// # Cost
/// Per node 7 (k + 2) products on average: 2 (k + 2) across slabs, 3 (k + 2) across rows, 2 (2k + 1) along
/// them. Matrices in x have 2k + 1 diagonals instead of k + 2 entries. x is read once from memory if 2k + 1
/// slabs of a tile stay in a cache.
/// # Source
/// `[cui2024]`, eq. (2.7), with matrices of axes instead of those of cells.
#[derive(Debug, Clone)]
pub struct RowOperator<T> {
    cpu: Cpu,
    degree: usize,
    /// Nodes along x, rows of a slab, slabs.
    nodes: [usize; 3],
    /// Those with unknowns.
    unknowns: [Range<usize>; 3],
    across_rows: Bands<T>,
    across_slabs: Bands<T>,
    /// Mass and stiffness along x by diagonals: `[2k + 1][padded]`.
    along: [Vec<T>; 2],
    /// Nodes along x, rounded up to whole vectors.
    padded: usize,
    /// Rows of a tile.
    tile: usize,
}

/// A row of a product.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProductRow<'a, T> {
    /// The index of its first node.
    pub begin: usize,
    /// A x at all nodes of the row.
    pub product: &'a [T],
    /// Factors of the stiffness and the mass along x in the diagonal of A.
    pub factors: [T; 2],
}

/// Workspace of a thread.
struct Room<T> {
    /// The last 2k + 1 rows of $M_z x$ and $K_z x$: `[2k + 1][padded]`.
    rings: [Aligned<T>; 2],
    /// Sums across rows and slabs, with k zeros before and behind.
    sums: [Aligned<T>; 2],
    product: Aligned<T>,
}

impl<T: Lanes> RowOperator<T> {
    /// Creates the operator on a grid.
    pub fn new(cpu: &Cpu, grid: &BoxGrid) -> Self {
        let axes = if grid.dimension() == 2 { [0, 2, 1] } else { [0, 1, 2] };
        let (free, nodes, degree) = (grid.free_sides(), grid.nodes(), grid.degree());
        let [along, across_rows, across_slabs] = axes.map(|axis| Bands::new(degree, grid.widths(axis)));
        let lanes = n_lanes::<T>(cpu, nodes[0]);
        let padded = nodes[0].next_multiple_of(lanes);
        let n_slabs_read = 2 * degree + 1;
        let fitting = TILE_BYTES * 2 / (n_slabs_read * nodes[0] * size_of::<T>());
        Self {
            cpu: cpu.clone(),
            degree,
            nodes: axes.map(|axis| nodes[axis]),
            unknowns: axes.map(|axis| unknowns(nodes[axis], free[axis])),
            along: along.diagonals(degree, padded),
            across_rows,
            across_slabs,
            padded,
            tile: fitting.saturating_sub(2 * degree).max(4 * degree),
        }
    }

    /// Returns the number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.iter().product()
    }

    /// Returns the nodes of a row that have unknowns.
    pub fn unknowns_of_row(&self) -> Range<usize> {
        self.unknowns[0].clone()
    }

    /// Returns the diagonals of the stiffness and the mass along x.
    pub fn diagonals(&self) -> [&[T]; 2] {
        let [mass, stiffness] = &self.along;
        [stiffness, mass].map(|entries| &entries[self.degree * self.padded..][..self.nodes[0]])
    }

    /// $r = b - A x$ at unknowns; zero at other nodes.
    ///
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn residual(&self, r: &mut [T], b: &[T], x: &[T]) {
        assert!(r.len() == self.n_nodes() && b.len() == r.len(), "values of the nodes");
        self.clear_given_rows(r);
        let (shared, inside) = (SharedMut::new(r), &self.unknowns[0]);
        self.each_row(
            x,
            #[inline(always)]
            |row: &ProductRow<'_, T>| {
                // SAFETY: each row belongs to one thread.
                let r = unsafe { shared.range(row.begin..row.begin + row.product.len()) };
                r[..inside.start].fill(T::ZERO);
                r[inside.end..].fill(T::ZERO);
                let b = &b[row.begin..row.begin + row.product.len()];
                for i in inside.clone() {
                    r[i] = b[i] - row.product[i];
                }
            },
        );
    }

    /// $y \leftarrow y + \alpha A x$ at unknowns.
    ///
    /// # Panics
    /// When a vector does not have one value per node.
    pub fn add(&self, y: &mut [T], x: &[T], alpha: T) {
        assert_eq!(y.len(), self.n_nodes(), "values of the nodes");
        let (shared, inside) = (SharedMut::new(y), &self.unknowns[0]);
        self.each_row(
            x,
            #[inline(always)]
            |row: &ProductRow<'_, T>| {
                // SAFETY: each row belongs to one thread.
                let y = unsafe { shared.range(row.begin + inside.start..row.begin + inside.end) };
                y.iter_mut().zip(&row.product[inside.clone()]).for_each(|(y, a)| *y += alpha * *a);
            },
        );
    }

    /// Sets rows without unknowns to zero.
    fn clear_given_rows(&self, r: &mut [T]) {
        let [n, n_rows, n_slabs] = self.nodes;
        let is_given = |row: usize| {
            !(self.unknowns[1].contains(&(row % n_rows)) && self.unknowns[2].contains(&(row / n_rows)))
        };
        for row in (0..n_rows * n_slabs).filter(|&row| is_given(row)) {
            r[row * n..(row + 1) * n].fill(T::ZERO);
        }
    }

    /// Calls `work` with each row of A x that has unknowns, on all threads.
    ///
    /// # Panics
    /// When x does not have one value per node.
    pub(crate) fn each_row(&self, x: &[T], work: impl Fn(&ProductRow<'_, T>) + Sync) {
        assert_eq!(x.len(), self.n_nodes(), "values of the nodes");
        let n = self.nodes[0];
        match self.cpu.simd() {
            // SAFETY: the device supports the level, and no row is shorter than a vector.
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 if n >= T::Avx512::LANES => unsafe { self.run::<T::Avx512>(x, &work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 | SimdLevel::Avx2 if n >= T::Avx2::LANES => unsafe {
                self.run::<T::Avx2>(x, &work);
            },
            // SAFETY: any processor, and no row is shorter than a vector.
            _ if n >= T::Plain::LANES => unsafe { self.run::<T::Plain>(x, &work) },
            // SAFETY: as above.
            _ => unsafe { self.run::<Plain<T, 1>>(x, &work) },
        }
    }

    /// Calls `work` with the first node of each row that has unknowns, and the factors of its diagonal, on all threads.
    pub(crate) fn each_diagonal(&self, work: impl Fn(usize, [T; 2]) + Sync) {
        let [_, rows, slabs] = &self.unknowns;
        self.cpu.for_ranges(rows.len() * slabs.len(), 1, |range| {
            self.cpu.vectorize(
                #[inline(always)]
                || {
                    for at in range {
                        let [row, slab] = [rows.start + at % rows.len(), slabs.start + at / rows.len()];
                        let (across, over) = (self.across_rows.row(row), self.across_slabs.row(slab));
                        work((slab * self.nodes[1] + row) * self.nodes[0], factors(&across, &over));
                    }
                },
            );
        });
    }

    /// [`Self::each_row`] by these vectors.
    ///
    /// # Safety
    /// The processor has the instructions, a row has at least a vector of nodes, and x has a value per node.
    unsafe fn run<V: Vector<T>>(&self, x: &[T], work: &(impl Fn(&ProductRow<'_, T>) + Sync)) {
        let (rows, slabs) = (&self.unknowns[1], &self.unknowns[2]);
        let n_tiles = rows.len().div_ceil(self.tile);
        self.cpu.for_ranges(n_tiles * slabs.len(), 1, |range| {
            let mut room = Room::new(self.padded, self.degree);
            for at in range {
                let begin = rows.start + at / slabs.len() * self.tile;
                let tile = begin..(begin + self.tile).min(rows.end);
                // SAFETY: as the caller promises.
                unsafe {
                    V::vectorize(
                        #[inline(always)]
                        || self.slab::<V>(x, &mut room, (tile, slabs.start + at % slabs.len()), work),
                    );
                }
            }
        });
    }

    /// Computes the rows of a tile in a slab.
    ///
    /// # Safety
    /// As [`Self::run`].
    #[inline(always)]
    unsafe fn slab<V: Vector<T>>(
        &self,
        x: &[T],
        room: &mut Room<T>,
        (tile, slab): (Range<usize>, usize),
        work: &impl Fn(&ProductRow<'_, T>),
    ) {
        let ([n, n_rows, _], n_ring) = (self.nodes, 2 * self.degree + 1);
        let over = self.across_slabs.row(slab);
        let mut next = self.across_rows.row(tile.start).first;
        for row in tile {
            let band = self.across_rows.row(row);
            while next < band.first + band.mass.len() {
                // SAFETY: the slabs of the band exist, and the ring has a place of whole vectors for each row of a band.
                unsafe {
                    let from = x.as_ptr().add((over.first * n_rows + next) * n);
                    let to =
                        room.rings.each_mut().map(|ring| ring.as_mut_ptr().add(next % n_ring * self.padded));
                    sum_slabs::<T, V>(n, (from, n_rows * n), [over.mass, over.stiffness], to);
                }
                next += 1;
            }
            // SAFETY: all rows of the band are in the ring, and all arrays have whole vectors.
            unsafe { self.row::<V>(room, &band) };
            work(&ProductRow {
                begin: (slab * n_rows + row) * n,
                product: &room.product[..n],
                factors: factors(&band, &over),
            });
        }
    }

    /// Computes a row from the rows of the ring.
    ///
    /// # Safety
    /// As [`Self::run`].
    #[inline(always)]
    unsafe fn row<V: Vector<T>>(&self, room: &mut Room<T>, band: &Band<'_, T>) {
        let (padded, n_ring) = (self.padded, 2 * self.degree + 1);
        let rings = room.rings.each_ref().map(|ring| ring.as_ptr());
        let [a, b] = room.sums.each_mut().map(|sums| sums.as_mut_ptr());
        // SAFETY: the ring has 2k + 1 rows, the sums k entries more on both sides.
        unsafe {
            let from = |t: usize| rings.map(|ring| ring.add((band.first + t) % n_ring * padded));
            sum_rows::<T, V>(
                padded,
                from,
                [band.mass, band.stiffness],
                [a.add(self.degree), b.add(self.degree)],
            );
            let along = self.along.each_ref().map(|entries| entries.as_ptr());
            sum_diagonals::<T, V>(padded, n_ring, along, [a, b], room.product.as_mut_ptr());
        }
    }
}

/// Returns the factors of the stiffness and the mass along x in the diagonal of a row.
#[inline(always)]
fn factors<T: Lanes>(across: &Band<'_, T>, over: &Band<'_, T>) -> [T; 2] {
    let ([my, ky], [mz, kz]) = (across.own(), over.own());
    [my * mz, ky * mz + my * kz]
}

impl<T: Lanes> Room<T> {
    fn new(padded: usize, degree: usize) -> Self {
        let n_ring = 2 * degree + 1;
        Self {
            rings: [(); 2].map(|()| Aligned::zeros(n_ring * padded)),
            sums: [(); 2].map(|()| Aligned::zeros(padded + 2 * degree)),
            product: Aligned::zeros(padded),
        }
    }
}

/// Returns the lanes of the vectors for rows of n nodes.
fn n_lanes<T: Lanes>(cpu: &Cpu, n: usize) -> usize {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if n >= T::Avx512::LANES => T::Avx512::LANES,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 | SimdLevel::Avx2 if n >= T::Avx2::LANES => T::Avx2::LANES,
        _ if n >= T::Plain::LANES => T::Plain::LANES,
        _ => 1,
    }
}
