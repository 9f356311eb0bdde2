//! The page of a run: what its report says, with a view of the solution.

use femtile_device::Cpu;
use femtile_report::{LevelRow, Page, View, short, significant};

use crate::drawn_field::{DrawnField, Exhibit};
use crate::{Case, Report, roofline};

/// Makes the page of a run with the picture of its end.
pub(crate) fn page(
    case: &Case,
    report: &Report,
    exhibit: Exhibit,
    (shown, picture): (&DrawnField, Vec<u8>),
) -> String {
    let Exhibit { animation, equation, conditions, .. } = exhibit;
    let time = report.time.as_ref().map(|time| time.reached);
    let (label, view) = animation.finish().or_else(|| still(shown, time)).unzip();
    let solve = &report.solve;
    let (residuals, tolerance) = match &solve.nonlinear {
        Some(nonlinear) => (&nonlinear.residuals, case.file.solver.nonlinear_tolerance),
        None => (&solve.residuals, case.file.solver.tolerance),
    };
    let page = Page {
        title: case.name(),
        outcome: outcome(report),
        facts: facts(report),
        label: label.unwrap_or_default(),
        view,
        picture,
        residuals: residuals.clone(),
        tolerance,
        levels: levels(report),
        seconds: seconds(report),
        roofline: Cpu::new(case.file.solver.threads)
            .ok()
            .and_then(|cpu| roofline::of(case, report, shown.body.dimension(), &cpu)),
        warnings: report.warnings.clone(),
        equation,
        conditions,
        case: case.text.clone(),
        citations: report.citations.clone(),
        version: report.version.clone(),
    };
    page.html()
}

/// Returns a view of the end alone.
fn still(shown: &DrawnField, time: Option<f64>) -> Option<(String, View)> {
    let mut view = View::new(&shown.body).ok()?;
    view.push(time, &shown.values);
    Some((shown.label.clone(), view))
}

fn outcome(report: &Report) -> String {
    let solve = &report.solve;
    match &report.time {
        Some(time) => {
            format!("{} {} at t = {} after {} steps", time.scheme, time.stop, short(time.reached), time.steps)
        }
        None => format!(
            "{} after {} iterations, relative residual {:.2e}",
            solve.stop.name(),
            solve.iterations,
            solve.relative_residual
        ),
    }
}

fn facts(report: &Report) -> Vec<(String, String)> {
    let (mesh, space, solve) = (&report.mesh, &report.space, &report.solve);
    let reason = |name: &str, reason: &Option<String>| match reason {
        Some(reason) => format!("{name}: {reason}"),
        None => name.to_owned(),
    };
    let known = [
        ("nodes", Some(mesh.n_nodes.to_string())),
        ("cells", Some(mesh.n_cells.to_string())),
        ("cells of the file", mesh.division.clone()),
        ("volume, area or length", Some(short(mesh.volume))),
        ("degrees of freedom", Some(space.n_dofs.to_string())),
        ("degree of the elements", space.degree.map(|degree| degree.to_string())),
        ("device", Some(format!("{}: {}", report.device, report.device_reason))),
        ("operator", solve.operator.as_ref().map(|name| reason(name, &solve.format_reason))),
        ("preconditioner", solve.preconditioner.map(|name| reason(name, &solve.preconditioner_reason))),
        ("true relative residual", number(solve.true_relative_residual)),
        ("energy norm", number(solve.energy_norm)),
        ("algebraic error, estimated", solve.algebraic_error_estimate.and_then(number)),
        ("discretization error, estimated", solve.discretization_error_estimate.and_then(number)),
        ("discretization error over energy norm of u", solve.discretization_error_relative.and_then(number)),
        ("memory, at most", report.memory_bytes.peak.map(|bytes| format!("{:.0} MB", 1e-6 * bytes as f64))),
    ];
    let known = known.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
    let modes = report.modes.iter().enumerate().map(|(i, mode)| {
        let [eigenvalue, frequency] = mode.numbers(10);
        (format!("mode {}: eigenvalue, frequency", i + 1), format!("{eigenvalue}, {frequency}"))
    });
    let matrix = report.matrix.iter().flat_map(|matrix| matrix.rows(10));
    let matrix = matrix.map(|(side, fluxes)| (format!("matrix: {side}"), fluxes));
    known
        .chain(modes)
        .chain(matrix)
        .chain(report.functionals.iter().map(|(name, value)| (name.clone(), significant(*value, 10))))
        .collect()
}

fn number(x: f64) -> Option<String> {
    x.is_finite().then(|| format!("{x:.3e}"))
}

fn levels(report: &Report) -> Vec<LevelRow> {
    let row = |level: &crate::LevelReport| {
        let patches = level.n_patches.map(|n| format!("{n} patches"));
        let remarks = level.format.iter().cloned().chain(patches).collect::<Vec<_>>().join(", ");
        LevelRow { n_rows: level.n_rows, n_nonzeros: level.n_nonzeros, remarks }
    };
    report.solve.levels.iter().map(row).collect()
}

fn seconds(report: &Report) -> Vec<(String, f64)> {
    let times = &report.timings_s;
    let stages = [
        ("read", times.read),
        ("check", times.check),
        ("space", times.space),
        ("assemble", times.assemble),
        ("set up", times.setup),
        ("solve", times.solve),
        ("write", times.write),
    ];
    stages.map(|(name, seconds)| (name.into(), seconds)).into()
}
