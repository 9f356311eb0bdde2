//! `[laszlo2016]`: scalar systems (figures 7 and 10 to 13), block systems (18 to 21), and what its text states.

mod agreement;
mod blocks;
mod claims;
mod peers;
mod scalar;

use super::session::no_gpu;
use super::{Absent, Claim, Figure, Item, Quantity, Row, Session};
use femtile_bench::BenchError;
use scalar::{Grid, Wanted};

const KEY: &str = "laszlo2016";

pub(super) fn items() -> Vec<Item> {
    let item = |name, summary, run| Item { name, summary, run };
    vec![
        item(
            "agreement",
            "mean square difference of the algorithms from Thomas (section 2.3)",
            agreement::run,
        ),
        item("figure-7", "Thomas along x, y and z of a cube of 256³", figure_7),
        item("figure-10", "time against length along x, single precision", |session| along_x(session, "f32")),
        item("figure-11", "time against length along x, double precision", |session| along_x(session, "f64")),
        item("figure-12", "time against length along y, both precisions", figure_12),
        item("figure-13", "all solvers along x and y of 240 × 256 × 256", figure_13),
        item("figure-18", "bandwidth of block solves, blocks of 2 to 8 rows", blocks::figure_18),
        item("figure-19", "arithmetic of block solves", blocks::figure_19),
        item("figure-20", "time of block solves for a row of blocks", blocks::figure_20),
        item("figure-21", "block solves against MKL's banded solver", blocks::figure_21),
        item("block-pcr", "block Thomas against block PCR (second part, section 6)", blocks::block_pcr),
    ]
}

/// Entries along the axes that are not swept, the contiguous one first: 256² unless another number of systems is asked
/// for.
fn sides(session: &Session) -> [usize; 2] {
    if session.settings.small { [16, 16] } else { [256, session.settings.systems.div_ceil(256)] }
}

/// Lengths that are awkward for something: primes, one off a power of two, no multiple of a vector.
const AWKWARD: [usize; 5] = [100, 127, 384, 500, 509];

fn lengths(session: &Session) -> Vec<usize> {
    if session.settings.small {
        return vec![1, 13, 64];
    }
    let mut lengths: Vec<usize> = (64..=1024).step_by(session.settings.step.max(1)).collect();
    lengths.extend(AWKWARD);
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

fn figure(
    session: &Session,
    (item, title, abscissa): (&'static str, &str, &'static str),
    (rows, absent): (Vec<Row>, Vec<Absent>),
    claims: Vec<Claim>,
) -> Figure {
    Figure {
        paper: KEY,
        item,
        title: title.into(),
        quantity: Quantity::Nanoseconds,
        abscissa,
        setting: session.machine(),
        rows: rows.into(),
        table: None,
        notes: Vec::new(),
        claims,
        absent,
    }
}

fn figure_7(session: &Session) -> Result<Figure, BenchError> {
    let n = if session.settings.small { 16 } else { 256 };
    let grids: Vec<_> = ["x", "y", "z"].map(|axis| Grid { sizes: [n, n, n], axis }).into();
    let wanted = Wanted { grids, precisions: &["f32", "f64"], peers: false };
    let measured = scalar::measure(session, &wanted)?;
    let claims = claims::of_figure_7(&measured.0);
    Ok(figure(
        session,
        ("figure-7", "Nanoseconds for an unknown along each axis of a cube", "axis"),
        measured,
        claims,
    ))
}

fn along_x(session: &Session, precision: &'static str) -> Result<Figure, BenchError> {
    let [ny, nz] = sides(session);
    let grids = lengths(session).into_iter().map(|nx| Grid { sizes: [nx, ny, nz], axis: "x" }).collect();
    let precisions: &[_] = if precision == "f32" { &["f32"] } else { &["f64"] };
    let measured = scalar::measure(session, &Wanted { grids, precisions, peers: true })?;
    let claims = claims::of_x(&measured.0, precision);
    let item = if precision == "f32" { "figure-10" } else { "figure-11" };
    Ok(figure(
        session,
        (item, "Nanoseconds for an unknown along x against length", "length"),
        measured,
        claims,
    ))
}

fn figure_12(session: &Session) -> Result<Figure, BenchError> {
    let [nx, nz] = sides(session);
    let grids = lengths(session).into_iter().map(|ny| Grid { sizes: [nx, ny, nz], axis: "y" }).collect();
    let measured = scalar::measure(session, &Wanted { grids, precisions: &["f32", "f64"], peers: true })?;
    let claims = claims::of_figure_12(&measured.0);
    let what = ("figure-12", "Nanoseconds for an unknown along y against length", "length");
    Ok(figure(session, what, measured, claims))
}

fn figure_13(session: &Session) -> Result<Figure, BenchError> {
    let n = if session.settings.small { 16 } else { 256 };
    let grids = ["x", "y"].map(|axis| Grid { sizes: [n * 15 / 16, n, n], axis }).into();
    let measured = scalar::measure(session, &Wanted { grids, precisions: &["f32", "f64"], peers: true })?;
    let what = ("figure-13", "Nanoseconds for an unknown on a domain of 240 × 256 × 256", "axis");
    Ok(figure(session, what, measured, Vec::new()))
}
