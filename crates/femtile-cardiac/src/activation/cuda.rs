//! Host side of the GPU kernel.

use femtile::device::cuda::{Kernel, Launch, Program, Read, Specialisation, Write};
use femtile::device::{Buffer, Cuda};
use femtile::linalg::LinalgError;

use super::kernels::check;
use super::{ActivationKernels, ActivationState, Interval, Levels};

static ACTIVATION: Program =
    Program { name: "cardiac_activation", source: include_str!("activation.cu"), headers: &[] };
const THREADS: u32 = 256;

type Array = Write<f64>;
type Record = (Array, Array, Array, Array, Array, Array, Read<f64>, f64, f64, f64, f64, f64, u64);

/// Returns the programs of this folder, for compile checks.
pub(crate) fn specialisations() -> Vec<Specialisation> {
    vec![ACTIVATION.of::<f64>()]
}

impl ActivationKernels for Cuda {
    fn activation_record(
        &self,
        state: &mut ActivationState<Self>,
        v: &Buffer<f64, Self>,
        Levels { threshold, rest, remaining }: Levels,
        step: Interval,
    ) -> Result<(), LinalgError> {
        check(state, v)?;
        let ActivationState { previous, first, last, peak, repolarisation, duration } = state;
        let arguments = (
            previous.write(),
            first.write(),
            last.write(),
            peak.write(),
            repolarisation.write(),
            duration.write(),
            v.read(),
            threshold,
            rest,
            remaining,
            step.begin,
            step.length,
            v.len() as u64,
        );
        let kernel = Kernel::<Record>::new("activation_record");
        // SAFETY: all arrays have one entry for each point.
        Ok(unsafe {
            self.launch(&ACTIVATION.of::<f64>(), &kernel, Launch::over(v.len(), THREADS), arguments)
        }?)
    }
}
