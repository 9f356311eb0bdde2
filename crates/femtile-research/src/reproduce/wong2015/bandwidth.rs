//! Figures 12 and 17: the effective bandwidth of all products.

use super::peers::{baseline_name, peer};
use super::rivals::rivals;
use super::search::searched;
use super::{COUNTS, Cell, Claim, Figure, Quantity, Session, Table, all, count_names, figure, names, peers};
use femtile_bench::BenchError;

/// Table 2: a value, a column and an entry of x for each non-zero.
const BYTES_A_NONZERO: f64 = 20.0;
/// The products, in the order of their figure; the third is the other library's.
const PRODUCTS: [&str; 6] = ["CSR", "HYB", "", "merge (for MGPU)", "K1", "K2"];
const OTHER_LIBRARY: usize = 2;

/// Seconds of all products with a matrix, for one count in a row.
type Seconds = [Option<f64>; PRODUCTS.len()];

fn seconds(session: &Session, k: usize) -> Result<Vec<Seconds>, BenchError> {
    let mut all_seconds = Vec::new();
    for case in all(session) {
        let (rivals, best) = (rivals(session, case)?, searched(session, case)?);
        let peer = peer(session, case)?.map(|peer| peer.seconds);
        let [csr, hyb, merge] = [rivals.csr, rivals.hyb, rivals.merge].map(|seconds| Some(seconds?[k]));
        all_seconds.push([csr, hyb, peer, merge, Some(best.k1[k].seconds), Some(best.k2[k].seconds)]);
    }
    Ok(all_seconds)
}

/// Returns the index of the fastest product.
fn fastest(seconds: &Seconds) -> usize {
    let time = |k: &usize| seconds[*k].unwrap_or(f64::INFINITY);
    (0..PRODUCTS.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0)
}

fn run(session: &Session, (item, title): (&'static str, &str), k: usize) -> Result<Figure, BenchError> {
    let seconds = seconds(session, k)?;
    let library = baseline_name(session);
    let name = |product: usize| if product == OTHER_LIBRARY { library } else { PRODUCTS[product] };
    let mut bytes = Vec::new();
    for case in all(session) {
        bytes.push(BYTES_A_NONZERO * case.a(session.settings.small)?.n_nonzeros() as f64);
    }
    let mut table = Table::new(names(all(session)));
    for product in 0..PRODUCTS.len() {
        let rate =
            |(seconds, bytes): (&Seconds, &f64)| Cell::from(seconds[product].map(|s| 1e-9 * bytes / s));
        table = table.drawn(name(product), seconds.iter().zip(&bytes).map(rate).collect());
    }
    let winners = seconds.iter().map(|seconds| Cell::Words(name(fastest(seconds)))).collect();
    let table = table.listed("fastest", winners);
    let figure = figure(session, (item, title, Quantity::GbPerS, "matrix"), table);
    let mut notes = vec![
        "20 bytes a non-zero are counted, as in Table 2: a value, a column and an entry of x, whatever is \
         stored. Where a matrix stays in a cache the rate may exceed that of the memory."
            .into(),
    ];
    if peer_is_measured(session) {
        notes.push(format!(
            "{library} is the fastest of its algorithms for compressed rows, 20 products in a row on a GPU."
        ));
    }
    let absent = figure.absent.iter().cloned().chain(peers::absent(session)).collect();
    Ok(Figure { notes, absent, ..figure })
}

fn peer_is_measured(session: &Session) -> bool {
    session.settings.peers && session.wong2015.no_peer.get().is_none()
}

/// On how many matrices one of some products is the fastest, for the count `k`.
fn claim(
    session: &Session,
    (what, theirs): (&str, &str),
    products: &[usize],
    k: usize,
) -> Result<Claim, BenchError> {
    let seconds = seconds(session, k)?;
    let n = seconds.iter().filter(|seconds| products.contains(&fastest(seconds))).count();
    let without = if peer_is_measured(session) { "" } else { ", no other library measured" };
    Ok(Claim {
        what: format!("{what}, {} in a row", count_names(session)[k]),
        place: if k == 0 { "Figure 12, section 6" } else { "Figure 17, appendix 11.1" },
        theirs: theirs.into(),
        ours: Some(format!("{n} of {}{without}", seconds.len())),
    })
}

const ELL_WARP: &[usize] = &[4, 5];
const MERGE: &[usize] = &[3];

pub(super) fn figure_12(session: &Session) -> Result<Figure, BenchError> {
    let figure = run(session, ("figure-12", "Effective bandwidth, one product"), 0)?;
    let claims = vec![
        claim(session, ("K1 or K2 is fastest", "13 of 15"), ELL_WARP, 0)?,
        claim(session, ("MGPU (ours: merge) is fastest", "2 of 15"), MERGE, 0)?,
    ];
    Ok(Figure { claims, ..figure })
}

pub(super) fn figure_17(session: &Session) -> Result<Figure, BenchError> {
    let figure = run(session, ("figure-17", "Effective bandwidth, many products in a row"), COUNTS - 1)?;
    let claims = vec![
        claim(session, ("K1 or K2 is fastest", "9 of 15"), ELL_WARP, 2)?,
        claim(session, ("MGPU (ours: merge) is fastest", "6 of 15"), MERGE, 2)?,
        claim(session, ("K1 or K2 is fastest", "10 of 15"), ELL_WARP, 1)?,
    ];
    Ok(Figure { claims, ..figure })
}
