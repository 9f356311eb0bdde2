use femtile_device::{Buffer, Scalar};

use super::device_run::DeviceRun;
use super::plan::Plan;
use super::recordings::Recordings;
use super::start::Settings;
use super::{CgKernels, CgScalars, CgSums, Target};
use crate::comm::Communicator;
use crate::krylov::acceptance::{PreconditionedSystem, Run, RunEnd};
use crate::{LinalgError, Preconditioner};

/// Vectors of a solve besides the right side: x, r, z, p and q.
const N_VECTORS: usize = 5;

/// Returns the bytes of the vectors of a solve with `n` unknowns, besides the right side.
pub fn vector_bytes<T: Scalar>(n: usize) -> usize {
    N_VECTORS * n * size_of::<T>()
}

/// The vectors and numbers of a run besides x and b.
pub(super) struct Workspace<T: Scalar, D: CgKernels<T>> {
    pub r: Buffer<T, D>,
    pub p: Buffer<T, D>,
    pub q: Buffer<T, D>,
    /// The preconditioned residual, if the preconditioner is not diagonal.
    pub z: Option<Buffer<T, D>>,
    pub scalars: CgScalars<D>,
    pub sums: CgSums<D>,
    /// The settings as the device has them.
    settings: Vec<f64>,
}

impl<T: Scalar, D: CgKernels<T>> Workspace<T, D> {
    /// Zeros of `n` entries, for a preconditioner.
    pub fn new(device: &D, n: usize, m: &dyn Preconditioner<T, D>) -> Result<Self, LinalgError> {
        let has_diagonal = m.diagonal().is_some();
        let scalars = CgScalars::new(device, 0.0, 0, device.cg_addends(), device.cg_partials(n))?;
        let zeros = || Buffer::zeros(device, n);
        Ok(Self {
            r: zeros()?,
            p: zeros()?,
            q: zeros()?,
            z: if has_diagonal { None } else { Some(zeros()?) },
            scalars: CgScalars { is_flexible: !has_diagonal && !m.is_fixed(), ..scalars },
            sums: CgSums::new(device, device.cg_sum_partials(n))?,
            settings: Vec::new(),
        })
    }

    /// Runs from `x` until the recurrence meets the tolerance.
    pub fn run<C: Communicator>(
        &mut self,
        x: &mut Buffer<T, D>,
        system: PreconditionedSystem<'_, T, D, C>,
        Run { config, monitor, .. }: Run<'_>,
    ) -> Result<RunEnd, LinalgError> {
        let settings = Settings {
            tolerance: config.tolerance,
            target: Target::RightSide,
            max_iterations: config.max_iterations,
            b_range: Settings::ANY,
            r_range: Settings::ANY,
            rounding: 0.0,
        };
        let mut plan = Plan::alone(&config, CgKernels::<T>::cg_stride(x.device()), self.z.is_some());
        let mut recordings = Recordings::default();
        let mut run = DeviceRun::new(self, x, system, None, &mut recordings);
        let (start, ahead) = run.start(&settings, &mut plan)?;
        run.iterate(&config, start, (&mut plan, ahead), monitor)
    }

    /// Uploads the settings if they are others than in the run before, and returns their numbers.
    pub fn bring(&mut self, settings: &Settings) -> Result<&[f64], LinalgError> {
        let numbers = settings.numbers();
        if self.settings != numbers {
            self.sums.settings.upload(&numbers)?;
            self.settings = numbers;
        }
        Ok(&self.settings)
    }
}
