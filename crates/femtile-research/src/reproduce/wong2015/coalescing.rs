//! Figure 14: slices stored column by column against rows one after another.

use super::rivals::rivals;
use super::search::searched;
use super::{Cell, Claim, Figure, Quantity, Session, Table, figure, names, of_section_7, range};
use femtile_bench::BenchError;

pub(super) fn figure_14(session: &Session) -> Result<Figure, BenchError> {
    let cases = of_section_7(session);
    let (mut k1, mut csr) = (Vec::new(), Vec::new());
    for case in &cases {
        k1.push(searched(session, case)?.k1[1].seconds);
        csr.push(rivals(session, case)?.csr.map(|seconds| seconds[1]));
    }
    let ratios: Vec<Option<f64>> = k1.iter().zip(&csr).map(|(k1, csr)| Some((*csr)? / k1)).collect();
    let table = Table::new(names(cases))
        .drawn("K1", k1.iter().map(|seconds| Cell::Number(1e6 * seconds)).collect())
        .drawn("CSR", csr.iter().map(|seconds| Cell::from(seconds.map(|s| 1e6 * s))).collect())
        .listed("CSR / K1", ratios.iter().copied().map(Cell::from).collect());
    let claim = Claim {
        what: "values row by row against column by column (ours: CSR against K1)".into(),
        place: "Figure 14, section 7",
        theirs: "1.5–9× with textures, 1.5–10× without".into(),
        ours: range(ratios.into_iter().flatten()).map(|(least, most)| format!("{least:.2}–{most:.2}×")),
    };
    let notes = vec![
        "Their second kernel is K1 with a thread a row over values left in rows, whose loads are not \
         coalesced. There is none here: our CSR stands in for it, which on a GPU loads whole blocks of \
         rows coalesced and adds them from shared memory, so that the ratio shows what is left to gain, \
         not what coalescing gains."
            .into(),
    ];
    let what = ("figure-14", "Values column by column and row by row", Quantity::Microseconds, "matrix");
    Ok(Figure { notes, claims: vec![claim], ..figure(session, what, table) })
}
