//! The load of the source on a device.

use femtile_device::Buffer;
use femtile_fem::{
    AssembledSystem, Assembly, AssemblyProblem, Coefficient, DeviceState, FemError, Form, Slopes,
};
use femtile_linalg::LinalgError;

use super::data;
use crate::SolveError;
use crate::discretization::Discretization;
use crate::tensor::OperatorDevice;

/// A coefficient that does not enter a load.
static ONE: Coefficient = Coefficient::Constant(1.0);

/// The load $\int f(t)\, \varphi_i$ of a problem.
pub(super) enum SourceLoad<'a, D: OperatorDevice> {
    /// Constant in time; none if it is zero.
    Fixed(Option<Buffer<f64, D>>),
    /// Evaluated on the CPU and copied.
    ByHost(Buffer<f64, D>),
    /// Assembled on the device.
    ByKernels(Box<ByKernels<'a, D>>),
}

/// Assembly of the load of linear elements by kernels, which assemble the matrix as a by-product.
pub(super) struct ByKernels<'a, D: OperatorDevice> {
    assembly: Assembly<f64, D>,
    problem: AssemblyProblem<'a>,
    system: AssembledSystem<f64, D>,
}

impl<'a, D: OperatorDevice> SourceLoad<'a, D> {
    /// Prepares the load of a problem.
    pub fn new(device: &D, problem: &'a Discretization<'_>, time: f64) -> Result<Self, SolveError> {
        let source = &problem.sources[0];
        if !source.uses_time() {
            let load = data::source_at(problem, time)?;
            let is_zero = load.iter().all(|value| *value == 0.0);
            let load = (!is_zero).then(|| Buffer::from_vec(device, load)).transpose();
            return Ok(Self::Fixed(load.map_err(LinalgError::from)?));
        }
        if !D::IS_GPU || problem.space.is_some() {
            return Ok(Self::ByHost(Buffer::zeros(device, problem.n_dofs()).map_err(LinalgError::from)?));
        }
        let (mesh, boundary) = (problem.mesh, &*problem.boundary);
        let form = Form { mesh, boundary, sigma: &ONE, lambda: &ONE, source, conditions: &[] };
        let mut assembly = Assembly::new(device, mesh)?;
        let system = assembly.zero_system()?;
        // Only linearized forms have coefficients at a given time, and kernels that evaluate them.
        let problem = assembly.prepare_linearized(&form, Slopes::NONE, &[])?;
        Ok(Self::ByKernels(Box::new(ByKernels { assembly, problem, system })))
    }

    /// Returns whether the load has to be evaluated at each time.
    pub fn depends_on_time(&self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// Returns the load at a given time; none if it is zero.
    pub fn at(
        &mut self,
        problem: &Discretization<'_>,
        time: f64,
    ) -> Result<Option<&Buffer<f64, D>>, SolveError> {
        match self {
            Self::Fixed(load) => Ok(load.as_ref()),
            Self::ByHost(load) => {
                load.upload(&data::source_at(problem, time)?).map_err(LinalgError::from)?;
                Ok(Some(load))
            }
            Self::ByKernels(kernels) => {
                let ByKernels { assembly, problem, system } = &mut **kernels;
                let state = DeviceState { time, unknown: None };
                assembly.fill(system, problem, state).map_err(|source| at_time(time, source))?;
                Ok(Some(&system.rhs))
            }
        }
    }
}

/// Adds the time to an error about data.
fn at_time(time: f64, source: FemError) -> SolveError {
    match source {
        FemError::Device(_) | FemError::Linalg(_) => source.into(),
        source => SolveError::AtTime { time, source },
    }
}
