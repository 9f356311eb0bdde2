//! The course and the result of a run.

use femtile::device::MemoryUse;
use femtile::solve::RanksUsed;

use crate::activation::ActivationTimes;
use crate::implicit::StepSeconds;

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stop {
    /// The end of time is reached.
    Finished,
    /// The user has asked for it.
    Interrupted,
    /// The time allowed is over.
    TimeLimit,
    /// A linear solve did not converge.
    SolverFailed,
    /// Newton's method did not converge with the shortest step either.
    NewtonFailed {
        /// The node with the largest residual.
        node: usize,
        /// The potential there.
        potential: f64,
    },
    /// The error estimate asks for a step below the shortest one.
    StepTooShort,
    /// The potential is not a number, or out of all bounds.
    Unstable {
        /// The node.
        node: usize,
        /// The potential there.
        potential: f64,
    },
}

/// The course of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The reason for its end.
    pub stop: Stop,
    /// Steps done, those before a checkpoint included.
    pub steps: usize,
    /// The length of the last step.
    pub step: f64,
    /// The time that was reached.
    pub time: f64,
    /// Iterations of the linear solver.
    pub iterations: usize,
    /// Iterations of Newton's method.
    pub newton: usize,
    /// Steps rejected by the error estimate or by Newton's method.
    pub rejected: usize,
    /// Seconds of the loop over steps.
    pub seconds: f64,
    /// Seconds of the parts of implicit steps; none unless [`super::Monodomain::timed`] asks for them.
    pub parts: Option<StepSeconds>,
}

/// The result of a run.
#[derive(Debug, Clone)]
#[must_use]
pub struct MonodomainSolution {
    /// The potential at the nodes at the end.
    pub potential: Vec<f64>,
    /// Times of activation and repolarisation of the nodes.
    pub activation: ActivationTimes,
    /// The course of the run.
    pub outcome: Outcome,
    /// The device.
    pub device: String,
    /// The reason for the device.
    pub device_reason: String,
    /// The memory that arrays took, of devices that count it.
    pub memory: Option<MemoryUse>,
    /// Kernels launched; zero on a CPU.
    pub kernel_launches: u64,
    /// The format of the operator of diffusion.
    pub format: String,
    /// The preconditioner, by name.
    pub preconditioner: &'static str,
    /// How the mesh was distributed among ranks; none on a single rank.
    pub ranks: Option<RanksUsed>,
}
