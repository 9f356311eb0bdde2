//! Between vectors of all unknowns and the tensors of a batch.

use femtile_device::Scalar;
use femtile_device::cpu::SharedMut;

use super::batches::Unknowns;
use super::layout::Layout;
use super::parts::Mark;

/// Values of a batch: `[(p + 1)^d][lanes]`.
#[inline(always)]
pub(super) fn gather<T: Scalar>(
    local: &mut [T],
    x: &[T],
    unknowns: Unknowns<'_>,
    layout: &Layout,
    lanes: usize,
) {
    match unknowns {
        Unknowns::All(list) => {
            local.iter_mut().zip(list).for_each(|(value, &dof)| *value = x[dof as usize]);
        }
        Unknowns::Firsts(firsts) => {
            for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
                let places = layout.places(entity);
                for (lane, &first) in firsts.iter().enumerate() {
                    let from = &x[first as usize..first as usize + places.len()];
                    for (&place, &value) in places.iter().zip(from) {
                        local[place as usize * lanes + lane] = value;
                    }
                }
            }
        }
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
#[inline(always)]
pub(super) unsafe fn scatter<T: Scalar>(
    y: &SharedMut<'_, T>,
    local: &[T],
    (unknowns, firsts): (Unknowns<'_>, &[u32]),
    marks: &[Mark],
    layout: &Layout,
    (lanes, n_active): (usize, usize),
) {
    let mut marked = [0_u32; 32];
    marks.iter().for_each(|mark| marked[mark.lane as usize] |= 1 << mark.entity);
    for (entity, firsts) in firsts.chunks_exact(lanes).enumerate() {
        let places = layout.places(entity);
        for (lane, &first) in firsts[..n_active].iter().enumerate() {
            if marked[lane] >> entity & 1 == 1 {
                continue;
            }
            // SAFETY: the entity is not marked, so the caller promises that it is ours alone.
            let to = unsafe { y.range(first as usize..first as usize + places.len()) };
            match unknowns {
                Unknowns::Firsts(_) => {
                    for (&place, to) in places.iter().zip(to) {
                        *to += local[place as usize * lanes + lane];
                    }
                }
                Unknowns::All(list) => {
                    for &place in places {
                        let at = place as usize * lanes + lane;
                        to[(list[at] - first) as usize] += local[at];
                    }
                }
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
