//! Table 6: padding and time, rows sorted by length against rows as they are.

use crate::formats::ComparedFormat;
use femtile::linalg::sparse::EllWarpConfig;

use super::machine::{Products, Timing};
use super::matrices::Case;
use super::search::k1;
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure, names, of_section_7};
use femtile_bench::BenchError;

/// Window sizes of sorting: none, 256 rows, all rows.
const WINDOWS: [usize; 3] = [1, 256, EllWarpConfig::ALL_ROWS];

/// Published figures of matrices that have the names of Table 2: stored entries, time with textures and
/// without.
const THEIRS: [(&str, [f64; 3]); 4] = [
    ("Circuit", [59.89, 21.16, -17.38]),
    ("Epidemiology", [0.14, -2.10, -4.35]),
    ("FEMHarbor", [33.67, 0.0, 0.0]),
    ("QCD", [0.0, 0.47, 0.49]),
];

fn products(session: &Session, case: &Case) -> Result<[Option<Products>; 3], BenchError> {
    let (a, timing) = (case.a(session.settings.small)?, Timing::short(session));
    let mut all = [None; 3];
    for (products, window) in all.iter_mut().zip(WINDOWS) {
        let format = ComparedFormat::ell_warp(EllWarpConfig { window, ..k1(session) });
        *products = session.measured().products(a, format, &timing)?;
    }
    Ok(all)
}

/// By how many hundredths `after` is less than `before`.
pub(super) fn saving(before: f64, after: f64) -> f64 {
    if before == 0.0 { 0.0 } else { 100.0 * (before - after) / before }
}

pub(super) fn table_6(session: &Session) -> Result<Figure, BenchError> {
    let cases = of_section_7(session);
    let mut found = Vec::new();
    for case in &cases {
        found.push(products(session, case)?);
    }
    let of = |window: usize, value: &dyn Fn(Products) -> f64| {
        let saved = |all: &[Option<Products>; 3]| Some(saving(value(all[0]?), value(all[window]?)));
        found.iter().map(|all| Cell::from(saved(all))).collect::<Vec<_>>()
    };
    let (stored, seconds) =
        (|products: Products| products.n_stored as f64, |products: Products| products.seconds[1]);
    let theirs = |k: usize| {
        let row = |name| THEIRS.iter().find(|(other, _)| *other == name);
        cases.iter().map(|case| Cell::from(row(case.matrix.name).map(|(_, row)| row[k]))).collect::<Vec<_>>()
    };
    let table = Table::new(names(cases.iter().copied()))
        .drawn("stored entries", of(2, &stored))
        .drawn("stored entries, theirs", theirs(0))
        .listed("stored entries, windows of 256", of(1, &stored))
        .drawn("time", of(2, &seconds))
        .drawn("time, theirs with textures", theirs(1))
        .listed("time, theirs without", theirs(2))
        .drawn("time, windows of 256", of(1, &seconds));
    let ours = |column: Vec<Cell>| column[0].number().map(|percent| format!("{percent:.2} %"));
    let claim = |what: &str, theirs: &str, ours| Claim {
        what: what.into(),
        place: "Table 6",
        theirs: theirs.into(),
        ours,
    };
    let claims = vec![
        claim("sorting saves stored entries of Circuit", "59.89 %", ours(of(2, &stored))),
        claim(
            "sorting saves time of Circuit",
            "21.16 % with textures, −17.38 % without",
            ours(of(2, &seconds)),
        ),
        claim("the same, sorted in windows of 256 rows", "–", ours(of(1, &seconds))),
    ];
    let notes = vec![
        "What K1 saves when all rows are sorted by length, of what it stores and takes with rows as they \
         are."
            .into(),
        "Their table has the hearts as Heart, HeartCoarse and HeartRefined, and does not say which is \
         which: entries 29.60, 33.73 and 30.03 %, time with textures 3.00, 22.67 and 5.79 %, without \
         −28.22, 10.42 and −46.80 %."
            .into(),
    ];
    let what = ("table-6", "What sorting rows by length saves", Quantity::Percent, "matrix");
    Ok(Figure { notes, claims, ..figure(session, what, table) })
}
