//! Figures 3, 5, 8, 9, 15 and 17: steps of the smoother by degree, with several kernels.

use femtile::device::{Cpu, Scalar};
use femtile::multigrid::{BoxGrid, BoxKernels, Multigrid, PatchKernel, PostOrder};

use super::step::{Step, by_degree, column, fused, grid, paper, rates, shape, vectors};
use super::{Figure, PATCHES, Quantity, Session, Table, figure};
use crate::published_kernels::{Layout, Passes};
use crate::reproduce::session::no_gpu;
use femtile_bench::BenchError;
use femtile_bench::Samples;

/// The numbers of patches of a block that are tried.
const TEAMS: [usize; 5] = [1, 2, 4, 8, 16];

pub(super) fn figure_3(session: &Session) -> Result<Figure, BenchError> {
    let steps = [fused(Layout::InverseMatrix), fused(Layout::ConflictFree)];
    let title = "Solves on patches by a dense inverse and by fast diagonalization";
    of_steps(
        session,
        "figure-3",
        title,
        &steps,
        "The dense inverse is one for all patches, for degrees 1 to 4.",
    )
}

pub(super) fn figure_5(session: &Session) -> Result<Figure, BenchError> {
    let steps = [fused(Layout::Basic), fused(Layout::ThreadPerNode)];
    let title = "Blocks with a thread for each column and for each node";
    of_steps(
        session,
        "figure-5",
        title,
        &steps,
        "A thread for each node up to degree 4, whose patches have 729.",
    )
}

pub(super) fn figure_9(session: &Session) -> Result<Figure, BenchError> {
    let steps = [Passes::Global, Passes::Separate, Passes::Fused].map(|passes| paper(passes, Layout::Basic));
    let title = "Residuals on the whole grid, on patches, and with the solves";
    of_steps(session, "figure-9", title, &steps, "Values of patches are laid out plainly.")
}

pub(super) fn figure_17(session: &Session) -> Result<Figure, BenchError> {
    let steps = [Passes::Separate, Passes::Fused].map(|passes| paper(passes, Layout::ConflictFree));
    let title = "Separate and fused kernels without bank conflicts";
    of_steps(session, "figure-17", title, &steps, "Values of patches are packed.")
}

pub(super) fn figure_15(session: &Session) -> Result<Figure, BenchError> {
    let of_paper =
        [Layout::Basic, Layout::LinearIndexing, Layout::ConflictFree, Layout::Boundary, Layout::TensorCore];
    let shipped = [PatchKernel::Fused, PatchKernel::Skeleton, PatchKernel::Whole, PatchKernel::Stencil];
    let steps: Vec<_> = of_paper.map(fused).into_iter().chain(shipped.map(Step::Shipped)).collect();
    let title = "Steps of the vertex-patch smoother by degree, three dimensions";
    let said = "Basic, linear-indexing, conflict-free, boundary and tensor-core are the paper's layouts; fused has the lines of \
                threads in registers and its matrices in constant memory, whole and skeleton solve from the surfaces of \
                patches, stencil has the weights of degree one.";
    let mut made = of_steps(session, "figure-15", title, &steps, said)?;
    let table = made.table.take().unwrap_or_else(by_degree);
    let table = table.drawn("CPU, f64", column(|degree| on_cpu::<f64>(session, degree))?);
    made.table = Some(table.drawn("CPU, f32", column(|degree| on_cpu::<f32>(session, degree))?));
    Ok(made)
}

pub(super) fn figure_7(session: &Session) -> Result<Figure, BenchError> {
    let mut table = Table::new(TEAMS.map(|teams| teams.to_string()).into());
    for degree in super::step::DEGREES {
        let found: Result<Vec<_>, BenchError> =
            TEAMS.into_iter().map(|teams| Ok(with_teams(session, degree, teams)?.into())).collect();
        table = table.drawn(&format!("Q{degree}"), found?);
    }
    let title = "Steps by the number of patches of a block, f64";
    let made = of_table(session, "figure-7", title, table, "The conflict-free kernel.");
    Ok(Figure { abscissa: "patches a block", ..made })
}

pub(super) fn figure_8(session: &Session) -> Result<Figure, BenchError> {
    let best = |degree| {
        let mut best: Option<f64> = None;
        for teams in TEAMS {
            let rate = with_teams(session, degree, teams)?;
            best = best.into_iter().chain(rate).reduce(f64::max);
        }
        Ok(best)
    };
    let table = by_degree()
        .drawn("one patch", column(|degree| with_teams(session, degree, 1))?)
        .drawn("the best number of patches", column(best)?);
    let title = "Steps with one patch a block and with the best number of them, f64";
    Ok(of_table(
        session,
        "figure-8",
        title,
        table,
        "The conflict-free kernel, 1, 2, 4, 8 or 16 patches a block.",
    ))
}

/// Returns 10⁶ unknowns a second of the conflict-free kernel; none if blocks are too large.
fn with_teams(session: &Session, degree: usize, teams: usize) -> Result<Option<f64>, BenchError> {
    let (Some(gpu), Step::Paper(kernel)) = (&session.gpu, fused(Layout::ConflictFree)) else {
        return Ok(None);
    };
    let (grid, shape) = (grid(session, degree)?, shape::<f64>(kernel, degree, teams));
    if fused(Layout::ConflictFree).ready::<f64>(&gpu.device, &grid, Some(shape)).is_err() {
        return Ok(None);
    }
    let seconds = fused(Layout::ConflictFree).seconds::<f64>(session, &grid, Some(shape))?;
    Ok(seconds.map(|seconds| 1e-6 * grid.n_unknowns() as f64 / seconds))
}

fn of_steps(
    session: &Session,
    item: &'static str,
    title: &str,
    steps: &[Step],
    said: &str,
) -> Result<Figure, BenchError> {
    Ok(of_table(session, item, title, rates(session, steps)?, said))
}

fn of_table(session: &Session, item: &'static str, title: &str, table: Table, said: &str) -> Figure {
    let notes = vec![format!(
        "Cubes of about {} unknowns (--unknowns), right side 1; the fastest of {} steps. {said} Theirs: plots only.",
        session.settings.unknowns, session.settings.repeats
    )];
    let absent = no_gpu(session).into_iter().collect();
    Figure { notes, absent, quantity: Quantity::MdofPerS, ..figure(session, item, title, Vec::new(), table) }
}

/// Returns 10⁶ unknowns a second on CPUs, on the closest grid with a power of two of cells a side.
fn on_cpu<T: Scalar>(session: &Session, degree: usize) -> Result<Option<f64>, BenchError>
where
    Cpu: BoxKernels<T>,
{
    // Halves of halves of two cells a side, as processors smooth levels above the coarsest.
    let halvings = ((session.settings.unknowns as f64).cbrt() / (2 * degree) as f64).log2().round().max(1.0);
    let coarsest = BoxGrid::unit(3, degree, 2)?;
    let n_levels = 1 + halvings as usize;
    let multigrid = Multigrid::<T>::new(&session.cpu, &coarsest, n_levels, PATCHES)?;
    let [mut x, b] = vectors::<T, _>(&session.cpu, multigrid.grid())?;
    let mut samples = Samples::default();
    multigrid.smooth(&mut x, &b, PostOrder::Same)?;
    for _ in 0..session.settings.repeats {
        samples.time(|| multigrid.smooth(&mut x, &b, PostOrder::Same))?;
    }
    Ok(Some(1e-6 * multigrid.grid().n_unknowns() as f64 / samples.min()))
}
