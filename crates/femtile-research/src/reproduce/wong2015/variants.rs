//! Figures 18 to 22: vectors renumbered (r), columns sorted again (rs), and the way back.

use crate::formats::ComparedFormat;
use femtile::linalg::sparse::EllWarpConfig;
use femtile::linalg::sparse::ell_warp::Numbering;

use super::machine::Timing;
use super::matrices::Case;
use super::search::{Best, searched};
use super::sorting::saving;
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure, names, of_section_7, once, range};
use femtile_bench::BenchError;

/// Seconds of a product, of 50 in a row, by numbering of the vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variants {
    kept: f64,
    sorted: f64,
    sorted_columns: f64,
    /// Renumbered, and the result brought back.
    unsorted: f64,
}

/// A column of a figure.
#[derive(Debug, Clone, Copy)]
struct Variant {
    suffix: &'static str,
    seconds: fn(&Variants) -> f64,
}

const KEPT: Variant = Variant { suffix: "", seconds: |variants| variants.kept };
const SORTED: Variant = Variant { suffix: "r", seconds: |variants| variants.sorted };
const SORTED_COLUMNS: Variant = Variant { suffix: "rs", seconds: |variants| variants.sorted_columns };
const UNSORTED: Variant = Variant { suffix: "r and back", seconds: |variants| variants.unsorted };

/// Matrices whose columns are in good order from the start.
const WELL_ORDERED: [&str; 2] = ["QCD", "Epidemiology"];

fn variants<'a>(session: &Session, case: &'a Case) -> Result<&'a [Variants; 2], BenchError> {
    once(&case.variants, || {
        let best = searched(session, case)?;
        let (k1, k2) = (of(session, case, &best.k1[1])?, of(session, case, &best.k2[1])?);
        Ok([k1, k2])
    })
}

fn of(session: &Session, case: &Case, best: &Best) -> Result<Variants, BenchError> {
    let (a, timing) = (case.a(session.settings.small)?, Timing::short(session));
    let numbered = |numbering| EllWarpConfig { numbering, ..best.config };
    let seconds = |numbering| {
        let format = ComparedFormat::ell_warp(numbered(numbering));
        let products = session.measured().products(a, format, &timing)?;
        Ok::<_, BenchError>(products.map_or(f64::INFINITY, |products| products.seconds[1]))
    };
    Ok(Variants {
        kept: seconds(Numbering::Kept)?,
        sorted: seconds(Numbering::Sorted)?,
        sorted_columns: seconds(Numbering::SortedColumns)?,
        unsorted: session.measured().product_unsorted(a, &numbered(Numbering::Sorted), &timing)?,
    })
}

/// By the name of a matrix, the hundredths of a time that are saved.
type Savings = Vec<(&'static str, f64)>;

/// Compares two variants of a kernel: per cent that the second saves, of the named matrices alone.
fn compared(
    session: &Session,
    item: &'static str,
    kernel: usize,
    (before, after): (Variant, Variant),
) -> Result<(Figure, Savings), BenchError> {
    let cases = of_section_7(session);
    let mut found = Vec::new();
    for case in &cases {
        found.push(variants(session, case)?[kernel]);
    }
    let times = |variant: Variant| {
        found.iter().map(|variants| Cell::Number(1e6 * (variant.seconds)(variants))).collect::<Vec<_>>()
    };
    let savings: Vec<f64> =
        found.iter().map(|variants| saving((before.seconds)(variants), (after.seconds)(variants))).collect();
    let name = |variant: Variant| format!("K{}{}", kernel + 1, variant.suffix);
    let table = Table::new(names(cases.iter().copied()))
        .drawn(&name(before), times(before))
        .drawn(&name(after), times(after))
        .listed("saved, %", savings.iter().copied().map(Cell::Number).collect());
    let title = format!("{} and {}", name(before), name(after));
    let figure = figure(session, (item, &title, Quantity::Microseconds, "matrix"), table);
    Ok((figure, cases.iter().map(|case| case.matrix.name).zip(savings).collect()))
}

fn claim(what: &str, place: &'static str, theirs: &str, ours: Option<String>) -> Claim {
    Claim { what: what.into(), place, theirs: theirs.into(), ours }
}

fn percents(values: impl Iterator<Item = f64>) -> Option<String> {
    range(values).map(|(least, most)| format!("{least:.1} to {most:.1} %"))
}

pub(super) fn figure_18(session: &Session) -> Result<Figure, BenchError> {
    let (figure, savings) = compared(session, "figure-18", 0, (KEPT, SORTED))?;
    let theirs = "faster with textures; without, but for HeartRefined";
    let ours = percents(savings.iter().map(|saving| saving.1));
    Ok(Figure { claims: vec![claim("K1r saves over K1", "appendix 11.2", theirs, ours)], ..figure })
}

pub(super) fn figure_19(session: &Session) -> Result<Figure, BenchError> {
    let (figure, savings) = compared(session, "figure-19", 1, (KEPT, SORTED))?;
    let theirs = "faster with textures; without, sometimes slower";
    let ours = percents(savings.iter().map(|saving| saving.1));
    Ok(Figure { claims: vec![claim("K2r saves over K2", "appendix 11.2", theirs, ours)], ..figure })
}

pub(super) fn figure_20(session: &Session) -> Result<Figure, BenchError> {
    let (figure, savings) = compared(session, "figure-20", 0, (UNSORTED, SORTED))?;
    // Theirs is a share of K1r.
    let costs = savings.iter().map(|(_, saved)| 100.0 * saved / (100.0 - saved));
    let theirs = "1 to 11.5 % with textures, 0.8 to 8 % without";
    let claim = claim("the final remapping costs of K1r", "appendix 11.2", theirs, percents(costs));
    let notes = vec![
        "They remap in the kernel of K1r; here a second kernel does, which reads and writes the result \
         once more."
            .into(),
    ];
    Ok(Figure { claims: vec![claim], notes, ..figure })
}

/// Savings of the columns' order, of the matrices that are not in good order from the start.
fn of_disordered(savings: &[(&str, f64)]) -> Option<String> {
    percents(savings.iter().filter(|(name, _)| !WELL_ORDERED.contains(name)).map(|saving| saving.1))
}

pub(super) fn figure_21(session: &Session) -> Result<Figure, BenchError> {
    let (figure, savings) = compared(session, "figure-21", 0, (SORTED, SORTED_COLUMNS))?;
    let what = "K1rs saves over K1r, without QCD and Epidemiology";
    let theirs = "1.75 to 7.25 % with textures, 4 to 23.5 % without";
    Ok(Figure { claims: vec![claim(what, "appendix 11.2", theirs, of_disordered(&savings))], ..figure })
}

pub(super) fn figure_22(session: &Session) -> Result<Figure, BenchError> {
    let (figure, savings) = compared(session, "figure-22", 1, (SORTED, SORTED_COLUMNS))?;
    let what = "K2rs saves over K2r, without QCD and Epidemiology";
    let theirs = "1 to 7.5 % with textures, 0.25 to 21 % without";
    Ok(Figure { claims: vec![claim(what, "appendix 11.2", theirs, of_disordered(&savings))], ..figure })
}
