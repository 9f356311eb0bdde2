//! Figures 2, 8 and 11 to 13: throughput against size.

use super::throughput::{Curve, MERGED, PLAIN, Work, against_size, at_largest, gain, gdof};
use super::{BASE, Claim, Figure, Problem, Quantity, Session, Table, UNKNOWNS, figure, times};
use femtile::matrix_free::MetricEvaluation;

use femtile_bench::BenchError;
use femtile_bench::problems::bake_off::{BakeOff, Method, Shape};

/// Metric evaluations, three components, with their gain by merging if the text has it.
const GEOMETRIES: [(&str, Problem, Option<&str>); 4] = [
    ("affine", Problem { operator: BakeOff::VectorLaplace, shape: Shape::Cartesian, ..BASE }, Some("2.27×")),
    ("8 points computed", Problem { geometry: Some(MetricEvaluation::Computed), ..BASE }, None),
    (QUADRATIC, Problem { order: 2, geometry: Some(MetricEvaluation::Computed), ..BASE }, Some("2.17×")),
    ("tensor loaded", Problem { geometry: Some(MetricEvaluation::Stored), ..BASE }, None),
];

/// The way of the paper's base case.
const QUADRATIC: &str = "27 points computed";

const OF_GEOMETRIES: &str = "BP4, p = 5: three components, p + 2 points, bent cells; affine: cubes, p + 1 points; 27 points: cells \
                             of order 2, the others straight.";

