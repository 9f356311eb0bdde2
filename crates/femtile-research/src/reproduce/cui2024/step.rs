//! Steps of the smoother, timed: what several figures are drawn from.

use femtile::device::{Buffer, Cuda, Device, Scalar};
use femtile::linalg::LinalgError;
use femtile::multigrid::{BoxGrid, CudaPatches, PatchKernel, PatchShape, PostOrder};

use super::{Cell, Session, Table};
use crate::published_kernels::{Layout, Passes, PatchPass, PublishedKernel, PublishedPatches};
use crate::reproduce::timing::fastest;
use femtile_bench::BenchError;

pub(super) const DEGREES: std::ops::RangeInclusive<usize> = 1..=8;

/// A kernel for a step on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A kernel used by solves.
    Shipped(PatchKernel),
    /// One of the paper's.
    Paper(PublishedKernel),
}

/// The paper's with all in one launch.
pub(super) const fn fused(layout: Layout) -> Step {
    paper(Passes::Fused, layout)
}

pub(super) const fn paper(passes: Passes, layout: Layout) -> Step {
    Step::Paper(PublishedKernel { passes, layout })
}

/// A kernel set up on a grid.
#[derive(Debug)]
pub(super) enum Ready<T: Scalar> {
    Shipped(Box<CudaPatches<T>>),
    Paper(Box<PublishedPatches<T>>),
}

impl Step {
    pub fn name(self) -> String {
        match self {
            Self::Shipped(kernel) => format!("{kernel:?}").to_lowercase(),
            Self::Paper(kernel) => kernel.name(),
        }
    }

    /// Returns whether there is a kernel for the degree and precision.
    pub fn is_for<T: Scalar>(self, degree: usize) -> bool {
        match self {
            Self::Shipped(kernel) => kernel != PatchKernel::Stencil || degree == 1,
            Self::Paper(kernel) => kernel.lack::<T>(degree).is_none(),
        }
    }

    pub fn ready<T: Scalar>(
        self,
        device: &Cuda,
        grid: &BoxGrid,
        shape: Option<PatchShape>,
    ) -> Result<Ready<T>, BenchError> {
        Ok(match self {
            Self::Shipped(kernel) => Ready::Shipped(Box::new(CudaPatches::new(device, grid, kernel, shape)?)),
            Self::Paper(kernel) => {
                Ready::Paper(Box::new(PublishedPatches::new(device, grid, kernel, shape)?))
            }
        })
    }

    /// Returns seconds of a step on a grid; none without a kernel for its degree.
    pub fn seconds<T: Scalar>(
        self,
        session: &Session,
        grid: &BoxGrid,
        shape: Option<PatchShape>,
    ) -> Result<Option<f64>, BenchError> {
        let Some(gpu) = session.gpu.as_ref().filter(|_| self.is_for::<T>(grid.degree())) else {
            return Ok(None);
        };
        let ready = self.ready::<T>(&gpu.device, grid, shape)?;
        let [mut x, b] = vectors::<T, _>(&gpu.device, grid)?;
        Ok(Some(fastest(&gpu.device, session.settings.repeats, || ready.step(&mut x, &b))?))
    }

    /// 10⁶ unknowns a second.
    pub fn rate<T: Scalar>(self, session: &Session, degree: usize) -> Result<Option<f64>, BenchError> {
        let grid = grid(session, degree)?;
        let seconds = self.seconds::<T>(session, &grid, None)?;
        Ok(seconds.map(|seconds| 1e-6 * grid.n_unknowns() as f64 / seconds))
    }
}

impl<T: Scalar> Ready<T> {
    pub fn step(&self, x: &mut Buffer<T, Cuda>, b: &Buffer<T, Cuda>) -> Result<(), LinalgError> {
        match self {
            Self::Shipped(patches) => patches.step(x, b, PostOrder::Same),
            Self::Paper(patches) => patches.step(x, b, PostOrder::Same),
        }
    }
}

/// Returns the block shape of a fused kernel of the paper with `teams` patches.
pub(super) fn shape<T: Scalar>(kernel: PublishedKernel, degree: usize, teams: usize) -> PatchShape {
    PatchShape { teams, blocks: 1, ..kernel.shape::<T>(degree, PatchPass::Fused) }
}

/// The names of rows by degree.
pub(super) fn by_degree() -> Table {
    Table::new(DEGREES.map(|degree| format!("Q{degree}")).collect())
}

/// A column of what depends on the degree.
pub(super) fn column(
    of_degree: impl Fn(usize) -> Result<Option<f64>, BenchError>,
) -> Result<Vec<Cell>, BenchError> {
    DEGREES.map(|degree| Ok(of_degree(degree)?.into())).collect()
}

/// A table with the rates of kernels in both precisions.
pub(super) fn rates(session: &Session, steps: &[Step]) -> Result<Table, BenchError> {
    let mut table = by_degree();
    for step in steps {
        let name = step.name();
        table = table
            .drawn(&format!("GPU, {name}, f64"), column(|degree| step.rate::<f64>(session, degree))?)
            .drawn(&format!("GPU, {name}, f32"), column(|degree| step.rate::<f32>(session, degree))?);
    }
    Ok(table)
}

/// Returns a cube of about the requested number of unknowns, with an even number of cells a side.
pub(super) fn grid(session: &Session, degree: usize) -> Result<BoxGrid, BenchError> {
    let nodes = (session.settings.unknowns as f64).cbrt();
    let cells = (nodes / (2 * degree) as f64).round().max(1.0) as usize;
    Ok(BoxGrid::unit(3, degree, 2 * cells)?)
}

/// Zero, and the right side 1.
pub(super) fn vectors<T: Scalar, D: Device>(
    device: &D,
    grid: &BoxGrid,
) -> Result<[Buffer<T, D>; 2], BenchError> {
    let b = grid.load_of_product(|_, _| 1.0).into_iter().map(T::from_f64).collect();
    Ok([Buffer::zeros(device, grid.n_nodes())?, Buffer::from_vec(device, b)?])
}
