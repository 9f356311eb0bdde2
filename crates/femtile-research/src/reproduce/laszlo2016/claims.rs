//! Numbers in the paper's text, with the same ratios of this run.

use std::collections::BTreeSet;

use super::blocks::best;
use super::{Claim, Row};

/// The least and the largest ratio of times of two solvers over all sizes that both were measured at.
pub(super) fn ratios(
    rows: &[Row],
    slow: impl Fn(&Row) -> bool,
    fast: impl Fn(&Row) -> bool,
) -> Option<(f64, f64)> {
    let pairs = rows.iter().filter(|row| slow(row)).filter_map(|row| {
        let other = rows.iter().find(|other| fast(other) && other.is_same_problem(row))?;
        Some(row.ns / other.ns)
    });
    pairs.fold(None, widened)
}

fn widened(range: Option<(f64, f64)>, ratio: f64) -> Option<(f64, f64)> {
    Some(range.map_or((ratio, ratio), |(low, high)| (low.min(ratio), high.max(ratio))))
}

fn shown(range: Option<(f64, f64)>) -> Option<String> {
    range.map(
        |(low, high)| {
            if high < 1.01 * low { format!("{high:.2}×") } else { format!("{low:.2}–{high:.2}×") }
        },
    )
}

fn claim(what: impl Into<String>, place: &'static str, theirs: &str, ours: Option<String>) -> Claim {
    Claim { what: what.into(), place, theirs: theirs.into(), ours }
}

/// A choice by precision.
fn of<'a>(precision: &str, single: &'a str, double: &'a str) -> &'a str {
    if precision == "f32" { single } else { double }
}

const PRECISIONS: [&str; 2] = ["f32", "f64"];

pub(super) fn of_figure_7(rows: &[Row]) -> Vec<Claim> {
    let time = |solver: &str, kind: &str, axis: &str| {
        rows.iter().find(|r| r.is(kind, solver) && r.axis == Some(axis) && r.precision == "f32").map(|r| r.ns)
    };
    let over_y = |solver: &str, kind: &str| {
        let ratio = time(solver, kind, "x").zip(time(solver, kind, "y")).map(|(x, y)| x / y);
        ratio.map(|ratio| format!("{ratio:.2}×"))
    };
    vec![
        claim(
            "naive Thomas along x against y, single precision, GPU",
            "Figure 7",
            "16.75×",
            over_y("thomas-grid", "cuda"),
        ),
        claim("the solver chosen along x against y, single precision, GPU", "", "–", over_y("auto", "cuda")),
        claim("the solver chosen along x against y, single precision, CPU", "", "–", over_y("thomas", "cpu")),
    ]
}

pub(super) fn of_x(rows: &[Row], precision: &str) -> Vec<Claim> {
    let cuda = |solver: &'static str| move |row: &Row| row.is("cuda", solver);
    let named =
        |solver: &'static str| move |row: &Row| row.library != "femtile" && row.solver.ends_with(solver);
    let cpu = |row: &Row| row.is("cpu", "thomas");
    let plain = |row: &Row| row.is("cpu", "plain loop");
    let mut claims = vec![
        claim(
            "Thomas transposed in shared memory against cuSPARSE gtsv2StridedBatch, GPU",
            "section 7.1.2",
            "2.5–3.1×, by precision and size",
            shown(ratios(rows, named("gtsv2StridedBatch"), cuda("thomas-shared"))),
        ),
        claim(
            "Thomas transposed by shuffles against the same, GPU",
            "section 7.1.2",
            "4.3–3.3×, by precision and size",
            shown(ratios(rows, named("gtsv2StridedBatch"), cuda("thomas-shuffle"))),
        ),
        claim(
            "the latter against naive Thomas, GPU",
            "section 7.1.2",
            of(precision, "6.1×", "7.2×"),
            shown(ratios(rows, cuda("thomas-grid"), cuda("thomas-shuffle"))),
        ),
        claim(
            "the hybrid beyond 512 unknowns against the hybrid up to there, time of an unknown, GPU",
            "section 7.1.2",
            of(precision, "fastest at every length", "drops beyond 512"),
            beyond_512(rows),
        ),
        claim(
            "Thomas against MKL's ?dtsvb, CPU",
            "Figures 10 and 11",
            "plot only",
            shown(ratios(rows, named("dtsvb"), cpu)),
        ),
        claim("Thomas against LAPACK's ?gtsv, CPU", "", "–", shown(ratios(rows, named("gtsv"), cpu))),
        claim(
            "Thomas against the plain loop, CPU",
            "Figures 10 and 11",
            "plot only",
            shown(ratios(rows, plain, cpu)),
        ),
    ];
    claims.retain(|claim| claim.ours.is_some() || claim.theirs != "–");
    claims
}

