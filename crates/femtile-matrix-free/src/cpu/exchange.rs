//! Between vectors of all unknowns and the tensors of a batch.

use femtile_device::cpu::vector::{Lanes, Vector};
use femtile_device::cpu::{SharedMut, SimdLevel, Source};
use femtile_device::{Cpu, Scalar};

use super::ahead::Ahead;
use super::layout::Layout;
use super::numbers::Unknowns;
use super::parts::Mark;

/// Values of a batch: `[components][(p + 1)^d][lanes]`.
///
/// # Safety
/// No other thread writes rows of the batch meanwhile; nothing else is read.
pub(super) unsafe fn gather<T: Lanes>(
    cpu: &Cpu,
    local: &mut [T],
    x: Source<'_, T>,
    unknowns: Unknowns<'_>,
    layout: &Layout,
    (lanes, ahead): (usize, &mut Ahead<T>),
) {
    let firsts = match unknowns {
        Unknowns::All(list) => {
            return local.iter_mut().zip(list).for_each(|(value, &row)| {
                assert!((row as usize) < x.len());
                // SAFETY: the row lies within the vector, and nobody writes it.
                *value = unsafe { x.read(row as usize) };
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
                || transposed_in::<T, T::Avx2>(local, x, firsts, layout, ahead),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || transposed_in::<T, T::Avx512>(local, x, firsts, layout, ahead),
            );
        },
        _ => {
            for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
                let places = layout.places(entity);
                for (lane, &first) in firsts.iter().enumerate() {
                    assert!(first as usize + places.len() <= x.len());
                    for (k, &place) in places.iter().enumerate() {
                        // SAFETY: the entity lies within the vector, and nobody writes its rows.
                        local[place as usize * lanes + lane] = unsafe { x.read(first as usize + k) };
                    }
                }
            }
        }
    }
}

/// The values of a run that a square of lanes is worth.
const WORTH: usize = 3;

/// The widest vector has so many lanes.
const MOST_LANES: usize = 16;

/// A bit for each entity of the cell in a lane that is marked.
pub(super) type Marked = [u32; MOST_LANES];

/// The bits of the marks of a batch.
pub(super) fn marked(marks: &[Mark]) -> Marked {
    let mut marked = [0; MOST_LANES];
    marks.iter().for_each(|mark| marked[mark.lane as usize] |= 1 << mark.entity);
    marked
}

/// [`gather`], squares of unknowns and cells at a time.
///
/// # Safety
/// As [`gather`], and the processor has the instructions of the vectors.
#[inline(always)]
unsafe fn transposed_in<T: Scalar, V: Vector<T>>(
    local: &mut [T],
    x: Source<'_, T>,
    firsts: &[u32],
    layout: &Layout,
    ahead: &mut Ahead<T>,
) {
    let lanes = V::LANES;
    assert!(local.len() == layout.places.len() * lanes && firsts.len() == layout.n_entities() * lanes);
    let to = local.as_mut_ptr();
    for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
        ahead.step();
        let places = layout.places(entity);
        let last = firsts.iter().fold(0, |last, &first| last.max(first)) as usize;
        assert!(last + places.len() <= x.len());
        for (k, places) in places.chunks(lanes).enumerate() {
            let begin = k * lanes;
            if places.len() < WORTH {
                for (lane, &first) in firsts.iter().enumerate() {
                    for (j, &place) in places.iter().enumerate() {
                        // SAFETY: the entity lies within x, and places within the tensor.
                        unsafe {
                            *to.add(place as usize * lanes + lane) = x.read(first as usize + begin + j);
                        }
                    }
                }
                continue;
            }
            // SAFETY: what is read lies within x, and places within the tensor; the processor has the instructions.
            unsafe {
                let from = |lane: usize| x.address(*firsts.get_unchecked(lane) as usize + begin);
                if places.len() == lanes {
                    V::transpose(from, |j| to.add(*places.get_unchecked(j) as usize * lanes));
                } else {
                    V::transpose_first(places.len(), from, |j| {
                        to.add(*places.get_unchecked(j) as usize * lanes)
                    });
                }
            }
        }
    }
}

