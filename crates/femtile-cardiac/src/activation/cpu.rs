//! Threads over ranges of points.

use femtile::device::cpu::SharedMut;
use femtile::device::{Buffer, Cpu};
use femtile::linalg::LinalgError;

use super::kernels::check;
use super::{ActivationKernels, ActivationState, Interval, Levels};

/// Fewest points of a thread.
const MIN_POINTS: usize = 8192;

impl ActivationKernels for Cpu {
    fn activation_record(
        &self,
        state: &mut ActivationState<Self>,
        v: &Buffer<f64, Self>,
        levels: Levels,
        step: Interval,
    ) -> Result<(), LinalgError> {
        check(state, v)?;
        let v = v.as_slice();
        let ActivationState { previous, first, last, peak, repolarisation, duration } = state;
        let arrays = [previous, first, last, peak, repolarisation, duration];
        let arrays = arrays.map(|array| SharedMut::new(array.as_mut_slice()));
        self.for_ranges(v.len(), MIN_POINTS, |range| {
            // SAFETY: the ranges of one `for_ranges` do not overlap, and `check` has compared the lengths.
            let parts = arrays.each_ref().map(|array| unsafe { array.range(range.clone()) });
            record(parts, &v[range], levels, step);
        });
        Ok(())
    }
}

/// Records the crossings of some points.
fn record(
    [previous, first, last, peak, repolarisation, duration]: [&mut [f64]; 6],
    v: &[f64],
    Levels { threshold, rest, remaining }: Levels,
    step: Interval,
) {
    for (i, (&new, previous)) in v.iter().zip(previous).enumerate() {
        let old = std::mem::replace(previous, new);
        let time_of = |level: f64| step.begin + step.length * ((level - old) / (new - old));
        if old < threshold && new >= threshold {
            let time = time_of(threshold);
            (last[i], peak[i]) = (time, new);
            if first[i].is_nan() {
                first[i] = time;
            }
        } else if new > peak[i] {
            peak[i] = new;
        } else {
            let level = rest + remaining * (peak[i] - rest);
            if old >= level && new < level && !last[i].is_nan() {
                let time = time_of(level);
                (repolarisation[i], duration[i]) = (time, time - last[i]);
            }
        }
    }
}