fn beyond_512(rows: &[Row]) -> Option<String> {
    let worst = |beyond: bool| {
        let hybrids = rows.iter().filter(|row| row.is("cuda", "hybrid") && (row.length > 512) == beyond);
        hybrids.map(|row| row.ns).reduce(f64::max)
    };
    Some(format!("{:.2}×", worst(true)? / worst(false)?))
}

pub(super) fn of_figure_12(rows: &[Row]) -> Vec<Claim> {
    PRECISIONS
        .into_iter()
        .flat_map(|precision| {
            let ours = |kind: &'static str, solver: &'static str| {
                move |row: &Row| row.precision == precision && row.is(kind, solver)
            };
            let name = of(precision, "single precision", "double precision");
            [
                claim(
                    format!("the hybrid along y against naive Thomas, GPU, {name}"),
                    "section 7.2.2",
                    of(precision, "up to 1.5×, spills at 320", "up to 1.8×, spills at 384"),
                    shown(ratios(rows, ours("cuda", "thomas"), ours("cuda", "hybrid"))),
                ),
                claim(
                    format!("the hybrid on a GPU against all threads of the CPU, {name}"),
                    "section 7.2.2",
                    of(precision, "4.3×", "4.6×"),
                    shown(ratios(rows, ours("cpu", "thomas"), ours("cuda", "hybrid"))),
                ),
            ]
        })
        .collect()
}

pub(super) fn of_figure_21(rows: &[Row]) -> Vec<Claim> {
    let over_gbsv = |kind: &str, precision: &str| {
        let bases = rows.iter().filter(|row| row.solver.ends_with("gbsv") && row.precision == precision);
        let ratios = bases.filter_map(|base| Some(base.ns / best(rows, kind, base, "thomas")?.ns));
        shown(ratios.fold(None, widened))
    };
    PRECISIONS
        .into_iter()
        .flat_map(|precision| {
            let name = of(precision, "single precision", "double precision");
            [
                claim(
                    format!("block Thomas on a GPU against MKL's ?gbsv on the CPU, {name}"),
                    "second part, section 6",
                    of(precision, "up to 27×", "up to 12×"),
                    over_gbsv("cuda", precision),
                ),
                claim(
                    format!("block Thomas on the CPU against the same, {name}"),
                    "second part, section 6",
                    of(precision, "2–6×", "1.5–3×"),
                    over_gbsv("cpu", precision),
                ),
            ]
        })
        .collect()
}

pub(super) fn of_block_pcr(rows: &[Row]) -> Vec<Claim> {
    let theirs = ["4.3× (2.42 ms against 10.5 ms)", "8.3×", "9.8×"];
    let ours = |kind: &str, n_systems: usize| {
        let pcr = rows.iter().find(|row| row.n_systems == n_systems && row.kind == kind)?;
        let (pcr, thomas) = (best(rows, kind, pcr, "pcr")?, best(rows, kind, pcr, "thomas")?);
        let ratio = pcr.seconds / thomas.seconds;
        Some(format!("{ratio:.2}× ({:.3} ms against {:.3} ms)", 1e3 * thomas.seconds, 1e3 * pcr.seconds))
    };
    let batches: BTreeSet<usize> = rows.iter().map(|row| row.n_systems).collect();
    let both = batches.into_iter().zip(theirs).flat_map(|(n_systems, theirs)| {
        [("cuda", theirs), ("cpu", "–")].map(|(kind, theirs)| {
            let what = format!("block Thomas against block PCR, {n_systems} systems, {kind}");
            claim(what, "second part, section 6", theirs, ours(kind, n_systems))
        })
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::super::scalar::{Grid, row};
    use super::*;

    #[test]
    fn ratios_compare_equal_sizes_alone() {
        let grid = |nx| Grid { sizes: [nx, 4, 4], axis: "x" };
        let make =
            |solver: &str, nx, seconds| Row { solver: solver.into(), ..row(&grid(nx), "f64", seconds) };
        let rows =
            [make("a", 8, 6.0), make("b", 8, 2.0), make("a", 9, 10.0), make("b", 9, 2.0), make("a", 10, 1.0)];
        let range = ratios(&rows, |row| row.solver == "a", |row| row.solver == "b");
        assert!(range.is_some_and(|(low, high)| (low - 3.0).abs() + (high - 5.0).abs() < 1e-12));
        assert_eq!(shown(range), Some("3.00–5.00×".into()));
        assert_eq!(shown(ratios(&rows, |row| row.solver == "c", |_| true)), None);
    }
}
