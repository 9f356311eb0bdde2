//! Tables 5 and 6: layouts of the fused kernel, and the time of its loads and stores.

use femtile::device::{Buffer, Cuda};
use femtile::linalg::LinalgError;

use super::step::{fused, grid, vectors};
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure};
use crate::published_kernels::{Layout, Passes, PatchPass, PublishedKernel, PublishedPatches};
use crate::reproduce::session::{Gpu, no_gpu};
use crate::reproduce::timing::fastest;
use femtile_bench::BenchError;

const DEGREE: usize = 3;
/// Layouts, with milliseconds and conflicts a block as printed.
const PRINTED_5: [(Layout, f64, usize); 3] =
    [(Layout::Basic, 28.23, 113), (Layout::LinearIndexing, 25.35, 163), (Layout::ConflictFree, 21.50, 0)];
/// A degree and a launch, with printed milliseconds, those of data alone, and blocks of a multiprocessor.
type Printed = (usize, Passes, PatchPass, f64, f64, usize);
const PRINTED_6: [Printed; 6] = [
    (2, Passes::Fused, PatchPass::Fused, 6.85, 1.89, 3),
    (2, Passes::Separate, PatchPass::Residual, 5.58, 2.02, 3),
    (2, Passes::Separate, PatchPass::Solve, 1.66, 1.07, 8),
    (6, Passes::Fused, PatchPass::Fused, 43.20, 7.56, 3),
    (6, Passes::Separate, PatchPass::Residual, 30.20, 8.28, 3),
    (6, Passes::Separate, PatchPass::Solve, 14.24, 6.78, 4),
];
/// Shared memory of a multiprocessor that has so much for a block, and what each block takes besides.
const BYTES_MORE: usize = 1 << 10;

pub(super) fn table_5(session: &Session) -> Result<Figure, BenchError> {
    let grid = grid(session, DEGREE)?;
    let (mut seconds, mut conflicts) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for (layout, ..) in PRINTED_5 {
        seconds[0].push(fused(layout).seconds::<f64>(session, &grid, None)?);
        seconds[1].push(fused(layout).seconds::<f32>(session, &grid, None)?);
        let kernel = PublishedKernel { passes: Passes::Fused, layout };
        conflicts[0].push(kernel.bank_conflicts::<f64>(DEGREE, PatchPass::Fused));
        conflicts[1].push(kernel.bank_conflicts::<f32>(DEGREE, PatchPass::Fused));
    }
    let names = PRINTED_5.map(|row| PublishedKernel { passes: Passes::Fused, layout: row.0 }.name());
    let mut table = Table::new(names.into())
        .listed("ms, theirs", PRINTED_5.map(|row| Cell::Number(row.1)).into())
        .listed("conflicts a block, theirs", PRINTED_5.map(|row| Cell::Count(row.2)).into());
    for ((name, seconds), conflicts) in ["f64", "f32"].into_iter().zip(&seconds).zip(conflicts) {
        let ms = seconds.iter().map(|seconds| seconds.map(|seconds| 1e3 * seconds).into()).collect();
        let conflicts = conflicts.into_iter().map(|count| count.map_or(Cell::Nothing, Cell::Count)).collect();
        table = table
            .drawn(&format!("ms, {name}"), ms)
            .listed(&format!("conflicts a block, {name}, counted"), conflicts);
    }
    let gain = |seconds: &[Option<f64>]| Some(seconds[0]? / seconds[2]?);
    let claim = Claim {
        what: "time of the basic over that of the conflict-free kernel, Q3".into(),
        place: "Table 5",
        theirs: format!("{:.2}", PRINTED_5[0].1 / PRINTED_5[2].1),
        ours: gain(&seconds[0])
            .zip(gain(&seconds[1]))
            .map(|(double, single)| format!("{double:.2} in f64, {single:.2} in f32")),
    };
    let said =
        "Conflicts are counted from where values lie, of a block with as many patches as is its default.";
    let made = of_milliseconds(session, "table-5", "Layouts of the fused kernel, Q3", table, said);
    Ok(Figure { claims: vec![claim], ..made })
}

pub(super) fn table_6(session: &Session) -> Result<Figure, BenchError> {
    let name = |passes: Passes, pass: PatchPass| match (passes, pass) {
        (Passes::Fused, _) => "fused",
        (_, PatchPass::Residual) => "separate, residual",
        _ => "separate, solve",
    };
    let rows = PRINTED_6.iter().map(|row| format!("Q{}, {}", row.0, name(row.1, row.2))).collect();
    let printed = |of: &dyn Fn(&Printed) -> Cell| PRINTED_6.iter().map(of).collect::<Vec<_>>();
    let mut table = Table::new(rows)
        .listed("ms, theirs", printed(&|row| Cell::Number(row.3)))
        .listed("ms, data alone, theirs", printed(&|row| Cell::Number(row.4)))
        .listed("blocks a multiprocessor, theirs", printed(&|row| Cell::Count(row.5)));
    if let Some(gpu) = &session.gpu {
        let mut found = [Vec::new(), Vec::new(), Vec::new()];
        for (degree, passes, pass, ..) in PRINTED_6 {
            let kernel = PublishedKernel { passes, layout: Layout::ConflictFree };
            let [all, data] = of_pass(session, gpu, kernel, pass, degree)?;
            found[0].push(Cell::Number(1e3 * all));
            found[1].push(Cell::Number(1e3 * data));
            let teams = kernel.shape::<f64>(degree, pass).teams;
            let bytes = kernel.shared_bytes::<f64>(degree, pass, teams) + BYTES_MORE;
            let most = gpu.device.properties().shared_bytes_per_block() + BYTES_MORE;
            found[2].push(Cell::Count(most / bytes));
        }
        let [all, data, blocks] = found;
        table = table.drawn("ms, f64", all).drawn("ms, data alone, f64", data);
        table = table.listed("blocks a multiprocessor by shared memory", blocks);
    }
    let said =
        "The conflict-free kernels; data alone is loaded and stored as they do, with nothing computed.";
    Ok(of_milliseconds(session, "table-6", "Fused and separate kernels, and their data alone", table, said))
}

/// Returns seconds of a pass of a step, and of its loads and stores alone.
fn of_pass(
    session: &Session,
    gpu: &Gpu,
    kernel: PublishedKernel,
    pass: PatchPass,
    degree: usize,
) -> Result<[f64; 2], BenchError> {
    let grid = grid(session, degree)?;
    let patches = PublishedPatches::<f64>::new(&gpu.device, &grid, kernel, None)?;
    let [mut x, b] = vectors::<f64, Cuda>(&gpu.device, &grid)?;
    let time = |is_data_alone, x: &mut Buffer<f64, Cuda>| -> Result<f64, LinalgError> {
        fastest(&gpu.device, session.settings.repeats, || patches.pass(pass, is_data_alone, x, &b))
    };
    Ok([time(false, &mut x)?, time(true, &mut x)?])
}

fn of_milliseconds(session: &Session, item: &'static str, title: &str, table: Table, said: &str) -> Figure {
    let notes = vec![format!(
        "Steps on cubes of about {} unknowns (--unknowns), right side 1, all eight colours; the fastest of {}. {said} Theirs: \
         on an A100; the paper prints neither the size nor how many colours these milliseconds are of, so ratios compare, \
         milliseconds do not.",
        session.settings.unknowns, session.settings.repeats,
    )];
    let absent = no_gpu(session).into_iter().collect();
    Figure {
        notes,
        absent,
        quantity: Quantity::Milliseconds,
        abscissa: "kernel",
        ..figure(session, item, title, Vec::new(), table)
    }
}
