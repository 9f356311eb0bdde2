//! Plain loops.

use femtile::device::{Buffer, Reference};
use femtile::linalg::LinalgError;

use super::kernels::check;
use super::{ActivationKernels, ActivationState, Interval, Levels};

impl ActivationKernels for Reference {
    fn activation_record(
        &self,
        state: &mut ActivationState<Self>,
        v: &Buffer<f64, Self>,
        levels: Levels,
        step: Interval,
    ) -> Result<(), LinalgError> {
        check(state, v)?;
        let Levels { threshold, rest, remaining } = levels;
        let ActivationState { previous, first, last, peak, repolarisation, duration } = state;
        for (i, &new) in v.as_slice().iter().enumerate() {
            let old = previous.as_slice()[i];
            let time_of = |level: f64| step.begin + step.length * ((level - old) / (new - old));
            previous.as_mut_slice()[i] = new;
            if old < threshold && new >= threshold {
                let time = time_of(threshold);
                last.as_mut_slice()[i] = time;
                peak.as_mut_slice()[i] = new;
                if first.as_slice()[i].is_nan() {
                    first.as_mut_slice()[i] = time;
                }
                continue;
            }
            let highest = peak.as_slice()[i];
            if new > highest {
                peak.as_mut_slice()[i] = new;
                continue;
            }
            let level = rest + remaining * (highest - rest);
            if old >= level && new < level && !last.as_slice()[i].is_nan() {
                let time = time_of(level);
                repolarisation.as_mut_slice()[i] = time;
                duration.as_mut_slice()[i] = time - last.as_slice()[i];
            }
        }
        Ok(())
    }
}
