//! Gather and scatter between vectors of all unknowns and the tensors of a batch.

use std::mem::MaybeUninit;

use femtile_device::cpu::vector::{Lanes, Runs, ShortRuns, Vector};
use femtile_device::cpu::{SharedMut, SimdLevel, Source};
use femtile_device::{Cpu, Scalar};

use super::cell_unknowns::Unknowns;
use super::layout::{Layout, Run};
use super::partition::{Mark, Reason};
use super::prefetch::Prefetch;

/// Gathers the values of a batch: `[components][(p + 1)^d][lanes]`, including ghosts if it has a list of all
/// rows.
///
/// # Safety
/// The rows of the batch lie within `x`, and no other thread writes them meanwhile.
pub(super) unsafe fn gather<T: Lanes>(
    cpu: &Cpu,
    local: &mut [T],
    (x, ghosts): (Source<'_, T>, &[T]),
    unknowns: Unknowns<'_>,
    layout: &Layout,
    (lanes, prefetch): (usize, &mut Prefetch<T>),
) {
    let firsts = match unknowns {
        Unknowns::All(list) => {
            return local.iter_mut().zip(list).for_each(|(value, &row)| {
                *value = match (row as usize).checked_sub(x.len()) {
                    Some(ghost) => ghosts[ghost],
                    // SAFETY: the row lies within the vector, and no thread writes it.
                    None => unsafe { x.read(row as usize) },
                };
            });
        }
        Unknowns::Firsts(firsts) => firsts,
    };
    match cpu.simd() {
        // SAFETY: the device has the level of the vectors.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => unsafe {
            T::Avx2::vectorize(
                #[inline(always)]
                || runs_in::<T, T::Avx2>(local, x, firsts, layout, prefetch),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || runs_in::<T, T::Avx512>(local, x, firsts, layout, prefetch),
            );
        },
        _ => {
            for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
                let places = layout.places(entity);
                for (lane, &first) in firsts.iter().enumerate() {
                    assert!(first as usize + places.len() <= x.len());
                    for (k, &place) in places.iter().enumerate() {
                        // SAFETY: the entity lies within the vector, and no thread writes its rows.
                        local[place as usize * lanes + lane] = unsafe { x.read(first as usize + k) };
                    }
                }
            }
        }
    }
}

/// Lanes of the widest vector.
const MOST_LANES: usize = 16;

/// For each lane, a bit per marked entity of its cell.
pub(super) type Marked = [u32; MOST_LANES];

/// Returns the bits of the marks of a batch.
pub(super) fn marked(marks: &[Mark]) -> Marked {
    let mut marked = [0; MOST_LANES];
    marks.iter().for_each(|mark| marked[mark.lane as usize] |= 1 << mark.entity);
    marked
}

/// [`gather`] by runs, of which squares of unknowns and cells are transposed.
///
/// # Safety
/// As [`gather`], and the processor has the instructions of `V`.
#[inline(always)]
unsafe fn runs_in<T: Scalar, V: ShortRuns<T>>(
    local: &mut [T],
    x: Source<'_, T>,
    firsts: &[u32],
    layout: &Layout,
    prefetch: &mut Prefetch<T>,
) {
    let lanes = V::LANES;
    assert!(local.len() == layout.places.len() * lanes && firsts.len() == layout.n_entities() * lanes);
    let to = local.as_mut_ptr();
    // SAFETY: by the contract, and places lie within the tensor.
    unsafe {
        read::<T, V, 1>(to, x, firsts, &layout.runs.ones, prefetch);
        read::<T, V, 2>(to, x, firsts, &layout.runs.twos, prefetch);
        read::<T, V, 4>(to, x, firsts, &layout.runs.fours, prefetch);
    }
    for run in &layout.runs.others {
        prefetch.step();
        let (places, firsts) = (layout.of(run), &firsts[run.entity * lanes..][..lanes]);
        // SAFETY: as above.
        unsafe {
            let from = |lane: usize| x.address(*firsts.get_unchecked(lane) as usize + run.begin);
            let to = |j: usize| to.add(*places.get_unchecked(j) as usize * lanes);
            if places.len() == lanes {
                V::transpose(from, to);
            } else {
                V::transpose_first(places.len(), from, to);
            }
        }
    }
}

/// Gathers runs of `K` rows.
///
/// # Safety
/// As [`runs_in`]; the places of the runs lie within the tensor at `to`.
#[inline(always)]
unsafe fn read<T: Scalar, V: Runs<T, K>, const K: usize>(
    to: *mut T,
    x: Source<'_, T>,
    firsts: &[u32],
    runs: &[Run<K>],
    prefetch: &mut Prefetch<T>,
) {
    for run in runs {
        prefetch.step();
        let firsts = &firsts[run.entity * V::LANES..][..V::LANES];
        // SAFETY: by the contract.
        unsafe {
            let found = V::read_runs(|lane| x.address(*firsts.get_unchecked(lane) as usize + run.begin));
            for k in 0..K {
                found[k].store(to.add(run.places[k] as usize * V::LANES));
            }
        }
    }
}

