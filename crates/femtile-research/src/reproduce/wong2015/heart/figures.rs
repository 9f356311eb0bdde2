//! The figures.

use femtile_bench::BenchError;

use super::super::{KEY, range};
use super::{Heart, Run, hearts};
use crate::reproduce::{Cell, Claim, Figure, Quantity, Session, Table, UNKNOWNS};

/// The assembly as our parts have it.
const OF_ASSEMBLY: &str = "The assembly has three parts: local Newton iterations of the recovery variable, sparse products \
     (interpolation, sums of element values, the linear part of the residual), and the rest (values of the tangent, vectors).";
/// How products of conjugate gradients are counted.
const OF_PRODUCTS: &str = "Products of CG: their number times the time of one with a matrix of the same pattern and format, \
     measured on its own, as the solver runs as a whole on a GPU.";

pub(in super::super) fn figure_2(session: &Session) -> Result<Figure, BenchError> {
    let hearts = hearts(session)?;
    let assembly = |run: &Run| percent(run.assembly(), run.seconds);
    let solver = |run: &Run| percent(run.solver, run.seconds);
    let mut table = Table::new(names(hearts));
    for (device, of) in devices() {
        table = table
            .drawn(&format!("{device}, assembly"), cells(hearts, of, assembly))
            .drawn(&format!("{device}, CG"), cells(hearts, of, solver));
    }
    table = table
        .listed("cells", hearts.iter().map(|heart| Cell::Count(heart.n_cells)).collect())
        .listed("end", hearts.iter().map(|heart| Cell::Number(heart.end)).collect());
    for (device, of) in devices() {
        let count = |get: fn(&Run) -> usize| {
            hearts.iter().map(|heart| of(heart).map_or(Cell::Nothing, |run| Cell::Count(get(run)))).collect()
        };
        table = table
            .listed(&format!("{device}, steps"), count(|run| run.steps))
            .listed(&format!("{device}, Newton iterations"), count(|run| run.newton))
            .listed(&format!("{device}, CG iterations"), count(|run| run.iterations))
            .listed(&format!("{device}, s"), cells(hearts, of, |run| run.seconds));
    }
    let claim = |(device, of): (&str, OfHeart)| Claim {
        what: format!("share of the assembly in the time, {device}"),
        place: "Figure 2, section 9",
        theirs: "a plot; the problem is called assembly heavy".into(),
        ours: percents(hearts, of, assembly),
    };
    let figure =
        figure(session, ("figure-2", "Shares of assembly and solver", Quantity::Percent, "nodes"), table);
    Ok(Figure { claims: devices().map(claim).into(), notes: vec![OF_ASSEMBLY.into()], ..figure })
}

pub(in super::super) fn figure_3(session: &Session) -> Result<Figure, BenchError> {
    let hearts = hearts(session)?;
    let of_assembly = |part: fn(&Run) -> f64| move |run: &Run| percent(part(run), run.assembly());
    let of_solver = |run: &Run| percent(run.products(), run.solver);
    let of_all = |run: &Run| percent(run.sums + run.products(), run.seconds);
    let mut table = Table::new(names(hearts));
    for (device, of) in devices() {
        table = table
            .drawn(
                &format!("{device}, assembly: local iterations"),
                cells(hearts, of, of_assembly(|run| run.membrane)),
            )
            .drawn(
                &format!("{device}, assembly: sparse products"),
                cells(hearts, of, of_assembly(|run| run.sums)),
            )
            .drawn(&format!("{device}, assembly: rest"), cells(hearts, of, of_assembly(|run| run.rest)))
            .drawn(&format!("{device}, CG: sparse products"), cells(hearts, of, of_solver))
            .drawn(&format!("{device}, all: sparse products"), cells(hearts, of, of_all));
    }
    for (device, of) in devices() {
        let rate = |heart: &Heart| {
            let seconds = of(heart).map(|run| run.assembly() / (run.newton + run.steps).max(1) as f64);
            Cell::from(seconds.map(|seconds| 1e-6 * heart.n_cells as f64 / seconds))
        };
        table = table.listed(&format!("{device}, assembly, 10⁶ cells/s"), hearts.iter().map(rate).collect());
    }
    let [_, (_, gpu)] = devices();
    let claim = |what: &str, theirs: &str, ours| Claim {
        what: what.into(),
        place: "section 2.1, Figure 3",
        theirs: theirs.into(),
        ours,
    };
    let claims = vec![
        claim("share of sparse products in CG, GPU", "rises towards 33 %", percents(hearts, gpu, of_solver)),
        claim("share of all sparse products in the time, GPU", "up to 10 %", percents(hearts, gpu, of_all)),
    ];
    let figure =
        figure(session, ("figure-3", "Shares of sparse products", Quantity::Percent, "nodes"), table);
    Ok(Figure { claims, notes: vec![OF_ASSEMBLY.into(), OF_PRODUCTS.into()], ..figure })
}