fn throughput(
    session: &Session,
    (item, title): (&'static str, &str),
    table: Table,
    claims: Vec<Claim>,
    what_is_measured: &str,
) -> Figure {
    let sizes = "Rows are the unknowns aimed at; whole cells come close to them, and rates are of the unknowns there are. A \
                 product or iteration is the mean over twelve, the fastest of several such runs, methods in turn.";
    let notes = vec![what_is_measured.into(), sizes.into()];
    let what = (item, title, Quantity::MdofPerS, UNKNOWNS);
    Figure { claims, notes, ..figure(session, what, table) }
}

fn claim(what: impl Into<String>, place: &'static str, theirs: &str, ours: Option<String>) -> Claim {
    Claim { what: what.into(), place, theirs: theirs.into(), ours }
}

pub(super) fn figure_2(session: &Session) -> Result<Figure, BenchError> {
    let curves = GEOMETRIES.map(|(name, problem, _)| Curve::new(name, problem, Work::Product));
    let table = against_size(session, &curves)?;
    let rate = at_largest(&table, QUADRATIC);
    let of_copies = |rate: f64| 24e-3 * rate / session.triad_gb_per_s;
    let claims = vec![
        claim(
            "product with metrics computed from 27 points, largest size",
            "section 2.2",
            "2.82 GDoF/s, 50 million",
            rate.map(gdof),
        ),
        claim(
            "the same over the rate of copying a vector, 24 bytes an unknown",
            "section 3",
            "about 0.33",
            rate.map(|rate| format!("{:.2}", of_copies(rate))),
        ),
    ];
    let what = ("figure-2", "Products against size, by metric evaluation");
    Ok(throughput(session, what, table, claims, OF_GEOMETRIES))
}

/// Methods of Figure 8 by name, with the statements of the text at the largest size.
const METHODS: [(&str, Work, Option<&str>); 7] = [
    ("product", Work::Product, None),
    ("CG", Work::Unpreconditioned(Method::Pcg), None),
    ("pipelined CG", Work::Unpreconditioned(Method::PipelinedPcg), None),
    ("s-step CG", Work::Unpreconditioned(Method::SStepPcg), Some("1.46 GDoF/s, s = 6")),
    ("merged CG", Work::Unpreconditioned(Method::MergedPcg), Some("2.36 GDoF/s")),
    ("PCG", Work::Iteration(Method::Pcg), Some("0.98 GDoF/s")),
    ("merged PCG", Work::Iteration(Method::MergedPcg), Some("2.13 GDoF/s")),
];

pub(super) fn figure_8(session: &Session) -> Result<Figure, BenchError> {
    let table = against_size(session, &METHODS.map(|(name, work, _)| Curve::new(name, BASE, work)))?;
    let place = "section 6.1";
    let known = METHODS.iter().filter_map(|(name, _, theirs)| Some((*name, (*theirs)?)));
    let mut claims: Vec<Claim> = known
        .map(|(name, theirs)| {
            claim(format!("{name}, largest size"), place, theirs, at_largest(&table, name).map(gdof))
        })
        .collect();
    let over = |one: &str, other: &str| Some(times(at_largest(&table, one)? / at_largest(&table, other)?));
    claims.push(claim("merged PCG over PCG", place, "2.17×", over("merged PCG", "PCG")));
    claims.push(claim("product over merged PCG", place, "1.2 to 1.3×", over("product", "merged PCG")));
    let note = format!(
        "BP4, p = 5, bent cells, metrics in the cheapest way. Without a preconditioner our plain and merged iterations multiply by ones; \
         s = {}, as six powers lose their independence.",
        Method::STEPS
    );
    let what = ("figure-8", "Variants of conjugate gradients against size");
    Ok(throughput(session, what, table, claims, &note))
}

pub(super) fn figure_11(session: &Session) -> Result<Figure, BenchError> {
    let name = |degree: usize| format!("p = {degree}");
    let degrees = [1, 3, 5, 7, 9];
    let curves: Vec<Curve> =
        degrees.iter().flat_map(|&degree| Curve::pair(&name(degree), Problem { degree, ..BASE })).collect();
    let table = against_size(session, &curves)?;
    let gains = degrees.iter().filter_map(|&degree| gain(&table, &name(degree)));
    let most = gains.reduce(f64::max);
    let of_merged = |degree: usize| at_largest(&table, &format!("{}, {MERGED}", name(degree)));
    let fastest = degrees.iter().filter_map(|&degree| of_merged(degree)).reduce(f64::max);
    let claims = vec![
        claim("p = 1, merged, largest size", "section 6.3.1", "0.4 GDoF/s", of_merged(1).map(gdof)),
        claim(
            "merged over plain, the most of all degrees",
            "section 6.4.1",
            "2× Intel, 3× AMD",
            most.map(times),
        ),
        claim(
            "merged, the most of all degrees",
            "section 6.4.1",
            "2 GDoF/s Intel, 4 GDoF/s AMD",
            fastest.map(gdof),
        ),
    ];
    let note = "BP4 on bent cells, metrics in the cheapest way; Jacobi's preconditioner.";
    let what = ("figure-11", "Plain and merged iterations against size, by degree");
    Ok(throughput(session, what, table, claims, note))
}

pub(super) fn figure_12(session: &Session) -> Result<Figure, BenchError> {
    let curves: Vec<Curve> =
        GEOMETRIES.iter().flat_map(|(name, problem, _)| Curve::pair(name, *problem)).collect();
    let table = against_size(session, &curves)?;
    let of = |(name, _, theirs): &(&str, Problem, Option<&str>)| {
        let what = format!("{name}, merged over plain, largest size");
        claim(what, "section 6.3.2", theirs.unwrap_or("not in the text"), gain(&table, name).map(times))
    };
    let claims = GEOMETRIES.iter().map(of).collect();
    let what = ("figure-12", "Plain and merged iterations against size, by metric evaluation");
    Ok(throughput(session, what, table, claims, OF_GEOMETRIES))
}

pub(super) fn figure_13(session: &Session) -> Result<Figure, BenchError> {
    let operators = [
        ("BP1", BakeOff::Bp1),
        ("BP2", BakeOff::Bp2),
        ("BP3", BakeOff::Bp3),
        ("BP4", BakeOff::Bp4),
        ("BP5", BakeOff::Bp5),
    ];
    let curves: Vec<Curve> = operators
        .iter()
        .flat_map(|&(name, operator)| Curve::pair(name, Problem { operator, ..BASE }))
        .collect();
    let table = against_size(session, &curves)?;
    let range = |of: &dyn Fn(&str) -> Option<f64>| {
        let found: Vec<f64> = operators.iter().filter_map(|(name, _)| of(name)).collect();
        let least = found.iter().copied().reduce(f64::min)?;
        Some((least, found.into_iter().reduce(f64::max)?))
    };
    let rates = |how: &str| {
        let (least, most) = range(&|name| at_largest(&table, &format!("{name}, {how}")))?;
        Some(format!("{} to {}", gdof(least), gdof(most)))
    };
    let place = "section 6.3.3";
    let gains = range(&|name| gain(&table, name));
    let claims = vec![
        claim("plain, BP1 to BP5, largest size", place, "0.8 to 1.2 GDoF/s", rates(PLAIN)),
        claim("merged, the same", place, "1.8 to 2.3 GDoF/s", rates(MERGED)),
        claim(
            "merged over plain",
            place,
            "about 2×",
            gains.map(|(least, most)| format!("{least:.2} to {}", times(most))),
        ),
    ];
    let note = "p = 5, bent cells, metrics in the cheapest way; Jacobi's preconditioner.";
    let what = ("figure-13", "Plain and merged iterations against size, bake-off problems 1 to 5");
    Ok(throughput(session, what, table, claims, note))
}
