//! Figure 15: steps of the smoother by degree, on processors and with the kernels that a GPU has.

use femtile::device::{Buffer, Cpu, Cuda, Device, Scalar};
use femtile::multigrid::{
    BoxGrid, BoxKernels, CudaPatches, Multigrid, MultigridConfig, PatchKernel, PostOrder,
};

use super::{Cell, Figure, Quantity, Session, Table, figure};
use crate::BenchError;
use crate::reproduce::session::no_gpu;
use crate::timing::Samples;

const DEGREES: std::ops::RangeInclusive<usize> = 1..=8;

/// What a GPU is measured with.
const KERNELS: [(&str, PatchKernel); 4] = [
    ("fused", PatchKernel::Fused),
    ("skeleton", PatchKernel::Skeleton),
    ("whole", PatchKernel::Whole),
    ("stencil", PatchKernel::Stencil),
];

pub(super) fn figure_15(session: &Session) -> Result<Figure, BenchError> {
    let mut table = Table::new(DEGREES.map(|degree| format!("Q{degree}")).collect());
    if let Some(gpu) = &session.gpu {
        for (name, kernel) in KERNELS {
            let device = &gpu.device;
            table = table.drawn(
                &format!("GPU, {name}, f64"),
                by_degree(|k| on_gpu::<f64>(session, device, kernel, k))?,
            );
            table = table.drawn(
                &format!("GPU, {name}, f32"),
                by_degree(|k| on_gpu::<f32>(session, device, kernel, k))?,
            );
        }
    }
    table = table.drawn("CPU, f64", by_degree(|degree| on_cpu::<f64>(session, degree))?);
    table = table.drawn("CPU, f32", by_degree(|degree| on_cpu::<f32>(session, degree))?);
    let notes = vec![format!(
        "Cubes of about {} unknowns (--unknowns), right side 1; the fastest of {} steps. Fused is the textbook kernel, whole and \
         skeleton solve from the surfaces of patches, stencil has the weights of degree one. Theirs: plots only.",
        session.settings.unknowns, session.settings.repeats
    )];
    let title = "Steps of the vertex-patch smoother by degree, three dimensions";
    let absent = no_gpu(session).into_iter().collect();
    let quantity = Quantity::MdofPerS;
    Ok(Figure { notes, absent, quantity, ..figure(session, "figure-15", title, Vec::new(), table) })
}

fn by_degree(rate: impl Fn(usize) -> Result<Option<f64>, BenchError>) -> Result<Vec<Cell>, BenchError> {
    DEGREES.map(|degree| Ok(rate(degree)?.into())).collect()
}

/// The coarse grid of one with about so many unknowns.
fn coarse(session: &Session, degree: usize) -> Result<BoxGrid, BenchError> {
    let nodes = (session.settings.unknowns as f64).cbrt();
    let cells = (nodes / (2 * degree) as f64).round().max(1.0) as usize;
    Ok(BoxGrid::unit(3, degree, cells)?)
}

/// 10⁶ unknowns a second; none where the kernel is not for the degree.
fn on_gpu<T: Scalar>(
    session: &Session,
    device: &Cuda,
    kernel: PatchKernel,
    degree: usize,
) -> Result<Option<f64>, BenchError> {
    if kernel == PatchKernel::Stencil && degree != 1 {
        return Ok(None);
    }
    let grid = coarse(session, degree)?.refined();
    let patches = CudaPatches::<T>::new(device, &grid, kernel, None)?;
    let [mut x, b] = vectors::<T, _>(device, &grid)?;
    let mut step = || -> Result<(), BenchError> { Ok(patches.step(&mut x, &b, PostOrder::Same)?) };
    step()?;
    let times = (0..session.settings.repeats).map(|_| device.time(&mut step));
    let times = times.collect::<Result<Vec<f64>, BenchError>>()?;
    let fastest = times.into_iter().fold(f64::MAX, f64::min);
    Ok(Some(1e-6 * grid.n_unknowns() as f64 / fastest))
}

/// The same on processors, on the grid of a power of two of cells a side that comes closest.
fn on_cpu<T: Scalar>(session: &Session, degree: usize) -> Result<Option<f64>, BenchError>
where
    Cpu: BoxKernels<T>,
{
    // Halves of halves of two cells a side, as processors smooth levels above the coarsest.
    let halvings = ((session.settings.unknowns as f64).cbrt() / (2 * degree) as f64).log2().round().max(1.0);
    let coarsest = BoxGrid::unit(3, degree, 2)?;
    let n_levels = 1 + halvings as usize;
    let multigrid = Multigrid::<T>::new(&session.cpu, &coarsest, n_levels, MultigridConfig::default())?;
    let [mut x, b] = vectors::<T, _>(&session.cpu, multigrid.grid())?;
    let mut samples = Samples::default();
    multigrid.smooth(&mut x, &b, PostOrder::Same)?;
    for _ in 0..session.settings.repeats {
        samples.time(|| multigrid.smooth(&mut x, &b, PostOrder::Same))?;
    }
    Ok(Some(1e-6 * multigrid.grid().n_unknowns() as f64 / samples.min()))
}

/// Zero, and the right side 1.
fn vectors<T: Scalar, D: Device>(device: &D, grid: &BoxGrid) -> Result<[Buffer<T, D>; 2], BenchError> {
    let b = grid.load_of_product(|_, _| 1.0).into_iter().map(T::from_f64).collect();
    Ok([Buffer::zeros(device, grid.n_nodes())?, Buffer::from_vec(device, b)?])
}