/// Adds the values of the unmarked cells of a batch, squares of unknowns and cells at a time.
///
/// # Safety
/// As [`scatter`], and the processor has the instructions of the vectors.
#[inline(always)]
unsafe fn transposed_out<T: Scalar, V: Vector<T>>(
    y: &SharedMut<'_, T>,
    local: &[T],
    firsts: &[u32],
    marked: &Marked,
    layout: &Layout,
    (n_active, ahead): (usize, &mut Ahead<T>),
) {
    let lanes = V::LANES;
    assert!(local.len() >= layout.places.len() * lanes && firsts.len() == layout.n_entities() * lanes);
    let mut square = Square([T::ZERO; MOST_LANES * MOST_LANES]);
    let rows = square.0.as_mut_ptr();
    for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
        ahead.step();
        for (k, places) in layout.places(entity).chunks(lanes).enumerate() {
            let is_square = places.len() >= WORTH;
            if is_square {
                // SAFETY: places lie within the tensor, rows within the square; the processor has the instructions.
                unsafe {
                    V::transpose(
                        #[inline(always)]
                        |j| {
                            let place = places.get(j).copied().unwrap_or(0);
                            local.as_ptr().add(place as usize * lanes)
                        },
                        #[inline(always)]
                        |lane| rows.add(lane * lanes),
                    );
                }
            }
            for (lane, &first) in firsts[..n_active].iter().enumerate() {
                if marked[lane] >> entity & 1 == 1 {
                    continue;
                }
                let begin = first as usize + k * lanes;
                // SAFETY: the entity is not marked, so the caller promises that it is ours alone, and a row of the square
                // or a place of the tensor is read.
                unsafe {
                    let (to, row) = (y.range_unchecked(begin, places.len()), rows.add(lane * lanes));
                    if places.len() == lanes {
                        V::load(to).add(V::load(row)).store(to);
                    } else if is_square {
                        add(to, row, places.len());
                    } else {
                        for (j, &place) in places.iter().enumerate() {
                            *to.add(j) += *local.get_unchecked(place as usize * lanes + lane);
                        }
                    }
                }
            }
        }
    }
}

/// Rows that begin with a line of the cache.
#[repr(align(64))]
struct Square<T>([T; MOST_LANES * MOST_LANES]);

/// Adds fewer values than a vector has, in runs of eight, four, two and one.
///
/// # Safety
/// So many values can be read and written.
#[inline(always)]
unsafe fn add<T: Scalar>(to: *mut T, from: *const T, len: usize) {
    let mut done = 0;
    // SAFETY: runs end at `len`.
    unsafe {
        if len & 8 != 0 {
            add_run::<T, 8>(to, from);
            done = 8;
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
    // SAFETY: as the caller promises; arrays have the alignment of their elements.
    unsafe {
        let (mut sum, from) = (to.cast::<[T; N]>().read(), from.cast::<[T; N]>().read());
        (0..N).for_each(|k| sum[k] += from[k]);
        to.cast::<[T; N]>().write(sum);
    }
}

/// Zeros where a batch has a constrained entity.
pub(super) fn clear_constrained<T: Scalar>(local: &mut [T], marks: &[Mark], layout: &Layout, lanes: usize) {
    for mark in marks.iter().filter(|mark| mark.share.is_none()) {
        for &place in layout.places(mark.entity as usize) {
            local[place as usize * lanes + mark.lane as usize] = T::ZERO;
        }
    }
}

/// Adds the values of a batch, but for marked entities, to a vector.
///
/// # Safety
/// No other thread reads or writes meanwhile what belongs to entities that are not marked, of the first `n_active` cells.
pub(super) unsafe fn scatter<T: Lanes>(
    cpu: &Cpu,
    y: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marked: &Marked,
    layout: &Layout,
    ((lanes, n_active), ahead): ((usize, usize), &mut Ahead<T>),
) {
    let is_regular = matches!(unknowns, Unknowns::Firsts(_));
    match cpu.simd() {
        // SAFETY: as the caller promises; the device has the level of the vectors.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 if is_regular => unsafe {
            T::Avx2::vectorize(
                #[inline(always)]
                || transposed_out::<T, T::Avx2>(y, local, firsts, marked, layout, (n_active, ahead)),
            );
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 if is_regular => unsafe {
            T::Avx512::vectorize(
                #[inline(always)]
                || transposed_out::<T, T::Avx512>(y, local, firsts, marked, layout, (n_active, ahead)),
            );
        },
        // SAFETY: as above.
        _ => unsafe { scatter_plainly(y, local, (unknowns, firsts), marked, layout, (lanes, n_active)) },
    }
}

/// As [`scatter`], value by value.
///
/// # Safety
/// As [`scatter`].
#[inline(always)]
unsafe fn scatter_plainly<T: Scalar>(
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
            // SAFETY: the entity is not marked, so the caller promises that it is ours alone.
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

/// Puts the values of entities that several threads have among the shares.
///
/// # Safety
/// No other thread touches the shares of these marks meanwhile.
pub(super) unsafe fn share<T: Scalar>(
    shares: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marks: &[Mark],
    layout: &Layout,
    lanes: usize,
) {
    for mark in marks {
        let Some(begin) = mark.share else { continue };
        let (entity, lane) = (mark.entity as usize, mark.lane as usize);
        let places = layout.places(entity);
        // SAFETY: as the caller promises.
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
