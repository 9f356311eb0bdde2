use femtile::linalg::sparse::Format;

use crate::formats::ComparedFormat;

use super::machine::Timing;
use super::matrices::Case;
use super::peers::peer;
use super::{COUNTS, Session, once};
use femtile_bench::BenchError;

/// Seconds of a product in the formats that ELL-WARP is set against, for each count of products in a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rivals {
    pub csr: Option<[f64; COUNTS]>,
    pub hyb: Option<[f64; COUNTS]>,
    /// In the place of MGPU.
    pub merge: Option<[f64; COUNTS]>,
}

/// The times of a matrix.
pub(super) fn rivals<'a>(session: &Session, case: &'a Case) -> Result<&'a Rivals, BenchError> {
    once(&case.rivals, || {
        let (a, timing) = (case.a(session.settings.small)?, Timing::of(session));
        let seconds = |format| {
            let products = session.measured().products(a, format, &timing)?;
            Ok::<_, BenchError>(products.map(|products| products.seconds))
        };
        Ok(Rivals {
            csr: seconds(ComparedFormat::Solver(Format::Csr))?,
            hyb: seconds(ComparedFormat::Hyb)?,
            merge: seconds(ComparedFormat::Merge)?,
        })
    })
}

/// Seconds of the competing product of K1 and K2: that of the other library, else of our CSR.
pub(super) fn baseline(session: &Session, case: &Case) -> Result<Option<f64>, BenchError> {
    if let Some(peer) = peer(session, case)? {
        return Ok(Some(peer.seconds));
    }
    Ok(rivals(session, case)?.csr.map(|seconds| seconds[1]))
}