/// Adds the values of the unmarked cells of a batch by runs.
///
/// # Safety
/// As [`scatter`], and the processor has the instructions of `V`.
#[inline(always)]
unsafe fn runs_out<T: Scalar, V: ShortRuns<T>>(
    y: &SharedMut<'_, T>,
    local: &[T],
    firsts: &[u32],
    marked: &Marked,
    layout: &Layout,
    (n_active, prefetch): (usize, &mut Prefetch<T>),
) {
    let lanes = V::LANES;
    assert!(local.len() >= layout.places.len() * lanes && firsts.len() == layout.n_entities() * lanes);
    let from = local.as_ptr();
    let partial = if n_active < lanes { u32::MAX } else { marked.iter().fold(0, |all, marked| all | marked) };
    let to = Masked { y, from, marked, n_active, partial };
    // SAFETY: by the contract, and places lie within the tensor.
    unsafe {
        to.add_all::<V, 1>(&layout.runs.ones, firsts, prefetch);
        to.add_all::<V, 2>(&layout.runs.twos, firsts, prefetch);
        to.add_all::<V, 4>(&layout.runs.fours, firsts, prefetch);
    }
    for run in &layout.runs.others {
        prefetch.step();
        let firsts = &firsts[run.entity * lanes..][..lanes];
        // SAFETY: as above.
        unsafe { to.add::<V>((run.entity, run.begin), layout.of(run), firsts) };
    }
}

/// The cells of a batch that add to a vector: those that do not have an entity marked.
struct Masked<'a, T> {
    y: &'a SharedMut<'a, T>,
    from: *const T,
    marked: &'a Marked,
    n_active: usize,
    /// Bits of entities that not all lanes add.
    partial: u32,
}

impl<T: Scalar> Masked<'_, T> {
    /// Adds runs of `K` rows.
    ///
    /// # Safety
    /// As [`Masked::add`], for the places of these runs.
    #[inline(always)]
    unsafe fn add_all<V: Runs<T, K>, const K: usize>(
        &self,
        runs: &[Run<K>],
        firsts: &[u32],
        prefetch: &mut Prefetch<T>,
    ) {
        for run in runs {
            prefetch.step();
            let firsts = &firsts[run.entity * V::LANES..][..V::LANES];
            // SAFETY: by the contract.
            unsafe {
                if self.partial >> run.entity & 1 == 1 {
                    self.add::<V>((run.entity, run.begin), &run.places, firsts);
                    continue;
                }
                let mut values = [V::splat(T::ZERO); K];
                for k in 0..K {
                    values[k] = V::load(self.from.add(run.places[k] as usize * V::LANES));
                }
                // All addresses before the first store, after which the compiler would read the numbers again.
                let mut to = [self.y.range_unchecked(run.begin, K); MOST_LANES];
                for lane in 0..V::LANES {
                    to[lane] = to[lane].add(*firsts.get_unchecked(lane) as usize);
                }
                V::add_runs(
                    values,
                    #[inline(always)]
                    |lane| to[lane],
                );
            }
        }
    }

    /// Adds the values of a run, at most as many as lanes, from its row in an entity on.
    ///
    /// # Safety
    /// Places lie within the tensor, rows within y; no other thread has entities that are not marked; the processor has the
    /// instructions of `V`.
    #[inline(always)]
    unsafe fn add<V: Vector<T>>(&self, (entity, begin): (usize, usize), places: &[u32], firsts: &[u32]) {
        let lanes = V::LANES;
        let mut square = MaybeUninit::<Square<T>>::uninit();
        let rows = square.as_mut_ptr().cast::<T>();
        // SAFETY: by the contract; rows lie within the square.
        unsafe {
            V::transpose(
                #[inline(always)]
                |j| self.from.add(if j < places.len() { places[j] } else { 0 } as usize * lanes),
                #[inline(always)]
                |lane| rows.add(lane * lanes),
            );
            for lane in 0..self.n_active {
                if self.marked[lane] >> entity & 1 == 0 {
                    let to = self.y.range_unchecked(firsts[lane] as usize + begin, places.len());
                    add(to, rows.add(lane * lanes), places.len());
                }
            }
        }
    }
}

/// Rows aligned to cache lines.
#[repr(align(64))]
struct Square<T>([T; MOST_LANES * MOST_LANES]);

