//! Windows of neighbouring cells: which there are, which are alike, and which touch each other.

use femtile_device::cpu::SharedMut;
use femtile_device::{Cpu, Scalar};
use femtile_tensor::{Contract, lanes};

use crate::grid::{BoxGrid, all};

/// Windows with the same widths along every axis.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    /// Which of the kinds of each axis.
    pub kinds: [usize; 3],
    /// The first node of each window.
    pub firsts: Vec<u32>,
}

/// All windows of so many cells, by colour: two of a colour have no node in common but on their boundaries.
///
/// # Source
/// `[cui2024]`, Figure 2.
#[derive(Debug, Clone)]
pub(crate) struct Windows<L> {
    /// What belongs to the widths along each axis.
    pub kinds: [Vec<L>; 3],
    /// $2^d$ colours, those without windows left out.
    pub colours: Vec<Vec<Group>>,
    /// Nodes of a window along each axis.
    pub nodes: [usize; 3],
    /// From the first node of a window to each of its nodes, in the numbers of the grid.
    pub offsets: Vec<u32>,
    /// The same to each node inside.
    pub inside: Vec<u32>,
}

impl<L> Windows<L> {
    /// Windows of so many cells along each axis, one for every place where they fit; `make` is given the widths of the cells
    /// of each kind along an axis.
    pub fn new(grid: &BoxGrid, cells: [usize; 3], make: impl Fn(&[f64]) -> L) -> Self {
        let mut kinds: [Vec<L>; 3] = Default::default();
        let mut places: [Vec<usize>; 3] = Default::default();
        for axis in 0..3 {
            let mut known: Vec<&[f64]> = Vec::new();
            let widths = grid.widths(axis);
            if widths.is_empty() {
                kinds[axis].push(make(&[]));
                places[axis].push(0);
                continue;
            }
            for widths in widths.windows(cells[axis]) {
                let kind = known.iter().position(|known| *known == widths).unwrap_or(known.len());
                if kind == known.len() {
                    known.push(widths);
                    kinds[axis].push(make(widths));
                }
                places[axis].push(kind);
            }
        }
        let [n, m, _] = grid.nodes();
        let strides = [1, n, n * m];
        let nodes = [0, 1, 2].map(|axis| match grid.widths(axis) {
            [] => 1,
            _ => grid.degree() * cells[axis] + 1,
        });
        let colours = (0..8).map(|colour| groups(grid.degree(), &places, strides, colour));
        let colours = colours.filter(|groups| !groups.is_empty()).collect();
        let first_inside = nodes.map(|n| usize::from(n > 1));
        let offsets = offsets([0; 3], nodes, strides);
        let inside =
            self::offsets(first_inside, [0, 1, 2].map(|axis| nodes[axis] - 2 * first_inside[axis]), strides);
        Self { kinds, colours, nodes, offsets, inside }
    }

    /// Calls `work` with the groups of a colour and lanes of windows of them, on all threads.
    pub fn for_batches<T: Contract>(
        &self,
        cpu: &Cpu,
        colour: usize,
        work: impl Fn(&Group, &mut dyn Iterator<Item = &[u32]>) + Sync,
    ) {
        for group in &self.colours[colour] {
            let n_lanes = lanes::<T>(cpu);
            cpu.for_ranges(group.firsts.len().div_ceil(n_lanes), 2, |range| {
                let batches = group.firsts.chunks(n_lanes);
                work(group, &mut batches.skip(range.start).take(range.len()));
            });
        }
    }
}

/// Distances to so many nodes along each axis from those places on.
fn offsets(first: [usize; 3], nodes: [usize; 3], strides: [usize; 3]) -> Vec<u32> {
    let offset =
        |at: [usize; 3]| (0..3).map(|axis| (first[axis] + at[axis]) * strides[axis]).sum::<usize>() as u32;
    all(nodes).map(offset).collect()
}

/// The windows of a colour by the bits of their places.
fn groups(degree: usize, places: &[Vec<usize>; 3], strides: [usize; 3], colour: usize) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for at in all(places.each_ref().map(Vec::len)) {
        if (0..3).any(|axis| at[axis] % 2 != colour >> axis & 1) {
            continue;
        }
        let kinds = [0, 1, 2].map(|axis| places[axis][at[axis]]);
        let first = (0..3).map(|axis| degree * at[axis] * strides[axis]).sum::<usize>() as u32;
        match groups.iter_mut().find(|group| group.kinds == kinds) {
            Some(group) => group.firsts.push(first),
            None => groups.push(Group { kinds, firsts: vec![first] }),
        }
    }
    groups
}

/// Values of windows side by side: `to: [offsets][lanes]`; lanes without a window keep what they have.
pub(crate) fn gather<T: Scalar>(
    cpu: &Cpu,
    offsets: &[u32],
    firsts: &[u32],
    to: &mut [T],
    read: impl Fn(usize) -> T,
) {
    let n_lanes = to.len() / offsets.len();
    cpu.vectorize(
        #[inline(always)]
        || {
            for (offset, to) in offsets.iter().zip(to.chunks_exact_mut(n_lanes)) {
                for (first, to) in firsts.iter().zip(to) {
                    *to = read((first + offset) as usize);
                }
            }
        },
    );
}

/// Calls `act` with the node and the value of all nodes of windows.
pub(crate) fn scatter<T: Scalar>(
    cpu: &Cpu,
    offsets: &[u32],
    firsts: &[u32],
    from: &[T],
    act: impl Fn(usize, T),
) {
    let n_lanes = from.len() / offsets.len();
    cpu.vectorize(
        #[inline(always)]
        || {
            for (offset, from) in offsets.iter().zip(from.chunks_exact(n_lanes)) {
                for (first, &value) in firsts.iter().zip(from) {
                    act((first + offset) as usize, value);
                }
            }
        },
    );
}

/// A vector of which threads change what is theirs alone.
#[derive(Debug)]
pub(crate) struct Shared<'a, T>(SharedMut<'a, T>);

impl<'a, T: Scalar> Shared<'a, T> {
    pub fn new(x: &'a mut [T]) -> Self {
        Self(SharedMut::new(x))
    }

    /// # Safety
    /// No other thread writes the entry meanwhile, which exists.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub unsafe fn get(&self, at: usize) -> T {
        // SAFETY: as the caller promises.
        unsafe { *self.0.range_unchecked(at, 1) }
    }

    /// # Safety
    /// No other thread reads or writes the entry meanwhile, which exists.
    #[allow(unsafe_code)]
    #[inline(always)]
    pub unsafe fn add(&self, at: usize, value: T) {
        // SAFETY: as the caller promises.
        unsafe { *self.0.range_unchecked(at, 1) += value }
    }
}
