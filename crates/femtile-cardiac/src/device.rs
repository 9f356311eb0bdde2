use femtile::solve::{OperatorDevice, RankDevice};

use crate::activation::ActivationKernels;
use crate::implicit::ImplicitKernels;
use crate::ionic::IonicKernels;

/// A device that hearts are simulated on: [`Cpu`](femtile::Cpu) and [`Cuda`](femtile::device::Cuda).
pub trait CardiacDevice:
    OperatorDevice + RankDevice + ActivationKernels + IonicKernels + ImplicitKernels
{
}

impl<D: OperatorDevice + RankDevice + ActivationKernels + IonicKernels + ImplicitKernels> CardiacDevice
    for D
{
}