/// Adds at most as many values as a vector has lanes, in runs of sixteen, eight, four, two and one.
///
/// # Safety
/// `len` values can be read and written.
#[inline(always)]
unsafe fn add<T: Scalar>(to: *mut T, from: *const T, len: usize) {
    let mut done = 0;
    // SAFETY: runs end at `len`.
    unsafe {
        if len & 16 != 0 {
            add_run::<T, 16>(to, from);
            done = 16;
        }
        if len & 8 != 0 {
            add_run::<T, 8>(to.add(done), from.add(done));
            done += 8;
        }
        if len & 4 != 0 {
            add_run::<T, 4>(to.add(done), from.add(done));
            done += 4;
        }
        if len & 2 != 0 {
            add_run::<T, 2>(to.add(done), from.add(done));
            done += 2;
        }
        if len & 1 != 0 {
            add_run::<T, 1>(to.add(done), from.add(done));
        }
    }
}

/// # Safety
/// N values can be read and written.
#[inline(always)]
unsafe fn add_run<T: Scalar, const N: usize>(to: *mut T, from: *const T) {
    // SAFETY: by the contract; arrays have the alignment of their elements.
    unsafe {
        let (mut sum, from) = (to.cast::<[T; N]>().read(), from.cast::<[T; N]>().read());
        (0..N).for_each(|k| sum[k] += from[k]);
        to.cast::<[T; N]>().write(sum);
    }
}

/// Writes ghost values to a batch without a list, over the placeholder values that were gathered.
pub(super) fn gather_ghosts<T: Scalar>(
    local: &mut [T],
    ghosts: &[T],
    marks: &[Mark],
    layout: &Layout,
    lanes: usize,
) {
    for mark in marks {
        let Reason::Ghost(first) = mark.reason else { continue };
        let places = layout.places(mark.entity as usize);
        for (&place, &value) in places.iter().zip(&ghosts[first as usize..]) {
            local[place as usize * lanes + mark.lane as usize] = value;
        }
    }
}

/// Sets constrained entities of a batch to zero.
pub(super) fn clear_constrained<T: Scalar>(local: &mut [T], marks: &[Mark], layout: &Layout, lanes: usize) {
    for mark in marks.iter().filter(|mark| matches!(mark.reason, Reason::Constrained)) {
        for &place in layout.places(mark.entity as usize) {
            local[place as usize * lanes + mark.lane as usize] = T::ZERO;
        }
    }
}

/// Scatters the values of a batch, except marked entities: adds them to a vector.
///
/// # Safety
/// Of the first `n_active` cells, no other thread reads or writes unmarked entities meanwhile.
pub(super) unsafe fn scatter<T: Lanes>(
    cpu: &Cpu,
    y: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marked: &Marked,
    layout: &Layout,
    ((lanes, n_active), prefetch): ((usize, usize), &mut Prefetch<T>),
) {
    let is_regular = matches!(unknowns, Unknowns::Firsts(_));
    match cpu.simd() {
        // SAFETY: by the contract; the device has the level of the vectors.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if is_regular => unsafe {
            T::Avx2::vectorize(
                #[inline(always)]
                || runs_out::<T, T::Avx2>(y, local, firsts, marked, layout, (n_active, prefetch)),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if is_regular => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || runs_out::<T, T::Avx512>(y, local, firsts, marked, layout, (n_active, prefetch)),
            );
        },
        // SAFETY: as above.
        _ => unsafe { scatter_by_value(y, local, (unknowns, firsts), marked, layout, (lanes, n_active)) },
    }
}

/// [`scatter`] value by value.
///
/// # Safety
/// As [`scatter`].
#[inline(always)]
unsafe fn scatter_by_value<T: Scalar>(
    y: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marked: &Marked,
    layout: &Layout,
    (lanes, n_active): (usize, usize),
) {
    for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
        let places = layout.places(entity);
        for (lane, &first) in firsts[..n_active].iter().enumerate() {
            if marked[lane] >> entity & 1 == 1 {
                continue;
            }
            // SAFETY: the entity is not marked, so by the contract no other thread has it.
            let to = unsafe { y.range(first as usize..first as usize + places.len()) };
            for (k, &place) in places.iter().enumerate() {
                let at = place as usize * lanes + lane;
                let k = match unknowns {
                    Unknowns::Firsts(_) => k,
                    Unknowns::All(list) => (list[at] - first) as usize,
                };
                to[k] += local[at];
            }
        }
    }
}

/// Writes the values of entities that several threads have to their shares.
///
/// # Safety
/// No other thread accesses the shares of these marks meanwhile.
pub(super) unsafe fn share<T: Scalar>(
    shares: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marks: &[Mark],
    layout: &Layout,
    lanes: usize,
) {
    for mark in marks {
        let Reason::Shared(begin) = mark.reason else { continue };
        let (entity, lane) = (mark.entity as usize, mark.lane as usize);
        let places = layout.places(entity);
        // SAFETY: by the contract.
        let to = unsafe { shares.range(begin as usize..begin as usize + places.len()) };
        for (k, &place) in places.iter().enumerate() {
            let at = place as usize * lanes + lane;
            let k = match unknowns {
                Unknowns::Firsts(_) => k,
                Unknowns::All(list) => (list[at] - firsts[entity * lanes + lane]) as usize,
            };
            to[k] = local[at];
        }
    }
}