pub(in super::super) fn figure_15(session: &Session) -> Result<Figure, BenchError> {
    let hearts = hearts(session)?;
    let on_gpu = |heart: &Heart| heart.gpu.map(|(seconds, _)| heart.core.seconds / seconds);
    let all_cores = |heart: &Heart| heart.all_cores.map(|seconds| heart.core.seconds / seconds);
    let against_all = |heart: &Heart| heart.all_cores.zip(heart.gpu).map(|(cores, (gpu, _))| cores / gpu);
    let threads = threads(session);
    let table = Table::new(names(hearts))
        .drawn("GPU", numbers(hearts, on_gpu))
        .drawn(&threads, numbers(hearts, all_cores))
        .drawn(&format!("GPU against {threads}"), numbers(hearts, against_all))
        .listed("one core, s", numbers(hearts, |heart| Some(heart.core.seconds)))
        .listed(&format!("{threads}, s"), numbers(hearts, |heart| heart.all_cores))
        .listed("GPU, s", numbers(hearts, |heart| heart.gpu.map(|(seconds, _)| seconds)));
    let claim = |what: String, theirs: &str, ours| Claim {
        what,
        place: "section 8, Figure 15",
        theirs: theirs.into(),
        ours,
    };
    let claims = vec![
        claim(
            "whole simulation, GPU against one core".into(),
            "5 to 12× as the mesh is refined",
            times(hearts, on_gpu),
        ),
        claim(
            format!("the same against {threads}"),
            "at least 2× against 4 cores",
            times(hearts, against_all),
        ),
    ];
    let what = ("figure-15", "The simulation, GPU against one core", Quantity::Speedup, UNKNOWNS);
    Ok(Figure { claims, ..figure(session, what, table) })
}

pub(in super::super) fn figure_16(session: &Session) -> Result<Figure, BenchError> {
    let hearts = hearts(session)?;
    let power = session.settings.power;
    let (gpu_watts, core_watts) = (f64::from(power.gpu_watts), power.core_watts());
    let n = session.cpu.threads() as f64;
    let against_core =
        |heart: &Heart| heart.gpu.map(|(gpu, _)| heart.core.seconds * core_watts / (gpu * gpu_watts));
    let against_all = |heart: &Heart| {
        let (cores, (gpu, _)) = heart.all_cores.zip(heart.gpu)?;
        Some(cores * n * core_watts / (gpu * gpu_watts))
    };
    let of_cores = |heart: &Heart| heart.all_cores.map(|cores| heart.core.seconds / (cores * n));
    let threads = threads(session);
    let table = Table::new(names(hearts))
        .drawn("GPU against one core", numbers(hearts, against_core))
        .drawn(&format!("GPU against {threads}"), numbers(hearts, against_all))
        .drawn(&format!("{threads} against one core"), numbers(hearts, of_cores))
        .listed("GPU, W", vec![Cell::Count(power.gpu_watts as usize); hearts.len()])
        .listed("one core, W", vec![Cell::Number(core_watts); hearts.len()]);
    let claims = vec![Claim {
        what: format!("speed for each watt, GPU against {threads}"),
        place: "section 8, Figure 16",
        theirs: "about 1.0 from 5,000 nodes on, 1.6 at the most, against 4 cores".into(),
        ours: times(hearts, against_all),
    }];
    let notes = vec![
        format!(
            "Nominal power: GPU {} W (--gpu-watts), a core {core_watts:.2} W, its share of a package of {} W with {} cores \
             (--package-watts, --package-cores). Theirs: GTX 480 295 W, Core i7-950 130 W.",
            power.gpu_watts, power.package_watts, power.package_cores
        ),
        "Speed for each watt: time × power of the one over time × power of the other.".into(),
    ];
    let what = ("figure-16", "The simulation for each watt of nominal power", Quantity::Ratio, UNKNOWNS);
    Ok(Figure { claims, notes, ..figure(session, what, table) })
}

type OfHeart = fn(&Heart) -> Option<&Run>;

/// Devices by name, with their runs.
fn devices() -> [(&'static str, OfHeart); 2] {
    [("one core", |heart| Some(&heart.core)), ("GPU", |heart| heart.gpu.as_ref().map(|(_, run)| run))]
}

fn names(hearts: &[Heart]) -> Vec<String> {
    hearts.iter().map(|heart| heart.n_nodes.to_string()).collect()
}

fn threads(session: &Session) -> String {
    format!("{} threads", session.cpu.threads())
}

fn percent(part: f64, whole: f64) -> f64 {
    100.0 * part / whole
}

fn cells(hearts: &[Heart], of: OfHeart, number: impl Fn(&Run) -> f64) -> Vec<Cell> {
    hearts.iter().map(|heart| Cell::from(of(heart).map(&number))).collect()
}

fn numbers(hearts: &[Heart], number: impl Fn(&Heart) -> Option<f64>) -> Vec<Cell> {
    hearts.iter().map(|heart| Cell::from(number(heart))).collect()
}

/// The least and the greatest percentage; none where nothing is measured.
fn percents(hearts: &[Heart], of: OfHeart, number: impl Fn(&Run) -> f64) -> Option<String> {
    let (least, most) = range(hearts.iter().filter_map(of).map(number))?;
    Some(format!("{least:.0}–{most:.0} %"))
}

/// The least and the greatest factor; none where nothing is measured.
fn times(hearts: &[Heart], number: impl Fn(&Heart) -> Option<f64>) -> Option<String> {
    let (least, most) = range(hearts.iter().filter_map(number))?;
    Some(format!("{least:.2}–{most:.2}×"))
}

fn figure(
    session: &Session,
    (item, title, quantity, abscissa): (&'static str, &str, Quantity, &'static str),
    table: Table,
) -> Figure {
    let setting = format!(
        "{}; a beat of the idealised ventricle, Aliev–Panfilov, backward Euler with adaptive steps, Jacobi-CG, f64",
        session.machine()
    );
    session.figure(KEY, (item, title, quantity, abscissa), setting, table)
}
