//! Table 4 and figure 13: cost of new values, and the number of products after which they pay.

use super::machine::Machine;
use super::matrices::Case;
use super::peers::{self, baseline_name};
use super::rivals::baseline;
use super::search::{Best, searched};
use super::{Cell, Claim, Figure, Quantity, Session, Table, all, figure, names, once, range};
use femtile_bench::BenchError;

/// Seconds of bringing new values from compressed rows into slices.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refills {
    /// By the GPU; none if a CPU is measured.
    pub gpu: Option<f64>,
    /// By the host, one thread.
    pub host: f64,
    /// A product, of 50 in a row.
    pub product: f64,
}

/// The places of K1 and K2 in what is measured of both.
const KERNELS: [&str; 2] = ["K1", "K2"];

fn refills<'a>(session: &Session, case: &'a Case) -> Result<&'a [Refills; 2], BenchError> {
    once(&case.refills, || {
        let best = searched(session, case)?;
        let (k1, k2) = (of(session, case, &best.k1[1])?, of(session, case, &best.k2[1])?);
        Ok([k1, k2])
    })
}

fn of(session: &Session, case: &Case, best: &Best) -> Result<Refills, BenchError> {
    let (a, repeats) = (case.a(session.settings.small)?, session.settings.repeats);
    let gpu = session.gpu.as_ref().map(|gpu| Machine::refill(&gpu.device, a, &best.config, repeats));
    let host = Machine::refill(&session.cpu, a, &best.config, repeats)?;
    Ok(Refills { gpu: gpu.transpose()?, host, product: best.seconds })
}

/// Products after which a refill has paid: $α = t_{reorder} / (t_{peer} − t_{ours})$, eq. (14).
fn products_to_pay(refill: Option<f64>, product: f64, baseline: Option<f64>) -> Cell {
    let Some((refill, baseline)) = refill.zip(baseline) else { return Cell::Nothing };
    if product < baseline { Cell::Number(refill / (baseline - product)) } else { Cell::Words("∞") }
}

fn theirs(alpha: usize) -> Cell {
    if alpha == 0 { Cell::Words("∞") } else { Cell::Count(alpha) }
}

/// The least and the most products, and on how many matrices they never pay; none where nothing is known.
fn spread(products: &[Cell]) -> Option<String> {
    let never = products.iter().filter(|cell| matches!(cell, Cell::Words(_))).count();
    let never = if never == 0 { String::new() } else { format!("never on {never} of {}", products.len()) };
    match range(products.iter().filter_map(Cell::number)) {
        Some((least, most)) if never.is_empty() => Some(format!("{least:.0}–{most:.0}")),
        Some((least, most)) => Some(format!("{least:.0}–{most:.0}, {never}")),
        None => Some(never).filter(|never| !never.is_empty()),
    }
}

pub(super) fn table_4(session: &Session) -> Result<Figure, BenchError> {
    let mut measured = Vec::new();
    for case in all(session) {
        measured.push((case, refills(session, case)?, baseline(session, case)?));
    }
    let mut table = Table::new(names(all(session)));
    let mut claims = Vec::new();
    for (k, kernel) in KERNELS.into_iter().enumerate() {
        for (place, by) in ["GPU", "host"].into_iter().enumerate() {
            let ours: Vec<Cell> = measured
                .iter()
                .map(|(_, refills, baseline)| {
                    let Refills { gpu, host, product } = refills[k];
                    products_to_pay(if place == 0 { gpu } else { Some(host) }, product, *baseline)
                })
                .collect();
            let printed: Vec<Cell> =
                measured.iter().map(|(case, ..)| theirs(case.matrix.alphas[2 * k + place])).collect();
            claims.push(Claim {
                what: format!("products after which {kernel} has paid, reordered by the {by}"),
                place: "Table 4",
                theirs: spread(&printed).unwrap_or_default(),
                ours: spread(&ours),
            });
            table = table
                .drawn(&format!("{kernel}, {by}"), ours)
                .drawn(&format!("{kernel}, {by}, theirs"), printed);
        }
    }
    let base = baseline_name(session);
    let notes = vec![
        format!(
            "Products after which new values have paid against {base}: refill / (time of {base} − time of K)."
        ),
        "The host refills with one thread, and its copy to the GPU is not counted.".into(),
    ];
    let title = "Products after which reordering the values has paid";
    let figure = figure(session, ("table-4", title, Quantity::Products, "matrix"), table);
    let absent = figure.absent.iter().cloned().chain(peers::absent(session)).collect();
    Ok(Figure { notes, claims, absent, ..figure })
}

pub(super) fn figure_13(session: &Session) -> Result<Figure, BenchError> {
    let mut measured = Vec::new();
    for case in all(session) {
        measured.push(refills(session, case)?);
    }
    let mut table = Table::new(names(all(session)));
    for (k, kernel) in KERNELS.into_iter().enumerate() {
        let gpu = measured.iter().map(|both| Cell::from(both[k].gpu.map(|gpu| gpu / both[k].product)));
        let host = measured.iter().map(|both| Cell::Number(both[k].host / both[k].product));
        table = table
            .drawn(&format!("{kernel}, GPU"), gpu.collect())
            .drawn(&format!("{kernel}, host"), host.collect());
    }
    let over_gpu =
        measured.iter().flat_map(|both| both.iter()).filter_map(|refill| Some(refill.host / refill.gpu?));
    let ratios: Vec<f64> = over_gpu.collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
    let claim = |what: &str, theirs: &str, ours| Claim {
        what: what.into(),
        place: "section 6",
        theirs: theirs.into(),
        ours,
    };
    let of_gpu =
        measured.iter().flat_map(|both| both.iter()).filter_map(|refill| Some(refill.gpu? / refill.product));
    let claims = vec![
        claim(
            "reordering on the GPU against the host, mean over matrices",
            "5×",
            (!ratios.is_empty()).then(|| format!("{mean:.1}×")),
        ),
        claim(
            "reordering on the GPU in products of K1 or K2",
            "plot only",
            range(of_gpu).map(|(least, most)| format!("{least:.1}–{most:.1}")),
        ),
    ];
    let what =
        ("figure-13", "Time of reordering the values over that of a product", Quantity::Ratio, "matrix");
    Ok(Figure { claims, ..figure(session, what, table) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refill_never_pays_where_the_product_is_no_faster() {
        assert_eq!(products_to_pay(Some(6.0), 1.0, Some(3.0)), Cell::Number(3.0));
        assert_eq!(products_to_pay(Some(6.0), 3.0, Some(3.0)), Cell::Words("∞"));
        assert_eq!(products_to_pay(None, 1.0, Some(3.0)), Cell::Nothing);
        assert_eq!(spread(&[Cell::Number(3.0), Cell::Words("∞")]), Some("3–3, never on 1 of 2".into()));
        assert_eq!(spread(&[Cell::Nothing]), None);
    }
}
