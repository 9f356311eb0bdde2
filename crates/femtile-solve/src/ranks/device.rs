//! The device that a rank computes on.

use femtile_comm::{Comm, OwnedRows, RankKernels};
use femtile_device::cpu::vector::Lanes;
use femtile_device::{Cpu, Cuda};
use femtile_fem::assembly::AssemblyKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sum_factorization::SumFactorization;

use super::distributed_problem::LocalProblem;
use super::host;
use super::rows::agreed;
use crate::nonlinear::MassMatrix;
use crate::system::PreconditionedOperator;
use crate::tensor::{CellDevice, OperatorDevice};
use crate::{DeviceChoice, SolveError, SolverConfig, Stages};

/// A device with matrix-free operators on parts of a mesh.
pub trait RankCells<T: SumFactorization + Lanes>: CellDevice<T> + RankKernels<T> {}

impl<T: SumFactorization + Lanes, D: CellDevice<T> + RankKernels<T>> RankCells<T> for D {}

/// A device that a rank can solve on.
pub trait RankDevice: OperatorDevice + AssemblyKernels<f64> + RankCells<f32> + RankCells<f64> {
    /// The reason, for reports, why ranks compute on this device.
    const REASON: &str;
    /// Whether every rank must own an unknown: a reduction on a GPU needs at least one value.
    const NEEDS_UNKNOWNS: bool;

    /// Copies rows from the host to the device.
    fn rows(&self, rows: OwnedRows<f64>) -> Result<OwnedRows<f64, Self>, LinalgError>;

    /// [`LocalProblem::operators`] on this device.
    ///
    /// # Errors
    /// As [`LocalProblem::operators`].
    fn operators_of_part(
        &self,
        part: &LocalProblem<'_>,
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<Self>, SolveError>;

    /// [`LocalProblem::stiffness`] on this device.
    ///
    /// # Errors
    /// As [`LocalProblem::stiffness`].
    fn stiffness_of_part(
        &self,
        part: &LocalProblem<'_>,
    ) -> Result<Box<dyn LinearOperator<f64, Self>>, SolveError>;
}

/// The devices of a rank and its communicator.
pub(crate) struct RankDevices<'a, D> {
    /// The host of the device.
    pub cpu: &'a Cpu,
    pub device: &'a D,
    pub comm: &'a Comm,
}

impl<D> Clone for RankDevices<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for RankDevices<'_, D> {}

/// Entry points of [`RankDevice`], compiled here once per device.
macro_rules! compiled_here {
    () => {
        fn operators_of_part(
            &self,
            part: &LocalProblem<'_>,
            mass: MassMatrix,
            stages: &mut Stages<'_>,
        ) -> Result<PreconditionedOperator<Self>, SolveError> {
            part.operators_on(self, mass, stages)
        }

        fn stiffness_of_part(
            &self,
            part: &LocalProblem<'_>,
        ) -> Result<Box<dyn LinearOperator<f64, Self>>, SolveError> {
            part.stiffness_on(self)
        }
    };
}

impl RankDevice for Cpu {
    const REASON: &str = "several ranks compute on processors, unless a GPU is asked for";
    const NEEDS_UNKNOWNS: bool = false;

    compiled_here!();

    fn rows(&self, rows: OwnedRows<f64>) -> Result<OwnedRows<f64>, LinalgError> {
        Ok(rows)
    }
}

impl RankDevice for Cuda {
    const REASON: &str = "asked for, by every rank";
    const NEEDS_UNKNOWNS: bool = true;

    compiled_here!();

    fn rows(&self, rows: OwnedRows<f64>) -> Result<OwnedRows<f64, Self>, LinalgError> {
        Ok(OwnedRows { own: rows.own.copy_to(self)?, border: rows.border.copy_to(self)? })
    }
}

/// The GPU of a rank; none if ranks compute on CPUs. Collective.
///
/// # Errors
/// [`SolveError::Device`] on all ranks if one of them cannot open its GPU.
fn open(comm: &Comm, config: &SolverConfig) -> Result<Option<Cuda>, SolveError> {
    let DeviceChoice::Cuda(first) = config.device else { return Ok(None) };
    let (place, _) = host::place_on(comm)?;
    let ordinal = match config.gpus.len() {
        0 => first,
        n => config.gpus[place % n],
    };
    agreed(comm, Cuda::new(ordinal).map(Some).map_err(SolveError::from))
}

/// The GPU of a rank, if it has one, and the communicator with it: `opened`, which ranks share, or the GPU of
/// the settings. Collective.
///
/// # Errors
/// As [`open`].
pub(crate) fn joined(
    comm: &Comm,
    opened: Option<&Cuda>,
    config: &SolverConfig,
) -> Result<(Option<Cuda>, Comm), SolveError> {
    let gpu = match opened {
        Some(gpu) => Some(gpu.clone()),
        None => open(comm, config)?,
    };
    let comm = gpu.as_ref().map_or_else(|| Ok(comm.clone()), |gpu| comm.with_gpu(gpu))?;
    Ok((gpu, comm))
}

/// The names of the devices of all ranks, without repetition. Collective.
pub(crate) fn devices<D: RankDevice>(comm: &Comm, device: &D) -> Result<String, SolveError> {
    let mut names: Vec<String> = Vec::new();
    for name in comm.all_gather(device.description().as_bytes())? {
        let name = String::from_utf8_lossy(&name).into_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names.join(", "))
}

/// Refuses ranks without unknowns if the device does not support them. Collective.
pub(crate) fn check_unknowns<D: RankDevice>(comm: &Comm, n: usize) -> Result<(), SolveError> {
    let has_none = D::NEEDS_UNKNOWNS && n == 0;
    let message = format!("rank {} has no part of the mesh for its GPU: take fewer ranks", comm.rank());
    agreed(comm, if has_none { Err(SolveError::solver("ranks", message)) } else { Ok(()) })
}
